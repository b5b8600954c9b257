//! Expectations of a reconcile: own creates and deletes that the caches do not show yet.

use crate::controller::state::{ParentRef, Pending, WriteEffect, WrittenKind};
use crate::controller::{Context, Reconciler};
use windlass_cache::store::Cached;
use windlass_core::rbac::Owns;
use windlass_core::resource::{Resource, ResourceExt};

/// Creates and deletes for an object that the caches do not show yet; from
/// [`Context::expectations`].
///
/// A reconcile that counts children, and creates or deletes by the count, checks
/// [`satisfied`](Self::satisfied) first. The awaited change enqueues the object again:
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::controller::{Action, Context, Reconciler, Result};
/// # use windlass::prelude::*;
/// # struct Sites;
/// # impl windlass::rbac::Owns<ConfigMap> for Sites {}
/// # impl Reconciler for Sites {
/// #     type Object = ConfigMap;
/// async fn reconcile(&self, site: &ConfigMap, cx: &Context<Self>) -> Result {
///     if let Some(expires_in) = cx.expectations().pending().expires_in {
///         return Ok(Action::requeue_after(expires_in));
///     }
///     if cx.store_of::<ConfigMap>().owned_by(site.uid()).is_empty() {
///         let mut child = ConfigMap::default();
///         child.metadata.generate_name = Some("page-".into());
///         cx.create_owned(child).await?;
///     }
///     Ok(Action::done())
/// }
/// # }
/// ```
///
/// [`Context::create_owned`], [`Context::create`] and the deletions of the context raise
/// expectations by themselves. Expectations end when caches show the expected state, after 5 min
/// (as in kube-controller-manager), and with the object. A cache that is limited by a selector
/// never shows objects that do not match: a child that is created without the labels of the
/// selector is expected for the whole 5 min.
#[derive(Debug)]
pub struct Expectations<'a, C: Reconciler> {
    /// The reconcile whose expectations these are.
    cx: &'a Context<C>,
}

impl<C: Reconciler> Context<C> {
    /// Returns the creates and deletes of this process for the object that the caches do not show.
    /// Nothing is expected after a restart: first views are complete.
    ///
    /// `ControllerExpectations` of the kube-controller-manager, without calls of the reconciler:
    /// writes through the context are counted by themselves.
    pub fn expectations(&self) -> Expectations<'_, C> {
        Expectations { cx: self }
    }

    /// Returns the reconciled object as the parent of expectations.
    pub(super) fn parent_ref(&self) -> ParentRef<'_> {
        ParentRef { key: &self.key, uid: self.object.uid() }
    }
}

impl<C: Reconciler> Expectations<'_, C> {
    /// Whether the caches show all objects that were created for this object, and none that was
    /// deleted. Own writes that the cache shows before the watch does count as shown.
    pub fn satisfied(&self) -> bool {
        self.pending().is_none()
    }

    /// Returns the missing creates and deletes.
    ///
    /// `expires_in` is the time after which the oldest expectation is given up; see [`Pending`].
    pub fn pending(&self) -> Pending {
        let shared = &self.cx.shared;
        let expectations = &shared.memory.applied.expectations;
        expectations.pending(&self.cx.key, &shared.informers, shared.environment.clock.now())
    }

    /// Expects `count` more children of kind `K`: for children that are created without the
    /// context. Call this method before they are created, and
    /// [`withdraw_created`](Self::withdraw_created) for children that were not created after all.
    pub fn expect_created<K: Resource>(&self, count: usize)
    where
        C: Owns<K>,
    {
        self.announce::<K>(isize::try_from(count).unwrap_or(isize::MAX));
    }

    /// Withdraws the expectation of `count` children of kind `K` that will not appear.
    pub fn withdraw_created<K: Resource>(&self, count: usize)
    where
        C: Owns<K>,
    {
        self.announce::<K>(isize::try_from(count).map_or(isize::MIN, |count| -count));
    }

    /// Expects this child to disappear, or to be marked for deletion: for a child that is deleted
    /// without the context. Call this method once the deletion was accepted.
    pub fn expect_deleted<K: Resource>(&self, child: &Cached<K>)
    where
        C: Owns<K>,
    {
        self.cx.sent::<K>(WriteEffect::Deleted, child.key(), child.metadata().uid());
    }

    /// Adds to the number of announced children, or subtracts from it.
    fn announce<K: Resource>(&self, more: isize) {
        let kind = WrittenKind::of::<K>().filter(|_| !self.cx.is_dry_run());
        let Some(kind) = kind else { return };
        let shared = &self.cx.shared;
        let now = shared.environment.clock.now();
        shared.memory.applied.expectations.announce(self.cx.parent_ref(), kind, more, now);
    }
}
