//! Credentials of requests, and the plugins that give them.

mod credentials;
mod exec;

pub(crate) use credentials::{AuthSource, Credentials};
pub(crate) use exec::{ClusterInfo, V1, V1BETA1};
pub use exec::{ExecPlugin, ExecPolicy, InteractiveMode};
