//! Leader election: campaigns for a Lease, and gates every write on holding it.
//!
//! Two replicas of an operator that write at the same time undo each other's work. An [`Elector`]
//! campaigns for a Lease; while holding the Lease, the elector's [`Term`] hands out a [`LeaseGate`]
//! that the client asks before every write. Validity counts from *before* the renewal was sent and
//! is measured by the clock by which the most time has passed, so a slow answer, a stopped process
//! or a suspended machine cannot extend the validity. Losing the lease ends the term, not the
//! process: the elector campaigns again.
//!
//! A candidate judges another holder by its own clock alone: it takes over after having seen the
//! Lease unchanged for the lease duration. Time stamps in the Lease are for human readers.
//!
//! The guarantee: with the defaults no two processes have a framework write executing at the same
//! time while their clocks and the server's run at rates within 1.15 of each other's, or within
//! 1.02 with writes that are at the server no later than 1.7 s after the gate permitted them: the
//! time on the way counts as a pause, because the server counts its timeout from the arrival. A
//! lease is given back only when no write that was made under the lease can still be executed; a
//! write that the caller gave up may still execute. The election's own writes (the Lease and the
//! events about it) are not gated, and neither are the effects of a command that was started in a
//! container. [`LeaderElection::fence`] adds a policy for the API server, which refuses writes that
//! come from elsewhere or later. A lease can be [lent](LeaderElection::lend) to a process that
//! [requests it](LeaderElection::ask).
//!
//! A process that creates the lock keeps the lock for a lease duration before leading: the lock may
//! have been deleted while the holder hangs. Only the first election on a server that this process
//! started itself need not wait. Not included: protection against other implementations that
//! recreate a deleted lock and work at once, sharding.
//!
//! Files: `decision` is the protocol without I/O, which the simulation tests; `elector` runs
//! campaigns and `term` the term of a campaign, with the state in `shared`; `gate` decides about
//! each write; `lock` has the stores of the record; `settings` names and choices, `durations` the
//! durations and the rules between durations; `callbacks` client-go's interface.
//!
//! Lock order: an elector's `gate` before the gate's own `renewed`; neither is held across an
//! `await`.

mod callbacks;
mod decision;
mod durations;
mod elector;
mod fence;
mod gate;
mod health;
mod lock;
mod settings;
mod shared;
mod term;

pub use callbacks::{ElectionOutcome, LeaderCallbacks};
pub use elector::Elector;
pub(crate) use fence::{Fenced, policy as fence_policy};
pub use gate::LeaseGate;
pub use health::HealthzAdaptor;
pub use lock::{
    ConfigMapLock, EndpointsLock, LEADER_ANNOTATION, LeaderElectionRecord, LeaseLock, LockFuture,
    LockKind, LockListener, MultiLock, ObservedRecord, REQUEST_ANNOTATION, ResourceLock,
    UNKNOWN_LEADER,
};
pub(crate) use settings::LOST;
pub use settings::LeaderElection;
pub use shared::Leadership;
pub use term::Term;

/// Parts of an election that `windlass-testing` runs in simulations.
#[doc(hidden)]
pub mod simulated {
    pub use super::decision::{
        Handover, HandoverPolicy, LockRequest, LockResponse, Machine, OwnRecords,
    };
    pub use super::durations::LeaseDurations;
    pub use super::gate::{remaining, worth_sending};
    pub use super::shared::WRITE_DRAIN;
}

#[cfg(test)]
mod tests;
