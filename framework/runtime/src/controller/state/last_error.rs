//! The last error of each object, for debug dumps and for detecting repeated failures.
//!
//! Bounded: of very many failing objects only the texts of the newest are kept. The data that
//! decides about the next failure is a few bytes, kept for each object from the first failure to
//! the next success.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use foldhash::fast::FixedState;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::spec_version::SpecVersion;
use windlass_core::resource::ObjectKey;
use windlass_core::text::shorten;

/// Most objects whose last error is kept.
const LIMIT: usize = 256;
/// Most bytes kept of an error's text.
const TEXT_LIMIT: usize = 1024;

/// The last error of an object in a controller. Kept until the object is gone, or until newer
/// errors of other objects take its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastError {
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// Text of the error with its causes, cut at 1 KiB.
    pub text: String,
    /// Wall time of the last occurrence.
    pub at: Timestamp,
    /// Failures in a row, this one included; the backoff grows with them.
    pub count: u64,
    /// Whether the object is not retried any more, or only slowly.
    pub gave_up: bool,
    /// Whether a later reconcile of the object succeeded.
    pub is_over: bool,
}

/// A failure in relation to the failures before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailureRecord {
    /// Failures in a row.
    pub(crate) count: u64,
    /// Whether this failure is the first in a row, or the text differs from the text before.
    pub(crate) is_new: bool,
    /// Whether the object had been given up before.
    pub(crate) had_given_up: bool,
    /// Whether the object had been given up, and nothing but time passed since.
    pub(crate) is_given_up: bool,
    /// Time of the retry that the failure before promised.
    pub(crate) promised: Option<Instant>,
}

/// A kept error and the place in the order of age.
#[derive(Debug)]
struct AgedError {
    age: u64,
    error: LastError,
}

/// The failures of an object in a row.
#[derive(Debug)]
struct FailureStreak {
    count: u64,
    /// Hash of the text.
    text: u64,
    gave_up: bool,
    /// The object changed after the worker gave up, and is tried again.
    is_resumed: bool,
    /// Version of the spec when the worker gave up.
    given_up_at: Option<SpecVersion>,
    promised: Option<Instant>,
}

/// Failures in a row of all failing objects, and the texts of the newest.
#[derive(Debug, Default)]
struct Inner {
    /// The failures in a row of every failing object.
    streaks: BTreeMap<ObjectKey, FailureStreak>,
    errors: BTreeMap<ObjectKey, AgedError>,
    /// The keys by age.
    ages: BTreeMap<u64, ObjectKey>,
    next: u64,
}

/// The last errors of a controller's objects.
#[derive(Debug, Default)]
pub(crate) struct LastErrors {
    inner: Mutex<Inner>,
    /// Keeps the end of an object from taking the lock before the first failure.
    is_used: AtomicBool,
    /// Number of failing objects; while it is 0, a reconcile takes no lock.
    failing: AtomicUsize,
}

impl LastErrors {
    /// Records a failed reconcile of `key`.
    pub(crate) fn note(&self, key: &ObjectKey, text: String, at: Timestamp) -> FailureRecord {
        // Relaxed, as for `forget`: a key's worker calls both, and the queue orders them.
        self.is_used.store(true, Ordering::Relaxed);
        let text = shorten(text, TEXT_LIMIT);
        let mut inner = self.inner.lock();
        inner.remove(key);
        let hash = FixedState::with_seed(0).hash_one(&text);
        let before = inner.streaks.get(key);
        let record = FailureRecord {
            count: before.map_or(0, |before| before.count) + 1,
            is_new: before.is_none_or(|before| before.text != hash),
            // An object that was taken up again and fails with another text is reported anew.
            had_given_up: before.is_some_and(|before| {
                before.gave_up && !(before.is_resumed && before.text != hash)
            }),
            is_given_up: before.is_some_and(|before| before.gave_up && !before.is_resumed),
            promised: before.and_then(|before| before.promised),
        };
        let (key, gave_up) = (key.clone(), record.had_given_up);
        let given_up_at = before.and_then(|before| before.given_up_at);
        let is_resumed = before.is_some_and(|before| before.is_resumed);
        let (count, text_hash, promised) = (record.count, hash, None);
        let streak =
            FailureStreak { count, text: text_hash, gave_up, is_resumed, given_up_at, promised };
        inner.streaks.insert(key.clone(), streak);
        // Release, under the lock: pairs with the load of the key's next attempt, which the queue
        // orders after this attempt; see `given_up`.
        self.failing.store(inner.streaks.len(), Ordering::Release);
        inner.insert(LastError { key, text, at, count, gave_up, is_over: false });
        record
    }

    /// Returns the version of the spec at which the object was given up, if there was no reconcile
    /// since.
    pub(crate) fn given_up(&self, key: &ObjectKey) -> Option<Option<SpecVersion>> {
        // Counted under the lock, and read without the lock: failures of this very key are ordered
        // by the queue, which hands it to a single worker at a time.
        if self.failing.load(Ordering::Acquire) == 0 {
            return None;
        }
        let inner = self.inner.lock();
        inner.streaks.get(key).filter(|streak| streak.gave_up).map(|streak| streak.given_up_at)
    }

    /// Forgets the failures of an object whose spec changed: they are counted and reported anew.
    pub(crate) fn forget_failures(&self, key: &ObjectKey) {
        let mut inner = self.inner.lock();
        inner.streaks.remove(key);
        // Release under the lock, as in `note`.
        self.failing.store(inner.streaks.len(), Ordering::Release);
    }

    /// Restarts the retries of an object that was given up. If the object then fails with another
    /// text and is given up again, a new report follows.
    pub(crate) fn resume(&self, key: &ObjectKey) {
        if let Some(streak) = self.inner.lock().streaks.get_mut(key) {
            streak.is_resumed = true;
        }
    }

    /// Marks the object as not retried, or only slowly, while the spec stays the same. After a
    /// terminal failure, another kind of failure still has retries.
    pub(crate) fn gave_up(
        &self,
        key: &ObjectKey,
        spec_version: Option<SpecVersion>,
        is_for_good: bool,
    ) {
        let mut inner = self.inner.lock();
        if let Some(streak) = inner.streaks.get_mut(key) {
            (streak.gave_up, streak.is_resumed, streak.given_up_at) =
                (true, is_for_good, spec_version);
        }
        if let Some(entry) = inner.errors.get_mut(key) {
            entry.error.gave_up = true;
        }
    }

    /// Notes the time of the object's next retry by the backoff.
    pub(crate) fn promise(&self, key: &ObjectKey, retry: Instant) {
        if let Some(streak) = self.inner.lock().streaks.get_mut(key) {
            streak.promised = Some(retry);
        }
    }

    /// Records a successful reconcile of `key`.
    pub(crate) fn succeeded(&self, key: &ObjectKey) {
        // As in `given_up`: a zero that is read without the lock may miss failures of other keys
        // only.
        if self.failing.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut inner = self.inner.lock();
        inner.streaks.remove(key);
        self.failing.store(inner.streaks.len(), Ordering::Release);
        if let Some(entry) = inner.errors.get_mut(key) {
            (entry.error.is_over, entry.error.gave_up) = (true, false);
        }
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        // Relaxed: the flag is set by the worker of this key, or is set for another key and does
        // not matter.
        if self.is_used.load(Ordering::Relaxed) {
            let mut inner = self.inner.lock();
            inner.streaks.remove(key);
            self.failing.store(inner.streaks.len(), Ordering::Release);
            inner.remove(key);
        }
    }

    /// Returns the known errors, the newest first.
    pub(crate) fn snapshot(&self) -> Vec<LastError> {
        let inner = self.inner.lock();
        let newest = inner.ages.values().rev();
        newest.filter_map(|key| Some(inner.errors.get(key)?.error.clone())).collect()
    }
}

impl Inner {
    fn remove(&mut self, key: &ObjectKey) -> Option<AgedError> {
        let entry = self.errors.remove(key)?;
        self.ages.remove(&entry.age);
        Some(entry)
    }

    /// Keeps an error as the newest, and drops the oldest beyond the limit.
    fn insert(&mut self, error: LastError) {
        self.next += 1;
        self.ages.insert(self.next, error.key.clone());
        let entry = AgedError { age: self.next, error };
        self.errors.insert(entry.error.key.clone(), entry);
        if self.errors.len() > LIMIT
            && let Some((_, oldest)) = self.ages.pop_first()
        {
            self.errors.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(Some("shop"), name)
    }

    #[test]
    fn a_failure_is_new_if_it_is_the_first_or_has_another_text() {
        let (errors, at) = (LastErrors::default(), Timestamp::UNIX_EPOCH);
        let note = |text: &str| {
            let record = errors.note(&key("home"), text.into(), at);
            (record.is_new, record.count)
        };
        assert_eq!(note("away"), (true, 1));
        assert_eq!(note("away"), (false, 2));
        assert_eq!(note("broken"), (true, 3));
        errors.succeeded(&key("home"));
        assert!(errors.snapshot()[0].is_over);
        assert!(errors.note(&key("home"), "broken".into(), at).is_new);
    }

    #[test]
    fn a_repeated_failure_is_not_new_however_many_others_fail() {
        let (errors, at) = (LastErrors::default(), Timestamp::UNIX_EPOCH);
        let fail = || -> Vec<FailureRecord> {
            let failing = (0..3 * LIMIT).map(|n| key(&n.to_string()));
            failing.map(|key| errors.note(&key, "away".into(), at)).collect()
        };
        assert!(fail().iter().all(|record| record.is_new));
        errors.gave_up(&key("0"), None, false);
        let again = fail();
        assert!(again.iter().all(|record| !record.is_new && record.count == 2));
        assert!(again[0].had_given_up);
        (0..3 * LIMIT).for_each(|n| errors.succeeded(&key(&n.to_string())));
        assert!(errors.inner.lock().streaks.is_empty(), "nothing is kept of what works");
    }

    #[test]
    fn the_newest_of_very_many_are_kept() {
        let (errors, at) = (LastErrors::default(), Timestamp::UNIX_EPOCH);
        for n in 0..3 * LIMIT {
            errors.note(&key(&n.to_string()), "away".into(), at);
        }
        errors.note(&key("600"), "x".repeat(5000), at);
        let all = errors.snapshot();
        assert_eq!((all.len(), all[0].key.name()), (LIMIT, "600"));
        assert!(all[0].text.len() <= TEXT_LIMIT);
        errors.forget(&key("600"));
        assert_eq!(errors.snapshot().len(), LIMIT - 1);
        assert_eq!(errors.inner.lock().ages.len(), LIMIT - 1);
    }
}
