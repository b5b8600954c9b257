//! Slows down an object whose reconciles wake each other up.
//!
//! A reconcile that writes something new each time (a time stamp, a random name) is woken by its own
//! write, for ever. After 50 reconciles within a minute an object is held to one per second and a
//! warning says why, so that a mistake costs a trickle of requests and not a storm.
//!
//! Most objects are reconciled a few times a minute. They are counted in a table of small counters
//! that several objects may share; an object gets an entry of its own when its counter is half full,
//! so that a million quiet objects cost nothing.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::resource::ObjectKey;

const WINDOW: Duration = Duration::from_secs(60);
const FREE: u32 = 50;
const SPACING: Duration = Duration::from_secs(1);
/// Counters; each takes a byte. A power of two.
const CELLS: usize = 1 << 15;
/// So far a counter goes before each of its objects is counted alone.
const SHARED: u8 = 25;

#[derive(Clone, Copy, Debug)]
struct Lately {
    since: Instant,
    count: u32,
    last: Instant,
}

/// How often each object was reconciled lately.
pub(super) struct Pace {
    hasher: FixedState,
    cells: Box<[AtomicU8]>,
    start: OnceLock<Instant>,
    /// Number of the window that the counters are about.
    window: AtomicU64,
    /// Reconciles in this window.
    total: AtomicU64,
    /// The objects that are counted alone.
    keys: Mutex<HashMap<ObjectKey, Lately, FixedState>>,
}

impl Default for Pace {
    fn default() -> Self {
        // Never iterated but to remove, so its order shows nowhere.
        let hasher = FixedState::with_seed(0);
        Self {
            hasher: hasher.clone(),
            cells: (0..CELLS).map(|_| AtomicU8::new(0)).collect(),
            start: OnceLock::new(),
            window: AtomicU64::new(0),
            total: AtomicU64::new(0),
            keys: Mutex::new(HashMap::with_hasher(hasher)),
        }
    }
}

impl std::fmt::Debug for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pace").field("keys", &self.keys.lock().len()).finish_non_exhaustive()
    }
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
        self.turn_window(now);
        let total = self.total.fetch_add(1, Ordering::Relaxed);
        let cell = &self.cells[self.hasher.hash_one(key) as usize % CELLS];
        let count = cell.load(Ordering::Relaxed);
        if count < SHARED {
            // Two workers at once may count one; that is as good as none.
            cell.store(count + 1, Ordering::Relaxed);
            return Leave::Go;
        }
        // When counters are full because there are so many objects they say nothing about this one.
        let is_flooded = total > 4 * CELLS as u64;
        let before = if is_flooded { 0 } else { u32::from(SHARED) };
        self.ask_alone(key, now, before)
    }

    /// The counters are about the last minute only.
    fn turn_window(&self, now: Instant) {
        let start = *self.start.get_or_init(|| now);
        let window = now.saturating_duration_since(start).as_secs() / WINDOW.as_secs();
        let known = self.window.load(Ordering::Relaxed);
        if window <= known {
            return;
        }
        let turn =
            self.window.compare_exchange(known, window, Ordering::Relaxed, Ordering::Relaxed);
        if turn.is_ok() {
            self.cells.iter().for_each(|cell| cell.store(0, Ordering::Relaxed));
            self.total.store(0, Ordering::Relaxed);
            let mut keys = self.keys.lock();
            keys.retain(|_, lately| now.saturating_duration_since(lately.last) < WINDOW);
            keys.shrink_to_fit();
        }
    }

    fn ask_alone(&self, key: &ObjectKey, now: Instant, before: u32) -> Leave {
        let mut keys = self.keys.lock();
        let fresh = Lately { since: now, count: before, last: now };
        let lately = match keys.get_mut(key) {
            Some(lately) => lately,
            None => keys.entry(key.clone()).or_insert(fresh),
        };
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

    #[tokio::test(start_paused = true)]
    async fn objects_that_are_reconciled_seldom_cost_no_memory() {
        let pace = Pace::default();
        let now = Instant::now();
        for name in 0..100_000 {
            let key = ObjectKey::new(Some("shop"), &name.to_string());
            assert_eq!(pace.ask(&key, now), Leave::Go);
        }
        assert_eq!(pace.keys.lock().len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn among_very_many_objects_each_still_has_its_fifty() {
        let pace = Pace::default();
        let now = Instant::now();
        for name in 0..2_000_000_u32 {
            pace.ask(&ObjectKey::new(None, &name.to_string()), now);
        }
        let key = ObjectKey::new(None, "one");
        for _ in 0..=FREE / 2 {
            assert_eq!(pace.ask(&key, now), Leave::Go);
        }
        let went = (0..2 * FREE).filter(|_| pace.ask(&key, now) == Leave::Go).count();
        assert!(went >= FREE as usize / 2 - 1, "{went}");
        pace.ask(&key, now + WINDOW);
        assert!(pace.keys.lock().len() <= 1, "those of the minute before are forgotten");
    }
}
