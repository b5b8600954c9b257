//! A lane: ready keys of one priority, in the order of their turns.
//!
//! Turns count up, so a lane is a plain queue: a key that becomes ready goes to its end. Two cases
//! differ. A key that is added while in work takes a place at the end at once, before the outcome
//! of its work is known; its place is passed over while the key is in work. A key whose place was
//! passed over goes before all others when it becomes ready.
//!
//! A key whose priority rises leaves its old place behind, outdated: a place stores its turn, and a
//! key stores the turn that is its own.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::slots::Ticket;

/// A place in a lane: the key's turn, and its ticket.
pub(super) type LaneEntry = (u64, Ticket);

/// One of the two lanes of a priority: keys whose last work failed, or all others.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Places in the order of their turns, outdated ones included.
    places: VecDeque<LaneEntry>,
    /// Places whose turn has been passed over; few.
    overdue: BinaryHeap<Reverse<LaneEntry>>,
}

impl Lane {
    /// Adds a place at the end.
    pub(super) fn push(&mut self, turn: u64, ticket: Ticket) {
        self.places.push_back((turn, ticket));
    }

    /// Adds a place that is sorted by its turn.
    pub(super) fn push_overdue(&mut self, turn: u64, ticket: Ticket) {
        self.overdue.push(Reverse((turn, ticket)));
    }

    /// Returns the front of the places that were not passed over.
    #[inline]
    pub(super) fn front(&self) -> Option<LaneEntry> {
        self.places.front().copied()
    }

    /// Removes the place at the front.
    pub(super) fn pass(&mut self) {
        self.places.pop_front();
        // The memory of a flood of keys is released.
        if self.places.is_empty() && self.places.capacity() > KEPT {
            self.places = VecDeque::new();
        }
    }

    /// Returns the first place.
    #[inline]
    pub(super) fn first(&self) -> Option<LaneEntry> {
        if !self.has_overdue() {
            return self.front();
        }
        match (self.overdue.peek(), self.places.front()) {
            (Some(Reverse(overdue)), Some(front)) => Some(*overdue.min(front)),
            (Some(Reverse(overdue)), None) => Some(*overdue),
            (None, front) => front.copied(),
        }
    }

    /// Returns whether a place was passed over.
    #[inline]
    pub(super) fn has_overdue(&self) -> bool {
        !self.overdue.is_empty()
    }

    /// Returns whether there is no place, not even an outdated one.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.overdue.is_empty()
    }

    /// Takes out the first place.
    pub(super) fn pop(&mut self) -> Option<Ticket> {
        let first = self.first()?;
        if self.has_overdue() && self.overdue.peek() == Some(&Reverse(first)) {
            self.overdue.pop();
        } else {
            self.pass();
        }
        Some(first.1)
    }

    /// Takes out the first places as long as they are outdated.
    pub(super) fn drop_outdated(&mut self, is_live: impl Fn(&LaneEntry) -> bool) {
        while self.first().is_some_and(|first| !is_live(&first)) {
            self.pop();
        }
    }

    /// Takes out all outdated places.
    pub(super) fn sweep(&mut self, is_live: impl Fn(&LaneEntry) -> bool) {
        self.places.retain(&is_live);
        self.overdue.retain(|Reverse(place)| is_live(place));
    }

    /// Number of places, outdated ones included.
    pub(super) fn len(&self) -> usize {
        self.places.len() + self.overdue.len()
    }
}

/// Most places that an empty lane keeps allocated.
const KEPT: usize = 4096;
