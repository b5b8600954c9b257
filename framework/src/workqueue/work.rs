//! A key in somebody's hands.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Priority;
use super::core::{Nanos, Taken, Verdict};
use super::queue::{End, Shared};

/// A key in work. Give a verdict; dropped without one (a panic, a cancelled task) it is a failure.
#[must_use = "dropping it counts as a failure"]
pub struct Work<T: Hash + Eq + Clone> {
    /// In one place from the first key to the last of those that follow each other: it is handed on as
    /// often as a future moves, right after it was written.
    hand: Box<Hand<T>>,
}

struct Hand<T: Hash + Eq + Clone> {
    queue: Arc<Shared<T>>,
    taken: Taken<T>,
    /// Given, and not told to the queue yet.
    verdict: Option<Verdict>,
    open: bool,
}

impl<T: Hash + Eq + Clone> Work<T> {
    pub(super) fn new(queue: Arc<Shared<T>>, taken: Taken<T>) -> Self {
        Self { hand: Box::new(Hand { queue, taken, verdict: None, open: true }) }
    }

    /// The key.
    pub fn key(&self) -> &T {
        &self.hand.taken.key
    }

    /// Failures in a row before this one.
    pub fn failures(&self) -> u32 {
        self.hand.taken.facts.failures
    }

    /// How urgent this turn is: the highest priority that was asked for. A verdict that brings the key
    /// back keeps it.
    pub fn priority(&self) -> Priority {
        self.hand.taken.facts.priority
    }

    /// Why: the [reasons](super::Adding::reasons) of all adds since the key was taken last.
    pub fn reasons(&self) -> u64 {
        self.hand.taken.facts.reasons
    }

    /// What brings the key back when it is [held](Self::hold): the worker knows more reasons than the
    /// queue did.
    pub(crate) fn because(mut self, reasons: u64) -> Self {
        self.hand.taken.facts.reasons = reasons;
        self
    }

    /// When the key was taken.
    pub(crate) fn taken(&self) -> Instant {
        self.hand.queue.epoch + Duration::from_nanos(self.hand.taken.facts.at)
    }

    /// Success: the key rests until it is added again. The queue keeps it meanwhile, unless it is
    /// [gone](Self::gone) or many others come.
    pub fn done(self) {
        self.finish(Verdict::Done);
    }

    /// [`done`](Self::done), and the next key if one is ready: as
    /// [`try_get`](super::WorkQueue::try_get) at the same time, for half of the cost.
    pub fn done_then_next(mut self) -> Option<Self> {
        self.hand.verdict = Some(Verdict::Done);
        let now = self.hand.queue.now();
        self.follow(now)
    }

    /// Success, which the queue is told when this is dropped or followed by the [next](Self::next) key.
    pub(crate) fn succeeded(mut self, again_in: Option<Duration>) -> Self {
        self.hand.verdict = Some(again_in.map_or(Verdict::Done, Verdict::After));
        self
    }

    /// Tells the queue the verdict, and takes the next key if one is ready; at a time that was `now` a
    /// moment ago.
    pub(crate) fn next(self, now: Instant) -> Option<Self> {
        let now = self.hand.queue.at(now);
        self.follow(now)
    }

    #[inline(always)]
    fn follow(mut self, now: Nanos) -> Option<Self> {
        self.hand.open = false;
        let end = self.as_end(self.hand.verdict);
        self.hand.verdict = None;
        // In place: the queue's count of references lies where all workers would meet.
        if !self.hand.queue.finish_and_take(end, &mut self.hand.taken, now) {
            return None;
        }
        self.hand.open = true;
        Some(self)
    }

    /// Success, and what the key names is no more: the queue forgets the key at once, which otherwise keeps a
    /// place to come back to.
    pub fn gone(self) {
        self.finish(Verdict::Gone);
    }

    /// [`gone`](Self::gone), which the queue is told when this is dropped or followed by the
    /// [next](Self::next) key.
    pub(crate) fn ended_for_good(mut self) -> Self {
        self.hand.verdict = Some(Verdict::Gone);
        self
    }

    /// Success: the key comes back after `delay`, or earlier when it is added.
    pub fn after(self, delay: Duration) {
        self.finish(Verdict::After(delay));
    }

    /// Failure: the key comes back after its backoff. Returns the delay, `None` when the policy gave
    /// up on it.
    pub fn retry(self) -> Option<Duration> {
        let draw = self.hand.queue.entropy.unit();
        self.finish(Verdict::Retry { draw })
    }

    /// A number in `[0, 1)`; [`retry_drawn`](Self::retry_drawn) picks by it the delay below the bound.
    pub(crate) fn draw(&self) -> f64 {
        self.hand.queue.entropy.unit()
    }

    /// As [`retry`](Self::retry), with what was drawn for it; or as if it had never failed before.
    pub(crate) fn retry_drawn(self, draw: f64, is_anew: bool) -> Option<Duration> {
        self.finish(if is_anew { Verdict::RetryAnew { draw } } else { Verdict::Retry { draw } })
    }

    /// Dropped without a verdict it comes back at once, for the reasons that it has now, as if nobody had
    /// taken it: who drops it ends, and the key did not fail. After a panic it still counts as a failure.
    pub(crate) fn kept(mut self) -> Self {
        self.hand.verdict = Some(Verdict::Hold(Duration::ZERO));
        self
    }

    /// Failure: the key comes back after `delay`; its backoff does not grow.
    pub fn retry_after(self, delay: Duration) {
        self.finish(Verdict::RetryAfter(delay));
    }

    /// Neither success nor failure: the key was not worked on and comes back after `delay` (at most
    /// ten years) for the reasons that it has now. Counted as backing off until then.
    pub fn hold(self, delay: Duration) {
        self.finish(Verdict::Hold(delay));
    }

    fn finish(mut self, verdict: Verdict) -> Option<Duration> {
        self.hand.open = false;
        self.hand.queue.finish(self.as_end(Some(verdict)))
    }

    /// How it ends; without a verdict it is a failure.
    fn as_end(&self, verdict: Option<Verdict>) -> End {
        let verdict =
            verdict.unwrap_or_else(|| Verdict::Retry { draw: self.hand.queue.entropy.unit() });
        let reasons = match verdict {
            Verdict::Done | Verdict::Gone => 0,
            Verdict::After(_) => self.hand.queue.requeued,
            Verdict::Retry { .. } | Verdict::RetryAnew { .. } | Verdict::RetryAfter(_) => {
                self.hand.queue.retried
            }
            // This turn was none.
            Verdict::Hold(_) => self.hand.taken.facts.reasons,
        };
        End { ticket: self.hand.taken.facts.ticket, verdict, reasons }
    }
}

impl<T: Hash + Eq + Clone> Drop for Work<T> {
    fn drop(&mut self) {
        if self.hand.open {
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
