//! The queue's metrics, under client-go's names.

use std::time::Duration;

use super::core::Gauges;
use crate::metrics::{Def, Metrics, names};

/// Feeds `workqueue_*` for one queue.
#[derive(Debug)]
pub(super) struct Meter {
    metrics: Metrics,
    name: String,
    controller: String,
}

impl Meter {
    pub(super) fn new(metrics: Metrics, name: String, controller: String) -> Self {
        let meter = Self { metrics, name, controller };
        meter.depth(0.0);
        meter.count(&names::QUEUE_ADDS, 0);
        meter.count(&names::QUEUE_RETRIES, 0);
        meter.running(Duration::ZERO, Duration::ZERO);
        meter
    }

    fn labels(&self) -> [&str; 2] {
        [&self.name, &self.controller]
    }

    /// The state of the queue changed.
    pub(super) fn changed(&self, before: &Gauges, after: &Gauges) {
        if before.ready != after.ready {
            self.depth(after.ready as f64 - before.ready as f64);
        }
        if before.adds != after.adds {
            self.count(&names::QUEUE_ADDS, after.adds - before.adds);
        }
        if before.delays != after.delays {
            self.count(&names::QUEUE_RETRIES, after.delays - before.delays);
        }
    }

    fn depth(&self, change: f64) {
        let labels = [self.name.as_str(), &self.controller, ""];
        self.metrics.add(&names::QUEUE_DEPTH, &labels, change);
    }

    fn count(&self, counter: &Def, n: u64) {
        self.metrics.count(counter, &self.labels(), n);
    }

    /// A key was taken after `waited`.
    pub(super) fn taken(&self, waited: Duration) {
        self.metrics.observe(&names::QUEUE_SECONDS, &self.labels(), waited);
    }

    /// Work on a key took `worked`.
    pub(super) fn worked(&self, worked: Duration) {
        self.metrics.observe(&names::QUEUE_WORK_SECONDS, &self.labels(), worked);
    }

    /// Sum and maximum of the ages of the work in progress.
    pub(super) fn running(&self, sum: Duration, longest: Duration) {
        let labels = self.labels();
        self.metrics.set(&names::QUEUE_UNFINISHED_SECONDS, &labels, sum.as_secs_f64());
        self.metrics.set(&names::QUEUE_LONGEST_SECONDS, &labels, longest.as_secs_f64());
    }
}
