//! Probes, metrics and the debug page: their server, and the state of the operator and of its
//! process that they show.

pub(super) mod debug;
pub(super) mod health;
pub(super) mod http;
pub(super) mod memory;
mod process;

pub use self::health::{Check, Readiness};
pub(super) use self::health::{OperatorStatus, SharedStatus};
