//! Knowledge of this process about creations: outcomes that could not be recorded on their objects
//! yet, and the times at which records were seen first. Also what was reported of a resource.
//!
//! While the API server is away, or after lost answers, this process knows more than the object
//! says. A restart loses that knowledge: the object then goes the way of every unknown outcome.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::time::Duration;

use foldhash::fast::FixedState;
use parking_lot::Mutex;

use super::record::Stamp;
use windlass_core::clock::ClockReading;

/// Most kept outcomes, most kept times, and most kept reports.
const MOST: usize = 10_000;

/// Outcome of a creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SettledCreation {
    /// It succeeded; the id of the resource.
    Created(String),
    /// Nothing was created: the call was not made, or was refused.
    NotCreated,
}

/// Outcomes by the pending creation. The time is a part of the key: another process may have
/// repeated the token since.
#[derive(Debug, Default)]
pub(super) struct SettledCreations(Mutex<BTreeMap<Stamp, SettledCreation>>);

impl SettledCreations {
    /// Keeps an outcome, and forgets the oldest creation when there are too many.
    pub(super) fn keep(&self, pending: &Stamp, outcome: SettledCreation) {
        let mut outcomes = self.0.lock();
        outcomes.insert(pending.clone(), outcome);
        if outcomes.len() > MOST {
            outcomes.pop_first();
        }
    }

    pub(super) fn get(&self, pending: &Stamp) -> Option<SettledCreation> {
        self.0.lock().get(pending).cloned()
    }

    /// Forgets an outcome that is recorded.
    pub(super) fn forget(&self, pending: &Stamp) {
        self.0.lock().remove(pending);
    }
}

/// Creations whose resource the provider has shown, and for which a deletion was called.
#[derive(Debug, Default)]
pub(super) struct AcceptedDeletions(Mutex<BTreeSet<Stamp>>);

impl AcceptedDeletions {
    /// Keeps the creation, and forgets the oldest one when there are too many.
    pub(super) fn note(&self, created: &Stamp) {
        let mut kept = self.0.lock();
        kept.insert(created.clone());
        if kept.len() > MOST {
            kept.pop_first();
        }
    }

    pub(super) fn has(&self, created: &Stamp) -> bool {
        self.0.lock().contains(created)
    }
}

/// Times, by the clock of this process, at which stamps were written or first seen.
///
/// The time in a stamp comes from the wall clock of its writer, which may be ahead of or behind
/// that of this process.
#[derive(Debug, Default)]
pub(super) struct FirstSeen(Mutex<BTreeMap<Stamp, ClockReading>>);

impl FirstSeen {
    /// Keeps the time of a stamp that this process writes.
    pub(super) fn wrote(&self, stamp: &Stamp, at: ClockReading) {
        self.first_of(stamp, at);
    }

    /// Returns the rest of `limit` since the stamp was seen first; that is now, if it was not seen
    /// before.
    pub(super) fn rest(&self, stamp: &Stamp, limit: Duration, now: ClockReading) -> Duration {
        let first = self.first_of(stamp, now);
        limit.saturating_sub(first.steady_until(&now))
    }

    /// Returns the time at which a stamp was seen first, and forgets the oldest time when there are
    /// too many.
    fn first_of(&self, stamp: &Stamp, now: ClockReading) -> ClockReading {
        let mut times = self.0.lock();
        if let Some(first) = times.get(stamp) {
            return *first;
        }
        if times.len() >= MOST {
            // Not by the time in the stamp: a wrong one would be forgotten again and again, and its
            // limit never end.
            let oldest = times.iter().max_by_key(|(_, first)| first.steady_until(&now));
            let oldest = oldest.map(|(stamp, _)| stamp.clone());
            if let Some(stamp) = oldest {
                times.remove(&stamp);
            }
        }
        times.insert(stamp.clone(), now);
        now
    }
}

/// Subject of a report about a resource; each has a text of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReportSlot {
    /// The resource itself.
    Resource,
    /// A created resource whose place an import has taken.
    Replaced,
    /// A resource that was imported, and is not named any more.
    EndedImport,
    /// The driver that the record names.
    Driver,
}

/// Texts about resources, as they were reported last: a hash of the text, by the uid of the object,
/// the suffix of the resource and the subject.
///
/// Each pass finds the same, which is worth one Event. After a restart it is reported once more.
#[derive(Debug, Default)]
pub(super) struct Reports(Mutex<BTreeMap<(String, String, ReportSlot), u64>>);

impl Reports {
    /// Whether that text was the last one.
    pub(super) fn has(&self, uid: &str, suffix: &str, slot: ReportSlot, text: &str) -> bool {
        let key = (uid.to_owned(), suffix.to_owned(), slot);
        self.0.lock().get(&key) == Some(&FixedState::with_seed(0).hash_one(text))
    }

    /// Keeps the present text, if there is one; returns whether it is another one than before.
    pub(super) fn note(
        &self,
        uid: &str,
        suffix: &str,
        slot: ReportSlot,
        text: Option<&str>,
    ) -> bool {
        let mut kept = self.0.lock();
        if text.is_none() && kept.is_empty() {
            return false;
        }
        let key = (uid.to_owned(), suffix.to_owned(), slot);
        let Some(text) = text else {
            kept.remove(&key);
            return false;
        };
        let hash = FixedState::with_seed(0).hash_one(text);
        let is_new = kept.insert(key, hash) != Some(hash);
        if kept.len() > MOST {
            kept.pop_first();
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use windlass_core::clock::Clock;

    use super::*;

    #[test]
    fn outcomes_are_bounded_and_forgotten() {
        let outcomes = SettledCreations::default();
        let stamp = |n: usize| {
            let time = Timestamp::from_second(n as i64).unwrap();
            Stamp { time, token: "token".to_owned() }
        };
        (0..MOST + 3).for_each(|n| outcomes.keep(&stamp(n), SettledCreation::NotCreated));
        assert_eq!(outcomes.get(&stamp(2)), None, "the oldest ones are forgotten");
        assert_eq!(outcomes.get(&stamp(MOST + 2)), Some(SettledCreation::NotCreated));
        outcomes.keep(&stamp(3), SettledCreation::Created("id".to_owned()));
        assert_eq!(outcomes.get(&stamp(3)), Some(SettledCreation::Created("id".to_owned())));
        outcomes.forget(&stamp(3));
        assert_eq!(outcomes.get(&stamp(3)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_counts_from_the_first_sight_whatever_the_time_in_a_stamp() {
        let clock = Clock::simulated(Timestamp::from_second(1000).unwrap());
        let first_seen = FirstSeen::default();
        let limit = Duration::from_secs(60);
        for seconds in [0, 1000, 5000] {
            let time = Timestamp::from_second(seconds).unwrap();
            let stamp = Stamp { time, token: "token".to_owned() };
            assert_eq!(first_seen.rest(&stamp, limit, clock.reading()), limit, "{seconds}");
            tokio::time::advance(Duration::from_secs(45)).await;
            let rest = first_seen.rest(&stamp, limit, clock.reading());
            assert_eq!(rest, Duration::from_secs(15), "{seconds}");
            tokio::time::advance(Duration::from_secs(20)).await;
            assert_eq!(
                first_seen.rest(&stamp, limit, clock.reading()),
                Duration::ZERO,
                "{seconds}"
            );
        }
    }

    #[test]
    fn a_difference_is_new_once_and_again_after_its_end() {
        let (differences, slot) = (Reports::default(), ReportSlot::Resource);
        let notes = [Some("size 7"), Some("size 7"), Some("size 8"), None, Some("size 8")];
        let found = notes.map(|difference| differences.note("1", "", slot, difference));
        assert_eq!(found, [true, false, true, false, true]);
        let has = |text| differences.has("1", "", slot, text);
        assert!(has("size 8") && !has("size 7"));
        assert!(differences.note("1", "_logs", slot, Some("size 8")), "of another resource");
        let other = ReportSlot::Replaced;
        assert!(differences.note("1", "", other, Some("size 8")), "of another subject");
        for n in 0..MOST + 3 {
            differences.note(&n.to_string(), "", slot, Some("size 8"));
        }
        assert_eq!(differences.0.lock().len(), MOST);
    }

    #[test]
    fn accepted_deletions_are_bounded() {
        let deletions = AcceptedDeletions::default();
        let stamp = |n: usize| {
            let time = Timestamp::from_second(n as i64).unwrap();
            Stamp { time, token: "token".to_owned() }
        };
        (0..MOST + 3).for_each(|n| deletions.note(&stamp(n)));
        assert!(!deletions.has(&stamp(2)) && deletions.has(&stamp(MOST + 2)));
        assert_eq!(deletions.0.lock().len(), MOST);
    }

    #[test]
    fn times_are_bounded() {
        let now = Clock::system().reading();
        let first_seen = FirstSeen::default();
        for n in 0..MOST + 3 {
            let time = Timestamp::from_second(n as i64).unwrap();
            first_seen.wrote(&Stamp { time, token: "token".to_owned() }, now);
        }
        assert_eq!(first_seen.0.lock().len(), MOST);
    }
}
