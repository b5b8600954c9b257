//! Tests of the server through HTTP, by subject.

mod apply;
mod autoscalers;
mod crd;
mod errors;
mod evictions;
mod faults;
mod hostile;
mod policies;
mod protobuf;
mod server;
mod sessions;
mod sockets;
mod subresources;
mod tokens;
mod verbs;
mod watch;
pub(crate) mod webhooks;
