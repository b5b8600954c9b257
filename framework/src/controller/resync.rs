//! Looks at every object once per period, though nothing changed: for drift in what no watch shows.
//!
//! The objects are spread over the period by their names, so that a million of them are a trickle and
//! not a burst, and they are of low priority: what changes goes first. Nothing is kept per object but
//! its place in the queue, for one part of the period. Objects that a predicate keeps out are left out.
//! When a run begins all have just been looked at, so the first part's turn is after the first period.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;

use super::feed::Objects;
use super::predicates::Predicate;
use super::pump::{Pump, PumpRun, Pumping};
use super::reasons::Reason;
use crate::resource::{ObjectKey, Resource};
use crate::store::Store;

/// controller-runtime's `SyncPeriod`.
pub(super) const PERIOD: Duration = Duration::from_secs(10 * 3600);
/// A period has at most so many parts: all objects are looked through once in each.
const PARTS: u32 = 256;
/// A short period has at most so many, so that looking through them costs little beside what is found.
const FEW_PARTS: u32 = 16;
/// Where that makes parts longer than this, there may be more of them.
const LONG_PART: Duration = Duration::from_secs(60);
const SHORTEST_PART: Duration = Duration::from_secs(1);

/// The resync of one controller.
pub(super) struct Resync {
    period: Duration,
}

impl Resync {
    pub(super) fn every(period: Duration) -> Self {
        Self { period: period.max(SHORTEST_PART) }
    }

    /// The parts of a period: how long each is, and how many they are.
    fn parts(&self) -> (Duration, u64) {
        let width = (self.period / FEW_PARTS).min(LONG_PART).max(self.period / PARTS);
        let width = width.max(SHORTEST_PART);
        (width, u64::try_from(self.period.as_nanos() / width.as_nanos()).unwrap_or(1))
    }
}

/// The objects that may be woken though nothing changed.
pub(super) struct Allowed<K> {
    pub(super) store: Store<K>,
    pub(super) when: Option<Predicate<K>>,
}

impl<K: Resource> Objects for Allowed<K> {
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

impl Pump for Resync {
    fn run(self: Arc<Self>, run: PumpRun) -> Pumping {
        Box::pin(async move {
            let (width, parts) = self.parts();
            let hasher = FixedState::with_seed(run.seams.entropy.next_u64());
            // All objects have just been looked at: the first part can wait for the end of the period. So
            // the queue is empty after the first reconciles, and gives back what it took up for them.
            let is_divided = parts > 1;
            if is_divided {
                run.seams.clock.sleep(width).await;
            }
            for part in (0..parts).cycle().skip(usize::from(is_divided)) {
                let place = |key: &ObjectKey| {
                    hasher.hash_one((key.cluster(), key.namespace(), key.name())) % parts
                };
                let due = run.objects.keys(&|key| place(key) == part);
                let due = due.into_iter().map(|key| (key, run.seams.entropy.jitter(width)));
                run.feed.visit(due.collect(), Reason::RESYNC);
                run.seams.clock.sleep(width).await;
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
        let (width, count) = Resync::every(PERIOD).parts();
        assert_eq!((width, count), (PERIOD / PARTS, u64::from(PARTS)));
    }
}
