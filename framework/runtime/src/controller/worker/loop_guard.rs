//! Guard against reconcile loops: slows down an object whose reconciles cause each other.
//!
//! A reconcile that writes something new each time (a time stamp, a random name) causes itself
//! again by that write, for ever. After 50 reconciles within a minute **without a change of the
//! spec** an object is limited to a reconcile per second and a warning names the reasons, so that a
//! mistake costs a request per second and not a storm. The limit is lifted once the spec changes,
//! or when the reconciles stayed below that rate for a minute. These numbers belong to the
//! [`LoopGuard`]; a configured rate limit per object is checked first.
//!
//! Most objects are reconciled a few times a minute. They are counted in a table of small counters
//! that several objects may share; an object gets a separate entry when that counter is half full,
//! so that a million quiet objects cost nothing. Only from there on is the object's spec read.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::limits::{LoopGuard, Rate, Rates};
use crate::controller::state::SpecVersion;
use windlass_core::resource::ObjectKey;

/// Number of shared counters, of a byte each. A power of two.
const COUNTERS: usize = 1 << 15;
/// An object out of this many is counted into `total`, with this weight: if each object were
/// counted, all workers would contend for that counter.
const SAMPLE: u64 = 16;

/// Recent reconciles of one object with its own counter.
#[derive(Clone, Copy, Debug)]
struct RecentRuns {
    since: Instant,
    count: u32,
    last: Instant,
    /// Version of the spec; `None` for an object without a spec.
    spec_version: Option<SpecVersion>,
    /// Time of the last deferred attempt while the object is slowed down, or of the first attempt
    /// beyond the limit.
    throttled_at: Option<Instant>,
    /// All reasons of the reconciles.
    reasons: u64,
    /// Reasons of attempts that were deferred.
    deferred_reasons: u64,
}

impl RecentRuns {
    fn new(now: Instant, count: u32, spec_version: Option<SpecVersion>) -> Self {
        Self {
            since: now,
            count,
            last: now,
            spec_version,
            throttled_at: None,
            reasons: 0,
            deferred_reasons: 0,
        }
    }

    /// Whether the counted reconciles are too old, or belong to another spec.
    fn is_over(&self, now: Instant, spec_version: Option<SpecVersion>, window: Duration) -> bool {
        let counted_since = self.throttled_at.unwrap_or(self.since);
        self.spec_version != spec_version || now.saturating_duration_since(counted_since) >= window
    }
}

/// An object that is reconciled endlessly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HotKey {
    pub(crate) key: ObjectKey,
    /// Reconciles without a change of the spec.
    pub(crate) count: u32,
    pub(crate) reasons: u64,
}

/// Recent reconciles of each object.
pub(crate) struct LoopGuardState {
    guard: LoopGuard,
    rates: Option<Rates>,
    hasher: FixedState,
    counters: Box<[AtomicU8]>,
    start: OnceLock<Instant>,
    /// Number of the time window that the counters belong to.
    window: AtomicU64,
    /// Approximate number of reconciles in this window: an object out of [`SAMPLE`] is counted,
    /// with that weight.
    total: AtomicU64,
    /// Objects that have a counter of their own.
    keys: Mutex<HashMap<ObjectKey, RecentRuns, FixedState>>,
    /// Number of these objects that are slowed down.
    throttled: AtomicUsize,
}

impl Default for LoopGuardState {
    fn default() -> Self {
        Self::new(LoopGuard::default(), None)
    }
}

impl LoopGuardState {
    pub(crate) fn new(guard: LoopGuard, rate: Option<Rate>) -> Self {
        // Iterated only for removing and before sorting, so the map's order shows nowhere.
        let hasher = FixedState::with_seed(0);
        Self {
            guard,
            rates: rate.map(Rates::new),
            hasher: hasher.clone(),
            counters: (0..COUNTERS).map(|_| AtomicU8::new(0)).collect(),
            start: OnceLock::new(),
            window: AtomicU64::new(0),
            total: AtomicU64::new(0),
            keys: Mutex::new(HashMap::with_hasher(hasher)),
            throttled: AtomicUsize::new(0),
        }
    }
}

impl std::fmt::Debug for LoopGuardState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopGuardState")
            .field("keys", &self.keys.lock().len())
            .finish_non_exhaustive()
    }
}

/// Decision about the start of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThrottleDecision {
    /// The reconcile may begin.
    Go,
    /// The reconcile may begin, and is the first beyond the limit.
    GoAndWarn,
    /// The reconcile may begin after this time.
    Wait(Duration),
}

impl LoopGuardState {
    /// Decides whether a reconcile may begin, and counts an admitted reconcile. `spec_version`
    /// returns the version of the object's spec, if needed; `reasons` gains the reasons of attempts
    /// that were deferred. Reconciles by timers and resyncs alone are no loop.
    pub(crate) fn admit(
        &self,
        key: &ObjectKey,
        now: Instant,
        (reasons, is_timed): (&mut u64, bool),
        spec_version: impl FnOnce() -> Option<SpecVersion>,
    ) -> ThrottleDecision {
        let Some(rates) = &self.rates else {
            return if is_timed {
                ThrottleDecision::Go
            } else {
                self.decide_by_guard(key, now, reasons, spec_version)
            };
        };
        if let Some(wait) = rates.wait(key, now) {
            // A deleted object has no spec: the reconcile only forgets the key, and need not wait.
            return if spec_version().is_some() {
                ThrottleDecision::Wait(wait)
            } else {
                ThrottleDecision::Go
            };
        }
        let decision = if is_timed {
            ThrottleDecision::Go
        } else {
            self.decide_by_guard(key, now, reasons, spec_version)
        };
        if !matches!(decision, ThrottleDecision::Wait(_)) {
            rates.record(key, now);
        }
        decision
    }

    pub(crate) fn guard(&self) -> LoopGuard {
        self.guard
    }

    /// Value of a shared counter from which on the objects get counters of their own.
    fn shared_limit(&self) -> u8 {
        u8::try_from(self.guard.burst / 2).unwrap_or(u8::MAX)
    }

    /// Decides by the loop guard alone.
    fn decide_by_guard(
        &self,
        key: &ObjectKey,
        now: Instant,
        reasons: &mut u64,
        spec_version: impl FnOnce() -> Option<SpecVersion>,
    ) -> ThrottleDecision {
        if !self.guard.is_on {
            return ThrottleDecision::Go;
        }
        self.roll_window(now);
        let hash = self.hasher.hash_one(key);
        // Relaxed: an estimate that guards no other data; a sum that is read late only delays the
        // verdict of a flood.
        if (hash >> 32).is_multiple_of(SAMPLE) {
            self.total.fetch_add(SAMPLE, Ordering::Relaxed);
        }
        let counter = &self.counters[hash as usize % COUNTERS];
        let count = counter.load(Ordering::Relaxed);
        if count < self.shared_limit() && !self.is_throttled(key) {
            // Two workers at once may count one reconcile: a count that is off by one is harmless.
            counter.store(count + 1, Ordering::Relaxed);
            return ThrottleDecision::Go;
        }
        // With very many objects the shared counters are full, and prove nothing about this object.
        let is_flooded = self.total.load(Ordering::Relaxed) > 4 * COUNTERS as u64;
        let before = if is_flooded { 0 } else { u32::from(self.shared_limit()) };
        let spec_version = spec_version();
        self.decide_alone(key, reasons, RecentRuns::new(now, before, spec_version))
    }

    /// Resets the counters when a new window has begun.
    fn roll_window(&self, now: Instant) {
        let start = *self.start.get_or_init(|| now);
        let gone = now.saturating_duration_since(start).as_nanos();
        let window = u64::try_from(gone / self.guard.window.as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: a stale window costs an exchange that fails.
        let known = self.window.load(Ordering::Relaxed);
        if window <= known {
            return;
        }
        // Relaxed: the counters are approximate; the exchange only elects a single worker for the
        // reset.
        let exchange =
            self.window.compare_exchange(known, window, Ordering::Relaxed, Ordering::Relaxed);
        if exchange.is_ok() {
            self.counters.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
            self.total.store(0, Ordering::Relaxed);
            let mut keys = self.keys.lock();
            keys.retain(|_, recent| now.saturating_duration_since(recent.last) < self.guard.window);
            keys.shrink_to_fit();
            self.count_throttled(&keys);
        }
    }

    /// Whether the object is slowed down.
    fn is_throttled(&self, key: &ObjectKey) -> bool {
        let is_throttled = |recent: &RecentRuns| recent.throttled_at.is_some();
        // The atomic keeps workers off the lock while no object is slowed down. Relaxed: the
        // counter of a key is changed by the worker that holds this key, and the queue orders the
        // attempts of a key.
        self.throttled.load(Ordering::Relaxed) > 0
            && self.keys.lock().get(key).is_some_and(is_throttled)
    }

    /// Recounts the objects that are slowed down.
    fn count_throttled(&self, keys: &HashMap<ObjectKey, RecentRuns, FixedState>) {
        let throttled = keys.values().filter(|recent| recent.throttled_at.is_some()).count();
        // The caller holds the lock of `keys`, as all callers that change the number do.
        self.throttled.store(throttled, Ordering::Relaxed);
    }

    /// Decides for an object with its own counter; `new_entry` is inserted if the object has no
    /// entry yet.
    fn decide_alone(
        &self,
        key: &ObjectKey,
        reasons: &mut u64,
        new_entry: RecentRuns,
    ) -> ThrottleDecision {
        let (now, guard) = (new_entry.last, self.guard);
        let mut keys = self.keys.lock();
        let recent = match keys.get_mut(key) {
            Some(recent) => recent,
            None => keys.entry(key.clone()).or_insert(new_entry),
        };
        *reasons |= std::mem::take(&mut recent.deferred_reasons);
        if recent.is_over(now, new_entry.spec_version, guard.window) {
            let was_throttled = recent.throttled_at.is_some();
            *recent = RecentRuns::new(now, 0, new_entry.spec_version);
            if was_throttled {
                // Under the lock of `keys`, as in `count_throttled`.
                self.throttled.fetch_sub(1, Ordering::Relaxed);
            }
        }
        recent.reasons |= *reasons;
        let since_last = now.saturating_duration_since(recent.last);
        if recent.throttled_at.is_some() && since_last < guard.spacing {
            recent.throttled_at = Some(now);
            recent.deferred_reasons = *reasons;
            return ThrottleDecision::Wait(guard.spacing.saturating_sub(since_last));
        }
        recent.count += 1;
        recent.last = now;
        if recent.throttled_at.is_some() || recent.count <= guard.burst {
            return ThrottleDecision::Go;
        }
        recent.throttled_at = Some(now);
        // Under the lock of `keys`, as in `count_throttled`.
        self.throttled.fetch_add(1, Ordering::Relaxed);
        ThrottleDecision::GoAndWarn
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        if let Some(rates) = &self.rates {
            rates.forget(key);
        }
        // The number changes under the lock: a recount between the two steps would not contain this
        // object any more, and the subtraction would be one too many.
        let mut keys = self.keys.lock();
        if keys.remove(key).is_some_and(|gone| gone.throttled_at.is_some()) {
            self.throttled.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns the objects that are slowed down now, by key; at most `limit`.
    pub(crate) fn hot(&self, limit: usize) -> Vec<HotKey> {
        let mut hot: Vec<HotKey> = (self.keys.lock().iter())
            .filter(|(_, recent)| recent.throttled_at.is_some())
            .map(|(key, recent)| HotKey {
                key: key.clone(),
                count: recent.count,
                reasons: recent.reasons,
            })
            .collect();
        hot.sort_by(|a, b| a.key.cmp(&b.key));
        hot.truncate(limit);
        hot
    }
}

#[cfg(test)]
mod tests {
    use super::super::limits::{BURST, SPACING, WINDOW};
    use super::*;

    fn admit(state: &LoopGuardState, key: &ObjectKey, now: Instant) -> ThrottleDecision {
        admit_at(state, key, now, 1)
    }

    fn admit_at(
        state: &LoopGuardState,
        key: &ObjectKey,
        now: Instant,
        spec_version: u64,
    ) -> ThrottleDecision {
        let mut reasons = 1 << (spec_version % 64);
        state.admit(key, now, (&mut reasons, false), || Some(SpecVersion::test(spec_version)))
    }

    /// Requests reconciles without a pause until `end`; returns the number of admitted reconciles,
    /// and of reconciles with a warning.
    fn admit_until(
        state: &LoopGuardState,
        key: &ObjectKey,
        mut now: Instant,
        end: Instant,
    ) -> (u32, u32) {
        let (mut went, mut warned) = (0, 0);
        while now < end {
            match admit(state, key, now) {
                ThrottleDecision::Go => went += 1,
                ThrottleDecision::GoAndWarn => (went, warned) = (went + 1, warned + 1),
                ThrottleDecision::Wait(wait) => now += wait,
            }
        }
        (went, warned)
    }

    #[tokio::test(start_paused = true)]
    async fn c4_a_hot_key_is_held_to_one_a_second_and_warned_of_once_however_long_it_lasts() {
        let (state, key) = (LoopGuardState::default(), ObjectKey::new(None, "hot"));
        let start = Instant::now();
        let (went, warned) = admit_until(&state, &key, start, start + Duration::from_secs(599));
        assert_eq!(warned, 1);
        assert!((640..=655).contains(&went), "{went}");
        assert_eq!(state.hot(5).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_has_its_whole_burst_while_another_one_is_slowed_down() {
        let (state, start) = (LoopGuardState::default(), Instant::now());
        let [hot, calm] = ["hot", "calm"].map(|name| ObjectKey::new(None, name));
        assert_eq!(admit_until(&state, &hot, start, start + Duration::from_millis(500)), (51, 1));
        let decisions: Vec<_> = (0..=BURST).map(|_| admit(&state, &calm, start)).collect();
        let (warned, went) = decisions.split_last().unwrap();
        assert!(went.iter().all(|decision| *decision == ThrottleDecision::Go), "{decisions:?}");
        assert_eq!(*warned, ThrottleDecision::GoAndWarn);
    }

    #[tokio::test(start_paused = true)]
    async fn the_estimate_of_all_reconciles_is_near_their_number() {
        let (state, start) = (LoopGuardState::default(), Instant::now());
        for number in 0..4096 {
            admit(&state, &ObjectKey::new(None, &format!("site-{number}")), start);
        }
        // One object in sixteen is counted: 4096 in the mean, with a deviation of 250.
        let total = state.total.load(Ordering::Relaxed);
        assert!((2048..=8192).contains(&total), "{total}");
    }

    #[tokio::test(start_paused = true)]
    async fn reconciles_by_timers_do_not_count_however_frequent_they_are() {
        let (state, key) = (LoopGuardState::default(), ObjectKey::new(None, "timer"));
        let start = Instant::now();
        let spec_version = || Some(SpecVersion::test(1));
        let timed = |_| state.admit(&key, start, (&mut 1, true), spec_version);
        assert!((0..600).map(timed).all(|decision| decision == ThrottleDecision::Go));
        assert!(state.hot(5).is_empty());
        assert_eq!(admit_until(&state, &key, start, start + Duration::from_millis(500)), (51, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_guard_with_other_limits_applies_them_and_a_guard_that_is_off_limits_nothing() {
        let (key, start) = (ObjectKey::new(None, "hot"), Instant::now());
        let end = start + Duration::from_secs(99);
        let guard = LoopGuard::new(600, Duration::from_secs(10));
        for (spacing, expected) in [(100, 1500..1700), (2000, 600..655)] {
            let guard = guard.spacing(Duration::from_millis(spacing));
            let (went, warned) = admit_until(&LoopGuardState::new(guard, None), &key, start, end);
            assert!(expected.contains(&went) && warned == 1, "{went} {warned}");
        }
        let state = LoopGuardState::new(LoopGuard::off(), None);
        assert!((0..10_000).all(|_| admit(&state, &key, start) == ThrottleDecision::Go));
        assert!(state.hot(5).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_limit_holds_an_object_whatever_its_spec_and_logs_no_warning() {
        let (key, start) = (ObjectKey::new(None, "busy"), Instant::now());
        let state =
            LoopGuardState::new(LoopGuard::default(), Some(Rate::new(3, Duration::from_secs(30))));
        let (mut now, mut went) = (start, 0);
        for generation in 0.. {
            match admit_at(&state, &key, now, generation) {
                ThrottleDecision::Go => went += 1,
                ThrottleDecision::GoAndWarn => panic!("nothing is wrong with it"),
                ThrottleDecision::Wait(wait) => now += wait,
            }
            if now >= start + Duration::from_secs(300) {
                break;
            }
        }
        assert_eq!(went, 30);
        state.forget(&key);
        assert_eq!(admit(&state, &key, now), ThrottleDecision::Go);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_quiet_minute_a_key_is_free_again() {
        let (state, key) = (LoopGuardState::default(), ObjectKey::new(None, "hot"));
        let now = Instant::now();
        while !matches!(admit(&state, &key, now), ThrottleDecision::Wait(_)) {}
        assert_eq!(admit(&state, &key, now + WINDOW), ThrottleDecision::Go);
        assert_eq!(admit(&state, &key, now + WINDOW), ThrottleDecision::Go);
        assert!(state.hot(5).is_empty());
        assert_eq!(state.throttled.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_calmed_down_to_less_than_its_pace_is_free_again() {
        let (state, key) = (LoopGuardState::default(), ObjectKey::new(None, "hot"));
        let mut now = Instant::now();
        while !matches!(admit(&state, &key, now), ThrottleDecision::Wait(_)) {}
        for _ in 0..31 {
            now += Duration::from_secs(2);
            assert_eq!(admit(&state, &key, now), ThrottleDecision::Go);
        }
        assert!(state.hot(5).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_whose_spec_changes_each_time_is_not_slowed_down() {
        let (state, key) = (LoopGuardState::default(), ObjectKey::new(None, "busy"));
        let now = Instant::now();
        for generation in 0..1_000 {
            assert_eq!(admit_at(&state, &key, now, generation), ThrottleDecision::Go);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_of_the_spec_frees_a_hot_key() {
        let (state, key) = (LoopGuardState::default(), ObjectKey::new(None, "hot"));
        let now = Instant::now();
        while !matches!(admit_at(&state, &key, now, 1), ThrottleDecision::Wait(_)) {}
        assert_eq!(admit_at(&state, &key, now, 2), ThrottleDecision::Go);
        assert!(state.hot(5).is_empty());
        let again = (0..60).map(|_| admit_at(&state, &key, now, 2));
        assert_eq!(again.filter(|decision| *decision == ThrottleDecision::GoAndWarn).count(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hot_key_reports_its_reasons() {
        let (state, key) = (LoopGuardState::default(), ObjectKey::new(None, "hot"));
        let now = Instant::now();
        while !matches!(admit_at(&state, &key, now, 3), ThrottleDecision::Wait(_)) {}
        assert_eq!(state.hot(5)[0].reasons, 1 << 3);
        state.forget(&key);
        assert_eq!((state.hot(5).len(), state.throttled.load(Ordering::Relaxed)), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_reasons_of_an_attempt_that_had_to_wait_are_passed_to_the_next() {
        let (state, key) = (LoopGuardState::default(), ObjectKey::new(None, "hot"));
        let now = Instant::now();
        while !matches!(admit(&state, &key, now), ThrottleDecision::Wait(_)) {}
        let spec_version = || Some(SpecVersion::test(1));
        assert!(matches!(
            state.admit(&key, now, (&mut 0b100, false), spec_version),
            ThrottleDecision::Wait(_)
        ));
        let mut reasons = 0b1000;
        assert_eq!(
            state.admit(&key, now + SPACING, (&mut reasons, false), spec_version),
            ThrottleDecision::Go
        );
        assert_eq!(reasons, 0b1110);
    }

    #[tokio::test(start_paused = true)]
    async fn objects_that_are_reconciled_seldom_cost_no_memory() {
        let state = LoopGuardState::default();
        let now = Instant::now();
        for name in 0..100_000 {
            let key = ObjectKey::new(Some("shop"), &name.to_string());
            assert_eq!(admit(&state, &key, now), ThrottleDecision::Go);
        }
        assert_eq!(state.keys.lock().len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn among_very_many_objects_each_still_has_its_fifty() {
        let state = LoopGuardState::default();
        let now = Instant::now();
        for name in 0..2_000_000_u32 {
            admit(&state, &ObjectKey::new(None, &name.to_string()), now);
        }
        let key = ObjectKey::new(None, "one");
        for _ in 0..=BURST / 2 {
            assert_eq!(admit(&state, &key, now), ThrottleDecision::Go);
        }
        let went =
            (0..2 * BURST).filter(|_| admit(&state, &key, now) == ThrottleDecision::Go).count();
        assert!(went >= BURST as usize / 2 - 1, "{went}");
        admit(&state, &key, now + WINDOW);
        assert!(state.keys.lock().len() <= 1, "those of the minute before are forgotten");
    }
}
