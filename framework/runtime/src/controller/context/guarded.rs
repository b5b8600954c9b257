//! Patches of the reconciled object upon a known version, for modules above the controller that
//! keep records on it.
//!
//! Such a patch is refused after any other write, so that the author decides upon the newest state;
//! the watch event of an own patch does not enqueue the object.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;

use crate::controller::state::Drivers;
use crate::controller::{Context, Reconciler};
use windlass_cache::store::Cached;
use windlass_client::api::Patch;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::Metrics;
use windlass_core::resource::{DynamicObject, ResourceExt};

impl<C: Reconciler> Context<C> {
    /// Returns the object with the own writes of this reconcile from the cache; otherwise the
    /// object that the reconciler was given.
    ///
    /// A cache that selects by labels or fields does not show own writes, such as the finalizer
    /// that was just added: the given object is then newer.
    pub(crate) fn newest_own(&self) -> Arc<C::Object> {
        let cached = self.store.get(&self.key).filter(|cached| {
            cached.metadata().uid() == self.object.uid()
                && !is_older(cached.metadata().resource_version(), self.object.resource_version())
        });
        let newest = cached.and_then(|cached| cached.get().ok());
        newest.unwrap_or_else(|| Arc::clone(&self.object))
    }

    /// Returns the other objects of the kind, as the cache shows them.
    pub(crate) fn other_objects(&self) -> impl Iterator<Item = Cached<C::Object>> {
        let uid = self.object.uid();
        self.store.list().into_iter().filter(move |other| other.metadata().uid() != uid)
    }

    /// Reads the object from the API server; `None` when it is gone, or another object has the
    /// name.
    pub(crate) async fn read_own(&self) -> Result<Option<C::Object>, Error> {
        let found = self.own_api().get_opt(self.key.name()).await?;
        Ok(found.filter(|found| found.uid() == self.object.uid()))
    }

    /// As [`read_own`](Self::read_own), with the fields that the type of the object leaves out.
    pub(crate) async fn read_raw_own(&self) -> Result<Option<DynamicObject>, Error> {
        let api = self.shared.client.dynamic(self.shared.info.clone(), self.key.namespace());
        let found = api.get_opt(self.key.name()).await?;
        Ok(found.filter(|found| found.uid() == self.object.uid()))
    }

    /// As [`read_own`](Self::read_own), for a reconcile that makes something: ends it, without a
    /// failure, if the object is gone, or is being deleted and the cache does not show that yet.
    ///
    /// # Errors
    /// [`NotFound`](windlass_core::ErrorKind::NotFound) then, and any error of the API server.
    pub(crate) async fn read_alive(&self) -> Result<C::Object, Error> {
        let end = match self.read_own().await? {
            Some(found) if !found.is_terminating() || self.object.is_terminating() => {
                return Ok(found);
            }
            Some(_) => "is being deleted",
            None => "is gone",
        };
        // Relaxed: written and read by the task of this reconcile.
        self.has_ended.store(true, Ordering::Relaxed);
        let text = format!("{} {end}, which the cache will show soon", self.object_ref());
        Err(Error::new(ErrorKind::NotFound, text))
    }

    /// Sends a merge patch of the object that is accepted only upon the version of `base`.
    ///
    /// # Errors
    /// [`Conflict`](windlass_core::ErrorKind::Conflict) after any other write, and any error of the
    /// API server.
    pub(crate) async fn patch_upon(
        &self,
        base: &C::Object,
        mut patch: Value,
    ) -> Result<C::Object, Error> {
        let from = base.resource_version();
        patch["metadata"]["resourceVersion"] = from.into();
        // Another object of the same name is never touched.
        patch["metadata"]["uid"] = base.uid().into();
        let write = self.own_api().patch(base.name(), Patch::Merge(patch));
        let (written, answer) = self.answered(write, ("patch", &self.key)).await?;
        self.wrote_beside_status(&written);
        self.wrote_own(from, &written, &answer);
        Ok(written)
    }

    /// The name of the controller, for labels of metrics.
    pub(crate) fn controller_name(&self) -> &str {
        &self.shared.controller
    }

    /// The drivers of external resources that the controller has.
    pub(crate) fn drivers(&self) -> &Drivers {
        &self.shared.drivers
    }

    /// The metrics of the operator.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.environment.metrics
    }
}

/// Whether a version of an object is older than another; false for versions that are no numbers.
fn is_older(version: &str, other: &str) -> bool {
    let number = |version: &str| version.parse::<u64>().ok();
    matches!((number(version), number(other)), (Some(version), Some(other)) if version < other)
}
