//! Sessions with programs in a pod: exec, attach and port-forward.
//!
//! A reconcile sometimes has to use a program in a container, because the managed software has no
//! other interface: a backup of a database, the list of peers of a cluster member. [`Api::exec`]
//! starts a command, [`Api::attach`] joins the running command, [`Api::port_forward`] opens
//! connections to a pod's ports.
//!
//! Each is a WebSocket on a separate connection, opened by HTTP/1.1 with the client's credentials,
//! TLS and proxy. The connection is not in the pool, and
//! [layers](crate::client::ClientBuilder::layer) do not see the connection. Buffers are bounded in
//! both directions: a reader that stops reading stops the server, and a program that stops reading
//! stops the writer. All streams of a session share the connection, so an unread `stdout` also
//! holds back `stderr` and the exit status. Drop a stream that you do not need: the data of that
//! stream is then discarded.
//!
//! The connection is monitored by pings every 15 s and given up after 45 s without a message. While
//! input waits for the program to read the input, the server does not answer pings; the limit is
//! then 10 minutes. Servers close sessions that carried no data for four hours.
//!
//! # Permissions
//! A role needs both `get` and `create` on `pods/exec`, `pods/attach` and `pods/portforward`: the
//! request is a `GET`, and since Kubernetes 1.35 servers require `create` as well. With leader
//! election, the gate checks the lease as for a write; a session that is open when the lease is
//! lost ends when dropped, together with the reconcile.
//!
//! # Repetition
//! A command is never started twice: nothing is sent again once the server may have seen the
//! request. A failure after that is [`ErrorKind::Ambiguous`](windlass_core::ErrorKind::Ambiguous)
//! for `exec`.
//!
//! # Logs
//! The framework logs no data of a session. The WebSocket library does, in records of the `log`
//! crate with the target `tungstenite` at the level TRACE: a program that collects those has input
//! and output in its logs, so filter them out there.
//!
//! Not included: SPDY, and therefore servers before 1.29 for half-closed input; copying of files; a
//! terminal. No connection is reopened silently.

// DESIGN.md, 22: WebSocket sessions bypass the connection pool

#[cfg(doc)]
use super::Api;

mod driver;
mod exec;
mod forward;
mod session;
mod socket;
mod streams;
#[cfg(test)]
mod tests;
mod verdict;

pub use exec::ExecOptions;
pub use forward::{PortForward, PortStream};
pub use session::{Captured, Session};
pub use streams::{OutputReader, Stdin};
pub use verdict::ExitStatus;
