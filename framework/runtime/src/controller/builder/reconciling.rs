//! Settings of a builder that concern each reconcile: reports, conditions, limits, tasks.

use std::time::Duration;

use super::ControllerBuilder;
use crate::controller::reconcile::{boxed_report, boxed_task};
use crate::controller::worker::{LoopGuard, Rate};
use crate::controller::{AfterMaxRetries, ObjectTask, OnFailure, Reconciler};

impl<C: Reconciler> ControllerBuilder<C> {
    /// Sets the action for an object whose retries are used up, as limited by
    /// [`RetryPolicy::at_most`](crate::workqueue::RetryPolicy::at_most). Default:
    /// [`AfterMaxRetries::Rest`]. Has no effect with endless retries.
    pub fn after_max_retries(mut self, then: AfterMaxRetries) -> Self {
        self.options.then = then;
        self
    }

    /// Calls [`OnFailure::failed`] when a reconcile failed: at the first failure in a row, when the
    /// error text changes, and when the object is given up.
    pub fn report_failures(mut self) -> Self
    where
        C: OnFailure,
    {
        self.options.report = Some(boxed_report::<C>);
        self
    }

    /// As [`report_failures`](Self::report_failures), but at every failure, also when the error
    /// text is unchanged.
    pub fn report_every_failure(mut self) -> Self
    where
        C: OnFailure,
    {
        self.options.reports_every_failure = true;
        self.report_failures()
    }

    /// Maintains a condition of type `type_` (`Ready`, `Reconciled`) in each object's status. After
    /// a failure the condition is false, its message is the error, and its reason is
    /// `ReconcileFailed`, `ReconcileGaveUp` or `TerminalError`; after a success it is true with the
    /// reason `Reconciled`. A condition of this type that the reconciler itself sets at a success
    /// is left alone. Written when it changes; retries of the same failure write nothing.
    ///
    /// The kind's status needs `conditions` ([`Conditions`](windlass_core::conditions::Conditions)). For a
    /// kind that is cached as a projection, the status is read before each such comparison.
    pub fn outcome_condition(mut self, type_: impl Into<String>) -> Self {
        self.options.outcome = Some(type_.into());
        self
    }

    /// Drops a running reconcile when it is [superseded](crate::controller::Context::superseded),
    /// and starts it again at once for the new state. After five drops in a row one reconcile runs
    /// to its end, so that an object which keeps changing is reconciled, too. A clean-up is never
    /// dropped.
    ///
    /// The reconciler's future is dropped at an `await`: the reconciler must tolerate that as it
    /// must tolerate a crash there.
    pub fn cancel_superseded(mut self) -> Self {
        self.options.drops_superseded = true;
        self
    }

    /// Keeps each object's state at its last reconcile, so that
    /// [`Context::changes`](crate::controller::Context::changes) can return the difference. At most
    /// 64 MiB of such states, in JSON; the state that was reconciled longest ago is evicted first.
    pub fn track_changes(self) -> Self {
        self.track_changes_within(64 << 20)
    }

    /// As [`track_changes`](Self::track_changes), with at most `bytes` bytes.
    pub fn track_changes_within(mut self, bytes: usize) -> Self {
        self.options.tracked_bytes = bytes;
        self
    }

    /// Sets the limit beyond which an object counts as reconciled endlessly and is slowed down.
    /// Default: 50 reconciles within a minute without a change of its spec are free, then one a
    /// second.
    pub fn loop_guard(mut self, guard: LoopGuard) -> Self {
        self.options.guard = guard;
        self
    }

    /// Reconciles an object at most `most` times (at least once) within each `within` (at least 1
    /// s), whatever the cause: changes, retries, requeues, clean-ups. The interval begins with the
    /// first reconcile; all further causes wait for its end and lead to one reconcile then.
    /// Default: no limit.
    pub fn rate_limit(mut self, most: u32, within: Duration) -> Self {
        self.options.rate = Some(Rate::new(most, within));
        self
    }

    /// Runs [`ObjectTask::run`] beside each object, from its first successful reconcile until its
    /// deletion.
    pub fn task_per_object(mut self) -> Self
    where
        C: ObjectTask,
    {
        self.options.task = Some(boxed_task::<C>);
        self
    }
}
