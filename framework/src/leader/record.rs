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

/// The duration in a record that was given back: client-go's, and ours.
pub(super) const RELEASED: Duration = Duration::from_secs(1);

impl LeaderElectionRecord {
    /// Did its last holder give it back? A record that somebody made empty, or emptied by hand, tells
    /// nothing of a holder that may still be writing.
    pub(super) fn is_released(&self) -> bool {
        self.holder.is_none() && self.duration == RELEASED && self.acquired.is_some()
    }
}

/// A record and the version that it was seen in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedRecord {
    /// The record.
    pub record: LeaderElectionRecord,
    /// Changes with every write of the record, and only then if the lock can tell.
    pub version: String,
    /// Is a part of the lock missing, which an update makes? Whoever makes it waits for a lease duration
    /// before it leads, as after the making of a whole lock: a holder of that part may still be writing.
    pub is_partial: bool,
}

impl ObservedRecord {
    /// A record that is all of its lock.
    pub fn new(record: LeaderElectionRecord, version: impl Into<String>) -> Self {
        Self { record, version: version.into(), is_partial: false }
    }
}
