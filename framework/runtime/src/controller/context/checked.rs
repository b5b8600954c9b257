//! Calls on subresources and collections, each behind the grant of the verb.
//!
//! They act beside the caches: a scaled Deployment or an evicted Pod shows up in a cache when the
//! watch delivers it. Futures and builders have no `C` in their types, so that a missing grant is
//! reported once, at the call.

use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};

use crate::controller::state::WriteEffect;
use crate::controller::{Context, Reconciler};
use windlass_client::api::{
    Api, ApiFuture, DeleteCollection, Evict, Get, Log, Patch, TokenRequest, Write,
};
use windlass_core::rbac::{
    CanDeleteCollection, CanEvict, CanGetScale, CanPatchScale, CanPatchStatus, CanReadLog,
    CanRequestToken, CanUpdateStatus,
};
use windlass_core::resource::{FullObject, Resource};

/// Calls on kind `K` beside those of [`Context`]: subresources and whole collections, in the
/// object's namespace. From [`Context::checked`].
///
/// Each method requires a grant at compile time:
///
/// | call | grant |
/// |---|---|
/// | [`evict`](Self::evict) | `can(create Pod/eviction)` |
/// | [`log`](Self::log) | `can(get Pod/log)` |
/// | [`scale`](Self::scale) | `can(get Deployment/scale)` |
/// | [`scale_to`](Self::scale_to) | `can(patch Deployment/scale)` |
/// | [`patch_status`](Self::patch_status) | `can(patch Website/status)` |
/// | [`replace_status`](Self::replace_status) | `can(update Website/status)` |
/// | [`token_request`](Self::token_request) | `can(create ServiceAccount/token)` |
/// | [`delete_collection`](Self::delete_collection) | `can(deletecollection Pod)` |
pub struct CheckedApi<'a, C: Reconciler, K> {
    /// The reconcile that makes the calls.
    cx: &'a Context<C>,
    _kind: PhantomData<fn() -> K>,
}

impl<C: Reconciler, K> fmt::Debug for CheckedApi<'_, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedApi").field("cx", self.cx).finish()
    }
}

impl<C: Reconciler> Context<C> {
    /// Returns the calls on subresources and collections of kind `K`, which require their grants
    /// at compile time, unlike those of [`api`](Self::api).
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// # use windlass::controller::{Action, Context, Reconciler, Result};
    /// # use windlass::rbac::{Can, SubresourceOf, subresources, verbs};
    /// # struct Sites;
    /// # impl Can<verbs::Get, SubresourceOf<Pod, subresources::Log>> for Sites {}
    /// # impl Can<verbs::Patch, SubresourceOf<Deployment, subresources::Scale>> for Sites {}
    /// # impl Reconciler for Sites {
    /// #     type Object = ConfigMap;
    /// // #[controller(for = ConfigMap, can(get Pod/log, patch Deployment/scale))]
    /// async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
    ///     let lines = cx.checked::<Pod>().log("web-0").tail(10).text().await?;
    ///     if lines.contains("overloaded") {
    ///         cx.checked::<Deployment>().scale_to("web", 3).await?;
    ///     }
    ///     Ok(Action::done())
    /// }
    /// # }
    /// ```
    pub fn checked<K: Resource>(&self) -> CheckedApi<'_, C, K> {
        CheckedApi { cx: self, _kind: PhantomData }
    }

    /// Evicts a Pod of the object's namespace, as `kubectl drain` does: refused while a disruption
    /// budget does not allow it. Sent when awaited; see [`Evict`] for the settings and errors.
    ///
    /// Needs `can(create Pod/eviction)`.
    pub fn evict(&self, pod: &str) -> Evict
    where
        C: CanEvict,
    {
        self.checked::<Pod>().evict(pod)
    }
}

impl<'a, C: Reconciler, K: Resource> CheckedApi<'a, C, K> {
    /// The API of kind `K` in the object's namespace, for calls that are dropped with the
    /// reconcile.
    fn nearby(&self) -> Api<K> {
        self.cx.nearby()
    }

    /// Reads the number of replicas. Needs `can(get K/scale)`.
    ///
    /// Errors and cancel safety are those of [`Get`].
    pub fn scale(&self, name: &str) -> Get<Scale>
    where
        C: CanGetScale<K>,
    {
        self.nearby().scale(name).get()
    }

    /// Sets the number of replicas, whatever the number before. Needs `can(patch K/scale)`.
    ///
    /// Errors and cancel safety are those of [`Write`].
    pub fn scale_to(&self, name: &str, replicas: i32) -> Write<Scale>
    where
        C: CanPatchScale<K>,
    {
        let write = self.nearby().scale(name).to(replicas);
        match self.cx.log_of_call::<K>("patch", ("/scale", self.cx.near_key::<K>(name))) {
            Some(log) => write.on_response(log),
            None => write,
        }
    }

    /// Patches the status of another object. Needs `can(patch K/status)`.
    ///
    /// The status of the reconciled object is better written by [`Context::set_status`] and similar
    /// methods, which need no grant and send only differences.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](windlass_core::ErrorKind::NotFound), also for a kind whose status is
    /// no subresource, and any error of the API server.
    /// # Cancel safety
    /// Dropping the future cancels the request; the patch may have been executed.
    pub fn patch_status<'b>(&self, name: &'b str, patch: Patch) -> ApiFuture<'b, K>
    where
        C: CanPatchStatus<K>,
        'a: 'b,
    {
        let cx = self.cx;
        Box::pin(async move {
            let write = cx.nearby::<K>().patch(name, patch).status();
            let key = cx.near_key::<K>(name);
            let (patched, answer) = cx.answered(write, ("patch status", &key)).await?;
            cx.wrote(WriteEffect::Changed, &patched, &answer);
            Ok(patched)
        })
    }

    /// Replaces the status of another object by that of `object`, which carries the version that
    /// `object` was derived from. Needs `can(update K/status)`.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](windlass_core::ErrorKind::Conflict) when another client wrote since;
    /// otherwise as [`patch_status`](Self::patch_status).
    /// # Cancel safety
    /// As [`patch_status`](Self::patch_status).
    pub fn replace_status<'b>(&self, object: &'b K) -> ApiFuture<'b, K>
    where
        K: FullObject,
        C: CanUpdateStatus<K>,
        'a: 'b,
    {
        let cx = self.cx;
        Box::pin(async move {
            let write = cx.nearby::<K>().replace(object).status();
            let key = cx.key_of(object);
            let (replaced, answer) = cx.answered(write, ("update status", &key)).await?;
            cx.wrote(WriteEffect::Changed, &replaced, &answer);
            Ok(replaced)
        })
    }

    /// Deletes all objects of kind `K` in the object's namespace that match the selector of the
    /// returned call; without a selector, all. Needs `can(deletecollection K)`.
    ///
    /// For a cluster-scoped object there is no such namespace, so that the call fails unless `K`
    /// is cluster-scoped, too. Errors and cancel safety are those of [`DeleteCollection`].
    pub fn delete_collection(&self) -> DeleteCollection
    where
        C: CanDeleteCollection<K>,
    {
        let delete = self.nearby().delete_collection();
        // The selectors are not known yet: the log names the namespace.
        match self.cx.log_of_call::<K>("deletecollection", ("", self.cx.near_key::<K>("*"))) {
            Some(log) => delete.on_response(log),
            None => delete,
        }
    }
}

impl<C: Reconciler> CheckedApi<'_, C, Pod> {
    /// As [`Context::evict`].
    ///
    /// Needs `can(create Pod/eviction)`.
    pub fn evict(&self, pod: &str) -> Evict
    where
        C: CanEvict,
    {
        let evict = self.nearby().evict(pod);
        match self.cx.log_of_call::<Pod>("create", ("/eviction", self.cx.near_key::<Pod>(pod))) {
            Some(log) => evict.on_response(log),
            None => evict,
        }
    }

    /// Reads the log of a Pod. Needs `can(get Pod/log)`.
    ///
    /// Nothing is sent before [`Log::text`] or [`Log`] is awaited.
    pub fn log(&self, pod: &str) -> Log
    where
        C: CanReadLog,
    {
        self.nearby().log(pod)
    }
}

impl<C: Reconciler> CheckedApi<'_, C, ServiceAccount> {
    /// Requests a token of a service account. Needs `can(create ServiceAccount/token)`.
    ///
    /// The answer is a credential for the process that asks, and not for logs or statuses.
    pub fn token_request(&self, account: &str) -> TokenRequest
    where
        C: CanRequestToken,
    {
        self.nearby().token_request(account)
    }
}
