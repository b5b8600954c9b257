//! The queue's metrics, under client-go's names.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Priority;
use super::core::Gauges;
use crate::metrics::{CounterSeries, GaugeSeries, HistogramSeries, Metrics, names};
use crate::sync::Mutex;

/// So many priorities have a series of their own, and the others one together, as in
/// controller-runtime.
const MOST_PRIORITIES: usize = 25;
/// What controller-runtime calls the series of the others.
const OTHERS: &str = "exceeded_cardinality_limit";

/// Feeds `workqueue_*` for one queue.
#[derive(Debug)]
pub(super) struct Meter {
    /// Of the normal priority.
    depth: GaugeSeries,
    /// Of the other priorities that were met.
    depths: Mutex<BTreeMap<Priority, GaugeSeries>>,
    metrics: Metrics,
    labels: [String; 2],
    adds: CounterSeries,
    retries: CounterSeries,
    waited: HistogramSeries,
    worked: HistogramSeries,
    unfinished: GaugeSeries,
    longest: GaugeSeries,
    /// Do the gauges on work in progress tell of any?
    tells_of_work: AtomicBool,
}

impl Meter {
    pub(super) fn new(metrics: &Metrics, name: &str, controller: &str) -> Self {
        let labels = [name, controller];
        Self {
            depth: metrics.gauge(&names::QUEUE_DEPTH, &[name, controller, "0"]),
            depths: Mutex::default(),
            metrics: metrics.clone(),
            labels: labels.map(str::to_owned),
            adds: metrics.counter(&names::QUEUE_ADDS, &labels),
            retries: metrics.counter(&names::QUEUE_RETRIES, &labels),
            waited: metrics.histogram(&names::QUEUE_SECONDS, &labels),
            worked: metrics.histogram(&names::QUEUE_WORK_SECONDS, &labels),
            unfinished: metrics.gauge(&names::QUEUE_UNFINISHED_SECONDS, &labels),
            longest: metrics.gauge(&names::QUEUE_LONGEST_SECONDS, &labels),
            tells_of_work: AtomicBool::new(false),
        }
    }

    /// The state of the queue changed.
    pub(super) fn changed(&self, before: &Gauges, after: &Gauges) {
        if before.adds != after.adds {
            self.adds.count(after.adds - before.adds);
        }
        if before.delays != after.delays {
            self.retries.count(after.delays - before.delays);
        }
    }

    /// So many more keys of that priority are ready.
    pub(super) fn depth(&self, priority: Priority, more: f64) {
        if priority == Priority::NORMAL {
            self.depth.add(more);
            return;
        }
        let mut depths = self.depths.lock();
        // The normal one counts.
        let is_one_too_many = depths.len() + 1 >= MOST_PRIORITIES;
        let series = depths.entry(priority).or_insert_with(|| {
            let number = priority.to_string();
            let label = if is_one_too_many { OTHERS } else { &number };
            let [name, controller] = &self.labels;
            self.metrics.gauge(&names::QUEUE_DEPTH, &[name, controller, label])
        });
        series.add(more);
    }

    /// A key was taken after `waited`.
    pub(super) fn taken(&self, waited: Duration) {
        self.waited.observe(waited);
    }

    /// Work on a key took `worked`.
    pub(super) fn worked(&self, worked: Duration) {
        self.worked.observe(worked);
    }

    /// Do the gauges tell of work in progress that may have ended since?
    pub(super) fn tells_of_work(&self) -> bool {
        self.tells_of_work.load(Ordering::Relaxed)
    }

    /// Sum and maximum of the ages of the work in progress.
    pub(super) fn running(&self, sum: Duration, longest: Duration) {
        self.tells_of_work.store(sum > Duration::ZERO, Ordering::Relaxed);
        self.unfinished.set(sum.as_secs_f64());
        self.longest.set(longest.as_secs_f64());
    }
}
