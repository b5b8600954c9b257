//! The gauges of one informer, looked up once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::metrics::{GaugeSeries, Metrics, names};
use crate::resource::ResourceInfo;
use crate::store::Sizes;
use crate::sync::Mutex;

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

/// Who feeds which series: an informer may be asked for again before the last of its name has ended.
#[derive(Default)]
pub(super) struct Series(Mutex<BTreeMap<Labels, usize>>);

/// The informer's name; group, version and plural of its kind.
type Labels = [String; 4];

pub(super) struct Meter {
    metrics: Metrics,
    labels: Labels,
    resource: String,
    levels: [GaugeSeries; GAUGES.len()],
    series: Arc<Series>,
    is_over: AtomicBool,
}

impl Meter {
    pub(super) fn new(
        series: &Arc<Series>,
        metrics: &Metrics,
        name: String,
        info: &ResourceInfo,
    ) -> Self {
        let labels =
            [name, info.group.to_string(), info.version.to_string(), info.plural.to_string()];
        let mut feeding = series.0.lock();
        *feeding.entry(labels.clone()).or_default() += 1;
        let levels = GAUGES.map(|gauge| metrics.gauge(gauge, &borrowed(&labels)));
        drop(feeding);
        Self {
            metrics: metrics.clone(),
            labels,
            resource: info.group_resource(),
            levels,
            series: Arc::clone(series),
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
        let mut feeding = self.series.0.lock();
        let left = feeding.get(&self.labels).map_or(0, |count| count.saturating_sub(1));
        if left > 0 {
            feeding.insert(self.labels.clone(), left);
            return;
        }
        feeding.remove(&self.labels);
        for gauge in GAUGES {
            self.metrics.forget(gauge, &borrowed(&self.labels));
        }
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
