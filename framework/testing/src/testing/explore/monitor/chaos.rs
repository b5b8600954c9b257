//! Seeded faults and latencies of a simulation.

use std::time::Duration;

use super::recording::OperatorRequest;
use crate::testing::explore::schedule::Disturbance;
use windlass_core::rng::Rng;

/// Longest latency of one request.
const LATENCY: Duration = Duration::from_millis(300);
/// Longest latency of all events of a run.
const LATENESS: Duration = Duration::from_millis(500);
/// One of this number of requests, and of changes, is disturbed.
const RARITY: u64 = 10;

/// Faults of requests that only read.
const OF_READS: [Disturbance; 4] = [
    Disturbance::CrashBefore,
    Disturbance::Refuse(429),
    Disturbance::Refuse(500),
    Disturbance::Late,
];
/// Faults of requests that write.
const OF_WRITES: [Disturbance; 9] = [
    Disturbance::CrashBefore,
    Disturbance::CrashAfter,
    Disturbance::CrashAfter,
    Disturbance::LoseAnswer,
    Disturbance::Fail(504),
    Disturbance::Refuse(429),
    Disturbance::Refuse(500),
    Disturbance::Late,
    Disturbance::Pause,
];
/// Faults of events.
const OF_CHANGES: [Disturbance; 3] = [Disturbance::Hold, Disturbance::Lag, Disturbance::Relist];

/// Source of a run's faults and latencies.
#[derive(Debug)]
pub(super) struct Chaos {
    rng: Rng,
    /// Faults that may still be caused.
    left: usize,
}

impl Chaos {
    /// Returns the source of a seed with at most `faults` faults.
    pub(super) fn new(seed: u64, faults: usize) -> Self {
        Self { rng: Rng::seeded(seed).fork("chaos"), left: faults }
    }

    /// Returns the latency of all events.
    pub(super) fn lateness(&self) -> Duration {
        self.rng.jitter(LATENESS)
    }

    /// Returns the fault of a request, and its latency.
    pub(super) fn request(&mut self, request: &OperatorRequest) -> (Option<Disturbance>, Duration) {
        // Every draw is made, also when no fault is left: a run with fewer faults is the beginning
        // of one with more.
        let latency = self.rng.jitter(LATENCY);
        let latency = if self.rng.below(4) == 0 { latency } else { Duration::ZERO };
        if !request.is_disturbed() {
            return (None, Duration::ZERO);
        }
        let fault = match request.is_write() {
            true => self.drawn(&OF_WRITES),
            false => self.drawn(&OF_READS),
        };
        (fault, latency)
    }

    /// Returns the fault of the event of a change.
    pub(super) fn change(&mut self) -> Option<Disturbance> {
        self.drawn(&OF_CHANGES)
    }

    /// Draws a fault.
    fn drawn(&mut self, faults: &[Disturbance]) -> Option<Disturbance> {
        let bound = u64::try_from(faults.len()).unwrap_or(1);
        let (is_due, which) = (self.rng.below(RARITY) == 0, self.rng.below(bound));
        if !is_due {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        faults.get(usize::try_from(which).ok()?).copied()
    }
}
