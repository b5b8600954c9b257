//! Limits on the reconciles of an object: the guard against endless reconciling, and a rate.
//!
//! The guard is for mistakes: the guard is on by default, and logs a warning. A rate is for
//! resources that must not be used too often for an object, however often the object changes, such
//! as a system that bills each call.
//!
//! Not included: a limit over all objects of a controller. The number of workers is such a limit,
//! and so are the client's requests per second; `windlass::fifo` has rate limiters for other
//! queues.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use tokio::time::Instant;

use windlass_core::resource::ObjectKey;

/// Default number of reconciles within the window that are not slowed down.
pub(crate) const BURST: u32 = 50;
/// Default window.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);
/// Default interval between reconciles of an object that is slowed down.
pub(crate) const SPACING: Duration = Duration::from_secs(1);
/// Lower bound of a window and of the interval of a rate.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Limit from which on an object counts as reconciled endlessly, and the rate to which the object
/// is slowed down.
///
/// Default: more than 50 reconciles within a minute without a change of the spec; then one a
/// second, until the spec changes, or the reconciles stayed below that rate for a minute.
/// Reconciles for which timers and resyncs are the only reasons do not count: the interval is a
/// setting, and is at least a second.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use std::time::Duration;
/// use windlass::controller::LoopGuard;
/// let guard = LoopGuard::new(200, Duration::from_secs(60)).spacing(Duration::from_millis(200));
/// assert_eq!(guard.to_string(), "200 times within 60s, then once in 200ms");
/// assert_eq!(LoopGuard::off().to_string(), "off");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct LoopGuard {
    pub(crate) is_on: bool,
    pub(crate) burst: u32,
    pub(crate) window: Duration,
    pub(crate) spacing: Duration,
}

impl Default for LoopGuard {
    fn default() -> Self {
        Self { is_on: true, burst: BURST, window: WINDOW, spacing: SPACING }
    }
}

impl LoopGuard {
    /// Creates a guard under which up to `most` (at least 2) reconciles of an object within
    /// `window` (at least 1 s) are not slowed down.
    pub fn new(most: u32, window: Duration) -> Self {
        let window = window.max(MIN_INTERVAL);
        Self { burst: most.max(2), window, ..Self::default() }.spacing(SPACING)
    }

    /// Sets the interval between reconciles of a slowed-down object. Default: 1 s. At most half of
    /// the window, or the object would be forgotten before the interval is over.
    pub fn spacing(mut self, spacing: Duration) -> Self {
        self.spacing = spacing.min(self.window / 2);
        self
    }

    /// Disables the guard: an object that causes itself to be reconciled is reconciled as fast as
    /// possible, without a warning, and a test of the operator cannot name the object.
    pub fn off() -> Self {
        Self { is_on: false, ..Self::default() }
    }
}

/// Shows the limits.
impl fmt::Display for LoopGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_on {
            return f.write_str("off");
        }
        let Self { burst, window, spacing, .. } = self;
        write!(f, "{burst} times within {window:?}, then once in {spacing:?}")
    }
}

/// A number of reconciles of an object within a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    most: u32,
    within: Duration,
}

impl Rate {
    pub(crate) fn new(most: u32, within: Duration) -> Self {
        Self { most: most.max(1), within: within.max(MIN_INTERVAL) }
    }
}

/// Reconciles of an object since the interval began.
#[derive(Clone, Copy, Debug)]
struct IntervalCount {
    since: Instant,
    count: u32,
}

/// Rate limit of each object. Objects whose interval is over take no memory after the next sweep.
pub(crate) struct Rates {
    rate: Rate,
    inner: Mutex<Inner>,
}

/// Reconciles in the current interval of each object, and the time of the last sweep.
struct Inner {
    /// Iterated only for removing, so the map's order shows nowhere.
    counts: HashMap<ObjectKey, IntervalCount, FixedState>,
    swept: Option<Instant>,
}

impl Rates {
    pub(crate) fn new(rate: Rate) -> Self {
        let counts = HashMap::with_hasher(FixedState::with_seed(0));
        Self { rate, inner: Mutex::new(Inner { counts, swept: None }) }
    }

    /// Returns the time that the object has to wait; `None` if the object may be reconciled.
    pub(crate) fn wait(&self, key: &ObjectKey, now: Instant) -> Option<Duration> {
        let inner = self.inner.lock();
        let count = inner.counts.get(key).filter(|count| count.count >= self.rate.most)?;
        let elapsed = now.saturating_duration_since(count.since);
        Some(self.rate.within.saturating_sub(elapsed)).filter(|left| !left.is_zero())
    }

    /// Counts a reconcile.
    pub(crate) fn record(&self, key: &ObjectKey, now: Instant) {
        let within = self.rate.within;
        let is_over = |since: Instant| now.saturating_duration_since(since) >= within;
        let mut inner = self.inner.lock();
        // A sweep per interval bounds the map by the objects of two intervals.
        if inner.swept.is_none_or(is_over) {
            inner.swept = Some(now);
            inner.counts.retain(|_, count| !is_over(count.since));
            inner.counts.shrink_to_fit();
        }
        match inner.counts.get_mut(key) {
            Some(count) if !is_over(count.since) => count.count = count.count.saturating_add(1),
            Some(count) => *count = IntervalCount { since: now, count: 1 },
            None => drop(inner.counts.insert(key.clone(), IntervalCount { since: now, count: 1 })),
        }
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.inner.lock().counts.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_guard_passes_at_least_two_reconciles_and_remembers_waiting_keys() {
        let guard = LoopGuard::new(0, Duration::ZERO).spacing(9 * SECOND);
        assert_eq!(guard.to_string(), "2 times within 1s, then once in 500ms");
        assert_eq!(LoopGuard::default().to_string(), "50 times within 60s, then once in 1s");
    }

    #[tokio::test(start_paused = true)]
    async fn the_interval_of_a_rate_limit_begins_with_its_first_reconcile() {
        let (rates, start) = (Rates::new(Rate::new(2, 10 * SECOND)), Instant::now());
        let (one, two) = (ObjectKey::new(None, "one"), ObjectKey::new(None, "two"));
        rates.record(&one, start);
        assert_eq!(rates.wait(&one, start), None);
        rates.record(&one, start + 4 * SECOND);
        assert_eq!(rates.wait(&one, start + 4 * SECOND), Some(6 * SECOND));
        assert_eq!(rates.wait(&two, start + 4 * SECOND), None, "each has its own");
        assert_eq!(rates.wait(&one, start + 10 * SECOND), None);
        rates.record(&two, start + 20 * SECOND);
        assert_eq!(rates.inner.lock().counts.len(), 1);
        rates.forget(&two);
        assert!(rates.inner.lock().counts.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_interval_that_is_over_begins_anew_also_between_two_sweeps() {
        let (rates, start) = (Rates::new(Rate::new(2, 10 * SECOND)), Instant::now());
        let (one, two) = (ObjectKey::new(None, "one"), ObjectKey::new(None, "two"));
        let record = |key, seconds| rates.record(key, start + seconds * SECOND);
        record(&two, 0);
        record(&one, 4);
        // Sweeps, and the interval of the other object is not over yet.
        record(&two, 10);
        record(&one, 15);
        assert_eq!(rates.wait(&one, start + 15 * SECOND), None);
        record(&one, 16);
        assert_eq!(rates.wait(&one, start + 16 * SECOND), Some(9 * SECOND));
    }
}
