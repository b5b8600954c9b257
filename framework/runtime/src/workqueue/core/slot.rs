//! The state of a key.

use std::time::Duration;

use super::completion::Completion;
use super::ticket::Ticket;
use crate::workqueue::{Priority, RetryPolicy};

/// Time since the queue was made, in nanoseconds; overflows after 584 years.
pub(in crate::workqueue) type Nanos = u64;

/// Converts a duration to nanoseconds; a duration beyond `u64` saturates.
pub(in crate::workqueue) fn nanos(time: Duration) -> Nanos {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(time.subsec_nanos()))
}

/// The state of a key.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::workqueue) struct KeySlot {
    pub(super) stage: Stage,
    /// Reasons of the next attempt; of a key in work, reasons added since the take.
    pub(super) reasons: u64,
    /// Failures in a row.
    pub(super) failures: u32,
    /// Priority of the next attempt; of a key in work, of this attempt.
    pub(super) priority: Priority,
    /// Whether the last work failed.
    pub(super) failing: bool,
    /// Whether the key was delayed by a `Hold` before work began.
    pub(super) on_hold: bool,
}

impl KeySlot {
    /// Returns the state of an idle key without history.
    pub(super) fn idle() -> Self {
        Self {
            stage: Stage::Idle,
            reasons: 0,
            failures: 0,
            priority: Priority::NORMAL,
            failing: false,
            on_hold: false,
        }
    }

    /// Returns whether the key failed or is on hold.
    pub(super) fn is_backing_off(&self) -> bool {
        self.failing || self.on_hold
    }
}

/// The stage of a key in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Neither added nor in work; the slot is kept for the key's next add.
    Idle,
    Ready {
        since: Nanos,
        /// Sequence number of the key's entry in a lane.
        seq: u64,
    },
    Working {
        /// Index among the keys in work.
        index: u32,
    },
    /// Delayed until `at`.
    Waiting {
        at: Nanos,
        /// Sequence number of the key's timer.
        seq: u64,
    },
}

/// A key in work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Working {
    pub(super) ticket: Ticket,
    pub(super) since: Nanos,
    pub(super) again: RepeatedAdd,
}

/// Adds that arrived while the key was in work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepeatedAdd {
    /// Not added.
    No,
    /// Added without delay: the key has an entry in a lane, which may have been passed over.
    Now { seq: u64, since: Nanos, passed: bool, priority: Priority },
    /// Added with a delay until `at`.
    At { at: Nanos, priority: Priority },
}

/// Records success or failure; returns the delay that follows, if any.
pub(super) fn apply_completion(
    policy: RetryPolicy,
    slot: &mut KeySlot,
    completion: Completion,
) -> Option<Duration> {
    match completion {
        Completion::Done | Completion::Gone | Completion::After(_) => {
            (slot.failures, slot.failing) = (0, false)
        }
        Completion::Retry { .. } => {
            slot.failures = slot.failures.saturating_add(1);
            slot.failing = true;
        }
        Completion::RetryAnew { .. } => (slot.failures, slot.failing) = (1, true),
        Completion::RetryAfter(_) => slot.failing = true,
        Completion::Hold(_) => slot.on_hold = true,
    }
    match completion {
        Completion::Done | Completion::Gone => None,
        Completion::After(delay) | Completion::RetryAfter(delay) | Completion::Hold(delay) => {
            Some(delay)
        }
        Completion::Retry { draw } | Completion::RetryAnew { draw } => {
            let bound = policy.bound(slot.failures);
            if bound.is_none() {
                // The policy gave up: the next add begins with a count of zero.
                (slot.failures, slot.failing) = (0, false);
            }
            bound.map(|bound| bound.mul_f64(draw.clamp(0.0, 1.0)))
        }
    }
}
