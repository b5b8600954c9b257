//! The gauges of one informer, looked up once.

use std::time::Duration;

use crate::metrics::{GaugeSeries, Metrics, names};
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

pub(super) struct Meter {
    metrics: Metrics,
    /// Label `name`: the informer's.
    name: String,
    info: ResourceInfo,
    resource: String,
    levels: [GaugeSeries; GAUGES.len()],
}

impl Meter {
    pub(super) fn new(metrics: Metrics, name: String, info: ResourceInfo) -> Self {
        let labels = [&*name, &*info.group, &*info.version, &*info.plural];
        let levels = GAUGES.map(|gauge| metrics.gauge(gauge, &labels));
        let resource = info.group_resource();
        Self { metrics, name, info, resource, levels }
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

    /// The informer is gone, and its series with it.
    pub(super) fn forget(&self) {
        let labels = [&*self.name, &*self.info.group, &*self.info.version, &*self.info.plural];
        for gauge in GAUGES {
            self.metrics.forget(gauge, &labels);
        }
    }
}
