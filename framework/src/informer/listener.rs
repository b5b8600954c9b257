//! One listener: how it is told, by whom, and until when.
//!
//! An inline listener is the framework's own and only adds keys to a queue: it is called where a
//! batch is applied. Every other one has a [`Mailbox`] and a task, so that it can take its time.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::mailbox::{Item, Mailbox, Merging};
use crate::clock::Clock;
use crate::metrics::{Metrics, names};
use crate::resource::{ObjectKey, ResourceInfo};
use crate::store::{Event, Object};
use crate::sync::{Mutex, Notify, Posted};

/// Keys that a listener takes out of its mailbox at once.
const TAKEN: usize = 64;
/// A call that takes longer blocks: later ones are made where that is in nobody's way.
const SLOW: Duration = Duration::from_millis(10);
/// Calls that together take longer block just as well.
const SLOW_TOGETHER: Duration = Duration::from_millis(20);

/// Called with a whole batch, where it is applied.
pub(crate) type Inline = Box<dyn Fn(&[Event]) + Send + Sync>;
/// Called with one item at a time, on the listener's task.
pub(super) type Call = Box<dyn Fn(&Item) + Send + Sync>;

/// How much of the time it may take.
pub(super) enum Pace {
    /// All of it.
    Free,
    /// It rests three times as long as it worked.
    Quarter,
}

/// Where a listener's life stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Nobody has told it anything.
    New,
    /// It is told.
    Told,
    /// No call is running, and none will come.
    Ended,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) life: Life,
    /// Was it told all that the first lists showed?
    pub(super) is_synced: bool,
}

enum Hearing {
    Inline(Inline),
    Queued { call: Call, inbox: Mutex<Inbox>, filled: Notify },
}

struct Inbox {
    mailbox: Mailbox,
    /// Has the task taken out something that it has not told whole?
    is_busy: bool,
}

/// A timer of one listener.
struct Resync {
    period: Duration,
    next: Option<Instant>,
}

pub(super) struct Listener {
    name: String,
    info: ResourceInfo,
    metrics: Metrics,
    hearing: Hearing,
    resync: Option<Mutex<Resync>>,
    standing: Posted<Standing>,
    removed: CancellationToken,
    clock: Clock,
    pace: Pace,
    /// Was a call seen that blocks?
    is_slow: AtomicBool,
    /// Not one that somebody registered: nobody waits for it.
    is_internal: bool,
}

/// What a listener is called and whom it counts for.
pub(super) struct Identity {
    pub(super) name: String,
    pub(super) info: ResourceInfo,
    pub(super) metrics: Metrics,
    pub(super) clock: Clock,
}

impl Listener {
    pub(super) fn inline(identity: Identity, inline: Inline) -> Arc<Self> {
        Arc::new(Self::new(identity, Hearing::Inline(inline), None))
    }

    pub(super) fn queued(
        identity: Identity,
        merging: Merging,
        resync: Option<Duration>,
        call: Call,
    ) -> Arc<Self> {
        let inbox = Mutex::new(Inbox { mailbox: Mailbox::new(merging), is_busy: false });
        let hearing = Hearing::Queued { call, inbox, filled: Notify::new() };
        let resync = resync.map(|period| Mutex::new(Resync { period, next: None }));
        Arc::new(Self::new(identity, hearing, resync))
    }

    /// One of the informer's own, at a pace.
    pub(super) fn internal(
        identity: Identity,
        merging: Merging,
        pace: Pace,
        call: Call,
    ) -> Arc<Self> {
        let inbox = Mutex::new(Inbox { mailbox: Mailbox::new(merging), is_busy: false });
        let hearing = Hearing::Queued { call, inbox, filled: Notify::new() };
        let listener = Self::new(identity, hearing, None);
        Arc::new(Self { pace, is_internal: true, ..listener })
    }

    fn new(identity: Identity, hearing: Hearing, resync: Option<Mutex<Resync>>) -> Self {
        let Identity { name, info, metrics, clock } = identity;
        let standing = Posted::new(Standing { life: Life::New, is_synced: false });
        let removed = CancellationToken::new();
        Self {
            name,
            info,
            metrics,
            hearing,
            resync,
            standing,
            removed,
            clock,
            pace: Pace::Free,
            is_slow: AtomicBool::new(false),
            is_internal: false,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Waits until it stands as `wanted`.
    pub(super) async fn stands(&self, wanted: impl Fn(&Standing) -> bool + Send) -> Standing {
        self.standing.wait_for(wanted).await
    }

    pub(super) fn is_synced(&self) -> bool {
        self.standing.get().is_synced
    }

    pub(super) fn is_removed(&self) -> bool {
        self.removed.is_cancelled()
    }

    pub(super) fn is_internal(&self) -> bool {
        self.is_internal
    }

    pub(super) fn is_queued(&self) -> bool {
        matches!(self.hearing, Hearing::Queued { .. })
    }

    /// No call is to begin any more. One that is running goes on; [`Life::Ended`] comes after it.
    pub(super) fn remove(&self) {
        self.removed.cancel();
        self.enter(Life::Ended, |life| life == Life::New);
    }

    /// From now on it is told; false when it was removed before.
    pub(super) fn begin(&self, now: Instant) -> bool {
        if let Some(resync) = &self.resync {
            let mut resync = resync.lock();
            resync.next = Some(now + resync.period);
        }
        !self.is_removed() && self.enter(Life::Told, |life| life == Life::New)
    }

    /// No call is running, and none will come.
    pub(super) fn end(&self) {
        self.removed.cancel();
        self.enter(Life::Ended, |life| life != Life::Ended);
    }

    fn enter(&self, next: Life, may: impl FnOnce(Life) -> bool) -> bool {
        self.standing.update(|standing| {
            let may = may(standing.life);
            if may {
                standing.life = next;
            }
            may
        })
    }

    /// Tells it a batch, or has its task tell it.
    pub(super) fn hear(&self, events: &[Event]) {
        if events.is_empty() || self.is_removed() {
            return;
        }
        match &self.hearing {
            Hearing::Inline(inline) => self.hear_inline(inline, events),
            Hearing::Queued { inbox, filled, .. } => {
                let mut inbox = inbox.lock();
                events.iter().for_each(|event| inbox.mailbox.push(event));
                drop(inbox);
                filled.notify_one();
            }
        }
    }

    /// When one of a batch makes it panic, the others are told one by one.
    fn hear_inline(&self, inline: &Inline, events: &[Event]) {
        let told = catch_unwind(AssertUnwindSafe(|| inline(events)));
        if told.is_ok() {
            return;
        }
        for event in events {
            let one = std::slice::from_ref(event);
            if catch_unwind(AssertUnwindSafe(|| inline(one))).is_err() {
                self.panicked(Some(event.key()));
            }
        }
    }

    /// What was told or put into the mailbox until now is all that the first lists showed.
    pub(super) fn mark_synced(&self) {
        match &self.hearing {
            Hearing::Inline(_) => self.set_synced(),
            Hearing::Queued { inbox, filled, .. } => {
                inbox.lock().mailbox.mark_synced();
                filled.notify_one();
            }
        }
    }

    fn set_synced(&self) {
        self.standing.update(|standing| !std::mem::replace(&mut standing.is_synced, true));
    }

    /// When it wants to be shown the content again.
    pub(super) fn next_resync(&self) -> Option<Instant> {
        self.resync.as_ref().and_then(|resync| resync.lock().next)
    }

    /// Is its period over? Then the next one begins, at once and without drift.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let Some(resync) = &self.resync else { return false };
        let mut resync = resync.lock();
        let Some(next) = resync.next.filter(|next| *next <= now) else { return false };
        let mut next = next + resync.period;
        if next <= now {
            next = now + resync.period;
        }
        resync.next = Some(next);
        true
    }

    /// Shows it the content again, but for what waits to be told anyway.
    pub(super) fn resync(&self, content: &[Arc<Object>]) {
        if let Hearing::Queued { inbox, filled, .. } = &self.hearing {
            let mut inbox = inbox.lock();
            content.iter().for_each(|object| inbox.mailbox.resync(object));
            drop(inbox);
            filled.notify_one();
        }
    }

    /// Keys that wait to be told.
    pub(super) fn waiting(&self) -> usize {
        match &self.hearing {
            Hearing::Inline(_) => 0,
            Hearing::Queued { inbox, .. } => inbox.lock().mailbox.keys(),
        }
    }

    /// Was it told everything?
    pub(super) fn is_idle(&self) -> bool {
        match &self.hearing {
            Hearing::Inline(_) => true,
            Hearing::Queued { inbox, .. } => {
                let inbox = inbox.lock();
                self.is_removed() || (inbox.mailbox.is_empty() && !inbox.is_busy)
            }
        }
    }

    /// The task of a listener with a mailbox. However it ends, the listener has ended.
    pub(super) fn task(self: Arc<Self>, stop: CancellationToken) -> impl Future<Output = ()> {
        let ending = Arc::new(Ending(Arc::clone(&self)));
        async move {
            let listener = &ending.0;
            let Hearing::Queued { filled, .. } = &listener.hearing else { return };
            loop {
                if stop.is_cancelled() || listener.is_removed() {
                    return;
                }
                let items = listener.take();
                if items.is_empty() {
                    tokio::select! {
                        biased;
                        () = stop.cancelled() => return,
                        () = listener.removed.cancelled() => return,
                        () = filled.notified() => continue,
                    }
                }
                let began = listener.clock.now();
                let left = listener.tell(items.into(), &stop);
                if !left.is_empty() {
                    apart(&ending, left, &stop).await;
                }
                listener.rest(began, &stop).await;
            }
        }
    }

    /// Tells one after the other; returns what is left when the calls turn out to block.
    fn tell(&self, mut items: VecDeque<Item>, stop: &CancellationToken) -> VecDeque<Item> {
        let began = self.clock.now();
        let mut before = began;
        while !self.is_slow.load(Ordering::Relaxed)
            && let Some(item) = items.pop_front()
        {
            if !self.tell_one(&item, stop) {
                return VecDeque::new();
            }
            let now = self.clock.now();
            if now - before > SLOW || now - began > SLOW_TOGETHER {
                self.is_slow.store(true, Ordering::Relaxed);
            }
            before = now;
        }
        items
    }

    /// False when it is to be told nothing more.
    fn tell_one(&self, item: &Item, stop: &CancellationToken) -> bool {
        let Hearing::Queued { call, .. } = &self.hearing else { return false };
        let is_told = !self.is_removed() && !stop.is_cancelled();
        if is_told {
            self.call(call, item);
        }
        is_told
    }

    /// Lets others run, for as long as its pace asks.
    async fn rest(&self, began: Instant, stop: &CancellationToken) {
        let worked = self.clock.now().saturating_duration_since(began);
        tokio::task::yield_now().await;
        if matches!(self.pace, Pace::Quarter) {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.removed.cancelled() => {}
                () = self.clock.sleep(worked * 3) => {}
            }
        }
    }

    fn take(&self) -> Vec<Item> {
        let Hearing::Queued { inbox, .. } = &self.hearing else { return Vec::new() };
        let mut inbox = inbox.lock();
        let items = inbox.mailbox.take(TAKEN);
        inbox.is_busy = !items.is_empty();
        items
    }

    fn call(&self, call: &Call, item: &Item) {
        if matches!(item, Item::Synced) {
            return self.set_synced();
        }
        if catch_unwind(AssertUnwindSafe(|| call(item))).is_err() {
            self.panicked(item.key());
        }
    }

    fn panicked(&self, key: Option<&ObjectKey>) {
        let resource = self.info.group_resource();
        self.metrics.count(&names::INFORMER_LISTENER_PANICS, &[&resource], 1);
        tracing::error!(
            %resource, listener = self.name, object = key.map(tracing::field::display),
            "a listener panicked; it goes on with the next change"
        );
    }
}

/// Tells it on a thread that may block, so that nobody else waits. The listener ends no sooner than
/// this, whatever becomes of its task. When nothing is to be told any more, calls that have begun are
/// waited for, and a thread that is not to be had is not.
async fn apart(ending: &Arc<Ending>, items: VecDeque<Item>, stop: &CancellationToken) {
    let listener = &ending.0;
    // An abort would wait until a thread is free: whoever takes the work out has it.
    let work = Arc::new(Mutex::new(Some((Arc::clone(ending), stop.clone(), items))));
    let left = Arc::clone(&work);
    let mut told = tokio::task::spawn_blocking(move || {
        let begun = left.lock().take();
        if let Some((ending, stop, items)) = begun {
            let _ = items.iter().all(|item| ending.0.tell_one(item, &stop));
        }
    });
    // Panics are caught in there; a runtime that ends cancels it.
    tokio::select! {
        biased;
        _ = &mut told => return,
        () = stop.cancelled() => {}
        () = listener.removed.cancelled() => {}
    }
    let has_begun = work.lock().take().is_none();
    if has_begun {
        let _ = told.await;
    }
}

/// Ends the listener when its task is gone, also when that never ran.
struct Ending(Arc<Listener>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}
