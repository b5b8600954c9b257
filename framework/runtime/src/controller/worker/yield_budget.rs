//! Limit on attempts that a worker runs in a row before it yields to the other tasks of its thread.
//!
//! Reconciles that never wait would keep a thread for themselves. tokio's budget demands a yield
//! after 128 operations; each yield makes tokio wake an idle thread for which there is no work, and
//! that costs as much as dozens of queue operations. So attempts and their time are counted here
//! instead.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::task::coop::has_budget_remaining;
use tokio::time::Instant;

/// Most attempts in a row: where time stands still, as in tests, nothing else ends them.
const MOST: u32 = 4096;
/// An attempt that begins later than this ends the streak. A tenth of the time slice of a goroutine
/// in Go.
const LONGEST: Duration = Duration::from_millis(1);

/// Number of polls of a worker's task. A new poll means that the task has waited, and other tasks
/// ran.
#[derive(Debug, Default)]
pub(super) struct PollCount(AtomicU32);

impl PollCount {
    /// Runs `task`, and counts its polls.
    pub(super) async fn count<F: Future>(&self, task: F) -> F::Output {
        let mut task = pin!(task);
        poll_fn(|context| {
            // Load and store instead of an atomic addition: only this task writes the counter.
            self.0.store(self.now().wrapping_add(1), Ordering::Relaxed);
            task.as_mut().poll(context)
        })
        .await
    }

    /// Returns the number of polls so far.
    fn now(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Attempts since the worker last waited.
#[derive(Debug)]
pub(super) struct YieldBudget<'a> {
    polls: &'a PollCount,
    seen: u32,
    turns: u32,
    since: Instant,
}

impl<'a> YieldBudget<'a> {
    /// An empty streak.
    pub(super) fn new(polls: &'a PollCount, now: Instant) -> Self {
        Self { polls, seen: polls.now(), turns: 0, since: now }
    }

    /// Notes the end of an attempt; returns whether another may follow at once.
    pub(super) fn goes_on(&mut self, now: Instant) -> bool {
        let polls = self.polls.now();
        // Polled again, so the task has waited: a new streak begins.
        if polls != self.seen {
            *self = Self { polls: self.polls, seen: polls, turns: 0, since: now };
        }
        self.turns += 1;
        let took = now.saturating_duration_since(self.since);
        // Without budget the next operation yields in any case.
        self.turns < MOST && took < LONGEST && has_budget_remaining()
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn a_streak_ends_after_so_many_turns_or_so_much_time() {
        let (polls, start) = (PollCount::default(), Instant::now());
        let mut streak = YieldBudget::new(&polls, start);
        let turns = (0..).take_while(|_| streak.goes_on(start)).count();
        assert_eq!(turns, MOST as usize - 1);
        let mut streak = YieldBudget::new(&polls, start);
        assert!(streak.goes_on(start + LONGEST / 2));
        assert!(!streak.goes_on(start + LONGEST));
    }

    #[test]
    fn a_budget_begins_anew_after_a_wait() {
        let (polls, start) = (PollCount::default(), Instant::now());
        let mut context = Context::from_waker(Waker::noop());
        let mut task = pin!(polls.count(async {
            let mut streak = YieldBudget::new(&polls, start);
            let mut waits = 0;
            poll_fn(|_| {
                waits += 1;
                if waits < 3 { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            (streak.goes_on(start + 9 * LONGEST), streak.goes_on(start + 10 * LONGEST))
        }));
        assert!(task.as_mut().poll(&mut context).is_pending());
        assert!(task.as_mut().poll(&mut context).is_pending());
        assert_eq!(task.as_mut().poll(&mut context), Poll::Ready((true, false)));
    }
}
