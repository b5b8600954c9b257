//! The queue as a state machine: no locks, no tasks, no clock of its own.
//!
//! Every call is told the time since the queue was made. A key has one [`Slot`] while it is ready,
//! in work or waiting; when it rests it has none. Whatever happens to a key costs the same however
//! many others there are; only delays cost a step more each time their number doubles.

use std::time::Duration;

use self::lines::Lines;
use self::slot::{Again, Place, judge};
pub(super) use self::slot::{Nanos, nanos};
use self::slots::Slots;
pub(super) use self::slots::Ticket;
use self::timers::{Timer, Timers};
use super::{Adding, Priority, RetryPolicy};

mod lines;
mod look;
mod ready;
mod slot;
mod slots;
#[cfg(test)]
mod tests;
mod timers;

/// So many delayed keys become ready in one call: less than half a millisecond.
const AT_ONCE: usize = 1024;

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
    /// As that, the first in a row whatever came before.
    RetryAnew { draw: f64 },
    /// Failure with a delay of its own; the bound does not grow.
    RetryAfter(Duration),
    /// Not worked on yet: neither success nor failure.
    Hold(Duration),
}

/// A key handed to a worker.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken<T> {
    pub(super) key: T,
    pub(super) facts: Facts,
}

/// What is known of a key that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// To be shown when the work ends.
    pub(super) ticket: Ticket,
    /// Failures in a row so far.
    pub(super) failures: u32,
    pub(super) priority: Priority,
    /// Why, merged since it was taken last.
    pub(super) reasons: u64,
    /// When it was taken.
    pub(super) at: Nanos,
    /// How long it was ready.
    pub(super) waited: Nanos,
}

/// What a verdict led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finished<T> {
    /// How long it was in work.
    pub(super) worked: Nanos,
    /// When a retry is due; `None` for a success, or when the policy gave up.
    pub(super) retry: Option<Duration>,
    /// The key when it rests now, to be dropped outside of locks.
    pub(super) rested: Option<T>,
}

/// The state of a queue.
#[derive(Debug)]
pub(super) struct Core<T> {
    policy: RetryPolicy,
    /// How many failing keys may be in work at once.
    failing_limit: usize,
    slots: Slots<T>,
    lines: Lines,
    timers: Timers,
    /// Delayed keys that failed or were held back.
    backing_off: usize,
    /// Keys in work, in no order.
    in_work: Vec<Ticket>,
    failing_in_work: usize,
    /// Keys in work that were added again.
    coming_back: usize,
    turn: u64,
    /// Adds that were not duplicates, since the start.
    adds: u64,
    /// Keys put off by a delay, since the start.
    delays: u64,
    closed: bool,
}

impl<T: Eq + Clone> Core<T> {
    /// A queue for `workers` workers; after `ageing` a key is no longer passed over for its low
    /// priority.
    pub(super) fn new(workers: usize, policy: RetryPolicy, ageing: Duration) -> Self {
        Self {
            policy,
            failing_limit: (workers / 2).max(1),
            slots: Slots::new(),
            lines: Lines::new(nanos(ageing)),
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

    /// Wants `key`, whose hash that is, worked on as `adding` says; merges that with what was wanted
    /// before.
    pub(super) fn add_hashed(&mut self, (hash, key): (u64, T), adding: Adding, now: Nanos) {
        if self.closed {
            return;
        }
        let Adding { priority, reasons, delay } = adding;
        let (ticket, is_new) = self.slots.enter(key, hash);
        let slot = self.slots.get_mut(ticket);
        slot.reasons |= reasons;
        if is_new {
            slot.priority = priority;
        }
        if delay.is_zero() {
            self.want(ticket, priority, now);
        } else {
            self.want_at(ticket, priority, now.saturating_add(nanos(delay)));
        }
    }

    /// At once.
    fn want(&mut self, ticket: Ticket, priority: Priority, now: Nanos) {
        let slot = self.slots.get_mut(ticket);
        match &mut slot.place {
            Place::Ready { .. } if slot.priority >= priority => return,
            Place::Ready { .. } | Place::Working { again: Again::Now { .. }, .. } => {
                return self.raise(ticket, priority);
            }
            Place::Working { again, .. } => {
                let priority = match again {
                    Again::At { priority: asked, .. } => priority.max(*asked),
                    _ => priority,
                };
                self.turn += 1;
                *again = Again::Now { turn: self.turn, since: now, passed: false, priority };
                self.lines.join(priority, false, (self.turn, ticket));
                self.coming_back += 1;
            }
            Place::Waiting { .. } => {
                slot.priority = slot.priority.max(priority);
                self.stop_waiting(ticket);
                self.make_ready(ticket, now);
            }
            Place::Resting => self.make_ready(ticket, now),
        }
        self.adds += 1;
    }

    /// Later, or earlier than that if it was asked for already.
    fn want_at(&mut self, ticket: Ticket, priority: Priority, at: Nanos) {
        let slot = self.slots.get_mut(ticket);
        match &mut slot.place {
            Place::Ready { .. } | Place::Working { again: Again::Now { .. }, .. } => {
                return self.raise(ticket, priority);
            }
            Place::Working { again: again @ Again::No, .. } => *again = Again::At { at, priority },
            Place::Working { again: Again::At { at: earlier, priority: asked }, .. } => {
                *asked = priority.max(*asked);
                if *earlier <= at {
                    return;
                }
                *earlier = at;
            }
            Place::Waiting { at: earlier, .. } => {
                let is_earlier = at < *earlier;
                slot.priority = slot.priority.max(priority);
                if !is_earlier {
                    return;
                }
                self.stop_waiting(ticket);
                self.make_waiting(ticket, at);
            }
            Place::Resting => self.make_waiting(ticket, at),
        }
        self.delays += 1;
    }

    /// A key that has a place in line is wanted with that priority: when it is higher, the key goes
    /// to the end of the line of that priority.
    fn raise(&mut self, ticket: Ticket, higher: Priority) {
        let turn = self.turn + 1;
        let slot = self.slots.get_mut(ticket);
        let failing = slot.failing;
        let (old, is_ready, had_place) = match &mut slot.place {
            Place::Ready { turn: place, .. } if slot.priority < higher => {
                *place = turn;
                (std::mem::replace(&mut slot.priority, higher), true, true)
            }
            Place::Working { again: Again::Now { turn: place, passed, priority, .. }, .. }
                if *priority < higher =>
            {
                *place = turn;
                let had_place = !std::mem::take(passed);
                (std::mem::replace(priority, higher), false, had_place)
            }
            _ => return,
        };
        self.turn = turn;
        if had_place {
            self.lines.outdate(old, &self.slots);
        }
        if is_ready {
            self.lines.count(old, failing, false);
            self.lines.count(higher, failing, true);
        }
        self.lines.join(higher, is_ready && failing, (turn, ticket));
    }

    /// Makes keys ready whose time has come, the earliest first. Not more than [`AT_ONCE`], so that
    /// very many that are due together do not hold the lock for long: the rest follows with the next
    /// calls, and [`next_due`](Self::next_due) is in the past until then.
    #[inline]
    pub(super) fn promote(&mut self, now: Nanos) {
        if self.timers.next().is_some_and(|(first, ..)| first <= now) {
            self.promote_some(now, AT_ONCE);
        }
    }

    /// [`promote`](Self::promote), `most` keys at most; tells how many.
    pub(super) fn promote_some(&mut self, now: Nanos, most: usize) -> usize {
        for count in 0..most {
            let next = self.timers.next().filter(|(at, ..)| *at <= now);
            let Some((at, _, ticket)) = next else { return count };
            self.backing_off -= usize::from(self.slots.get(ticket).is_backing_off());
            self.timers.pop(|timer| is_live(&self.slots, timer));
            self.make_ready(ticket, at);
            self.adds += 1;
        }
        most
    }

    /// The key whose turn it is. Keys that keep failing are passed over while they hold their share
    /// of the workers.
    #[inline]
    pub(super) fn take(&mut self, now: Nanos) -> Option<Taken<T>> {
        let ticket = self.next(now)?;
        let (key, facts) = self.begin(ticket, now)?;
        Some(Taken { key, facts })
    }

    /// [`take`](Self::take) into a hand; what it held is returned, to be dropped outside of locks.
    #[inline]
    pub(super) fn take_into(&mut self, hand: &mut Taken<T>, now: Nanos) -> Option<T> {
        let ticket = self.next(now)?;
        let (key, facts) = self.begin(ticket, now)?;
        hand.facts = facts;
        Some(std::mem::replace(&mut hand.key, key))
    }

    #[inline]
    fn next(&mut self, now: Nanos) -> Option<Ticket> {
        if self.eligible() == 0 {
            return None;
        }
        let may_fail = self.failing_in_work < self.failing_limit;
        self.lines.take(&mut self.slots, may_fail, now)
    }

    /// A key's work begins.
    #[inline(always)]
    fn begin(&mut self, ticket: Ticket, now: Nanos) -> Option<(T, Facts)> {
        let (key, slot) = self.slots.entry_mut(ticket);
        let key = key?.clone();
        let since = match slot.place {
            Place::Ready { since, .. } => since,
            _ => now,
        };
        let spot = u32::try_from(self.in_work.len()).unwrap_or(u32::MAX);
        slot.place = Place::Working { since: now, spot, again: Again::No };
        slot.held = false;
        let (failures, priority, failing) = (slot.failures, slot.priority, slot.failing);
        let reasons = std::mem::take(&mut slot.reasons);
        self.lines.count(priority, failing, false);
        self.failing_in_work += usize::from(failing);
        self.in_work.push(ticket);
        let waited = now.saturating_sub(since);
        Some((key, Facts { ticket, failures, priority, reasons, at: now, waited }))
    }

    /// Ends the work on a key; `reasons` are for its next turn, if the verdict leads to one. `None`
    /// when it was not in work.
    #[inline]
    pub(super) fn finish(
        &mut self,
        ticket: Ticket,
        verdict: Verdict,
        reasons: u64,
        now: Nanos,
    ) -> Option<Finished<T>> {
        let slot = self.slots.get_mut(ticket);
        let Place::Working { since, spot, again } = slot.place else { return None };
        if let (Verdict::Done, Again::No, false) = (verdict, again, slot.failing) {
            // Nearly every turn; the rest would come to the same.
            self.leave_work(spot);
            let rested = self.slots.leave(ticket);
            return Some(Finished { worked: now.saturating_sub(since), retry: None, rested });
        }
        self.failing_in_work -= usize::from(slot.failing);
        let delay = judge(self.policy, slot, verdict);
        let retry = delay.filter(|_| slot.failing && !slot.held);
        self.leave_work(spot);
        let end = delay.map(|delay| now.saturating_add(nanos(delay)));
        let due = end.filter(|_| !self.closed);
        let worked = now.saturating_sub(since);
        let own = self.again(ticket, due.map(|_| reasons));
        let due = match (again, due) {
            (Again::Now { turn, since, passed, priority }, _) => {
                self.coming_back -= 1;
                self.resume(ticket, (turn, priority), own, since, passed);
                return Some(Finished { worked, retry, rested: None });
            }
            (Again::At { .. }, _) if self.closed => None,
            (Again::At { at, .. }, Some(due)) => Some(at.min(due)),
            (Again::At { at, .. }, None) => Some(at),
            (Again::No, due) => due,
        };
        if let Again::At { priority, .. } = again {
            let slot = self.slots.get_mut(ticket);
            slot.priority = own.map_or(priority, |own| own.max(priority));
        }
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

    /// When the verdict itself brings the key back: notes why, and tells its priority, which stays.
    fn again(&mut self, ticket: Ticket, reasons: Option<u64>) -> Option<Priority> {
        let slot = self.slots.get_mut(ticket);
        slot.reasons |= reasons?;
        Some(slot.priority)
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
        // Looked at before any of them leaves: the last one takes the slots with it.
        let waiting = self.timers.clear().filter(|timer| is_live(&self.slots, timer));
        let waiting: Vec<Ticket> = waiting.map(|(_, _, ticket)| ticket).collect();
        for ticket in waiting {
            self.slots.leave(ticket);
        }
        self.backing_off = 0;
    }

    /// Ready, with a place at the end of the line.
    fn make_ready(&mut self, ticket: Ticket, since: Nanos) {
        self.turn += 1;
        let slot = self.slots.get_mut(ticket);
        slot.place = Place::Ready { since, turn: self.turn };
        self.lines.join(slot.priority, slot.failing, (self.turn, ticket));
        self.lines.count(slot.priority, slot.failing, true);
    }

    /// Ready, with the place in line that it took while it was in work; if that was passed over, with
    /// a new one by its old turn. `own` is the priority that it keeps because of the verdict.
    fn resume(
        &mut self,
        ticket: Ticket,
        (turn, asked): (u64, Priority),
        own: Option<Priority>,
        since: Nanos,
        passed: bool,
    ) {
        let slot = self.slots.get_mut(ticket);
        let failing = slot.failing;
        slot.place = Place::Ready { since, turn };
        slot.priority = asked;
        self.lines.count(asked, failing, true);
        if passed {
            self.lines.rejoin(asked, failing, (turn, ticket));
        }
        if let Some(own) = own {
            self.raise(ticket, own);
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
fn is_live<T>(slots: &Slots<T>, (_, turn, ticket): &Timer) -> bool {
    matches!(slots.get(*ticket).place, Place::Waiting { turn: last, .. } if last == *turn)
}
