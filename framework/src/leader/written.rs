//! The records that this process has sent, over all its campaigns, and which of them let it write.
//!
//! A record under our identity need not be ours: a process that was started under the name of another,
//! which may still be running, must wait like any other candidate. So a record counts as ours only when it
//! is one of these; one that was forgotten costs a wait, not safety.
//!
//! A record that goes back to the making of a lock says nothing about who held one that was there before:
//! somebody may have deleted it while its holder hangs. So it lets its holder write only when a lease
//! duration has passed since it was first seen in the store, and each renewal of it inherits what is left.
//! Absent: the decision which records those are; it is the machine's.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::record::LeaderElectionRecord;
use crate::clock::Mark;

/// Records of ours that may be stored.
#[derive(Clone, Debug, Default)]
pub(super) struct Written(Arc<Mutex<Past>>);

#[derive(Debug, Default)]
struct Past {
    kept: VecDeque<(Fingerprint, Option<Wait>)>,
    /// Since when it is known that no other process has held the lock; until a record was seen.
    unheld: Option<Mark>,
}

/// What tells two records of one holder apart, as precisely as a Lease stores it.
type Fingerprint = (Option<i64>, i64);

/// How long the holder of a lock that it made writes nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// When a record of it was first seen in the store: whoever held the lock before has not renewed it
    /// since.
    since: Option<Mark>,
    lasts: Duration,
}

impl Wait {
    pub(super) fn new(lasts: Duration) -> Self {
        Self { since: None, lasts }
    }

    /// The wait of a record that was first seen then, unless an earlier one of it was.
    pub(super) fn seen(self, first: Mark) -> Self {
        Self { since: self.since.or(Some(first)), ..self }
    }

    /// What is left of it, by a clock that does not count the machine's sleep; `None` when it is over.
    pub(super) fn left(&self, now: &Mark) -> Option<Duration> {
        let waited = self.since.map_or(Duration::ZERO, |since| since.steady_until(now));
        self.lasts.checked_sub(waited).filter(|left| !left.is_zero())
    }
}

fn fingerprint(record: &LeaderElectionRecord) -> Fingerprint {
    let renewed = record.renewed.map(Timestamp::as_microsecond);
    (renewed, i64::from(record.transitions))
}

impl Written {
    /// More writes of unknown fate in a row are not remembered.
    const KEPT: usize = 16;

    pub(super) fn add(&self, record: &LeaderElectionRecord, wait: Option<Wait>) {
        let kept = &mut self.0.lock().kept;
        if kept.len() == Self::KEPT {
            kept.pop_front();
        }
        kept.push_back((fingerprint(record), wait));
    }

    pub(super) fn contains(&self, record: &LeaderElectionRecord) -> bool {
        let sought = fingerprint(record);
        self.0.lock().kept.iter().any(|(print, _)| *print == sought)
    }

    /// The wait that a record of ours brings; `None` when its holder may write at once.
    pub(super) fn wait(&self, record: &LeaderElectionRecord) -> Option<Wait> {
        let sought = fingerprint(record);
        self.0.lock().kept.iter().find_map(|(print, wait)| wait.filter(|_| *print == sought))
    }

    /// Replaces the wait of a record of ours.
    pub(super) fn set_wait(&self, record: &LeaderElectionRecord, wait: Option<Wait>) {
        let sought = fingerprint(record);
        let kept = &mut self.0.lock().kept;
        kept.iter_mut().filter(|(print, _)| *print == sought).for_each(|kept| kept.1 = wait);
    }

    /// No other process has held the lock at `at`.
    pub(super) fn is_unheld_since(&self, at: Mark) {
        self.0.lock().unheld = Some(at);
    }

    /// A record was seen: if it is ours, can nobody have held the lock before? Others that made it since
    /// then are still waiting for `duration`. True for the first record at most.
    pub(super) fn take_unheld(&self, duration: Duration, now: &Mark) -> bool {
        let since = self.0.lock().unheld.take();
        since.is_some_and(|since| since.longest_until(now) < duration)
    }
}
