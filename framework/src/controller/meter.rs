//! The controller's metrics, under controller-runtime's names.

use std::time::Duration;

use crate::metrics::{CounterSeries, GaugeSeries, HistogramSeries, Metrics, names};

/// How a reconcile ended, as `controller_runtime_reconcile_total` labels it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Success,
    RequeueAfter,
    /// Dropped, to be started again at once.
    Superseded,
    Error,
    Terminal,
    Panic,
    Timeout,
}

/// Feeds `controller_runtime_*` for one controller.
#[derive(Clone, Debug)]
pub(super) struct Meter {
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
}

impl Meter {
    /// Shows every series at 0.
    pub(super) fn new(metrics: &Metrics, controller: &str, workers: usize) -> Self {
        let result = |result| metrics.counter(&names::RECONCILE, &[controller, result]);
        let counter = |def| metrics.counter(def, &[controller]);
        metrics.set(&names::MAX_CONCURRENT_RECONCILES, &[controller], workers as f64);
        Self {
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
        }
    }

    /// A worker is busy until the guard is dropped.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.active.add(1.0);
        Busy { active: &self.active }
    }

    /// An object was slowed down.
    pub(super) fn throttled(&self) {
        self.throttled.count(1);
    }

    /// An object's retries were used up.
    pub(super) fn gave_up(&self) {
        self.given_up.count(1);
    }

    /// A reconcile ended after `took`.
    pub(super) fn ended(&self, how: Ended, took: Duration) {
        self.seconds.observe(took);
        match how {
            Ended::Success => return self.success.count(1),
            Ended::RequeueAfter => return self.requeue_after.count(1),
            Ended::Superseded => return self.requeue.count(1),
            Ended::Error => {}
            Ended::Terminal => self.terminal.count(1),
            Ended::Panic => self.panics.count(1),
            Ended::Timeout => self.timeouts.count(1),
        }
        self.error.count(1);
        self.errors.count(1);
    }
}

/// A busy worker.
#[derive(Debug)]
pub(super) struct Busy<'a> {
    active: &'a GaugeSeries,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.active.add(-1.0);
    }
}
