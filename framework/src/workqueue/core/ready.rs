//! Keys that are ready, in the order of their turns.
//!
//! Turns count up, so a lane is a plain queue: what becomes ready goes to its end. Two cases are
//! different. A key that is added while it is in work takes a place at the end at once, and it is
//! only known later whether its work failed; its place is passed over while it is in work. And a key
//! whose place was passed over goes before all others when it becomes ready.

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
    pub(super) fn front(&self) -> Option<Place> {
        self.places.front().copied()
    }

    /// Passes over the place at the front.
    pub(super) fn pass(&mut self) {
        self.places.pop_front();
    }

    /// The turn of the first.
    pub(super) fn first_turn(&self) -> Option<u64> {
        let overdue = self.overdue.peek().map(|Reverse((turn, _))| *turn);
        let front = self.places.front().map(|(turn, _)| *turn);
        match (overdue, front) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Takes out the first.
    pub(super) fn pop(&mut self) -> Option<Ticket> {
        let overdue = self.overdue.peek().map(|Reverse((turn, _))| *turn);
        let is_overdue = overdue.is_some() && overdue == self.first_turn();
        let first = if is_overdue {
            self.overdue.pop().map(|Reverse(place)| place)
        } else {
            self.places.pop_front()
        };
        // A flood of keys must not pin its size.
        if self.places.is_empty() && self.places.capacity() > KEPT {
            self.places = VecDeque::new();
        }
        first.map(|(_, ticket)| ticket)
    }
}

/// So many places are kept for later.
const KEPT: usize = 4096;
