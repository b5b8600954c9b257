//! Timers: objects are reconciled at intervals, whether anything changed or not.
//!
//! As kopf's timers: an interval, a first delay, and an idle time that must pass first. A timer
//! belongs to the object and not to a reconcile, so other reconciles do not move the timer, as they
//! move [`Action::requeue_after`](crate::controller::Action::requeue_after). A timer costs about
//! 150 bytes per object, and a task per timer, however many objects there are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::background::{BackgroundFuture, BackgroundRun, BackgroundSource};
use super::reasons::Reason;
use super::watches::Attach;
use windlass_cache::informer::Registration;
use windlass_cache::store::StoreEvent;
use windlass_core::clock::Clock;
use windlass_core::resource::{ObjectKey, Resource};
use windlass_core::rng::Rng;
use windlass_core::sync::{Mutex, Notify};

/// The shortest interval.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Most objects that are handled under one lock: the cache's listener waits for it.
const BATCH: usize = 1024;

/// Reconciles each object at intervals, for the reason `timer NAME`.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use std::time::Duration;
/// use windlass::controller::Timer;
/// let probe = Timer::every(Duration::from_secs(60), "probe")
///     .initial_delay(Duration::from_secs(5))
///     .idle(Duration::from_secs(10));
/// # let _ = probe;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a timer does nothing before a controller is given it"]
pub struct Timer {
    name: String,
    interval: Duration,
    initial_delay: Option<Duration>,
    idle: Duration,
}

impl Timer {
    /// Creates a timer with this interval (at least 1 s), and up to a tenth more, so that objects
    /// which were created together drift apart. Times that passed while another replica led are
    /// spread over an interval.
    ///
    /// Reconciles by a timer alone do not count for the
    /// [`LoopGuard`](crate::controller::LoopGuard), however often.
    pub fn every(interval: Duration, name: impl Into<String>) -> Self {
        let interval = interval.max(MIN_INTERVAL);
        Self { name: name.into(), interval, initial_delay: None, idle: Duration::ZERO }
    }

    /// Sets the first delay after the object was first seen (created, or found at the start of the
    /// controller), plus up to a tenth of the interval. Default: the interval.
    pub fn initial_delay(mut self, delay: Duration) -> Self {
        self.initial_delay = Some(delay);
        self
    }

    /// Sets the time for which the object's spec must have been unchanged; until then the timer
    /// waits. For kinds without a generation every change counts, also the controller's own.
    /// Default: zero, no such condition.
    pub fn idle(mut self, idle: Duration) -> Self {
        self.idle = idle;
        self
    }

    /// The timer's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A timer for all objects of a controller.
pub(crate) struct TimerSource {
    timer: Timer,
    reason: Reason,
    times: Mutex<Times>,
    /// Notified when the earliest time became earlier.
    rescheduled: Notify,
}

/// The next time of each object, by key and in order of time.
#[derive(Default)]
struct Times {
    objects: BTreeMap<ObjectKey, TimerEntry>,
    due: BTreeSet<(Instant, ObjectKey)>,
}

/// The next time of an object, and the last change of the spec.
struct TimerEntry {
    due: Instant,
    changed: Instant,
}

impl TimerSource {
    pub(crate) fn new(timer: Timer, reason: Reason) -> Arc<Self> {
        Arc::new(Self { timer, reason, times: Mutex::default(), rescheduled: Notify::new() })
    }

    /// Registers the listener that follows the objects.
    pub(crate) fn attach<K: Resource>(self: &Arc<Self>, at: &Attach<'_>) -> Registration {
        let environment = at.informers.environment();
        let (clock, rng) = (environment.clock.clone(), environment.rng.fork(&self.timer.name));
        let source = Arc::clone(self);
        at.informers.informer::<K>().listen().inline(Box::new(move |events| {
            source.observe(events, &clock, &rng);
        }))
    }

    /// Applies changes of the objects to their times.
    fn observe(&self, events: &[StoreEvent], clock: &Clock, rng: &Rng) {
        let now = clock.now();
        let mut times = self.times.lock();
        let first = times.due.first().map(|(due, _)| *due);
        for event in events {
            match event {
                StoreEvent::Added { new, .. } => {
                    let delay = self.timer.initial_delay.unwrap_or(self.timer.interval);
                    let due =
                        later(now, delay.saturating_add(rng.jitter(self.timer.interval / 10)));
                    // An entry of a predecessor would leave a stale time in `due`.
                    times.forget(new.key());
                    times.set(new.key(), TimerEntry { due, changed: now });
                }
                StoreEvent::Updated { old, new } => {
                    let (old, metadata) = (old.metadata(), new.metadata());
                    let has_none = metadata.generation() == 0
                        && old.resource_version() != metadata.resource_version();
                    if (has_none || old.generation() != metadata.generation())
                        && let Some(entry) = times.objects.get_mut(new.key())
                    {
                        entry.changed = now;
                    }
                }
                StoreEvent::Deleted { last, .. } => times.forget(last.key()),
            }
        }
        let is_earlier = times.due.first().map(|(due, _)| *due) < first || first.is_none();
        // Released before the notification: the notified task takes the same lock.
        drop(times);
        if is_earlier {
            self.rescheduled.notify_one();
        }
    }

    /// Spreads overdue times over the interval, so that a replica that begins to lead causes no
    /// burst.
    async fn catch_up(&self, now: Instant, rng: &Rng) {
        let interval = self.timer.interval;
        let is_late = |due: Instant| later(due, interval / 10) < now;
        loop {
            {
                let mut times = self.times.lock();
                for _ in 0..BATCH {
                    let first = times.due.first().filter(|(due, _)| is_late(*due));
                    let Some((_, key)) = first.cloned() else { return };
                    times.put_off(&key, later(now, rng.jitter(interval)));
                }
            }
            // The cache's listener can take the lock between two batches.
            tokio::task::yield_now().await;
        }
    }

    /// Takes the objects that are due, and sets their next times; also returns the earliest time.
    fn take_due(&self, now: Instant, rng: &Rng) -> (Vec<ObjectKey>, Option<Instant>) {
        let mut keys = Vec::new();
        let mut times = self.times.lock();
        for _ in 0..BATCH {
            let first = times.due.first().filter(|(due, _)| *due <= now);
            let Some((due, key)) = first.cloned() else { break };
            times.due.remove(&(due, key.clone()));
            let Some(entry) = times.objects.remove(&key) else { continue };
            let idle_end = later(entry.changed, self.timer.idle);
            let due = if idle_end > now {
                idle_end
            } else {
                keys.push(key.clone());
                let interval = self.timer.interval;
                later(now, interval.saturating_add(rng.jitter(interval / 10)))
            };
            times.set(&key, TimerEntry { due, ..entry });
        }
        (keys, times.due.first().map(|(due, _)| *due))
    }
}

/// Returns `delay` after `instant`; a century later if no clock can hold that time.
fn later(instant: Instant, delay: Duration) -> Instant {
    let century = Duration::from_secs(100 * 365 * 24 * 3600);
    instant.checked_add(delay).unwrap_or(instant + century)
}

impl Times {
    fn set(&mut self, key: &ObjectKey, entry: TimerEntry) {
        self.due.insert((entry.due, key.clone()));
        self.objects.insert(key.clone(), entry);
    }

    /// Moves the next time of an object.
    fn put_off(&mut self, key: &ObjectKey, due: Instant) {
        if let Some(entry) = self.objects.remove(key) {
            self.due.remove(&(entry.due, key.clone()));
            self.set(key, TimerEntry { due, ..entry });
        }
    }

    fn forget(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.objects.remove(key) {
            self.due.remove(&(entry.due, key.clone()));
        }
    }
}

impl BackgroundSource for TimerSource {
    fn run(self: Arc<Self>, run: BackgroundRun) -> BackgroundFuture {
        Box::pin(async move {
            let clock = &run.environment.clock;
            self.catch_up(clock.now(), &run.environment.rng).await;
            loop {
                // Created before the times are read: a time that becomes earlier in between ends
                // the wait.
                let rescheduled = self.rescheduled.notified();
                let (mut due, next) = self.take_due(clock.now(), &run.environment.rng);
                // Without the timers' lock: the predicate may be user code.
                due.retain(|key| run.objects.has(key));
                run.enqueuer.enqueue_now(due, self.reason);
                let next = next.unwrap_or_else(|| clock.after(Duration::MAX));
                tokio::select! {
                    biased;
                    () = rescheduled => {}
                    () = clock.sleep_until(next) => {}
                }
            }
        })
    }
}
