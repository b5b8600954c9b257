//! The queue as a state machine: no locks, no tasks, no clock of its own.
//!
//! Every call is told the time since the queue was made. A key has one [`Slot`], which it keeps when it
//! rests, unless there are very many. Whatever happens to a key costs the same however
//! many others there are; only delays cost a step more each time their number doubles.

use std::time::Duration;

use self::lines::Lines;
use self::slot::{Again, Place, Working, judge};
pub(super) use self::slot::{Nanos, nanos};
pub(crate) use self::slots::Notes;
use self::slots::Slots;
pub(super) use self::slots::{Discarded, NOWHERE, Ticket};
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
    /// Success, and the key is not likely to come back.
    Gone,
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

impl Facts {
    /// Nothing but the ticket is known.
    fn of(ticket: Ticket) -> Self {
        Self { ticket, failures: 0, priority: Priority::NORMAL, reasons: 0, at: 0, waited: 0 }
    }
}

/// What a verdict led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finished<T> {
    /// How long it was in work.
    pub(super) worked: Nanos,
    /// When a retry is due; `None` for a success, or when the policy gave up.
    pub(super) retry: Option<Duration>,
    /// What is needed no more, to be dropped outside of locks.
    pub(super) left: Discarded<T>,
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
    pub(super) fn new(
        workers: usize,
        policy: RetryPolicy,
        ageing: Duration,
        notes: Option<Notes<T>>,
    ) -> Self {
        Self {
            policy,
            failing_limit: (workers / 2).max(1),
            slots: Slots::new(notes),
            lines: Lines::new(nanos(ageing)),
            timers: Timers::default(),
            backing_off: 0,
            failing_in_work: 0,
            coming_back: 0,
            turn: 0,
            adds: 0,
            delays: 0,
            closed: false,
        }
    }

    /// Wants `key`, whose hash that is, worked on as `adding` says; merges that with what was wanted
    /// before. What it leaves of the key, or of another one, is to be dropped outside of locks.
    pub(super) fn add_hashed(
        &mut self,
        (hash, key): &mut (u64, Option<T>),
        adding: Adding,
        now: Nanos,
    ) {
        let Some(known) = key.as_ref() else { return };
        let guess = self.guess(known, *hash);
        self.add_guessed((*hash, guess, key), adding, now);
    }

    /// The slot of that key, most likely; who adds several keys looks for all of them first.
    #[inline]
    pub(super) fn guess(&self, key: &T, hash: u64) -> u32 {
        self.slots.guess(key, hash)
    }

    /// A guess, if that slot's hash is the same; otherwise none.
    #[inline]
    pub(super) fn confirmed(&self, guess: u32, hash: u64) -> u32 {
        if self.slots.confirm(guess, hash) { guess } else { NOWHERE }
    }

    /// [`add_hashed`](Self::add_hashed), with a [guess](Self::guess).
    #[inline]
    pub(super) fn add_guessed(
        &mut self,
        (hash, guess, key): (u64, u32, &mut Option<T>),
        adding: Adding,
        now: Nanos,
    ) {
        if self.closed {
            return;
        }
        let Adding { priority, reasons, delay } = adding;
        let Some((ticket, is_new)) = self.slots.enter(key, hash, guess) else { return };
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
        match slot.place {
            Place::Resting => self.make_ready(ticket, now),
            Place::Ready { .. } if slot.priority >= priority => return,
            Place::Ready { .. } => return self.raise(ticket, priority),
            Place::Working { spot } => {
                let again = &mut self.slots.working(spot).again;
                let priority = match again {
                    Again::Now { .. } => return self.raise(ticket, priority),
                    Again::At { priority: asked, .. } => priority.max(*asked),
                    Again::No => priority,
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
        }
        self.adds += 1;
    }

    /// Later, or earlier than that if it was asked for already.
    fn want_at(&mut self, ticket: Ticket, priority: Priority, at: Nanos) {
        let slot = self.slots.get_mut(ticket);
        match slot.place {
            Place::Ready { .. } => return self.raise(ticket, priority),
            Place::Working { spot } => match &mut self.slots.working(spot).again {
                Again::Now { .. } => return self.raise(ticket, priority),
                again @ Again::No => *again = Again::At { at, priority },
                Again::At { at: earlier, priority: asked } => {
                    *asked = priority.max(*asked);
                    if *earlier <= at {
                        return;
                    }
                    *earlier = at;
                }
            },
            Place::Waiting { at: earlier, .. } => {
                slot.priority = slot.priority.max(priority);
                if at >= earlier {
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
            Place::Working { spot } => {
                let spot = *spot;
                match &mut self.slots.working(spot).again {
                    Again::Now { turn: place, passed, priority, .. } if *priority < higher => {
                        *place = turn;
                        let had_place = !std::mem::take(passed);
                        (std::mem::replace(priority, higher), false, had_place)
                    }
                    _ => return,
                }
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
        let mut facts = Facts::of(ticket);
        let key = self.begin(&mut facts, now)?;
        Some(Taken { key, facts })
    }

    /// [`take`](Self::take) into a hand; what it held is returned, to be dropped outside of locks.
    #[inline]
    pub(super) fn take_into(&mut self, hand: &mut Taken<T>, now: Nanos) -> Option<T> {
        hand.facts.ticket = self.next(now)?;
        let key = self.begin(&mut hand.facts, now)?;
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

    /// The work on the key with that ticket begins. Puts down what is known of it field by field: who reads
    /// right after a store what it wrote together with something else waits for the store.
    #[inline(always)]
    fn begin(&mut self, facts: &mut Facts, now: Nanos) -> Option<T> {
        let ticket = facts.ticket;
        let (key, slot) = self.slots.entry_mut(ticket);
        let key = key?;
        let since = match slot.place {
            Place::Ready { since, .. } => since,
            _ => now,
        };
        slot.held = false;
        facts.failures = slot.failures;
        facts.priority = slot.priority;
        facts.reasons = std::mem::take(&mut slot.reasons);
        facts.at = now;
        facts.waited = now.saturating_sub(since);
        let (priority, failing) = (slot.priority, slot.failing);
        self.lines.count(priority, failing, false);
        self.failing_in_work += usize::from(failing);
        let spot = self.slots.begin_work(ticket, now);
        self.slots.get_mut(ticket).place = Place::Working { spot };
        Some(key)
    }

    /// Ends the work on a key that succeeded, did not fail before and was not added again meanwhile, as
    /// nearly always: tells how long it was in work. `None` when there is more to it; nothing is done then.
    #[inline(always)]
    pub(super) fn finish_plain(&mut self, ticket: Ticket, now: Nanos) -> Option<Nanos> {
        let slot = self.slots.get(ticket);
        let Place::Working { spot } = slot.place else { return None };
        let Working { since, again: Again::No, .. } = *self.slots.in_work().get(spot as usize)?
        else {
            return None;
        };
        if slot.failing || !self.slots.rest_plainly(ticket) {
            return None;
        }
        self.slots.end_work(spot);
        Some(now.saturating_sub(since))
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
        let Place::Working { spot } = slot.place else { return None };
        self.failing_in_work -= usize::from(slot.failing);
        let delay = judge(self.policy, slot, verdict);
        let retry = delay.filter(|_| slot.failing && !slot.held);
        let Working { since, again, .. } = self.slots.end_work(spot);
        let end = delay.map(|delay| now.saturating_add(nanos(delay)));
        let due = end.filter(|_| !self.closed);
        let worked = now.saturating_sub(since);
        let own = self.again(ticket, due.map(|_| reasons));
        let due = match (again, due) {
            (Again::Now { turn, since, passed, priority }, _) => {
                self.coming_back -= 1;
                self.resume(ticket, (turn, priority), own, since, passed);
                return Some(Finished { worked, retry, left: Discarded::Nothing });
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
        let mut left = Discarded::Nothing;
        match due {
            None if verdict == Verdict::Gone => left = self.slots.leave(ticket),
            None => left = self.slots.rest(ticket),
            Some(at) if at <= now => {
                self.make_ready(ticket, now);
                self.adds += 1;
            }
            Some(at) => {
                self.make_waiting(ticket, at);
                self.delays += 1;
            }
        }
        Some(Finished { worked, retry, left })
    }

    /// When the verdict itself brings the key back: notes why, and tells its priority, which stays.
    fn again(&mut self, ticket: Ticket, reasons: Option<u64>) -> Option<Priority> {
        let slot = self.slots.get_mut(ticket);
        slot.reasons |= reasons?;
        Some(slot.priority)
    }

    /// Accepts no more keys and drops those that wait for their time.
    pub(super) fn close(&mut self) -> Discarded<T> {
        self.closed = true;
        // Looked at before any of them leaves: the last one takes the slots with it.
        let waiting = self.timers.clear().filter(|timer| is_live(&self.slots, timer));
        let waiting: Vec<Ticket> = waiting.map(|(_, _, ticket)| ticket).collect();
        let mut left = Discarded::Nothing;
        for ticket in waiting {
            let slots = self.slots.rest(ticket);
            left = if let Discarded::Nothing = left { slots } else { left };
        }
        self.backing_off = 0;
        left
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
    let slot = slots.find_slot(*ticket);
    slot.is_some_and(
        |slot| matches!(slot.place, Place::Waiting { turn: last, .. } if last == *turn),
    )
}
