//! Ordered changes of objects, between the reflectors that produce them and the store that applies
//! them.
//!
//! [`DeltaQueue`] keeps at most a deletion and a state of each waiting key, so the number of keys
//! bounds the queue, which is plain data without task, lock or time. [`ApplyQueue`] lets several
//! tasks use such a queue: waiters wait for other tasks only.
//!
//! Not included: client-go's queues, which hand out every change; they are in `windlass::fifo`.

mod apply_queue;
mod queue;

pub use apply_queue::{ApplyPermit, ApplyQueue};
pub use queue::{Delta, DeltaItem, DeltaQueue};
