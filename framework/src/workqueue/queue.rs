//! The queue as tasks see it: waiting, waking, metrics.
//!
//! State and [`Room`] are under one lock. Whatever changes the state calls, before it releases the
//! lock, as many sleepers as that concerns; they are woken after it. What metrics tell is counted
//! there too. Keys that come while nobody sleeps may wait in the [`Inbox`]; all that looks at the state
//! takes them in first.

use std::fmt;
use std::future::poll_fn;
use std::hash::{BuildHasher, Hash};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use foldhash::fast::FixedState;
use tokio::time::Instant;

use super::core::{
    Core, Finished, NOWHERE, Nanos, Notes, QueueCounts, Taken, Ticket, Verdict, nanos,
};
use super::inbox::{Inbox, Letter, Wish};
use super::meter::{Meter, News, Tally};
use super::room::{Alarm, Bed, Calls, Room};
use super::{Adding, KeyState, QueueSettings, Work};
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::metrics::Gathers;
use crate::seams::Seams;
use crate::sync::{Apart, Mutex, Notify};

/// Delays beyond this are as good as never; instants cannot count much further.
const FAR_AWAY: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// So many keys are added in one pass through the lock: others wait for less than half a millisecond.
const AT_ONCE: usize = 1024;
/// So many keys are looked for together.
const TOGETHER: usize = 32;

/// A set of keys that each get worked on by one worker at a time; cheap to clone. Waits and delays are
/// those of tokio's timer: it is to be used within a runtime that has one.
///
/// - Between [`get`](Self::get) and the verdict on its [`Work`] a key is handed to nobody else.
/// - A key added while in work is handed out again after the verdict, in the place it then took.
/// - Ready keys are handed out by [priority](Adding::priority); those of one priority in the order in which they
///   became ready. A key that has waited for [the ageing time](QueueSettings::ageing) is no longer
///   passed over.
/// - Keys whose last work failed hold at most half of the workers, at least one.
/// - Of several delays for one key the earliest wins; an immediate add beats a delayed one.
pub struct WorkQueue<T: Hash + Eq + Clone> {
    shared: Arc<Shared<T>>,
}

pub(super) struct Shared<T: Hash + Eq + Clone> {
    inside: Mutex<Inside<T>>,
    /// Its lock is taken within that of the state, never the other way round.
    inbox: Apart<Inbox<T>>,
    /// Of keys; its own, so that nobody who chooses names can make them collide.
    hasher: FixedState,
    pub(super) epoch: Instant,
    clock: Clock,
    pub(super) entropy: Entropy,
    meter: Meter,
    pub(super) retried: u64,
    pub(super) requeued: u64,
    /// Something ended; drains look again.
    ended: Notify,
}

struct Inside<T> {
    core: Core<T>,
    room: Room,
    tally: Tally,
    /// Is the inbox shut? While anybody is in the room it is.
    is_shut: bool,
}

/// How a piece of work ended.
#[derive(Debug)]
pub(super) struct End {
    pub(super) ticket: Ticket,
    pub(super) verdict: Verdict,
    /// For its next turn, if the verdict leads to one.
    pub(super) reasons: u64,
}

impl<T: Hash + Eq + Clone> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T: Hash + Eq + Clone> fmt::Debug for WorkQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl<T: Hash + Eq + Clone + Send + 'static> WorkQueue<T> {
    /// An empty queue.
    pub fn new(settings: QueueSettings, seams: &Seams) -> Self {
        Self::noting(settings, seams, None)
    }

    /// An empty queue of keys that note where it keeps them.
    pub(crate) fn noting(settings: QueueSettings, seams: &Seams, notes: Option<Notes<T>>) -> Self {
        let QueueSettings { name, controller, workers, retry, ageing, retried, requeued } =
            settings;
        let entropy = seams.entropy.fork(&name);
        let meter = Meter::new(&seams.metrics, &name, &controller);
        let shared = Arc::new(Shared {
            inside: Mutex::new(Inside {
                core: Core::new(workers, retry, ageing, notes),
                room: Room::default(),
                tally: meter.tally(),
                is_shut: false,
            }),
            inbox: Apart(Inbox::new()),
            hasher: FixedState::with_seed(entropy.next_u64()),
            epoch: seams.clock.now(),
            clock: seams.clock.clone(),
            entropy,
            meter,
            retried,
            requeued,
            ended: Notify::new(),
        });
        let source: Weak<Shared<T>> = Arc::downgrade(&shared);
        seams.metrics.gather_from(source);
        Self { shared }
    }
}

impl<T: Hash + Eq + Clone> WorkQueue<T> {
    /// Wants `key` worked on as soon as possible. Does nothing after [`shutdown`](Self::shutdown).
    pub fn add(&self, key: T) {
        self.add_with(key, Adding::new());
    }

    /// Wants `key` worked on after `delay`, or earlier if that was asked for already.
    pub fn add_after(&self, key: T, delay: Duration) {
        self.add_with(key, Adding::new().after(delay));
    }

    /// Wants `key` worked on as `adding` says. If it is in the queue already, the wishes merge: the
    /// higher priority, all the reasons, the earlier time.
    pub fn add_with(&self, key: T, adding: Adding) {
        let mut key = self.hashed(key);
        self.shared.change(|inside, now| inside.core.add_hashed(&mut key, adding, now));
    }

    /// [`add`](Self::add) for several keys: as many sleeping workers wake as there are new ones. When none
    /// sleeps, whoever uses the queue next takes them in.
    pub fn add_all(&self, keys: impl IntoIterator<Item = T>) {
        self.add_each(keys.into_iter().map(|key| (key, Adding::new())));
    }

    /// [`add_with`](Self::add_with) for several keys: as many sleeping workers wake as there are new ones.
    /// When none sleeps, whoever uses the queue next takes them in.
    pub fn add_each(&self, keys: impl IntoIterator<Item = (T, Adding)>) {
        // The iterator is the caller's code: run it before any lock is taken.
        let keys = keys.into_iter().map(|(key, adding)| (self.hashed(key), adding));
        let keys: Vec<_> = keys.collect();
        if keys.is_empty() {
            return;
        }
        let posted = self.shared.inbox.post(self.shared.now(), keys);
        let Err(mut keys) = posted else { return };
        for some in keys.chunks_mut(AT_ONCE) {
            self.shared.change(|inside, now| inside.add_each(some, now));
        }
    }

    fn hashed(&self, key: T) -> (u64, Option<T>) {
        (self.shared.hasher.hash_one(&key), Some(key))
    }

    /// Waits for a key; `None` once the queue is shut down and has handed out what it held.
    ///
    /// # Cancel safety
    /// Safe: no key is lost when the future is dropped.
    pub async fn get(&self) -> Option<Work<T>> {
        let mut getter = Getter { shared: &self.shared, bed: None, alarm: None };
        poll_fn(|context| getter.poll(context)).await
    }

    /// A key if one is ready now; does not wait.
    pub fn try_get(&self) -> Option<Work<T>> {
        let taken = self.shared.change(Inside::take)?;
        Some(Work::new(Arc::clone(&self.shared), taken))
    }

    /// Accepts no more keys. Keys that are ready, or were added again while in work, are still
    /// handed out; delayed ones and retries are dropped.
    pub fn shutdown(&self) {
        drop(self.shared.change(|inside, _| inside.core.close()));
        self.shared.ended.notify_waiters();
    }

    /// Shuts down and waits until nothing is ready or in work; false when that took longer than
    /// `limit`.
    ///
    /// # Cancel safety
    /// Safe; the queue stays shut down.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.shutdown();
        let quiet = async {
            loop {
                let mut ended = pin!(self.shared.ended.notified());
                ended.as_mut().enable();
                if self.shared.inside.lock().core.quiet() {
                    return;
                }
                ended.await;
            }
        };
        self.shared.clock.within(limit, quiet).await.is_some()
    }

    /// How many keys are where.
    pub fn counts(&self) -> QueueCounts {
        self.shared.change(|inside, _| inside.core.counts())
    }

    /// Up to `limit` keys and what is known of each: those in work, ready, backing off and delayed;
    /// in each place by priority, then the longest there or the next due first. Looks at every key
    /// under the lock: for people, not for programs.
    pub fn describe(&self, limit: usize) -> Vec<KeyState<T>> {
        self.shared.change(|inside, now| inside.core.describe(limit, now))
    }

    #[cfg(test)]
    pub(super) fn has_mail(&self) -> bool {
        self.shared.inbox.has_mail()
    }

    /// Refreshes the gauges on work in progress; called now and then while work is long.
    pub fn observe(&self) {
        self.shared.observe();
    }
}

impl<T: Hash + Eq + Clone> Shared<T> {
    pub(super) fn now(&self) -> Nanos {
        self.at(self.clock.now())
    }

    /// A time, as the queue counts it.
    pub(super) fn at(&self, time: Instant) -> Nanos {
        nanos(time.saturating_duration_since(self.epoch))
    }

    fn alarm(&self, due: Duration) -> Alarm {
        let (clock, at) = (self.clock.clone(), self.epoch + due.min(FAR_AWAY));
        Alarm { due, bell: Box::pin(async move { clock.sleep_until(at).await }) }
    }

    /// Runs `step` on the state and wakes whom that concerns.
    fn change<R>(&self, step: impl FnOnce(&mut Inside<T>, Nanos) -> R) -> R {
        self.change_at(self.now(), step)
    }

    /// [`change`](Self::change), at that time.
    #[inline(always)]
    fn change_at<R>(&self, now: Nanos, step: impl FnOnce(&mut Inside<T>, Nanos) -> R) -> R {
        // What it leaves of its letters is dropped after the lock.
        let mut letters;
        let mut inside = self.inside.lock();
        let before = inside.core.eligible();
        if self.inbox.has_mail() {
            letters = self.inbox.take();
            inside.take_in(&mut letters);
        }
        // What is due became ready before whatever happens now.
        inside.core.promote(now);
        let result = step(&mut inside, now);
        let calls = (!inside.room.is_empty()).then(|| inside.call(before));
        if inside.is_shut && inside.room.is_empty() {
            inside.is_shut = false;
            self.inbox.open();
        }
        drop(inside);
        if let Some(calls) = calls {
            calls.make();
        }
        result
    }

    /// Ends a piece of work; when its retry is due.
    pub(super) fn finish(&self, end: End) -> Option<Duration> {
        let (finished, is_closed) =
            self.change(|inside, now| (inside.finish(end, now), inside.core.is_closed()));
        self.finished(is_closed);
        finished?.retry
    }

    /// Ends a piece of work and takes the key whose turn it is, at one and the same time, into the same
    /// `hand`; tells whether there is one.
    pub(super) fn finish_and_take(&self, end: End, hand: &mut Taken<T>, now: Nanos) -> bool {
        // Both are dropped after the lock.
        let (mut finished, mut held) = (None, None);
        let is_closed = self.change_at(now, |inside, now| {
            if !inside.finish_plain(&end, now) {
                finished = inside.finish(end, now);
            }
            held = inside.take_into(hand, now);
            inside.core.is_closed()
        });
        self.finished(is_closed);
        held.is_some()
    }

    /// Tells whom the end of a piece of work concerns.
    fn finished(&self, is_closed: bool) {
        // Only a drain waits for ends, and it closes the queue first.
        if is_closed {
            self.ended.notify_waiters();
        }
        if self.meter.tells_of_work() {
            self.observe();
        }
    }

    fn observe(&self) {
        let now = self.now();
        let (mut sum, mut longest) = (Duration::ZERO, Duration::ZERO);
        for since in self.inside.lock().core.in_work() {
            let age = Duration::from_nanos(now.saturating_sub(since));
            sum += age;
            longest = longest.max(age);
        }
        self.meter.running(sum, longest);
    }
}

impl<T: Hash + Eq + Clone> Inside<T> {
    /// Adds what waited in the inbox, as of the time when it came. What is left of it is to be dropped
    /// outside of the lock.
    #[cold]
    #[inline(never)]
    fn take_in(&mut self, letters: &mut [Letter<T>]) {
        let mut most = AT_ONCE;
        for (came, keys) in letters {
            // What was due before goes first; very much of that holds nobody up for long.
            most -= self.core.promote_some(*came, most);
            self.add_each(keys, *came);
        }
    }

    fn add_each(&mut self, keys: &mut [Wish<T>], now: Nanos) {
        for some in keys.chunks_mut(TOGETHER) {
            // One look at a time would wait for memory each time.
            let mut guesses = [0; TOGETHER];
            for (guess, ((hash, key), _)) in guesses.iter_mut().zip(some.iter()) {
                *guess = key.as_ref().map_or(NOWHERE, |key| self.core.guess(key, *hash));
            }
            for (guess, ((hash, _), _)) in guesses.iter_mut().zip(some.iter()) {
                *guess = self.core.confirmed(*guess, *hash);
            }
            for (guess, ((hash, key), adding)) in guesses.into_iter().zip(some) {
                self.core.add_guessed((*hash, guess, key), *adding, now);
            }
        }
    }

    /// The key whose turn it is.
    #[inline(always)]
    fn take(&mut self, now: Nanos) -> Option<Taken<T>> {
        let taken = self.core.take(now)?;
        self.tally.waited.add(taken.facts.waited);
        Some(taken)
    }

    /// [`take`](Self::take) into a hand. Tells the key that it held if it holds another now; that one is to
    /// be dropped outside of the lock.
    #[inline]
    fn take_into(&mut self, hand: &mut Taken<T>, now: Nanos) -> Option<T> {
        let left = self.core.take_into(hand, now)?;
        self.tally.waited.add(hand.facts.waited);
        Some(left)
    }

    /// Ends a piece of work if there is nothing to it.
    #[inline(always)]
    fn finish_plain(&mut self, end: &End, now: Nanos) -> bool {
        let is_done = end.verdict == Verdict::Done;
        let worked = is_done.then(|| self.core.finish_plain(end.ticket, now)).flatten();
        if let Some(worked) = worked {
            self.tally.worked.add(worked);
        }
        worked.is_some()
    }

    /// What it returns is to be dropped outside of the lock.
    fn finish(&mut self, end: End, now: Nanos) -> Option<Finished<T>> {
        let finished = self.core.finish(end.ticket, end.verdict, end.reasons, now)?;
        self.tally.worked.add(finished.worked);
        Some(finished)
    }

    /// Calls as many sleepers as what happened concerns; `before` it so many keys could be taken.
    fn call(&mut self, before: usize) -> Calls {
        let mut calls = Calls::default();
        let ready = self.core.eligible();
        // As many as there are new keys. Of old ones one calls the next; when they become more
        // nevertheless, who was called may be unable to come: one more each time they double.
        let backlog = ready.checked_ilog2().map_or(0, |doublings| doublings as usize + 1);
        let more = ready.saturating_sub(before);
        let wanted = if self.core.exhausted() { usize::MAX } else { more.max(backlog) };
        self.room.call(wanted, &mut calls);
        self.room.expect(self.core.next_due(), &mut calls);
        calls
    }
}

impl<T: Hash + Eq + Clone + Send> Gathers for Shared<T> {
    fn tell(&self) {
        self.tell_news();
    }
}

impl<T: Hash + Eq + Clone> Shared<T> {
    /// Tells the metrics what happened since the last time.
    fn tell_news(&self) {
        self.meter.tell(|| self.news());
    }

    fn news(&self) -> News {
        let mut letters = Vec::new();
        let mut inside = self.inside.lock();
        letters.extend(self.inbox.take());
        inside.take_in(&mut letters);
        let tally = inside.tally.take();
        inside.core.news(tally)
    }
}

impl<T: Hash + Eq + Clone> Drop for Shared<T> {
    fn drop(&mut self) {
        // What nobody has read yet counts nevertheless; the keys that were ready are no more.
        self.meter.tell(|| {
            let mut news = self.news();
            news.depths.iter_mut().for_each(|(_, ready)| *ready = 0);
            news
        });
        if self.meter.tells_of_work() {
            self.meter.running(Duration::ZERO, Duration::ZERO);
        }
    }
}

/// A worker that waits for a key.
struct Getter<'a, T: Hash + Eq + Clone> {
    shared: &'a Arc<Shared<T>>,
    /// Where it sleeps.
    bed: Option<Bed>,
    /// Of the timekeeper.
    alarm: Option<Alarm>,
}

/// What a look into the queue led to.
enum Look<T> {
    Taken(Taken<T>),
    Ended,
    /// Nothing; somebody else minds the clock.
    Sleep,
    /// Nothing; it minds the clock, until that time.
    Mind(Option<Duration>),
}

impl<T: Hash + Eq + Clone> Getter<'_, T> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Work<T>>> {
        loop {
            let due = match self.look(context.waker()) {
                Look::Taken(taken) => {
                    return Poll::Ready(Some(Work::new(Arc::clone(self.shared), taken)));
                }
                Look::Ended => return Poll::Ready(None),
                Look::Sleep | Look::Mind(None) => return Poll::Pending,
                Look::Mind(Some(due)) => due,
            };
            // An alarm that rings too early is worth more than a new one each time.
            if self.alarm.as_ref().is_none_or(|alarm| alarm.due > due) {
                self.alarm = Some(self.shared.alarm(due));
            }
            if let Some(alarm) = &mut self.alarm
                && alarm.bell.as_mut().poll(context).is_pending()
            {
                return Poll::Pending;
            }
            self.alarm = None;
        }
    }

    /// Takes a key, or lies down.
    fn look(&mut self, waker: &Waker) -> Look<T> {
        let Self { shared, bed, alarm } = self;
        // Dropped after the lock.
        let (mut gone, mut letters) = (None, Vec::new());
        shared.change(|inside, now| {
            let mut taken = inside.take(now);
            if taken.is_none() && !inside.is_shut {
                // What comes from now on is for who lies here.
                inside.is_shut = true;
                letters = shared.inbox.shut();
                inside.take_in(&mut letters);
                taken = inside.take(now);
            }
            let Inside { core, room, .. } = inside;
            let end = match taken {
                Some(taken) => Look::Taken(taken),
                None if core.exhausted() => Look::Ended,
                None => {
                    let here = room.lie_down(*bed, waker, &mut gone);
                    *bed = Some(here);
                    let due = core.next_due();
                    let (minds, left) = room.mind(here, due);
                    *alarm = alarm.take().or(left);
                    return if minds { Look::Mind(due) } else { Look::Sleep };
                }
            };
            if let Some(bed) = bed.take() {
                room.get_up(bed, alarm.take(), &mut gone);
            }
            end
        })
    }
}

impl<T: Hash + Eq + Clone> Drop for Getter<'_, T> {
    fn drop(&mut self) {
        let Some(bed) = self.bed.take() else { return };
        let (mut gone, alarm) = (None, self.alarm.take());
        self.shared.change(|inside, _| inside.room.get_up(bed, alarm, &mut gone));
    }
}
