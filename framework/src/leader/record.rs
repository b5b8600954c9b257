//! Who leads and since when, as it is stored.

use std::time::Duration;

use jiff::Timestamp;

/// Who leads, and since when: client-go's `LeaderElectionRecord`.
///
/// A [`LeaseLock`](super::LeaseLock) keeps it in the fields of a Lease, the legacy locks as JSON in
/// an annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderElectionRecord {
    /// Identity of the holder; `None` when the lock is free.
    pub holder: Option<String>,
    /// How long others wait after the last change that they saw; whole seconds.
    pub duration: Duration,
    /// When the holder took it, by the holder's wall clock.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed it, by the holder's wall clock.
    pub renewed: Option<Timestamp>,
    /// How often it has passed from one holder to another.
    pub transitions: i32,
    /// How a coordinated election picks its leader; kept as found.
    pub strategy: Option<String>,
    /// Whom a coordinated election prefers; kept as found.
    pub preferred_holder: Option<String>,
    /// Who asked the holder for the lease, in words of ours; `None` when nobody did, and in locks that
    /// have no place for it. See [`LeaderElection::ask`](super::LeaderElection::ask).
    pub requested_by: Option<String>,
}

/// A record and the version that it was seen in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedRecord {
    /// The record.
    pub record: LeaderElectionRecord,
    /// Changes with every write of the record, and only then if the lock can tell.
    pub version: String,
}
