//! Input of a run.

use std::time::Duration;

use super::EPOCH;
use super::plan::Plan;

/// Starts of simulated time. The second one, 2032-01-01T00:00:00Z, has the day of the year and of
/// the week of the first one, since schedules depend on these.
pub(super) const EPOCHS: [i64; 2] = [EPOCH, 1_956_528_000];

/// Number of replicas in runs with hand-overs.
pub(super) const REPLICAS: usize = 2;

/// Pace of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pace {
    /// As fast as the server is.
    #[default]
    Fast,
    /// Events and answers take seconds: answers `least` or a number of `step`s more.
    Slow { lag: u64, least: u64, step: u64 },
}

/// Paces of runs that show which values follow from times. No time between two moments is the same
/// in both, and none the sum of others, but by chance. Shorter than the time after which a run
/// counts as quiet.
pub(super) const PACES: [Pace; 2] =
    [Pace::Slow { lag: 47, least: 5, step: 3 }, Pace::Slow { lag: 31, least: 4, step: 7 }];

impl Pace {
    /// Returns the delay of all events.
    pub(super) fn lag(self) -> Duration {
        match self {
            Self::Fast => Duration::ZERO,
            Self::Slow { lag, .. } => Duration::from_secs(lag),
        }
    }

    /// Returns the delay of the answer to the request of a number, if there is one.
    pub(super) fn answer(self, number: usize) -> Option<Duration> {
        let Self::Slow { least, step, .. } = self else { return None };
        let steps = u64::try_from(number % 3).unwrap_or_default();
        Some(Duration::from_secs(least + step * steps))
    }
}

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
    /// Whether time and resourceVersions begin elsewhere than in other runs.
    pub(super) is_elsewhere: bool,
    /// Pace of the answers to writes and calls.
    pub(super) pace: Pace,
}

impl Setting {
    /// Returns the setting of a plan's run.
    pub(super) fn of(seed: u64, plan: &Plan) -> Self {
        let replicas = if plan.is_replicated() { REPLICAS } else { 1 };
        Self { seed, plan: plan.clone(), replicas, ..Self::default() }
    }

    /// Returns the start of simulated time.
    pub(super) fn epoch(&self) -> i64 {
        EPOCHS[usize::from(self.is_elsewhere)]
    }
}
