//! The decisions of an election, without I/O: [`Machine`] runs the race for the lock, and
//! [`Handover`] lets processes ask for a lease and lend the lease.

mod handover;
mod machine;
mod own_records;

pub use handover::{Handover, HandoverPolicy};
pub use machine::{LockRequest, LockResponse, Machine};
pub(super) use machine::{LossReason, Reaction};
pub use own_records::OwnRecords;
