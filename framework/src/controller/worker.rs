//! Takes keys, has them reconciled, gives the verdict. Knows no types of objects.
//!
//! Whatever happens inside a step stays inside: a panic, a deadline and an error differ in metrics
//! and logs only.

mod failing;
mod streak;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::streak::{Polls, Streak};
use super::debounce::Quiet;
use super::echoes::Concluded;
use super::last::LastErrors;
use super::meter::{Ended, Meter};
use super::namespaces::Namespaces;
use super::pace::{Leave, Pace};
use super::reasons::Reason;
use super::report::Told;
use super::spec::Stamp;
use super::turn::{Cancel, Turn};
use super::waking::Waking;
use super::{Action, Failure, RetryPolicy, Then};
use crate::panics::{caught, panic_text};
use crate::resource::ObjectKey;
use crate::seams::Seams;
use crate::workqueue::{Work, WorkQueue};

/// The gauges on long work are refreshed this often.
const TICK: Duration = Duration::from_secs(5);
/// An object that has ended is looked at again when the cache shows that, and at the latest after this
/// time: if it was there after all, it is not forgotten.
const ENDED_LIMIT: Duration = Duration::from_secs(10);

/// What one step came to.
#[derive(Debug)]
pub(super) enum Outcome {
    /// There is no such object: forget the key.
    Absent,
    /// Reconciled.
    Done(Action),
    /// Not reconciled.
    Failed(Failure),
    /// Dropped, because its object changed meanwhile.
    Superseded,
    /// The object does not decode. The cache says so in the log, once: nobody else does.
    Undecodable(Failure),
    /// Left alone, as its annotation says.
    Paused,
    /// Not reconciled, because the object is gone, or being deleted: the cache is about to show it.
    Ended(Failure),
}

/// A boxed future of a step.
pub(super) type StepFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// A boxed report of a failure.
pub(super) type Telling<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// What workers do with a key.
pub(super) trait Step: Send + Sync + 'static {
    /// Looks the key up and reconciles it.
    fn run<'a>(&'a self, key: &'a ObjectKey, turn: Turn) -> StepFuture<'a>;

    /// Does the cache show what the last reconcile, which is over, left, and nothing newer? Then this is
    /// what was to follow.
    fn left_by_us(&self, key: &ObjectKey) -> Option<Concluded>;

    /// A reconcile is over, and this is to follow. Told before anybody else can have its key.
    fn concluded(&self, key: &ObjectKey, how: Concluded);

    /// What the object should be, as a number.
    fn stamp(&self, key: &ObjectKey) -> Option<Stamp>;

    /// Tells of a failure; `None` when nobody wants to know.
    fn failed<'a>(&'a self, key: &'a ObjectKey, told: Told<'a>, turn: Turn) -> Option<Telling<'a>>;

    /// The same for one worker, when what each turn counts references to can be its own: all workers would
    /// change such a count with each turn. `None` when there is nothing of the kind.
    fn for_one_worker(&self) -> Option<Arc<dyn Step>> {
        None
    }
}

/// What all workers of a controller share.
#[derive(Clone)]
pub(super) struct Worker {
    pub(super) controller: Arc<str>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) step: Arc<dyn Step>,
    pub(super) timeout: Duration,
    pub(super) retry: RetryPolicy,
    pub(super) then: Then,
    pub(super) seams: Seams,
    pub(super) meter: Meter,
    pub(super) pace: Arc<Pace>,
    pub(super) last: Arc<LastErrors>,
    pub(super) waking: Arc<Waking>,
    pub(super) stop: Arc<CancellationToken>,
    pub(super) namespaces: Arc<Namespaces>,
}

/// How a guarded step ended.
enum End {
    Outcome(Outcome),
    Panicked(String),
    TimedOut,
}

impl Worker {
    /// One more worker, with its own of what every turn touches and none changes for others.
    pub(super) fn one_more(&self) -> Self {
        let step = self.step.for_one_worker().unwrap_or_else(|| Arc::clone(&self.step));
        // Looking at a token takes its lock; at that of a child, the child's.
        let stop = Arc::new(self.stop.child_token());
        Self { step, stop, meter: self.meter.for_one_worker(), ..self.clone() }
    }

    /// Works until the controller stops; a step that runs then is finished.
    pub(super) async fn run(self) {
        let polls = Polls::default();
        polls.count(self.work(&polls)).await;
    }

    async fn work(&self, polls: &Polls) {
        let ids = self.seams.entropy.next_u64();
        let mut turns = 0_u64;
        let mut next = self.next().await;
        let mut streak = Streak::new(polls, self.seams.clock.now());
        while let Some(work) = next {
            let reasons = match self.waking.ask(work.key(), work.reasons(), work.taken()) {
                Quiet::Now(reasons) => reasons,
                Quiet::In(delay) => {
                    work.hold(delay);
                    let now = self.seams.clock.now();
                    next = self.follow(None, streak.goes_on(now), now).await;
                    continue;
                }
            };
            turns += 1;
            let span = tracing::info_span!(
                "reconcile",
                controller = %self.controller,
                namespace = work.key().namespace().unwrap_or_default(),
                name = work.key().name(),
                reconcile_id = format_args!("{:016x}", reconcile_id(ids, turns)),
                reasons = %self.waking.named(reasons),
            );
            let (left, now) = self.turn(work, reasons).instrument(span).await;
            next = self.follow(left, streak.goes_on(now), now).await;
        }
    }

    /// The next key after a turn, which ended `now` and may have left the end of its work to this: one pass
    /// through the queue's lock is enough for both.
    async fn follow(
        &self,
        left: Option<Work<ObjectKey>>,
        goes_on: bool,
        now: Instant,
    ) -> Option<Work<ObjectKey>> {
        if !goes_on {
            // Who makes way holds no key meanwhile.
            drop(left);
            yield_now().await;
            return self.next().await;
        }
        let left = left.filter(|_| !self.stop.is_cancelled());
        let Some(work) = left else { return self.next().await };
        match work.next(now) {
            Some(work) => Some(work),
            None => self.wait().await,
        }
    }

    /// The next key; `None` when the controller stops.
    async fn next(&self) -> Option<Work<ObjectKey>> {
        if self.stop.is_cancelled() {
            return None;
        }
        // While there is work, nothing needs to be registered anywhere.
        if let Some(work) = self.queue.try_get() {
            return Some(work);
        }
        self.wait().await
    }

    async fn wait(&self) -> Option<Work<ObjectKey>> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            work = self.queue.get() => work,
        }
    }

    /// One turn of a key. Returns its work if that is still to be ended, with a verdict; and the time.
    async fn turn(
        &self,
        work: Work<ObjectKey>,
        mut reasons: u64,
    ) -> (Option<Work<ObjectKey>>, Instant) {
        let started = work.taken();
        if let Some((again_in, has_failed)) = self.left_by_us(reasons, work.key(), started) {
            // Its own write was told by the watch before it was answered.
            let left = match again_in {
                Some(delay) if has_failed => {
                    work.retry_after(delay);
                    None
                }
                _ => Some(work.succeeded(again_in)),
            };
            return (left, self.seams.clock.now());
        }
        let is_timed = self.waking.is_timed(reasons);
        let stamp = || self.step.stamp(work.key());
        match self.pace.ask(work.key(), started, (&mut reasons, is_timed), stamp) {
            Leave::Go => {}
            Leave::GoAndWarn => {
                self.meter.throttled();
                tracing::warn!(
                    limit = %self.pace.guard(),
                    "reconciled too often though nobody changed its spec, and slowed down: does each \
                     reconcile write something that differs from the last time?"
                );
            }
            Leave::Wait(delay) => {
                work.because(reasons).hold(delay);
                return (None, self.seams.clock.now());
            }
        }
        // A burst's reasons are known here alone: a turn that comes back must not lose them.
        let work = work.because(reasons).kept();
        let busy = self.meter.busy();
        let turn = self.a_turn(&work, reasons);
        let about = turn.cancel.clone();
        let end = self.guarded(work.key(), turn, started).await;
        let now = self.seams.clock.now();
        let took = now.saturating_duration_since(started);
        self.meter.over();
        let (ended, left) = match end {
            End::Outcome(Outcome::Failed(failure)) => {
                (self.fail(work, &about, (failure, Ended::Error)).await, None)
            }
            End::Panicked(text) => {
                let failure = Failure::from(format!("the reconciler panicked: {text}"));
                (self.fail(work, &about, (failure, Ended::Panic)).await, None)
            }
            End::TimedOut => {
                let limit = self.timeout;
                let failure = Failure::from(format!("the reconcile hit its deadline of {limit:?}"));
                (self.fail(work, &about, (failure, Ended::Timeout)).await, None)
            }
            End::Outcome(outcome) => self.conclude(work, outcome),
        };
        drop(busy);
        self.meter.ended(ended, took);
        (left, now)
    }

    /// Is there no reason for this turn but what the last reconcile wrote? Then what is left of the time
    /// after which that wanted to be called again, and whether it failed.
    fn left_by_us(
        &self,
        reasons: u64,
        key: &ObjectKey,
        now: Instant,
    ) -> Option<(Option<Duration>, bool)> {
        // What is to be done later comes with every turn before its time.
        let changed = Reason::CHANGED.bit();
        let later = Reason::REQUEUE.bit() | Reason::RETRY.bit();
        if reasons & changed == 0 || reasons & !(changed | later) != 0 {
            return None;
        }
        let Concluded { again, has_failed } = self.step.left_by_us(key)?;
        let again_in = again.map(|again| again.saturating_duration_since(now));
        again_in.is_none_or(|delay| !delay.is_zero()).then_some((again_in, has_failed))
    }

    fn a_turn(&self, work: &Work<ObjectKey>, reasons: u64) -> Turn {
        // What had been given up and is taken up again is tried for the first time.
        let is_anew = work.failures() > 0
            && self.last.given_up(work.key()).is_some()
            && self.waking.tells_a_change(reasons);
        let attempt = if is_anew { 0 } else { work.failures() };
        Turn { attempt, reasons, cancel: Cancel::new(&self.stop) }
    }

    /// Runs the step to its end, its panic or its deadline, whichever comes first.
    async fn guarded(&self, key: &ObjectKey, turn: Turn, started: Instant) -> End {
        let ending = turn.cancel.at_end();
        let step = match catch_unwind(AssertUnwindSafe(|| self.step.run(key, turn))) {
            Ok(step) => step,
            Err(panic) => return End::Panicked(panic_text(&*panic)),
        };
        let mut step = pin!(caught(step));
        // Whoever still holds the token after a deadline learns that nobody waits for it; what the step
        // gave away is told before the step is dropped, and not after.
        let ending = ending;
        let deadline = started.checked_add(self.timeout);
        let deadline = deadline.unwrap_or_else(|| self.seams.clock.after(self.timeout));
        let mut tick = started;
        while tick < deadline {
            tick = (tick + TICK).min(deadline);
            tokio::select! {
                biased;
                end = step.as_mut() => {
                    if !matches!(end, Ok(Outcome::Superseded)) {
                        ending.finished();
                    }
                    return match end {
                        Ok(outcome) => End::Outcome(outcome),
                        Err(panic) => End::Panicked(panic_text(&*panic)),
                    };
                }
                // Its timer is armed only when the step waits for something.
                () = self.seams.clock.sleep_until(tick) => self.queue.observe(),
            }
        }
        End::TimedOut
    }

    /// Logs what was no failure, and gives the verdict; a success is left to be told.
    fn conclude(
        &self,
        work: Work<ObjectKey>,
        outcome: Outcome,
    ) -> (Ended, Option<Work<ObjectKey>>) {
        self.namespaces.ended(work.key());
        let (ended, again_in) = match outcome {
            Outcome::Absent => {
                self.pace.forget(work.key());
                self.last.forget(work.key());
                return (Ended::Success, Some(work.ended_for_good()));
            }
            Outcome::Paused => {
                tracing::debug!("not reconciled: paused");
                (Ended::Success, None)
            }
            Outcome::Done(action) => {
                self.last.succeeded(work.key());
                match action.requeue_after {
                    None => {
                        tracing::debug!("reconciled");
                        (Ended::Success, None)
                    }
                    Some(delay) => {
                        tracing::debug!(again_in = ?delay, "reconciled");
                        (Ended::RequeueAfter, Some(delay))
                    }
                }
            }
            Outcome::Ended(failure) => {
                tracing::debug!(why = %failure, "not reconciled: the object has ended");
                (Ended::Success, Some(ENDED_LIMIT))
            }
            Outcome::Superseded => {
                // Neither done nor failed, and there is no need to wait.
                work.hold(Duration::ZERO);
                tracing::debug!("dropped: the object changed meanwhile");
                return (Ended::Superseded, None);
            }
            Outcome::Failed(failure) | Outcome::Undecodable(failure) => {
                tracing::debug!(error = %failure, "not reconciled");
                (Ended::Terminal, None)
            }
        };
        (ended, Some(work.succeeded(again_in)))
    }
}

/// Names a reconcile in logs: the numbers of one worker follow from its seed, and look random.
fn reconcile_id(seed: u64, turn: u64) -> u64 {
    let mixed = (seed ^ turn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

#[cfg(test)]
mod tests;
