//! The way from sources to the queue: keys, why, and how urgent.

use std::sync::Arc;
use std::time::Duration;

use super::debounce::Debounce;
use super::reasons::Reason;
use crate::clock::Clock;
use crate::resource::{ObjectKey, Resource};
use crate::store::Store;
use crate::workqueue::{Adding, Priority, WorkQueue};

/// Why a key is told, and whether anything happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cause {
    reason: Reason,
    is_news: bool,
}

impl Cause {
    /// Something happened.
    pub(super) fn news(reason: Reason) -> Self {
        Self { reason, is_news: true }
    }

    /// Nothing happened, it is merely time to look: what happens goes first.
    pub(super) fn quiet(reason: Reason) -> Self {
        Self { reason, is_news: false }
    }

    pub(super) fn is_news(self) -> bool {
        self.is_news
    }

    fn adding(self) -> Adding {
        let priority = if self.is_news { Priority::NORMAL } else { Priority::LOW };
        self.reason.adding().priority(priority)
    }
}

/// Where sources put keys; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    queue: WorkQueue<ObjectKey>,
    debounce: Option<Arc<Debounce>>,
    clock: Clock,
}

impl Feed {
    pub(super) fn new(
        queue: WorkQueue<ObjectKey>,
        debounce: Option<Arc<Debounce>>,
        clock: Clock,
    ) -> Self {
        Self { queue, debounce, clock }
    }

    /// What concerns these objects, each for its cause. News wait for their burst to end, where that
    /// was wired.
    pub(super) fn wake(&self, mut keys: Vec<(ObjectKey, Cause)>) {
        if let Some(debounce) = self.debounce.as_ref().filter(|_| !keys.is_empty()) {
            let now = self.clock.now();
            keys.retain(|(key, cause)| {
                !cause.is_news || debounce.is_first(key, cause.reason.bit(), now)
            });
        }
        self.queue.add_each(keys.into_iter().map(|(key, cause)| (key, cause.adding())));
    }

    /// Something happened that concerns all of these objects.
    pub(super) fn wake_all(&self, keys: Vec<ObjectKey>, reason: Reason) {
        self.wake(keys.into_iter().map(|key| (key, Cause::news(reason))).collect());
    }

    /// It is time for these objects: no burst is waited for.
    pub(super) fn ring(&self, keys: Vec<ObjectKey>, reason: Reason) {
        self.queue.add_each(keys.into_iter().map(|key| (key, reason.adding())));
    }

    /// It will be time to look at these objects, though nothing happened.
    pub(super) fn visit(&self, keys: Vec<(ObjectKey, Duration)>, reason: Reason) {
        let adding = Cause::quiet(reason).adding();
        self.queue.add_each(keys.into_iter().map(|(key, delay)| (key, adding.after(delay))));
    }
}

/// The objects of the reconciled kind, without their type.
pub(super) trait Objects: Send + Sync {
    /// Is there such an object?
    fn has(&self, key: &ObjectKey) -> bool;

    /// The keys of those that are chosen, in order.
    fn keys(&self, chosen: &dyn Fn(&ObjectKey) -> bool) -> Vec<ObjectKey>;
}

impl<K: Resource> Objects for Store<K> {
    fn has(&self, key: &ObjectKey) -> bool {
        self.get(key).is_some()
    }

    fn keys(&self, chosen: &dyn Fn(&ObjectKey) -> bool) -> Vec<ObjectKey> {
        let objects = self.list();
        objects.iter().map(|object| object.key()).filter(|key| chosen(key)).cloned().collect()
    }
}
