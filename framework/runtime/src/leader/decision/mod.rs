//! The decisions of an election, without I/O: [`Machine`] runs the race for the lock, and
//! [`Handover`] lets processes ask for a lease and lend it.

mod handover;
mod machine;
mod own_records;

pub(super) use handover::{Handover, HandoverPolicy};
pub(super) use machine::{LockRequest, LockResponse, Loss, Machine, Reaction};
pub(super) use own_records::OwnRecords;
