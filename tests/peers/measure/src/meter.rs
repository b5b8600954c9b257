//! Counters of the versions that reconciles saw.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::nanos;

/// While reconciles fail, a version in this many fails.
const EVERY: u64 = 36;
/// And each so often in a row: of 40 reconciles 4 fail.
const IN_A_ROW: u32 = 4;

/// Shared by all reconciles of a driver.
#[derive(Debug, Default)]
pub struct Meter {
    reconciles: AtomicU64,
    newest: AtomicU64,
    first_at: AtomicU64,
    last_at: AtomicU64,
    is_timing: AtomicBool,
    latencies: Mutex<Vec<u64>>,
    is_failing: AtomicBool,
    /// Number of failures of each version that has to fail.
    failures: Mutex<HashMap<u64, u32>>,
}

impl Meter {
    /// A reconcile has begun and read the object; `stamp` is asked for while latencies are taken.
    pub fn saw(&self, version: &str, stamp: impl FnOnce() -> Option<u64>) {
        let now = nanos();
        let version = crate::version(version);
        if self.is_timing.load(Ordering::Relaxed)
            && let Some(written) = stamp().filter(|written| *written > 0)
            && let Ok(mut latencies) = self.latencies.lock()
        {
            latencies.push(now.saturating_sub(written));
        }
        self.newest.fetch_max(version, Ordering::Relaxed);
        self.last_at.fetch_max(now, Ordering::Relaxed);
        if self.reconciles.fetch_add(1, Ordering::Release) == 0 {
            self.first_at.store(now, Ordering::Relaxed);
        }
    }

    /// Reconciles so far.
    pub fn reconciles(&self) -> u64 {
        self.reconciles.load(Ordering::Acquire)
    }

    /// The newest version that a reconcile has seen.
    pub fn newest(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }

    /// Time between the first reconcile of all and the latest reconcile, in nanoseconds.
    pub fn span(&self) -> u64 {
        let last = self.last_at.load(Ordering::Relaxed);
        last.saturating_sub(self.first_at.load(Ordering::Relaxed))
    }

    /// Time at which the latest reconcile began, on the clock of [`nanos`].
    pub fn last_at(&self) -> u64 {
        self.last_at.load(Ordering::Relaxed)
    }

    /// Begins to take latencies.
    pub fn time(&self) {
        if let Ok(mut latencies) = self.latencies.lock() {
            latencies.clear();
        }
        self.is_timing.store(true, Ordering::Relaxed);
    }

    /// Ends the recording of latencies; returns the latencies, sorted, in nanoseconds.
    pub fn timed(&self) -> Vec<u64> {
        self.is_timing.store(false, Ordering::Relaxed);
        let mut latencies =
            self.latencies.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default();
        latencies.sort_unstable();
        latencies
    }

    /// From now on some reconciles fail.
    pub fn fail(&self) {
        self.is_failing.store(true, Ordering::Relaxed);
    }

    /// Ends the failures; returns the numbers of failed reconciles and of versions that were not
    /// tried to the end.
    pub fn failed(&self) -> (u64, u64) {
        self.is_failing.store(false, Ordering::Relaxed);
        let failures = self.failures.lock().map(|mut all| std::mem::take(&mut *all));
        let failures = failures.unwrap_or_default();
        let given_up = failures.values().filter(|times| **times <= IN_A_ROW).count();
        let failed = failures.values().map(|times| u64::from(*times.min(&IN_A_ROW))).sum();
        (failed, given_up as u64)
    }

    /// Number of expected failures among this many changes up to the version, counted per attempt.
    pub fn due_to_fail(last: u64, changes: u64) -> u64 {
        (last / EVERY - last.saturating_sub(changes) / EVERY) * u64::from(IN_A_ROW)
    }

    /// Is the reconcile of this version to fail? With the number of failures in a row.
    pub fn fails(&self, version: &str) -> Option<u32> {
        if !self.is_failing.load(Ordering::Relaxed) {
            return None;
        }
        let version = crate::version(version);
        if !version.is_multiple_of(EVERY) {
            return None;
        }
        let mut failures = self.failures.lock().ok()?;
        let times = failures.entry(version).or_default();
        *times += 1;
        (*times <= IN_A_ROW).then_some(*times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_forty_reconciles_four_fail_and_who_gives_up_is_found_out() {
        let meter = Meter::default();
        assert_eq!(meter.fails("36"), None);
        meter.fail();
        let mut reconciles = 0;
        for version in 1..=36 {
            let version = version.to_string();
            reconciles += 1;
            while meter.fails(&version).is_some() {
                reconciles += 1;
            }
        }
        assert_eq!((reconciles, meter.failed()), (40, (4, 0)));
        meter.fail();
        assert_eq!(meter.fails("72"), Some(1));
        assert_eq!(meter.failed(), (1, 1));
    }

    #[test]
    fn exactly_the_due_versions_fail() {
        for (first, last) in [(1, 35), (1, 36), (36, 36), (37, 107), (37, 108), (1, 360)] {
            let meter = Meter::default();
            meter.fail();
            for version in first..=last {
                while meter.fails(&version.to_string()).is_some() {}
            }
            assert_eq!(
                meter.failed(),
                (Meter::due_to_fail(last, last - first + 1), 0),
                "{first} to {last}"
            );
        }
    }
}
