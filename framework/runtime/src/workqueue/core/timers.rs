//! Due times of delayed keys: a heap whose outdated entries are skipped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ticket::Ticket;

/// Outdated entries, beyond the number in use, that do not justify a sweep.
const SLACK: usize = 64;

/// An entry: due time, sequence number among equal times, key.
pub(super) type TimerEntry = (u64, u64, Ticket);

/// The delayed keys' due times.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<TimerEntry>>,
    /// Entries that are not outdated.
    live: usize,
}

impl Timers {
    /// Adds an entry.
    pub(super) fn add(&mut self, timer: TimerEntry) {
        self.heap.push(Reverse(timer));
        self.live += 1;
    }

    /// Counts an entry as outdated; `is_live` selects the entries that are not.
    pub(super) fn outdate(&mut self, is_live: impl Fn(&TimerEntry) -> bool) {
        self.live -= 1;
        // Swept when outdated entries outnumber live entries, so that a sweep costs a constant per
        // entry.
        if self.heap.len() > 2 * self.live + SLACK {
            self.heap.retain(|Reverse(timer)| is_live(timer));
        }
        // The first entry must be live, so that `next` needs no search.
        while self.heap.peek().is_some_and(|Reverse(timer)| !is_live(timer)) {
            self.heap.pop();
        }
    }

    /// Returns the next entry, due or not. The first entry is never outdated.
    pub(super) fn next(&self) -> Option<TimerEntry> {
        self.heap.peek().map(|Reverse(timer)| *timer)
    }

    /// Takes out the next entry for good; `is_live` selects the others that are not outdated.
    pub(super) fn pop(&mut self, is_live: impl Fn(&TimerEntry) -> bool) {
        self.heap.pop();
        self.outdate(is_live);
    }

    /// Number of entries that are not outdated.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// Takes out all entries, outdated entries included.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = TimerEntry> + use<> {
        self.live = 0;
        std::mem::take(&mut self.heap).into_iter().map(|Reverse(timer)| timer)
    }

    #[cfg(test)]
    pub(super) fn entry_count(&self) -> usize {
        self.heap.len()
    }
}
