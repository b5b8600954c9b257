//! What a queue is made for.

use std::time::Duration;

use super::RetryPolicy;

/// Longer than a burst of events lasts, shorter than a start-up with many objects.
const AGEING: Duration = Duration::from_secs(10);

/// What a queue is made for.
#[derive(Clone, Debug)]
#[must_use]
pub struct QueueSettings {
    pub(super) name: String,
    pub(super) controller: String,
    pub(super) workers: usize,
    pub(super) retry: RetryPolicy,
    pub(super) ageing: Duration,
    /// Reasons of keys that come back after a failure, and after a success.
    pub(super) retried: u64,
    pub(super) requeued: u64,
}

impl QueueSettings {
    /// A queue of that name (it labels the metrics), for one worker, retrying for ever.
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

    /// Label `controller` of the metrics. Default: the queue's name.
    pub fn controller(mut self, controller: impl Into<String>) -> Self {
        self.controller = controller.into();
        self
    }

    /// How many workers will take keys. Failing keys may hold at most half of them, at least one.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// How failed keys are retried.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// After how long a key is no longer passed over for its low [priority](super::Priority): from then on one of
    /// four turns goes to the key that has waited the longest. Default: 10 s.
    pub fn ageing(mut self, ageing: Duration) -> Self {
        self.ageing = ageing;
        self
    }

    /// The [reasons](super::Adding::reasons) of a key that comes back because its work failed. Default: none.
    pub fn retried_for(mut self, reasons: u64) -> Self {
        self.retried = reasons;
        self
    }

    /// The [reasons](super::Adding::reasons) of a key that comes back because its work asked for it
    /// ([`Work::after`](super::Work::after)). Default: none.
    pub fn requeued_for(mut self, reasons: u64) -> Self {
        self.requeued = reasons;
        self
    }
}
