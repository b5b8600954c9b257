//! Buffer of added keys while no worker is parked; the next user of the queue moves the buffered
//! keys into the queue.
//!
//! A source that adds all keys of a network read would hold the queue's lock for as long as dozens
//! of takes last, and workers and source would block each other in the kernel, once per lock
//! acquisition. The source therefore leaves the keys in this buffer, and a worker that takes the
//! next key moves them into the queue in the same step: the queue's memory stays in the cache of a
//! single processor.
//!
//! No key is left in the buffer while every worker is parked. A worker that parks closes the buffer
//! under the queue's lock, before checking the queue for the last time, and a source that finds the
//! buffer closed adds to the queue directly.

// DESIGN.md, 97: Batched adds wait in an add buffer while no worker is parked

use super::AddOptions;
use super::core::Nanos;
use windlass_core::sync::{AtomicBool, Mutex, Ordering};

/// Most keys in the buffer, duplicates included: moving them into the queue holds the queue's lock
/// for a fifth of a millisecond.
const CAPACITY: usize = 4096;

/// A key with the hash, which the queue may take or swap for another key, and the options of the
/// add.
pub(super) type PendingAdd<T> = ((u64, Option<T>), AddOptions);
/// The time of an add, and the keys added.
pub(super) type AddBatch<T> = (Nanos, Vec<PendingAdd<T>>);

/// Keys that are not in the queue yet, in order of arrival.
pub(super) struct AddBuffer<T> {
    /// Whether the buffer holds batches. Read without the lock: a reader that misses a batch which
    /// arrives just then sees that batch at the next step, or when the buffer is closed.
    has_batches: AtomicBool,
    state: Mutex<State<T>>,
}

/// The buffered adds, under the lock.
struct State<T> {
    /// The batches, in order of arrival.
    batches: Vec<AddBatch<T>>,
    /// Number of keys in all batches.
    keys: usize,
    /// Whether sources must add to the queue directly.
    is_closed: bool,
}

impl<T> AddBuffer<T> {
    /// Returns an empty, open buffer.
    pub(super) fn new() -> Self {
        let state = State { batches: Vec::new(), keys: 0, is_closed: false };
        Self { has_batches: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Buffers `keys`, added at `now`.
    ///
    /// # Errors
    /// `keys`, when the buffer is closed or has no space for all of them.
    pub(super) fn push(
        &self,
        now: Nanos,
        keys: Vec<PendingAdd<T>>,
    ) -> Result<(), Vec<PendingAdd<T>>> {
        let mut state = self.state.lock();
        if state.is_closed || state.keys + keys.len() > CAPACITY {
            return Err(keys);
        }
        state.keys += keys.len();
        state.batches.push((now, keys));
        // Relaxed: as in `has_batches`, the flag guards no data.
        self.has_batches.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether the buffer holds keys, as far as a read without the lock shows.
    #[inline]
    pub(super) fn has_batches(&self) -> bool {
        // Relaxed: the flag guards no data. The keys are read under the lock, and a late value only
        // delays them by a step.
        self.has_batches.load(Ordering::Relaxed)
    }

    /// Takes all batches.
    #[cold]
    pub(super) fn take(&self) -> Vec<AddBatch<T>> {
        self.take_locked(&mut self.state.lock())
    }

    /// Closes the buffer and takes the batches. Under a single lock: no key can arrive between the
    /// two.
    pub(super) fn close(&self) -> Vec<AddBatch<T>> {
        let mut state = self.state.lock();
        state.is_closed = true;
        self.take_locked(&mut state)
    }

    /// Opens the buffer again, once no worker is parked.
    pub(super) fn reopen(&self) {
        self.state.lock().is_closed = false;
    }

    /// Takes all batches, under a lock that the caller holds.
    fn take_locked(&self, state: &mut State<T>) -> Vec<AddBatch<T>> {
        // Relaxed: the lock orders this store with that of `push`, so no batch stays unmarked.
        self.has_batches.store(false, Ordering::Relaxed);
        state.keys = 0;
        std::mem::take(&mut state.batches)
    }
}
