//! The state of a queue behind all its handles: one lock, and the steps under it.
//!
//! One lock guards the state and the [`Waiters`]. A step that changes the state selects, under the
//! lock, the parked workers to wake; their wakers are called after the lock is released. The
//! numbers for the metrics are counted under the same lock. Batches that are added while no worker
//! is parked may stay in the [`AddBuffer`]; each step that reads the state first moves these
//! batches into the queue.

// DESIGN.md, 53: Ending a key and taking the next key is one step under the queue's lock
// DESIGN.md, 121: The work queue keeps its add buffer, waiters and slots

use std::hash::Hash;
use std::time::Duration;

use foldhash::fast::FixedState;
use tokio::time::Instant;

use super::add_buffer::{AddBatch, AddBuffer, PendingAdd};
use super::core::{Claim, Completion, Finished, NO_SLOT, Nanos, QueueCore, Ticket, nanos};
use super::meter::{QueueDurations, QueueMeter, QueueReport};
use super::waiters::{DelayTimer, Waiters, Wakes};
use windlass_core::clock::Clock;
use windlass_core::metrics::MetricSource;
use windlass_core::rng::Rng;
use windlass_core::sync::{CachePadded, Mutex, Notify};

/// Longest delay of a timer, ten years: an `Instant` cannot represent much more.
const LONGEST_DELAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Most keys added per lock acquisition: other users of the lock wait for less than half a
/// millisecond.
pub(super) const ADDS_PER_LOCK: usize = 1024;
/// Number of keys whose table lookups overlap.
const LOOKUPS: usize = 32;

/// The queue behind all its handles.
pub(super) struct QueueShared<T: Hash + Eq + Clone> {
    pub(super) state: Mutex<QueueState<T>>,
    /// Lock order: this lock is taken while that of `state` is held, never the other way round.
    pub(super) add_buffer: CachePadded<AddBuffer<T>>,
    /// Hasher of keys. The seed differs per queue, so that keys cannot be chosen to collide.
    pub(super) hasher: FixedState,
    /// Time at which the queue was made.
    pub(super) epoch: Instant,
    pub(super) clock: Clock,
    pub(super) rng: Rng,
    pub(super) meter: QueueMeter,
    /// Reasons of keys that are requeued after a failure.
    pub(super) retried: u64,
    /// Reasons of keys that are requeued after a success.
    pub(super) requeued: u64,
    /// Notified when work ended or the queue was shut down; a drain then checks the queue again.
    pub(super) ended: Notify,
}

/// The state under the queue's lock.
pub(super) struct QueueState<T> {
    pub(super) core: QueueCore<T>,
    pub(super) waiters: Waiters,
    /// Durations since the last report to the metrics.
    pub(super) tally: QueueDurations,
    /// Whether the add buffer is closed; it is closed while any worker is parked.
    pub(super) is_buffer_closed: bool,
}

/// Key whose attempt has ended: its ticket, the completion and the reasons of the next attempt.
#[derive(Debug)]
pub(super) struct CompletedKey {
    pub(super) ticket: Ticket,
    pub(super) completion: Completion,
    /// Reasons of the key's next attempt, if the completion leads to one.
    pub(super) reasons: u64,
}

impl<T: Hash + Eq + Clone> QueueShared<T> {
    /// Returns the time since the queue was made.
    pub(super) fn now(&self) -> Nanos {
        self.at(self.clock.now())
    }

    /// Converts a time to nanoseconds since the queue was made.
    pub(super) fn at(&self, time: Instant) -> Nanos {
        nanos(time.saturating_duration_since(self.epoch))
    }

    /// Creates a timer that fires at `due`.
    pub(super) fn delay_timer(&self, due: Duration) -> DelayTimer {
        let (clock, at) = (self.clock.clone(), self.epoch + due.min(LONGEST_DELAY));
        DelayTimer { due, sleep: Box::pin(async move { clock.sleep_until(at).await }) }
    }

    /// Runs `step` on the state, and wakes the parked workers that the change concerns.
    pub(super) fn change<R>(&self, step: impl FnOnce(&mut QueueState<T>, Nanos) -> R) -> R {
        self.change_at(self.now(), step)
    }

    /// [`change`](Self::change), at the time `now`.
    #[inline(always)]
    fn change_at<R>(&self, now: Nanos, step: impl FnOnce(&mut QueueState<T>, Nanos) -> R) -> R {
        // Declared before the lock guard, so that leftover keys are dropped after the unlock: their
        // `Drop` is the caller's code.
        let mut batches;
        let mut state = self.state.lock();
        let before = state.core.eligible();
        if self.add_buffer.has_batches() {
            batches = self.add_buffer.take();
            state.add_batches(&mut batches);
        }
        // Delayed keys that are due became ready before the step, so they precede the step's keys.
        state.core.promote(now);
        let result = step(&mut state, now);
        // Selected under the lock: a worker that parks later has seen this change.
        let wakes = (!state.waiters.is_empty()).then(|| state.select_wakes(before));
        // No worker is parked any more: batches may be buffered until the next take again.
        if state.is_buffer_closed && state.waiters.is_empty() {
            state.is_buffer_closed = false;
            self.add_buffer.reopen();
        }
        // Released before the wake-ups: a woken worker takes the same lock.
        drop(state);
        if let Some(wakes) = wakes {
            wakes.wake_all();
        }
        result
    }

    /// Ends an attempt; returns the delay of its retry, if a retry follows.
    pub(super) fn finish(&self, completed: CompletedKey) -> Option<Duration> {
        let (finished, is_closed) =
            self.change(|state, now| (state.finish(completed, now), state.core.is_closed()));
        self.after_finish(is_closed);
        finished?.retry
    }

    /// Ends an attempt and takes the next key in the same step, into the same `claim`; returns
    /// whether a key was ready.
    pub(super) fn finish_and_take(
        &self,
        completed: CompletedKey,
        claim: &mut Claim<T>,
        now: Nanos,
    ) -> bool {
        // Declared before the lock is taken, so that both are dropped after it.
        let (mut finished, mut previous_key) = (None, None);
        let is_closed = self.change_at(now, |state, now| {
            if !state.finish_plain(&completed, now) {
                finished = state.finish(completed, now);
            }
            previous_key = state.take_into(claim, now);
            state.core.is_closed()
        });
        self.after_finish(is_closed);
        previous_key.is_some()
    }

    /// Notifies drains of the end of an attempt, and refreshes the gauges if they report work
    /// in progress.
    fn after_finish(&self, is_closed: bool) {
        // Only a drain waits for ends, and a drain closes the queue first.
        if is_closed {
            self.ended.notify_waiters();
        }
        if self.meter.shows_work() {
            self.observe();
        }
    }

    /// Refreshes the gauges on work in progress.
    pub(super) fn observe(&self) {
        let now = self.now();
        let (mut sum, mut longest) = (Duration::ZERO, Duration::ZERO);
        for since in self.state.lock().core.in_work() {
            let age = Duration::from_nanos(now.saturating_sub(since));
            sum += age;
            longest = longest.max(age);
        }
        self.meter.running(sum, longest);
    }
}

impl<T: Hash + Eq + Clone> QueueState<T> {
    /// Adds batches from the add buffer, as of the time when they were added. The keys that are
    /// left in `batches` are to be dropped outside of the lock.
    #[cold]
    #[inline(never)]
    pub(super) fn add_batches(&mut self, batches: &mut [AddBatch<T>]) {
        let mut most = ADDS_PER_LOCK;
        for (added_at, keys) in batches {
            // Keys that were due before the batch was added go first; at most `ADDS_PER_LOCK` of
            // them per step, so that a flood does not hold the lock for long.
            most -= self.core.promote_some(*added_at, most);
            self.add_each(keys, *added_at);
        }
    }

    /// Adds several keys under one lock; `now` is the time of arrival.
    pub(super) fn add_each(&mut self, keys: &mut [PendingAdd<T>], now: Nanos) {
        for chunk in keys.chunks_mut(LOOKUPS) {
            // Three passes let the lookups of several keys overlap; separate lookups would wait for
            // memory at each pass.
            let mut guesses = [0; LOOKUPS];
            for (guess, ((hash, key), _)) in guesses.iter_mut().zip(chunk.iter()) {
                *guess = key.as_ref().map_or(NO_SLOT, |key| self.core.guess(key, *hash));
            }
            for (guess, ((hash, _), _)) in guesses.iter_mut().zip(chunk.iter()) {
                *guess = self.core.confirmed(*guess, *hash);
            }
            for (guess, ((hash, key), options)) in guesses.into_iter().zip(chunk) {
                self.core.add_guessed((*hash, guess, key), *options, now);
            }
        }
    }

    /// Takes the next key and counts the time for which the key was ready.
    #[inline(always)]
    pub(super) fn take(&mut self, now: Nanos) -> Option<Claim<T>> {
        let claim = self.core.take(now)?;
        self.tally.waited.add(claim.info.waited);
        Some(claim)
    }

    /// [`take`](Self::take) into `claim`, which a worker reuses. If there is a next key, returns
    /// the key that `claim` had before, to be dropped outside of the lock.
    #[inline]
    fn take_into(&mut self, claim: &mut Claim<T>, now: Nanos) -> Option<T> {
        let previous_key = self.core.take_into(claim, now)?;
        self.tally.waited.add(claim.info.waited);
        Some(previous_key)
    }

    /// Ends an attempt in the common case: success, no failure before, no add meanwhile.
    /// Returns whether the case applied; if not, nothing has changed.
    #[inline(always)]
    fn finish_plain(&mut self, completed: &CompletedKey, now: Nanos) -> bool {
        let is_done = completed.completion == Completion::Done;
        let worked = is_done.then(|| self.core.finish_plain(completed.ticket, now)).flatten();
        if let Some(worked) = worked {
            self.tally.worked.add(worked);
        }
        worked.is_some()
    }

    /// Ends an attempt. The result is to be dropped outside of the lock.
    fn finish(&mut self, completed: CompletedKey, now: Nanos) -> Option<Finished<T>> {
        let CompletedKey { ticket, completion, reasons } = completed;
        let finished = self.core.finish(ticket, completion, reasons, now)?;
        self.tally.worked.add(finished.worked);
        Some(finished)
    }

    /// Selects the parked workers to wake after a step; `before` is the number of keys that could
    /// be taken before the step.
    fn select_wakes(&mut self, before: usize) -> Wakes {
        let mut wakes = Wakes::default();
        let ready = self.core.eligible();
        // One wake-up per new key. For a backlog, each notified worker wakes the next. If the
        // backlog grows nevertheless, the notified workers may not be scheduled: another wake-up
        // each time that the backlog doubles.
        let backlog = ready.checked_ilog2().map_or(0, |doublings| doublings as usize + 1);
        let more = ready.saturating_sub(before);
        let wanted = if self.core.exhausted() { usize::MAX } else { more.max(backlog) };
        self.waiters.notify(wanted, &mut wakes);
        self.waiters.notify_timekeeper(self.core.next_due(), &mut wakes);
        wakes
    }
}

impl<T: Hash + Eq + Clone + Send> MetricSource for QueueShared<T> {
    fn collect(&self) {
        self.report_counts();
    }
}

impl<T: Hash + Eq + Clone> QueueShared<T> {
    /// Adds the numbers since the last call to the metrics.
    fn report_counts(&self) {
        self.meter.report(|| self.report());
    }

    /// Moves buffered keys into the queue, and returns the numbers for the metrics.
    fn report(&self) -> QueueReport {
        // Declared before the lock guard, so that leftover keys are dropped after the unlock.
        let mut batches = Vec::new();
        let mut state = self.state.lock();
        batches.extend(self.add_buffer.take());
        state.add_batches(&mut batches);
        let tally = state.tally.take();
        state.core.report(tally)
    }
}

impl<T: Hash + Eq + Clone> Drop for QueueShared<T> {
    fn drop(&mut self) {
        // Numbers that no scrape has read yet are counted; the depths become 0, because the ready
        // keys are dropped with the queue.
        self.meter.report(|| {
            let mut report = self.report();
            report.depths.iter_mut().for_each(|(_, ready)| *ready = 0);
            report
        });
        if self.meter.shows_work() {
            self.meter.running(Duration::ZERO, Duration::ZERO);
        }
    }
}
