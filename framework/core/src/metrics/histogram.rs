//! A histogram that takes many values at once.
//!
//! The histogram of `prometheus_client` takes a single value per call. A component that counts
//! under its own lock counts there, and adds all values at once when the metrics are read.

// DESIGN.md, 52: Queue metrics are counted under the queue's lock

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// A histogram: the number of values by upper bound, and their sum; clones are the same histogram.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    /// Shared by all clones, and by the registry.
    inner: Arc<Mutex<Inner>>,
}

/// Under a single lock, so that a reader never sees a sum without the matching count.
#[derive(Debug)]
struct Inner {
    /// Sum of all values, in the unit of the metric.
    sum: f64,
    /// Number of all values.
    count: u64,
    /// Upper bound and number of values, ascending; the last bound is infinite.
    buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Returns an empty histogram; a further bucket holds values beyond the last bound.
    pub(super) fn new(bounds: Vec<f64>) -> Self {
        // An infinite bound of the caller would give two last buckets.
        let bounds = bounds.into_iter().filter(|bound| bound.is_finite());
        let buckets = bounds.chain([f64::INFINITY]).map(|bound| (bound, 0)).collect();
        Self { inner: Arc::new(Mutex::new(Inner { sum: 0.0, count: 0, buckets })) }
    }

    /// Adds a value.
    pub(super) fn observe(&self, value: f64) {
        let mut inner = self.inner.lock();
        inner.sum += value;
        inner.count += 1;
        if let Some((_, count)) = inner.buckets.iter_mut().find(|(bound, _)| value <= *bound) {
            *count += 1;
        }
    }

    /// Adds values: their number in each bucket, and their sum.
    pub(super) fn merge(&self, counts: &[u64], sum: f64) {
        let mut inner = self.inner.lock();
        inner.sum += sum;
        inner.count += counts.iter().sum::<u64>();
        for ((_, count), more) in inner.buckets.iter_mut().zip(counts) {
            *count += more;
        }
    }

    /// Returns the upper bounds of all buckets.
    pub(super) fn bounds(&self) -> Vec<f64> {
        self.inner.lock().buckets.iter().map(|(bound, _)| *bound).collect()
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        // Copied, so that the lock is not held while the encoder writes.
        let (sum, count, buckets) = {
            let inner = self.inner.lock();
            (inner.sum, inner.count, inner.buckets.clone())
        };
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::histogram;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn it_prints_what_the_librarys_own_histogram_prints() {
        let values = [0.0, 0.005, 0.0050001, 0.1, 3.0, 700.0, f64::INFINITY];
        let bounds = || vec![0.005, 0.1, 1.0, 10.0];
        let (ours, theirs) = (Histogram::new(bounds()), histogram::Histogram::new(bounds()));
        let print = |metric: Box<dyn Fn(&mut Registry)>| {
            let (mut registry, mut text) = (Registry::default(), String::new());
            metric(&mut registry);
            encode(&mut text, &registry).expect("a string takes everything");
            text
        };
        for value in values {
            ours.observe(value);
            theirs.observe(value);
            let (ours, theirs) = (ours.clone(), theirs.clone());
            let ours = print(Box::new(move |all| all.register("took", "Time", ours.clone())));
            let theirs = print(Box::new(move |all| all.register("took", "Time", theirs.clone())));
            assert_eq!(ours, theirs);
        }
    }
}
