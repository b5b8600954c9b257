//! Two lanes per priority, and the choice of the next key.
//!
//! The lanes of the highest priority go first. A flood of urgent keys must not starve other keys,
//! so a key that has waited for the ageing time competes again: of [`SHARE`] turns in a row one
//! goes to the key that has waited the longest, whatever the priority (G-Q7: no ready key starves
//! behind others of higher priority).

// DESIGN.md, 42: Aged low-priority keys get every fourth turn

use super::lane::{Lane, LaneEntry};
use super::slot::{Nanos, RepeatedAdd, Stage};
use super::slots::Slots;
use super::ticket::Ticket;
use crate::workqueue::Priority;

/// One of this many turns goes to an aged key of a lower priority: keys of higher priority lose a
/// quarter of the turns at most, and an aged key with `n` aged keys before it waits for at most
/// `4 * (n + 1)` turns.
const SHARE: u32 = 4;
/// Outdated entries, beyond the number of live ones, that do not justify a sweep.
const SLACK: usize = 64;

/// Ready keys of every priority.
#[derive(Debug)]
pub(super) struct PriorityLanes {
    /// A pair of lanes per priority, the highest first.
    pairs: Vec<LanePair>,
    /// Index of the pair used last, which is most often the next pair too.
    last: usize,
    ageing: Nanos,
    /// Turns in a row for which an aged key was passed over.
    passed_over: u32,
    /// Ready keys whose last work succeeded.
    pub(super) healthy_ready: usize,
    /// Ready keys whose last work failed.
    pub(super) failing_ready: usize,
}

/// The two lanes of a priority.
#[derive(Debug)]
struct LanePair {
    priority: Priority,
    /// Entries of keys whose last work succeeded, and of keys in work.
    healthy: Lane,
    /// Entries of keys whose last work failed.
    failing: Lane,
    /// Number of entries that are not outdated.
    live: usize,
    /// Number of ready keys.
    ready: usize,
    /// Number of priorities that were seen before this priority.
    seen_before: usize,
}

impl PriorityLanes {
    pub(super) fn new(ageing: Nanos) -> Self {
        Self {
            pairs: Vec::new(),
            last: 0,
            ageing,
            passed_over: 0,
            healthy_ready: 0,
            failing_ready: 0,
        }
    }

    /// Returns the lanes of a priority, which are created if necessary.
    #[inline]
    fn pair(&mut self, priority: Priority) -> &mut LanePair {
        if self.pairs.get(self.last).is_none_or(|pair| pair.priority != priority) {
            self.last = self.find(priority);
        }
        &mut self.pairs[self.last]
    }

    /// Returns the index of a priority's lanes, which are created if necessary.
    #[cold]
    fn find(&mut self, priority: Priority) -> usize {
        // A linear search: most queues have one or two priorities.
        let at = self.pairs.iter().position(|pair| pair.priority <= priority);
        let at = at.unwrap_or(self.pairs.len());
        if self.pairs.get(at).is_none_or(|pair| pair.priority != priority) {
            self.pairs.insert(at, LanePair::new(priority, self.pairs.len()));
        }
        at
    }

    /// Adds an entry at the end of a lane.
    pub(super) fn push(&mut self, priority: Priority, failing: bool, entry: LaneEntry) {
        let pair = self.pair(priority);
        pair.live += 1;
        let lane = if failing { &mut pair.failing } else { &mut pair.healthy };
        lane.push(entry.0, entry.1);
    }

    /// Adds an entry by sequence number, for a key that was passed over.
    pub(super) fn push_overdue(&mut self, priority: Priority, failing: bool, entry: LaneEntry) {
        let pair = self.pair(priority);
        pair.live += 1;
        let lane = if failing { &mut pair.failing } else { &mut pair.healthy };
        lane.push_overdue(entry.0, entry.1);
    }

    /// Counts an entry of this priority as outdated: the key got another entry.
    pub(super) fn outdate<T>(&mut self, priority: Priority, slots: &Slots<T>) {
        let pair = self.pair(priority);
        pair.live -= 1;
        // Swept when outdated entries outnumber live entries, so that a sweep costs a constant per
        // entry.
        if pair.healthy.len() + pair.failing.len() > 2 * pair.live + SLACK {
            let is_live = |entry: &LaneEntry| is_live(slots, entry);
            pair.healthy.sweep(is_live);
            pair.failing.sweep(is_live);
        }
    }

    /// Counts a key that became ready, or is no longer.
    #[inline]
    pub(super) fn count(&mut self, priority: Priority, failing: bool, is_ready: bool) {
        let pair = self.pair(priority);
        let change = |count: &mut usize| if is_ready { *count += 1 } else { *count -= 1 };
        change(&mut pair.ready);
        change(if failing { &mut self.failing_ready } else { &mut self.healthy_ready });
    }

    /// Takes out the next key; keys that keep failing are skipped unless `may_fail` is true.
    pub(super) fn take<T>(
        &mut self,
        slots: &mut Slots<T>,
        may_fail: bool,
        now: Nanos,
    ) -> Option<Ticket> {
        if let [pair] = &mut self.pairs[..] {
            // A single priority: no key is passed over.
            if let Some(ticket) = pair.take_plain(slots) {
                return Some(ticket);
            }
            pair.first(slots, may_fail)?;
            return pair.pop(may_fail);
        }
        let mut first = None;
        let mut aged: Option<(u64, usize)> = None;
        for (at, pair) in self.pairs.iter_mut().enumerate().filter(|(_, pair)| pair.live > 0) {
            let Some((seq, ticket)) = pair.first(slots, may_fail) else { continue };
            // Pairs are sorted by priority: the first pair with a key is the highest.
            if first.is_none() {
                first = Some(at);
                continue;
            }
            let has_aged = match slots.get(ticket).stage {
                Stage::Ready { since, .. } => now.saturating_sub(since) >= self.ageing,
                _ => false,
            };
            if has_aged && aged.is_none_or(|(oldest, _)| seq < oldest) {
                aged = Some((seq, at));
            }
        }
        let at = match aged {
            // Only turns for which an aged key was passed over count: without an aged key, keys of
            // higher priority lose no turn.
            Some((_, aged)) if self.passed_over + 1 >= SHARE => {
                self.passed_over = 0;
                aged
            }
            Some(_) => {
                self.passed_over += 1;
                first?
            }
            None => first?,
        };
        self.pairs[at].pop(may_fail)
    }

    /// Returns the number of ready keys by priority, in the order in which priorities were first
    /// seen.
    pub(super) fn depths(&self) -> Vec<(Priority, usize)> {
        let mut pairs: Vec<&LanePair> = self.pairs.iter().collect();
        pairs.sort_by_key(|pair| pair.seen_before);
        pairs.into_iter().map(|pair| (pair.priority, pair.ready)).collect()
    }

    /// Number of entries, outdated entries included.
    #[cfg(test)]
    pub(super) fn entry_count(&self) -> usize {
        self.pairs.iter().map(|pair| pair.healthy.len() + pair.failing.len()).sum()
    }
}

impl LanePair {
    fn new(priority: Priority, seen_before: usize) -> Self {
        let (healthy, failing) = (Lane::default(), Lane::default());
        Self { priority, healthy, failing, live: 0, ready: 0, seen_before }
    }

    /// Returns the key at the front in the common case, in which that key is certainly next.
    #[inline]
    fn take_plain<T>(&mut self, slots: &Slots<T>) -> Option<Ticket> {
        if !self.failing.is_empty() || self.healthy.has_overdue() {
            return None;
        }
        let (seq, ticket) = self.healthy.front()?;
        let slot = slots.find_slot(ticket)?;
        if slot.failing || !matches!(slot.stage, Stage::Ready { seq: own, .. } if own == seq) {
            return None;
        }
        self.live -= 1;
        self.healthy.pop_front();
        Some(ticket)
    }

    /// Returns the first entry whose key can be taken.
    fn first<T>(&mut self, slots: &mut Slots<T>, may_fail: bool) -> Option<LaneEntry> {
        self.tidy_front(slots);
        if self.failing.is_empty() {
            return self.healthy.first();
        }
        self.failing.drop_outdated(|entry| is_live(slots, entry));
        let healthy = self.healthy.first();
        let failing = self.failing.first().filter(|_| may_fail);
        // The key with the lower sequence number became ready earlier.
        match (healthy, failing) {
            (Some(healthy), Some(failing)) => Some(healthy.min(failing)),
            (healthy, failing) => healthy.or(failing),
        }
    }

    /// Takes out the entry that [`first`](Self::first) returned.
    #[inline]
    fn pop(&mut self, may_fail: bool) -> Option<Ticket> {
        self.live -= 1;
        if self.failing.is_empty() {
            return self.healthy.pop();
        }
        let failing = self.failing.first().filter(|_| may_fail);
        // The choice of `first`, whose entry the caller has seen.
        match (self.healthy.first(), failing) {
            (Some(healthy), Some(failing)) if failing < healthy => self.failing.pop(),
            (Some(_), _) => self.healthy.pop(),
            (None, _) => self.failing.pop(),
        }
    }

    /// Passes over entries at the front of the healthy lane whose key cannot be taken from there:
    /// the key is still in work, the work failed, or the key has another entry.
    #[inline]
    fn tidy_front<T>(&mut self, slots: &mut Slots<T>) {
        if self.healthy.has_overdue() {
            self.healthy.drop_outdated(|entry| is_live(slots, entry));
        }
        while let Some(entry) = self.healthy.front() {
            if is_live(slots, &entry) {
                let slot = slots.get(entry.1);
                match slot.stage {
                    Stage::Working { index } => {
                        if let RepeatedAdd::Now { passed, .. } = &mut slots.working(index).again {
                            *passed = true;
                            self.live -= 1;
                        }
                    }
                    // Sorted by sequence number: the entry was added before the failure was known.
                    _ if slot.failing => self.failing.push_overdue(entry.0, entry.1),
                    _ => return,
                }
            }
            self.healthy.pop_front();
        }
    }
}

/// Returns whether this is still the entry of the key.
fn is_live<T>(slots: &Slots<T>, (seq, ticket): &LaneEntry) -> bool {
    slots.lane_seq(*ticket) == Some(*seq)
}
