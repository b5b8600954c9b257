//! Parked workers: their wakers, the wake-ups in flight, and the worker that waits for the next
//! delayed key.
//!
//! A worker that finds no key parks here with its waker, and a key that can be taken wakes a
//! worker. A single wake-up in flight is enough: a notified worker that sees more keys wakes the
//! next, so a burst of adds costs few wake-ups, not a wake-up per key, and no worker stays parked
//! beside a ready key. A notified worker may not be scheduled, so a growing backlog wakes more of
//! them: another each time that the number of keys doubles. A batch wakes as many workers at once
//! as it has keys. The worker that parked last is woken first: its data are the likeliest to be
//! still in the processor's caches.
//!
//! One parked worker, the timekeeper, also waits for the next delayed key, and is woken last. The
//! timer outlives the timekeeper, so that workers which park and unpark do not create a timer each
//! time.

// DESIGN.md, 43: A worker that takes a key wakes the next worker

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::Waker;
use std::time::Duration;

/// A timer that fires once, at `due`.
pub(super) struct DelayTimer {
    /// Time at which the timer fires, since the queue was made.
    pub(super) due: Duration,
    /// Completes at `due`.
    pub(super) sleep: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl fmt::Debug for DelayTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayTimer").field("due", &self.due).finish_non_exhaustive()
    }
}

/// A waker that is no longer needed, to be dropped outside of locks, because a waker may hold the
/// last reference to a task.
pub(super) type StaleWaker = Option<Waker>;

/// Index of a parked worker.
pub(super) type WaiterId = usize;

/// The parked workers of a queue.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// States of the waiters by index, as many as were ever parked at the same time.
    states: Vec<WaiterState>,
    /// Indexes that no worker uses.
    free: Vec<WaiterId>,
    /// Parked and not notified yet, without the timekeeper; the worker that parked last is at the
    /// end.
    parked: Vec<WaiterId>,
    /// Number of workers that were notified and have not checked the queue since.
    notified: usize,
    /// The parked worker that waits for the next delayed key.
    timekeeper: Option<WaiterId>,
    /// Due time for which the timekeeper waits, or was woken to set the timer.
    timekeeper_due: Option<Duration>,
    /// The timer of a timekeeper that unparked, for the next timekeeper.
    delay_timer: Option<DelayTimer>,
}

/// State of a waiter.
#[derive(Debug)]
enum WaiterState {
    /// No worker uses the index.
    Free,
    /// Parked, and not notified yet.
    Parked(Waker),
    /// Notified, and has not checked the queue since.
    Notified,
}

/// Wakers to wake once the lock is released.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Wakes {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Wakes {
    fn push(&mut self, waker: Waker) {
        match &self.first {
            None => self.first = Some(waker),
            Some(_) => self.others.push(waker),
        }
    }

    /// Wakes the selected workers.
    pub(super) fn wake_all(self) {
        let Some(first) = self.first else { return };
        first.wake();
        self.others.into_iter().for_each(Waker::wake);
    }
}

impl Waiters {
    /// Parks a worker, or stores another waker for a worker that is parked already; returns the
    /// index.
    pub(super) fn park(
        &mut self,
        waiter: Option<WaiterId>,
        waker: &Waker,
        stale: &mut StaleWaker,
    ) -> WaiterId {
        let waiter = waiter.unwrap_or_else(|| {
            self.free.pop().unwrap_or_else(|| {
                self.states.push(WaiterState::Free);
                self.states.len() - 1
            })
        });
        match &mut self.states[waiter] {
            WaiterState::Parked(known) if known.will_wake(waker) => return waiter,
            WaiterState::Parked(known) => {
                *stale = Some(std::mem::replace(known, waker.clone()));
                return waiter;
            }
            // The worker has checked the queue and found no key: the worker's wake-up is no longer
            // in flight.
            WaiterState::Notified => self.notified -= 1,
            WaiterState::Free => {}
        }
        self.states[waiter] = WaiterState::Parked(waker.clone());
        if self.timekeeper != Some(waiter) {
            self.parked.push(waiter);
        }
        waiter
    }

    /// Unparks a worker; the timekeeper leaves the timer to the next timekeeper.
    pub(super) fn unpark(
        &mut self,
        waiter: WaiterId,
        delay_timer: Option<DelayTimer>,
        stale: &mut StaleWaker,
    ) {
        match std::mem::replace(&mut self.states[waiter], WaiterState::Free) {
            WaiterState::Notified => self.notified -= 1,
            WaiterState::Parked(waker) => {
                *stale = Some(waker);
                // The worker was polled without a notification, which is rare; such a worker parked
                // recently, so its index is near the end.
                if let Some(at) = self.parked.iter().rposition(|other| *other == waiter) {
                    self.parked.remove(at);
                }
            }
            WaiterState::Free => {}
        }
        self.free.push(waiter);
        if self.timekeeper == Some(waiter) {
            (self.timekeeper, self.timekeeper_due) = (None, None);
            self.delay_timer = delay_timer;
        }
    }

    /// Makes the parked worker the timekeeper until `due`, if there is none. Returns whether the
    /// worker is the timekeeper, and the timer of an earlier timekeeper.
    pub(super) fn become_timekeeper(
        &mut self,
        waiter: WaiterId,
        due: Option<Duration>,
    ) -> (bool, Option<DelayTimer>) {
        if self.timekeeper.is_none() && due.is_some() {
            self.timekeeper = Some(waiter);
            self.parked.retain(|other| *other != waiter);
        }
        if self.timekeeper != Some(waiter) {
            return (false, None);
        }
        self.timekeeper_due = due;
        (true, self.delay_timer.take())
    }

    /// Returns whether there is no worker to wake and no timekeeper to notify.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.parked.is_empty() && self.timekeeper.is_none()
    }

    /// Selects workers to wake until `wanted` wake-ups are in flight, or every worker is notified.
    pub(super) fn notify(&mut self, wanted: usize, wakes: &mut Wakes) {
        while self.notified < wanted {
            let timekeeper = self
                .timekeeper
                .filter(|waiter| matches!(self.states[*waiter], WaiterState::Parked(_)));
            // The timekeeper is notified last: if that worker is busy with a key, another worker
            // must take over the timer.
            let Some(waiter) = self.parked.pop().or(timekeeper) else { return };
            let before = std::mem::replace(&mut self.states[waiter], WaiterState::Notified);
            if let WaiterState::Parked(waker) = before {
                self.notified += 1;
                wakes.push(waker);
            }
        }
    }

    /// Wakes the timekeeper if the next delayed key, due at `due`, is due earlier than the timer
    /// fires; appoints a timekeeper if there is none.
    pub(super) fn notify_timekeeper(&mut self, due: Option<Duration>, wakes: &mut Wakes) {
        let Some(due) = due.filter(|due| self.timekeeper_due.is_none_or(|last| *due < last)) else {
            return;
        };
        if self.timekeeper.is_none() {
            self.timekeeper = self.parked.pop();
        }
        let Some(timekeeper) = self.timekeeper else { return };
        self.timekeeper_due = Some(due);
        if let WaiterState::Parked(waker) = &self.states[timekeeper] {
            // Not counted in `notified`: this wake-up is for the timer and not for a key.
            wakes.push(waker.clone());
        }
    }
}
