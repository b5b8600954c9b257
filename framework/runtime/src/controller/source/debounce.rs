//! Debouncing: an object's key waits until no change came for a while, so that a burst of changes
//! leads to one reconcile.
//!
//! The first change of a burst adds the key, the others only extend the burst: a burst costs the
//! queue two operations, however long. The number of bursts is bounded by the keys in the queue.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use windlass_core::resource::ObjectKey;
use windlass_core::sync::Mutex;

/// A burst of changes of a key.
#[derive(Clone, Copy, Debug)]
struct Burst {
    first: Instant,
    last: Instant,
    reasons: u64,
}

/// Decision about a taken key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DebounceDecision {
    /// The key can be reconciled now, for these reasons.
    Ready(u64),
    /// The burst goes on: the key is to be checked again after this time.
    Wait(Duration),
}

/// The bursts of a controller.
#[derive(Debug)]
pub(crate) struct Debounce {
    quiet: Duration,
    most: Duration,
    bursts: Mutex<BTreeMap<ObjectKey, Burst>>,
}

impl Debounce {
    /// Creates a debouncer that waits until no change came for `quiet`, at most for `most`.
    pub(crate) fn new(quiet: Duration, most: Duration) -> Self {
        Self { quiet, most: most.max(quiet), bursts: Mutex::default() }
    }

    /// Notes a change; true when the key has to be added to the queue, because the change starts a
    /// burst.
    pub(crate) fn is_first(&self, key: &ObjectKey, reasons: u64, now: Instant) -> bool {
        let mut bursts = self.bursts.lock();
        if let Some(burst) = bursts.get_mut(key) {
            burst.last = now;
            burst.reasons |= reasons;
            return false;
        }
        bursts.insert(key.clone(), Burst { first: now, last: now, reasons });
        true
    }

    /// Decides whether a taken key is reconciled now, for these reasons or more.
    pub(crate) fn check(&self, key: &ObjectKey, reasons: u64, now: Instant) -> DebounceDecision {
        let mut bursts = self.bursts.lock();
        let Some(burst) = bursts.get_mut(key) else { return DebounceDecision::Ready(reasons) };
        burst.reasons |= reasons;
        let idle = self.quiet.saturating_sub(now.saturating_duration_since(burst.last));
        let left = self.most.saturating_sub(now.saturating_duration_since(burst.first));
        match idle.min(left) {
            Duration::ZERO => {
                let reasons = burst.reasons;
                bursts.remove(key);
                DebounceDecision::Ready(reasons)
            }
            wait => DebounceDecision::Wait(wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn key() -> ObjectKey {
        ObjectKey::new(Some("shop"), "home")
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_waits_until_it_was_left_alone() {
        let debounce = Debounce::new(SECOND, 10 * SECOND);
        let start = Instant::now();
        assert!(debounce.is_first(&key(), 1, start));
        assert_eq!(debounce.check(&key(), 1, start), DebounceDecision::Wait(SECOND));
        assert!(!debounce.is_first(&key(), 2, start + SECOND / 2), "the queue has it");
        assert_eq!(debounce.check(&key(), 0, start + SECOND), DebounceDecision::Wait(SECOND / 2));
        assert_eq!(debounce.check(&key(), 4, start + 2 * SECOND), DebounceDecision::Ready(7));
        assert!(debounce.is_first(&key(), 1, start + 2 * SECOND), "a new burst");
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_without_end_does_not_wait_for_ever() {
        let debounce = Debounce::new(SECOND, 3 * SECOND);
        let start = Instant::now();
        for step in 0..30 {
            debounce.is_first(&key(), 1, start + step * SECOND / 10);
        }
        let late = start + 29 * SECOND / 10;
        assert_eq!(debounce.check(&key(), 0, late), DebounceDecision::Wait(SECOND / 10));
        assert_eq!(debounce.check(&key(), 0, start + 3 * SECOND), DebounceDecision::Ready(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_comes_for_another_reason_goes_at_once() {
        let debounce = Debounce::new(SECOND, 3 * SECOND);
        assert_eq!(debounce.check(&key(), 8, Instant::now()), DebounceDecision::Ready(8));
        assert!(debounce.bursts.lock().is_empty());
    }
}
