//! Queues of object changes, between producers such as reflectors and the consumers that apply the
//! changes.
//!
//! | queue | entries per waiting key | bound | for |
//! |---|---|---|---|
//! | [`DeltaQueue`] | at most a deletion and a state | twice the keys | caches, as in informers |
//! | [`Fifo`] | its newest object | the keys | current states, not changes |
//! | [`DeltaFifo`] | all its deltas at once | none: producers must be slower | changes by key |
//! | [`RealFifo`] | all its deltas, none merged | as made | changes in order, across keys |
//!
//! All are plain data without task, lock or time. [`Fifo`], [`DeltaFifo`] and [`RealFifo`] are
//! [`Queue`]s. [`Shared`] lets several tasks use one of them, and [`ApplyQueue`] does the same for
//! [`DeltaQueue`]; their waiters wait for other tasks only.
//!
//! ```
//! use std::collections::BTreeMap;
//! use windlass::delta::{Fifo, Outcome, Queue};
//!
//! let mut queue = Fifo::new(|pod: &(String, u32)| Ok(pod.0.clone()));
//! queue.add(("web-0".into(), 1))?;
//! queue.add(("web-1".into(), 1))?;
//! queue.add(("web-0".into(), 2))?;
//!
//! let mut seen = BTreeMap::new();
//! while let Some(outcome) = queue.pop(|(name, pod), _is_initial| {
//!     seen.insert(name.clone(), pod.1);
//!     Outcome::<()>::Done
//! }) {
//!     assert_eq!(outcome, Outcome::Done);
//! }
//! assert_eq!(seen, BTreeMap::from([("web-0".into(), 2), ("web-1".into(), 1)]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply_queue;
mod batches;
mod closed;
mod contract;
mod delta_fifo;
mod fifo;
mod known;
mod object_delta;
mod queue;
mod real_fifo;
mod rules;
mod shared;
#[cfg(test)]
mod tests;

pub use apply_queue::{ApplyPermit, ApplyQueue};
pub use closed::{Closed, Synced, unsynced};
pub use contract::{Outcome, Queue, Replacement, Taken};
pub use delta_fifo::{DeltaFifo, Deltas};
pub use fifo::Fifo;
pub use known::Known;
pub use object_delta::{Deleted, DeltaType, ObjectDelta};
pub use queue::{Delta, DeltaQueue, Keyed};
pub use real_fifo::{RealDelta, RealFifo};
pub use rules::{Refused, Rules};
pub use shared::Shared;
