//! Wait of a worker for a key: takes a key, or parks the worker until a wake-up or a due time.

use std::hash::Hash;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::workqueue::Work;
use crate::workqueue::core::Claim;
use crate::workqueue::state::{QueueShared, QueueState};
use crate::workqueue::waiters::{DelayTimer, WaiterId};

/// A call of [`WorkQueue::get`]; cancelled when dropped.
pub(super) struct PendingGet<'a, T: Hash + Eq + Clone> {
    pub(super) shared: &'a Arc<QueueShared<T>>,
    /// Index of this call among the parked workers; `None` while not parked.
    pub(super) waiter: Option<WaiterId>,
    /// The timer for the next delayed key, while this worker is the timekeeper.
    pub(super) delay_timer: Option<DelayTimer>,
}

/// Result of an attempt to take a key.
enum TakeOrPark<T> {
    /// The worker has taken a key.
    Taken(Claim<T>),
    /// The queue is shut down and has handed out all keys.
    Ended,
    /// No key is ready, and the worker is parked; another worker waits for the next delayed key.
    Parked,
    /// No key is ready, and the worker is parked; this worker also waits for the next delayed key,
    /// due at that time.
    Timekeeper(Option<Duration>),
}

impl<T: Hash + Eq + Clone> PendingGet<'_, T> {
    /// Polls for a key, and for the timer while this worker is the timekeeper.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Work<T>>> {
        loop {
            let due = match self.take_or_park(context.waker()) {
                TakeOrPark::Taken(claim) => {
                    return Poll::Ready(Some(Work::new(Arc::clone(self.shared), claim)));
                }
                TakeOrPark::Ended => return Poll::Ready(None),
                TakeOrPark::Parked | TakeOrPark::Timekeeper(None) => return Poll::Pending,
                TakeOrPark::Timekeeper(Some(due)) => due,
            };
            // A timer that fires too early is kept: one extra pass of this loop costs less than a
            // new timer each time.
            if self.delay_timer.as_ref().is_none_or(|timer| timer.due > due) {
                self.delay_timer = Some(self.shared.delay_timer(due));
            }
            if let Some(timer) = &mut self.delay_timer
                && timer.sleep.as_mut().poll(context).is_pending()
            {
                return Poll::Pending;
            }
            // The timer fired: the next pass finds the key that is due, or a later time.
            self.delay_timer = None;
        }
    }

    /// Takes a key, or parks the worker.
    fn take_or_park(&mut self, waker: &Waker) -> TakeOrPark<T> {
        let Self { shared, waiter, delay_timer } = self;
        // Declared before the lock is taken, so that they are dropped after it.
        let (mut stale, mut batches) = (None, Vec::new());
        shared.change(|state, now| {
            let mut claim = state.take(now);
            if claim.is_none() && !state.is_buffer_closed {
                // Closed in the same step as the last take: keys that arrive from now on go to the
                // queue and wake this worker; none is left in the buffer while all workers are
                // parked.
                state.is_buffer_closed = true;
                batches = shared.add_buffer.close();
                state.add_batches(&mut batches);
                claim = state.take(now);
            }
            let QueueState { core, waiters, .. } = state;
            let result = match claim {
                Some(claim) => TakeOrPark::Taken(claim),
                None if core.exhausted() => TakeOrPark::Ended,
                None => {
                    let id = waiters.park(*waiter, waker, &mut stale);
                    *waiter = Some(id);
                    let due = core.next_due();
                    let (is_timekeeper, earlier) = waiters.become_timekeeper(id, due);
                    *delay_timer = delay_timer.take().or(earlier);
                    return if is_timekeeper {
                        TakeOrPark::Timekeeper(due)
                    } else {
                        TakeOrPark::Parked
                    };
                }
            };
            if let Some(waiter) = waiter.take() {
                waiters.unpark(waiter, delay_timer.take(), &mut stale);
            }
            result
        })
    }
}

impl<T: Hash + Eq + Clone> Drop for PendingGet<'_, T> {
    fn drop(&mut self) {
        // `change` passes a wake-up on that this worker received and did not use: the step counts
        // the ready keys again and wakes another worker (G-Q5: with idle workers and ready keys, no
        // worker waits).
        let Some(waiter) = self.waiter.take() else { return };
        let (mut stale, timer) = (None, self.delay_timer.take());
        self.shared.change(|state, _| state.waiters.unpark(waiter, timer, &mut stale));
    }
}
