//! Settings of a queue.

use std::time::Duration;

use super::RetryPolicy;

/// Default ageing time: longer than a burst of events lasts, shorter than a start-up with many
/// objects.
const AGEING: Duration = Duration::from_secs(10);

/// Settings of a queue.
#[derive(Clone, Debug)]
#[must_use]
pub struct QueueSettings {
    pub(super) name: String,
    pub(super) controller: String,
    pub(super) workers: usize,
    pub(super) retry: RetryPolicy,
    pub(super) ageing: Duration,
    /// Reasons of keys that are requeued after a failure.
    pub(super) retried: u64,
    /// Reasons of keys that are requeued after a success.
    pub(super) requeued: u64,
}

impl QueueSettings {
    /// Returns the settings of a queue with this name (which labels the metrics), for a single
    /// worker, retrying for ever.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            controller: name.clone(),
            name,
            workers: 1,
            retry: RetryPolicy::forever(),
            ageing: AGEING,
            retried: 0,
            requeued: 0,
        }
    }

    /// Sets the label `controller` of the metrics. Default: the queue's name.
    pub fn controller(mut self, controller: impl Into<String>) -> Self {
        self.controller = controller.into();
        self
    }

    /// Sets the number of workers that will take keys; 0 counts as 1. Failing keys hold at most
    /// half of them, but may always hold a worker. Default: 1.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Sets the retry policy of failed keys. Default: [`RetryPolicy::forever`].
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Sets the time after which a key is no longer passed over because of low
    /// [priority](super::Priority): from then on one of four turns goes to the key that has waited
    /// the longest. Default: 10 s.
    pub fn ageing(mut self, ageing: Duration) -> Self {
        self.ageing = ageing;
        self
    }

    /// Sets the [reasons](super::AddOptions::reasons) of a key that is requeued after a failure.
    /// Default: none.
    pub fn retried_for(mut self, reasons: u64) -> Self {
        self.retried = reasons;
        self
    }

    /// Sets the [reasons](super::AddOptions::reasons) of a key that is requeued after a success
    /// ([`Work::after`](super::Work::after)). Default: none.
    pub fn requeued_for(mut self, reasons: u64) -> Self {
        self.requeued = reasons;
        self
    }
}
