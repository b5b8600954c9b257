//! Looks at every object once per period, though nothing changed: for drift in what no watch shows.
//!
//! The objects are spread over the period by their names, so that a million of them are a trickle and
//! not a burst, and they are of low priority: what changes goes first. Nothing is kept per object.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;

use super::pump::{Pump, PumpRun, Pumping};
use super::reasons::Reason;

/// controller-runtime's `SyncPeriod`.
pub(super) const PERIOD: Duration = Duration::from_secs(10 * 3600);
/// A period has at most so many parts: the keys are looked through once in each.
const PARTS: u32 = 256;
const SHORTEST_PART: Duration = Duration::from_secs(1);

/// The resync of one controller.
pub(super) struct Resync {
    period: Duration,
}

impl Resync {
    pub(super) fn every(period: Duration) -> Self {
        Self { period: period.max(SHORTEST_PART) }
    }
}

impl Pump for Resync {
    fn run(self: Arc<Self>, run: PumpRun) -> Pumping {
        Box::pin(async move {
            let width = (self.period / PARTS).max(SHORTEST_PART);
            let parts = u64::try_from(self.period.as_nanos() / width.as_nanos()).unwrap_or(1);
            let hasher = FixedState::with_seed(run.seams.entropy.next_u64());
            for part in (0..parts).cycle() {
                run.seams.clock.sleep(width).await;
                let due = run.objects.keys(&|key| hasher.hash_one(key) % parts == part);
                let due = due.into_iter().map(|key| (key, run.seams.entropy.jitter(width)));
                run.feed.visit(due.collect(), Reason::RESYNC);
            }
        })
    }
}
