//! Probes, metrics and the debug page: the server, and the shown state of the operator and the
//! process.

mod bind;
pub(super) mod debug;
pub(super) mod health;
pub(super) mod http;
pub(super) mod memory;
mod process;

pub(crate) use self::bind::Bind;
pub(super) use self::health::{OperatorStatus, SharedStatus};
