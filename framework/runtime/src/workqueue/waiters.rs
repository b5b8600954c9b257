//! Parked workers: their wakers, the wake-ups under way, and the worker that waits for the next
//! delayed key.
//!
//! A worker that finds no key parks here with its waker, and a key that becomes takeable wakes one
//! worker. One wake-up at a time is enough: a woken worker that sees more keys wakes the next one,
//! so a burst of adds costs few wake-ups, not one per key, and no worker stays parked beside a
//! ready key. A woken worker may not run, so a growing backlog wakes more of them: one each time
//! that the number of keys doubles. A batch wakes as many workers at once as it has keys. The
//! worker that parked last is woken first: its data are the likeliest to be still in the
//! processor's caches.
//!
//! One parked worker, the timekeeper, also waits for the next delayed key. It is woken last. The
//! timer outlives the timekeeper, so that workers which come and go do not create a timer each
//! time.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::Waker;
use std::time::Duration;

/// A timer that fires once, at `due`.
pub(super) struct DelayTimer {
    /// Time at which it fires, since the queue was made.
    pub(super) due: Duration,
    /// Ends at `due`.
    pub(super) bell: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl fmt::Debug for DelayTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayTimer").field("due", &self.due).finish_non_exhaustive()
    }
}

/// A waker that is no longer needed, to be dropped outside of locks: it may hold the last reference
/// to a task.
pub(super) type Gone = Option<Waker>;

/// Index of a parked worker.
pub(super) type WaiterId = usize;

/// The parked workers of a queue.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// Places of parked workers, as many as were ever parked at the same time.
    beds: Vec<Sleep>,
    /// Indexes of the free places.
    free: Vec<WaiterId>,
    /// Parked and not woken yet, without the timekeeper; the worker that parked last is at the end.
    asleep: Vec<WaiterId>,
    /// Number of workers that were woken and have not looked yet.
    called: usize,
    /// The timekeeper.
    keeper: Option<WaiterId>,
    /// Time at which the timekeeper will look, as far as it knows or was notified.
    set: Option<Duration>,
    /// The timer of a timekeeper that has left.
    alarm: Option<DelayTimer>,
}

/// State of a parked worker's place.
#[derive(Debug)]
enum Sleep {
    /// The place is free.
    Nobody,
    /// Parked, and not woken yet.
    Asleep(Waker),
    /// Woken, and has not looked yet.
    Called,
}

/// Wakers to wake once the lock is released.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Wakes {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Wakes {
    fn add(&mut self, waker: Waker) {
        match &self.first {
            None => self.first = Some(waker),
            Some(_) => self.others.push(waker),
        }
    }

    /// Wakes the selected workers.
    pub(super) fn make(self) {
        let Some(first) = self.first else { return };
        first.wake();
        self.others.into_iter().for_each(Waker::wake);
    }
}

impl Waiters {
    /// Parks a worker, or stores another waker for a worker that is parked already; returns its
    /// index.
    pub(super) fn park(
        &mut self,
        bed: Option<WaiterId>,
        waker: &Waker,
        gone: &mut Gone,
    ) -> WaiterId {
        let bed = bed.unwrap_or_else(|| {
            self.free.pop().unwrap_or_else(|| {
                self.beds.push(Sleep::Nobody);
                self.beds.len() - 1
            })
        });
        match &mut self.beds[bed] {
            Sleep::Asleep(known) if known.will_wake(waker) => return bed,
            Sleep::Asleep(known) => {
                *gone = Some(std::mem::replace(known, waker.clone()));
                return bed;
            }
            // The worker has looked and found no key: its wake-up is no longer under way.
            Sleep::Called => self.called -= 1,
            Sleep::Nobody => {}
        }
        self.beds[bed] = Sleep::Asleep(waker.clone());
        if self.keeper != Some(bed) {
            self.asleep.push(bed);
        }
        bed
    }

    /// Unparks a worker; the timekeeper leaves its timer behind.
    pub(super) fn unpark(&mut self, bed: WaiterId, alarm: Option<DelayTimer>, gone: &mut Gone) {
        match std::mem::replace(&mut self.beds[bed], Sleep::Nobody) {
            Sleep::Called => self.called -= 1,
            Sleep::Asleep(waker) => {
                *gone = Some(waker);
                // The worker looks without having been woken, which is rare; it parked recently
                // then, and so stands near the end.
                if let Some(at) = self.asleep.iter().rposition(|other| *other == bed) {
                    self.asleep.remove(at);
                }
            }
            Sleep::Nobody => {}
        }
        self.free.push(bed);
        if self.keeper == Some(bed) {
            (self.keeper, self.set) = (None, None);
            self.alarm = alarm;
        }
    }

    /// Makes the parked worker the timekeeper until `due`, if there is none. Returns whether the
    /// worker is the timekeeper, and the timer that an earlier one left behind.
    pub(super) fn mind(
        &mut self,
        bed: WaiterId,
        due: Option<Duration>,
    ) -> (bool, Option<DelayTimer>) {
        if self.keeper.is_none() && due.is_some() {
            self.keeper = Some(bed);
            self.asleep.retain(|other| *other != bed);
        }
        if self.keeper != Some(bed) {
            return (false, None);
        }
        self.set = due;
        (true, self.alarm.take())
    }

    /// Returns whether there is no worker to wake and no timekeeper to notify.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.asleep.is_empty() && self.keeper.is_none()
    }

    /// Wakes workers until `wanted` wake-ups are under way, or every worker is woken.
    pub(super) fn call(&mut self, wanted: usize, calls: &mut Wakes) {
        while self.called < wanted {
            let keeper = self.keeper.filter(|bed| matches!(self.beds[*bed], Sleep::Asleep(_)));
            // The timekeeper comes last: if it works on a key, another worker must take over the
            // timer.
            let Some(bed) = self.asleep.pop().or(keeper) else { return };
            if let Sleep::Asleep(waker) = std::mem::replace(&mut self.beds[bed], Sleep::Called) {
                self.called += 1;
                calls.add(waker);
            }
        }
    }

    /// Notes that the next delayed key is due at `due`: wakes the timekeeper if that is earlier
    /// than it expects, and appoints one if there is none.
    pub(super) fn expect(&mut self, due: Option<Duration>, calls: &mut Wakes) {
        let Some(due) = due.filter(|due| self.set.is_none_or(|set| *due < set)) else { return };
        if self.keeper.is_none() {
            self.keeper = self.asleep.pop();
        }
        let Some(keeper) = self.keeper else { return };
        self.set = Some(due);
        if let Sleep::Asleep(waker) = &self.beds[keeper] {
            // Not counted in `called`: this wake-up is for the timer and not for a key.
            calls.add(waker.clone());
        }
    }
}
