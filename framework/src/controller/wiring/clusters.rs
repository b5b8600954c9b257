//! Kinds of other clusters.

use super::Wiring;
use crate::controller::{Cluster, Reconciler, sources};
use crate::resource::{ClusterId, ObjectKey, Resource};
use crate::store::Cached;

impl<C: Reconciler> Wiring<C> {
    /// Objects of kind `K` in another cluster: a change of one reconciles the objects of the
    /// operator's own cluster whose keys `mapper` makes of it; it is asked about the old and the new
    /// state. What may be read there is a matter of that cluster's credentials: no rule is printed
    /// for it. When the manager was not given the cluster, too, by
    /// [`Manager::cluster`](crate::manager::Manager::cluster), the controller does not start.
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
            let here = move |other: &Cached<K>| {
                let keys = mapper(other).into_iter();
                keys.map(|key| key.in_cluster(ClusterId::default())).collect()
            };
            cluster.check_managed()?;
            let informer = cluster.informers().informer::<K>();
            Ok(vec![sources::mapped(&informer, at.feed, reason, None, here)])
        }));
        self
    }
}
