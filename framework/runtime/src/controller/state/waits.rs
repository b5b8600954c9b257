//! Objects that wait: reason, text and time of each, for the delay of the next check, for reports,
//! and for debug dumps.
//!
//! An entry is kept from the first reconcile that waits to the next that does not. Texts are kept
//! of as many objects as a debug dump shows; for the others a hash, so that a repeated text is
//! known.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use foldhash::fast::FixedState;
use jiff::Timestamp;
use parking_lot::Mutex;

use crate::controller::outcome::action::Wait;
use windlass_core::resource::ObjectKey;
use windlass_core::text::shorten;

/// Most objects whose text is kept.
const TEXTS: usize = 256;
/// Most bytes kept of a text.
const TEXT_LIMIT: usize = 256;
/// Delay of the first check.
const FIRST_CHECK: Duration = Duration::from_secs(1);
/// Longest delay between two checks. A change that a watch shows leads to an earlier check.
const LONGEST_CHECK: Duration = Duration::from_secs(60);

/// An object that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The object.
    pub(crate) key: ObjectKey,
    /// Reason in a word.
    pub(crate) reason: Cow<'static, str>,
    /// Text for people, cut at 256 bytes; `None` while very many other objects wait.
    pub(crate) text: Option<String>,
    /// Time of the first reconcile in a row that waited for this reason.
    pub(crate) since: Timestamp,
}

/// A wait in relation to earlier waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitRecord {
    /// Whether the wait is the first in a row, or reason, text or stall differ from the wait
    /// before.
    pub(crate) is_new: bool,
    /// Whether the object did not wait before.
    pub(crate) is_first: bool,
    /// Longest delay until the next check.
    pub(crate) bound: Duration,
}

/// The waits of an object in a row.
#[derive(Debug)]
struct WaitStreak {
    reason: Cow<'static, str>,
    text: Option<String>,
    /// Hash of the text, and of whether the wait is stalled.
    hash: u64,
    since: Timestamp,
    /// Checks in a row with this reason and hash.
    checks: u32,
    /// Whether a reconcile has failed since, and the failure was reported.
    has_failed: bool,
}

/// The waits of a controller's objects.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    inner: Mutex<Inner>,
    /// Number of waiting objects; while it is 0, a reconcile takes no lock.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct Inner {
    streaks: BTreeMap<ObjectKey, WaitStreak>,
    /// Number of kept texts.
    texts: usize,
}

impl Waits {
    /// Records a reconcile of `key` that waits.
    pub(crate) fn note(&self, key: &ObjectKey, wait: &Wait, now: Timestamp) -> WaitRecord {
        let mut inner = self.inner.lock();
        let hash = FixedState::with_seed(0).hash_one((&wait.text, wait.is_stalled));
        let before = inner.remove(key);
        let same_reason = before.as_ref().filter(|before| before.reason == wait.reason);
        let same_text = same_reason.filter(|before| before.hash == hash);
        let checks = same_text.map_or(0, |before| before.checks.saturating_add(1));
        let since = same_reason.map_or(now, |before| before.since);
        let is_new = same_text.is_none_or(|before| before.has_failed);
        let is_first = before.is_none();
        let text = (inner.texts < TEXTS).then(|| shorten(wait.text.clone(), TEXT_LIMIT));
        inner.texts += usize::from(text.is_some());
        let reason = wait.reason.clone();
        let streak = WaitStreak { reason, text, hash, since, checks, has_failed: false };
        inner.streaks.insert(key.clone(), streak);
        // Released to `ended`, which another worker may call for another key.
        self.waiting.store(inner.streaks.len(), Ordering::Release);
        WaitRecord { is_new, is_first, bound: bound(checks) }
    }

    /// Records a failed reconcile of `key`. A failure does not end the wait: an object that fails
    /// and waits in turn would be checked at the shortest delay for ever.
    pub(crate) fn failed(&self, key: &ObjectKey) {
        // The work queue orders this and the `note` of the same key, as in `ended`.
        if self.waiting.load(Ordering::Acquire) > 0
            && let Some(streak) = self.inner.lock().streaks.get_mut(key)
        {
            streak.has_failed = true;
        }
    }

    /// Records that `key` does not wait; returns whether the key did before.
    pub(crate) fn ended(&self, key: &ObjectKey) -> bool {
        // A single worker at a time holds a key, and the queue orders the reconciles of a key.
        if self.waiting.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut inner = self.inner.lock();
        let waited = inner.remove(key).is_some();
        self.waiting.store(inner.streaks.len(), Ordering::Release);
        waited
    }

    /// Forgets all objects; returns their number.
    pub(crate) fn clear(&self) -> usize {
        let mut inner = self.inner.lock();
        let left = std::mem::take(&mut *inner).streaks.len();
        self.waiting.store(0, Ordering::Release);
        left
    }

    /// Returns at most `limit` waiting objects, in the order of their keys.
    pub(crate) fn snapshot(&self, limit: usize) -> Vec<Waiting> {
        let inner = self.inner.lock();
        let waiting = inner.streaks.iter().take(limit).map(|(key, streak)| Waiting {
            key: key.clone(),
            reason: streak.reason.clone(),
            text: streak.text.clone(),
            since: streak.since,
        });
        waiting.collect()
    }
}

impl Inner {
    fn remove(&mut self, key: &ObjectKey) -> Option<WaitStreak> {
        let streak = self.streaks.remove(key)?;
        self.texts -= usize::from(streak.text.is_some());
        Some(streak)
    }
}

/// The delay of a check after that many without a difference: doubled each time, up to the longest.
fn bound(checks: u32) -> Duration {
    FIRST_CHECK.saturating_mul(2_u32.saturating_pow(checks)).min(LONGEST_CHECK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(Some("shop"), name)
    }

    fn wait(reason: &'static str, text: &str) -> Wait {
        Wait::new(reason, text.to_owned())
    }

    #[test]
    fn checks_become_rarer_until_reason_or_text_changes() {
        let (waits, at) = (Waits::default(), Timestamp::UNIX_EPOCH);
        let note = |reason, text| {
            let record = waits.note(&key("home"), &wait(reason, text), at);
            (record.is_new, record.bound.as_secs())
        };
        assert_eq!(note("Rollout", "1 of 3"), (true, 1));
        let bounds: Vec<u64> = (0..8).map(|_| note("Rollout", "1 of 3").1).collect();
        assert_eq!(bounds, [2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(note("Rollout", "2 of 3"), (true, 1));
        assert_eq!(note("Rollout", "2 of 3"), (false, 2));
        assert_eq!(note("Certificate", "2 of 3"), (true, 1));
    }

    #[test]
    fn a_failure_in_between_is_reported_over_and_does_not_bring_the_next_check_forward() {
        let (waits, at) = (Waits::default(), Timestamp::UNIX_EPOCH);
        let note = || waits.note(&key("home"), &wait("Rollout", "1 of 3"), at);
        assert_eq!((note().is_new, note().is_new), (true, false));
        waits.failed(&key("home"));
        waits.failed(&key("other"));
        let record = note();
        assert_eq!((record.is_new, record.bound.as_secs()), (true, 4));
        assert!(!note().is_new);
    }

    #[test]
    fn the_time_of_a_wait_is_that_of_its_first_reconcile() {
        let waits = Waits::default();
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        assert!(waits.note(&key("home"), &wait("Rollout", "1 of 3"), at(5)).is_first);
        assert!(!waits.note(&key("home"), &wait("Rollout", "2 of 3"), at(9)).is_first);
        let found = waits.snapshot(10).remove(0);
        assert_eq!((found.since, found.text.as_deref()), (at(5), Some("2 of 3")));
        assert!(waits.ended(&key("home")));
        assert!(!waits.ended(&key("home")));
        assert_eq!(waits.snapshot(10), []);
    }

    #[test]
    fn of_very_many_waiting_objects_few_texts_are_kept() {
        let (waits, at) = (Waits::default(), Timestamp::UNIX_EPOCH);
        for n in 0..3 * TEXTS {
            waits.note(&key(&n.to_string()), &wait("Rollout", &"x".repeat(5000)), at);
        }
        let kept = |waits: &Waits| waits.snapshot(usize::MAX).into_iter().filter_map(|it| it.text);
        assert_eq!(kept(&waits).count(), TEXTS);
        assert!(kept(&waits).all(|text| text.len() <= TEXT_LIMIT));
        (0..3 * TEXTS).for_each(|n| assert!(waits.ended(&key(&n.to_string()))));
        assert_eq!(waits.inner.lock().texts, 0);
    }
}
