//! How long a worker goes on before the other tasks of its thread get their turn.
//!
//! Reconciles that never wait would keep a thread for themselves. tokio's budget asks for a pause after
//! 128 of whatever was asked of it; a pause makes tokio wake an idle thread, whom it then has nothing to
//! give, and that costs as much as dozens of a queue's turns. So turns are counted here, and their time.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::task::coop::has_budget_remaining;
use tokio::time::Instant;

/// The most turns in a row: where time stands still, as in tests, nothing else ends them.
const MOST: u32 = 4096;
/// A turn that begins later than this is not one more in a row. A tenth of what Go lets a goroutine run.
const LONGEST: Duration = Duration::from_millis(1);

/// How often a task was polled: whenever it is, it has waited, and others had their turn.
#[derive(Debug, Default)]
pub(super) struct Polls(AtomicU32);

impl Polls {
    /// Counts how often `task` is polled.
    pub(super) async fn count<F: Future>(&self, task: F) -> F::Output {
        let mut task = pin!(task);
        poll_fn(|context| {
            // Nobody else writes it.
            self.0.store(self.now().wrapping_add(1), Ordering::Relaxed);
            task.as_mut().poll(context)
        })
        .await
    }

    fn now(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Turns since the worker waited last.
#[derive(Debug)]
pub(super) struct Streak<'a> {
    polls: &'a Polls,
    seen: u32,
    turns: u32,
    since: Instant,
}

impl<'a> Streak<'a> {
    /// None yet.
    pub(super) fn new(polls: &'a Polls, now: Instant) -> Self {
        Self { polls, seen: polls.now(), turns: 0, since: now }
    }

    /// A turn has ended: may another one follow at once?
    pub(super) fn goes_on(&mut self, now: Instant) -> bool {
        let polls = self.polls.now();
        if polls != self.seen {
            *self = Self { polls: self.polls, seen: polls, turns: 0, since: now };
        }
        self.turns += 1;
        let took = now.saturating_duration_since(self.since);
        self.turns < MOST && took < LONGEST && has_budget_remaining()
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn a_streak_ends_after_so_many_turns_or_so_much_time() {
        let (polls, start) = (Polls::default(), Instant::now());
        let mut streak = Streak::new(&polls, start);
        let turns = (0..).take_while(|_| streak.goes_on(start)).count();
        assert_eq!(turns, MOST as usize - 1);
        let mut streak = Streak::new(&polls, start);
        assert!(streak.goes_on(start + LONGEST / 2));
        assert!(!streak.goes_on(start + LONGEST));
    }

    #[test]
    fn who_has_waited_begins_anew() {
        let (polls, start) = (Polls::default(), Instant::now());
        let mut context = Context::from_waker(Waker::noop());
        let mut task = pin!(polls.count(async {
            let mut streak = Streak::new(&polls, start);
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
