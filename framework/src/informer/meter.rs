//! The gauges and the histogram of one informer, looked up once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::metrics::{GaugeSeries, HistogramSeries, Metrics, names};
use crate::resource::ResourceInfo;
use crate::store::Sizes;

const GAUGES: [&crate::metrics::Def; 9] = [
    &names::INFORMER_OBJECTS,
    &names::INFORMER_INVALID,
    &names::INFORMER_BYTES,
    &names::INFORMER_INDEX_ENTRIES,
    &names::INFORMER_QUEUED,
    &names::INFORMER_VERSION,
    &names::INFORMER_AGE,
    &names::INFORMER_SILENCE,
    &names::INFORMER_WAITING,
];

/// What is measured after each batch.
pub(super) struct Reading<'a> {
    pub(super) sizes: Sizes,
    pub(super) invalid: usize,
    pub(super) queued: usize,
    pub(super) version: &'a str,
    pub(super) age: Duration,
    pub(super) silence: Duration,
    pub(super) waiting: usize,
}

/// The feeder of a registry's series. An informer may be asked for again before the last of its name has
/// ended: both feed the same. Those of another registry have series of their own.
#[derive(Default)]
pub(super) struct Series;

impl Series {
    /// Not that of any other that is there.
    fn owner(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).addr()
    }
}

/// The informer's name; group, version and plural of its kind.
type Labels = [String; 4];

pub(super) struct Meter {
    metrics: Metrics,
    labels: Labels,
    resource: String,
    levels: [GaugeSeries; GAUGES.len()],
    processing: HistogramSeries,
    _series: Arc<Series>,
    is_over: AtomicBool,
}

impl Meter {
    pub(super) fn new(
        series: &Arc<Series>,
        metrics: &Metrics,
        name: String,
        info: &ResourceInfo,
    ) -> Self {
        let mut labels =
            [name, info.group.to_string(), info.version.to_string(), info.plural.to_string()];
        metrics.feeders().enter(series.owner(), &mut labels);
        let levels = GAUGES.map(|gauge| metrics.gauge(gauge, &borrowed(&labels)));
        let processing = metrics.histogram(&names::INFORMER_PROCESSING_SECONDS, &borrowed(&labels));
        Self {
            metrics: metrics.clone(),
            labels,
            resource: info.group_resource(),
            levels,
            processing,
            _series: Arc::clone(series),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(super) fn dropped(&self, frames: u64) {
        if frames > 0 {
            let labels = [self.resource.as_str(), "not_newer"];
            self.metrics.count(&names::INFORMER_DROPPED, &labels, frames);
        }
    }

    /// A batch took so long, from the queue to the listeners.
    pub(super) fn processed(&self, took: Duration) {
        self.processing.observe(took);
    }

    pub(super) fn read(&self, reading: &Reading<'_>) {
        let digits = reading.version;
        let last = digits.get(digits.len().saturating_sub(15)..).unwrap_or_default();
        let values = [
            reading.sizes.objects as f64,
            reading.invalid as f64,
            reading.sizes.bytes as f64,
            reading.sizes.index_entries as f64,
            reading.queued as f64,
            last.parse().unwrap_or_default(),
            reading.age.as_secs_f64(),
            reading.silence.as_secs_f64(),
            reading.waiting as f64,
        ];
        for (level, value) in self.levels.iter().zip(values) {
            level.set(value);
        }
    }

    /// The informer is gone, and its series with it, unless another of its name feeds them by now.
    pub(super) fn forget(&self) {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        self.metrics.feeders().leave(&self.labels, || {
            for gauge in GAUGES {
                self.metrics.forget(gauge, &borrowed(&self.labels));
            }
            self.metrics.forget(&names::INFORMER_PROCESSING_SECONDS, &borrowed(&self.labels));
        });
    }
}

/// What was made, and never asked to end, is forgotten too.
impl Drop for Meter {
    fn drop(&mut self) {
        self.forget();
    }
}

fn borrowed(labels: &Labels) -> [&str; 4] {
    labels.each_ref().map(String::as_str)
}
