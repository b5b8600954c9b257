//! Counts what reconciles saw.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::nanos;

/// Shared by all reconciles of a driver.
#[derive(Debug, Default)]
pub struct Meter {
    reconciles: AtomicU64,
    newest: AtomicU64,
    first_at: AtomicU64,
    last_at: AtomicU64,
    is_timing: AtomicBool,
    latencies: Mutex<Vec<u64>>,
}

impl Meter {
    /// A reconcile has begun and read its object; `stamp` is asked for while latencies are taken.
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

    /// Time between the first reconcile of all and the latest one, in nanoseconds.
    pub fn span(&self) -> u64 {
        let last = self.last_at.load(Ordering::Relaxed);
        last.saturating_sub(self.first_at.load(Ordering::Relaxed))
    }

    /// When the latest reconcile began, on the clock of [`nanos`].
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

    /// Ends it; the latencies taken, sorted, in nanoseconds.
    pub fn timed(&self) -> Vec<u64> {
        self.is_timing.store(false, Ordering::Relaxed);
        let mut latencies =
            self.latencies.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default();
        latencies.sort_unstable();
        latencies
    }
}
