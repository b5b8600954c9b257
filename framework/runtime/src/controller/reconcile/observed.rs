//! The step of a controller whose reconciles a test observes: their objects, their reasons and
//! their ends.

// DESIGN.md, 266: The reconcile behind a write is the one under way when the server stores it

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::controller::outcome::action::Wait;
use crate::controller::source::TriggerNames;
use crate::controller::state::{FollowUp, SpecVersion};
use crate::controller::worker::{
    HandlerFuture, KeyHandler, ReconcileAttempt, ReconcileOutcome, ReportFuture, ReportedFailure,
};
use windlass_core::resource::{ObjectKey, ResourceInfo};

/// A reconcile that has begun.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct ObservedReconcile {
    pub controller: Arc<str>,
    pub info: ResourceInfo,
    pub key: ObjectKey,
    /// Reasons, separated by commas.
    pub reasons: String,
}

/// End of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum ReconcileEnd {
    Succeeded,
    /// A success that asks for another reconcile after this time.
    Requeued(Duration),
    /// A wait for that reason.
    Waited(String),
    Failed,
    /// Skipped: no object, a pause, or a newer version.
    Skipped,
    /// Its future was dropped: at its deadline, or at the end of a drain.
    Dropped,
}

/// A listener for the reconciles of controllers. Both methods must return quickly.
#[doc(hidden)]
pub trait ReconcileObserver: fmt::Debug + Send + Sync {
    fn began(&self, reconcile: &ObservedReconcile);
    fn ended(&self, reconcile: &ObservedReconcile, end: ReconcileEnd);
}

/// A step whose reconciles are observed.
pub(crate) struct ObservedStep {
    pub(crate) inner: Arc<dyn KeyHandler>,
    pub(crate) controller: Arc<str>,
    pub(crate) info: ResourceInfo,
    pub(crate) trigger_names: Arc<TriggerNames>,
    pub(crate) observer: Arc<dyn ReconcileObserver>,
}

/// Reports the end of a reconcile, also of one that is dropped.
struct RunningReconcile<'a> {
    observer: &'a Arc<dyn ReconcileObserver>,
    reconcile: ObservedReconcile,
    end: ReconcileEnd,
}

impl Drop for RunningReconcile<'_> {
    fn drop(&mut self) {
        // A panic is caught outside of the step, and is a failure.
        if std::thread::panicking() {
            self.end = ReconcileEnd::Failed;
        }
        self.observer.ended(&self.reconcile, self.end.clone());
    }
}

impl ReconcileEnd {
    fn of(outcome: &ReconcileOutcome) -> Self {
        match outcome {
            ReconcileOutcome::Done(action) => {
                action.requeue_after.map_or(Self::Succeeded, Self::Requeued)
            }
            ReconcileOutcome::Waiting(wait) => Self::Waited(wait.reason.clone().into_owned()),
            ReconcileOutcome::Failed(_) | ReconcileOutcome::Undecodable(_) => Self::Failed,
            _ => Self::Skipped,
        }
    }
}

impl KeyHandler for ObservedStep {
    fn run<'a>(&'a self, key: &'a ObjectKey, attempt: ReconcileAttempt) -> HandlerFuture<'a> {
        Box::pin(async move {
            let names = self.trigger_names.named_for(key, attempt.reasons);
            let reconcile = ObservedReconcile {
                controller: Arc::clone(&self.controller),
                info: self.info.clone(),
                key: key.clone(),
                reasons: names.iter().collect::<Vec<_>>().join(", "),
            };
            self.observer.began(&reconcile);
            let end = ReconcileEnd::Dropped;
            let mut running = RunningReconcile { observer: &self.observer, reconcile, end };
            let outcome = self.inner.run(key, attempt).await;
            running.end = ReconcileEnd::of(&outcome);
            outcome
        })
    }

    fn own_follow_up(&self, key: &ObjectKey) -> Option<FollowUp> {
        self.inner.own_follow_up(key)
    }

    fn finish(&self, key: &ObjectKey, how: FollowUp) {
        self.inner.finish(key, how);
    }

    fn spec_version(&self, key: &ObjectKey) -> Option<SpecVersion> {
        self.inner.spec_version(key)
    }

    fn failed<'a>(
        &'a self,
        key: &'a ObjectKey,
        reported: ReportedFailure<'a>,
        attempt: ReconcileAttempt,
    ) -> Option<ReportFuture<'a>> {
        self.inner.failed(key, reported, attempt)
    }

    fn waits<'a>(
        &'a self,
        key: &'a ObjectKey,
        wait: (&'a Wait, bool),
        attempt: ReconcileAttempt,
    ) -> Option<ReportFuture<'a>> {
        self.inner.waits(key, wait, attempt)
    }

    fn keeps_conditions(&self) -> bool {
        self.inner.keeps_conditions()
    }
}
