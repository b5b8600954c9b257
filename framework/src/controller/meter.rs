//! The controller's metrics, under controller-runtime's names.

use std::time::Duration;

use crate::metrics::{Metrics, names};

/// How a reconcile ended, as `controller_runtime_reconcile_total` labels it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Success,
    RequeueAfter,
    Error,
    Terminal,
    Panic,
    Timeout,
}

impl Ended {
    fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Error | Self::Terminal | Self::Panic | Self::Timeout => "error",
        }
    }
}

/// Feeds `controller_runtime_*` for one controller.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    metrics: Metrics,
    controller: String,
}

impl Meter {
    /// Shows every series at 0.
    pub(super) fn new(metrics: Metrics, controller: &str, workers: usize) -> Self {
        let meter = Self { metrics, controller: controller.to_owned() };
        for result in ["success", "error", "requeue", "requeue_after"] {
            meter.metrics.count(&names::RECONCILE, &[controller, result], 0);
        }
        for counter in [
            &names::RECONCILE_ERRORS,
            &names::RECONCILE_TERMINAL_ERRORS,
            &names::RECONCILE_PANICS,
            &names::RECONCILE_TIMEOUTS,
        ] {
            meter.metrics.count(counter, &[controller], 0);
        }
        meter.metrics.set(&names::MAX_CONCURRENT_RECONCILES, &[controller], workers as f64);
        meter.metrics.set(&names::ACTIVE_WORKERS, &[controller], 0.0);
        meter
    }

    /// A worker is busy until the guard is dropped.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.metrics.add(&names::ACTIVE_WORKERS, &[&self.controller], 1.0);
        Busy { meter: self }
    }

    /// A reconcile ended after `took`.
    pub(super) fn ended(&self, how: Ended, took: Duration) {
        let controller = [self.controller.as_str()];
        self.metrics.count(&names::RECONCILE, &[&self.controller, how.label()], 1);
        self.metrics.observe(&names::RECONCILE_SECONDS, &controller, took);
        if how.label() == "error" {
            self.metrics.count(&names::RECONCILE_ERRORS, &controller, 1);
        }
        let special = match how {
            Ended::Terminal => &names::RECONCILE_TERMINAL_ERRORS,
            Ended::Panic => &names::RECONCILE_PANICS,
            Ended::Timeout => &names::RECONCILE_TIMEOUTS,
            Ended::Success | Ended::RequeueAfter | Ended::Error => return,
        };
        self.metrics.count(special, &controller, 1);
    }
}

/// A busy worker.
#[derive(Debug)]
pub(super) struct Busy<'a> {
    meter: &'a Meter,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.meter.metrics.add(&names::ACTIVE_WORKERS, &[&self.meter.controller], -1.0);
    }
}
