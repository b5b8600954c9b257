//! The asynchronous queue: the handle of producers, workers and drains.

// DESIGN.md, 121: The work queue keeps its add buffer, waiters and slots

mod pending_get;

use std::fmt;
use std::future::poll_fn;
use std::hash::{BuildHasher, Hash};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use foldhash::fast::FixedState;

use self::pending_get::PendingGet;
use super::add_buffer::AddBuffer;
use super::core::{QueueCore, QueueCounts, SlotHint};
use super::meter::QueueMeter;
use super::state::{ADDS_PER_LOCK, QueueShared, QueueState};
use super::waiters::Waiters;
use super::{AddOptions, KeyState, QueueSettings, Work};
use windlass_core::environment::Environment;
use windlass_core::sync::{CachePadded, Mutex, Notify};

/// A set of keys, each worked on by a single worker at a time; cheap to clone. Waits and delays use
/// tokio's timer, so the queue needs a runtime with a timer.
///
/// - Between [`get`](Self::get) and the end of the [`Work`] a key is handed to no other worker.
/// - A key added while in work is handed out again after the completion, in the place taken by the
///   add.
/// - Ready keys are handed out by [priority](AddOptions::priority); keys of equal priority in the
///   order in which they became ready. A key that has waited for [the ageing
///   time](QueueSettings::ageing) is no longer passed over.
/// - Keys whose last work failed hold at most half of the workers, but at least one worker.
/// - Among several delays for a key the earliest wins; an immediate add beats a delayed one.
pub struct WorkQueue<T: Hash + Eq + Clone> {
    shared: Arc<QueueShared<T>>,
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
        Self::with_slot_hint(settings, environment, None)
    }

    /// Returns an empty queue of keys that store the number of their slot.
    pub(crate) fn with_slot_hint(
        settings: QueueSettings,
        environment: &Environment,
        slot_hint: Option<SlotHint<T>>,
    ) -> Self {
        let QueueSettings { name, controller, workers, retry, ageing, retried, requeued } =
            settings;
        let rng = environment.rng.fork(&name);
        let meter = QueueMeter::new(&environment.metrics, &name, &controller);
        let shared = Arc::new(QueueShared {
            state: Mutex::new(QueueState {
                core: QueueCore::new(workers, retry, ageing, slot_hint),
                waiters: Waiters::default(),
                tally: meter.tally(),
                is_buffer_closed: false,
            }),
            add_buffer: CachePadded::new(AddBuffer::new()),
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
        let source: Weak<QueueShared<T>> = Arc::downgrade(&shared);
        environment.metrics.register_source(source);
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

    /// Adds `key`, to be worked on after `delay`, or at the earlier time of another add. A `delay`
    /// of zero is [`add`](Self::add).
    pub fn add_after(&self, key: T, delay: Duration) {
        self.add_with(key, AddOptions::new().after(delay));
    }

    /// Adds `key` with a priority, reasons and a delay. If the key is in the queue already, the
    /// adds merge: the higher priority, all the reasons, the earlier time.
    pub fn add_with(&self, key: T, options: AddOptions) {
        let mut key = self.hashed(key);
        self.shared.change(|state, now| state.core.add_hashed(&mut key, options, now));
    }

    /// [`add`](Self::add) for several keys: as many parked workers wake as there are new keys. When
    /// no worker is parked, the keys are buffered, and the next call moves them into the queue.
    pub fn add_all(&self, keys: impl IntoIterator<Item = T>) {
        self.add_each(keys.into_iter().map(|key| (key, AddOptions::new())));
    }

    /// [`add_with`](Self::add_with) for several keys: as many parked workers wake as there are new
    /// keys. When no worker is parked, the keys are buffered, and the next call moves them into the
    /// queue.
    pub fn add_each(&self, keys: impl IntoIterator<Item = (T, AddOptions)>) {
        // The iterator is the caller's code: run it before taking any lock.
        let keys = keys.into_iter().map(|(key, options)| (self.hashed(key), options));
        let keys: Vec<_> = keys.collect();
        if keys.is_empty() {
            return;
        }
        let pushed = self.shared.add_buffer.push(self.shared.now(), keys);
        let Err(mut keys) = pushed else { return };
        // In chunks, so that workers get the lock in between.
        for chunk in keys.chunks_mut(ADDS_PER_LOCK) {
            self.shared.change(|state, now| state.add_each(chunk, now));
        }
    }

    /// Hashes a key; called before the lock is taken.
    fn hashed(&self, key: T) -> (u64, Option<T>) {
        (self.shared.hasher.hash_one(&key), Some(key))
    }

    /// Waits for a key; `None` once the queue is shut down and has handed out all keys.
    ///
    /// # Cancel safety
    /// Safe: no key is lost when the future is dropped.
    pub async fn get(&self) -> Option<Work<T>> {
        let mut get = PendingGet { shared: &self.shared, waiter: None, delay_timer: None };
        poll_fn(|context| get.poll(context)).await
    }

    /// Returns a key if one is ready now; does not wait. `None` says nothing about a shutdown: only
    /// [`get`](Self::get) distinguishes an empty queue from an ended queue.
    pub fn try_get(&self) -> Option<Work<T>> {
        let claim = self.shared.change(QueueState::take)?;
        Some(Work::new(Arc::clone(&self.shared), claim))
    }

    /// Shuts the queue down: the queue accepts no more keys. Keys that are ready, or were added
    /// again while in work, are still handed out; delayed keys and retries are dropped.
    pub fn shutdown(&self) {
        drop(self.shared.change(|state, _| state.core.close()));
        self.shared.ended.notify_waiters();
    }

    /// Shuts the queue down and waits until no key is ready or in work; false when that took longer
    /// than `limit`.
    ///
    /// # Cancel safety
    /// Safe; the queue stays shut down.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.shutdown();
        let drained = async {
            loop {
                // Registered before the state is read: an end between the read and the wait would
                // be missed otherwise.
                let mut ended = pin!(self.shared.ended.notified());
                ended.as_mut().enable();
                if self.shared.state.lock().core.is_drained() {
                    return;
                }
                ended.await;
            }
        };
        self.shared.clock.timeout(limit, drained).await.is_some()
    }

    /// Returns the number of keys in each state.
    pub fn counts(&self) -> QueueCounts {
        self.shared.change(|state, _| state.core.counts())
    }

    /// Describes at most `limit` keys: those in work, ready, backing off and delayed; in each stage
    /// by priority, then the longest there or the next due first. Reads every key under the lock,
    /// so this call is meant for debug dumps and not for programs.
    pub fn describe(&self, limit: usize) -> Vec<KeyState<T>> {
        self.shared.change(|state, now| state.core.describe(limit, now))
    }

    #[cfg(test)]
    pub(super) fn has_batches(&self) -> bool {
        self.shared.add_buffer.has_batches()
    }

    /// Refreshes the gauges on work in progress; called now and then while an attempt is long.
    pub fn observe(&self) {
        self.shared.observe();
    }
}
