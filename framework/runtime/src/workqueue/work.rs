//! A key that a worker has taken.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Priority;
use super::core::{Claim, Nanos, Verdict};
use super::queue::{End, Shared};

/// A key in work. The worker ends it with a verdict; dropping it without one (a panic, a cancelled
/// task) counts as a failure.
#[must_use = "dropping it counts as a failure"]
pub struct Work<T: Hash + Eq + Clone> {
    /// Boxed, so that successive keys share one allocation: a future moves this value often, right
    /// after it was written.
    hand: Box<Hand<T>>,
}

/// The queue, the key and its noted verdict.
struct Hand<T: Hash + Eq + Clone> {
    queue: Arc<Shared<T>>,
    taken: Claim<T>,
    /// A verdict that the queue has not received yet.
    verdict: Option<Verdict>,
    /// Whether the queue still waits for the end of this work.
    open: bool,
}

impl<T: Hash + Eq + Clone> Work<T> {
    pub(super) fn new(queue: Arc<Shared<T>>, taken: Claim<T>) -> Self {
        Self { hand: Box::new(Hand { queue, taken, verdict: None, open: true }) }
    }

    /// Returns the key.
    pub fn key(&self) -> &T {
        &self.hand.taken.key
    }

    /// Returns the number of failures in a row before this piece of work.
    pub fn failures(&self) -> u32 {
        self.hand.taken.facts.failures
    }

    /// Returns the priority of this turn: the highest that was asked for. A verdict that brings the
    /// key back keeps it.
    pub fn priority(&self) -> Priority {
        self.hand.taken.facts.priority
    }

    /// Returns the [reasons](super::AddOptions::reasons) of all adds since the key was last taken.
    pub fn reasons(&self) -> u64 {
        self.hand.taken.facts.reasons
    }

    /// Replaces the reasons with which the key comes back when it is [held](Self::hold): the worker
    /// knows more reasons than the queue did.
    pub(crate) fn because(mut self, reasons: u64) -> Self {
        self.hand.taken.facts.reasons = reasons;
        self
    }

    /// Returns the time at which the key was taken.
    pub(crate) fn taken(&self) -> Instant {
        self.hand.queue.epoch + Duration::from_nanos(self.hand.taken.facts.at)
    }

    /// Ends the work with success: the key rests until it is added again. The queue keeps its entry
    /// meanwhile, unless the key is [gone](Self::gone) or many others come.
    pub fn done(self) {
        self.finish(Verdict::Done);
    }

    /// Ends the work as [`done`](Self::done), and takes the next key if one is ready, as
    /// [`try_get`](super::WorkQueue::try_get) does. Both happen under one lock, for half of the
    /// cost.
    pub fn done_then_next(mut self) -> Option<Self> {
        self.hand.verdict = Some(Verdict::Done);
        let now = self.hand.queue.now();
        self.follow(now)
    }

    /// Notes a success. The queue is notified when this value is dropped, or followed by the
    /// [next](Self::next) key.
    pub(crate) fn succeeded(mut self, again_in: Option<Duration>) -> Self {
        self.hand.verdict = Some(again_in.map_or(Verdict::Done, Verdict::After));
        self
    }

    /// Passes the verdict to the queue, and takes the next key if one is ready; `now` is a recent
    /// reading of the clock.
    pub(crate) fn next(self, now: Instant) -> Option<Self> {
        let now = self.hand.queue.at(now);
        self.follow(now)
    }

    /// Ends the work with the noted verdict and takes the next key, at `now`.
    #[inline(always)]
    fn follow(mut self, now: Nanos) -> Option<Self> {
        self.hand.open = false;
        let end = self.as_end(self.hand.verdict);
        // The box is reused for the next key, which has no verdict yet.
        self.hand.verdict = None;
        // In place, without a clone of the queue's `Arc`: all workers would contend for its
        // reference count.
        if !self.hand.queue.finish_and_take(end, &mut self.hand.taken, now) {
            return None;
        }
        self.hand.open = true;
        Some(self)
    }

    /// Ends the work with success, and the object that the key names is gone: the queue forgets the
    /// key at once, and does not keep its entry.
    pub fn gone(self) {
        self.finish(Verdict::Gone);
    }

    /// Notes a [`gone`](Self::gone). The queue is notified when this value is dropped, or followed
    /// by the [next](Self::next) key.
    pub(crate) fn ended_for_good(mut self) -> Self {
        self.hand.verdict = Some(Verdict::Gone);
        self
    }

    /// Ends the work with success: the key comes back after `delay` (zero: at once), or earlier
    /// when it is added.
    pub fn after(self, delay: Duration) {
        self.finish(Verdict::After(delay));
    }

    /// Ends the work with a failure: the key comes back after its backoff. Returns the delay,
    /// `None` when the policy gave up on the key.
    pub fn retry(self) -> Option<Duration> {
        let draw = self.hand.queue.rng.unit();
        self.finish(Verdict::Retry { draw })
    }

    /// Draws a number in `[0, 1)`, with which [`retry_drawn`](Self::retry_drawn) picks the delay
    /// below the bound.
    pub(crate) fn draw(&self) -> f64 {
        self.hand.queue.rng.unit()
    }

    /// As [`retry`](Self::retry), with a number drawn before; `is_anew` counts the failure as the
    /// first in a row.
    pub(crate) fn retry_drawn(self, draw: f64, is_anew: bool) -> Option<Duration> {
        self.finish(if is_anew { Verdict::RetryAnew { draw } } else { Verdict::Retry { draw } })
    }

    /// Changes the effect of a drop without a verdict: the key comes back at once, with its present
    /// reasons, as if it had not been taken. For a task that ends although the key did not fail.
    /// After a panic the drop still counts as a failure.
    pub(crate) fn kept(mut self) -> Self {
        self.hand.verdict = Some(Verdict::Hold(Duration::ZERO));
        self
    }

    /// Ends the work with a failure: the key comes back after `delay`; its backoff does not grow.
    pub fn retry_after(self, delay: Duration) {
        self.finish(Verdict::RetryAfter(delay));
    }

    /// Ends the work with neither success nor failure: the key was not worked on and comes back
    /// after `delay` with its present reasons. It counts as backing off until then. The queue's
    /// timer looks for due keys at least every ten years.
    pub fn hold(self, delay: Duration) {
        self.finish(Verdict::Hold(delay));
    }

    /// Ends the work; returns the delay of its retry, if there is one.
    fn finish(mut self, verdict: Verdict) -> Option<Duration> {
        // Closed first: the drop must not end the work a second time.
        self.hand.open = false;
        self.hand.queue.finish(self.as_end(Some(verdict)))
    }

    /// Returns the end of this work; without a verdict it is a failure.
    fn as_end(&self, verdict: Option<Verdict>) -> End {
        let verdict =
            verdict.unwrap_or_else(|| Verdict::Retry { draw: self.hand.queue.rng.unit() });
        let reasons = match verdict {
            Verdict::Done | Verdict::Gone => 0,
            Verdict::After(_) => self.hand.queue.requeued,
            Verdict::Retry { .. } | Verdict::RetryAnew { .. } | Verdict::RetryAfter(_) => {
                self.hand.queue.retried
            }
            // The key was not worked on, so its reasons stay.
            Verdict::Hold(_) => self.hand.taken.facts.reasons,
        };
        End { ticket: self.hand.taken.facts.ticket, verdict, reasons }
    }
}

impl<T: Hash + Eq + Clone> Drop for Work<T> {
    fn drop(&mut self) {
        if self.hand.open {
            // A panic overrides a noted verdict: the work failed.
            let verdict = self.hand.verdict.filter(|_| !std::thread::panicking());
            self.hand.queue.finish(self.as_end(verdict));
        }
    }
}

impl<T: Hash + Eq + Clone + fmt::Debug> fmt::Debug for Work<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("key", self.key()).field("failures", &self.failures()).finish()
    }
}
