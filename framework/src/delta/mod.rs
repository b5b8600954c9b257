//! Queues of changes, between whoever learns of them and whoever acts on them.
//!
//! | queue | a waiting key has | bound | for |
//! |---|---|---|---|
//! | [`DeltaQueue`] | at most a deletion and a state | twice the keys | caches: the informers run on it |
//! | [`Fifo`] | its newest object | the keys | work on what is, not on what happened |
//! | [`DeltaFifo`] | all its deltas, handed out together | none: whoever adds must be slower | what happened to each key |
//! | [`RealFifo`] | nothing merged: all deltas in the order of arrival | as made | what happened, across keys |
//!
//! All are plain data: no task, no lock, no time. [`Fifo`], [`DeltaFifo`] and [`RealFifo`] are
//! [`Queue`]s; [`Shared`] is the shell in which several tasks use one of them, [`Handoff`] the one
//! of [`DeltaQueue`]. What waits there waits for another task only.
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

mod batches;
mod closed;
mod contract;
mod delta_fifo;
mod fifo;
mod handoff;
mod known;
mod object_delta;
mod queue;
mod real_fifo;
mod rules;
mod shared;
#[cfg(test)]
mod tests;

pub use closed::{Closed, Synced, unsynced};
pub use contract::{Outcome, Queue, Replacement, Taken};
pub use delta_fifo::{DeltaFifo, Deltas};
pub use fifo::Fifo;
pub use handoff::{Handoff, Turn};
pub use known::Known;
pub use object_delta::{Deleted, DeltaType, ObjectDelta};
pub use queue::{Delta, DeltaQueue, Keyed};
pub use real_fifo::{RealDelta, RealFifo};
pub use rules::{Refused, Rules};
pub use shared::Shared;
