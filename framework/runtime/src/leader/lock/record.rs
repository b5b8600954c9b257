//! The election record: the leader and the beginning of the leadership, as stored in the lock.

use std::time::Duration;

use jiff::Timestamp;

/// The leader and the beginning of the leadership: client-go's `LeaderElectionRecord`.
///
/// A [`LeaseLock`](super::LeaseLock) keeps the record in the fields of a Lease, the legacy locks as
/// JSON in an annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderElectionRecord {
    /// Identity of the holder; `None` when the lock is free.
    pub holder: Option<String>,
    /// Time that others wait after the last change that they saw; whole seconds.
    pub duration: Duration,
    /// Time at which the holder took the lock, by the holder's wall clock.
    pub acquired: Option<Timestamp>,
    /// Time of the holder's last renewal, by the holder's wall clock.
    pub renewed: Option<Timestamp>,
    /// Number of times that the lock has passed to another holder.
    pub transitions: i32,
    /// Strategy by which a coordinated election picks the leader; kept as found.
    pub strategy: Option<String>,
    /// Holder that a coordinated election prefers; kept as found.
    pub preferred_holder: Option<String>,
    /// Process that asked the holder for the lease, in an annotation of our own; `None` without a
    /// request, and in locks that have no place for a request. See
    /// [`LeaderElection::ask`](crate::leader::LeaderElection::ask).
    pub requested_by: Option<String>,
}

/// Duration in a record that was given back: client-go's, and ours.
pub(in crate::leader) const RELEASED: Duration = Duration::from_secs(1);

impl LeaderElectionRecord {
    /// Whether the last holder gave the record back. A record that was created empty, or emptied by
    /// hand, says nothing about a holder that may still be writing.
    pub(in crate::leader) fn is_released(&self) -> bool {
        self.holder.is_none() && self.duration == RELEASED && self.acquired.is_some()
    }
}

/// A record and the version in which it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedRecord {
    /// The record as the lock has it: holder, times and number of transitions.
    pub record: LeaderElectionRecord,
    /// Changes with every write of the record, and with no other write if the lock can distinguish
    /// them.
    pub version: String,
    /// Whether a part of the lock is missing, which an update creates. The process that creates
    /// that part waits for a lease duration before leading, as after the creation of a whole lock:
    /// a holder of that part may still be writing.
    pub is_partial: bool,
}

impl ObservedRecord {
    /// Creates an observation of a record that is the whole content of a lock.
    pub fn new(record: LeaderElectionRecord, version: impl Into<String>) -> Self {
        Self { record, version: version.into(), is_partial: false }
    }
}
