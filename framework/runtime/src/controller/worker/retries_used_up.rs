//! Action for an object whose retries are used up.

use std::time::Duration;

use crate::controller::Failure;

/// Action for an object when the retries of the
/// [`RetryPolicy::at_most`](crate::workqueue::RetryPolicy::at_most) are used up.
///
/// The end of the retries is reported by a Warning Event `GaveUp`, in the log, by the metric
/// `windlass_reconcile_given_up_total`, and by the failure settings of the
/// [`ControllerBuilder`](crate::controller::ControllerBuilder). The next change of the object, of a
/// child or of an object mapped to the object causes a usual reconcile, and retries are counted
/// from the start; resyncs, timers and requeues do not count as a change. After a change of the
/// spec, a further end of the retries is reported again.
#[derive(Clone, Copy, Debug, Default)]
pub enum AfterMaxRetries {
    /// No attempt until something changes.
    #[default]
    Rest,
    /// An attempt after each such time, for as long as the object fails.
    Every(Duration),
    /// The function is given the failure and the number of failures in a row, and returns the time
    /// until the next attempt; `None` is [`Rest`](Self::Rest). The function is called again after
    /// the next failure.
    Ask(fn(&Failure, u32) -> Option<Duration>),
}

impl AfterMaxRetries {
    /// Returns the time until the next attempt after `failures` failures in a row; `None` for no
    /// attempt.
    pub(crate) fn delay(self, failure: &Failure, failures: u32) -> Option<Duration> {
        match self {
            Self::Rest => None,
            Self::Every(delay) => Some(delay),
            Self::Ask(ask) => ask(failure, failures),
        }
    }
}
