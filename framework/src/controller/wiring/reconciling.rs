//! Settings of a wiring about what happens around each reconcile.

use std::time::Duration;

use super::Wiring;
use crate::controller::attend::{self, MakeTask};
use crate::controller::limits::{LoopGuard, Rate};
use crate::controller::report::{self, Report};
use crate::controller::{Attend, OnFailure, Reconciler, Then};

/// What happens around each reconcile.
pub(in crate::controller) struct Around<C: Reconciler> {
    pub(in crate::controller) then: Then,
    pub(in crate::controller) report: Option<Report<C>>,
    pub(in crate::controller) reports_every_failure: bool,
    /// Type of the condition that tells how the last reconcile went.
    pub(in crate::controller) outcome: Option<String>,
    pub(in crate::controller) drops_superseded: bool,
    /// Bytes for objects as they were last reconciled; 0 keeps none.
    pub(in crate::controller) tracked_bytes: usize,
    pub(in crate::controller) task: Option<MakeTask<C>>,
    pub(in crate::controller) guard: LoopGuard,
    pub(in crate::controller) rate: Option<Rate>,
}

impl<C: Reconciler> Default for Around<C> {
    fn default() -> Self {
        Self {
            then: Then::Rest,
            report: None,
            reports_every_failure: false,
            outcome: None,
            drops_superseded: false,
            tracked_bytes: 0,
            task: None,
            guard: LoopGuard::default(),
            rate: None,
        }
    }
}

impl<C: Reconciler> Wiring<C> {
    /// What happens to an object when the retries of
    /// [`RetryPolicy::at_most`](crate::workqueue::RetryPolicy::at_most) are used up. Default:
    /// [`Then::Rest`]. Of no meaning with endless retries.
    pub fn when_given_up(mut self, then: Then) -> Self {
        self.around.then = then;
        self
    }

    /// Calls [`OnFailure::failed`] when a reconcile failed: at the first failure in a row, when the
    /// text changes, and when the object is given up.
    pub fn report_failures(mut self) -> Self
    where
        C: OnFailure,
    {
        self.around.report = Some(report::boxed::<C>);
        self
    }

    /// As [`report_failures`](Self::report_failures), but at every failure, also when it says the
    /// same again.
    pub fn report_every_failure(mut self) -> Self
    where
        C: OnFailure,
    {
        self.around.reports_every_failure = true;
        self.report_failures()
    }

    /// Keeps a condition of type `type_` (`Ready`, `Reconciled`) in each object's status: false with
    /// what failed as its message and `ReconcileFailed`, `ReconcileGaveUp` or `TerminalError` as its
    /// reason; true with the reason `Reconciled` after a success. What the reconciler itself says in
    /// this condition at a success is left as it is. Written when it changes; the retries of one and
    /// the same failure write nothing.
    ///
    /// The kind's status needs `conditions` ([`Conditions`](crate::conditions::Conditions)). Of a
    /// kind that is cached as a projection the status is read before each such look.
    pub fn outcome_condition(mut self, type_: impl Into<String>) -> Self {
        self.around.outcome = Some(type_.into());
        self
    }

    /// Drops a running reconcile when it is [superseded](crate::controller::Context::superseded), and
    /// starts it again at once for the new state. After five in a row one runs to its end, so that an
    /// object which keeps changing is reconciled, too. A clean-up is never dropped.
    ///
    /// The reconciler's future is dropped where it waits: what it does must bear that, as it must
    /// bear a crash there.
    pub fn cancel_superseded(mut self) -> Self {
        self.around.drops_superseded = true;
        self
    }

    /// Keeps each object as it was last reconciled, so that
    /// [`Context::changes`](crate::controller::Context::changes) can tell what changed since. At most
    /// 64 MiB of them, in JSON; the one that was reconciled longest ago makes room.
    pub fn track_changes(self) -> Self {
        self.track_changes_within(64 << 20)
    }

    /// As [`track_changes`](Self::track_changes), with at most so many bytes.
    pub fn track_changes_within(mut self, bytes: usize) -> Self {
        self.around.tracked_bytes = bytes;
        self
    }

    /// When an object is taken for one that is reconciled without end, and slowed down. Default:
    /// 50 reconciles within a minute without a change of its spec are free, then once a second.
    pub fn loop_guard(mut self, guard: LoopGuard) -> Self {
        self.around.guard = guard;
        self
    }

    /// Reconciles an object at most `most` times (at least once) within each `within` (at least 1 s),
    /// whatever wants it: changes, retries, requeues, clean-ups. The time begins with the first of
    /// them; what comes beyond waits for its end, and is one reconcile then. Default: no limit.
    pub fn rate_limit(mut self, most: u32, within: Duration) -> Self {
        self.around.rate = Some(Rate::new(most, within));
        self
    }

    /// Runs [`Attend::attend`] beside each object, from its first successful reconcile until it is
    /// deleted.
    pub fn task_per_object(mut self) -> Self
    where
        C: Attend,
    {
        self.around.task = Some(attend::boxed::<C>);
        self
    }
}
