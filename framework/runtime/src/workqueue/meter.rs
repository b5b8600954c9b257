//! The queue's metrics, under client-go's names.
//!
//! Events are counted in plain integers under the queue's lock, and become metrics when these are
//! read. Only the gauges on work in progress are set by a caller.

// DESIGN.md, 52: Queue metrics are counted under the queue's lock

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Priority;
use windlass_core::metrics::{
    CounterSeries, Durations, GaugeSeries, HistogramSeries, Metrics, names,
};
use windlass_core::sync::Mutex;

/// Most priorities with a separate series; all others share a series, as in controller-runtime.
const MOST_PRIORITIES: usize = 25;
/// controller-runtime's label of the shared series.
const OTHERS: &str = "exceeded_cardinality_limit";

/// Feeds the metrics `workqueue_*` of a queue.
#[derive(Debug)]
pub(super) struct QueueMeter {
    metrics: Metrics,
    labels: [String; 2],
    adds: CounterSeries,
    retries: CounterSeries,
    waited: HistogramSeries,
    worked: HistogramSeries,
    unfinished: GaugeSeries,
    longest: GaugeSeries,
    /// Whether the gauges on work in progress are above zero.
    shows_work: AtomicBool,
    reported: Mutex<Reported>,
}

/// Values that the metrics have received so far.
#[derive(Debug)]
struct Reported {
    adds: u64,
    delays: u64,
    /// Per priority that was seen: series and last depth.
    depths: BTreeMap<Priority, (GaugeSeries, usize)>,
}

/// Durations that were counted under the queue's lock.
#[derive(Debug)]
pub(super) struct QueueDurations {
    /// Time from ready to taken.
    pub(super) waited: Durations,
    /// Time from taken to the completion.
    pub(super) worked: Durations,
}

/// Numbers of a queue for the metrics.
#[derive(Debug)]
pub(super) struct QueueReport {
    /// Adds that were not duplicates, since the start.
    pub(super) adds: u64,
    /// Keys that were delayed, since the start.
    pub(super) delays: u64,
    /// Number of ready keys by priority, in the order in which priorities were first seen.
    pub(super) depths: Vec<(Priority, usize)>,
    /// Durations since the last reading.
    pub(super) tally: QueueDurations,
}

impl QueueDurations {
    /// Takes all durations; the tally is empty afterwards.
    pub(super) fn take(&mut self) -> Self {
        Self { waited: self.waited.take(), worked: self.worked.take() }
    }
}

impl QueueMeter {
    pub(super) fn new(metrics: &Metrics, name: &str, controller: &str) -> Self {
        let labels = [name, controller];
        let normal = metrics.gauge(&names::QUEUE_DEPTH, &[name, controller, "0"]);
        let depths = BTreeMap::from([(Priority::NORMAL, (normal, 0))]);
        Self {
            metrics: metrics.clone(),
            labels: labels.map(str::to_owned),
            adds: metrics.counter(&names::QUEUE_ADDS, &labels),
            retries: metrics.counter(&names::QUEUE_RETRIES, &labels),
            waited: metrics.histogram(&names::QUEUE_SECONDS, &labels),
            worked: metrics.histogram(&names::QUEUE_WORK_SECONDS, &labels),
            unfinished: metrics.gauge(&names::QUEUE_UNFINISHED_SECONDS, &labels),
            longest: metrics.gauge(&names::QUEUE_LONGEST_SECONDS, &labels),
            shows_work: AtomicBool::new(false),
            reported: Mutex::new(Reported { adds: 0, delays: 0, depths }),
        }
    }

    /// Returns an empty tally with the buckets of the metrics.
    pub(super) fn tally(&self) -> QueueDurations {
        QueueDurations { waited: self.waited.gathering(), worked: self.worked.gathering() }
    }

    /// Adds the numbers that `read` returns to the metrics. A single call at a time, so that
    /// nothing is counted twice.
    pub(super) fn report(&self, read: impl FnOnce() -> QueueReport) {
        let mut reported = self.reported.lock();
        // Read within the lock: a later reading that was added first would make the difference
        // negative.
        let report = read();
        self.adds.count(report.adds - reported.adds);
        self.retries.count(report.delays - reported.delays);
        (reported.adds, reported.delays) = (report.adds, report.delays);
        self.waited.gather(&report.tally.waited);
        self.worked.gather(&report.tally.worked);
        for (priority, ready) in report.depths {
            let is_one_too_many = reported.depths.len() >= MOST_PRIORITIES;
            let depth = reported.depths.entry(priority);
            let (series, last) =
                depth.or_insert_with(|| (self.depth(priority, is_one_too_many), 0));
            series.add(ready as f64 - *last as f64);
            *last = ready;
        }
    }

    /// Returns the series of a priority, or the shared series.
    fn depth(&self, priority: Priority, is_one_too_many: bool) -> GaugeSeries {
        let number = priority.to_string();
        let label = if is_one_too_many { OTHERS } else { &number };
        let [name, controller] = &self.labels;
        self.metrics.gauge(&names::QUEUE_DEPTH, &[name, controller, label])
    }

    /// Returns whether the gauges show work in progress that may have ended since.
    pub(super) fn shows_work(&self) -> bool {
        // Relaxed: the flag only saves needless updates of the gauges, and guards no data.
        self.shows_work.load(Ordering::Relaxed)
    }

    /// Sets the gauges to the sum and the maximum of the ages of the work in progress.
    pub(super) fn running(&self, sum: Duration, longest: Duration) {
        // Relaxed: as in `shows_work`.
        self.shows_work.store(sum > Duration::ZERO, Ordering::Relaxed);
        self.unfinished.set(sum.as_secs_f64());
        self.longest.set(longest.as_secs_f64());
    }
}
