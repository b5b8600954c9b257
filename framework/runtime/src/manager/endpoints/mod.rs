//! Probes, metrics and the debug page: the server, and the shown state of the operator and the
//! process.

pub(super) mod debug;
pub(super) mod health;
pub(super) mod http;
pub(super) mod memory;
mod process;
mod settings;

pub use self::health::{Check, ProbeStatus};
pub(super) use self::health::{OperatorStatus, SharedStatus};
pub(crate) use self::settings::Bind;
