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

use super::RetryPolicy;
use super::core::{Core, QueueCounts, Taken, Ticket, Verdict};
use super::meter::Meter;
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::seams::Seams;
use crate::sync::{AtomicUsize, Mutex, Notified, Notify, Ordering};

/// Delays beyond this are as good as never; instants cannot count much further.
const FAR_AWAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// What a queue is made for.
#[derive(Clone, Debug)]
#[must_use]
pub struct QueueSettings {
    name: String,
    controller: String,
    workers: usize,
    retry: RetryPolicy,
}

impl QueueSettings {
    /// A queue of that name (it labels the metrics), for one worker, retrying for ever.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { controller: name.clone(), name, workers: 1, retry: RetryPolicy::forever() }
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
}

/// A set of keys that each get worked on by one worker at a time; cheap to clone.
///
/// - Between [`get`](Self::get) and the verdict on its [`Work`] a key is handed to nobody else.
/// - A key added while in work is handed out again after the verdict, in the place it then took.
/// - Ready keys are handed out in the order in which they became ready.
/// - Of several delays for one key the earliest wins; an immediate add beats a delayed one.
pub struct WorkQueue<T: Hash + Eq + Clone> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    core: Mutex<Core<T>>,
    epoch: Instant,
    clock: Clock,
    entropy: Entropy,
    meter: Meter,
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
        let QueueSettings { name, controller, workers, retry } = settings;
        let entropy = seams.entropy.fork(&name);
        let shared = Shared {
            core: Mutex::new(Core::new(workers, retry, entropy.next_u64())),
            epoch: seams.clock.now(),
            clock: seams.clock.clone(),
            entropy,
            meter: Meter::new(&seams.metrics, &name, &controller),
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
        self.shared.change(|core, now| core.add(key, now));
    }

    /// [`add`](Self::add) for several keys: one pass through the lock, and as many sleeping workers
    /// wake as there are new ones.
    pub fn add_all(&self, keys: impl IntoIterator<Item = T>) {
        // The iterator is the caller's code: run it before the lock is taken.
        let keys: Vec<T> = keys.into_iter().collect();
        if keys.is_empty() {
            return;
        }
        self.shared.change(|core, now| keys.into_iter().for_each(|key| core.add(key, now)));
    }

    /// Wants `key` worked on after `delay`, or earlier if that was asked for already.
    pub fn add_after(&self, key: T, delay: Duration) {
        self.shared.change(|core, now| core.add_at(key, now.saturating_add(delay), now));
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
            Some((Taken { key, ticket, failures, waited }, now)) => {
                self.shared.meter.taken(waited);
                let queue = Arc::clone(&self.shared);
                Some(Some(Work { queue, key, ticket, failures, taken: now, open: true }))
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

    fn finish(&self, ticket: Ticket, verdict: Verdict) -> Option<Duration> {
        let (finished, closed, exhausted) = self.change(|core, now| {
            (core.finish(ticket, verdict, now), core.is_closed(), core.exhausted())
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

/// A key in work. Give a verdict; dropped without one (a panic, a cancelled task) it is a failure.
#[must_use = "dropping it counts as a failure"]
pub struct Work<T: Hash + Eq + Clone> {
    queue: Arc<Shared<T>>,
    key: T,
    ticket: Ticket,
    failures: u32,
    taken: Duration,
    open: bool,
}

impl<T: Hash + Eq + Clone> Work<T> {
    /// The key.
    pub fn key(&self) -> &T {
        &self.key
    }

    /// Failures in a row before this one.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// When the key was taken.
    pub(crate) fn taken(&self) -> Instant {
        self.queue.epoch + self.taken
    }

    /// Success: the key rests until it is added again.
    pub fn done(self) {
        self.finish(Verdict::Done);
    }

    /// Success: the key comes back after `delay`, or earlier when it is added.
    pub fn after(self, delay: Duration) {
        self.finish(Verdict::After(delay));
    }

    /// Failure: the key comes back after its backoff. Returns the delay, `None` when the policy gave
    /// up on it.
    pub fn retry(self) -> Option<Duration> {
        let draw = self.queue.entropy.unit();
        self.finish(Verdict::Retry { draw })
    }

    /// Failure: the key comes back after `delay`; its backoff does not grow.
    pub fn retry_after(self, delay: Duration) {
        self.finish(Verdict::RetryAfter(delay));
    }

    /// Neither success nor failure: the key was not worked on and comes back after `delay` (at most
    /// ten years). Counted as backing off until then.
    pub fn hold(self, delay: Duration) {
        self.finish(Verdict::Hold(delay));
    }

    fn finish(mut self, verdict: Verdict) -> Option<Duration> {
        self.open = false;
        self.queue.finish(self.ticket, verdict)
    }
}

impl<T: Hash + Eq + Clone> Drop for Work<T> {
    fn drop(&mut self) {
        if self.open {
            let draw = self.queue.entropy.unit();
            self.queue.finish(self.ticket, Verdict::Retry { draw });
        }
    }
}

impl<T: Hash + Eq + Clone + fmt::Debug> fmt::Debug for Work<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("key", &self.key).field("failures", &self.failures).finish()
    }
}
