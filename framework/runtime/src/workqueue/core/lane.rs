//! A lane: ready keys of one priority, in the order of sequence numbers.
//!
//! Sequence numbers count up, so a lane is a FIFO queue: a key that becomes ready goes to the end.
//! Two cases differ. A key that is added while in work gets an entry at the end at once, before the
//! outcome of the work is known; the entry is passed over while the key is in work. A key whose
//! entry was passed over goes before all others when it becomes ready.
//!
//! When the priority of a key rises, the old entry stays in the old lane and is outdated: an entry
//! is live if the key stores its sequence number.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::ticket::Ticket;

/// An entry of a lane: the key's sequence number, and the key's ticket.
pub(super) type LaneEntry = (u64, Ticket);

/// Either of the two lanes of a priority: keys whose last work failed, or all others.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Entries in the order of sequence numbers, outdated entries included.
    entries: VecDeque<LaneEntry>,
    /// Entries that were passed over; few.
    overdue: BinaryHeap<Reverse<LaneEntry>>,
}

impl Lane {
    /// Adds an entry at the end.
    pub(super) fn push(&mut self, seq: u64, ticket: Ticket) {
        self.entries.push_back((seq, ticket));
    }

    /// Adds an entry that is sorted by sequence number.
    pub(super) fn push_overdue(&mut self, seq: u64, ticket: Ticket) {
        self.overdue.push(Reverse((seq, ticket)));
    }

    /// Returns the first of the entries that were not passed over.
    #[inline]
    pub(super) fn front(&self) -> Option<LaneEntry> {
        self.entries.front().copied()
    }

    /// Removes the entry at the front.
    pub(super) fn pop_front(&mut self) {
        self.entries.pop_front();
        // Otherwise the memory of a flood of keys would stay allocated.
        if self.entries.is_empty() && self.entries.capacity() > RETAINED {
            self.entries = VecDeque::new();
        }
    }

    /// Returns the first entry.
    #[inline]
    pub(super) fn first(&self) -> Option<LaneEntry> {
        if !self.has_overdue() {
            return self.front();
        }
        match (self.overdue.peek(), self.entries.front()) {
            (Some(Reverse(overdue)), Some(front)) => Some(*overdue.min(front)),
            (Some(Reverse(overdue)), None) => Some(*overdue),
            (None, front) => front.copied(),
        }
    }

    /// Returns whether an entry was passed over.
    #[inline]
    pub(super) fn has_overdue(&self) -> bool {
        !self.overdue.is_empty()
    }

    /// Returns whether there is no entry, not even an outdated entry.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.overdue.is_empty()
    }

    /// Takes out the first entry.
    pub(super) fn pop(&mut self) -> Option<Ticket> {
        let first = self.first()?;
        if self.has_overdue() && self.overdue.peek() == Some(&Reverse(first)) {
            self.overdue.pop();
        } else {
            self.pop_front();
        }
        Some(first.1)
    }

    /// Takes out the first entries as long as they are outdated.
    pub(super) fn drop_outdated(&mut self, is_live: impl Fn(&LaneEntry) -> bool) {
        while self.first().is_some_and(|first| !is_live(&first)) {
            self.pop();
        }
    }

    /// Takes out all outdated entries.
    pub(super) fn sweep(&mut self, is_live: impl Fn(&LaneEntry) -> bool) {
        self.entries.retain(&is_live);
        self.overdue.retain(|Reverse(entry)| is_live(entry));
    }

    /// Number of entries, outdated entries included.
    pub(super) fn len(&self) -> usize {
        self.entries.len() + self.overdue.len()
    }
}

/// Most entries for which an empty lane keeps memory.
const RETAINED: usize = 4096;
