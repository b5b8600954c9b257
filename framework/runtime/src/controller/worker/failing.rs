//! Handling of a failed reconcile: report, retry, give-up.

// DESIGN.md, 49: Failure reports are sent on change only

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::attempt::{AttemptCancel, ReconcileAttempt};
use super::meter::ReconcileResult;
use super::reported_failure::ReportedFailure;
use super::{ReportFuture, Worker};
use crate::controller::Failure;
use crate::controller::outcome::failure::Retry;
use crate::controller::state::{FailureRecord, FollowUp};
use crate::workqueue::Work;
use windlass_core::panics::{caught, panic_text};
use windlass_core::resource::ObjectKey;

/// Longest time for reporting a failure.
const REPORT_LIMIT: Duration = Duration::from_secs(10);
/// Delay of a further attempt at an object whose last failure could not be shown in the conditions.
const REPORT_AGAIN: Duration = Duration::from_secs(30);
/// Most reconciles of an object in a row that may lose a race with another writer; the next lost
/// race counts as an ordinary failure.
const MAX_LOST_RACES: u64 = 5;
/// Longest wait after a lost race. The object is reconciled earlier when the cache shows the
/// winner's write.
const LOST_RACE_DELAY: Duration = Duration::from_secs(1);
/// Tolerance for retries: a retry that comes at most this much before the promised time is on time,
/// because the queue and the promise do not read the clock at the same moment.
const RETRY_TOLERANCE: Duration = Duration::from_millis(1);

/// Schedule of the next attempt after a failure.
enum NextAttempt {
    /// Not before a change.
    Never,
    After(Duration),
    /// By the backoff; as after a first failure, when retries had been given up and the object
    /// changed since.
    Backoff {
        delay: Duration,
        draw: f64,
        is_restart: bool,
    },
    /// At the time that the backoff had promised: a change led to an earlier reconcile, which must
    /// not lengthen the wait.
    AsPromised(Duration),
    /// As soon as the cache shows the write that won the race.
    LostRace,
    /// Retries are used up; the next attempt comes after this time, if at all.
    GiveUp(Option<Duration>),
}

impl Worker {
    /// Reports a failure, and completes the work.
    pub(super) async fn fail(
        &self,
        work: Work<ObjectKey>,
        cancel: &AttemptCancel,
        (mut failure, how): (Failure, ReconcileResult),
    ) -> ReconcileResult {
        self.namespaces.failed(work.key(), &failure);
        self.waits.failed(work.key());
        let is_restart = self.is_restart(work.key(), work.reasons());
        let record =
            self.last_errors.note(work.key(), failure.to_string(), self.environment.clock.wall());
        let failures = if is_restart { 1 } else { work.failures().saturating_add(1) };
        let mut next = self.next_attempt(&failure, (failures, is_restart), (&work, record));
        failure.gave_up = matches!(next, NextAttempt::GiveUp(_));
        let gave_up_now = failure.gave_up && !record.had_given_up;
        if failure.gave_up || matches!(next, NextAttempt::Never) {
            let is_for_good = matches!(next, NextAttempt::Never);
            self.last_errors.gave_up(work.key(), self.step.spec_version(work.key()), is_for_good);
        }
        // A lost race is part of ordinary work, and is not reported.
        if !matches!(next, NextAttempt::LostRace) {
            let is_new = record.is_new || gave_up_now;
            let reported =
                ReportedFailure { failure: &failure, failures, is_new, gave_up: gave_up_now };
            let report = |attempt| self.step.failed(work.key(), reported, attempt);
            let is_shown = self.report(&work, cancel, report).await;
            // No later attempt would show a failure that is not retried.
            let is_last = matches!(next, NextAttempt::Never | NextAttempt::GiveUp(None));
            if !is_shown && is_last && self.step.keeps_conditions() {
                next = NextAttempt::After(REPORT_AGAIN);
            }
        }
        if gave_up_now {
            self.meter.gave_up();
        }
        self.note_next_attempt(&work, &next, record);
        complete(work, (&failure, failures), next, how)
    }

    /// Notes the time of the next attempt, before another worker can take the key.
    fn note_next_attempt(&self, work: &Work<ObjectKey>, next: &NextAttempt, record: FailureRecord) {
        let after = |delay| self.environment.clock.after(delay);
        let again = match *next {
            // The winner's write is a change that must be reconciled, so nothing is noted that
            // could skip that change.
            NextAttempt::LostRace => return,
            NextAttempt::Never | NextAttempt::GiveUp(None) => None,
            NextAttempt::After(delay) | NextAttempt::GiveUp(Some(delay)) => Some(after(delay)),
            NextAttempt::AsPromised(delay) => record.promised.or_else(|| Some(after(delay))),
            NextAttempt::Backoff { delay, .. } => Some(after(delay)),
        };
        if let (NextAttempt::AsPromised(_) | NextAttempt::Backoff { .. }, Some(again)) =
            (next, again)
        {
            self.last_errors.promise(work.key(), again);
        }
        self.step.finish(work.key(), FollowUp { again, has_failed: true });
    }

    /// Whether the object had been given up and changed since. The retries are then counted from
    /// the start; after a change of the spec, the failures are also reported anew.
    fn is_restart(&self, key: &ObjectKey, reasons: u64) -> bool {
        let Some(spec_version) = self.last_errors.given_up(key) else { return false };
        let is_restart = self.trigger_names.includes_change(reasons);
        if spec_version != self.step.spec_version(key) {
            self.last_errors.forget_failures(key);
        } else if is_restart {
            self.last_errors.resume(key);
        }
        is_restart
    }

    /// Chooses the schedule of the next attempt.
    fn next_attempt(
        &self,
        failure: &Failure,
        (failures, is_restart): (u32, bool),
        (work, record): (&Work<ObjectKey>, FailureRecord),
    ) -> NextAttempt {
        let now = self.environment.clock.now();
        let left = record.promised.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        match failure.retry {
            // A wait does not come here: the step has turned it into a separate outcome.
            Retry::Never | Retry::Waiting => NextAttempt::Never,
            Retry::After(delay) => NextAttempt::After(delay),
            Retry::Backoff if record.count <= MAX_LOST_RACES && failure.lost_a_race() => {
                NextAttempt::LostRace
            }
            Retry::Backoff if left > RETRY_TOLERANCE => NextAttempt::AsPromised(left),
            Retry::Backoff => match self.retry.bound(failures) {
                // An attempt without a change, on an object that was given up, does not restart the
                // retries.
                Some(bound) if !record.is_given_up => {
                    let draw = work.draw();
                    NextAttempt::Backoff { delay: bound.mul_f64(draw), draw, is_restart }
                }
                _ => {
                    // The function is user code and may panic: then the object is not retried.
                    let delay = || self.after_max_retries.delay(failure, failures);
                    NextAttempt::GiveUp(catch_unwind(AssertUnwindSafe(delay)).unwrap_or_default())
                }
            },
        }
    }

    /// Reports a failure or a wait; returns whether the conditions of the object show the report.
    /// Errors, panics and delays of the report are logged.
    pub(super) async fn report<'a>(
        &self,
        work: &Work<ObjectKey>,
        cancel: &AttemptCancel,
        report: impl FnOnce(ReconcileAttempt) -> Option<ReportFuture<'a>>,
    ) -> bool {
        let attempt = self.new_attempt(work, work.reasons());
        attempt.cancel.report_of(cancel);
        let shown = attempt.cancel.clone();
        let ending = attempt.cancel.end_guard();
        let Some(report) = report(attempt) else { return false };
        let reported = self.environment.clock.timeout(REPORT_LIMIT, caught(report)).await;
        if reported.is_some() {
            ending.finished();
        }
        match reported {
            Some(Ok(Ok(()))) => {}
            Some(Ok(Err(error))) => {
                tracing::warn!(%error, "cannot report the outcome of a reconcile")
            }
            Some(Err(panic)) => {
                let text = panic_text(&*panic);
                tracing::error!("the report of a reconcile's outcome panicked: {text}");
            }
            None => {
                tracing::warn!(limit = ?REPORT_LIMIT, "the report of a reconcile's outcome took too long")
            }
        }
        shown.is_shown()
    }
}

/// Logs a failure, and completes the key; returns the kind of end for the metrics.
fn complete(
    work: Work<ObjectKey>,
    (failure, failures): (&Failure, u32),
    next: NextAttempt,
    how: ReconcileResult,
) -> ReconcileResult {
    let retry_in = match next {
        NextAttempt::Never => {
            work.done();
            tracing::error!(error = %failure, "the reconcile failed for good");
            return ReconcileResult::Terminal;
        }
        NextAttempt::LostRace => {
            // The winner's change arrives soon through the watch, and makes the key due earlier.
            work.retry_after(LOST_RACE_DELAY);
            tracing::debug!(error = %failure, "another writer was first: waiting for its write to appear");
            return how;
        }
        NextAttempt::GiveUp(again_in) => {
            match again_in {
                Some(delay) => work.retry_after(delay),
                None => work.done(),
            }
            tracing::error!(error = %failure, failures, ?again_in, "the reconcile failed; giving up");
            return how;
        }
        NextAttempt::After(delay) => {
            work.retry_after(delay);
            tracing::warn!(error = %failure, failures, retry_in = ?delay, "the reconcile failed");
            return how;
        }
        NextAttempt::AsPromised(delay) => {
            work.retry_after(delay);
            Some(delay)
        }
        NextAttempt::Backoff { draw, is_restart, .. } => work.retry_drawn(draw, is_restart),
    };
    match how {
        ReconcileResult::Panic | ReconcileResult::Timeout => {
            tracing::error!(error = %failure, failures, ?retry_in, "the reconcile was ended");
        }
        _ => tracing::warn!(error = %failure, failures, ?retry_in, "the reconcile failed"),
    }
    how
}
