//! The records that this process has sent, over all campaigns, and the wait that each record
//! carries.
//!
//! A record under our identity need not be ours: a process that was started under the name of
//! another, which may still be running, must wait like any other candidate. So a record counts as
//! ours only when found among these; a forgotten record costs a wait, not safety.
//!
//! A record that goes back to the creation of a lock proves nothing about the holder of an earlier
//! lock, which may have been deleted while that holder hangs. So such a record lets the present
//! holder write only when a lease duration has passed since the record was first seen in the store,
//! and each renewal inherits the rest of that wait. Not included: the decision about which records
//! these are, which the machine makes.

// DESIGN.md, 73: The creator of a lock waits for a lease duration before it writes

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::leader::lock::LeaderElectionRecord;
use windlass_core::clock::ClockReading;

/// Records of ours that may be stored.
#[derive(Clone, Debug, Default)]
pub struct OwnRecords(Arc<Mutex<Records>>);

/// The kept records, oldest first.
#[derive(Debug, Default)]
struct Records {
    kept: VecDeque<(Fingerprint, Option<CreationWait>)>,
    /// Time since which no other process is known to have held the lock; until a record was seen.
    unheld_since: Option<ClockReading>,
    /// Version of the lock seen last, if versions are numbers.
    version: Option<u64>,
    /// Wait for the holder before the last restore that was seen.
    restored: Option<CreationWait>,
}

/// Renewal time and transitions: distinguish two records of the same holder, as precisely as a
/// Lease stores them.
type Fingerprint = (Option<i64>, i64);

/// Time for which a holder that created the lock writes nothing.
#[derive(Clone, Copy, Debug)]
pub(in crate::leader) struct CreationWait {
    /// Time at which a record of the lock was first seen in the store: an earlier holder has not
    /// renewed the lock since.
    since: Option<ClockReading>,
    lasts: Duration,
}

impl CreationWait {
    /// Creates a wait that begins when a record with this wait is first seen.
    pub(in crate::leader) fn new(lasts: Duration) -> Self {
        Self { since: None, lasts }
    }

    /// Starts the wait at `first`, unless an earlier record with this wait was seen.
    pub(in crate::leader) fn seen(self, first: ClockReading) -> Self {
        Self { since: self.since.or(Some(first)), ..self }
    }

    /// Returns the rest of the wait, by a clock that does not count the machine's sleep; `None`
    /// when the wait is over.
    pub(in crate::leader) fn left(&self, now: &ClockReading) -> Option<Duration> {
        let waited = self.since.map_or(Duration::ZERO, |since| since.steady_until(now));
        self.lasts.checked_sub(waited).filter(|left| !left.is_zero())
    }
}

fn fingerprint(record: &LeaderElectionRecord) -> Fingerprint {
    let renewed = record.renewed.map(Timestamp::as_microsecond);
    (renewed, i64::from(record.transitions))
}

impl OwnRecords {
    /// Number of records that are kept: more writes in a row whose fate is unknown are forgotten.
    const KEPT: usize = 16;

    /// Adds a record that is about to be sent; forgets the oldest when there are too many.
    pub(in crate::leader) fn add(&self, record: &LeaderElectionRecord, wait: Option<CreationWait>) {
        let kept = &mut self.0.lock().kept;
        if kept.len() == Self::KEPT {
            kept.pop_front();
        }
        kept.push_back((fingerprint(record), wait));
    }

    /// Whether this process has sent the record.
    pub(in crate::leader) fn contains(&self, record: &LeaderElectionRecord) -> bool {
        let sought = fingerprint(record);
        self.0.lock().kept.iter().any(|(print, _)| *print == sought)
    }

    /// Returns the wait that a record of ours carries; `None` when the holder may write at once.
    pub(in crate::leader) fn wait(&self, record: &LeaderElectionRecord) -> Option<CreationWait> {
        let sought = fingerprint(record);
        self.0.lock().kept.iter().find_map(|(print, wait)| wait.filter(|_| *print == sought))
    }

    /// Replaces the wait of a record of ours.
    pub(in crate::leader) fn set_wait(
        &self,
        record: &LeaderElectionRecord,
        wait: Option<CreationWait>,
    ) {
        let sought = fingerprint(record);
        let kept = &mut self.0.lock().kept;
        kept.iter_mut().filter(|(print, _)| *print == sought).for_each(|kept| kept.1 = wait);
    }

    // DESIGN.md, 288: A lock whose version went back was restored, and is waited for
    /// Takes note of the version in which the lock was read or written. After a version below the
    /// last one, `lasts` is the time for which the last known holder may write.
    pub(in crate::leader) fn note_version(
        &self,
        version: &str,
        lasts: Duration,
        now: &ClockReading,
    ) {
        // Versions of API objects are numbers; those of other locks say nothing about order.
        let Ok(version) = version.parse() else { return };
        let mut records = self.0.lock();
        if records.version.replace(version).is_some_and(|last| version < last) {
            records.restored = Some(CreationWait::new(lasts).seen(*now));
        }
        records.restored = records.restored.filter(|wait| wait.left(now).is_some());
    }

    /// Returns the wait after a restore, unless it was over when the lock was last seen.
    pub(in crate::leader) fn restored(&self) -> Option<CreationWait> {
        self.0.lock().restored
    }

    /// Notes that no other process has held the lock at `at`.
    pub fn set_unheld_since(&self, at: ClockReading) {
        self.0.lock().unheld_since = Some(at);
    }

    /// Takes note of a seen record; returns whether, if the record is ours, no other process can
    /// have held the lock before. Others that created the lock since then are still waiting for
    /// `duration`. True for the first record at most.
    pub(in crate::leader) fn take_unheld(&self, duration: Duration, now: &ClockReading) -> bool {
        let since = self.0.lock().unheld_since.take();
        since.is_some_and(|since| since.longest_until(now) < duration)
    }
}
