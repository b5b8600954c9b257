//! What is known of one key.

use std::time::Duration;

use super::{Ticket, Verdict};
use crate::workqueue::{Priority, RetryPolicy};

/// A time since the queue was made, in nanoseconds; it ends after 584 years.
pub(in crate::workqueue) type Nanos = u64;

pub(in crate::workqueue) fn nanos(time: Duration) -> Nanos {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(time.subsec_nanos()))
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::workqueue) struct Slot {
    pub(super) place: Place,
    /// Why it is to be worked on next; of a key in work, what came since it was taken.
    pub(super) reasons: u64,
    pub(super) failures: u32,
    /// Of its next turn; of a key in work, of this one.
    pub(super) priority: Priority,
    pub(super) failing: bool,
    /// Put off before it was worked on.
    pub(super) held: bool,
}

impl Slot {
    /// A key that nothing is known of, before it is put somewhere.
    pub(super) fn resting() -> Self {
        Self {
            place: Place::Resting,
            reasons: 0,
            failures: 0,
            priority: Priority::NORMAL,
            failing: false,
            held: false,
        }
    }

    pub(super) fn is_backing_off(&self) -> bool {
        self.failing || self.held
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Resting,
    Ready {
        since: Nanos,
        turn: u64,
    },
    Working {
        /// Its place among those in work.
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

/// What was asked of a key while it was in work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    No,
    /// It took a place in line, which may have been passed over.
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

/// Notes success or failure; returns the delay that follows, if any.
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
                (slot.failures, slot.failing) = (0, false);
            }
            bound.map(|bound| bound.mul_f64(draw.clamp(0.0, 1.0)))
        }
    }
}
