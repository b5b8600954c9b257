//! Buffer of added keys while no worker is parked; the next user of the queue takes them in.
//!
//! A source that adds all keys of one network read would hold the queue's lock for as long as
//! dozens of takes last, and workers and source would block each other, each time asleep in the
//! kernel. The source therefore leaves its keys in this buffer, and a worker that takes its next
//! key moves them into the queue in the same step: the queue's memory stays in the cache of one
//! processor.
//!
//! No key waits here while every worker is parked. A worker that parks shuts the buffer in the same
//! step as its last look, and a source that finds the buffer shut adds to the queue directly.

use super::AddOptions;
use super::core::Nanos;
use windlass_core::sync::{AtomicBool, Mutex, Ordering};

/// Most keys in the buffer, duplicates included: taking them in holds the queue's lock for a fifth
/// of a millisecond.
const ROOM: usize = 4096;

/// A key with its hash, which the queue may take or swap for another key, and the options of its
/// add.
pub(super) type PendingAdd<T> = ((u64, Option<T>), AddOptions);
/// The time of an add, and the keys that it added.
pub(super) type AddBatch<T> = (Nanos, Vec<PendingAdd<T>>);

/// Keys that are not in the queue yet, in order of arrival.
pub(super) struct AddBuffer<T> {
    /// Whether the buffer holds batches. Read without the lock: a reader that misses a batch which
    /// arrives just then sees it at the next step, or when the buffer is shut.
    has_mail: AtomicBool,
    inside: Mutex<Inside<T>>,
}

/// The buffered adds, under the lock.
struct Inside<T> {
    /// The batches, in order of arrival.
    letters: Vec<AddBatch<T>>,
    /// Number of keys in all batches.
    keys: usize,
    /// Whether sources must add to the queue directly.
    is_shut: bool,
}

impl<T> AddBuffer<T> {
    /// Returns an empty, open buffer.
    pub(super) fn new() -> Self {
        let inside = Inside { letters: Vec::new(), keys: 0, is_shut: false };
        Self { has_mail: AtomicBool::new(false), inside: Mutex::new(inside) }
    }

    /// Buffers `keys`, added at `now`.
    ///
    /// # Errors
    /// `keys`, when the buffer is shut or has no space for all of them.
    pub(super) fn post(
        &self,
        now: Nanos,
        keys: Vec<PendingAdd<T>>,
    ) -> Result<(), Vec<PendingAdd<T>>> {
        let mut inside = self.inside.lock();
        if inside.is_shut || inside.keys + keys.len() > ROOM {
            return Err(keys);
        }
        inside.keys += keys.len();
        inside.letters.push((now, keys));
        // Relaxed: as in `has_mail`, the flag guards no data.
        self.has_mail.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns whether the buffer holds keys, as far as a read without the lock shows.
    #[inline]
    pub(super) fn has_mail(&self) -> bool {
        // Relaxed: the flag guards no data. The keys are read under the lock, and a late value only
        // delays them by one step.
        self.has_mail.load(Ordering::Relaxed)
    }

    /// Takes all buffered keys.
    #[cold]
    pub(super) fn take(&self) -> Vec<AddBatch<T>> {
        self.empty(&mut self.inside.lock())
    }

    /// Shuts the buffer and takes its keys. Under one lock: no key can arrive between the two.
    pub(super) fn shut(&self) -> Vec<AddBatch<T>> {
        let mut inside = self.inside.lock();
        inside.is_shut = true;
        self.empty(&mut inside)
    }

    /// Opens the buffer again, once no worker is parked.
    pub(super) fn open(&self) {
        self.inside.lock().is_shut = false;
    }

    /// Takes all buffered keys, under a lock that the caller holds.
    fn empty(&self, inside: &mut Inside<T>) -> Vec<AddBatch<T>> {
        // Relaxed: the lock orders this store with that of `post`, so no batch stays unmarked.
        self.has_mail.store(false, Ordering::Relaxed);
        inside.keys = 0;
        std::mem::take(&mut inside.letters)
    }
}
