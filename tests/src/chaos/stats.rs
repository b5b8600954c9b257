//! Counters of a run, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::oracle::Counts;

/// Counters of a run. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    counts: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Stats {
    /// Counts `name` once more.
    pub fn count(&self, name: &str) {
        self.add(name, 1);
    }

    /// Counts `number` more of `name`.
    pub fn add(&self, name: &str, number: u64) {
        if number > 0 {
            *self.lock().entry(name.to_owned()).or_default() += number;
        }
    }

    /// Returns all counters, by name.
    pub fn all(&self) -> BTreeMap<String, u64> {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Counts of delivered events, and of versions.
    pub counts: Counts,
    /// Time that passed in the world.
    pub time: Duration,
    /// Longest time from the end of all faults until everything was delivered.
    pub slowest: Duration,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { commits, added, updated, deleted, .. } = self.counts;
        write!(
            f,
            "{commits} versions, delivered {added} added, {updated} updated, {deleted} deleted, in {} s of \
             the world's time; settled within {} s",
            self.time.as_secs(),
            self.slowest.as_secs()
        )
    }
}

/// Adds the values of a counter in a text of metrics, by the value of a label.
pub(super) fn by_label(
    text: &str,
    metric: &str,
    label: &str,
    wanted: &str,
) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with(metric) && line.contains(wanted)) {
        let value = line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        let name =
            line.split_once(&format!("{label}=\"")).and_then(|(_, rest)| rest.split_once('"'));
        if let (Some(value), Some((name, _))) = (value, name) {
            *sums.entry(name.to_owned()).or_default() += value as u64;
        }
    }
    sums
}
