//! Metrics of a controller, under controller-runtime's names.
//!
//! Each worker counts reconciles separately; the counts become metrics when these are read. A
//! number that all workers change would move between processors with each reconcile.

// DESIGN.md, 69: Workers share few cache lines beside those of the queue

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use windlass_core::metrics::{
    CounterSeries, Durations, GaugeSeries, HistogramSeries, MetricSource, Metrics, names,
};
use windlass_core::sync::{CachePadded, Mutex};

/// Most shards; with more workers, some share a shard.
const SHARDS: usize = 16;

/// End of a reconcile, a label of `controller_runtime_reconcile_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReconcileResult {
    Success,
    RequeueAfter,
    /// The reconcile was dropped, and starts again at once.
    Superseded,
    Error,
    Terminal,
    Panic,
    Timeout,
}

/// Recorder of `controller_runtime_*` for a controller.
#[derive(Clone, Debug)]
pub(crate) struct WorkerMeter {
    all: Arc<SharedMeter>,
    /// The shard that this worker counts in.
    shard: usize,
}

/// State that the recorders of all workers share.
#[derive(Debug)]
struct SharedMeter {
    series: ControllerSeries,
    shards: Box<[CachePadded<Shard>]>,
    /// The shard of the next worker.
    next: AtomicUsize,
    /// Number of busy workers in the last reading, which is this controller's share of the gauge:
    /// another operator may use the same metrics. The lock admits a single reading at a time.
    reported_busy: Mutex<usize>,
}

/// Counts of a worker, or of several.
#[derive(Debug)]
struct Shard {
    ends: Mutex<Ends>,
    busy: AtomicUsize,
    /// Reconciles since the start.
    reconciles: AtomicU64,
}

/// Ends of reconciles since the last reading; rare kinds of ends go into the metrics directly.
#[derive(Debug, Default)]
struct Ends {
    success: u64,
    requeue_after: u64,
    took: Durations,
}

/// Metric series of a controller.
#[derive(Debug)]
struct ControllerSeries {
    success: CounterSeries,
    error: CounterSeries,
    requeue: CounterSeries,
    requeue_after: CounterSeries,
    throttled: CounterSeries,
    given_up: CounterSeries,
    errors: CounterSeries,
    terminal: CounterSeries,
    panics: CounterSeries,
    timeouts: CounterSeries,
    seconds: HistogramSeries,
    active: GaugeSeries,
    waiting: GaugeSeries,
}

impl WorkerMeter {
    /// Creates all series at 0.
    pub(crate) fn new(metrics: &Metrics, controller: &str, workers: usize) -> Self {
        let result = |result| metrics.counter(&names::RECONCILE, &[controller, result]);
        let counter = |def| metrics.counter(def, &[controller]);
        metrics.set(&names::MAX_CONCURRENT_RECONCILES, &[controller], workers as f64);
        let series = ControllerSeries {
            success: result("success"),
            error: result("error"),
            requeue: result("requeue"),
            requeue_after: result("requeue_after"),
            throttled: counter(&names::RECONCILE_THROTTLED),
            given_up: counter(&names::RECONCILE_GIVEN_UP),
            errors: counter(&names::RECONCILE_ERRORS),
            terminal: counter(&names::RECONCILE_TERMINAL_ERRORS),
            panics: counter(&names::RECONCILE_PANICS),
            timeouts: counter(&names::RECONCILE_TIMEOUTS),
            seconds: metrics.histogram(&names::RECONCILE_SECONDS, &[controller]),
            active: metrics.gauge(&names::ACTIVE_WORKERS, &[controller]),
            waiting: metrics.gauge(&names::WAITING, &[controller]),
        };
        let shards = (0..workers.clamp(1, SHARDS)).map(|_| CachePadded::new(Shard::new(&series)));
        let (shards, next) = (shards.collect(), AtomicUsize::new(0));
        let all = Arc::new(SharedMeter { series, shards, next, reported_busy: Mutex::default() });
        let source: Weak<SharedMeter> = Arc::downgrade(&all);
        metrics.register_source(source);
        Self { all, shard: 0 }
    }

    /// Returns a recorder for a worker of the same controller.
    pub(crate) fn for_one_worker(&self) -> Self {
        // Relaxed, as all counters here: no other data depends on them.
        let next = self.all.next.fetch_add(1, Ordering::Relaxed);
        Self { all: Arc::clone(&self.all), shard: next % self.all.shards.len() }
    }

    fn shard(&self) -> &Shard {
        &self.all.shards[self.shard]
    }

    /// Returns the number of finished reconciles of all workers.
    pub(crate) fn reconciles(&self) -> u64 {
        self.all.shards.iter().map(|shard| shard.reconciles.load(Ordering::Relaxed)).sum()
    }

    /// Counts a worker as busy until the guard is dropped.
    pub(crate) fn busy(&self) -> Busy<'_> {
        let busy = &self.shard().busy;
        busy.fetch_add(1, Ordering::Relaxed);
        Busy { busy }
    }

    /// Counts an object that was slowed down.
    pub(crate) fn throttled(&self) {
        self.all.series.throttled.count(1);
    }

    /// Changes the number of objects that wait.
    pub(crate) fn waiting(&self, more: f64) {
        self.all.series.waiting.add(more);
    }

    /// Counts an object whose retries were used up.
    pub(crate) fn gave_up(&self) {
        self.all.series.given_up.count(1);
    }

    /// Counts a finished reconcile, before the follow-up, which may be slow.
    pub(crate) fn count_finished(&self) {
        self.shard().reconciles.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the end of a reconcile that took `took`.
    pub(crate) fn ended(&self, how: ReconcileResult, took: Duration) {
        let series = &self.all.series;
        let mut ends = self.shard().ends.lock();
        ends.took.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        match how {
            ReconcileResult::Success => ends.success += 1,
            ReconcileResult::RequeueAfter => ends.requeue_after += 1,
            ReconcileResult::Superseded => series.requeue.count(1),
            ReconcileResult::Error => series.failed(),
            ReconcileResult::Terminal => series.failed_with(&series.terminal),
            ReconcileResult::Panic => series.failed_with(&series.panics),
            ReconcileResult::Timeout => series.failed_with(&series.timeouts),
        }
    }
}

impl ControllerSeries {
    fn failed(&self) {
        self.error.count(1);
        self.errors.count(1);
    }

    fn failed_with(&self, how: &CounterSeries) {
        how.count(1);
        self.failed();
    }
}

impl Shard {
    fn new(series: &ControllerSeries) -> Self {
        let ends = Ends { took: series.seconds.gathering(), ..Ends::default() };
        let (busy, reconciles) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { ends: Mutex::new(ends), busy, reconciles }
    }
}

impl MetricSource for SharedMeter {
    fn collect(&self) {
        let mut reported = self.reported_busy.lock();
        let mut busy = 0;
        for shard in &self.shards {
            let mut ends = shard.ends.lock();
            let Ends { success, requeue_after, took } = &mut *ends;
            let (success, requeue_after) = (std::mem::take(success), std::mem::take(requeue_after));
            let took = took.take();
            // Released before the metrics are updated: the worker of this shard takes the lock at
            // each end.
            drop(ends);
            self.series.success.count(success);
            self.series.requeue_after.count(requeue_after);
            self.series.seconds.gather(&took);
            busy += shard.busy.load(Ordering::Relaxed);
        }
        // A difference instead of a value: another operator may share the gauge.
        self.series.active.add(busy as f64 - *reported as f64);
        *reported = busy;
    }
}

impl Drop for SharedMeter {
    fn drop(&mut self) {
        // Counts since the last reading are not lost.
        self.collect();
    }
}

/// Guard of a busy worker.
#[derive(Debug)]
pub(crate) struct Busy<'a> {
    busy: &'a AtomicUsize,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        // Relaxed: the number is shown in a gauge and guards no data.
        self.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: usize = 5;

    #[test]
    fn the_counts_of_all_workers_are_reported_as_one_sum_and_once() {
        let metrics = Metrics::new();
        let meter = WorkerMeter::new(&metrics, "shop", 3);
        let workers: Vec<WorkerMeter> = (0..2 * SHARDS).map(|_| meter.for_one_worker()).collect();
        let success = || metrics.counted(&names::RECONCILE, &["shop", "success"]);
        let active = || metrics.level(&names::ACTIVE_WORKERS, &["shop"]);
        let busy: Vec<Busy<'_>> = workers.iter().map(WorkerMeter::busy).collect();
        assert_eq!(active(), Some(workers.len() as f64));
        drop(busy);
        for round in 1..=3 {
            for worker in &workers {
                for how in [
                    ReconcileResult::Success,
                    ReconcileResult::RequeueAfter,
                    ReconcileResult::Error,
                    ReconcileResult::Panic,
                ] {
                    worker.ended(how, Duration::from_millis(20));
                }
                worker.ended(ReconcileResult::Success, Duration::from_millis(20));
                worker.count_finished();
            }
            assert_eq!(success(), 2 * round * workers.len() as u64);
        }
        assert_eq!((success(), active()), (6 * workers.len() as u64, Some(0.0)));
        assert_eq!(meter.reconciles(), 3 * workers.len() as u64);
        let errors = metrics.counted(&names::RECONCILE_ERRORS, &["shop"]);
        assert_eq!(errors, 6 * workers.len() as u64);
        let count = "controller_runtime_reconcile_time_seconds_count{controller=\"shop\"}";
        let all = format!("{count} {}\n", 3 * ENDS * workers.len());
        assert!(metrics.encode().contains(&all), "{}", metrics.encode());
    }

    #[test]
    fn the_busy_workers_of_two_operators_with_the_same_metrics_are_added() {
        let metrics = Metrics::new();
        let (leader, follower) =
            (WorkerMeter::new(&metrics, "shop", 1), WorkerMeter::new(&metrics, "shop", 1));
        let active = || metrics.level(&names::ACTIVE_WORKERS, &["shop"]);
        let (one, other) = (leader.busy(), follower.busy());
        assert_eq!(active(), Some(2.0));
        drop(other);
        assert_eq!(active(), Some(1.0));
        drop(follower);
        assert_eq!(active(), Some(1.0), "that of the other is left");
        drop(one);
        assert_eq!(active(), Some(0.0));
    }

    #[test]
    fn unread_counts_are_added_when_the_controller_is_dropped() {
        let metrics = Metrics::new();
        let meter = WorkerMeter::new(&metrics, "shop", 1);
        meter.for_one_worker().ended(ReconcileResult::RequeueAfter, Duration::ZERO);
        drop(meter);
        assert_eq!(metrics.counted(&names::RECONCILE, &["shop", "requeue_after"]), 1);
    }
}
