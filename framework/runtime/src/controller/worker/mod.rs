//! Workers: take keys from the queue, run the step for each key, and complete the key. The module
//! knows no types of objects.
//!
//! Faults inside a step stay inside: a panic, a deadline and an error differ in metrics and logs
//! only.

// DESIGN.md, 69: Workers share few cache lines beside those of the queue

mod attempt;
mod failing;
mod limits;
mod loop_guard;
mod meter;
mod namespaces;
mod pool;
mod reported_failure;
mod retries_used_up;
mod waiting;
mod yield_budget;

pub(super) use self::attempt::{AttemptCancel, ReconcileAttempt};
pub use self::limits::LoopGuard;
pub(super) use self::limits::Rate;
pub(super) use self::loop_guard::{HotKey, LoopGuardState};
pub(super) use self::meter::WorkerMeter;
pub(super) use self::pool::{ABORT_LIMIT, run_workers, warn_of_aborts};
pub(super) use self::reported_failure::{ReportedFailure, waiting};
pub use self::retries_used_up::AfterMaxRetries;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::loop_guard::ThrottleDecision;
use self::meter::ReconcileResult;
use self::namespaces::Namespaces;
use self::yield_budget::{PollCount, YieldBudget};
use crate::controller::outcome::action::Wait;
use crate::controller::source::{DebounceDecision, Reason, TriggerNames};
use crate::controller::state::{FollowUp, LastErrors, SpecVersion, Waits};
use crate::controller::{Action, Failure, RetryPolicy};
use crate::workqueue::{Work, WorkQueue};
use windlass_core::environment::Environment;
use windlass_core::panics::{caught, panic_text};
use windlass_core::resource::ObjectKey;

/// Interval at which the gauges on long work are refreshed.
const TICK: Duration = Duration::from_secs(5);
/// Longest wait before an object that was found to have ended is checked again. The check comes
/// earlier when the cache shows the end; this later check is needed if the object existed after
/// all.
const ENDED_LIMIT: Duration = Duration::from_secs(10);

/// Outcome of a step.
#[derive(Debug)]
pub(super) enum ReconcileOutcome {
    /// There is no such object: the key can be forgotten.
    Absent,
    /// Reconciled.
    Done(Action),
    /// Not reconciled yet, and nothing failed.
    Waiting(Box<Wait>),
    /// Not reconciled.
    Failed(Failure),
    /// The reconcile was dropped, because the object changed meanwhile.
    Superseded,
    /// The object does not decode. The cache logs that once; nothing else does.
    Undecodable(Failure),
    /// Skipped, because an annotation pauses the object.
    Paused,
    /// Not reconciled, because the object is gone, or being deleted: the cache is about to show
    /// that.
    Ended(Failure),
}

/// A boxed future of a step.
pub(super) type HandlerFuture<'a> = Pin<Box<dyn Future<Output = ReconcileOutcome> + Send + 'a>>;

/// A boxed wait before a step.
pub(super) type AdmittedFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A boxed report of a failure.
pub(super) type ReportFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// Handles a key; the worker's view of a controller.
pub(super) trait KeyHandler: Send + Sync + 'static {
    /// Looks the key up and reconciles the object.
    fn run<'a>(&'a self, key: &'a ObjectKey, attempt: ReconcileAttempt) -> HandlerFuture<'a>;

    /// Returns the noted follow-up of the last reconcile if the cache shows exactly the state that
    /// this finished reconcile left, and nothing newer.
    fn own_follow_up(&self, key: &ObjectKey) -> Option<FollowUp>;

    /// Notes the follow-up of a finished reconcile. Called before another worker can take the key.
    fn finish(&self, key: &ObjectKey, how: FollowUp);

    /// Returns the version of the object's spec.
    fn spec_version(&self, key: &ObjectKey) -> Option<SpecVersion>;

    /// Reports a failure; `None` when no report is wanted.
    fn failed<'a>(
        &'a self,
        key: &'a ObjectKey,
        reported: ReportedFailure<'a>,
        attempt: ReconcileAttempt,
    ) -> Option<ReportFuture<'a>>;

    /// Reports a wait, which may be the same as before; `None` when no report is wanted.
    fn waits<'a>(
        &'a self,
        key: &'a ObjectKey,
        wait: (&'a Wait, bool),
        attempt: ReconcileAttempt,
    ) -> Option<ReportFuture<'a>>;

    /// Returns a wait before the key is handled; `None`, the default, handles it at once.
    fn admitted(&self, key: &ObjectKey) -> Option<AdmittedFuture> {
        let _ = key;
        None
    }

    /// Whether conditions are kept that show each failure.
    fn keeps_conditions(&self) -> bool {
        false
    }

    /// Returns a copy for a single worker whose `Arc`s are not shared with other workers, so that
    /// reference counts do not contend. `None` if sharing is fine.
    fn for_one_worker(&self) -> Option<Arc<dyn KeyHandler>> {
        None
    }
}

/// State that all workers of a controller share.
#[derive(Clone)]
pub(super) struct Worker {
    pub(super) controller: Arc<str>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) step: Arc<dyn KeyHandler>,
    pub(super) timeout: Duration,
    pub(super) retry: RetryPolicy,
    pub(super) after_max_retries: AfterMaxRetries,
    pub(super) environment: Environment,
    pub(super) meter: WorkerMeter,
    pub(super) loop_guard: Arc<LoopGuardState>,
    pub(super) last_errors: Arc<LastErrors>,
    pub(super) waits: Arc<Waits>,
    pub(super) trigger_names: Arc<TriggerNames>,
    pub(super) stop: Arc<CancellationToken>,
    pub(super) namespaces: Arc<Namespaces>,
}

/// End of a guarded step.
enum GuardedOutcome {
    Outcome(ReconcileOutcome),
    Panicked(String),
    TimedOut,
}

impl Worker {
    /// Returns another worker, with its own copies of the data that every attempt touches.
    pub(super) fn for_another_task(&self) -> Self {
        let step = self.step.for_one_worker().unwrap_or_else(|| Arc::clone(&self.step));
        // Checking a token takes the token's lock: each worker has a child token, so that workers
        // do not contend for the parent's lock.
        let stop = Arc::new(self.stop.child_token());
        Self { step, stop, meter: self.meter.for_one_worker(), ..self.clone() }
    }

    /// Works until the controller stops; a running step is finished first.
    pub(super) async fn run(self) {
        let polls = PollCount::default();
        polls.count(self.work(&polls)).await;
    }

    /// Takes and reconciles keys until the controller stops.
    async fn work(&self, polls: &PollCount) {
        let ids = self.environment.rng.next_u64();
        let mut attempts = 0_u64;
        let mut next = self.next().await;
        let mut budget = YieldBudget::new(polls, self.environment.clock.now());
        while let Some(work) = next {
            let reasons =
                match self.trigger_names.debounced(work.key(), work.reasons(), work.taken_at()) {
                    DebounceDecision::Ready(reasons) => reasons,
                    // The burst is not over: the queue holds the key until the quiet time ends.
                    DebounceDecision::Wait(delay) => {
                        work.hold(delay);
                        let now = self.environment.clock.now();
                        next = self.next_after(None, budget.may_continue(now), now).await;
                        continue;
                    }
                };
            attempts += 1;
            self.trigger_names.take_causes(work.key(), reasons);
            let span = tracing::info_span!(
                "reconcile",
                controller = %self.controller,
                namespace = work.key().namespace().unwrap_or_default(),
                name = work.key().name(),
                reconcile_id = format_args!("{:016x}", reconcile_id(ids, attempts)),
                reasons = %self.trigger_names.named_for(work.key(), reasons),
            );
            let (finished, now) = self.attempt(work, reasons).instrument(span).await;
            next = self.next_after(finished, budget.may_continue(now), now).await;
        }
    }

    /// Returns the next key after an attempt that ended at `now`. `finished` is work whose
    /// completion is still to be given: one pass through the queue's lock is enough for the
    /// completion and the next key.
    async fn next_after(
        &self,
        finished: Option<Work<ObjectKey>>,
        may_continue: bool,
        now: Instant,
    ) -> Option<Work<ObjectKey>> {
        if !may_continue {
            // Completed before yielding: the worker holds no key while other tasks run.
            drop(finished);
            yield_now().await;
            return self.next().await;
        }
        // After a stop `next` returns `None`, so the work is completed by its drop.
        let finished = finished.filter(|_| !self.stop.is_cancelled());
        let Some(work) = finished else { return self.next().await };
        match work.finish_then_next(now) {
            Some(work) => Some(work),
            None => self.wait().await,
        }
    }

    /// Returns the next key; `None` when the controller stops.
    async fn next(&self) -> Option<Work<ObjectKey>> {
        if self.stop.is_cancelled() {
            return None;
        }
        // Fast path without registering a waiter.
        if let Some(work) = self.queue.try_get() {
            return Some(work);
        }
        self.wait().await
    }

    /// Waits for the next key; `None` when the controller stops.
    async fn wait(&self) -> Option<Work<ObjectKey>> {
        // Stop comes first: a stopping worker must not take another key.
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            work = self.queue.get() => work,
        }
    }

    /// Runs an attempt at a key. Returns the time, and the work if the completion is still to be
    /// given.
    async fn attempt(
        &self,
        work: Work<ObjectKey>,
        mut reasons: u64,
    ) -> (Option<Work<ObjectKey>>, Instant) {
        let started = work.taken_at();
        if let Some((again_in, has_failed)) = self.own_follow_up(reasons, work.key(), started) {
            // The watch delivered an own write before the write was answered: nothing is left to
            // reconcile.
            let finished = match again_in {
                Some(delay) if has_failed => {
                    work.retry_after(delay);
                    None
                }
                _ => Some(work.with_success(again_in)),
            };
            return (finished, self.environment.clock.now());
        }
        let is_timed = self.trigger_names.is_timed(reasons);
        let spec_version = || self.step.spec_version(work.key());
        match self.loop_guard.admit(work.key(), started, (&mut reasons, is_timed), spec_version) {
            ThrottleDecision::Go => {}
            ThrottleDecision::GoAndWarn => {
                self.meter.throttled();
                tracing::warn!(
                    limit = %self.loop_guard.guard(),
                    "the object is reconciled too often without a change of its spec; its reconciles \
                     are slowed down: does each reconcile write something that differs from the last time?"
                );
            }
            ThrottleDecision::Wait(delay) => {
                work.with_reasons(reasons).hold(delay);
                return (None, self.environment.clock.now());
            }
        }
        // The reasons of a burst are known here only; an attempt that is dropped must return them
        // to the queue.
        let work = work.with_reasons(reasons).hold_on_drop();
        let started = match self.step.admitted(work.key()) {
            None => started,
            Some(admitted) => {
                admitted.await;
                self.environment.clock.now()
            }
        };
        let busy = self.meter.busy();
        let attempt = self.new_attempt(&work, reasons);
        let cancel = attempt.cancel.clone();
        let end = self.run_guarded(work.key(), attempt, started).await;
        let now = self.environment.clock.now();
        let took = now.saturating_duration_since(started);
        self.meter.count_finished();
        let (ended, finished) = match end {
            GuardedOutcome::Outcome(ReconcileOutcome::Failed(failure)) => {
                (self.fail(work, &cancel, (failure, ReconcileResult::Error)).await, None)
            }
            GuardedOutcome::Outcome(ReconcileOutcome::Waiting(wait)) => {
                let (how, work) = self.wait_with(work, &cancel, &wait).await;
                (how, Some(work))
            }
            GuardedOutcome::Panicked(text) => {
                let failure = Failure::from(format!("the reconciler panicked: {text}"));
                (self.fail(work, &cancel, (failure, ReconcileResult::Panic)).await, None)
            }
            GuardedOutcome::TimedOut => {
                let limit = self.timeout;
                let failure = Failure::from(format!("the reconcile hit its deadline of {limit:?}"));
                (self.fail(work, &cancel, (failure, ReconcileResult::Timeout)).await, None)
            }
            GuardedOutcome::Outcome(outcome) => self.conclude(work, outcome),
        };
        drop(busy);
        self.meter.ended(ended, took);
        (finished, now)
    }

    /// Returns the remaining delay of the last reconcile's requeue, and whether that reconcile
    /// failed, if the only reason for this attempt is a write of that reconcile.
    fn own_follow_up(
        &self,
        reasons: u64,
        key: &ObjectKey,
        now: Instant,
    ) -> Option<(Option<Duration>, bool)> {
        // Pending retries and requeues add their reasons to every attempt before their time.
        let changed = Reason::CHANGED.bit();
        let later = Reason::REQUEUE.bit() | Reason::RETRY.bit();
        if reasons & changed == 0 || reasons & !(changed | later) != 0 {
            return None;
        }
        let FollowUp { again, has_failed } = self.step.own_follow_up(key)?;
        let again_in = again.map(|again| again.saturating_duration_since(now));
        // A requeue that is due is a separate reason.
        again_in.is_none_or(|delay| !delay.is_zero()).then_some((again_in, has_failed))
    }

    /// Creates the next attempt at a claimed key.
    fn new_attempt(&self, work: &Work<ObjectKey>, reasons: u64) -> ReconcileAttempt {
        // An object that was given up and changed since is tried for the first time again.
        let is_anew = work.failures() > 0
            && self.last_errors.given_up(work.key()).is_some()
            && self.trigger_names.includes_change(reasons);
        let number = if is_anew { 0 } else { work.failures() };
        ReconcileAttempt { number, reasons, cancel: AttemptCancel::new(&self.stop) }
    }

    /// Runs the step to the end, a panic or the deadline, whichever comes first.
    async fn run_guarded(
        &self,
        key: &ObjectKey,
        attempt: ReconcileAttempt,
        started: Instant,
    ) -> GuardedOutcome {
        let ending = attempt.cancel.end_guard();
        let step = match catch_unwind(AssertUnwindSafe(|| self.step.run(key, attempt))) {
            Ok(step) => step,
            Err(panic) => return GuardedOutcome::Panicked(panic_text(&*panic)),
        };
        let mut step = pin!(caught(step));
        // Rebound after `step`, so that this binding is dropped before `step`: the token is
        // cancelled and the write gate closed while the step's future still exists.
        let ending = ending;
        // `Duration::MAX` means no deadline, and overflows an `Instant`.
        let deadline = started.checked_add(self.timeout);
        let deadline = deadline.unwrap_or_else(|| self.environment.clock.after(self.timeout));
        let mut tick = started;
        while tick < deadline {
            tick = (tick + TICK).min(deadline);
            // The step is polled first: a step that is ready at the deadline has not failed.
            tokio::select! {
                biased;
                end = step.as_mut() => {
                    if !matches!(end, Ok(ReconcileOutcome::Superseded)) {
                        ending.finished();
                    }
                    return match end {
                        Ok(outcome) => GuardedOutcome::Outcome(outcome),
                        Err(panic) => GuardedOutcome::Panicked(panic_text(&*panic)),
                    };
                }
                // Polled, and so armed, only when the step is pending.
                () = self.environment.clock.sleep_until(tick) => self.queue.observe(),
            }
        }
        GuardedOutcome::TimedOut
    }

    /// Logs an outcome that is no failure, and chooses the completion, which is given with the next
    /// key.
    fn conclude(
        &self,
        work: Work<ObjectKey>,
        outcome: ReconcileOutcome,
    ) -> (ReconcileResult, Option<Work<ObjectKey>>) {
        self.namespaces.ended(work.key());
        if !matches!(outcome, ReconcileOutcome::Superseded) {
            self.waits_no_more(work.key());
        }
        let (ended, again_in) = match outcome {
            ReconcileOutcome::Absent => {
                self.loop_guard.forget(work.key());
                self.last_errors.forget(work.key());
                return (ReconcileResult::Success, Some(work.with_gone()));
            }
            ReconcileOutcome::Paused => {
                tracing::debug!("the object is paused and was not reconciled");
                (ReconcileResult::Success, None)
            }
            ReconcileOutcome::Done(action) => {
                self.last_errors.succeeded(work.key());
                match action.requeue_after {
                    None => {
                        tracing::debug!("reconciled");
                        (ReconcileResult::Success, None)
                    }
                    Some(delay) => {
                        tracing::debug!(again_in = ?delay, "reconciled");
                        (ReconcileResult::RequeueAfter, Some(delay))
                    }
                }
            }
            ReconcileOutcome::Ended(failure) => {
                tracing::debug!(
                    why = %failure,
                    "the object no longer exists and was not reconciled"
                );
                (ReconcileResult::Success, Some(ENDED_LIMIT))
            }
            ReconcileOutcome::Superseded => {
                // Neither success nor failure: the key is due again at once, and the backoff is
                // unchanged.
                work.hold(Duration::ZERO);
                tracing::debug!("the attempt was dropped because the object changed");
                return (ReconcileResult::Superseded, None);
            }
            ReconcileOutcome::Failed(failure) | ReconcileOutcome::Undecodable(failure) => {
                tracing::debug!(error = %failure, "the object was not reconciled");
                (ReconcileResult::Terminal, None)
            }
            // Handled by `wait_with`, which reports the wait.
            ReconcileOutcome::Waiting(wait) => (ReconcileResult::RequeueAfter, wait.check_after),
        };
        (ended, Some(work.with_success(again_in)))
    }
}

/// Makes a reconcile's id for logs: the numbers of a worker follow from a seed, and look random.
fn reconcile_id(seed: u64, attempt: u64) -> u64 {
    let mixed = (seed ^ attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests;
