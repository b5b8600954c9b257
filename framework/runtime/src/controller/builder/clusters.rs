//! Watches on kinds of other clusters.

use super::ControllerBuilder;
use crate::controller::source::watches;
use crate::controller::{Cluster, Reconciler};
use windlass_cache::store::Cached;
use windlass_core::resource::{ClusterId, ObjectKey, Resource};

impl<C: Reconciler> ControllerBuilder<C> {
    /// Watches objects of kind `K` in another cluster: a change reconciles the objects of the
    /// operator's own cluster whose keys `mapper` returns for the old and for the new state. Reads
    /// there are authorized by that cluster's credentials, so no rule is printed for them. When the
    /// manager was not given the cluster, too, by
    /// [`Manager::cluster`](crate::manager::Manager::cluster), the controller does not start.
    ///
    /// The mapper returns keys of the operator's own cluster: the cluster part of a returned key is
    /// replaced. The caches of that cluster count among those that must be filled before the first
    /// reconcile, so an unreachable cluster keeps this controller from starting, and no other
    /// controller.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    #[track_caller]
    pub fn watches_in<K: Resource>(
        mut self,
        cluster: &Cluster,
        mapper: fn(&Cached<K>) -> Vec<ObjectKey>,
    ) -> Self {
        let watched = super::static_info::<K>().group_resource();
        let reason = self.names.add(format!("watched {watched} of {}", cluster.name()));
        let cluster = cluster.clone();
        self.sources.push(Box::new(move |at| {
            // Reconciled objects live in the operator's own cluster, whatever cluster the mapped
            // key names.
            let here = move |other: &Cached<K>| {
                let keys = mapper(other).into_iter();
                keys.map(|key| key.in_cluster(ClusterId::default())).collect()
            };
            cluster.check_managed()?;
            let informer = cluster.informers().informer::<K>();
            Ok(vec![watches::mapped(&informer, at.enqueuer, reason, None, here)])
        }));
        self
    }
}
