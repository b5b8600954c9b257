//! The asynchronous queue: locking, waiting, wake-ups and metrics.
//!
//! One lock guards the state and the [`Waiters`]. A step that changes the state selects, under the
//! lock, the parked workers to wake; their wakers run after the lock is released. The numbers for
//! the metrics are counted under the same lock. Keys that arrive while no worker is parked may wait
//! in the [`AddBuffer`]; each step that reads the state first moves them into the queue.

use std::fmt;
use std::future::poll_fn;
use std::hash::{BuildHasher, Hash};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use foldhash::fast::FixedState;
use tokio::time::Instant;

use super::add_buffer::{AddBatch, AddBuffer, PendingAdd};
use super::core::{
    Claim, Core, Finished, NOWHERE, Nanos, Notes, QueueCounts, Ticket, Verdict, nanos,
};
use super::meter::{Meter, QueueReport, Tally};
use super::waiters::{DelayTimer, WaiterId, Waiters, Wakes};
use super::{AddOptions, KeyState, QueueSettings, Work};
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;
use windlass_core::metrics::Gathers;
use windlass_core::rng::Rng;
use windlass_core::sync::{CachePadded, Mutex, Notify};

/// Longest delay of a timer, ten years: an `Instant` cannot represent much more.
const FAR_AWAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Most keys added per lock acquisition: other users of the lock wait for less than half a
/// millisecond.
const AT_ONCE: usize = 1024;
/// Number of keys whose table look-ups overlap.
const TOGETHER: usize = 32;

/// A set of keys, each worked on by one worker at a time; cheap to clone. Waits and delays use
/// tokio's timer, so the queue needs a runtime with a timer.
///
/// - Between [`get`](Self::get) and the verdict on its [`Work`] a key is handed to no other worker.
/// - A key added while in work is handed out again after the verdict, in the place that it took
///   when it was added.
/// - Ready keys are handed out by [priority](AddOptions::priority); those of one priority in the
///   order in which they became ready. A key that has waited for
///   [the ageing time](QueueSettings::ageing) is no longer passed over.
/// - Keys whose last work failed hold at most half of the workers, at least one.
/// - Of several delays for one key the earliest wins; an immediate add beats a delayed one.
pub struct WorkQueue<T: Hash + Eq + Clone> {
    shared: Arc<Shared<T>>,
}

/// The queue behind all its handles.
pub(super) struct Shared<T: Hash + Eq + Clone> {
    inside: Mutex<Inside<T>>,
    /// Lock order: this lock is taken while that of `inside` is held, never the other way round.
    inbox: CachePadded<AddBuffer<T>>,
    /// Hasher of keys. Its seed differs per queue, so that keys cannot be chosen to collide.
    hasher: FixedState,
    /// Time at which the queue was made.
    pub(super) epoch: Instant,
    clock: Clock,
    pub(super) rng: Rng,
    meter: Meter,
    /// Reasons of keys that come back after a failure.
    pub(super) retried: u64,
    /// Reasons of keys that come back after a success.
    pub(super) requeued: u64,
    /// Notified when work ended or the queue was shut down; a drain then looks again.
    ended: Notify,
}

/// The state under the queue's lock.
struct Inside<T> {
    core: Core<T>,
    /// The parked workers.
    room: Waiters,
    /// Durations since the last report to the metrics.
    tally: Tally,
    /// Whether the inbox is shut; it is while any worker is parked.
    is_shut: bool,
}

/// The end of a piece of work: its key's ticket, the verdict and the reasons to come back.
#[derive(Debug)]
pub(super) struct End {
    pub(super) ticket: Ticket,
    pub(super) verdict: Verdict,
    /// Reasons of the key's next turn, if the verdict leads to one.
    pub(super) reasons: u64,
}

impl<T: Hash + Eq + Clone> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Hash + Eq + Clone> fmt::Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl<T: Hash + Eq + Clone + Send + 'static> WorkQueue<T> {
    /// Returns an empty queue.
    ///
    /// `environment` supplies the clock, the registry of the metrics, and the random numbers for
    /// the delays of retries, from a stream that the queue's name selects.
    pub fn new(settings: QueueSettings, environment: &Environment) -> Self {
        Self::noting(settings, environment, None)
    }

    /// Returns an empty queue of keys that note where the queue keeps them.
    pub(crate) fn noting(
        settings: QueueSettings,
        environment: &Environment,
        notes: Option<Notes<T>>,
    ) -> Self {
        let QueueSettings { name, controller, workers, retry, ageing, retried, requeued } =
            settings;
        let rng = environment.rng.fork(&name);
        let meter = Meter::new(&environment.metrics, &name, &controller);
        let shared = Arc::new(Shared {
            inside: Mutex::new(Inside {
                core: Core::new(workers, retry, ageing, notes),
                room: Waiters::default(),
                tally: meter.tally(),
                is_shut: false,
            }),
            inbox: CachePadded::new(AddBuffer::new()),
            hasher: FixedState::with_seed(rng.next_u64()),
            epoch: environment.clock.now(),
            clock: environment.clock.clone(),
            rng,
            meter,
            retried,
            requeued,
            ended: Notify::new(),
        });
        // Weak: the metrics must not keep the queue alive.
        let source: Weak<Shared<T>> = Arc::downgrade(&shared);
        environment.metrics.gather_from(source);
        Self { shared }
    }
}

impl<T: Hash + Eq + Clone> WorkQueue<T> {
    /// Adds `key`, to be worked on as soon as possible, with the defaults of [`AddOptions`].
    ///
    /// No add has an effect after [`shutdown`](Self::shutdown).
    pub fn add(&self, key: T) {
        self.add_with(key, AddOptions::new());
    }

    /// Adds `key`, to be worked on after `delay`, or earlier if another add asks for
    /// that. A `delay` of zero is [`add`](Self::add).
    pub fn add_after(&self, key: T, delay: Duration) {
        self.add_with(key, AddOptions::new().after(delay));
    }

    /// Adds `key` with a priority, reasons and a delay. If the key is in the queue already, the
    /// adds merge: the higher priority, all the reasons, the earlier time.
    pub fn add_with(&self, key: T, options: AddOptions) {
        let mut key = self.hashed(key);
        self.shared.change(|inside, now| inside.core.add_hashed(&mut key, options, now));
    }

    /// [`add`](Self::add) for several keys: as many parked workers wake as there are new keys. When
    /// no worker is parked, the next user of the queue takes the keys in.
    pub fn add_all(&self, keys: impl IntoIterator<Item = T>) {
        self.add_each(keys.into_iter().map(|key| (key, AddOptions::new())));
    }

    /// [`add_with`](Self::add_with) for several keys: as many parked workers wake as there are new
    /// keys. When no worker is parked, the next user of the queue takes the keys in.
    pub fn add_each(&self, keys: impl IntoIterator<Item = (T, AddOptions)>) {
        // The iterator is the caller's code: run it before any lock is taken.
        let keys = keys.into_iter().map(|(key, options)| (self.hashed(key), options));
        let keys: Vec<_> = keys.collect();
        if keys.is_empty() {
            return;
        }
        let posted = self.shared.inbox.post(self.shared.now(), keys);
        let Err(mut keys) = posted else { return };
        // Chunks: workers get the lock in between.
        for some in keys.chunks_mut(AT_ONCE) {
            self.shared.change(|inside, now| inside.add_each(some, now));
        }
    }

    /// Hashes a key; called before the lock is taken.
    fn hashed(&self, key: T) -> (u64, Option<T>) {
        (self.shared.hasher.hash_one(&key), Some(key))
    }

    /// Waits for a key; `None` once the queue is shut down and has handed out all its keys.
    ///
    /// # Cancel safety
    /// Safe: no key is lost when the future is dropped.
    pub async fn get(&self) -> Option<Work<T>> {
        let mut getter = Getter { shared: &self.shared, bed: None, alarm: None };
        poll_fn(|context| getter.poll(context)).await
    }

    /// Returns a key if one is ready now; does not wait. `None` says nothing about a shutdown: only
    /// [`get`](Self::get) distinguishes an empty queue from an ended one.
    pub fn try_get(&self) -> Option<Work<T>> {
        let taken = self.shared.change(Inside::take)?;
        Some(Work::new(Arc::clone(&self.shared), taken))
    }

    /// Shuts the queue down: it accepts no more keys. Keys that are ready, or were added again
    /// while in work, are still handed out; delayed keys and retries are dropped.
    pub fn shutdown(&self) {
        drop(self.shared.change(|inside, _| inside.core.close()));
        self.shared.ended.notify_waiters();
    }

    /// Shuts the queue down and waits until no key is ready or in work; false when that took longer
    /// than `limit`.
    ///
    /// # Cancel safety
    /// Safe; the queue stays shut down.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.shutdown();
        let quiet = async {
            loop {
                // Registered before the look: an end between the look and the wait would be missed
                // otherwise.
                let mut ended = pin!(self.shared.ended.notified());
                ended.as_mut().enable();
                if self.shared.inside.lock().core.quiet() {
                    return;
                }
                ended.await;
            }
        };
        self.shared.clock.timeout(limit, quiet).await.is_some()
    }

    /// Returns the number of keys in each state.
    pub fn counts(&self) -> QueueCounts {
        self.shared.change(|inside, _| inside.core.counts())
    }

    /// Describes at most `limit` keys: those in work, ready, backing off and delayed; in each place
    /// by priority, then the longest there or the next due first. Looks at every key under the
    /// lock, so it is meant for debug dumps and not for programs.
    pub fn describe(&self, limit: usize) -> Vec<KeyState<T>> {
        self.shared.change(|inside, now| inside.core.describe(limit, now))
    }

    #[cfg(test)]
    pub(super) fn has_mail(&self) -> bool {
        self.shared.inbox.has_mail()
    }

    /// Refreshes the gauges on work in progress; called now and then while a piece of work is long.
    pub fn observe(&self) {
        self.shared.observe();
    }
}

impl<T: Hash + Eq + Clone> Shared<T> {
    /// Returns the time since the queue was made.
    pub(super) fn now(&self) -> Nanos {
        self.at(self.clock.now())
    }

    /// Converts a time to nanoseconds since the queue was made.
    pub(super) fn at(&self, time: Instant) -> Nanos {
        nanos(time.saturating_duration_since(self.epoch))
    }

    /// Creates a timer that fires at `due`.
    fn alarm(&self, due: Duration) -> DelayTimer {
        let (clock, at) = (self.clock.clone(), self.epoch + due.min(FAR_AWAY));
        DelayTimer { due, bell: Box::pin(async move { clock.sleep_until(at).await }) }
    }

    /// Runs `step` on the state, and wakes the parked workers that the change concerns.
    fn change<R>(&self, step: impl FnOnce(&mut Inside<T>, Nanos) -> R) -> R {
        self.change_at(self.now(), step)
    }

    /// [`change`](Self::change), at the time `now`.
    #[inline(always)]
    fn change_at<R>(&self, now: Nanos, step: impl FnOnce(&mut Inside<T>, Nanos) -> R) -> R {
        // Declared before the lock guard, so that leftover keys are dropped after it: their `Drop`
        // is the caller's code.
        let mut letters;
        let mut inside = self.inside.lock();
        let before = inside.core.eligible();
        if self.inbox.has_mail() {
            letters = self.inbox.take();
            inside.take_in(&mut letters);
        }
        // Delayed keys that are due became ready before the step, so they precede its keys.
        inside.core.promote(now);
        let result = step(&mut inside, now);
        // Selected under the lock: a worker that parks later has seen this change.
        let calls = (!inside.room.is_empty()).then(|| inside.call(before));
        // No worker is parked any more: batches may wait for the next take again.
        if inside.is_shut && inside.room.is_empty() {
            inside.is_shut = false;
            self.inbox.open();
        }
        // Released before the wake-ups: a woken worker takes the same lock.
        drop(inside);
        if let Some(calls) = calls {
            calls.make();
        }
        result
    }

    /// Ends a piece of work; returns the delay of its retry, if there is one.
    pub(super) fn finish(&self, end: End) -> Option<Duration> {
        let (finished, is_closed) =
            self.change(|inside, now| (inside.finish(end, now), inside.core.is_closed()));
        self.finished(is_closed);
        finished?.retry
    }

    /// Ends a piece of work and takes the next key in the same step, into the same `hand`; returns
    /// whether there is one.
    pub(super) fn finish_and_take(&self, end: End, hand: &mut Claim<T>, now: Nanos) -> bool {
        // Declared before the lock is taken, so that both are dropped after it.
        let (mut finished, mut held) = (None, None);
        let is_closed = self.change_at(now, |inside, now| {
            if !inside.finish_plain(&end, now) {
                finished = inside.finish(end, now);
            }
            held = inside.take_into(hand, now);
            inside.core.is_closed()
        });
        self.finished(is_closed);
        held.is_some()
    }

    /// Notifies drains of the end of a piece of work, and refreshes the gauges if they report work
    /// in progress.
    fn finished(&self, is_closed: bool) {
        // Only a drain waits for ends, and a drain closes the queue first.
        if is_closed {
            self.ended.notify_waiters();
        }
        if self.meter.shows_work() {
            self.observe();
        }
    }

    fn observe(&self) {
        let now = self.now();
        let (mut sum, mut longest) = (Duration::ZERO, Duration::ZERO);
        for since in self.inside.lock().core.in_work() {
            let age = Duration::from_nanos(now.saturating_sub(since));
            sum += age;
            longest = longest.max(age);
        }
        self.meter.running(sum, longest);
    }
}

impl<T: Hash + Eq + Clone> Inside<T> {
    /// Adds the keys that waited in the inbox, as of the time when they arrived. Leftover keys in
    /// `letters` are to be dropped outside of the lock.
    #[cold]
    #[inline(never)]
    fn take_in(&mut self, letters: &mut [AddBatch<T>]) {
        let mut most = AT_ONCE;
        for (came, keys) in letters {
            // Keys that were due before the batch arrived go first; at most `AT_ONCE` of them per
            // step, so that a flood does not hold the lock for long.
            most -= self.core.promote_some(*came, most);
            self.add_each(keys, *came);
        }
    }

    /// Adds several keys under one lock; `now` is the time of their arrival.
    fn add_each(&mut self, keys: &mut [PendingAdd<T>], now: Nanos) {
        for some in keys.chunks_mut(TOGETHER) {
            // Three passes let the look-ups of several keys overlap; one key at a time would wait
            // for memory at each of them.
            let mut guesses = [0; TOGETHER];
            for (guess, ((hash, key), _)) in guesses.iter_mut().zip(some.iter()) {
                *guess = key.as_ref().map_or(NOWHERE, |key| self.core.guess(key, *hash));
            }
            for (guess, ((hash, _), _)) in guesses.iter_mut().zip(some.iter()) {
                *guess = self.core.confirmed(*guess, *hash);
            }
            for (guess, ((hash, key), options)) in guesses.into_iter().zip(some) {
                self.core.add_guessed((*hash, guess, key), *options, now);
            }
        }
    }

    /// Takes the next key and counts the time that it was ready.
    #[inline(always)]
    fn take(&mut self, now: Nanos) -> Option<Claim<T>> {
        let taken = self.core.take(now)?;
        self.tally.waited.add(taken.facts.waited);
        Some(taken)
    }

    /// [`take`](Self::take) into `hand`, the claim that a worker reuses. If there is a next key,
    /// returns the key that `hand` had before, to be dropped outside of the lock.
    #[inline]
    fn take_into(&mut self, hand: &mut Claim<T>, now: Nanos) -> Option<T> {
        let left = self.core.take_into(hand, now)?;
        self.tally.waited.add(hand.facts.waited);
        Some(left)
    }

    /// Ends a piece of work in the common case: success, no failure before, no add meanwhile.
    /// Returns whether the case applied; if not, nothing has changed.
    #[inline(always)]
    fn finish_plain(&mut self, end: &End, now: Nanos) -> bool {
        let is_done = end.verdict == Verdict::Done;
        let worked = is_done.then(|| self.core.finish_plain(end.ticket, now)).flatten();
        if let Some(worked) = worked {
            self.tally.worked.add(worked);
        }
        worked.is_some()
    }

    /// Ends a piece of work. The result is to be dropped outside of the lock.
    fn finish(&mut self, end: End, now: Nanos) -> Option<Finished<T>> {
        let finished = self.core.finish(end.ticket, end.verdict, end.reasons, now)?;
        self.tally.worked.add(finished.worked);
        Some(finished)
    }

    /// Selects the parked workers to wake after a step; `before` is the number of keys that could
    /// be taken before the step.
    fn call(&mut self, before: usize) -> Wakes {
        let mut calls = Wakes::default();
        let ready = self.core.eligible();
        // One wake-up per new key. For a backlog, each woken worker wakes the next. If the backlog
        // grows nevertheless, the woken workers may be unable to run: one more wake-up each time
        // that the backlog doubles.
        let backlog = ready.checked_ilog2().map_or(0, |doublings| doublings as usize + 1);
        let more = ready.saturating_sub(before);
        let wanted = if self.core.exhausted() { usize::MAX } else { more.max(backlog) };
        self.room.call(wanted, &mut calls);
        self.room.expect(self.core.next_due(), &mut calls);
        calls
    }
}

impl<T: Hash + Eq + Clone + Send> Gathers for Shared<T> {
    fn tell(&self) {
        self.report_counts();
    }
}

impl<T: Hash + Eq + Clone> Shared<T> {
    /// Adds the numbers since the last call to the metrics.
    fn report_counts(&self) {
        self.meter.report(|| self.report());
    }

    /// Takes the inbox in and returns the numbers for the metrics.
    fn report(&self) -> QueueReport {
        // Declared before the lock guard, so that leftover keys are dropped after it.
        let mut letters = Vec::new();
        let mut inside = self.inside.lock();
        letters.extend(self.inbox.take());
        inside.take_in(&mut letters);
        let tally = inside.tally.take();
        inside.core.report(tally)
    }
}

impl<T: Hash + Eq + Clone> Drop for Shared<T> {
    fn drop(&mut self) {
        // Numbers that no scrape has read yet are counted; the depths become 0, because the ready
        // keys are gone.
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

/// A worker that waits for a key.
struct Getter<'a, T: Hash + Eq + Clone> {
    shared: &'a Arc<Shared<T>>,
    /// Its place among the parked workers; `None` while it is not parked.
    bed: Option<WaiterId>,
    /// The delay timer, while this worker is the timekeeper.
    alarm: Option<DelayTimer>,
}

/// Result of one look into the queue.
enum Look<T> {
    /// The worker has taken a key.
    Claim(Claim<T>),
    /// The queue is shut down and has handed out all its keys.
    Ended,
    /// No key is ready; another worker waits for the next delayed key.
    Sleep,
    /// No key is ready; this worker waits for the next delayed key, due at that time.
    Mind(Option<Duration>),
}

impl<T: Hash + Eq + Clone> Getter<'_, T> {
    /// Polls for a key, and for the timer while this worker is the timekeeper.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Work<T>>> {
        loop {
            let due = match self.look(context.waker()) {
                Look::Claim(taken) => {
                    return Poll::Ready(Some(Work::new(Arc::clone(self.shared), taken)));
                }
                Look::Ended => return Poll::Ready(None),
                Look::Sleep | Look::Mind(None) => return Poll::Pending,
                Look::Mind(Some(due)) => due,
            };
            // A timer that fires too early is kept: one extra look costs less than a new timer each
            // time.
            if self.alarm.as_ref().is_none_or(|alarm| alarm.due > due) {
                self.alarm = Some(self.shared.alarm(due));
            }
            if let Some(alarm) = &mut self.alarm
                && alarm.bell.as_mut().poll(context).is_pending()
            {
                return Poll::Pending;
            }
            // The timer fired: the next look finds the key that is due, or a later time.
            self.alarm = None;
        }
    }

    /// Takes a key, or parks the worker.
    fn look(&mut self, waker: &Waker) -> Look<T> {
        let Self { shared, bed, alarm } = self;
        // Declared before the lock is taken, so that they are dropped after it.
        let (mut gone, mut letters) = (None, Vec::new());
        shared.change(|inside, now| {
            let mut taken = inside.take(now);
            if taken.is_none() && !inside.is_shut {
                // Shut in the same step as the last look: keys that arrive from now on go to the
                // queue and wake this worker; none is left in the inbox while all workers are
                // parked.
                inside.is_shut = true;
                letters = shared.inbox.shut();
                inside.take_in(&mut letters);
                taken = inside.take(now);
            }
            let Inside { core, room, .. } = inside;
            let end = match taken {
                Some(taken) => Look::Claim(taken),
                None if core.exhausted() => Look::Ended,
                None => {
                    let here = room.park(*bed, waker, &mut gone);
                    *bed = Some(here);
                    let due = core.next_due();
                    let (minds, left) = room.mind(here, due);
                    *alarm = alarm.take().or(left);
                    return if minds { Look::Mind(due) } else { Look::Sleep };
                }
            };
            if let Some(bed) = bed.take() {
                room.unpark(bed, alarm.take(), &mut gone);
            }
            end
        })
    }
}

impl<T: Hash + Eq + Clone> Drop for Getter<'_, T> {
    fn drop(&mut self) {
        // A waker that this worker consumed is passed on by `change`: the step counts the ready
        // keys again and wakes another worker (G-Q5: with idle workers and ready keys, no worker
        // waits).
        let Some(bed) = self.bed.take() else { return };
        let (mut gone, alarm) = (None, self.alarm.take());
        self.shared.change(|inside, _| inside.room.unpark(bed, alarm, &mut gone));
    }
}
