//! Metrics: counters, gauges and histograms under controller-runtime's exact names, in a registry
//! per operator (never a global registry, so that several operators in the same process stay
//! apart).
//!
//! [`names`] is the whole catalogue; a metric that is not in the catalogue cannot be fed.
//!
//! A component asks once for a series ([`Metrics::counter`], [`Metrics::gauge`],
//! [`Metrics::histogram`]) and feeds the handle, which costs an atomic operation.
//! [`Metrics::count`] and the related methods look the series up in each call and suit rare events.
//!
//! ```
//! # extern crate windlass_core as windlass;
//! use std::time::Duration;
//! use windlass::metrics::{Metrics, names};
//!
//! let metrics = Metrics::new();
//! let reconciles = metrics.counter(&names::RECONCILE, &["website", "success"]);
//! reconciles.count(1);
//! metrics.observe(&names::RECONCILE_SECONDS, &["website"], Duration::from_millis(20));
//! assert_eq!(metrics.counted(&names::RECONCILE, &["website", "success"]), 1);
//!
//! // OpenMetrics, for a scraper.
//! let text = metrics.encode();
//! assert!(text.contains(r#"controller_runtime_reconcile_total{controller="website""#));
//! ```

mod gathered;
mod histogram;
pub mod names;
mod series_owners;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[doc(hidden)]
pub use self::gathered::{Durations, MetricSource};
use self::histogram::Histogram;
use self::series_owners::SeriesOwners;

/// Definition of a metric: name without the `_total` of counters, help text, label names and kind.
///
/// All definitions are in [`names`]: a metric with a definition of the caller's own feeds nothing.
#[derive(Debug)]
pub struct MetricDefinition {
    /// Name; counters get `_total` appended by the encoder.
    pub name: &'static str,
    /// Help text, without the final full stop.
    pub help: &'static str,
    /// Label names, in the order in which values are given.
    pub labels: &'static [&'static str],
    /// Kind of the metric.
    pub shape: Shape,
}

/// The three kinds of metrics.
///
/// The encoder prints the type as `# TYPE`.
#[derive(Debug)]
pub enum Shape {
    /// A value that only grows.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// A distribution over these upper bounds.
    Histogram(fn() -> Vec<f64>),
}

/// Label names and values of a series.
type Labels = Vec<(&'static str, String)>;

/// The series of a metric.
enum Instrument {
    Counter(Family<Labels, Counter>),
    Gauge(Family<Labels, Gauge<f64, AtomicU64>>),
    Histogram(Family<Labels, Histogram, Buckets>),
}

/// Upper bounds of a histogram, computed when the first series appears.
#[derive(Clone)]
struct Buckets(fn() -> Vec<f64>);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new((self.0)())
    }
}

/// A series of a counter. Feeding the handle costs no lookup. Cheap to clone.
///
/// The default handle counts nothing.
#[derive(Clone, Debug, Default)]
pub struct CounterSeries(Option<Counter>);

impl CounterSeries {
    /// Adds `n`.
    ///
    /// An `n` of 0 changes nothing: the series is visible since the handle was made.
    pub fn count(&self, n: u64) {
        if let Some(counter) = &self.0 {
            counter.inc_by(n);
        }
    }
}

/// A series of a gauge. Feeding the handle costs no lookup. Cheap to clone.
///
/// The default handle keeps nothing.
#[derive(Clone, Debug, Default)]
pub struct GaugeSeries(Option<Gauge<f64, AtomicU64>>);

impl GaugeSeries {
    /// Sets the value.
    ///
    /// Among several writers the last writer wins; feed a series from a single component.
    pub fn set(&self, value: f64) {
        if let Some(gauge) = &self.0 {
            gauge.set(value);
        }
    }

    /// Adds to the value; a negative number lowers it.
    ///
    /// For gauges that several components feed, such as the number of active workers.
    pub fn add(&self, value: f64) {
        if let Some(gauge) = &self.0 {
            gauge.inc_by(value);
        }
    }
}

/// A series of a histogram. Feeding the handle costs no lookup. Cheap to clone.
///
/// The default handle records nothing.
#[derive(Clone, Debug, Default)]
pub struct HistogramSeries(Option<Histogram>);

impl HistogramSeries {
    /// Records a duration, in seconds.
    pub fn observe(&self, duration: Duration) {
        self.record(duration.as_secs_f64());
    }

    /// Records a value that is not a duration, such as a size in bytes.
    pub fn record(&self, value: f64) {
        if let Some(histogram) = &self.0 {
            histogram.observe(value);
        }
    }

    /// Returns an empty collection for durations that are [added](Self::gather) to this series
    /// later.
    #[doc(hidden)]
    pub fn gathering(&self) -> Durations {
        Durations::new(self.0.as_ref().map(Histogram::bounds).unwrap_or_default())
    }

    /// Records all collected durations.
    #[doc(hidden)]
    pub fn gather(&self, durations: &Durations) {
        if let Some(histogram) = &self.0 {
            histogram.merge(durations.counts(), durations.sum());
        }
    }
}

/// The metrics of an operator; cheap to clone.
///
/// The default of a client is a separate registry; `Manager` serves the registry of the client's
/// environment under `/metrics`.
#[derive(Clone)]
pub struct Metrics {
    /// Shared by all clones.
    inner: Arc<Inner>,
}

/// The registry behind all handles.
struct Inner {
    /// Never changed after the creation, so no lock is needed.
    registry: Registry,
    /// Families by the name of their definition; the same families as in the registry.
    kept: BTreeMap<&'static str, Instrument>,
    /// Sources that add their numbers when the metrics are read.
    sources: Mutex<Vec<Weak<dyn MetricSource>>>,
    /// Owners of the series of informers.
    series_owners: SeriesOwners,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("families", &self.inner.kept.len()).finish()
    }
}

impl Metrics {
    /// Returns a registry with every family of [`names`] and no series yet.
    ///
    /// A family without series is not printed.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let mut kept = BTreeMap::new();
        for definition in names::ALL {
            let family = match definition.shape {
                Shape::Counter => {
                    let family = Family::default();
                    registry.register(definition.name, definition.help, family.clone());
                    Instrument::Counter(family)
                }
                Shape::Gauge => {
                    let family = Family::default();
                    registry.register(definition.name, definition.help, family.clone());
                    Instrument::Gauge(family)
                }
                Shape::Histogram(buckets) => {
                    let family = Family::new_with_constructor(Buckets(buckets));
                    registry.register(definition.name, definition.help, family.clone());
                    Instrument::Histogram(family)
                }
            };
            kept.insert(definition.name, family);
        }
        Self {
            inner: Arc::new(Inner {
                registry,
                kept,
                sources: Mutex::default(),
                series_owners: SeriesOwners::default(),
            }),
        }
    }

    /// Registers a source, which adds numbers before each reading, as long as the source exists.
    #[doc(hidden)]
    pub fn register_source(&self, source: Weak<dyn MetricSource>) {
        let mut sources = self.inner.sources.lock();
        // Dropped sources are removed here, because nothing else removes them.
        sources.retain(|known| known.strong_count() > 0);
        sources.push(source);
    }

    /// Returns the owners of the series of informers.
    #[doc(hidden)]
    pub fn series_owners(&self) -> &SeriesOwners {
        &self.inner.series_owners
    }

    /// Lets all sources add their numbers.
    fn gather(&self) {
        // Upgraded under the lock, used and dropped outside of the lock: the last reference to a
        // source may be dropped here, and `collect` takes further locks.
        let sources: Vec<_> = self.inner.sources.lock().iter().filter_map(Weak::upgrade).collect();
        sources.iter().for_each(|source| source.collect());
    }

    /// Returns the series of a counter with these label values, which is visible from now on.
    ///
    /// `values` stand in the order of [`MetricDefinition::labels`]. A `def` that is no counter of
    /// the catalogue gives a series that counts nothing.
    ///
    /// # Panics
    /// In debug builds, when there are more or fewer values than labels.
    pub fn counter(&self, definition: &MetricDefinition, values: &[&str]) -> CounterSeries {
        CounterSeries(match self.inner.kept.get(definition.name) {
            Some(Instrument::Counter(family)) => {
                Some(family.get_or_create_owned(&labels(definition, values)))
            }
            // A metric that is not in the catalogue feeds nothing.
            _ => None,
        })
    }

    /// Returns the series of a gauge with these label values, which is visible from now on.
    ///
    /// `values` and `def` as of [`counter`](Self::counter).
    ///
    /// # Panics
    /// As [`counter`](Self::counter).
    pub fn gauge(&self, definition: &MetricDefinition, values: &[&str]) -> GaugeSeries {
        GaugeSeries(match self.inner.kept.get(definition.name) {
            Some(Instrument::Gauge(family)) => {
                Some(family.get_or_create_owned(&labels(definition, values)))
            }
            _ => None,
        })
    }

    /// Returns the series of a histogram with these label values, which is visible from now on.
    ///
    /// `values` and `def` as of [`counter`](Self::counter); the buckets are those of the
    /// definition.
    ///
    /// # Panics
    /// As [`counter`](Self::counter).
    pub fn histogram(&self, definition: &MetricDefinition, values: &[&str]) -> HistogramSeries {
        HistogramSeries(match self.inner.kept.get(definition.name) {
            Some(Instrument::Histogram(family)) => {
                Some(family.get_or_create_owned(&labels(definition, values)))
            }
            _ => None,
        })
    }

    /// Adds `n` to a counter; 0 makes the series visible.
    pub fn count(&self, definition: &MetricDefinition, values: &[&str], n: u64) {
        self.counter(definition, values).count(n);
    }

    /// Sets a gauge.
    pub fn set(&self, definition: &MetricDefinition, values: &[&str], value: f64) {
        self.gauge(definition, values).set(value);
    }

    /// Removes a gauge's or a histogram's series, because the measured thing is gone.
    ///
    /// A counter stays: scrapers take a counter that is gone and comes back for a restart. Handles
    /// of a forgotten series feed nothing visible.
    pub fn forget(&self, definition: &MetricDefinition, values: &[&str]) {
        match self.inner.kept.get(definition.name) {
            Some(Instrument::Gauge(family)) => drop(family.remove(&labels(definition, values))),
            Some(Instrument::Histogram(family)) => drop(family.remove(&labels(definition, values))),
            _ => {}
        }
    }

    /// Returns the value of a gauge's series; `None` when there is no such series. For tests and
    /// debug dumps.
    pub fn level(&self, definition: &MetricDefinition, values: &[&str]) -> Option<f64> {
        self.gather();
        match self.inner.kept.get(definition.name) {
            Some(Instrument::Gauge(family)) => {
                family.get(&labels(definition, values)).map(|gauge| gauge.get())
            }
            _ => None,
        }
    }

    /// Adds to a gauge; negative values lower it.
    pub fn add(&self, definition: &MetricDefinition, values: &[&str], value: f64) {
        self.gauge(definition, values).add(value);
    }

    /// Records a duration, in seconds.
    pub fn observe(&self, definition: &MetricDefinition, values: &[&str], duration: Duration) {
        self.histogram(definition, values).observe(duration);
    }

    /// Records a value that is not a duration, such as a size in bytes.
    pub fn record(&self, definition: &MetricDefinition, values: &[&str], value: f64) {
        self.histogram(definition, values).record(value);
    }

    /// Returns the value of a counter's series; 0 when nothing was counted. For tests and debug
    /// dumps.
    pub fn counted(&self, definition: &MetricDefinition, values: &[&str]) -> u64 {
        self.gather();
        match self.inner.kept.get(definition.name) {
            Some(Instrument::Counter(family)) => {
                family.get(&labels(definition, values)).map_or(0, |counter| counter.get())
            }
            _ => 0,
        }
    }

    /// Returns all series in the OpenMetrics text format.
    ///
    /// Numbers that components count on their own are added first. The text is made in memory; the
    /// size of the text grows with the number of series.
    pub fn encode(&self) -> String {
        self.gather();
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = encode(&mut text, &self.inner.registry);
        text
    }
}

/// Pairs the names of the labels with their values.
fn labels(definition: &MetricDefinition, values: &[&str]) -> Labels {
    debug_assert_eq!(definition.labels.len(), values.len(), "label values of {}", definition.name);
    definition.labels.iter().copied().zip(values.iter().map(|value| (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_printed_under_controller_runtimes_name() {
        let metrics = Metrics::new();
        metrics.count(&names::RECONCILE, &["website", "success"], 2);
        let text = metrics.encode();
        assert!(
            text.contains(
                r#"controller_runtime_reconcile_total{controller="website",result="success"} 2"#
            ),
            "{text}"
        );
    }

    #[test]
    fn a_series_found_once_feeds_the_metric_of_its_labels() {
        let metrics = Metrics::new();
        let series = metrics.counter(&names::RECONCILE, &["website", "success"]);
        series.count(2);
        series.clone().count(1);
        assert_eq!(metrics.counted(&names::RECONCILE, &["website", "success"]), 3);
        assert_eq!(metrics.counted(&names::RECONCILE, &["website", "error"]), 0);
    }

    #[test]
    fn every_name_is_there_once() {
        let mut all: Vec<_> = names::ALL.iter().map(|definition| definition.name).collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
