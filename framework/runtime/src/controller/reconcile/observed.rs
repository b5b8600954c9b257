//! The step of a controller whose reconciles are observed, by a test or by a recording: their
//! objects, their reasons, their requests and their ends.

// DESIGN.md, 266: The reconcile behind a write is the one under way when the server stores it
// DESIGN.md, 279: A replay decides when each reconcile begins

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::controller::outcome::action::Wait;
use crate::controller::source::TriggerNames;
use crate::controller::state::{FollowUp, SpecVersion};
use crate::controller::worker::{
    HandlerFuture, KeyHandler, ReconcileAttempt, ReconcileOutcome, ReportFuture, ReportedFailure,
};
use windlass_core::resource::{ObjectKey, ResourceInfo};

/// The number of the next reconcile of this process.
static NEXT: AtomicU64 = AtomicU64::new(1);

tokio::task_local! {
    /// Number of the reconcile that the task is in.
    static CURRENT: u64;
}

/// Returns the number of the observed reconcile that the calling task is in, or reports the end of.
#[doc(hidden)]
pub fn current_reconcile() -> Option<u64> {
    CURRENT.try_with(|number| *number).ok().filter(|number| *number != 0)
}

/// A reconcile that has begun.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct ObservedReconcile {
    /// Number of the reconcile in this process.
    pub number: u64,
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

/// A boxed wait before a reconcile.
#[doc(hidden)]
pub type AdmissionFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A listener for the reconciles of controllers. All methods must return quickly.
#[doc(hidden)]
pub trait ReconcileObserver: fmt::Debug + Send + Sync {
    /// Returns a wait before a reconcile that is due: until then nothing is read for it, and its
    /// time does not count. Default: none.
    fn admitted(&self, controller: &str, key: &ObjectKey) -> Option<AdmissionFuture> {
        let _ = (controller, key);
        None
    }

    fn began(&self, reconcile: &ObservedReconcile);
    fn ended(&self, reconcile: &ObservedReconcile, end: ReconcileEnd);
}

/// A step whose reconciles are observed.
pub(crate) struct ObservedStep {
    pub(crate) inner: Arc<dyn KeyHandler>,
    pub(crate) controller: Arc<str>,
    pub(crate) info: ResourceInfo,
    pub(crate) trigger_names: Arc<TriggerNames>,
    pub(crate) observers: Vec<Arc<dyn ReconcileObserver>>,
}

/// Reports the end of a reconcile, also of one that is dropped.
struct RunningReconcile<'a> {
    observers: &'a [Arc<dyn ReconcileObserver>],
    reconcile: ObservedReconcile,
    end: ReconcileEnd,
}

impl Drop for RunningReconcile<'_> {
    fn drop(&mut self) {
        // A panic is caught outside of the step, and is a failure.
        if std::thread::panicking() {
            self.end = ReconcileEnd::Failed;
        }
        for observer in self.observers {
            observer.ended(&self.reconcile, self.end.clone());
        }
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
            // Relaxed: the number need only be unique.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            attempt.cancel.observe(number);
            let reconcile = ObservedReconcile {
                number,
                controller: Arc::clone(&self.controller),
                info: self.info.clone(),
                key: key.clone(),
                reasons: names.iter().collect::<Vec<_>>().join(", "),
            };
            self.observers.iter().for_each(|observer| observer.began(&reconcile));
            let end = ReconcileEnd::Dropped;
            let mut running = RunningReconcile { observers: &self.observers, reconcile, end };
            let outcome = CURRENT.scope(number, self.inner.run(key, attempt)).await;
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
        let number = attempt.cancel.observed();
        let report = self.inner.failed(key, reported, attempt)?;
        Some(Box::pin(CURRENT.scope(number, report)))
    }

    fn waits<'a>(
        &'a self,
        key: &'a ObjectKey,
        wait: (&'a Wait, bool),
        attempt: ReconcileAttempt,
    ) -> Option<ReportFuture<'a>> {
        let number = attempt.cancel.observed();
        let report = self.inner.waits(key, wait, attempt)?;
        Some(Box::pin(CURRENT.scope(number, report)))
    }

    fn admitted(&self, key: &ObjectKey) -> Option<AdmissionFuture> {
        self.observers.iter().find_map(|observer| observer.admitted(&self.controller, key))
    }

    fn keeps_conditions(&self) -> bool {
        self.inner.keeps_conditions()
    }
}
