//! The queue's metrics, under client-go's names.
//!
//! What happens to keys is counted under the queue's lock, in plain numbers; they become metrics when
//! somebody reads those. Only what tells of work in progress is a gauge that somebody sets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Priority;
use crate::metrics::{CounterSeries, Durations, GaugeSeries, HistogramSeries, Metrics, names};
use crate::sync::Mutex;

/// So many priorities have a series of their own, and the others one together, as in
/// controller-runtime.
const MOST_PRIORITIES: usize = 25;
/// What controller-runtime calls the series of the others.
const OTHERS: &str = "exceeded_cardinality_limit";

/// Feeds `workqueue_*` for one queue.
#[derive(Debug)]
pub(super) struct Meter {
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
    told: Mutex<Told>,
}

/// What the metrics say.
#[derive(Debug)]
struct Told {
    adds: u64,
    delays: u64,
    /// Of each priority that was met: its series, and how many keys were ready.
    depths: BTreeMap<Priority, (GaugeSeries, usize)>,
}

/// What took how long, as the queue counts it.
#[derive(Debug)]
pub(super) struct Tally {
    /// Until a key was taken.
    pub(super) waited: Durations,
    /// Until work on it ended.
    pub(super) worked: Durations,
}

/// What a queue tells of itself.
#[derive(Debug)]
pub(super) struct News {
    /// Adds that were not duplicates, since the start.
    pub(super) adds: u64,
    /// Keys put off by a delay, since the start.
    pub(super) delays: u64,
    /// How many keys are ready, by priority, in the order in which priorities were met.
    pub(super) depths: Vec<(Priority, usize)>,
    /// What came since it was told last.
    pub(super) tally: Tally,
}

impl Tally {
    /// All so far; nothing is left.
    pub(super) fn take(&mut self) -> Self {
        Self { waited: self.waited.take(), worked: self.worked.take() }
    }
}

impl Meter {
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
            tells_of_work: AtomicBool::new(false),
            told: Mutex::new(Told { adds: 0, delays: 0, depths }),
        }
    }

    /// Where durations are counted until they are told.
    pub(super) fn tally(&self) -> Tally {
        Tally { waited: self.waited.gathering(), worked: self.worked.gathering() }
    }

    /// Tells what `read` reads off the queue. One at a time, so that nothing is told twice.
    pub(super) fn tell(&self, read: impl FnOnce() -> News) {
        let mut told = self.told.lock();
        let news = read();
        self.adds.count(news.adds - told.adds);
        self.retries.count(news.delays - told.delays);
        (told.adds, told.delays) = (news.adds, news.delays);
        self.waited.gather(&news.tally.waited);
        self.worked.gather(&news.tally.worked);
        for (priority, ready) in news.depths {
            let is_one_too_many = told.depths.len() >= MOST_PRIORITIES;
            let depth = told.depths.entry(priority);
            let (series, last) =
                depth.or_insert_with(|| (self.depth(priority, is_one_too_many), 0));
            series.add(ready as f64 - *last as f64);
            *last = ready;
        }
    }

    fn depth(&self, priority: Priority, is_one_too_many: bool) -> GaugeSeries {
        let number = priority.to_string();
        let label = if is_one_too_many { OTHERS } else { &number };
        let [name, controller] = &self.labels;
        self.metrics.gauge(&names::QUEUE_DEPTH, &[name, controller, label])
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
