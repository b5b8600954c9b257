//! Periodic reconcile of every object without a change: for drift that no watch shows.
//!
//! The objects are spread over the period by their names, so that a million of them cause no burst,
//! and they have low priority: changes go first. The only state per object is the key's place in
//! the queue, for a part of the period. Objects that a predicate keeps out are left out. When a run
//! begins all objects have just been reconciled, so the first part is due after the first period.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;

use super::background::{BackgroundFuture, BackgroundRun, BackgroundSource};
use super::enqueue::ObjectKeys;
use super::predicates::Predicate;
use super::reasons::Reason;
use windlass_cache::store::Store;
use windlass_core::resource::{ObjectKey, Resource};

/// controller-runtime's `SyncPeriod`.
pub(crate) const RESYNC_PERIOD: Duration = Duration::from_secs(10 * 3600);
/// Most parts of a period: each part scans all objects once.
const PARTS: u32 = 256;
/// Most parts of a short period, so that scanning costs little beside the reconciles.
const FEW_PARTS: u32 = 16;
/// Length of a part above which a period may have more than `FEW_PARTS`.
const LONG_PART: Duration = Duration::from_secs(60);
/// Shortest length of a part, and so of a period.
const SHORTEST_PART: Duration = Duration::from_secs(1);

/// The resync of a controller.
pub(crate) struct Resync {
    period: Duration,
}

impl Resync {
    pub(crate) fn every(period: Duration) -> Self {
        Self { period: period.max(SHORTEST_PART) }
    }

    /// Returns the length of a part and the number of parts.
    fn parts(&self) -> (Duration, u64) {
        let width = (self.period / FEW_PARTS).min(LONG_PART).max(self.period / PARTS);
        let width = width.max(SHORTEST_PART);
        (width, u64::try_from(self.period.as_nanos() / width.as_nanos()).unwrap_or(1))
    }
}

/// The objects that may be enqueued without a change.
pub(crate) struct Allowed<K> {
    pub(crate) store: Store<K>,
    pub(crate) when: Option<Predicate<K>>,
}

impl<K: Resource> ObjectKeys for Allowed<K> {
    fn has(&self, key: &ObjectKey) -> bool {
        let Some(object) = self.store.get(key) else { return false };
        self.when.as_ref().is_none_or(|when| when.allows(&object))
    }

    fn keys(&self, chosen: &dyn Fn(&ObjectKey) -> bool) -> Vec<ObjectKey> {
        let mut objects = self.store.list();
        objects.retain(|object| {
            chosen(object.key()) && self.when.as_ref().is_none_or(|when| when.allows(object))
        });
        objects.iter().map(|object| object.key().clone()).collect()
    }
}

impl BackgroundSource for Resync {
    fn run(self: Arc<Self>, run: BackgroundRun) -> BackgroundFuture {
        Box::pin(async move {
            let (width, parts) = self.parts();
            let hasher = FixedState::with_seed(run.environment.rng.next_u64());
            // All objects have just been reconciled: the first part can wait for the end of the
            // period. So the queue is empty after the first reconciles, and releases the memory
            // used for them.
            let is_divided = parts > 1;
            if is_divided {
                run.environment.clock.sleep(width).await;
            }
            for part in (0..parts).cycle().skip(usize::from(is_divided)) {
                let part_of = |key: &ObjectKey| {
                    hasher.hash_one((key.cluster(), key.namespace(), key.name())) % parts
                };
                let due = run.objects.keys(&|key| part_of(key) == part);
                let due = due.into_iter().map(|key| (key, run.environment.rng.jitter(width)));
                run.enqueuer.enqueue_later(due.collect(), Reason::RESYNC);
                run.environment.clock.sleep(width).await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_period_has_few_parts_and_a_long_one_small_ones() {
        let parts = |seconds: u64| Resync::every(Duration::from_secs(seconds)).parts();
        assert_eq!(parts(0), (SHORTEST_PART, 1));
        assert_eq!(parts(8), (SHORTEST_PART, 8));
        assert_eq!(parts(60), (Duration::from_millis(3750), 16));
        assert_eq!(parts(600), (Duration::from_millis(37_500), 16));
        assert_eq!(parts(3600), (LONG_PART, 60));
        let (width, count) = Resync::every(RESYNC_PERIOD).parts();
        assert_eq!((width, count), (RESYNC_PERIOD / PARTS, u64::from(PARTS)));
    }
}
