//! What happens to an object after its last retry.

use std::time::Duration;

use super::Failure;

/// What happens to an object when the retries of its
/// [`RetryPolicy::at_most`](crate::workqueue::RetryPolicy::at_most) are used up.
///
/// That an object was given up is told by a Warning Event `GaveUp`, in the log, by the metric
/// `windlass_reconcile_given_up_total`, and by what [`Wiring`](super::Wiring) was told to do at
/// failures. The next change of the object, of its children or of what it is mapped to reconciles it
/// as ever, and its retries are counted from the start; resyncs, timers and requeues do not count as
/// one. When its spec changed, that it is given up is told anew.
#[derive(Clone, Copy, Debug, Default)]
pub enum Then {
    /// It rests until something changes.
    #[default]
    Rest,
    /// It is tried again after each such time, for as long as it fails.
    Every(Duration),
    /// The function is told the failure and how many there were in a row, and says after which time
    /// to try again; `None` is [`Rest`](Self::Rest). It is asked again after the next failure.
    Ask(fn(&Failure, u32) -> Option<Duration>),
}

impl Then {
    /// When to try again after `failures` failures in a row; `None` for not at all.
    pub(super) fn delay(self, failure: &Failure, failures: u32) -> Option<Duration> {
        match self {
            Self::Rest => None,
            Self::Every(delay) => Some(delay),
            Self::Ask(ask) => ask(failure, failures),
        }
    }
}
