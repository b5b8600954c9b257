//! Children for a graph: those in the cache, their deletion, and whether their kind is served.

use crate::controller::{Context, Reconciler};
use windlass_cache::store::Cached;
use windlass_client::api::Propagation;
use windlass_core::error::Error;
use windlass_core::resource::{ObjectKey, Resource, ResourceExt};

impl<C: Reconciler> Context<C> {
    /// Returns the cached children of kind `K` that the object controls, in the order of their keys.
    pub(crate) fn cached_children<K: Resource>(&self) -> Vec<Cached<K>> {
        let store = self.shared.informers.pinned::<K>().store();
        let mut children = store.owned_by(self.object.uid());
        children.retain(|child| self.controls(child));
        children
    }

    /// Whether the cache of kind `K` has found that the API server does not serve the kind.
    pub(crate) fn is_unserved<K: Resource>(&self) -> bool {
        self.shared.informers.pinned::<K>().status().is_absent
    }

    /// Deletes the object at that key, if it is a child.
    ///
    /// # Errors
    /// As [`delete_owned`](Self::delete_owned).
    pub(crate) async fn delete_child_by<K: Resource>(
        &self,
        key: &ObjectKey,
        propagation: Propagation,
    ) -> Result<(), Error> {
        self.delete_child::<K>(key, propagation).await
    }
}
