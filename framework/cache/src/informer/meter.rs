//! The gauges and the histogram of an informer, looked up once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::store::Sizes;
use windlass_core::metrics::{GaugeSeries, HistogramSeries, Metrics, names};
use windlass_core::resource::ResourceInfo;

/// The gauges of an informer, in the order of the values of a reading.
const GAUGES: [&windlass_core::metrics::MetricDefinition; 9] = [
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

/// Values that are measured after each batch.
pub(super) struct Measurement<'a> {
    pub(super) sizes: Sizes,
    pub(super) invalid: usize,
    pub(super) queued: usize,
    pub(super) version: &'a str,
    pub(super) age: Duration,
    pub(super) silence: Duration,
    pub(super) waiting: usize,
}

/// The owner of a registry's series. An informer may be asked for again before the last informer of
/// that name has ended: both feed the same series. Informers of another registry have separate
/// series.
#[derive(Default)]
pub(super) struct SeriesOwner;

impl SeriesOwner {
    /// Returns a number that no other living owner has: the address.
    fn owner(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).addr()
    }
}

/// Label values: the informer's name; group, version and plural of the kind.
type Labels = [String; 4];

/// The series of an informer.
pub(super) struct Meter {
    metrics: Metrics,
    labels: Labels,
    resource: String,
    levels: [GaugeSeries; GAUGES.len()],
    processing: HistogramSeries,
    _series: Arc<SeriesOwner>,
    is_over: AtomicBool,
}

impl Meter {
    pub(super) fn new(
        series: &Arc<SeriesOwner>,
        metrics: &Metrics,
        name: String,
        info: &ResourceInfo,
    ) -> Self {
        let mut labels =
            [name, info.group.to_string(), info.version.to_string(), info.plural.to_string()];
        metrics.series_owners().enter(series.owner(), &mut labels);
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

    /// Counts frames that were not newer than the cached object.
    pub(super) fn dropped(&self, frames: u64) {
        if frames > 0 {
            let labels = [self.resource.as_str(), "not_newer"];
            self.metrics.count(&names::INFORMER_DROPPED, &labels, frames);
        }
    }

    /// Records the time of a batch, from the queue to the listeners.
    pub(super) fn processed(&self, took: Duration) {
        self.processing.observe(took);
    }

    /// Sets the gauges.
    pub(super) fn read(&self, reading: &Measurement<'_>) {
        let digits = reading.version;
        // A gauge is an f64, which represents 15 digits exactly.
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

    /// Removes the series of an informer that has ended, unless another informer of the same name
    /// feeds the series by now.
    pub(super) fn forget(&self) {
        // `leave` must be called once per `enter`, and both the end and the drop call this.
        if self.is_over.swap(true, Ordering::Relaxed) {
            return;
        }
        self.metrics.series_owners().leave(&self.labels, || {
            for gauge in GAUGES {
                self.metrics.forget(gauge, &borrowed(&self.labels));
            }
            self.metrics.forget(&names::INFORMER_PROCESSING_SECONDS, &borrowed(&self.labels));
        });
    }
}

/// Removes the series of an informer that was never run, too.
impl Drop for Meter {
    fn drop(&mut self) {
        self.forget();
    }
}

fn borrowed(labels: &Labels) -> [&str; 4] {
    labels.each_ref().map(String::as_str)
}
