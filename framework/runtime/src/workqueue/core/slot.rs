//! The state of one key.

use std::time::Duration;

use super::{Ticket, Verdict};
use crate::workqueue::{Priority, RetryPolicy};

/// Time since the queue was made, in nanoseconds; it overflows after 584 years.
pub(in crate::workqueue) type Nanos = u64;

/// Converts a duration to nanoseconds; a longer one than `u64` holds saturates.
pub(in crate::workqueue) fn nanos(time: Duration) -> Nanos {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(time.subsec_nanos()))
}

/// The state of one key.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::workqueue) struct Slot {
    pub(super) stage: Stage,
    /// Reasons of its next turn; of a key in work, those that were added since it was taken.
    pub(super) reasons: u64,
    /// Failures in a row.
    pub(super) failures: u32,
    /// Priority of its next turn; of a key in work, of this turn.
    pub(super) priority: Priority,
    /// Whether its last work failed.
    pub(super) failing: bool,
    /// Whether the key was put off before it was worked on.
    pub(super) held: bool,
}

impl Slot {
    /// Returns the state of a key that rests and has no history.
    pub(super) fn resting() -> Self {
        Self {
            stage: Stage::Resting,
            reasons: 0,
            failures: 0,
            priority: Priority::NORMAL,
            failing: false,
            held: false,
        }
    }

    /// Returns whether the key failed or was held back.
    pub(super) fn is_backing_off(&self) -> bool {
        self.failing || self.held
    }
}

/// The stage of a key in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Resting,
    Ready {
        since: Nanos,
        turn: u64,
    },
    Working {
        /// Index among the keys in work.
        spot: u32,
    },
    Waiting {
        at: Nanos,
        turn: u64,
    },
}

/// A key in work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Working {
    pub(super) ticket: Ticket,
    pub(super) since: Nanos,
    pub(super) again: Again,
}

/// Adds that arrived while the key was in work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    No,
    /// Added without delay: the key took a place in line, which may have been passed over.
    Now {
        turn: u64,
        since: Nanos,
        passed: bool,
        priority: Priority,
    },
    At {
        at: Nanos,
        priority: Priority,
    },
}

/// Records success or failure; returns the delay that follows, if any.
pub(super) fn judge(policy: RetryPolicy, slot: &mut Slot, verdict: Verdict) -> Option<Duration> {
    match verdict {
        Verdict::Done | Verdict::Gone | Verdict::After(_) => {
            (slot.failures, slot.failing) = (0, false)
        }
        Verdict::Retry { .. } => {
            slot.failures = slot.failures.saturating_add(1);
            slot.failing = true;
        }
        Verdict::RetryAnew { .. } => (slot.failures, slot.failing) = (1, true),
        Verdict::RetryAfter(_) => slot.failing = true,
        Verdict::Hold(_) => slot.held = true,
    }
    match verdict {
        Verdict::Done | Verdict::Gone => None,
        Verdict::After(delay) | Verdict::RetryAfter(delay) | Verdict::Hold(delay) => Some(delay),
        Verdict::Retry { draw } | Verdict::RetryAnew { draw } => {
            let bound = policy.bound(slot.failures);
            if bound.is_none() {
                // The policy gave up: the next add begins with a fresh count.
                (slot.failures, slot.failing) = (0, false);
            }
            bound.map(|bound| bound.mul_f64(draw.clamp(0.0, 1.0)))
        }
    }
}
