//! Numbers that are counted outside of the metrics and added when the metrics are read.
//!
//! An event that occurs a million times a second under the owner's lock is counted there in plain
//! integers. Feeding a series for each event would cost a lock, or a cache line for which all
//! processors contend.
//!
//! Invariant: numbers move, and are not copied: a source forgets the added numbers. Two readings in
//! a row never count an event twice.

use std::time::Duration;

/// A source of numbers that the metrics do not have yet.
pub trait MetricSource: Send + Sync {
    /// Adds the numbers to their series.
    fn collect(&self);
}

/// Durations that the metrics do not have yet.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    /// Upper bounds in nanoseconds, ascending; without the last bound, which is infinite.
    bounds: Vec<u64>,
    /// Number of durations per bucket: there is one bucket more than bounds.
    counts: Vec<u64>,
    /// Sum of all durations; 128 bits, so that the sum cannot overflow.
    nanos: u128,
    /// The last bucket, which most often is that of the next duration too: `.2`, for durations
    /// above `.0` and not above `.1`.
    last: (u64, u64, usize),
}

impl Durations {
    /// Returns an empty collection; `bounds` are in seconds, and the last bound is infinite.
    pub(super) fn new(bounds: Vec<f64>) -> Self {
        let nanos = |bound: &f64| Duration::try_from_secs_f64(*bound).map(|bound| bound.as_nanos());
        let bounds = bounds.iter().filter_map(|bound| nanos(bound).ok());
        let bounds: Vec<u64> = bounds.filter_map(|bound| u64::try_from(bound).ok()).collect();
        Self { counts: vec![0; bounds.len() + 1], bounds, nanos: 0, last: (0, 0, 0) }
    }

    /// Adds a duration of `nanos` nanoseconds.
    #[doc(hidden)]
    pub fn add(&mut self, nanos: u64) {
        // Most durations of a queue fall into the same bucket: the search is skipped for them.
        if nanos <= self.last.0 || nanos > self.last.1 {
            self.last = self.bucket(nanos);
        }
        if let Some(count) = self.counts.get_mut(self.last.2) {
            *count += 1;
        }
        self.nanos += u128::from(nanos);
    }

    /// Returns the bounds and the index of the bucket for `nanos`.
    #[cold]
    fn bucket(&self, nanos: u64) -> (u64, u64, usize) {
        let at = self.bounds.partition_point(|bound| *bound < nanos);
        let above = at.checked_sub(1).map_or(0, |before| self.bounds[before]);
        (above, self.bounds.get(at).copied().unwrap_or(u64::MAX), at)
    }

    /// Takes all durations; none are left.
    #[doc(hidden)]
    pub fn take(&mut self) -> Self {
        let all = self.clone();
        self.counts.fill(0);
        self.nanos = 0;
        all
    }

    /// Returns the number of durations in each bucket.
    pub(super) fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the sum of all durations in seconds.
    pub(super) fn sum(&self) -> f64 {
        self.nanos as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Weak};

    use super::super::{Metrics, names};
    use super::*;

    #[test]
    fn durations_that_were_gathered_print_as_if_each_had_been_observed() {
        let labels = ["q", "c"];
        let (one, other) = (Metrics::new(), Metrics::new());
        let at_once = one.histogram(&names::QUEUE_SECONDS, &labels);
        let later = other.histogram(&names::QUEUE_SECONDS, &labels);
        let mut gathered = later.gathering();
        for round in 0..3 {
            for nanos in [0, 9, 10, 11, 1_000, 999_999_999, 1_000_000_000, 3_000_000_000_000] {
                // Sums of halves and quarters are exact in floating point.
                let duration = Duration::from_nanos(nanos + 250_000_000 * round);
                at_once.observe(duration);
                gathered.add(nanos + 250_000_000 * round);
            }
            later.gather(&gathered.take());
        }
        later.gather(&gathered.take());
        let lines = |metrics: &Metrics| {
            let text = metrics.encode();
            let lines = text.lines().filter(|line| !line.contains("_sum"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(&one), lines(&other));
    }

    #[test]
    fn encoding_reports_all_sources_and_a_dropped_source_is_removed() {
        struct Three(super::super::CounterSeries);
        impl MetricSource for Three {
            fn collect(&self) {
                self.0.count(3);
            }
        }
        let metrics = Metrics::new();
        let source = Arc::new(Three(metrics.counter(&names::QUEUE_ADDS, &["q", "c"])));
        let weak: Weak<Three> = Arc::downgrade(&source);
        metrics.register_source(weak);
        let line = r#"workqueue_adds_total{name="q",controller="c"} 3"#;
        assert!(metrics.encode().lines().any(|l| l == line));
        assert_eq!(metrics.counted(&names::QUEUE_ADDS, &["q", "c"]), 6);
        drop(source);
        assert_eq!(metrics.counted(&names::QUEUE_ADDS, &["q", "c"]), 6);
        metrics.register_source(Weak::<Three>::new());
        assert_eq!(metrics.inner.sources.lock().len(), 1);
    }
}
