//! Where workers wait for keys: who sleeps, who has been called, who minds the clock.
//!
//! A worker that finds no key lies down here with its waker; a key that becomes takeable calls one.
//! One call at a time is enough: who comes and sees more keys calls the next, so that a burst of
//! adds costs few calls, not one per key, and still nobody sleeps beside a key. Who was called may not
//! come, so keys that pile up call more: one for each time that their number doubles. A batch calls as
//! many at once as it has keys. The worker that lay down last is called first: it is the warmest.
//!
//! One sleeper, the timekeeper, also waits for the next delayed key. It is called last. The alarm
//! outlives it, so that workers which come and go arm no timer each time.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::Waker;
use std::time::Duration;

/// Rings once, at the time for which it was set.
pub(super) struct Alarm {
    pub(super) due: Duration,
    pub(super) bell: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("due", &self.due).finish_non_exhaustive()
    }
}

/// A waker that is needed no more, to be dropped outside of locks: it may be the last to know a task.
pub(super) type Gone = Option<Waker>;

/// The number of a bed.
pub(super) type Bed = usize;

/// Workers that wait.
#[derive(Debug, Default)]
pub(super) struct Room {
    beds: Vec<Sleep>,
    free: Vec<Bed>,
    /// Not called yet, the timekeeper left out; the last one lay down last.
    asleep: Vec<Bed>,
    /// Called and not yet up.
    called: usize,
    keeper: Option<Bed>,
    /// When the timekeeper will look, as far as it knows or was told.
    set: Option<Duration>,
    /// The alarm of a timekeeper that has left.
    alarm: Option<Alarm>,
}

#[derive(Debug)]
enum Sleep {
    Nobody,
    Asleep(Waker),
    Called,
}

/// Whom to wake once the lock is released.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Calls {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Calls {
    fn add(&mut self, waker: Waker) {
        match &self.first {
            None => self.first = Some(waker),
            Some(_) => self.others.push(waker),
        }
    }

    /// Wakes them.
    pub(super) fn make(self) {
        let Some(first) = self.first else { return };
        first.wake();
        self.others.into_iter().for_each(Waker::wake);
    }
}

impl Room {
    /// Lies down, or stays there with another waker; tells the bed.
    pub(super) fn lie_down(&mut self, bed: Option<Bed>, waker: &Waker, gone: &mut Gone) -> Bed {
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
            Sleep::Called => self.called -= 1,
            Sleep::Nobody => {}
        }
        self.beds[bed] = Sleep::Asleep(waker.clone());
        if self.keeper != Some(bed) {
            self.asleep.push(bed);
        }
        bed
    }

    /// Leaves; the timekeeper leaves its alarm behind.
    pub(super) fn get_up(&mut self, bed: Bed, alarm: Option<Alarm>, gone: &mut Gone) {
        match std::mem::replace(&mut self.beds[bed], Sleep::Nobody) {
            Sleep::Called => self.called -= 1,
            Sleep::Asleep(waker) => {
                *gone = Some(waker);
                // It looks by itself, before it was called: seldom, and then it is near the end.
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

    /// The sleeper in that bed minds the clock if nobody else does, from now on until `due`. Tells
    /// whether it does, and hands over the alarm that was left behind.
    pub(super) fn mind(&mut self, bed: Bed, due: Option<Duration>) -> (bool, Option<Alarm>) {
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

    /// Is there nobody who could be called, or told of the time?
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.asleep.is_empty() && self.keeper.is_none()
    }

    /// Calls sleepers until `wanted` are on their way, or all are.
    pub(super) fn call(&mut self, wanted: usize, calls: &mut Calls) {
        while self.called < wanted {
            let keeper = self.keeper.filter(|bed| matches!(self.beds[*bed], Sleep::Asleep(_)));
            let Some(bed) = self.asleep.pop().or(keeper) else { return };
            if let Sleep::Asleep(waker) = std::mem::replace(&mut self.beds[bed], Sleep::Called) {
                self.called += 1;
                calls.add(waker);
            }
        }
    }

    /// The next delayed key is due then: somebody who sleeps has to know.
    pub(super) fn expect(&mut self, due: Option<Duration>, calls: &mut Calls) {
        let Some(due) = due.filter(|due| self.set.is_none_or(|set| *due < set)) else { return };
        if self.keeper.is_none() {
            self.keeper = self.asleep.pop();
        }
        let Some(keeper) = self.keeper else { return };
        self.set = Some(due);
        if let Sleep::Asleep(waker) = &self.beds[keeper] {
            calls.add(waker.clone());
        }
    }
}
