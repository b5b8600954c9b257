//! Input of a run.

use std::time::Duration;

use super::EPOCH;
use super::schedule::Schedule;

/// Starts of simulated time. The second one, 2032-01-01T00:00:00Z, has the day of the year and of
/// the week of the first one, since schedules depend on these.
pub(super) const EPOCHS: [i64; 2] = [EPOCH, 1_956_528_000];

/// Number of replicas in runs with hand-overs.
pub(super) const REPLICAS: usize = 2;

/// Input of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Setting {
    pub(super) seed: u64,
    pub(super) plan: Schedule,
    /// Delay of all events.
    pub(super) lag: Duration,
    /// Number of attempts of each write that are refused at first.
    pub(super) refusals: usize,
    /// Number of replicas; 0 and 1 mean one without a lease.
    pub(super) replicas: usize,
    /// Most seeded faults; `None` without them and without latencies.
    pub(super) chaos: Option<usize>,
    /// Whether time and resourceVersions begin elsewhere than in other runs.
    pub(super) is_elsewhere: bool,
    /// Whether the run goes on for an hour after its workload, instead of to an end.
    pub(super) goes_on: bool,
}

impl Setting {
    /// Returns the setting of a plan's run.
    pub(super) fn of(seed: u64, plan: &Schedule) -> Self {
        let replicas = if plan.is_replicated() { REPLICAS } else { 1 };
        Self { seed, plan: plan.clone(), replicas, ..Self::default() }
    }

    /// Returns the start of simulated time.
    pub(super) fn epoch(&self) -> i64 {
        EPOCHS[usize::from(self.is_elsewhere)]
    }
}
