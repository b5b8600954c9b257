//! The way from sources to the queue: keys, why, and how urgent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::debounce::Debounce;
use super::reasons::Reason;
use crate::clock::Clock;
use crate::resource::{ObjectKey, Resource};
use crate::store::Store;
use crate::sync::Mutex;
use crate::workqueue::{Adding, Priority, WorkQueue};

/// So many keys wait in a queue that nobody works off, as on a replica that does not lead; one batch
/// more, at most. What is beyond is not remembered: the next run goes through all objects.
const STANDBY: usize = 16 * 1024;

/// Does anybody work keys off?
#[derive(Debug, Default)]
struct Standby {
    is_running: AtomicBool,
    /// Does the next run have to go through all objects?
    has_dropped: Mutex<bool>,
}

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
    standby: Arc<Standby>,
}

/// Keys are worked off until it is dropped.
#[derive(Debug)]
pub(super) struct Opened(Arc<Standby>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.is_running.store(false, Ordering::SeqCst);
    }
}

impl Feed {
    pub(super) fn new(
        queue: WorkQueue<ObjectKey>,
        debounce: Option<Arc<Debounce>>,
        clock: Clock,
    ) -> Self {
        Self { queue, debounce, clock, standby: Arc::default() }
    }

    /// Keys are worked off from now on. Tells whether all objects have to be gone through, because keys
    /// were dropped.
    pub(super) fn open(&self) -> (Opened, bool) {
        let mut has_dropped = self.standby.has_dropped.lock();
        self.standby.is_running.store(true, Ordering::SeqCst);
        (Opened(Arc::clone(&self.standby)), std::mem::take(&mut *has_dropped))
    }

    /// May more keys come? Their objects are in the cache already: what is dropped before a run begins
    /// is there when the run looks.
    fn has_room(&self) -> bool {
        if self.standby.is_running.load(Ordering::SeqCst) {
            return true;
        }
        let mut has_dropped = self.standby.has_dropped.lock();
        if self.standby.is_running.load(Ordering::SeqCst) {
            return true;
        }
        let counts = self.queue.counts();
        let has_room = counts.queued + counts.delayed < STANDBY;
        *has_dropped |= !has_room;
        has_room
    }

    /// What concerns these objects, each for its cause. News wait for their burst to end, where that
    /// was wired.
    pub(super) fn wake(&self, mut keys: Vec<(ObjectKey, Cause)>) {
        if keys.is_empty() || !self.has_room() {
            return;
        }
        if let Some(debounce) = &self.debounce {
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
        if !self.has_room() {
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seams::Seams;
    use crate::workqueue::QueueSettings;

    #[tokio::test(start_paused = true)]
    async fn what_nobody_works_off_is_bounded_and_the_next_run_goes_through_all() {
        let seams = Seams::system();
        let queue = WorkQueue::new(QueueSettings::new("site"), &seams);
        let feed = Feed::new(queue.clone(), None, seams.clock.clone());
        let wake = |name: usize| {
            feed.wake_all(vec![ObjectKey::new(Some("shop"), &name.to_string())], Reason::DELETED);
        };
        (0..STANDBY).for_each(wake);
        let (opened, has_dropped) = feed.open();
        assert!(!has_dropped, "there was room for all");
        (0..STANDBY + 1).for_each(wake);
        assert_eq!(
            queue.counts().queued,
            STANDBY + 1,
            "there is no limit while they are worked off"
        );
        drop(opened);
        (0..3 * STANDBY).for_each(wake);
        assert_eq!(queue.counts().queued, STANDBY + 1);
        assert!(feed.open().1);
    }
}
