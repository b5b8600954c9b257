//! Queues of changes, between whoever learns of them and whoever acts on them.
//!
//! [`DeltaQueue`] is the one that informers run on; [`Handoff`] is the place where its two sides
//! meet.
//!
//! No I/O and no runtime: the queues are plain data, and what waits here waits for another task
//! only.

mod handoff;
mod queue;

pub use handoff::{Handoff, Turn};
pub use queue::{Delta, DeltaQueue, Keyed};
