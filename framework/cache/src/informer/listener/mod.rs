//! A listener: delivery, task and lifetime.
//!
//! An inline listener is the framework's own and only adds keys to a queue: the call happens where
//! a batch is applied. Every other listener has a [`Mailbox`] and a task, so that the listener can
//! be slow.
//!
//! Life: `New` until the informer attaches the listener, `Attached` while the listener receives
//! changes, `Ended` once no call runs and none will follow. The mailbox is locked for single
//! operations, never during a call.

// DESIGN.md, 27: The holder of the apply permit applies queued batches

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

mod listeners;
mod mailbox;

pub(in crate::informer) use listeners::Listeners;
use mailbox::Mailbox;
pub use mailbox::states;
pub(in crate::informer) use mailbox::{MailboxItem, MergePolicy};

use crate::store::{Object, StoreEvent};
use windlass_core::clock::Clock;
use windlass_core::metrics::{Metrics, names};
use windlass_core::resource::{ObjectKey, ResourceInfo};
use windlass_core::sync::{Mutex, Notify, OrderedWatch};

/// Most keys that a listener takes out of the mailbox at once.
const TAKEN: usize = 64;
/// A call that takes longer is taken for blocking: later calls are made on threads that may block.
const SLOW: Duration = Duration::from_millis(10);
/// Calls for a single batch of keys that together take longer are taken for blocking, too.
const SLOW_TOGETHER: Duration = Duration::from_millis(20);

/// A function that is called with a whole batch, where the batch is applied.
pub(crate) type InlineFn = Box<dyn Fn(&[StoreEvent]) + Send + Sync>;
/// A function that is called with a single item at a time, on the listener's task.
pub(in crate::informer) type DeliverFn = Box<dyn Fn(&MailboxItem) + Send + Sync>;

/// Share of the time that a listener may use.
pub(in crate::informer) enum CpuShare {
    /// The whole time.
    Free,
    /// A quarter: each pause is three times as long as the work before.
    Quarter,
}

/// Stage of a listener's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::informer) enum Stage {
    /// The listener has received nothing yet.
    New,
    /// The listener receives changes.
    Attached,
    /// No call is running, and none will come.
    Ended,
}

/// State of a listener, for waiters.
#[derive(Clone, Copy, Debug)]
pub(in crate::informer) struct ListenerState {
    /// Stage of the listener's life.
    pub(in crate::informer) stage: Stage,
    /// Whether the listener has received the first lists whole.
    pub(in crate::informer) is_synced: bool,
}

/// The way in which a listener receives changes.
enum Delivery {
    /// Called by the informer's task, with the batch.
    InlineFn(InlineFn),
    /// Called by the listener's own task, with a single item at a time.
    Queued { call: DeliverFn, mail: Mutex<MailboxState>, filled: Notify },
}

/// The mailbox of a listener, under its lock.
struct MailboxState {
    /// The undelivered changes.
    mailbox: Mailbox,
    /// Whether the task holds items that are not delivered yet.
    is_busy: bool,
}

/// A timer of a listener.
struct Resync {
    /// Interval of resyncs; at least 1 s.
    period: Duration,
    /// Time of the next resync; `None` before the first list.
    next: Option<Instant>,
}

/// A listener of an informer.
pub(in crate::informer) struct Listener {
    /// Name in logs, metrics and texts about missing parts.
    name: String,
    /// Kind of the objects.
    info: ResourceInfo,
    /// Receiver of the listener's figures.
    metrics: Metrics,
    /// Inline, or by a mailbox and a task.
    delivery: Delivery,
    /// Timer of the listener's resyncs; `None` for none.
    resync: Option<Mutex<Resync>>,
    /// Stage and progress, with their waiters.
    state: OrderedWatch<ListenerState>,
    /// Cancelled by the removal; the task ends at the next check.
    removed: CancellationToken,
    /// Clock of resyncs and of the duration of calls.
    clock: Clock,
    /// Share of the time that the listener may use.
    cpu_share: CpuShare,
    /// Whether a call took too long.
    is_slow: AtomicBool,
    /// Whether the informer created the listener for internal use: no caller waits for it.
    is_internal: bool,
    /// Whether the listener's owner can do while the kind is not served.
    tolerates_absence: AtomicBool,
}

/// Name of a listener and the labels of its metrics.
pub(in crate::informer) struct ListenerIdentity {
    pub(in crate::informer) name: String,
    pub(in crate::informer) info: ResourceInfo,
    pub(in crate::informer) metrics: Metrics,
    pub(in crate::informer) clock: Clock,
}

impl Listener {
    /// Creates a listener that is called where a batch is applied.
    pub(in crate::informer) fn inline(identity: ListenerIdentity, inline: InlineFn) -> Arc<Self> {
        Arc::new(Self::new(identity, Delivery::InlineFn(inline), None))
    }

    /// Creates a listener with a mailbox and a task.
    pub(in crate::informer) fn queued(
        identity: ListenerIdentity,
        merging: MergePolicy,
        resync: Option<Duration>,
        call: DeliverFn,
    ) -> Arc<Self> {
        let mail = Mutex::new(MailboxState { mailbox: Mailbox::new(merging), is_busy: false });
        let delivery = Delivery::Queued { call, mail, filled: Notify::new() };
        let resync = resync.map(|period| Mutex::new(Resync { period, next: None }));
        Arc::new(Self::new(identity, delivery, resync))
    }

    /// Creates a listener of the informer, with the share of time that it may use.
    pub(in crate::informer) fn internal(
        identity: ListenerIdentity,
        merging: MergePolicy,
        cpu_share: CpuShare,
        call: DeliverFn,
    ) -> Arc<Self> {
        let mail = Mutex::new(MailboxState { mailbox: Mailbox::new(merging), is_busy: false });
        let delivery = Delivery::Queued { call, mail, filled: Notify::new() };
        let listener = Self::new(identity, delivery, None);
        Arc::new(Self { cpu_share, is_internal: true, ..listener })
    }

    /// Creates a listener that is attached to no informer yet.
    fn new(identity: ListenerIdentity, delivery: Delivery, resync: Option<Mutex<Resync>>) -> Self {
        let ListenerIdentity { name, info, metrics, clock } = identity;
        let state = OrderedWatch::new(ListenerState { stage: Stage::New, is_synced: false });
        let removed = CancellationToken::new();
        Self {
            name,
            info,
            metrics,
            delivery,
            resync,
            state,
            removed,
            clock,
            cpu_share: CpuShare::Free,
            is_slow: AtomicBool::new(false),
            is_internal: false,
            tolerates_absence: AtomicBool::new(false),
        }
    }

    /// Returns the name.
    pub(in crate::informer) fn name(&self) -> &str {
        &self.name
    }

    /// Waits until the listener's state fulfils `wanted`.
    pub(in crate::informer) async fn wait_for(
        &self,
        wanted: impl Fn(&ListenerState) -> bool + Send,
    ) -> ListenerState {
        self.state.wait_for(wanted).await
    }

    /// Returns whether the listener has received the first lists whole.
    pub(in crate::informer) fn is_synced(&self) -> bool {
        self.state.get().is_synced
    }

    /// Returns whether no further call may begin.
    pub(in crate::informer) fn is_removed(&self) -> bool {
        self.removed.is_cancelled()
    }

    /// Returns whether the informer made the listener for internal use.
    pub(in crate::informer) fn is_internal(&self) -> bool {
        self.is_internal
    }

    /// Notes that the listener's owner can do while the kind is not served.
    pub(in crate::informer) fn tolerate_absence(&self) {
        // Relaxed: the flag guards no data.
        self.tolerates_absence.store(true, Ordering::Relaxed);
    }

    /// Returns whether the listener's owner can do while the kind is not served.
    pub(in crate::informer) fn tolerates_absence(&self) -> bool {
        self.tolerates_absence.load(Ordering::Relaxed)
    }

    /// Returns whether the listener has a mailbox and a task.
    pub(in crate::informer) fn is_queued(&self) -> bool {
        matches!(self.delivery, Delivery::Queued { .. })
    }

    /// Removes the listener: no further call begins. A running call goes on; [`Stage::Ended`]
    /// follows afterwards.
    pub(in crate::informer) fn remove(&self) {
        self.removed.cancel();
        // A listener that never began has no task that would end the listener.
        self.enter(Stage::Ended, |stage| stage == Stage::New);
    }

    /// Makes the listener receive changes; false when the listener was removed before.
    pub(in crate::informer) fn begin(&self, now: Instant) -> bool {
        if let Some(resync) = &self.resync {
            let mut resync = resync.lock();
            resync.next = Some(now + resync.period);
        }
        !self.is_removed() && self.enter(Stage::Attached, |stage| stage == Stage::New)
    }

    /// Ends the listener: no call is running, and none will follow.
    pub(in crate::informer) fn end(&self) {
        self.removed.cancel();
        self.enter(Stage::Ended, |stage| stage != Stage::Ended);
    }

    /// Changes the stage of life if `may` allows it; returns whether the stage changed.
    fn enter(&self, next: Stage, may: impl FnOnce(Stage) -> bool) -> bool {
        self.state.update(|state| {
            let may = may(state.stage);
            if may {
                state.stage = next;
            }
            may
        })
    }

    /// Delivers a batch, or leaves it to the listener's task.
    pub(in crate::informer) fn notify(&self, events: &[StoreEvent]) {
        if events.is_empty() || self.is_removed() {
            return;
        }
        match &self.delivery {
            Delivery::InlineFn(inline) => self.notify_inline(inline, events),
            Delivery::Queued { mail, filled, .. } => {
                let mut mail = mail.lock();
                events.iter().for_each(|event| mail.mailbox.push(event));
                // Released before the wake-up: the woken task takes the same lock.
                drop(mail);
                filled.notify_one();
            }
        }
    }

    /// Calls an inline listener with a batch. If the listener panics, another call follows for each
    /// event alone, so that only the faulty events are lost.
    fn notify_inline(&self, inline: &InlineFn, events: &[StoreEvent]) {
        let called = catch_unwind(AssertUnwindSafe(|| inline(events)));
        if called.is_ok() {
            return;
        }
        for event in events {
            let one = std::slice::from_ref(event);
            if catch_unwind(AssertUnwindSafe(|| inline(one))).is_err() {
                self.panicked(Some(event.key()));
            }
        }
    }

    /// Notes that all events of the first lists have been delivered or put into the mailbox.
    pub(in crate::informer) fn mark_synced(&self) {
        match &self.delivery {
            Delivery::InlineFn(_) => self.set_synced(),
            Delivery::Queued { mail, filled, .. } => {
                mail.lock().mailbox.mark_synced();
                filled.notify_one();
            }
        }
    }

    fn set_synced(&self) {
        self.state.update(|state| !std::mem::replace(&mut state.is_synced, true));
    }

    /// Returns the time of the next resync.
    pub(in crate::informer) fn next_resync(&self) -> Option<Instant> {
        self.resync.as_ref().and_then(|resync| resync.lock().next)
    }

    /// Returns whether the resync period is over; if so, the next period begins, at once and
    /// without drift.
    pub(in crate::informer) fn is_due(&self, now: Instant) -> bool {
        let Some(resync) = &self.resync else { return false };
        let mut resync = resync.lock();
        let Some(next) = resync.next.filter(|next| *next <= now) else { return false };
        let mut next = next + resync.period;
        // Periods that were missed are skipped.
        if next <= now {
            next = now + resync.period;
        }
        resync.next = Some(next);
        true
    }

    /// Delivers the content again, except for objects that wait in the mailbox anyway.
    pub(in crate::informer) fn resync(&self, content: &[Arc<Object>]) {
        if let Delivery::Queued { mail, filled, .. } = &self.delivery {
            let mut mail = mail.lock();
            content.iter().for_each(|object| mail.mailbox.resync(object));
            // Released before the wake-up: the woken task takes the same lock.
            drop(mail);
            filled.notify_one();
        }
    }

    /// Returns the number of keys that wait to be delivered.
    pub(in crate::informer) fn waiting(&self) -> usize {
        match &self.delivery {
            Delivery::InlineFn(_) => 0,
            Delivery::Queued { mail, .. } => mail.lock().mailbox.key_count(),
        }
    }

    /// Returns whether everything was delivered.
    pub(in crate::informer) fn is_idle(&self) -> bool {
        match &self.delivery {
            Delivery::InlineFn(_) => true,
            Delivery::Queued { mail, .. } => {
                let mail = mail.lock();
                self.is_removed() || (mail.mailbox.is_empty() && !mail.is_busy)
            }
        }
    }

    /// Returns the task of a listener with a mailbox. The listener has ended when the task ends in
    /// any way.
    pub(in crate::informer) fn task(
        self: Arc<Self>,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> {
        let ending = Arc::new(ListenerGuard(Arc::clone(&self)));
        async move {
            let listener = &ending.0;
            let Delivery::Queued { filled, .. } = &listener.delivery else { return };
            loop {
                // A mailbox that fills all the time would keep this task running. And the first
                // call that blocks stops a worker thread: a task in the worker's slot for the
                // newest task would wait with it, as no other worker takes from there. The slot is
                // empty when a task runs after its yield, so the yield stands before a delivery.
                tokio::task::yield_now().await;
                if stop.is_cancelled() || listener.is_removed() {
                    return;
                }
                let items = listener.take();
                if items.is_empty() {
                    tokio::select! {
                        biased;
                        // Biased: a stop or a removal goes before further items.
                        () = stop.cancelled() => return,
                        () = listener.removed.cancelled() => return,
                        () = filled.notified() => continue,
                    }
                }
                let began = listener.clock.now();
                let left = listener.deliver(items.into(), &stop);
                if !left.is_empty() {
                    on_blocking_thread(&ending, left, &stop).await;
                }
                listener.rest(began, &stop).await;
            }
        }
    }

    /// Delivers items in sequence; returns the rest when the calls turn out to block.
    fn deliver(
        &self,
        mut items: VecDeque<MailboxItem>,
        stop: &CancellationToken,
    ) -> VecDeque<MailboxItem> {
        let began = self.clock.now();
        let mut before = began;
        // Relaxed: a hint that only this listener's calls set and read.
        while !self.is_slow.load(Ordering::Relaxed)
            && let Some(item) = items.pop_front()
        {
            if !self.deliver_one(&item, stop) {
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

    /// Delivers an item; false when the listener was removed or the informer stops.
    fn deliver_one(&self, item: &MailboxItem, stop: &CancellationToken) -> bool {
        let Delivery::Queued { call, .. } = &self.delivery else { return false };
        let is_delivered = !self.is_removed() && !stop.is_cancelled();
        if is_delivered {
            self.call(call, item);
        }
        is_delivered
    }

    /// Pauses for as long as the listener's share of the time asks.
    async fn rest(&self, began: Instant, stop: &CancellationToken) {
        let worked = self.clock.now().saturating_duration_since(began);
        if matches!(self.cpu_share, CpuShare::Quarter) {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = self.removed.cancelled() => {}
                () = self.clock.sleep(worked * 3) => {}
            }
        }
    }

    /// Takes the next items out of the mailbox.
    fn take(&self) -> Vec<MailboxItem> {
        let Delivery::Queued { mail, .. } = &self.delivery else { return Vec::new() };
        let mut mail = mail.lock();
        let items = mail.mailbox.take(TAKEN);
        // Under a single lock: `is_idle` must see the items in the mailbox or here.
        mail.is_busy = !items.is_empty();
        items
    }

    /// Calls the listener with a single item; panics of the listener are caught.
    fn call(&self, call: &DeliverFn, item: &MailboxItem) {
        if matches!(item, MailboxItem::Synced) {
            return self.set_synced();
        }
        if catch_unwind(AssertUnwindSafe(|| call(item))).is_err() {
            self.panicked(item.key());
        }
    }

    /// Counts and logs a panic of the listener.
    fn panicked(&self, key: Option<&ObjectKey>) {
        let resource = self.info.group_resource();
        self.metrics.count(&names::INFORMER_LISTENER_PANICS, &[&resource], 1);
        tracing::error!(
            %resource, listener = self.name, object = key.map(tracing::field::display),
            "a listener panicked; it goes on with the next change"
        );
    }
}

/// Delivers items on a thread that may block, so that no other task waits. The listener does not
/// end before this work, regardless of the fate of the task. On a stop, calls that have begun are
/// waited for, but not a thread that is not available yet.
async fn on_blocking_thread(
    ending: &Arc<ListenerGuard>,
    items: VecDeque<MailboxItem>,
    stop: &CancellationToken,
) {
    let listener = &ending.0;
    // The work can be withdrawn before a thread is free, which an abort could not: the side that
    // takes the work out of the mutex owns the work.
    let work = Arc::new(Mutex::new(Some((Arc::clone(ending), stop.clone(), items))));
    let left = Arc::clone(&work);
    let mut delivered = tokio::task::spawn_blocking(move || {
        let pending = left.lock().take();
        if let Some((ending, stop, items)) = pending {
            let _ = items.iter().all(|item| ending.0.deliver_one(item, &stop));
        }
    });
    // Panics are caught inside; a runtime that ends cancels the task.
    tokio::select! {
        biased;
        _ = &mut delivered => return,
        () = stop.cancelled() => {}
        () = listener.removed.cancelled() => {}
    }
    // Taken back: from here on the thread finds nothing, or has begun and is waited for.
    let has_begun = work.lock().take().is_none();
    if has_begun {
        let _ = delivered.await;
    }
}

/// Ends the listener when the task ends or is dropped, also when the task never ran.
struct ListenerGuard(Arc<Listener>);

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}
