//! The queue's state machine: no locks, no tasks, no clock of its own.
//!
//! Every call is passed the time since the queue was made. Each key has one [`KeySlot`]; an idle
//! key keeps its slot, unless there are very many slots. The cost of an operation does not depend
//! on the number of keys; only delays cost another step each time that their number doubles.

use std::time::Duration;

use self::claim::ClaimInfo;
pub(super) use self::claim::{Claim, Finished};
pub(super) use self::completion::Completion;
use self::lanes::PriorityLanes;
pub(super) use self::slot::{Nanos, nanos};
use self::slot::{RepeatedAdd, Stage, Working, apply_completion};
pub(super) use self::slots::Discarded;
pub(crate) use self::slots::SlotHint;
use self::slots::Slots;
pub(super) use self::ticket::{NO_SLOT, Ticket};
use self::timers::{TimerEntry, Timers};
use super::{AddOptions, Priority, RetryPolicy};

mod claim;
mod completion;
mod lane;
mod lanes;
mod queries;
mod slot;
mod slots;
#[cfg(test)]
mod tests;
mod ticket;
mod timers;

/// Most delayed keys that become ready in a call: less than half a millisecond.
const PROMOTED_PER_CALL: usize = 1024;

/// Numbers of keys by state. Each key of a queue is in exactly one of these states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Keys that are ready: a free worker takes them at once.
    pub queued: usize,
    /// Keys that a worker has taken and not yet ended.
    pub working: usize,
    /// Keys that wait for a retry after a failure, or are held without having been worked on.
    pub backing_off: usize,
    /// Keys that wait for their time without having failed, such as a requeue after a delay.
    pub delayed: usize,
}

/// The state of a queue.
#[derive(Debug)]
pub(super) struct QueueCore<T> {
    policy: RetryPolicy,
    /// Most failing keys in work at once.
    failing_limit: usize,
    slots: Slots<T>,
    lanes: PriorityLanes,
    timers: Timers,
    /// Delayed keys that failed or are on hold.
    backing_off: usize,
    /// Keys in work whose last work failed.
    failing_in_work: usize,
    /// Keys in work that were added again.
    added_in_work: usize,
    /// Number of lane entries and of timers so far: the sequence number of the last.
    last_seq: u64,
    /// Adds that were not duplicates, since the start.
    adds: u64,
    /// Keys that were delayed, since the start.
    delays: u64,
    /// Whether the queue accepts no more keys.
    closed: bool,
}

impl<T: Eq + Clone> QueueCore<T> {
    /// Returns an empty queue for `workers` workers; after `ageing` a key is no longer passed over
    /// because of low priority.
    pub(super) fn new(
        workers: usize,
        policy: RetryPolicy,
        ageing: Duration,
        slot_hint: Option<SlotHint<T>>,
    ) -> Self {
        Self {
            policy,
            failing_limit: (workers / 2).max(1),
            slots: Slots::new(slot_hint),
            lanes: PriorityLanes::new(nanos(ageing)),
            timers: Timers::default(),
            backing_off: 0,
            failing_in_work: 0,
            added_in_work: 0,
            last_seq: 0,
            adds: 0,
            delays: 0,
            closed: false,
        }
    }

    /// Adds `key` with the hash; merges the add with earlier ones of the same key. The key or
    /// another one may stay in the argument; that key is to be dropped outside of locks.
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

    /// Returns the probable slot of a key, without proof that the key is there; an add of several
    /// keys first asks for the probable slots of all keys, so that their lookups overlap.
    #[inline]
    pub(super) fn guess(&self, key: &T, hash: u64) -> u32 {
        self.slots.guess(key, hash)
    }

    /// Returns the guess if the key in that slot has the same hash; otherwise [`NO_SLOT`].
    #[inline]
    pub(super) fn confirmed(&self, guess: u32, hash: u64) -> u32 {
        if self.slots.confirm(guess, hash) { guess } else { NO_SLOT }
    }

    /// Adds a key as [`add_hashed`](Self::add_hashed), with a [guess](Self::guess) of the slot.
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
        let Some((ticket, is_new)) = self.slots.get_or_insert(key, hash, guess) else { return };
        let slot = self.slots.get_mut(ticket);
        slot.reasons |= reasons;
        if is_new {
            slot.priority = priority;
        }
        if delay.is_zero() {
            self.add_now(ticket, priority, now);
        } else {
            self.add_at(ticket, priority, now.saturating_add(nanos(delay)));
        }
    }

    /// Makes a key ready, or records the add if the key is in work.
    fn add_now(&mut self, ticket: Ticket, priority: Priority, now: Nanos) {
        let slot = self.slots.get_mut(ticket);
        match slot.stage {
            Stage::Idle => self.make_ready(ticket, now),
            Stage::Ready { .. } if slot.priority >= priority => return,
            Stage::Ready { .. } => return self.raise_priority(ticket, priority),
            Stage::Working { index } => {
                let again = &mut self.slots.working(index).again;
                let priority = match again {
                    RepeatedAdd::Now { .. } => return self.raise_priority(ticket, priority),
                    RepeatedAdd::At { priority: requested, .. } => priority.max(*requested),
                    RepeatedAdd::No => priority,
                };
                self.last_seq += 1;
                *again =
                    RepeatedAdd::Now { seq: self.last_seq, since: now, passed: false, priority };
                // Queued as healthy: whether the work fails is known only at the end.
                self.lanes.push(priority, false, (self.last_seq, ticket));
                self.added_in_work += 1;
            }
            Stage::Waiting { .. } => {
                slot.priority = slot.priority.max(priority);
                self.stop_waiting(ticket);
                self.make_ready(ticket, now);
            }
        }
        self.adds += 1;
    }

    /// Delays a key until `at`, unless due earlier.
    fn add_at(&mut self, ticket: Ticket, priority: Priority, at: Nanos) {
        let slot = self.slots.get_mut(ticket);
        match slot.stage {
            Stage::Ready { .. } => return self.raise_priority(ticket, priority),
            Stage::Working { index } => match &mut self.slots.working(index).again {
                RepeatedAdd::Now { .. } => return self.raise_priority(ticket, priority),
                again @ RepeatedAdd::No => *again = RepeatedAdd::At { at, priority },
                RepeatedAdd::At { at: earlier, priority: requested } => {
                    *requested = priority.max(*requested);
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
            Stage::Idle => self.make_waiting(ticket, at),
        }
        self.delays += 1;
    }

    /// Raises the priority of a key that has an entry in a lane: if the new priority is higher, the
    /// key goes to the end of that priority's lane.
    fn raise_priority(&mut self, ticket: Ticket, higher: Priority) {
        let seq = self.last_seq + 1;
        let slot = self.slots.get_mut(ticket);
        let failing = slot.failing;
        let (old, is_ready, had_entry) = match &mut slot.stage {
            Stage::Ready { seq: entry, .. } if slot.priority < higher => {
                *entry = seq;
                (std::mem::replace(&mut slot.priority, higher), true, true)
            }
            Stage::Working { index } => {
                let index = *index;
                match &mut self.slots.working(index).again {
                    RepeatedAdd::Now { seq: entry, passed, priority, .. } if *priority < higher => {
                        *entry = seq;
                        // An entry that was passed over is not in a lane any more.
                        let had_entry = !std::mem::take(passed);
                        (std::mem::replace(priority, higher), false, had_entry)
                    }
                    _ => return,
                }
            }
            _ => return,
        };
        self.last_seq = seq;
        if had_entry {
            // The old entry stays in the lane, outdated: a lane has no cheap removal from the
            // middle.
            self.lanes.outdate(old, &self.slots);
        }
        if is_ready {
            self.lanes.count(old, failing, false);
            self.lanes.count(higher, failing, true);
        }
        self.lanes.push(higher, is_ready && failing, (seq, ticket));
    }

    /// Makes delayed keys ready that are due, the earliest first. At most
    /// [`PROMOTED_PER_CALL`] of them, so that very many keys that are due together do not hold the
    /// lock for long: the others follow with the next calls, and [`next_due`](Self::next_due) is in
    /// the past until then.
    #[inline]
    pub(super) fn promote(&mut self, now: Nanos) {
        if self.timers.next().is_some_and(|(first, ..)| first <= now) {
            self.promote_some(now, PROMOTED_PER_CALL);
        }
    }

    /// [`promote`](Self::promote) for at most `most` keys; returns their number.
    pub(super) fn promote_some(&mut self, now: Nanos, most: usize) -> usize {
        for count in 0..most {
            let next = self.timers.next().filter(|(at, ..)| *at <= now);
            let Some((at, _, ticket)) = next else { return count };
            self.backing_off -= usize::from(self.slots.get(ticket).is_backing_off());
            self.timers.pop(|timer| is_live(&self.slots, timer));
            // Ready since the due time, not since this call: the time in between was a wait, too.
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
        let mut info = ClaimInfo::of(ticket);
        let key = self.begin_work(&mut info, now)?;
        Some(Claim { key, info })
    }

    /// [`take`](Self::take) into `claim`, which a worker reuses; returns the key that `claim` had
    /// before, to be dropped outside of locks.
    #[inline]
    pub(super) fn take_into(&mut self, claim: &mut Claim<T>, now: Nanos) -> Option<T> {
        claim.info.ticket = self.next(now)?;
        let key = self.begin_work(&mut claim.info, now)?;
        Some(std::mem::replace(&mut claim.key, key))
    }

    /// Takes the ticket of the next key out of the lane.
    #[inline]
    fn next(&mut self, now: Nanos) -> Option<Ticket> {
        // No search of the lanes when only failing keys are ready and none may be taken.
        if self.eligible() == 0 {
            return None;
        }
        let may_fail = self.failing_in_work < self.failing_limit;
        self.lanes.take(&mut self.slots, may_fail, now)
    }

    /// Begins the work on a key. Writes `info` field by field: a read right after a wider store
    /// would wait for that store to complete.
    #[inline(always)]
    fn begin_work(&mut self, info: &mut ClaimInfo, now: Nanos) -> Option<T> {
        let ticket = info.ticket;
        let (key, slot) = self.slots.entry_mut(ticket);
        let key = key?;
        let since = match slot.stage {
            Stage::Ready { since, .. } => since,
            _ => now,
        };
        slot.on_hold = false;
        info.failures = slot.failures;
        info.priority = slot.priority;
        info.reasons = std::mem::take(&mut slot.reasons);
        info.at = now;
        info.waited = now.saturating_sub(since);
        let (priority, failing) = (slot.priority, slot.failing);
        self.lanes.count(priority, failing, false);
        self.failing_in_work += usize::from(failing);
        let index = self.slots.begin_work(ticket, now);
        self.slots.get_mut(ticket).stage = Stage::Working { index };
        Some(key)
    }

    /// Ends the work on a key in the common case: the work succeeded, and the key did not fail
    /// before and was not added again meanwhile. Returns the time that it was in work; `None`,
    /// without a change, in all other cases.
    #[inline(always)]
    pub(super) fn finish_plain(&mut self, ticket: Ticket, now: Nanos) -> Option<Nanos> {
        let slot = self.slots.get(ticket);
        let Stage::Working { index } = slot.stage else { return None };
        let Working { since, again: RepeatedAdd::No, .. } =
            *self.slots.in_work().get(index as usize)?
        else {
            return None;
        };
        if slot.failing || !self.slots.make_idle_plain(ticket) {
            return None;
        }
        self.slots.end_work(index);
        Some(now.saturating_sub(since))
    }

    /// Ends the work on a key; `reasons` are for the next attempt, if the completion leads to one.
    /// `None` when the key was not in work.
    #[inline]
    pub(super) fn finish(
        &mut self,
        ticket: Ticket,
        completion: Completion,
        reasons: u64,
        now: Nanos,
    ) -> Option<Finished<T>> {
        let slot = self.slots.get_mut(ticket);
        let Stage::Working { index } = slot.stage else { return None };
        self.failing_in_work -= usize::from(slot.failing);
        let delay = apply_completion(self.policy, slot, completion);
        // Only a delay after a failure is a retry.
        let retry = delay.filter(|_| slot.failing && !slot.on_hold);
        let Working { since, again, .. } = self.slots.end_work(index);
        let due = delay.map(|delay| now.saturating_add(nanos(delay)));
        // After a shutdown a completion requeues no key; adds during the work still count.
        let due = due.filter(|_| !self.closed);
        let worked = now.saturating_sub(since);
        let own = self.requeue_priority(ticket, due.map(|_| reasons));
        let due = match (again, due) {
            (RepeatedAdd::Now { seq, since, passed, priority }, _) => {
                self.added_in_work -= 1;
                self.make_ready_again(ticket, (seq, priority), own, since, passed);
                return Some(Finished { worked, retry, discarded: Discarded::Nothing });
            }
            (RepeatedAdd::At { .. }, _) if self.closed => None,
            (RepeatedAdd::At { at, .. }, Some(due)) => Some(at.min(due)),
            (RepeatedAdd::At { at, .. }, None) => Some(at),
            (RepeatedAdd::No, due) => due,
        };
        if let RepeatedAdd::At { priority, .. } = again {
            let slot = self.slots.get_mut(ticket);
            slot.priority = own.map_or(priority, |own| own.max(priority));
        }
        let mut discarded = Discarded::Nothing;
        match due {
            None if completion == Completion::Gone => discarded = self.slots.release(ticket),
            None => discarded = self.slots.make_idle(ticket),
            Some(at) if at <= now => {
                self.make_ready(ticket, now);
                self.adds += 1;
            }
            Some(at) => {
                self.make_waiting(ticket, at);
                self.delays += 1;
            }
        }
        Some(Finished { worked, retry, discarded })
    }

    /// If the completion itself requeues the key: adds the reasons of the requeue, and returns the
    /// key's priority, which stays.
    fn requeue_priority(&mut self, ticket: Ticket, reasons: Option<u64>) -> Option<Priority> {
        let slot = self.slots.get_mut(ticket);
        slot.reasons |= reasons?;
        Some(slot.priority)
    }

    /// Closes the queue: the queue accepts no more keys and drops the delayed ones.
    pub(super) fn close(&mut self) -> Discarded<T> {
        self.closed = true;
        // Collected before any key becomes idle: the last idle key may release all slots.
        let waiting = self.timers.clear().filter(|timer| is_live(&self.slots, timer));
        let waiting: Vec<Ticket> = waiting.map(|(_, _, ticket)| ticket).collect();
        let mut discarded = Discarded::Nothing;
        for ticket in waiting {
            let slots = self.slots.make_idle(ticket);
            discarded = if let Discarded::Nothing = discarded { slots } else { discarded };
        }
        self.backing_off = 0;
        discarded
    }

    /// Makes a key ready, with an entry at the end of the lane.
    fn make_ready(&mut self, ticket: Ticket, since: Nanos) {
        self.last_seq += 1;
        let slot = self.slots.get_mut(ticket);
        slot.stage = Stage::Ready { since, seq: self.last_seq };
        self.lanes.push(slot.priority, slot.failing, (self.last_seq, ticket));
        self.lanes.count(slot.priority, slot.failing, true);
    }

    /// Makes a key ready, with the lane entry from its time in work; if that entry was passed over,
    /// with a new one of the same sequence number. `own` is the priority that the key keeps because
    /// of the completion.
    fn make_ready_again(
        &mut self,
        ticket: Ticket,
        (seq, requested): (u64, Priority),
        own: Option<Priority>,
        since: Nanos,
        passed: bool,
    ) {
        let slot = self.slots.get_mut(ticket);
        let failing = slot.failing;
        slot.stage = Stage::Ready { since, seq };
        slot.priority = requested;
        self.lanes.count(requested, failing, true);
        if passed {
            self.lanes.push_overdue(requested, failing, (seq, ticket));
        }
        if let Some(own) = own {
            self.raise_priority(ticket, own);
        }
    }

    /// Delays a key until `at`.
    fn make_waiting(&mut self, ticket: Ticket, at: Nanos) {
        self.last_seq += 1;
        let slot = self.slots.get_mut(ticket);
        slot.stage = Stage::Waiting { at, seq: self.last_seq };
        self.backing_off += usize::from(slot.is_backing_off());
        self.timers.add((at, self.last_seq, ticket));
    }

    /// Ends the delay of a key; the caller gives the key the next stage.
    fn stop_waiting(&mut self, ticket: Ticket) {
        let slot = self.slots.get_mut(ticket);
        slot.stage = Stage::Idle;
        self.backing_off -= usize::from(slot.is_backing_off());
        self.timers.outdate(|timer| is_live(&self.slots, timer));
    }
}

/// Returns whether this timer is still the current one of the key.
fn is_live<T>(slots: &Slots<T>, (_, seq, ticket): &TimerEntry) -> bool {
    let slot = slots.find_slot(*ticket);
    slot.is_some_and(|slot| matches!(slot.stage, Stage::Waiting { seq: last, .. } if last == *seq))
}
