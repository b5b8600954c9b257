//! Input of a run.

use std::time::Duration;

use super::plan::Plan;

/// Number of replicas in runs with hand-overs.
pub(super) const REPLICAS: usize = 2;

/// Input of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Setting {
    pub(super) seed: u64,
    pub(super) plan: Plan,
    /// Delay of all events.
    pub(super) lag: Duration,
    /// Number of replicas; 0 and 1 mean one without a lease.
    pub(super) replicas: usize,
    /// Most seeded faults; `None` without them and without latencies.
    pub(super) chaos: Option<usize>,
}

impl Setting {
    /// Returns the setting of a plan's run.
    pub(super) fn of(seed: u64, plan: &Plan) -> Self {
        let replicas = if plan.is_replicated() { REPLICAS } else { 1 };
        Self { seed, plan: plan.clone(), replicas, ..Self::default() }
    }
}
