//! Metrics of a webhook, under controller-runtime's names.

use std::time::Duration;

use http::StatusCode;
use windlass_core::metrics::{CounterSeries, GaugeSeries, HistogramSeries, Metrics, names};

/// Metrics of one path.
#[derive(Debug)]
pub(crate) struct Meter {
    metrics: Metrics,
    path: String,
    latency: HistogramSeries,
    in_flight: GaugeSeries,
    panics: CounterSeries,
}

impl Meter {
    /// Makes the series visible: those of the codes 200 and 500 as well, as controller-runtime
    /// does.
    pub(crate) fn new(metrics: &Metrics, path: &str) -> Self {
        for code in ["200", "500"] {
            metrics.count(&names::WEBHOOK_REQUESTS, &[path, code], 0);
        }
        Self {
            metrics: metrics.clone(),
            path: path.to_owned(),
            latency: metrics.histogram(&names::WEBHOOK_SECONDS, &[path]),
            in_flight: metrics.gauge(&names::WEBHOOK_IN_FLIGHT, &[path]),
            panics: metrics.counter(&names::WEBHOOK_PANICS, &[]),
        }
    }

    /// Counts a request until the value is dropped, also with the request.
    pub(crate) fn in_flight(&self) -> InFlight<'_> {
        self.in_flight.add(1.0);
        InFlight(&self.in_flight)
    }

    pub(crate) fn answered(&self, code: StatusCode, took: Duration) {
        self.metrics.count(&names::WEBHOOK_REQUESTS, &[&self.path, code.as_str()], 1);
        self.latency.observe(took);
    }

    pub(crate) fn panicked(&self) {
        self.panics.count(1);
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct InFlight<'a>(&'a GaugeSeries);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.add(-1.0);
    }
}
