//! A key in the hands of a worker, and the effect of its completion.

use std::time::Duration;

use super::slot::Nanos;
use super::slots::Discarded;
use super::ticket::Ticket;
use crate::workqueue::Priority;

/// A key that a worker has taken.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::workqueue) struct Claim<T> {
    pub(in crate::workqueue) key: T,
    pub(in crate::workqueue) info: ClaimInfo,
}

/// The state of a key at its claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::workqueue) struct ClaimInfo {
    /// Ticket to present when the work ends.
    pub(in crate::workqueue) ticket: Ticket,
    /// Failures in a row so far.
    pub(in crate::workqueue) failures: u32,
    pub(in crate::workqueue) priority: Priority,
    /// Reasons of all adds since the key was last taken.
    pub(in crate::workqueue) reasons: u64,
    /// Time at which the key was taken.
    pub(in crate::workqueue) at: Nanos,
    /// Time for which the key was ready.
    pub(in crate::workqueue) waited: Nanos,
}

impl ClaimInfo {
    /// Returns a ticket with defaults for the other fields, which `begin_work` replaces.
    pub(super) fn of(ticket: Ticket) -> Self {
        Self { ticket, failures: 0, priority: Priority::NORMAL, reasons: 0, at: 0, waited: 0 }
    }
}

/// Effect of a completion.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::workqueue) struct Finished<T> {
    /// Time for which the key was in work.
    pub(in crate::workqueue) worked: Nanos,
    /// Delay until the retry; `None` for a success, or when the policy gave up.
    pub(in crate::workqueue) retry: Option<Duration>,
    /// Memory that is no longer needed, to be dropped outside of locks.
    pub(in crate::workqueue) discarded: Discarded<T>,
}
