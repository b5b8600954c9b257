//! Slows down an object whose reconciles wake each other up.
//!
//! A reconcile that writes something new each time (a time stamp, a random name) is woken by its own
//! write, for ever. After 50 reconciles within a minute an object is held to one per second and a
//! warning says why, so that a mistake costs a trickle of requests and not a storm.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::resource::ObjectKey;

const WINDOW: Duration = Duration::from_secs(60);
const FREE: u32 = 50;
const SPACING: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
struct Lately {
    since: Instant,
    count: u32,
    last: Instant,
}

/// How often each object was reconciled lately.
#[derive(Debug, Default)]
pub(super) struct Pace {
    keys: Mutex<BTreeMap<ObjectKey, Lately>>,
}

/// May a reconcile begin?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// Yes.
    Go,
    /// Yes, and it is the first one of this minute that is too many.
    GoAndWarn,
    /// Not before that time has passed.
    Wait(Duration),
}

impl Pace {
    /// Asks for leave; a reconcile that gets it counts.
    pub(super) fn ask(&self, key: &ObjectKey, now: Instant) -> Leave {
        let mut keys = self.keys.lock();
        let fresh = Lately { since: now, count: 0, last: now };
        let lately = keys.entry(key.clone()).or_insert(fresh);
        if now.saturating_duration_since(lately.since) >= WINDOW {
            *lately = fresh;
        }
        let rested = now.saturating_duration_since(lately.last);
        if lately.count > FREE && rested < SPACING {
            return Leave::Wait(SPACING.saturating_sub(rested));
        }
        lately.count += 1;
        lately.last = now;
        if lately.count == FREE + 1 { Leave::GoAndWarn } else { Leave::Go }
    }

    /// The object is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.keys.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_hot_key_is_held_to_one_a_second_and_warned_of_once() {
        let (pace, key) = (Pace::default(), ObjectKey::new(None, "hot"));
        let start = Instant::now();
        let mut now = start;
        let (mut went, mut warned) = (0, 0);
        while now < start + Duration::from_secs(59) {
            match pace.ask(&key, now) {
                Leave::Go => went += 1,
                Leave::GoAndWarn => {
                    went += 1;
                    warned += 1;
                }
                Leave::Wait(wait) => now += wait,
            }
        }
        assert_eq!(warned, 1);
        assert!((100..=111).contains(&went), "{went}");
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_quiet_minute_a_key_is_free_again() {
        let (pace, key) = (Pace::default(), ObjectKey::new(None, "hot"));
        let now = Instant::now();
        while !matches!(pace.ask(&key, now), Leave::Wait(_)) {}
        assert_eq!(pace.ask(&key, now + WINDOW), Leave::Go);
        assert_eq!(pace.ask(&key, now + WINDOW), Leave::Go);
    }
}
