//! When delayed keys are due: a heap whose outdated entries are passed over.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::slots::Ticket;

/// Outdated entries beyond those in use that are not worth a sweep.
const SLACK: usize = 64;

/// An entry: due when, in which turn among equals, whose.
pub(super) type Timer = (u64, u64, Ticket);

/// The delayed keys' due times.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
    /// Entries that are not outdated.
    live: usize,
}

impl Timers {
    pub(super) fn add(&mut self, timer: Timer) {
        self.heap.push(Reverse(timer));
        self.live += 1;
    }

    /// One entry is outdated now; `is_live` tells which ones are not.
    pub(super) fn outdate(&mut self, is_live: impl Fn(&Timer) -> bool) {
        self.live -= 1;
        if self.heap.len() > 2 * self.live + SLACK {
            self.heap.retain(|Reverse(timer)| is_live(timer));
        }
        while self.heap.peek().is_some_and(|Reverse(timer)| !is_live(timer)) {
            self.heap.pop();
        }
    }

    /// The next entry, due or not. The first entry is never an outdated one.
    pub(super) fn next(&self) -> Option<Timer> {
        self.heap.peek().map(|Reverse(timer)| *timer)
    }

    /// Takes out the next entry, for good; `is_live` tells which of the others count.
    pub(super) fn pop(&mut self, is_live: impl Fn(&Timer) -> bool) {
        self.heap.pop();
        self.outdate(is_live);
    }

    /// Number of entries that are not outdated.
    pub(super) fn len(&self) -> usize {
        self.live
    }

    /// Takes out all, also outdated ones.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Timer> + use<> {
        self.live = 0;
        std::mem::take(&mut self.heap).into_iter().map(|Reverse(timer)| timer)
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.heap.len()
    }
}
