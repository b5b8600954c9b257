//! One line per priority, and the choice of the next key.
//!
//! The line of the highest priority goes first. A flood of urgent keys must not starve other keys,
//! so a key that has waited for the ageing time competes again: of [`SHARE`] turns in a row one
//! goes to the key that has waited the longest, whatever its priority (G-Q7: no ready key starves
//! behind others of higher priority).

use super::ready::{Lane, LaneEntry};
use super::slot::{Again, Nanos, Stage};
use super::slots::{Slots, Ticket};
use crate::workqueue::Priority;

/// One of this many turns goes to an aged key of a lower priority: keys of higher priority lose a
/// quarter of the turns at most, and an aged key with `n` aged ones before it waits for at most
/// `4 * (n + 1)` turns.
const SHARE: u32 = 4;
/// Outdated places, beyond the number in use, that do not justify a sweep.
const SLACK: usize = 64;

/// Ready keys of every priority.
#[derive(Debug)]
pub(super) struct PriorityLanes {
    /// Highest priority first.
    lines: Vec<Line>,
    /// The line that was used last: most often it is the next one too.
    last: usize,
    ageing: Nanos,
    /// Turns in a row for which an aged key was passed over.
    passed_over: u32,
    /// Ready keys whose last work succeeded.
    pub(super) healthy_ready: usize,
    /// Ready keys whose last work failed.
    pub(super) failing_ready: usize,
}

/// The ready keys of one priority.
#[derive(Debug)]
struct Line {
    priority: Priority,
    /// Places of keys whose last work succeeded, and of keys in work.
    healthy: Lane,
    /// Places of keys whose last work failed.
    failing: Lane,
    /// Places that are not outdated.
    live: usize,
    ready: usize,
    /// Number of priorities that were seen before this one.
    met: usize,
}

impl PriorityLanes {
    pub(super) fn new(ageing: Nanos) -> Self {
        Self {
            lines: Vec::new(),
            last: 0,
            ageing,
            passed_over: 0,
            healthy_ready: 0,
            failing_ready: 0,
        }
    }

    /// Returns the line of a priority, which is created if necessary.
    #[inline]
    fn line(&mut self, priority: Priority) -> &mut Line {
        if self.lines.get(self.last).is_none_or(|line| line.priority != priority) {
            self.last = self.find(priority);
        }
        &mut self.lines[self.last]
    }

    /// Returns the index of a priority's line, which is created if necessary.
    #[cold]
    fn find(&mut self, priority: Priority) -> usize {
        // A linear search: there are one or two priorities.
        let at = self.lines.iter().position(|line| line.priority <= priority);
        let at = at.unwrap_or(self.lines.len());
        if self.lines.get(at).is_none_or(|line| line.priority != priority) {
            self.lines.insert(at, Line::new(priority, self.lines.len()));
        }
        at
    }

    /// Adds a place at the end of a line.
    pub(super) fn join(&mut self, priority: Priority, failing: bool, place: LaneEntry) {
        let line = self.line(priority);
        line.live += 1;
        let lane = if failing { &mut line.failing } else { &mut line.healthy };
        lane.push(place.0, place.1);
    }

    /// Adds a place by its turn, for a key that was passed over.
    pub(super) fn rejoin(&mut self, priority: Priority, failing: bool, place: LaneEntry) {
        let line = self.line(priority);
        line.live += 1;
        let lane = if failing { &mut line.failing } else { &mut line.healthy };
        lane.push_overdue(place.0, place.1);
    }

    /// Notes that a key of this line got another place elsewhere.
    pub(super) fn outdate<T>(&mut self, priority: Priority, slots: &Slots<T>) {
        let line = self.line(priority);
        line.live -= 1;
        // Swept when outdated places outnumber the live ones, so that a sweep costs a constant per
        // place.
        if line.healthy.len() + line.failing.len() > 2 * line.live + SLACK {
            let is_live = |place: &LaneEntry| is_live(slots, place);
            line.healthy.sweep(is_live);
            line.failing.sweep(is_live);
        }
    }

    /// Counts a key that became ready, or is no longer.
    #[inline]
    pub(super) fn count(&mut self, priority: Priority, failing: bool, is_ready: bool) {
        let line = self.line(priority);
        let change = |count: &mut usize| if is_ready { *count += 1 } else { *count -= 1 };
        change(&mut line.ready);
        change(if failing { &mut self.failing_ready } else { &mut self.healthy_ready });
    }

    /// Takes out the next key; `may_fail` says whether keys that keep failing get a turn.
    pub(super) fn take<T>(
        &mut self,
        slots: &mut Slots<T>,
        may_fail: bool,
        now: Nanos,
    ) -> Option<Ticket> {
        if let [line] = &mut self.lines[..] {
            // One priority: no key is passed over.
            if let Some(ticket) = line.take_plain(slots) {
                return Some(ticket);
            }
            line.first(slots, may_fail)?;
            return line.pop(may_fail);
        }
        let mut first = None;
        let mut aged: Option<(u64, usize)> = None;
        for (at, line) in self.lines.iter_mut().enumerate().filter(|(_, line)| line.live > 0) {
            let Some((turn, ticket)) = line.first(slots, may_fail) else { continue };
            // Lines are sorted by priority: the first one with a key is the highest.
            if first.is_none() {
                first = Some(at);
                continue;
            }
            let has_aged = match slots.get(ticket).stage {
                Stage::Ready { since, .. } => now.saturating_sub(since) >= self.ageing,
                _ => false,
            };
            if has_aged && aged.is_none_or(|(oldest, _)| turn < oldest) {
                aged = Some((turn, at));
            }
        }
        let at = match aged {
            // Only turns for which an aged key was passed over count: without one, urgent keys lose
            // none.
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
        self.lines[at].pop(may_fail)
    }

    /// Returns the number of ready keys by priority, in the order in which priorities were first
    /// seen.
    pub(super) fn depths(&self) -> Vec<(Priority, usize)> {
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by_key(|line| line.met);
        lines.into_iter().map(|line| (line.priority, line.ready)).collect()
    }

    /// Number of places, outdated ones included.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.lines.iter().map(|line| line.healthy.len() + line.failing.len()).sum()
    }
}

impl Line {
    fn new(priority: Priority, met: usize) -> Self {
        let (healthy, failing) = (Lane::default(), Lane::default());
        Self { priority, healthy, failing, live: 0, ready: 0, met }
    }

    /// Returns the key at the front in the common case, in which it is certainly next.
    #[inline]
    fn take_plain<T>(&mut self, slots: &Slots<T>) -> Option<Ticket> {
        if !self.failing.is_empty() || self.healthy.has_overdue() {
            return None;
        }
        let (turn, ticket) = self.healthy.front()?;
        let slot = slots.find_slot(ticket)?;
        if slot.failing || !matches!(slot.stage, Stage::Ready { turn: own, .. } if own == turn) {
            return None;
        }
        self.live -= 1;
        self.healthy.pass();
        Some(ticket)
    }

    /// Returns the first place whose key can be taken.
    fn first<T>(&mut self, slots: &mut Slots<T>, may_fail: bool) -> Option<LaneEntry> {
        self.tidy_front(slots);
        if self.failing.is_empty() {
            return self.healthy.first();
        }
        self.failing.drop_outdated(|place| is_live(slots, place));
        let healthy = self.healthy.first();
        let failing = self.failing.first().filter(|_| may_fail);
        // The lower turn became ready earlier, in whichever of the two lanes it is.
        match (healthy, failing) {
            (Some(healthy), Some(failing)) => Some(healthy.min(failing)),
            (healthy, failing) => healthy.or(failing),
        }
    }

    /// Takes out the place that [`first`](Self::first) found.
    #[inline]
    fn pop(&mut self, may_fail: bool) -> Option<Ticket> {
        self.live -= 1;
        if self.failing.is_empty() {
            return self.healthy.pop();
        }
        let failing = self.failing.first().filter(|_| may_fail);
        match (self.healthy.first(), failing) {
            (Some(healthy), Some(failing)) if failing < healthy => self.failing.pop(),
            (Some(_), _) => self.healthy.pop(),
            (None, _) => self.failing.pop(),
        }
    }

    /// Passes over places at the front of the healthy lane whose key cannot be taken from there:
    /// the key is still in work, its work failed, or it has another place.
    #[inline]
    fn tidy_front<T>(&mut self, slots: &mut Slots<T>) {
        if self.healthy.has_overdue() {
            self.healthy.drop_outdated(|place| is_live(slots, place));
        }
        while let Some(place) = self.healthy.front() {
            if is_live(slots, &place) {
                let slot = slots.get(place.1);
                match slot.stage {
                    Stage::Working { spot } => {
                        if let Again::Now { passed, .. } = &mut slots.working(spot).again {
                            *passed = true;
                            self.live -= 1;
                        }
                    }
                    // Sorted by its turn: the place was taken before the failure was known.
                    _ if slot.failing => self.failing.push_overdue(place.0, place.1),
                    _ => return,
                }
            }
            self.healthy.pass();
        }
    }
}

/// Whether this is still the place of its key.
fn is_live<T>(slots: &Slots<T>, (turn, ticket): &LaneEntry) -> bool {
    slots.turn(*ticket) == Some(*turn)
}
