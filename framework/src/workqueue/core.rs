//! The queue as a state machine: no locks, no tasks, no clock of its own.
//!
//! Every call is told the time since the queue was made. A key has one [`Slot`] while it is ready,
//! in work or waiting; when it rests it has none. Whatever happens to a key costs the same however
//! many others there are; only delays cost a step more each time their number doubles.

use std::hash::Hash;
use std::time::Duration;

use self::ready::Lane;
use self::slot::{Again, Nanos, Place, judge, nanos};
use self::slots::Slots;
pub(super) use self::slots::Ticket;
use self::timers::{Timer, Timers};
use super::RetryPolicy;

mod ready;
mod slot;
mod slots;
#[cfg(test)]
mod tests;
mod timers;

/// How many keys are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Ready for a worker.
    pub queued: usize,
    /// In work.
    pub working: usize,
    /// Waiting for a retry after a failure, or held back although there is work to do.
    pub backing_off: usize,
    /// Waiting for their time without having failed.
    pub delayed: usize,
}

/// How a piece of work ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Success.
    Done,
    /// Success; look again then.
    After(Duration),
    /// Failure; `draw` in `[0, 1)` picks the delay below the bound.
    Retry { draw: f64 },
    /// Failure with a delay of its own; the bound does not grow.
    RetryAfter(Duration),
    /// Not worked on yet: neither success nor failure.
    Hold(Duration),
}

/// A key handed to a worker.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken<T> {
    pub(super) key: T,
    /// To be shown when the work ends.
    pub(super) ticket: Ticket,
    /// Failures in a row so far.
    pub(super) failures: u32,
    /// How long it was ready.
    pub(super) waited: Duration,
}

/// What a verdict led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finished<T> {
    /// How long it was in work.
    pub(super) worked: Duration,
    /// When a retry is due; `None` for a success, or when the policy gave up.
    pub(super) retry: Option<Duration>,
    /// The key when it rests now, to be dropped outside of locks.
    pub(super) rested: Option<T>,
}

/// What the shell watches for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gauges {
    /// Keys that could be taken now.
    pub(super) eligible: usize,
    /// Keys that are ready, takeable or not.
    pub(super) ready: usize,
    /// When the next delayed key is due.
    pub(super) next_due: Option<Duration>,
    /// Adds that were not duplicates, since the start.
    pub(super) adds: u64,
    /// Keys put off by a delay, since the start.
    pub(super) delays: u64,
}

/// The state of a queue.
#[derive(Debug)]
pub(super) struct Core<T> {
    policy: RetryPolicy,
    /// How many failing keys may be in work at once.
    failing_limit: usize,
    slots: Slots<T>,
    /// Places of keys whose last work succeeded, and of those in work.
    healthy: Lane,
    /// Places of keys whose last work failed.
    failing: Lane,
    /// Keys that are ready, by how their last work ended.
    healthy_ready: usize,
    failing_ready: usize,
    timers: Timers,
    /// Delayed keys that failed or were held back.
    backing_off: usize,
    /// Keys in work, in no order.
    in_work: Vec<Ticket>,
    failing_in_work: usize,
    /// Keys in work that were added again.
    coming_back: usize,
    turn: u64,
    adds: u64,
    delays: u64,
    closed: bool,
}

impl<T: Hash + Eq + Clone> Core<T> {
    /// A queue for `workers` workers; `seed` is for its hash table.
    pub(super) fn new(workers: usize, policy: RetryPolicy, seed: u64) -> Self {
        Self {
            policy,
            failing_limit: (workers / 2).max(1),
            slots: Slots::new(seed),
            healthy: Lane::default(),
            failing: Lane::default(),
            healthy_ready: 0,
            failing_ready: 0,
            timers: Timers::default(),
            backing_off: 0,
            in_work: Vec::new(),
            failing_in_work: 0,
            coming_back: 0,
            turn: 0,
            adds: 0,
            delays: 0,
            closed: false,
        }
    }

    /// Wants `key` worked on as soon as possible.
    pub(super) fn add(&mut self, key: T, now: Duration) {
        if self.closed {
            return;
        }
        let now = nanos(now);
        let (ticket, _) = self.slots.enter(key);
        let slot = self.slots.get_mut(ticket);
        match &mut slot.place {
            Place::Ready { .. } | Place::Working { again: Again::Now { .. }, .. } => return,
            Place::Working { again, .. } => {
                self.turn += 1;
                *again = Again::Now { turn: self.turn, since: now, passed: false };
                self.healthy.push(self.turn, ticket);
                self.coming_back += 1;
            }
            Place::Waiting { .. } => {
                self.stop_waiting(ticket);
                self.make_ready(ticket, now);
            }
            Place::Resting => self.make_ready(ticket, now),
        }
        self.adds += 1;
    }

    /// Wants `key` worked on at `at`, or earlier if that was asked for already.
    pub(super) fn add_at(&mut self, key: T, at: Duration, now: Duration) {
        if at <= now {
            self.add(key, now);
            return;
        }
        if self.closed {
            return;
        }
        let at = nanos(at);
        let (ticket, _) = self.slots.enter(key);
        match &mut self.slots.get_mut(ticket).place {
            Place::Ready { .. } => return,
            Place::Working { again, .. } => match again {
                Again::Now { .. } => return,
                Again::At(earlier) if *earlier <= at => return,
                _ => *again = Again::At(at),
            },
            Place::Waiting { at: earlier, .. } if *earlier <= at => return,
            Place::Waiting { .. } => {
                self.stop_waiting(ticket);
                self.make_waiting(ticket, at);
            }
            Place::Resting => self.make_waiting(ticket, at),
        }
        self.delays += 1;
    }

    /// Makes keys ready whose time has come; says how many.
    pub(super) fn promote(&mut self, now: Duration) -> usize {
        let mut promoted = 0;
        let Some((first, ..)) = self.timers.next() else { return promoted };
        let now = nanos(now);
        if first > now {
            return promoted;
        }
        while let Some((at, _, ticket)) = self.timers.next().filter(|(at, ..)| *at <= now) {
            self.backing_off -= usize::from(self.slots.get(ticket).is_backing_off());
            self.timers.pop(|timer| is_live(&self.slots, timer));
            self.make_ready(ticket, at);
            self.adds += 1;
            promoted += 1;
        }
        promoted
    }

    /// The key whose turn it is. Keys that keep failing are passed over while they hold their share
    /// of the workers.
    pub(super) fn take(&mut self, now: Duration) -> Option<Taken<T>> {
        if self.eligible() == 0 {
            return None;
        }
        self.tidy_front();
        let healthy = self.healthy.first_turn();
        let may_fail = self.failing_in_work < self.failing_limit;
        let failing = if may_fail { self.failing.first_turn() } else { None };
        let ticket = match (healthy, failing) {
            (Some(healthy), Some(failing)) if failing < healthy => self.failing.pop(),
            (Some(_), _) => self.healthy.pop(),
            (None, Some(_)) => self.failing.pop(),
            (None, None) => None,
        }?;
        let now = nanos(now);
        let key = self.slots.key(ticket)?.clone();
        let slot = self.slots.get_mut(ticket);
        let since = match slot.place {
            Place::Ready { since } => since,
            _ => now,
        };
        let spot = u32::try_from(self.in_work.len()).unwrap_or(u32::MAX);
        slot.place = Place::Working { since: now, spot, again: Again::No };
        slot.held = false;
        if slot.failing {
            self.failing_ready -= 1;
            self.failing_in_work += 1;
        } else {
            self.healthy_ready -= 1;
        }
        self.in_work.push(ticket);
        let waited = Duration::from_nanos(now.saturating_sub(since));
        Some(Taken { key, ticket, failures: slot.failures, waited })
    }

    /// Passes over places at the front of the healthy lane whose key cannot be taken from there: it
    /// is still in work, or its work failed.
    fn tidy_front(&mut self) {
        while let Some((turn, ticket)) = self.healthy.front() {
            let slot = self.slots.get_mut(ticket);
            match &mut slot.place {
                Place::Working { again: Again::Now { passed, .. }, .. } => *passed = true,
                _ if slot.failing => self.failing.push_overdue(turn, ticket),
                _ => return,
            }
            self.healthy.pass();
        }
    }

    /// Ends the work on a key. `None` when it was not in work.
    pub(super) fn finish(
        &mut self,
        ticket: Ticket,
        verdict: Verdict,
        now: Duration,
    ) -> Option<Finished<T>> {
        let slot = self.slots.get_mut(ticket);
        let Place::Working { since, spot, again } = slot.place else { return None };
        self.failing_in_work -= usize::from(slot.failing);
        let delay = judge(self.policy, slot, verdict);
        let retry = delay.filter(|_| slot.failing && !slot.held);
        self.leave_work(spot);
        let end = now.saturating_add(delay.unwrap_or_default());
        let (now, end) = (nanos(now), nanos(end));
        let due = delay.map(|_| end).filter(|_| !self.closed);
        let worked = Duration::from_nanos(now.saturating_sub(since));
        let due = match (again, due) {
            (Again::Now { turn, since, passed }, _) => {
                self.coming_back -= 1;
                self.resume(ticket, since, passed.then_some(turn));
                return Some(Finished { worked, retry, rested: None });
            }
            (Again::At(_), _) if self.closed => None,
            (Again::At(at), Some(due)) => Some(at.min(due)),
            (Again::At(at), None) => Some(at),
            (Again::No, due) => due,
        };
        let mut rested = None;
        match due {
            None => rested = self.slots.leave(ticket),
            Some(at) if at <= now => {
                self.make_ready(ticket, now);
                self.adds += 1;
            }
            Some(at) => {
                self.make_waiting(ticket, at);
                self.delays += 1;
            }
        }
        Some(Finished { worked, retry, rested })
    }

    /// The key at `spot` is in work no more.
    fn leave_work(&mut self, spot: u32) {
        self.in_work.swap_remove(spot as usize);
        if let Some(moved) = self.in_work.get(spot as usize)
            && let Place::Working { spot: place, .. } = &mut self.slots.get_mut(*moved).place
        {
            *place = spot;
        }
    }

    /// Accepts no more keys and drops those that wait for their time.
    pub(super) fn close(&mut self) {
        self.closed = true;
        for timer in self.timers.clear() {
            if is_live(&self.slots, &timer) {
                self.slots.leave(timer.2);
            }
        }
        self.backing_off = 0;
    }

    /// Are no more keys accepted?
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Is nothing ready and nothing in work?
    pub(super) fn quiet(&self) -> bool {
        self.in_work.is_empty() && self.ready() == 0
    }

    /// Closed, and no key will become ready any more?
    pub(super) fn exhausted(&self) -> bool {
        self.closed && self.ready() == 0 && self.coming_back == 0
    }

    /// What the shell watches for changes.
    pub(super) fn gauges(&self) -> Gauges {
        Gauges {
            eligible: self.eligible(),
            ready: self.ready(),
            next_due: self.next_due(),
            adds: self.adds,
            delays: self.delays,
        }
    }

    /// How many keys could be taken now.
    fn eligible(&self) -> usize {
        let failing = self.failing_limit.saturating_sub(self.failing_in_work);
        self.healthy_ready + self.failing_ready.min(failing)
    }

    /// How many keys are ready, takeable or not.
    fn ready(&self) -> usize {
        self.healthy_ready + self.failing_ready
    }

    /// When the next delayed key is due.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.timers.next().map(|(at, ..)| Duration::from_nanos(at))
    }

    /// When the work in progress began.
    pub(super) fn in_work(&self) -> impl Iterator<Item = Duration> + '_ {
        self.in_work.iter().filter_map(|ticket| match self.slots.get(*ticket).place {
            Place::Working { since, .. } => Some(Duration::from_nanos(since)),
            _ => None,
        })
    }

    /// How many keys are where.
    pub(super) fn counts(&self) -> QueueCounts {
        QueueCounts {
            queued: self.ready(),
            working: self.in_work.len(),
            backing_off: self.backing_off,
            delayed: self.timers.len() - self.backing_off,
        }
    }

    /// Ready, with a place at the end of the line.
    fn make_ready(&mut self, ticket: Ticket, since: Nanos) {
        self.turn += 1;
        let slot = self.slots.get(ticket);
        let lane = if slot.failing { &mut self.failing } else { &mut self.healthy };
        lane.push(self.turn, ticket);
        self.resume(ticket, since, None);
    }

    /// Ready, with a place in line that it has already; if that was passed over, with a new one
    /// by its old turn.
    fn resume(&mut self, ticket: Ticket, since: Nanos, passed: Option<u64>) {
        let slot = self.slots.get_mut(ticket);
        slot.place = Place::Ready { since };
        let (lane, ready) = match slot.failing {
            true => (&mut self.failing, &mut self.failing_ready),
            false => (&mut self.healthy, &mut self.healthy_ready),
        };
        *ready += 1;
        if let Some(turn) = passed {
            lane.push_overdue(turn, ticket);
        }
    }

    fn make_waiting(&mut self, ticket: Ticket, at: Nanos) {
        self.turn += 1;
        let slot = self.slots.get_mut(ticket);
        slot.place = Place::Waiting { at, turn: self.turn };
        self.backing_off += usize::from(slot.is_backing_off());
        self.timers.add((at, self.turn, ticket));
    }

    /// A waiting key waits no more; the caller puts it somewhere else.
    fn stop_waiting(&mut self, ticket: Ticket) {
        let slot = self.slots.get_mut(ticket);
        slot.place = Place::Resting;
        self.backing_off -= usize::from(slot.is_backing_off());
        self.timers.outdate(|timer| is_live(&self.slots, timer));
    }
}

/// Does this entry still say when its key is due?
fn is_live<T: Hash + Eq>(slots: &Slots<T>, (_, turn, ticket): &Timer) -> bool {
    matches!(slots.get(*ticket).place, Place::Waiting { turn: last, .. } if last == *turn)
}
