//! client-go's queues, for programs that are ported from client-go or feed a cache of their own.
//!
//! | queue | entries per waiting key | bound | for |
//! |---|---|---|---|
//! | [`Fifo`] | the newest object | the keys | current states, not changes |
//! | [`DeltaFifo`] | all its deltas at once | none: producers must be slower | changes by key |
//! | [`RealFifo`] | all deltas of the key, none merged | as made | changes in order, across keys |
//! | [`RateLimitingQueue`] | the key | the keys | work whose retries a [`RateLimiter`] delays |
//!
//! The first three are [`Queue`]s: plain data without task, lock or time. [`Shared`] lets several
//! tasks use such a queue; waiters wait for other tasks only. The last is a
//! [`WorkQueue`](windlass_runtime::workqueue::WorkQueue) with one of client-go's rate limiters.
//!
//! No other module of the framework uses these queues: informers run on
//! `windlass_cache::delta::DeltaQueue`, and controllers retry by a
//! [`RetryPolicy`](windlass_runtime::workqueue::RetryPolicy).
//!
//! ```
//! # extern crate windlass_fifo as windlass;
//! use std::collections::BTreeMap;
//! use windlass::fifo::{Fifo, ProcessOutcome, Queue};
//!
//! let mut queue = Fifo::new(|pod: &(String, u32)| Ok(pod.0.clone()));
//! queue.add(("web-0".into(), 1))?;
//! queue.add(("web-1".into(), 1))?;
//! queue.add(("web-0".into(), 2))?;
//!
//! let mut seen = BTreeMap::new();
//! while let Some(outcome) = queue.pop(|(name, pod), _is_initial| {
//!     seen.insert(name.clone(), pod.1);
//!     ProcessOutcome::<()>::Done
//! }) {
//!     assert_eq!(outcome, ProcessOutcome::Done);
//! }
//! assert_eq!(seen, BTreeMap::from([("web-0".into(), 2), ("web-1".into(), 1)]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The choice: an operator needs none of them, since its controllers have a queue of their own. A
//! cache of another design that is fed by a reflector takes a [`DeltaFifo`]; a cache that must see
//! each step, with a bound, a [`RealFifo`]. All of them are deterministic: equal calls lead to
//! equal pops.

// DESIGN.md, 114: client-go's queues are a crate that no other uses

// Derives and examples name the crate as users do.
#[doc(hidden)]
pub mod fifo {
    pub use crate::*;
}
#[doc(hidden)]
pub use windlass_runtime::{client, clock, delta, environment, error, resource, workqueue};

mod batches;
mod closed;
mod contract;
mod delta_fifo;
mod key_lister;
mod object_delta;
mod object_fifo;
mod rate_limiter;
mod rate_limiting_queue;
mod real_fifo;
mod rules;
mod shared;
#[cfg(test)]
mod tests;

pub use closed::{Closed, Synced, unsynced};
pub use contract::{ProcessOutcome, Queue, QueueItem, Replacement};
pub use delta_fifo::{DeltaFifo, Deltas};
pub use key_lister::KeyListerGetter;
pub use object_delta::{Deleted, DeltaType, ObjectDelta};
pub use object_fifo::Fifo;
pub use rate_limiter::{
    BucketRateLimiter, ItemExponentialFailureRateLimiter, ItemFastSlowRateLimiter,
    MaxOfRateLimiter, RateLimiter, WithMaxWaitRateLimiter, default_controller_rate_limiter,
};
pub use rate_limiting_queue::RateLimitingQueue;
pub use real_fifo::{RealDelta, RealFifo};
pub use rules::{EnqueueError, Rules};
pub use shared::Shared;
