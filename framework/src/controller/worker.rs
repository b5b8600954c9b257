//! Takes keys, has them reconciled, gives the verdict. Knows no types of objects.
//!
//! Whatever happens inside a step stays inside: a panic, a deadline and an error differ in metrics
//! and logs only.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::failure::Retry;
use super::meter::{Ended, Meter};
use super::pace::{Leave, Pace};
use super::{Action, Failure};
use crate::error::Error;
use crate::resource::ObjectKey;
use crate::seams::Seams;
use crate::workqueue::{Work, WorkQueue};

/// The gauges on long work are refreshed this often.
const TICK: Duration = Duration::from_secs(5);

/// What one step came to.
#[derive(Debug)]
pub(super) enum Outcome {
    /// There is no such object: forget the key.
    Absent,
    /// Reconciled.
    Done(Action),
    /// Not reconciled.
    Failed(Failure),
}

/// One turn of a key: which attempt, and who can call it off.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// Number of the attempt: 0 unless the last one failed.
    pub(super) attempt: u32,
    /// Cancelled when the controller stops, and when the turn ended by its deadline.
    pub(super) cancel: CancellationToken,
}

/// A boxed future of a step.
pub(super) type StepFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// What workers do with a key.
pub(super) trait Step: Send + Sync + 'static {
    /// Looks the key up and reconciles it.
    fn run<'a>(&'a self, key: &'a ObjectKey, turn: Turn) -> StepFuture<'a>;
}

/// What all workers of a controller share.
#[derive(Clone)]
pub(super) struct Worker {
    pub(super) controller: Arc<str>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) step: Arc<dyn Step>,
    pub(super) timeout: Duration,
    pub(super) seams: Seams,
    pub(super) meter: Meter,
    pub(super) pace: Arc<Pace>,
    pub(super) reconciles: Arc<AtomicU64>,
    pub(super) stop: CancellationToken,
}

/// How a guarded step ended.
enum End {
    Outcome(Outcome),
    Panicked(String),
    TimedOut,
}

impl Worker {
    /// Works until the controller stops; a step that runs then is finished.
    pub(super) async fn run(self) {
        loop {
            let work = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                work = self.queue.get() => work,
            };
            let Some(work) = work else { return };
            let id = self.seams.entropy.next_u64();
            let span = tracing::info_span!(
                "reconcile",
                controller = %self.controller,
                namespace = work.key().namespace().unwrap_or_default(),
                name = work.key().name(),
                reconcile_id = format_args!("{id:016x}"),
            );
            self.turn(work).instrument(span).await;
        }
    }

    async fn turn(&self, work: Work<ObjectKey>) {
        match self.pace.ask(work.key(), self.seams.clock.now()) {
            Leave::Go => {}
            Leave::GoAndWarn => tracing::warn!(
                "reconciled more than 50 times within a minute, and slowed down to once a second: \
                 does each reconcile write something that differs from the last time?"
            ),
            Leave::Wait(delay) => return work.hold(delay),
        }
        let busy = self.meter.busy();
        let started = self.seams.clock.now();
        let turn = Turn { attempt: work.failures(), cancel: self.stop.child_token() };
        let end = self.guarded(work.key(), turn).await;
        drop(busy);
        let took = self.seams.clock.now().saturating_duration_since(started);
        self.reconciles.fetch_add(1, Ordering::Relaxed);
        let ended = self.conclude(work, end);
        self.meter.ended(ended, took);
    }

    /// Runs the step to its end, its panic or its deadline, whichever comes first.
    async fn guarded(&self, key: &ObjectKey, turn: Turn) -> End {
        // Whoever still holds the token after a deadline learns that nobody waits for it.
        let _told = turn.cancel.clone().drop_guard();
        let step = match catch_unwind(AssertUnwindSafe(|| self.step.run(key, turn))) {
            Ok(step) => step,
            Err(panic) => return End::Panicked(panic_text(&*panic)),
        };
        let mut step = pin!(caught(step));
        let deadline = self.seams.clock.now() + self.timeout;
        loop {
            let tick = (self.seams.clock.now() + TICK).min(deadline);
            tokio::select! {
                biased;
                end = step.as_mut() => return match end {
                    Ok(outcome) => End::Outcome(outcome),
                    Err(panic) => End::Panicked(panic_text(&*panic)),
                },
                () = self.seams.clock.sleep_until(tick) => self.queue.observe(),
            }
            if self.seams.clock.now() >= deadline {
                return End::TimedOut;
            }
        }
    }

    /// Logs, and gives the verdict.
    fn conclude(&self, work: Work<ObjectKey>, end: End) -> Ended {
        match end {
            End::Outcome(Outcome::Absent) => {
                self.pace.forget(work.key());
                work.done();
                Ended::Success
            }
            End::Outcome(Outcome::Done(Action { requeue_after: None })) => {
                work.done();
                tracing::debug!("reconciled");
                Ended::Success
            }
            End::Outcome(Outcome::Done(Action { requeue_after: Some(delay) })) => {
                work.after(delay);
                tracing::debug!(again_in = ?delay, "reconciled");
                Ended::RequeueAfter
            }
            End::Outcome(Outcome::Failed(failure)) => conclude_failure(work, &failure),
            End::Panicked(text) => {
                let failures = work.failures() + 1;
                let retry_in = work.retry();
                tracing::error!(failures, ?retry_in, "the reconciler panicked: {text}");
                Ended::Panic
            }
            End::TimedOut => {
                let failures = work.failures() + 1;
                let retry_in = work.retry();
                let limit = self.timeout;
                tracing::error!(failures, ?retry_in, ?limit, "the reconcile hit its deadline");
                Ended::Timeout
            }
        }
    }
}

fn conclude_failure(work: Work<ObjectKey>, failure: &Failure) -> Ended {
    let failures = work.failures() + 1;
    match failure.retry {
        Retry::Never => {
            work.done();
            tracing::error!(error = %failure, "the reconcile failed for good");
            return Ended::Terminal;
        }
        Retry::After(delay) => {
            work.retry_after(delay);
            tracing::warn!(error = %failure, failures, retry_in = ?delay, "the reconcile failed");
        }
        Retry::Backoff => {
            let retry_in = work.retry();
            if failure.cause().downcast_ref::<Error>().is_some_and(Error::is_conflict) {
                // Somebody else wrote first: the next look sees what.
                tracing::debug!(error = %failure, failures, ?retry_in, "the reconcile met a conflict");
            } else {
                tracing::warn!(error = %failure, failures, ?retry_in, "the reconcile failed");
            }
        }
    }
    Ended::Error
}

/// A panic's payload.
type Panic = Box<dyn Any + Send>;

/// `future`, with a panic inside as an error. It is not polled again after one.
async fn caught<F: Future>(future: F) -> Result<F::Output, Panic> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => std::task::Poll::Ready(Err(panic)),
    })
    .await
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "with something other than a text".to_owned())
}

#[cfg(test)]
mod tests;
