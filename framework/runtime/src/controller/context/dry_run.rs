//! A reconcile whose writes are dry runs: the answers are visible to this reconcile only, and
//! remembered nowhere.
//!
//! The memory of writes (applied children, expectations, versions of own writes) is compared with
//! changes that the watch delivers. Nothing is stored by a dry run, so an entry would wait for
//! ever, or hide that a write is still due.

// DESIGN.md, 165: A plan is the real reconcile over a client that only makes dry runs

use parking_lot::Mutex;

use super::Context;
use crate::controller::Reconciler;
use windlass_cache::informer::Informer;
use windlass_core::resource::{ObjectKey, Resource};

/// Withdraws the answers of dry runs from the caches, when the reconcile ends or is dropped.
#[derive(Default)]
pub(super) struct DryRunViews {
    /// Boxed: most reconciles have no withdrawals, and their futures are allocated each time.
    /// Locked to add a withdrawal.
    withdrawals: Mutex<Option<Box<Withdrawals>>>,
}

/// A function for each answer that a cache shows.
type Withdrawals = Vec<Box<dyn FnOnce() + Send>>;

impl DryRunViews {
    /// Withdraws the state of `key` from `cache` at the end.
    fn add<K: Resource>(&self, cache: Informer<K>, key: ObjectKey) {
        let withdraw: Box<dyn FnOnce() + Send> = Box::new(move || cache.withdraw(&key));
        self.withdrawals.lock().get_or_insert_default().push(withdraw);
    }
}

impl Drop for DryRunViews {
    fn drop(&mut self) {
        for withdraw in self.withdrawals.get_mut().take().into_iter().flat_map(|all| *all) {
            withdraw();
        }
    }
}

/// Notes the call of another system in the plan of this reconcile, if the writes are dry runs.
/// Returns true if the call must not be made; otherwise nothing is noted.
///
/// `call` is a sentence without a point: `create the schema "shop"`. A plan lists the call below
/// the object, a shadow counts the call as a difference. So ask only when the call is due, with the
/// same text each time. The first 10,000 calls of a reconcile are listed, further calls are
/// counted.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::controller::{Context, Reconciler, note_external_call};
/// # use windlass::controller::{Action, Result};
/// # use windlass::prelude::*;
/// # struct Records;
/// # impl Records { async fn create_record(&self, _: &str) -> Result<()> { Ok(()) } }
/// # impl Reconciler for Records {
/// #     type Object = ConfigMap;
/// # async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
/// if !note_external_call(cx, format!("create the record {:?}", map.name())) {
///     self.create_record(map.name()).await?;
/// }
/// # Ok(Action::done())
/// # }
/// # }
/// ```
pub fn note_external_call<C: Reconciler>(cx: &Context<C>, call: impl Into<String>) -> bool {
    if let Some(record) = &cx.shared.dry_runs {
        record.note_call(call.into());
    }
    cx.is_dry_run()
}

impl<C: Reconciler> Context<C> {
    /// Whether the writes of this reconcile are dry runs.
    pub(super) fn is_dry_run(&self) -> bool {
        self.shared.client.is_dry_run()
    }

    /// Puts the answer to a dry run into the caches until the end of this reconcile.
    pub(super) fn show_dry_run<K: Resource>(&self, answer: &[u8]) {
        for cache in self.shared.informers.all_caches_of::<K>() {
            match cache.wrote_in_dry_run(answer) {
                Ok(Some(key)) => self.dry_runs.add(cache, key),
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "the answer to a dry run is not shown"),
            }
        }
    }

    /// Hides an object that a dry run deleted until the end of this reconcile.
    pub(super) fn hide_in_dry_run<K: Resource>(&self, key: &ObjectKey, uid: &str) {
        for cache in self.shared.informers.all_caches_of::<K>() {
            if cache.covers(key.namespace()) {
                cache.deleted_in_dry_run(key, uid);
                self.dry_runs.add(cache, key.clone());
            }
        }
    }
}
