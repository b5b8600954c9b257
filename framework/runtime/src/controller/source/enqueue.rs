//! The way from sources into the queue: keys, reasons and priorities.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::debounce::Debounce;
use super::reasons::Reason;
use crate::workqueue::{AddOptions, Priority, WorkQueue};
use windlass_cache::store::Store;
use windlass_core::clock::Clock;
use windlass_core::resource::{ObjectKey, Resource};
use windlass_core::sync::Mutex;

/// Most keys that wait in a queue without workers, as on a replica that does not lead; at most
/// another batch. Keys beyond are dropped: the next run enqueues all objects.
const MAX_STANDBY_KEYS: usize = 16 * 1024;

/// State of the queue's workers: running or not.
#[derive(Debug, Default)]
struct Standby {
    is_running: AtomicBool,
    /// Whether the next run has to enqueue all objects.
    has_dropped: Mutex<bool>,
}

/// Reason of an add, and whether it is a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EnqueueReason {
    reason: Reason,
    is_change: bool,
}

impl EnqueueReason {
    /// A change.
    pub(crate) fn changed(reason: Reason) -> Self {
        Self { reason, is_change: true }
    }

    /// No change, merely due by time, queued behind changes.
    pub(crate) fn periodic(reason: Reason) -> Self {
        Self { reason, is_change: false }
    }

    pub(crate) fn is_change(self) -> bool {
        self.is_change
    }

    /// Returns reason and priority as the queue takes them.
    fn add_options(self) -> AddOptions {
        let priority = if self.is_change { Priority::NORMAL } else { Priority::LOW };
        self.reason.add_options().priority(priority)
    }
}

/// Entry of all sources into the queue; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Enqueuer {
    queue: WorkQueue<ObjectKey>,
    debounce: Option<Arc<Debounce>>,
    clock: Clock,
    standby: Arc<Standby>,
}

/// Guard of a run: workers take keys until the drop.
#[derive(Debug)]
pub(crate) struct RunGuard(Arc<Standby>);

impl Drop for RunGuard {
    fn drop(&mut self) {
        // Without the lock: a source that still sees the run adds its keys as if just before the
        // end. Relaxed: the flag guards no data.
        self.0.is_running.store(false, Ordering::Relaxed);
    }
}

impl Enqueuer {
    pub(crate) fn new(
        queue: WorkQueue<ObjectKey>,
        debounce: Option<Arc<Debounce>>,
        clock: Clock,
    ) -> Self {
        Self { queue, debounce, clock, standby: Arc::default() }
    }

    /// Starts a run. Returns whether all objects have to be enqueued, because keys were dropped.
    pub(crate) fn open(&self) -> (RunGuard, bool) {
        // Under the lock: a source either sees the run, or has noted the drop before this takes the
        // note. Relaxed, because the lock orders this and the second load of `has_room`.
        let mut has_dropped = self.standby.has_dropped.lock();
        self.standby.is_running.store(true, Ordering::Relaxed);
        (RunGuard(Arc::clone(&self.standby)), std::mem::take(&mut *has_dropped))
    }

    /// Whether more keys may be added. Their objects are in the cache already: a run that begins
    /// after a drop finds them there.
    fn has_room(&self) -> bool {
        // Fast path without the lock; checked again under the lock, because a run may begin in
        // between.
        if self.standby.is_running.load(Ordering::Relaxed) {
            return true;
        }
        let mut has_dropped = self.standby.has_dropped.lock();
        if self.standby.is_running.load(Ordering::Relaxed) {
            return true;
        }
        let counts = self.queue.counts();
        let has_room = counts.queued + counts.delayed < MAX_STANDBY_KEYS;
        *has_dropped |= !has_room;
        has_room
    }

    /// Enqueues objects, each with a cause. With debouncing, changes wait for the end of the burst.
    pub(crate) fn enqueue(&self, mut keys: Vec<(ObjectKey, EnqueueReason)>) {
        if keys.is_empty() || !self.has_room() {
            return;
        }
        // Only the first change of a burst adds the key; the others extend the burst.
        if let Some(debounce) = &self.debounce {
            let now = self.clock.now();
            keys.retain(|(key, cause)| {
                !cause.is_change || debounce.is_first(key, cause.reason.bit(), now)
            });
        }
        self.queue.add_each(keys.into_iter().map(|(key, cause)| (key, cause.add_options())));
    }

    /// Enqueues all of these objects for a change.
    pub(crate) fn enqueue_all(&self, keys: Vec<ObjectKey>, reason: Reason) {
        self.enqueue(keys.into_iter().map(|key| (key, EnqueueReason::changed(reason))).collect());
    }

    /// Enqueues these objects because their time has come, without debouncing.
    pub(crate) fn enqueue_now(&self, keys: Vec<ObjectKey>, reason: Reason) {
        if !self.has_room() {
            return;
        }
        self.queue.add_each(keys.into_iter().map(|key| (key, reason.add_options())));
    }

    /// Enqueues these objects after their delays, without a change and at low priority.
    pub(crate) fn enqueue_later(&self, keys: Vec<(ObjectKey, Duration)>, reason: Reason) {
        let options = EnqueueReason::periodic(reason).add_options();
        self.queue.add_each(keys.into_iter().map(|(key, delay)| (key, options.after(delay))));
    }
}

/// The objects of the reconciled kind, without their type.
pub(crate) trait ObjectKeys: Send + Sync {
    /// Whether there is such an object.
    fn has(&self, key: &ObjectKey) -> bool;

    /// Returns the keys for which `chosen` is true, in order.
    fn keys(&self, chosen: &dyn Fn(&ObjectKey) -> bool) -> Vec<ObjectKey>;
}

impl<K: Resource> ObjectKeys for Store<K> {
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
    use crate::workqueue::QueueSettings;
    use windlass_core::environment::Environment;

    #[tokio::test(start_paused = true)]
    async fn keys_without_workers_are_bounded_and_the_next_run_enqueues_all_objects() {
        let environment = Environment::system();
        let queue = WorkQueue::new(QueueSettings::new("site"), &environment);
        let enqueuer = Enqueuer::new(queue.clone(), None, environment.clock.clone());
        let enqueue = |name: usize| {
            enqueuer.enqueue_all(
                vec![ObjectKey::new(Some("shop"), &name.to_string())],
                Reason::DELETED,
            );
        };
        (0..MAX_STANDBY_KEYS).for_each(enqueue);
        let (opened, has_dropped) = enqueuer.open();
        assert!(!has_dropped, "there was room for all");
        (0..MAX_STANDBY_KEYS + 1).for_each(enqueue);
        assert_eq!(
            queue.counts().queued,
            MAX_STANDBY_KEYS + 1,
            "there is no limit while they are worked off"
        );
        drop(opened);
        (0..3 * MAX_STANDBY_KEYS).for_each(enqueue);
        assert_eq!(queue.counts().queued, MAX_STANDBY_KEYS + 1);
        assert!(enqueuer.open().1);
    }
}
