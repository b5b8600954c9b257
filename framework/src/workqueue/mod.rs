//! A set of keys, each worked on by one worker at a time.
//!
//! Producers add keys, workers take them: many adds of one key between two takes are one piece of
//! work, a key that is added while it is in work comes back once that work ended, and a key whose
//! work failed comes back after a growing delay. A queue holds at most one entry per key, so the
//! number of keys bounds it.
//!
//! ```
//! # use windlass::{seams::Seams, workqueue::{QueueSettings, WorkQueue}};
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let queue = WorkQueue::new(QueueSettings::new("sites"), &Seams::system());
//! queue.add("home");
//! queue.add("home");
//! let work = queue.get().await.expect("not shut down");
//! assert_eq!(*work.key(), "home");
//! work.done();
//! assert_eq!(queue.counts().queued, 0);
//! # });
//! ```
//!
//! Absent: what a key means, priorities, and dropping keys for being too many.

mod backoff;
mod core;
mod limited;
mod limiter;
mod meter;
mod queue;

pub use backoff::RetryPolicy;
pub use core::QueueCounts;
pub use limited::RateLimitingQueue;
pub use limiter::{
    BucketRateLimiter, ItemExponentialFailureRateLimiter, ItemFastSlowRateLimiter,
    MaxOfRateLimiter, RateLimiter, WithMaxWaitRateLimiter, default_controller_rate_limiter,
};
pub use queue::{QueueSettings, Work, WorkQueue};

#[cfg(test)]
mod tests;
