//! A model of the queue: proptests require that the queue behaves as the model does.

use super::*;

/// A naive implementation of the queue: a list of entries, searched from the front.
#[derive(Debug, Default)]
pub(super) struct Naive {
    limit: usize,
    entries: Vec<Entry>,
    added: u64,
    passed_over: u32,
    closed: bool,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    key: u8,
    failures: u32,
    failing: bool,
    on_hold: bool,
    working: bool,
    /// Priority of the next attempt; of a key in work, of this attempt.
    priority: Priority,
    /// Priority of the next attempt, when the key was added while in work.
    requested: Option<Priority>,
    reasons: u64,
    /// Added: the sequence number, and the time.
    wanted: Option<(u64, Duration)>,
    /// Delayed: due time, and sequence number among equal times.
    due: Option<(Duration, u64)>,
}

impl Naive {
    /// Creates a queue in which failing keys hold at most half of the workers.
    pub(super) fn new(workers: usize) -> Self {
        Self { limit: (workers / 2).max(1), ..Self::default() }
    }

    fn entry(&mut self, key: u8) -> (&mut Entry, u64) {
        self.added += 1;
        if !self.entries.iter().any(|entry| entry.key == key) {
            self.entries.push(Entry { key, priority: Priority::new(i8::MIN), ..Entry::default() });
        }
        let found = self.entries.iter_mut().find(|entry| entry.key == key);
        (found.expect("just made sure"), self.added)
    }

    pub(super) fn add(&mut self, key: u8, options: AddOptions, now: Duration) {
        let AddOptions { priority, reasons, delay } = options;
        if self.closed {
            return;
        }
        let (entry, place) = self.entry(key);
        entry.reasons |= reasons;
        let before = if entry.working { entry.requested } else { Some(entry.priority) };
        let after = before.unwrap_or(priority).max(priority);
        if entry.working {
            entry.requested = Some(after);
        } else {
            entry.priority = after;
        }
        match &mut entry.wanted {
            Some((line, _)) if before != Some(after) => *line = place,
            Some(_) => {}
            None if delay == Duration::ZERO => {
                entry.due = None;
                entry.wanted = Some((place, now));
            }
            None if entry.due.is_none_or(|(due, _)| now + delay < due) => {
                entry.due = Some((now + delay, place));
            }
            None => {}
        }
    }

    pub(super) fn promote(&mut self, now: Duration) {
        let idle = self.entries.iter().filter(|entry| !entry.working);
        let mut due: Vec<_> = idle
            .filter_map(|entry| entry.due.filter(|(at, _)| *at <= now).map(|due| (due, entry.key)))
            .collect();
        due.sort_unstable();
        for ((at, _), key) in due {
            let (entry, place) = self.entry(key);
            entry.due = None;
            entry.wanted = Some((place, at));
        }
    }

    pub(super) fn take(&mut self, now: Duration) -> Option<(u8, Priority, u64)> {
        let poisoned = self.entries.iter().filter(|e| e.working && e.failing).count();
        let limit = self.limit;
        let mut fit: Vec<_> = self
            .entries
            .iter_mut()
            .filter(|e| !e.working && (!e.failing || poisoned < limit) && e.wanted.is_some())
            .collect();
        // The first of each priority, highest first.
        fit.sort_by_key(|e| (std::cmp::Reverse(e.priority), e.wanted));
        fit.dedup_by_key(|e| e.priority);
        let aged =
            fit.iter().skip(1).filter(|e| e.wanted.is_some_and(|(_, at)| at + AGEING <= now));
        let next = match aged.min_by_key(|e| e.wanted).map(|e| e.key) {
            Some(aged) if self.passed_over == 3 => {
                self.passed_over = 0;
                fit.into_iter().find(|e| e.key == aged)?
            }
            aged => {
                self.passed_over += u32::from(aged.is_some());
                fit.into_iter().next()?
            }
        };
        next.wanted = None;
        next.working = true;
        next.on_hold = false;
        Some((next.key, next.priority, std::mem::take(&mut next.reasons)))
    }

    pub(super) fn finish(&mut self, key: u8, completion: Completion, now: Duration) {
        let policy = RetryPolicy::forever();
        let closed = self.closed;
        let Some(entry) = self.entries.iter_mut().find(|e| e.key == key && e.working) else {
            return;
        };
        entry.working = false;
        let delay = match completion {
            Completion::Done | Completion::Gone => None,
            Completion::After(delay) | Completion::RetryAfter(delay) | Completion::Hold(delay) => {
                Some(delay)
            }
            Completion::Retry { draw } | Completion::RetryAnew { draw } => {
                let is_anew = matches!(completion, Completion::RetryAnew { .. });
                entry.failures = if is_anew { 1 } else { entry.failures + 1 };
                policy.bound(entry.failures).map(|bound| bound.mul_f64(draw))
            }
        };
        match completion {
            Completion::Hold(_) => entry.on_hold = true,
            Completion::Retry { .. } | Completion::RetryAnew { .. } | Completion::RetryAfter(_) => {
                entry.failing = true;
            }
            Completion::Done | Completion::Gone | Completion::After(_) => {
                (entry.failing, entry.failures) = (false, 0);
            }
        }
        let (own, requested, due) = (entry.priority, entry.requested.take(), entry.due.take());
        entry.priority = requested.unwrap_or(Priority::new(i8::MIN));
        // First the adds during the work, and then the completion's own.
        let options = AddOptions::new().priority(entry.priority);
        if let Some((at, _)) = due.filter(|_| !closed) {
            self.add(key, options.after(at.saturating_sub(now)), now);
        }
        if let Some(delay) = delay {
            self.add(key, AddOptions::new().priority(own).reasons(BACK).after(delay), now);
        }
        self.entries.retain(|e| e.working || e.wanted.is_some() || e.due.is_some());
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        self.entries.iter_mut().for_each(|entry| entry.due = None);
        self.entries.retain(|e| e.working || e.wanted.is_some());
    }

    /// Number of workers that could take a key now (G-Q5: with idle workers and ready keys, no
    /// worker waits).
    pub(super) fn eligible(&self) -> usize {
        let ready = |failing| {
            let idle = self.entries.iter().filter(|e| !e.working && e.wanted.is_some());
            idle.filter(|e| e.failing == failing).count()
        };
        let poisoned = self.entries.iter().filter(|e| e.working && e.failing).count();
        ready(false) + ready(true).min(self.limit.saturating_sub(poisoned))
    }

    pub(super) fn next_due(&self) -> Option<Duration> {
        self.entries.iter().filter(|e| !e.working).filter_map(|e| e.due).map(|(at, _)| at).min()
    }

    pub(super) fn exhausted(&self) -> bool {
        self.closed && !self.entries.iter().any(|e| e.wanted.is_some())
    }

    pub(super) fn counts(&self) -> QueueCounts {
        let idle = || self.entries.iter().filter(|e| !e.working);
        QueueCounts {
            queued: idle().filter(|e| e.wanted.is_some()).count(),
            working: self.entries.iter().filter(|e| e.working).count(),
            backing_off: idle().filter(|e| e.due.is_some() && (e.failing || e.on_hold)).count(),
            delayed: idle().filter(|e| e.due.is_some() && !e.failing && !e.on_hold).count(),
        }
    }
}
