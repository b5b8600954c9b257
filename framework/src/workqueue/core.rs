//! The queue as a state machine: no locks, no tasks, no clock of its own.
//!
//! Every call is told the time since the queue was made. A key has one [`Slot`] while it is ready,
//! in work or waiting; when it rests it has none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::RetryPolicy;

#[cfg(test)]
mod tests;

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
    /// Failures in a row so far.
    pub(super) failures: u32,
    /// How long it was ready.
    pub(super) waited: Duration,
}

/// What a verdict led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finished {
    /// How long it was in work.
    pub(super) worked: Duration,
    /// When a retry is due; `None` for a success, or when the policy gave up.
    pub(super) retry: Option<Duration>,
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

#[derive(Debug)]
struct Slot {
    place: Place,
    failures: u32,
    failing: bool,
    /// Put off before it was worked on.
    held: bool,
}

impl Slot {
    /// A key that nothing is known of, before it is put somewhere.
    fn resting() -> Self {
        let place = Place::Waiting { at: Duration::MAX, turn: 0 };
        Self { place, failures: 0, failing: false, held: false }
    }
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Ready { since: Duration },
    Working { again: Option<Again> },
    Waiting { at: Duration, turn: u64 },
}

/// What was asked of a key while it was in work.
#[derive(Clone, Copy, Debug)]
enum Again {
    Now { turn: u64, since: Duration },
    At(Duration),
}

/// The state of a queue.
#[derive(Debug)]
pub(super) struct Core<T> {
    policy: RetryPolicy,
    /// How many failing keys may be in work at once.
    failing_limit: usize,
    slots: BTreeMap<T, Slot>,
    /// Ready keys by turn: those whose last work succeeded, and those whose last work failed.
    healthy: BTreeMap<u64, T>,
    failing: BTreeMap<u64, T>,
    timers: BTreeSet<(Duration, u64, T)>,
    /// Keys in work, since when.
    in_work: BTreeMap<T, Duration>,
    failing_in_work: usize,
    turn: u64,
    adds: u64,
    delays: u64,
    closed: bool,
}

impl<T: Ord + Clone> Core<T> {
    /// A queue for `workers` workers.
    pub(super) fn new(workers: usize, policy: RetryPolicy) -> Self {
        Self {
            policy,
            failing_limit: (workers / 2).max(1),
            slots: BTreeMap::new(),
            healthy: BTreeMap::new(),
            failing: BTreeMap::new(),
            timers: BTreeSet::new(),
            in_work: BTreeMap::new(),
            failing_in_work: 0,
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
        let turn = self.next_turn();
        let Some(slot) = self.slots.get_mut(&key) else {
            self.slots.insert(key.clone(), Slot::resting());
            self.make_ready(&key, turn, now);
            self.adds += 1;
            return;
        };
        match slot.place {
            Place::Ready { .. } | Place::Working { again: Some(Again::Now { .. }) } => return,
            Place::Working { .. } => {
                slot.place = Place::Working { again: Some(Again::Now { turn, since: now }) };
            }
            Place::Waiting { at, turn: timer } => {
                self.timers.remove(&(at, timer, key.clone()));
                self.make_ready(&key, turn, now);
            }
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
        let slot = self.slots.entry(key.clone()).or_insert_with(Slot::resting);
        match &mut slot.place {
            Place::Ready { .. } => return,
            Place::Working { again } => match again {
                Some(Again::Now { .. }) => return,
                Some(Again::At(earlier)) if *earlier <= at => return,
                _ => *again = Some(Again::At(at)),
            },
            Place::Waiting { at: earlier, turn } => {
                if *earlier <= at {
                    return;
                }
                self.timers.remove(&(*earlier, *turn, key.clone()));
                self.make_waiting(&key, at);
            }
        }
        self.delays += 1;
    }

    /// Makes keys ready whose time has come.
    pub(super) fn promote(&mut self, now: Duration) {
        while self.timers.first().is_some_and(|(at, ..)| *at <= now) {
            if let Some((at, _, key)) = self.timers.pop_first() {
                let turn = self.next_turn();
                self.make_ready(&key, turn, at);
                self.adds += 1;
            }
        }
    }

    /// The key whose turn it is. Keys that keep failing are passed over while they hold their share
    /// of the workers.
    pub(super) fn take(&mut self, now: Duration) -> Option<Taken<T>> {
        let failing = if self.failing_in_work < self.failing_limit {
            self.failing.first_key_value().map(|(turn, _)| *turn)
        } else {
            None
        };
        let healthy = self.healthy.first_key_value().map(|(turn, _)| *turn);
        let (_, key) = match (healthy, failing) {
            (Some(healthy), Some(failing)) if failing < healthy => self.failing.pop_first(),
            (Some(_), _) => self.healthy.pop_first(),
            (None, Some(_)) => self.failing.pop_first(),
            (None, None) => None,
        }?;
        let slot = self.slots.get_mut(&key)?;
        let since = match slot.place {
            Place::Ready { since, .. } => since,
            _ => now,
        };
        slot.place = Place::Working { again: None };
        slot.held = false;
        self.failing_in_work += usize::from(slot.failing);
        self.in_work.insert(key.clone(), now);
        let failures = slot.failures;
        Some(Taken { key, failures, waited: now.saturating_sub(since) })
    }

    /// Ends the work on `key`. `None` when it was not in work.
    pub(super) fn finish(&mut self, key: &T, verdict: Verdict, now: Duration) -> Option<Finished> {
        let since = self.in_work.remove(key)?;
        let slot = self.slots.get_mut(key)?;
        let again = match slot.place {
            Place::Working { again } => again,
            _ => None,
        };
        self.failing_in_work -= usize::from(slot.failing);
        let delay = Self::judge(self.policy, slot, verdict);
        let due = delay.map(|delay| now.saturating_add(delay)).filter(|_| !self.closed);
        let end = Finished {
            worked: now.saturating_sub(since),
            retry: delay.filter(|_| slot.failing && !slot.held),
        };
        let due = match (again, due) {
            (Some(Again::Now { turn, since }), _) => {
                self.make_ready(key, turn, since);
                return Some(end);
            }
            (Some(Again::At(_)), _) if self.closed => None,
            (Some(Again::At(at)), Some(due)) => Some(at.min(due)),
            (Some(Again::At(at)), None) => Some(at),
            (None, due) => due,
        };
        match due {
            None => {
                self.slots.remove(key);
            }
            Some(at) if at <= now => {
                let turn = self.next_turn();
                self.make_ready(key, turn, now);
                self.adds += 1;
            }
            Some(at) => {
                self.make_waiting(key, at);
                self.delays += 1;
            }
        }
        Some(end)
    }

    /// Notes success or failure; returns the delay that follows, if any.
    fn judge(policy: RetryPolicy, slot: &mut Slot, verdict: Verdict) -> Option<Duration> {
        match verdict {
            Verdict::Done | Verdict::After(_) => (slot.failures, slot.failing) = (0, false),
            Verdict::Retry { .. } => {
                slot.failures = slot.failures.saturating_add(1);
                slot.failing = true;
            }
            Verdict::RetryAfter(_) => slot.failing = true,
            Verdict::Hold(_) => slot.held = true,
        }
        match verdict {
            Verdict::Done => None,
            Verdict::After(delay) | Verdict::RetryAfter(delay) | Verdict::Hold(delay) => {
                Some(delay)
            }
            Verdict::Retry { draw } => {
                let bound = policy.bound(slot.failures);
                if bound.is_none() {
                    (slot.failures, slot.failing) = (0, false);
                }
                bound.map(|bound| bound.mul_f64(draw.clamp(0.0, 1.0)))
            }
        }
    }

    /// Accepts no more keys and drops those that wait for their time.
    pub(super) fn close(&mut self) {
        self.closed = true;
        for (_, _, key) in std::mem::take(&mut self.timers) {
            self.slots.remove(&key);
        }
    }

    /// Is nothing ready and nothing in work?
    pub(super) fn quiet(&self) -> bool {
        self.in_work.is_empty() && self.ready() == 0
    }

    /// Closed, and no key will become ready any more?
    pub(super) fn exhausted(&self) -> bool {
        self.closed && self.ready() == 0 && !self.in_work.keys().any(|key| self.comes_back(key))
    }

    fn comes_back(&self, key: &T) -> bool {
        let place = self.slots.get(key).map(|slot| slot.place);
        matches!(place, Some(Place::Working { again: Some(Again::Now { .. }) }))
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
        self.healthy.len() + self.failing.len().min(failing)
    }

    /// How many keys are ready, takeable or not.
    fn ready(&self) -> usize {
        self.healthy.len() + self.failing.len()
    }

    /// When the next delayed key is due.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.timers.first().map(|(at, ..)| *at)
    }

    /// When the work in progress began.
    pub(super) fn in_work(&self) -> impl Iterator<Item = Duration> + '_ {
        self.in_work.values().copied()
    }

    /// How many keys are where.
    pub(super) fn counts(&self) -> QueueCounts {
        let waiting = self.timers.iter().map(|(_, _, key)| key);
        let backing_off = waiting
            .filter(|key| self.slots.get(key).is_some_and(|slot| slot.failing || slot.held))
            .count();
        QueueCounts {
            queued: self.ready(),
            working: self.in_work.len(),
            backing_off,
            delayed: self.timers.len() - backing_off,
        }
    }

    fn make_ready(&mut self, key: &T, turn: u64, since: Duration) {
        if let Some(slot) = self.slots.get_mut(key) {
            slot.place = Place::Ready { since };
            let ready = if slot.failing { &mut self.failing } else { &mut self.healthy };
            ready.insert(turn, key.clone());
        }
    }

    fn make_waiting(&mut self, key: &T, at: Duration) {
        let turn = self.next_turn();
        if let Some(slot) = self.slots.get_mut(key) {
            slot.place = Place::Waiting { at, turn };
            self.timers.insert((at, turn, key.clone()));
        }
    }

    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }
}
