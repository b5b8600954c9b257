//! Read-only queries of the queue's state.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::slot::{KeySlot, Nanos, RepeatedAdd, Stage};
use super::ticket::Ticket;
use super::{QueueCore, QueueCounts};
use crate::workqueue::meter::{QueueDurations, QueueReport};
use crate::workqueue::{KeyStage, KeyState, Priority};

/// Sort key of a listing: stage, then priority, then age, due time or sequence number.
type Rank = (KeyStage, Reverse<Priority>, u64, Ticket);

impl<T> QueueCore<T> {
    /// Returns the numbers for the metrics; `tally` is counted by the caller.
    pub(in crate::workqueue) fn report(&self, tally: QueueDurations) -> QueueReport {
        QueueReport { adds: self.adds, delays: self.delays, depths: self.lanes.depths(), tally }
    }
}

impl<T: Eq + Clone> QueueCore<T> {
    /// Returns whether the queue accepts no more keys.
    pub(in crate::workqueue) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns whether no key is ready and none is in work.
    pub(in crate::workqueue) fn is_drained(&self) -> bool {
        self.slots.in_work().is_empty() && self.ready() == 0
    }

    /// Returns whether the queue is closed and no key will become ready any more.
    pub(in crate::workqueue) fn exhausted(&self) -> bool {
        self.closed && self.ready() == 0 && self.added_in_work == 0
    }

    /// Returns the number of keys that could be taken now.
    pub(in crate::workqueue) fn eligible(&self) -> usize {
        let failing = self.failing_limit.saturating_sub(self.failing_in_work);
        self.lanes.healthy_ready + self.lanes.failing_ready.min(failing)
    }

    /// Returns the number of ready keys, whether or not they can be taken.
    fn ready(&self) -> usize {
        self.lanes.healthy_ready + self.lanes.failing_ready
    }

    /// Returns the time at which the next delayed key is due.
    pub(in crate::workqueue) fn next_due(&self) -> Option<Duration> {
        self.timers.next().map(|(at, ..)| Duration::from_nanos(at))
    }

    /// Returns the start times of the work in progress.
    pub(in crate::workqueue) fn in_work(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.slots.in_work().iter().map(|working| working.since)
    }

    /// Returns the number of keys in each state.
    pub(in crate::workqueue) fn counts(&self) -> QueueCounts {
        QueueCounts {
            queued: self.ready(),
            working: self.slots.in_work().len(),
            backing_off: self.backing_off,
            delayed: self.timers.len() - self.backing_off,
        }
    }

    /// Describes at most `limit` keys: in work, ready, backing off, delayed; in each stage by
    /// priority, then the longest there or the next due first.
    pub(in crate::workqueue) fn describe(&self, limit: usize, now: Nanos) -> Vec<KeyState<T>> {
        let mut first: BinaryHeap<Rank> = BinaryHeap::new();
        for (ticket, slot) in self.slots.iter() {
            let Some(rank) = self.rank(ticket, slot) else { continue };
            // A bounded heap, whose largest entry is replaced: sorting all keys would hold the lock
            // for longer.
            if first.len() < limit {
                first.push(rank);
            } else if let Some(mut last) = first.peek_mut().filter(|last| rank < **last) {
                *last = rank;
            }
        }
        let ranked = first.into_sorted_vec().into_iter();
        ranked.filter_map(|(stage, .., ticket)| self.state(stage, ticket, now)).collect()
    }

    /// Describes a key.
    fn state(&self, stage: KeyStage, ticket: Ticket, now: Nanos) -> Option<KeyState<T>> {
        let key = self.slots.key(ticket)?.clone();
        let slot = self.slots.get(ticket);
        let ago = |since: Nanos| Some(Duration::from_nanos(now.saturating_sub(since)));
        let until = |at: Nanos| Some(Duration::from_nanos(at.saturating_sub(now)));
        let (age, due_in, again) = match slot.stage {
            Stage::Ready { since, .. } => (ago(since), None, false),
            Stage::Working { index } => {
                let working = self.slots.in_work().get(index as usize)?;
                match working.again {
                    RepeatedAdd::At { at, .. } => (ago(working.since), until(at), true),
                    again => (ago(working.since), None, matches!(again, RepeatedAdd::Now { .. })),
                }
            }
            Stage::Waiting { at, .. } => (None, until(at), false),
            Stage::Idle => (None, None, false),
        };
        let KeySlot { reasons, failures, priority, .. } = *slot;
        Some(KeyState { key, stage, failures, age, due_in, again, priority, reasons })
    }

    /// Returns the sort key of a key; `None` if the key is idle.
    fn rank(&self, ticket: Ticket, slot: &KeySlot) -> Option<Rank> {
        let (stage, order) = match slot.stage {
            Stage::Working { index } => {
                (KeyStage::Working, self.slots.in_work().get(index as usize)?.since)
            }
            Stage::Ready { seq, .. } => (KeyStage::Queued, seq),
            Stage::Waiting { at, .. } if slot.is_backing_off() => (KeyStage::BackingOff, at),
            Stage::Waiting { at, .. } => (KeyStage::Delayed, at),
            Stage::Idle => return None,
        };
        Some((stage, Reverse(slot.priority), order, ticket))
    }
}
