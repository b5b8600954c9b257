//! A key that a worker has taken.

// DESIGN.md, 64: A worker's attempt moves its state once

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Priority;
use super::core::{Claim, Completion, Nanos};
use super::state::{CompletedKey, QueueShared};

/// A key in work. The worker ends the work with a completion; a drop without one (a panic, a
/// cancelled task) counts as a failure.
#[must_use = "dropping it counts as a failure"]
pub struct Work<T: Hash + Eq + Clone> {
    /// Boxed, so that successive keys share one allocation: a future moves this value often, right
    /// after the write.
    inner: Box<Inner<T>>,
}

/// The queue, the claimed key and the pending completion.
struct Inner<T: Hash + Eq + Clone> {
    queue: Arc<QueueShared<T>>,
    claim: Claim<T>,
    /// A completion that the queue has not received yet.
    completion: Option<Completion>,
    /// Whether the queue has not received the end of this work yet.
    is_unfinished: bool,
}

impl<T: Hash + Eq + Clone> Work<T> {
    pub(super) fn new(queue: Arc<QueueShared<T>>, claim: Claim<T>) -> Self {
        Self { inner: Box::new(Inner { queue, claim, completion: None, is_unfinished: true }) }
    }

    /// Returns the key.
    pub fn key(&self) -> &T {
        &self.inner.claim.key
    }

    /// Returns the number of failures in a row before this attempt.
    pub fn failures(&self) -> u32 {
        self.inner.claim.info.failures
    }

    /// Returns the priority of this attempt: the highest of all adds. A completion that requeues
    /// the key keeps that priority.
    pub fn priority(&self) -> Priority {
        self.inner.claim.info.priority
    }

    /// Returns the [reasons](super::AddOptions::reasons) of all adds since the key was last taken.
    pub fn reasons(&self) -> u64 {
        self.inner.claim.info.reasons
    }

    /// Replaces the reasons with which the key is requeued when [held](Self::hold): the worker
    /// knows more reasons than the queue did.
    pub(crate) fn with_reasons(mut self, reasons: u64) -> Self {
        self.inner.claim.info.reasons = reasons;
        self
    }

    /// Returns the time at which the key was taken.
    pub(crate) fn taken_at(&self) -> Instant {
        self.inner.queue.epoch + Duration::from_nanos(self.inner.claim.info.at)
    }

    /// Ends the work with success: the key is idle until the next add. The queue keeps the key's
    /// entry meanwhile, unless many other keys are added; [`gone`](Self::gone) frees the entry.
    pub fn done(self) {
        self.finish(Completion::Done);
    }

    /// Ends the work as [`done`](Self::done), and takes the next key if any is ready, as
    /// [`try_get`](super::WorkQueue::try_get) does. Both happen under a single lock, for half of
    /// the cost.
    pub fn done_then_next(mut self) -> Option<Self> {
        self.inner.completion = Some(Completion::Done);
        let now = self.inner.queue.now();
        self.finish_then_next_at(now)
    }

    /// Sets the completion to a success, with a requeue after a delay if given. The queue receives
    /// the completion when this value is dropped, or through
    /// [`finish_then_next`](Self::finish_then_next).
    pub(crate) fn with_success(mut self, requeue_after: Option<Duration>) -> Self {
        self.inner.completion = Some(requeue_after.map_or(Completion::Done, Completion::After));
        self
    }

    /// Passes the completion to the queue, and takes the next key if any is ready; `now` is a
    /// recent reading of the clock.
    pub(crate) fn finish_then_next(self, now: Instant) -> Option<Self> {
        let now = self.inner.queue.at(now);
        self.finish_then_next_at(now)
    }

    /// Ends the work with the pending completion and takes the next key, at `now`.
    #[inline(always)]
    fn finish_then_next_at(mut self, now: Nanos) -> Option<Self> {
        self.inner.is_unfinished = false;
        let completed = self.completed(self.inner.completion);
        // The box is reused for the next key, which has no completion yet.
        self.inner.completion = None;
        // In place, without a clone of the queue's `Arc`: all workers would contend for its
        // reference count.
        if !self.inner.queue.finish_and_take(completed, &mut self.inner.claim, now) {
            return None;
        }
        self.inner.is_unfinished = true;
        Some(self)
    }

    /// Ends the work with success for a key whose object no longer exists: the queue drops the key
    /// at once, and frees the entry.
    pub fn gone(self) {
        self.finish(Completion::Gone);
    }

    /// Sets the completion to [`gone`](Self::gone). The queue receives the completion when this
    /// value is dropped, or by [`finish_then_next`](Self::finish_then_next).
    pub(crate) fn with_gone(mut self) -> Self {
        self.inner.completion = Some(Completion::Gone);
        self
    }

    /// Ends the work with success: the key is requeued after `delay` (zero: at once), or earlier by
    /// a new add.
    pub fn after(self, delay: Duration) {
        self.finish(Completion::After(delay));
    }

    /// Ends the work with a failure: the key is requeued after its backoff. Returns the delay,
    /// `None` when the policy gave up on the key.
    pub fn retry(self) -> Option<Duration> {
        let draw = self.inner.queue.rng.unit();
        self.finish(Completion::Retry { draw })
    }

    /// Draws a number in `[0, 1)`, with which [`retry_drawn`](Self::retry_drawn) picks the delay
    /// below the bound.
    pub(crate) fn draw(&self) -> f64 {
        self.inner.queue.rng.unit()
    }

    /// As [`retry`](Self::retry), with a number drawn before; `is_anew` counts the failure as the
    /// first in a row.
    pub(crate) fn retry_drawn(self, draw: f64, is_anew: bool) -> Option<Duration> {
        self.finish(if is_anew {
            Completion::RetryAnew { draw }
        } else {
            Completion::Retry { draw }
        })
    }

    /// Changes the effect of a drop without a completion: the key is requeued at once, with its
    /// present reasons, as if the key had not been taken. For a task that ends although the key did
    /// not fail. After a panic the drop still counts as a failure.
    pub(crate) fn hold_on_drop(mut self) -> Self {
        self.inner.completion = Some(Completion::Hold(Duration::ZERO));
        self
    }

    /// Ends the work with a failure: the key is requeued after `delay`; the backoff does not grow.
    pub fn retry_after(self, delay: Duration) {
        self.finish(Completion::RetryAfter(delay));
    }

    /// Ends the work with neither success nor failure: the key was not worked on and is requeued
    /// after `delay` with its present reasons. The key counts as backing off until then. The
    /// queue's timer fires at least every ten years.
    pub fn hold(self, delay: Duration) {
        self.finish(Completion::Hold(delay));
    }

    /// Ends the work; returns the delay of its retry, if a retry follows.
    fn finish(mut self, completion: Completion) -> Option<Duration> {
        // Cleared first: the drop must not end the work a second time.
        self.inner.is_unfinished = false;
        self.inner.queue.finish(self.completed(Some(completion)))
    }

    /// Returns this key with its completion; without a completion the attempt counts as a failure.
    fn completed(&self, completion: Option<Completion>) -> CompletedKey {
        let completion =
            completion.unwrap_or_else(|| Completion::Retry { draw: self.inner.queue.rng.unit() });
        let reasons = match completion {
            Completion::Done | Completion::Gone => 0,
            Completion::After(_) => self.inner.queue.requeued,
            Completion::Retry { .. } | Completion::RetryAnew { .. } | Completion::RetryAfter(_) => {
                self.inner.queue.retried
            }
            // The key was not worked on, so the reasons stay.
            Completion::Hold(_) => self.inner.claim.info.reasons,
        };
        CompletedKey { ticket: self.inner.claim.info.ticket, completion, reasons }
    }
}

impl<T: Hash + Eq + Clone> Drop for Work<T> {
    fn drop(&mut self) {
        if self.inner.is_unfinished {
            // A panic overrides a pending completion: the work failed.
            let completion = self.inner.completion.filter(|_| !std::thread::panicking());
            self.inner.queue.finish(self.completed(completion));
        }
    }
}

impl<T: Hash + Eq + Clone + fmt::Debug> fmt::Debug for Work<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("key", self.key()).field("failures", &self.failures()).finish()
    }
}
