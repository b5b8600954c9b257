//! The context of an object's task.
//!
//! The context outlives the reconcile that started the task, and has no grants of its own: the
//! context borrows nothing from a reconcile. Versions arrive through a watch channel, which keeps
//! the newest only.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::ControllerShared;
use crate::controller::Reconciler;
use crate::controller::source::Reason;
use crate::events::EventKind;
use windlass_cache::store::{Cached, Invalid};
use windlass_client::client::Client;
use windlass_core::clock::Clock;
use windlass_core::resource::{ObjectKey, ObjectRef};
use windlass_core::rng::Rng;

/// Context of an object's task: the object, the cancellation, events, the client.
///
/// Given to [`ObjectTask::run`](crate::controller::ObjectTask::run), which has an example.
pub struct TaskContext<C: Reconciler> {
    /// State of the run.
    shared: Arc<ControllerShared>,
    /// The version that was reconciled last.
    latest: watch::Receiver<Cached<C::Object>>,
    /// The object's key.
    key: ObjectKey,
    /// Cancelled when the task should end.
    stop: CancellationToken,
}

impl<C: Reconciler> fmt::Debug for TaskContext<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskContext")
            .field("controller", &self.shared.controller)
            .field("object", &self.key)
            .finish_non_exhaustive()
    }
}

impl<C: Reconciler> TaskContext<C> {
    /// Creates the context of a task that `stop` ends; `latest` holds the reconciled version.
    pub(in crate::controller) fn new(
        shared: Arc<ControllerShared>,
        latest: watch::Receiver<Cached<C::Object>>,
        key: ObjectKey,
        stop: CancellationToken,
    ) -> Self {
        Self { shared, latest, key, stop }
    }

    /// Returns the context for the next start, for which the current version is no change.
    pub(in crate::controller) fn another(&self) -> Self {
        let mut latest = self.latest.clone();
        latest.mark_unchanged();
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.clone());
        Self { shared, latest, key: self.key.clone(), stop }
    }

    /// The object's key.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Returns the version that was reconciled last.
    ///
    /// The version at the time of the call: two calls may return two versions.
    ///
    /// # Errors
    /// [`Invalid`] when the object does not decode.
    pub fn object(&self) -> std::result::Result<Arc<C::Object>, Invalid> {
        self.latest.borrow().get()
    }

    /// Waits for a version that this method did not report before; several versions at once are
    /// reported once. False when the task should end: `while task.changed().await { … }`.
    ///
    /// The version at the start of the task counts as reported.
    ///
    /// # Cancel safety
    /// Safe: no version is missed by a drop.
    pub async fn changed(&mut self) -> bool {
        // Stop comes first, so that a busy object cannot delay the end of the object's task.
        tokio::select! {
            biased;
            () = self.stop.cancelled() => false,
            changed = self.latest.changed() => changed.is_ok(),
        }
    }

    /// Waits until the task should end.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn cancelled(&self) {
        self.stop.cancelled().await;
    }

    /// Cancelled when the task should end.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.stop
    }

    /// Enqueues the object.
    ///
    /// For a task that has found a difference: the reconcile, which has the grants, repairs the
    /// difference.
    pub fn requeue(&self) {
        self.shared.queue.add_with(self.key.clone(), Reason::ASKED.add_options());
    }

    /// Reports an Event about the object; as [`Context::event`](crate::controller::Context::event).
    pub fn event(&self, kind: EventKind, reason: &str, note: impl fmt::Display) {
        let uid = Some(self.latest.borrow().metadata().uid().to_owned());
        let object = ObjectRef { info: self.shared.info.clone(), key: self.key.clone(), uid };
        self.shared.recorder.event(&object, kind, reason, note);
    }

    /// The controller's client, gated by leadership. No grant is checked at compile time: uses of
    /// the client have to be listed in `can(…)` to be in the manifest.
    ///
    /// Writes are refused once the lease is lost, also when the task has not ended yet.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// The clock of the operator.
    pub fn clock(&self) -> &Clock {
        &self.shared.environment.clock
    }

    /// The source of randomness of the operator.
    pub fn rng(&self) -> &Rng {
        &self.shared.environment.rng
    }
}
