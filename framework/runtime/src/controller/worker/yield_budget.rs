//! Limit on attempts that a worker runs in a row before yielding to the other tasks of its thread.
//!
//! Reconciles that never wait would keep a thread for themselves. tokio's budget demands a yield
//! after 128 operations; each yield makes tokio wake an idle thread for which there is no work, and
//! that costs as much as dozens of queue operations. So attempts and their time are counted here
//! instead.

// DESIGN.md, 98: A worker's yield budget is 4096 attempts or a millisecond

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::task::coop::has_budget_remaining;
use tokio::time::Instant;

/// Most attempts in a row: with a paused clock, as in tests, the time never ends them.
const MAX_ATTEMPTS: u32 = 4096;
/// An attempt that begins later than this exhausts the budget. A tenth of the time slice of a
/// goroutine in Go.
const MAX_TIME: Duration = Duration::from_millis(1);

/// Number of polls of a worker's task. A new poll means that the task has waited, and other tasks
/// ran.
#[derive(Debug, Default)]
pub(super) struct PollCount(AtomicU32);

impl PollCount {
    /// Runs `task`, and counts the polls.
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
    attempts: u32,
    since: Instant,
}

impl<'a> YieldBudget<'a> {
    /// Returns a budget of which nothing is used.
    pub(super) fn new(polls: &'a PollCount, now: Instant) -> Self {
        Self { polls, seen: polls.now(), attempts: 0, since: now }
    }

    /// Counts the end of an attempt; returns whether another may begin without a yield.
    pub(super) fn may_continue(&mut self, now: Instant) -> bool {
        let polls = self.polls.now();
        // Polled again, so the task has waited: the budget is full again.
        if polls != self.seen {
            *self = Self { polls: self.polls, seen: polls, attempts: 0, since: now };
        }
        self.attempts += 1;
        let took = now.saturating_duration_since(self.since);
        // Without budget the next operation yields in any case.
        self.attempts < MAX_ATTEMPTS && took < MAX_TIME && has_budget_remaining()
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn a_budget_ends_after_so_many_attempts_or_so_much_time() {
        let (polls, start) = (PollCount::default(), Instant::now());
        let mut budget = YieldBudget::new(&polls, start);
        let attempts = (0..).take_while(|_| budget.may_continue(start)).count();
        assert_eq!(attempts, MAX_ATTEMPTS as usize - 1);
        let mut budget = YieldBudget::new(&polls, start);
        assert!(budget.may_continue(start + MAX_TIME / 2));
        assert!(!budget.may_continue(start + MAX_TIME));
    }

    #[test]
    fn a_budget_begins_anew_after_a_wait() {
        let (polls, start) = (PollCount::default(), Instant::now());
        let mut context = Context::from_waker(Waker::noop());
        let mut task = pin!(polls.count(async {
            let mut budget = YieldBudget::new(&polls, start);
            let mut waits = 0;
            poll_fn(|_| {
                waits += 1;
                if waits < 3 { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            (budget.may_continue(start + 9 * MAX_TIME), budget.may_continue(start + 10 * MAX_TIME))
        }));
        assert!(task.as_mut().poll(&mut context).is_pending());
        assert!(task.as_mut().poll(&mut context).is_pending());
        assert_eq!(task.as_mut().poll(&mut context), Poll::Ready((true, false)));
    }
}
