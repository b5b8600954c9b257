//! Reads that the reconciles of an object make again and again, without the lock of the tables.
//!
//! When two successful runs in a row have made the same reads and found the same states, the later
//! runs share a list of these reads. A read that finds the state of the list only sets a bit: it is
//! registered all the time, and any other state wakes the reader. The first read that differs
//! closes the list for its attempt, and marks in the tables what the attempt has read until then.

// DESIGN.md, 299: A read that repeats the former runs sets a bit

use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use std::sync::{Arc, OnceLock};

use super::{RegisteredReads, RunRef};
use windlass_core::resource::ObjectKey;

/// Most reads in a list: each has a bit.
pub(super) const MOST_REPEATED: usize = 63;
/// Bit of an attempt whose reads take the lock from now on.
const CLOSED: u64 = 1 << 63;

/// A read of one object, and the state that was found.
#[derive(Debug)]
pub(super) struct RepeatedRead {
    pub(super) source: u64,
    pub(super) key: ObjectKey,
    /// Serial number of the state; `None` for no object.
    pub(super) serial: Option<u64>,
}

/// All reads of a reader, which several runs have made alike, in the order of the reads; at least
/// one, and at most [`MOST_REPEATED`].
#[derive(Debug)]
pub(super) struct RepeatedReads(pub(super) Box<[RepeatedRead]>);

impl RepeatedReads {
    /// Returns the bits of all reads.
    fn all(&self) -> u64 {
        (1 << self.0.len()) - 1
    }

    /// Returns the reads of these bits.
    pub(super) fn of(&self, bits: u64) -> impl Iterator<Item = &RepeatedRead> {
        self.0.iter().enumerate().filter(move |(at, _)| bits & 1 << at != 0).map(|(_, read)| read)
    }

    /// Returns the place of a read; the search begins at `first`, since runs read in one order.
    fn place(&self, first: usize, source: u64, key: &ObjectKey) -> Option<usize> {
        let is_that = |at: &usize| {
            self.0.get(*at).is_some_and(|read| read.source == source && read.key == *key)
        };
        Some(first).filter(is_that).or_else(|| (0..self.0.len()).find(is_that))
    }
}

/// A list, and the state of the tables in which it was read.
#[derive(Debug)]
pub(super) struct ListedReads {
    pub(super) reads: Arc<RepeatedReads>,
    /// Number of times at which reads of readers had been forgotten.
    pub(super) forgotten: u64,
}

/// The reads of one attempt to reconcile an object.
#[derive(Debug, Default)]
pub(crate) struct AttemptReads {
    /// Number under which reads are registered; 0 before the first one that needs it.
    run: AtomicU64,
    /// The list, read at the first read.
    listed: OnceLock<Option<ListedReads>>,
    /// Bits of the reads of the list that were made.
    made: AtomicU64,
    /// Place at which the next read is expected.
    next: AtomicUsize,
    closed: OnceLock<()>,
}

impl AttemptReads {
    /// Whether the read is one of the list and has found the same state; false if it needs the
    /// tables.
    pub(crate) fn repeats(
        &self,
        registered: &RegisteredReads,
        (reader, uid): (&ObjectKey, &str),
        (source, key): (u64, &ObjectKey),
        serial: Option<u64>,
    ) -> bool {
        let listed = self.listed.get_or_init(|| registered.listed(reader, uid));
        let Some(ListedReads { reads, forgotten }) = listed else { return false };
        if registered.forgotten.load(Acquire) != *forgotten {
            return false;
        }
        // Relaxed: a hint.
        let place = reads.place(self.next.load(Relaxed), source, key);
        let Some(place) = place.filter(|place| reads.0[*place].serial == serial) else {
            return false;
        };
        self.next.store(place + 1, Relaxed);
        // A read that closes the list at the same moment sees this bit, or this one sees its bit.
        self.made.fetch_or(1 << place, AcqRel) & CLOSED == 0
    }

    /// Returns the number of this run.
    pub(crate) fn run(&self, registered: &RegisteredReads) -> u64 {
        // Relaxed: only this attempt uses the number; of two first reads at once, only one number
        // wins.
        match self.run.load(Relaxed) {
            0 => {
                let new = registered.new_run();
                let set = self.run.compare_exchange(0, new, Relaxed, Relaxed);
                set.err().unwrap_or(new)
            }
            run => run,
        }
    }

    /// Ends the use of the list, and marks the reads so far as those of this run. Called before a
    /// read of an object is registered or confirmed: the tables then know that the run has found an
    /// earlier state of that object.
    pub(crate) fn close(&self, registered: &RegisteredReads, reader: RunRef<'_>) {
        self.closed.get_or_init(|| {
            let made = self.made.fetch_or(CLOSED, AcqRel);
            if let Some(Some(listed)) = self.listed.get().filter(|_| made != 0) {
                registered.mark(reader, &listed.reads, made);
            }
        });
    }

    /// Replaces the registered reads of the object by those of this attempt, which has succeeded.
    pub(crate) fn commit(&self, registered: &RegisteredReads, key: &ObjectKey, uid: &str) {
        let (made, mut run) = (self.made.load(Acquire), self.run.load(Relaxed));
        let all = self.listed.get().and_then(|listed| Some(listed.as_ref()?.reads.all()));
        if run == 0 && all == Some(made) {
            // The same reads as those of the former run.
            return;
        }
        if made & !CLOSED != 0 {
            run = self.run(registered);
            self.close(registered, RunRef { key, uid, run });
        }
        registered.commit(key, run);
    }
}
