//! The queue as tasks see it: waiting, waking, metrics.
//!
//! Sleeping workers wait for one notification each. One of them, the timekeeper, also waits for the
//! next delayed key; when it leaves it hands that over.

use std::fmt;
use std::hash::Hash;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::core::{Core, QueueCounts, Ticket, Verdict};
use super::meter::Meter;
use super::{Adding, KeyState, RetryPolicy, Work};
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::seams::Seams;
use crate::sync::{AtomicUsize, Mutex, Notified, Notify, Ordering};

/// Delays beyond this are as good as never; instants cannot count much further.
const FAR_AWAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// Longer than a burst of events lasts, shorter than a start-up with many objects.
const AGEING: Duration = Duration::from_secs(10);

/// What a queue is made for.
#[derive(Clone, Debug)]
#[must_use]
pub struct QueueSettings {
    name: String,
    controller: String,
    workers: usize,
    retry: RetryPolicy,
    ageing: Duration,
    /// Reasons of keys that come back after a failure, and after a success.
    retried: u64,
    requeued: u64,
}

impl QueueSettings {
    /// A queue of that name (it labels the metrics), for one worker, retrying for ever.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            controller: name.clone(),
            name,
            workers: 1,
            retry: RetryPolicy::forever(),
            ageing: AGEING,
            retried: 0,
            requeued: 0,
        }
    }

    /// Label `controller` of the metrics. Default: the queue's name.
    pub fn controller(mut self, controller: impl Into<String>) -> Self {
        self.controller = controller.into();
        self
    }

    /// How many workers will take keys. Failing keys may hold at most half of them, at least one.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// How failed keys are retried.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// After how long a key is no longer passed over for its low [priority](super::Priority): from then on one of
    /// four turns goes to the key that has waited the longest. Default: 10 s.
    pub fn ageing(mut self, ageing: Duration) -> Self {
        self.ageing = ageing;
        self
    }

    /// The [reasons](Adding::reasons) of a key that comes back because its work failed. Default: none.
    pub fn retried_for(mut self, reasons: u64) -> Self {
        self.retried = reasons;
        self
    }

    /// The [reasons](Adding::reasons) of a key that comes back because its work asked for it
    /// ([`Work::after`]). Default: none.
    pub fn requeued_for(mut self, reasons: u64) -> Self {
        self.requeued = reasons;
        self
    }
}

/// A set of keys that each get worked on by one worker at a time; cheap to clone.
///
/// - Between [`get`](Self::get) and the verdict on its [`Work`] a key is handed to nobody else.
/// - A key added while in work is handed out again after the verdict, in the place it then took.
/// - Ready keys are handed out by [priority](Adding::priority); those of one priority in the order in which they
///   became ready. A key that has waited for [the ageing time](QueueSettings::ageing) is no longer
///   passed over.
/// - Keys whose last work failed hold at most half of the workers, at least one.
/// - Of several delays for one key the earliest wins; an immediate add beats a delayed one.
pub struct WorkQueue<T: Hash + Eq + Clone> {
    shared: Arc<Shared<T>>,
}

pub(super) struct Shared<T> {
    core: Mutex<Core<T>>,
    pub(super) epoch: Instant,
    clock: Clock,
    pub(super) entropy: Entropy,
    meter: Meter,
    pub(super) retried: u64,
    pub(super) requeued: u64,
    /// One permit per key that became takeable while somebody was asleep.
    ready: Notify,
    /// Workers that wait in `get`, and those about to. Counted before their last look, so whoever
    /// adds a key after it sees them.
    sleepers: AtomicUsize,
    /// The timekeeper's next deadline moved.
    rearm: Notify,
    /// Something ended; drains look again.
    ended: Notify,
    /// Is somebody the timekeeper?
    kept: Mutex<bool>,
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

impl<T: Hash + Eq + Clone> WorkQueue<T> {
    /// An empty queue.
    pub fn new(settings: QueueSettings, seams: &Seams) -> Self {
        let QueueSettings { name, controller, workers, retry, ageing, retried, requeued } =
            settings;
        let entropy = seams.entropy.fork(&name);
        let shared = Shared {
            core: Mutex::new(Core::new(workers, retry, ageing, entropy.next_u64())),
            epoch: seams.clock.now(),
            clock: seams.clock.clone(),
            entropy,
            meter: Meter::new(&seams.metrics, &name, &controller),
            retried,
            requeued,
            ready: Notify::new(),
            sleepers: AtomicUsize::new(0),
            rearm: Notify::new(),
            ended: Notify::new(),
            kept: Mutex::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Wants `key` worked on as soon as possible. Does nothing after [`shutdown`](Self::shutdown).
    pub fn add(&self, key: T) {
        self.add_with(key, Adding::new());
    }

    /// Wants `key` worked on after `delay`, or earlier if that was asked for already.
    pub fn add_after(&self, key: T, delay: Duration) {
        self.add_with(key, Adding::new().after(delay));
    }

    /// Wants `key` worked on as `adding` says. If it is in the queue already, the wishes merge: the
    /// higher priority, all the reasons, the earlier time.
    pub fn add_with(&self, key: T, adding: Adding) {
        self.shared.change(|core, now| core.add(key, adding, now));
    }

    /// [`add`](Self::add) for several keys: one pass through the lock, and as many sleeping workers
    /// wake as there are new ones.
    pub fn add_all(&self, keys: impl IntoIterator<Item = T>) {
        self.add_each(keys.into_iter().map(|key| (key, Adding::new())));
    }

    /// [`add_with`](Self::add_with) for several keys: one pass through the lock, and as many sleeping
    /// workers wake as there are new ones.
    pub fn add_each(&self, keys: impl IntoIterator<Item = (T, Adding)>) {
        // The iterator is the caller's code: run it before the lock is taken.
        let keys: Vec<(T, Adding)> = keys.into_iter().collect();
        if keys.is_empty() {
            return;
        }
        self.shared.change(|core, now| {
            keys.into_iter().for_each(|(key, adding)| core.add(key, adding, now));
        });
    }

    /// Waits for a key; `None` once the queue is shut down and has handed out what it held.
    ///
    /// # Cancel safety
    /// Safe: no key is lost when the future is dropped.
    pub async fn get(&self) -> Option<Work<T>> {
        let mut keeper = None;
        loop {
            if let Some(answer) = self.poll_take() {
                return answer;
            }
            let _asleep = Sleeper::new(&self.shared.sleepers);
            let mut notified = pin!(self.shared.ready.notified());
            notified.as_mut().enable();
            // A key that came between the look and the registration woke nobody: look again.
            if let Some(answer) = self.poll_take() {
                return answer;
            }
            // Kept until it leaves: handing the role over at every turn would wake itself for ever.
            keeper = keeper.or_else(|| Timekeeper::take(&self.shared));
            match &keeper {
                Some(keeper) => keeper.wait(notified).await,
                None => notified.await,
            }
        }
    }

    /// A key if one is ready now; does not wait.
    pub fn try_get(&self) -> Option<Work<T>> {
        self.poll_take().flatten()
    }

    fn poll_take(&self) -> Option<Option<Work<T>>> {
        let (taken, exhausted) = self
            .shared
            .change(|core, now| (core.take(now).map(|taken| (taken, now)), core.exhausted()));
        match taken {
            Some((taken, now)) => {
                self.shared.meter.taken(taken.waited);
                Some(Some(Work::new(Arc::clone(&self.shared), taken, now)))
            }
            None => exhausted.then_some(None),
        }
    }

    /// Accepts no more keys. Keys that are ready, or were added again while in work, are still
    /// handed out; delayed ones and retries are dropped.
    pub fn shutdown(&self) {
        self.shared.change(|core, _| core.close());
        self.shared.ready.notify_waiters();
        self.shared.ended.notify_waiters();
    }

    /// Shuts down and waits until nothing is ready or in work; false when that took longer than
    /// `limit`.
    ///
    /// # Cancel safety
    /// Safe; the queue stays shut down.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.shutdown();
        let quiet = async {
            loop {
                let mut ended = pin!(self.shared.ended.notified());
                ended.as_mut().enable();
                if self.shared.core.lock().quiet() {
                    return;
                }
                ended.await;
            }
        };
        self.shared.clock.within(limit, quiet).await.is_some()
    }

    /// How many keys are where.
    pub fn counts(&self) -> QueueCounts {
        self.shared.change(|core, _| core.counts())
    }

    /// Up to `limit` keys and what is known of each: those in work, ready, backing off and delayed;
    /// in each place by priority, then the longest there or the next due first. Looks at every key
    /// under the lock: for people, not for programs.
    pub fn describe(&self, limit: usize) -> Vec<KeyState<T>> {
        self.shared.change(|core, now| core.describe(limit, now))
    }

    /// Refreshes the gauges on work in progress; called now and then while work is long.
    pub fn observe(&self) {
        self.shared.observe();
    }
}

impl<T: Hash + Eq + Clone> Shared<T> {
    fn now(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.epoch)
    }

    /// Runs `step` on the state and wakes whom that concerns.
    fn change<R>(&self, step: impl FnOnce(&mut Core<T>, Duration) -> R) -> R {
        let now = self.now();
        let mut core = self.core.lock();
        let before = core.gauges();
        // What is due became ready before whatever happens now.
        let promoted = core.promote(now);
        let result = step(&mut core, now);
        let after = core.gauges();
        core.tell_depths(|priority, by| self.meter.depth(priority, by));
        drop(core);
        // Who takes a key was woken for that one: what became due meanwhile is for another.
        let more = after.eligible.saturating_sub(before.eligible);
        self.wake(more.max(promoted.min(after.eligible)));
        let earlier = |due| before.next_due.is_none_or(|before| due < before);
        if after.next_due.is_some_and(earlier) {
            // Without a timekeeper the woken sleeper, if there is one, becomes it.
            let kept = *self.kept.lock();
            if kept { self.rearm.notify_one() } else { self.wake(1) }
        }
        self.meter.changed(&before, &after);
        result
    }

    /// Wakes so many sleeping workers, or all.
    fn wake(&self, most: usize) {
        if most == 0 {
            return;
        }
        for _ in 0..most.min(self.sleepers.load(Ordering::SeqCst)) {
            self.ready.notify_one();
        }
    }

    pub(super) fn finish(
        &self,
        ticket: Ticket,
        verdict: Verdict,
        reasons: u64,
    ) -> Option<Duration> {
        let (finished, closed, exhausted) = self.change(|core, now| {
            let finished = core.finish(ticket, verdict, reasons, now);
            (finished, core.is_closed(), core.exhausted())
        });
        // Only a drain waits for ends, and it closes the queue first.
        if closed {
            self.ended.notify_waiters();
        }
        if exhausted {
            self.ready.notify_waiters();
        }
        let finished = finished?;
        self.meter.worked(finished.worked);
        if self.meter.tells_of_work() {
            self.observe();
        }
        finished.retry
    }

    fn observe(&self) {
        let now = self.now();
        let (mut sum, mut longest) = (Duration::ZERO, Duration::ZERO);
        for since in self.core.lock().in_work() {
            let age = now.saturating_sub(since);
            sum += age;
            longest = longest.max(age);
        }
        self.meter.running(sum, longest);
    }
}

/// Counts one worker as asleep.
struct Sleeper<'a> {
    sleepers: &'a AtomicUsize,
}

impl<'a> Sleeper<'a> {
    fn new(sleepers: &'a AtomicUsize) -> Self {
        sleepers.fetch_add(1, Ordering::SeqCst);
        Self { sleepers }
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The one sleeping worker that also waits for delayed keys.
struct Timekeeper<'a, T: Hash + Eq + Clone> {
    shared: &'a Shared<T>,
}

impl<'a, T: Hash + Eq + Clone> Timekeeper<'a, T> {
    fn take(shared: &'a Shared<T>) -> Option<Self> {
        let mut kept = shared.kept.lock();
        let free = !std::mem::replace(&mut *kept, true);
        drop(kept);
        free.then(|| Self { shared })
    }

    /// Waits for a notification, or until the next delayed key is due.
    async fn wait(&self, mut notified: Pin<&mut Notified<'_>>) {
        loop {
            let mut rearm = pin!(self.shared.rearm.notified());
            rearm.as_mut().enable();
            let due = self.shared.core.lock().next_due();
            let alarm = async {
                match due {
                    Some(due) => {
                        let at = self.shared.epoch + due.min(FAR_AWAY);
                        self.shared.clock.sleep_until(at).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = notified.as_mut() => return,
                () = rearm => {}
                () = alarm => return,
            }
        }
    }
}

impl<T: Hash + Eq + Clone> Drop for Timekeeper<'_, T> {
    fn drop(&mut self) {
        *self.shared.kept.lock() = false;
        if self.shared.core.lock().next_due().is_some() {
            self.shared.wake(1);
        }
    }
}
