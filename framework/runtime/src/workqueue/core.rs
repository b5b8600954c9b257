//! The queue's state machine: no locks, no tasks, no clock of its own.
//!
//! Every call is passed the time since the queue was made. Each key has one [`Slot`]; a resting key
//! keeps it, unless there are very many slots. The cost of an operation does not depend on the
//! number of keys; only delays cost one more step each time that their number doubles.

use std::time::Duration;

use self::lanes::PriorityLanes;
use self::slot::{Again, Stage, Working, judge};
pub(super) use self::slot::{Nanos, nanos};
pub(crate) use self::slots::Notes;
use self::slots::Slots;
pub(super) use self::slots::{Discarded, NOWHERE, Ticket};
use self::timers::{Timer, Timers};
use super::{AddOptions, Priority, RetryPolicy};

mod lanes;
mod look;
mod ready;
mod slot;
mod slots;
#[cfg(test)]
mod tests;
mod timers;

/// Most delayed keys that become ready in one call: less than half a millisecond.
const AT_ONCE: usize = 1024;

/// Number of keys in each state.
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

/// The outcome of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Success.
    Done,
    /// Success, and the key is not likely to come back.
    Gone,
    /// Success; the key comes back after this delay.
    After(Duration),
    /// Failure; `draw` in `[0, 1)` picks the delay below the bound.
    Retry { draw: f64 },
    /// As `Retry`, counted as the first failure in a row whatever came before.
    RetryAnew { draw: f64 },
    /// Failure with a delay of its own; the bound does not grow.
    RetryAfter(Duration),
    /// Not worked on yet: neither success nor failure; the key comes back after this delay.
    Hold(Duration),
}

/// A key handed to a worker.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claim<T> {
    pub(super) key: T,
    pub(super) facts: Facts,
}

/// Facts about a key that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Ticket to present when the work ends.
    pub(super) ticket: Ticket,
    /// Failures in a row so far.
    pub(super) failures: u32,
    pub(super) priority: Priority,
    /// Reasons of all adds since the key was last taken.
    pub(super) reasons: u64,
    /// Time at which the key was taken.
    pub(super) at: Nanos,
    /// Time for which the key was ready.
    pub(super) waited: Nanos,
}

impl Facts {
    /// Returns facts with a ticket and defaults for the rest, which `begin` replaces.
    fn of(ticket: Ticket) -> Self {
        Self { ticket, failures: 0, priority: Priority::NORMAL, reasons: 0, at: 0, waited: 0 }
    }
}

/// Result of a verdict.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finished<T> {
    /// Time for which the key was in work.
    pub(super) worked: Nanos,
    /// Delay until the retry; `None` for a success, or when the policy gave up.
    pub(super) retry: Option<Duration>,
    /// Memory that is no longer needed, to be dropped outside of locks.
    pub(super) left: Discarded<T>,
}

/// The state of a queue.
#[derive(Debug)]
pub(super) struct Core<T> {
    policy: RetryPolicy,
    /// Most failing keys in work at once.
    failing_limit: usize,
    slots: Slots<T>,
    lines: PriorityLanes,
    timers: Timers,
    /// Delayed keys that failed or were held back.
    backing_off: usize,
    /// Keys in work whose last work failed.
    failing_in_work: usize,
    /// Keys in work that were added again.
    coming_back: usize,
    /// Number of places in line and of timers so far: the order among them.
    turn: u64,
    /// Adds that were not duplicates, since the start.
    adds: u64,
    /// Keys put off by a delay, since the start.
    delays: u64,
    /// Whether the queue accepts no more keys.
    closed: bool,
}

impl<T: Eq + Clone> Core<T> {
    /// Returns an empty queue for `workers` workers; after `ageing` a key is no longer passed over
    /// for its low priority.
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
            lines: PriorityLanes::new(nanos(ageing)),
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

    /// Adds `key` with its hash; merges the add with earlier ones of the same key. The key or
    /// another one may be left in the argument; it is to be dropped outside of locks.
    pub(super) fn add_hashed(
        &mut self,
        (hash, key): &mut (u64, Option<T>),
        options: AddOptions,
        now: Nanos,
    ) {
        let Some(known) = key.as_ref() else { return };
        let guess = self.guess(known, *hash);
        self.add_guessed((*hash, guess, key), options, now);
    }

    /// Returns the probable slot of a key; an add of several keys guesses all of them first.
    #[inline]
    pub(super) fn guess(&self, key: &T, hash: u64) -> u32 {
        self.slots.guess(key, hash)
    }

    /// Returns the guess if that slot has the same hash; otherwise [`NOWHERE`].
    #[inline]
    pub(super) fn confirmed(&self, guess: u32, hash: u64) -> u32 {
        if self.slots.confirm(guess, hash) { guess } else { NOWHERE }
    }

    /// Adds a key as [`add_hashed`](Self::add_hashed), with a [guess](Self::guess) of its slot.
    #[inline]
    pub(super) fn add_guessed(
        &mut self,
        (hash, guess, key): (u64, u32, &mut Option<T>),
        options: AddOptions,
        now: Nanos,
    ) {
        if self.closed {
            return;
        }
        let AddOptions { priority, reasons, delay } = options;
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

    /// Makes a key ready, or notes the add if it is in work.
    fn want(&mut self, ticket: Ticket, priority: Priority, now: Nanos) {
        let slot = self.slots.get_mut(ticket);
        match slot.stage {
            Stage::Resting => self.make_ready(ticket, now),
            Stage::Ready { .. } if slot.priority >= priority => return,
            Stage::Ready { .. } => return self.raise(ticket, priority),
            Stage::Working { spot } => {
                let again = &mut self.slots.working(spot).again;
                let priority = match again {
                    Again::Now { .. } => return self.raise(ticket, priority),
                    Again::At { priority: asked, .. } => priority.max(*asked),
                    Again::No => priority,
                };
                self.turn += 1;
                *again = Again::Now { turn: self.turn, since: now, passed: false, priority };
                // Joined as healthy: whether the work fails is known only at its end.
                self.lines.join(priority, false, (self.turn, ticket));
                self.coming_back += 1;
            }
            Stage::Waiting { .. } => {
                slot.priority = slot.priority.max(priority);
                self.stop_waiting(ticket);
                self.make_ready(ticket, now);
            }
        }
        self.adds += 1;
    }

    /// Delays a key until `at`, unless an earlier time was asked for already.
    fn want_at(&mut self, ticket: Ticket, priority: Priority, at: Nanos) {
        let slot = self.slots.get_mut(ticket);
        match slot.stage {
            Stage::Ready { .. } => return self.raise(ticket, priority),
            Stage::Working { spot } => match &mut self.slots.working(spot).again {
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
            Stage::Waiting { at: earlier, .. } => {
                slot.priority = slot.priority.max(priority);
                if at >= earlier {
                    return;
                }
                self.stop_waiting(ticket);
                self.make_waiting(ticket, at);
            }
            Stage::Resting => self.make_waiting(ticket, at),
        }
        self.delays += 1;
    }

    /// Raises the priority of a key that has a place in line: if the new priority is higher, the
    /// key goes to the end of that priority's line.
    fn raise(&mut self, ticket: Ticket, higher: Priority) {
        let turn = self.turn + 1;
        let slot = self.slots.get_mut(ticket);
        let failing = slot.failing;
        let (old, is_ready, had_place) = match &mut slot.stage {
            Stage::Ready { turn: place, .. } if slot.priority < higher => {
                *place = turn;
                (std::mem::replace(&mut slot.priority, higher), true, true)
            }
            Stage::Working { spot } => {
                let spot = *spot;
                match &mut self.slots.working(spot).again {
                    Again::Now { turn: place, passed, priority, .. } if *priority < higher => {
                        *place = turn;
                        // A place that was passed over has left its line already.
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
            // The old place stays where it is, outdated: a line has no cheap removal from its
            // middle.
            self.lines.outdate(old, &self.slots);
        }
        if is_ready {
            self.lines.count(old, failing, false);
            self.lines.count(higher, failing, true);
        }
        self.lines.join(higher, is_ready && failing, (turn, ticket));
    }

    /// Makes delayed keys ready that are due, the earliest first. At most [`AT_ONCE`] of them, so
    /// that very many keys that are due together do not hold the lock for long: the rest follows
    /// with the next calls, and [`next_due`](Self::next_due) is in the past until then.
    #[inline]
    pub(super) fn promote(&mut self, now: Nanos) {
        if self.timers.next().is_some_and(|(first, ..)| first <= now) {
            self.promote_some(now, AT_ONCE);
        }
    }

    /// [`promote`](Self::promote) for at most `most` keys; returns their number.
    pub(super) fn promote_some(&mut self, now: Nanos, most: usize) -> usize {
        for count in 0..most {
            let next = self.timers.next().filter(|(at, ..)| *at <= now);
            let Some((at, _, ticket)) = next else { return count };
            self.backing_off -= usize::from(self.slots.get(ticket).is_backing_off());
            self.timers.pop(|timer| is_live(&self.slots, timer));
            // Ready since it was due, not since this call: the time in between was a wait, too.
            self.make_ready(ticket, at);
            self.adds += 1;
        }
        most
    }

    /// Takes the next key. Keys that keep failing are passed over while they hold their share of
    /// the workers.
    #[inline]
    pub(super) fn take(&mut self, now: Nanos) -> Option<Claim<T>> {
        let ticket = self.next(now)?;
        let mut facts = Facts::of(ticket);
        let key = self.begin(&mut facts, now)?;
        Some(Claim { key, facts })
    }

    /// [`take`](Self::take) into `hand`, the claim that a worker reuses; returns the key that
    /// `hand` had before, to be dropped outside of locks.
    #[inline]
    pub(super) fn take_into(&mut self, hand: &mut Claim<T>, now: Nanos) -> Option<T> {
        hand.facts.ticket = self.next(now)?;
        let key = self.begin(&mut hand.facts, now)?;
        Some(std::mem::replace(&mut hand.key, key))
    }

    /// Takes the ticket of the next key out of its line.
    #[inline]
    fn next(&mut self, now: Nanos) -> Option<Ticket> {
        // No search of the lines when only failing keys are ready and none may be taken.
        if self.eligible() == 0 {
            return None;
        }
        let may_fail = self.failing_in_work < self.failing_limit;
        self.lines.take(&mut self.slots, may_fail, now)
    }

    /// Begins the work on a key. Writes its facts field by field: a read right after a wider store
    /// would wait for that store to complete.
    #[inline(always)]
    fn begin(&mut self, facts: &mut Facts, now: Nanos) -> Option<T> {
        let ticket = facts.ticket;
        let (key, slot) = self.slots.entry_mut(ticket);
        let key = key?;
        let since = match slot.stage {
            Stage::Ready { since, .. } => since,
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
        self.slots.get_mut(ticket).stage = Stage::Working { spot };
        Some(key)
    }

    /// Ends the work on a key in the common case: it succeeded, did not fail before and was not
    /// added again meanwhile. Returns the time that it was in work; `None`, without a change, in
    /// all other cases.
    #[inline(always)]
    pub(super) fn finish_plain(&mut self, ticket: Ticket, now: Nanos) -> Option<Nanos> {
        let slot = self.slots.get(ticket);
        let Stage::Working { spot } = slot.stage else { return None };
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
    /// when the key was not in work.
    #[inline]
    pub(super) fn finish(
        &mut self,
        ticket: Ticket,
        verdict: Verdict,
        reasons: u64,
        now: Nanos,
    ) -> Option<Finished<T>> {
        let slot = self.slots.get_mut(ticket);
        let Stage::Working { spot } = slot.stage else { return None };
        self.failing_in_work -= usize::from(slot.failing);
        let delay = judge(self.policy, slot, verdict);
        // Only a delay after a failure is a retry.
        let retry = delay.filter(|_| slot.failing && !slot.held);
        let Working { since, again, .. } = self.slots.end_work(spot);
        let end = delay.map(|delay| now.saturating_add(nanos(delay)));
        // After a shutdown a verdict brings no key back; adds during the work still count.
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

    /// If the verdict itself brings the key back: adds its reasons, and returns the key's priority,
    /// which stays.
    fn again(&mut self, ticket: Ticket, reasons: Option<u64>) -> Option<Priority> {
        let slot = self.slots.get_mut(ticket);
        slot.reasons |= reasons?;
        Some(slot.priority)
    }

    /// Closes the queue: it accepts no more keys and drops the delayed ones.
    pub(super) fn close(&mut self) -> Discarded<T> {
        self.closed = true;
        // Collected before any key leaves its slot: the last one that rests may give back all
        // slots.
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

    /// Makes a key ready, with a place at the end of the line.
    fn make_ready(&mut self, ticket: Ticket, since: Nanos) {
        self.turn += 1;
        let slot = self.slots.get_mut(ticket);
        slot.stage = Stage::Ready { since, turn: self.turn };
        self.lines.join(slot.priority, slot.failing, (self.turn, ticket));
        self.lines.count(slot.priority, slot.failing, true);
    }

    /// Makes a key ready, with the place in line that it took while in work; if that place was
    /// passed over, with a new one by its old turn. `own` is the priority that the key keeps
    /// because of the verdict.
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
        slot.stage = Stage::Ready { since, turn };
        slot.priority = asked;
        self.lines.count(asked, failing, true);
        if passed {
            self.lines.rejoin(asked, failing, (turn, ticket));
        }
        if let Some(own) = own {
            self.raise(ticket, own);
        }
    }

    /// Delays a key until `at`.
    fn make_waiting(&mut self, ticket: Ticket, at: Nanos) {
        self.turn += 1;
        let slot = self.slots.get_mut(ticket);
        slot.stage = Stage::Waiting { at, turn: self.turn };
        self.backing_off += usize::from(slot.is_backing_off());
        self.timers.add((at, self.turn, ticket));
    }

    /// Ends the wait of a delayed key; the caller puts the key elsewhere.
    fn stop_waiting(&mut self, ticket: Ticket) {
        let slot = self.slots.get_mut(ticket);
        slot.stage = Stage::Resting;
        self.backing_off -= usize::from(slot.is_backing_off());
        self.timers.outdate(|timer| is_live(&self.slots, timer));
    }
}

/// Whether this timer is still the current one of its key.
fn is_live<T>(slots: &Slots<T>, (_, turn, ticket): &Timer) -> bool {
    let slot = slots.find_slot(*ticket);
    slot.is_some_and(
        |slot| matches!(slot.stage, Stage::Waiting { turn: last, .. } if last == *turn),
    )
}
