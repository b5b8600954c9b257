//! Keys of one priority that are ready, in the order of their turns.
//!
//! Turns count up, so a lane is a plain queue: what becomes ready goes to its end. Two cases are
//! different. A key that is added while it is in work takes a place at the end at once, and it is
//! only known later whether its work failed; its place is passed over while it is in work. And a key
//! whose place was passed over goes before all others when it becomes ready.
//!
//! A key whose priority rises leaves its old place behind, outdated: places know their turn, and a
//! key knows which turn is its own.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::slots::Ticket;

/// A place in line.
pub(super) type Place = (u64, Ticket);

/// One line of keys.
#[derive(Debug, Default)]
pub(super) struct Lane {
    places: VecDeque<Place>,
    /// Those whose turn has been passed over; few.
    overdue: BinaryHeap<Reverse<Place>>,
}

impl Lane {
    /// A place at the end.
    pub(super) fn push(&mut self, turn: u64, ticket: Ticket) {
        self.places.push_back((turn, ticket));
    }

    /// A place by its turn, wherever that is.
    pub(super) fn push_overdue(&mut self, turn: u64, ticket: Ticket) {
        self.overdue.push(Reverse((turn, ticket)));
    }

    /// The place at the front of those that were not passed over.
    #[inline]
    pub(super) fn front(&self) -> Option<Place> {
        self.places.front().copied()
    }

    /// Passes over the place at the front.
    pub(super) fn pass(&mut self) {
        self.places.pop_front();
        // A flood of keys must not pin its size.
        if self.places.is_empty() && self.places.capacity() > KEPT {
            self.places = VecDeque::new();
        }
    }

    /// The first place.
    #[inline]
    pub(super) fn first(&self) -> Option<Place> {
        if !self.has_overdue() {
            return self.front();
        }
        match (self.overdue.peek(), self.places.front()) {
            (Some(Reverse(overdue)), Some(front)) => Some(*overdue.min(front)),
            (Some(Reverse(overdue)), None) => Some(*overdue),
            (None, front) => front.copied(),
        }
    }

    /// Was a place passed over?
    #[inline]
    pub(super) fn has_overdue(&self) -> bool {
        !self.overdue.is_empty()
    }

    /// Is there no place, not even an outdated one?
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.overdue.is_empty()
    }

    /// Takes out the first.
    pub(super) fn pop(&mut self) -> Option<Ticket> {
        let first = self.first()?;
        if self.has_overdue() && self.overdue.peek() == Some(&Reverse(first)) {
            self.overdue.pop();
        } else {
            self.pass();
        }
        Some(first.1)
    }

    /// Takes out the first ones as long as they are outdated.
    pub(super) fn drop_outdated(&mut self, is_live: impl Fn(&Place) -> bool) {
        while self.first().is_some_and(|first| !is_live(&first)) {
            self.pop();
        }
    }

    /// Takes out all that are outdated.
    pub(super) fn sweep(&mut self, is_live: impl Fn(&Place) -> bool) {
        self.places.retain(&is_live);
        self.overdue.retain(|Reverse(place)| is_live(place));
    }

    /// Number of places, outdated ones too.
    pub(super) fn len(&self) -> usize {
        self.places.len() + self.overdue.len()
    }
}

/// So many places are kept for later.
const KEPT: usize = 4096;
