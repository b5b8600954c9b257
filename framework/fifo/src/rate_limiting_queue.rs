//! A queue whose retries are spaced out by a rate limiter, as client-go's `RateLimitingInterface`.
//!
//! All other methods are those of the [`WorkQueue`] to which the queue derefs: `get`, `add`,
//! `shutdown` and their siblings. Retries by the queue's own policy and by the limiter can be
//! mixed, but count apart.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

use super::rate_limiter::RateLimiter;
use windlass_core::environment::Environment;
use windlass_runtime::workqueue::{QueueSettings, WorkQueue};

/// A [`WorkQueue`] and the limiter that delays the next try of a key.
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// # use std::{sync::Arc, time::Duration};
/// # use windlass::environment::Environment;
/// use windlass::fifo::{ItemExponentialFailureRateLimiter, RateLimitingQueue};
/// use windlass::workqueue::QueueSettings;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let (base, max) = (Duration::from_millis(1), Duration::from_secs(1));
/// let limiter = Arc::new(ItemExponentialFailureRateLimiter::new(base, max));
/// let queue = RateLimitingQueue::new(QueueSettings::new("sites"), &Environment::system(), limiter);
/// queue.add_rate_limited("home");
/// let work = queue.get().await.expect("not shut down");
/// assert_eq!(queue.num_requeues(work.key()), 1);
/// queue.forget(work.key()); // it went well
/// work.done();
/// # });
/// ```
///
/// Cheap to clone; clones share queue and limiter.
pub struct RateLimitingQueue<T: Hash + Eq + Clone> {
    /// The queue, which knows nothing of the limiter.
    queue: WorkQueue<T>,
    /// Decides the delays.
    limiter: Arc<dyn RateLimiter<T>>,
}

impl<T: Hash + Eq + Clone + Send + 'static> RateLimitingQueue<T> {
    /// Returns an empty queue.
    pub fn new(
        settings: QueueSettings,
        environment: &Environment,
        limiter: Arc<dyn RateLimiter<T>>,
    ) -> Self {
        Self { queue: WorkQueue::new(settings, environment), limiter }
    }
}

impl<T: Hash + Eq + Clone> RateLimitingQueue<T> {
    /// Adds `key` after the delay that the limiter returns.
    ///
    /// client-go's `AddRateLimited`. Never waits. A key that waits for an earlier time keeps that
    /// time.
    pub fn add_rate_limited(&self, key: T) {
        let delay = self.limiter.when(&key);
        self.queue.add_after(key, delay);
    }

    /// Forgets a key's tries: the key succeeded, or will not be tried again. A key that waits in
    /// the queue stays there.
    ///
    /// client-go's `Forget`.
    pub fn forget(&self, key: &T) {
        self.limiter.forget(key);
    }

    /// Returns the number of times that `key` was added by
    /// [`add_rate_limited`](Self::add_rate_limited) since the key was last forgotten.
    pub fn num_requeues(&self, key: &T) -> u32 {
        self.limiter.num_requeues(key)
    }
}

impl<T: Hash + Eq + Clone> Deref for RateLimitingQueue<T> {
    type Target = WorkQueue<T>;

    fn deref(&self) -> &WorkQueue<T> {
        &self.queue
    }
}

impl<T: Hash + Eq + Clone> Clone for RateLimitingQueue<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), limiter: Arc::clone(&self.limiter) }
    }
}

impl<T: Hash + Eq + Clone> fmt::Debug for RateLimitingQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitingQueue")
            .field("queue", &self.queue)
            .field("limiter", &self.limiter)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ItemFastSlowRateLimiter;

    #[tokio::test(start_paused = true)]
    async fn mechanism_68_at_most_five_tries_then_forget_as_the_articles_handle_errors() {
        let (fast, slow) = (Duration::from_millis(10), Duration::from_secs(1));
        let limiter = Arc::new(ItemFastSlowRateLimiter::new(fast, slow, 3));
        let queue =
            RateLimitingQueue::new(QueueSettings::new("sites"), &Environment::system(), limiter);
        let started = tokio::time::Instant::now();
        queue.add("home");
        let mut tries = 0;
        while let Some(work) = queue.get().await {
            tries += 1;
            let key = *work.key();
            if queue.num_requeues(&key) < 5 {
                queue.add_rate_limited(key);
                work.done();
                continue;
            }
            queue.forget(&key);
            work.done();
            queue.shutdown();
        }
        assert_eq!(tries, 6);
        assert_eq!(started.elapsed(), Duration::from_millis(2030));
        assert_eq!(queue.num_requeues(&"home"), 0);
    }
}
