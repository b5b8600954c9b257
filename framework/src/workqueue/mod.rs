//! A set of keys, each worked on by one worker at a time.
//!
//! Producers add keys, workers take them: many adds of one key between two takes are one piece of
//! work, a key that is added while it is in work comes back once that work ended, and a key whose
//! work failed comes back after a growing delay. A queue holds at most one entry per key, so the
//! number of keys bounds it. The entry of a key that rests is kept for the next time, and the key with it,
//! until it is [gone](Work::gone) or another one needs the entry: there are 4096 of them, 131,072 where keys
//! are those of [objects](WorkQueue::of_objects), or as many as once were in use at the same time.
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
//! An add can say how urgent the key is and why ([`Adding`]). Changes go before what a start or a
//! resync asks for, and nobody is passed over for ever.
//!
//! Absent: what a key or a reason means, and dropping keys for being too many.

mod adding;
mod backoff;
mod core;
mod describe;
mod inbox;
mod limited;
mod limiter;
mod meter;
mod queue;
mod room;
mod settings;
mod work;

pub use adding::{Adding, Priority};
pub use backoff::RetryPolicy;
pub(crate) use core::Notes;
pub use core::QueueCounts;
pub use describe::{KeyPlace, KeyState};
pub use limited::RateLimitingQueue;
pub use limiter::{
    BucketRateLimiter, ItemExponentialFailureRateLimiter, ItemFastSlowRateLimiter,
    MaxOfRateLimiter, RateLimiter, WithMaxWaitRateLimiter, default_controller_rate_limiter,
};
pub use queue::WorkQueue;
pub use settings::QueueSettings;
pub use work::Work;

#[cfg(test)]
mod tests;
