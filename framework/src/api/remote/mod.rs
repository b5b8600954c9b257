//! Talks to what runs in a pod: exec, attach and port-forward.
//!
//! A reconcile sometimes has to ask a program in a container, because what it manages has no other
//! door: a database that is told to back itself up, a cluster member that is asked for its peers.
//! [`Api::exec`] starts a command, [`Api::attach`] joins the one that runs, [`Api::port_forward`]
//! opens connections to a pod's ports.
//!
//! Each is a WebSocket on a connection of its own, opened by HTTP/1.1 with the client's credentials,
//! TLS and proxy. It is not one of the pooled connections, and [layers](crate::client::ClientBuilder::layer) do
//! not see it. Buffers are bounded in both directions: a reader that stops reading stops the server,
//! and a program that stops reading stops the writer. All streams of one session share its
//! connection, so a standing `stdout` also holds back `stderr` and the exit status. Drop what is not
//! wanted, then it is thrown away.
//!
//! The connection is watched by pings every 15 s; one that says nothing for 45 s is given up. While
//! input waits for the program to read it, the server does not answer pings; then it is 10 minutes.
//! Servers close sessions that carried no data for four hours.
//!
//! # Permissions
//! A role needs both `get` and `create` on `pods/exec`, `pods/attach` and `pods/portforward`: the
//! request is a `GET`, and since Kubernetes 1.35 servers ask for `create` as well.
//! With [leader election](crate::leader), the lease is asked for as for a write; a session that is
//! open when the lease is lost ends when it is dropped, as it is with its reconcile.
//!
//! # Repetition
//! A command is never started twice: nothing is sent again once the server may have seen it. A
//! failure after that is [`ErrorKind::Ambiguous`](crate::ErrorKind::Ambiguous) for `exec`.
//!
//! # Logs
//! Nothing of ours logs what goes through a session. The WebSocket library does, in records of the
//! `log` crate with the target `tungstenite` at the level TRACE: whoever collects those has input and
//! output in the logs, so leave them out there.
//!
//! Absent: SPDY, and with it servers before 1.29 for half-closed input; copying of files; a
//! terminal. Connections are not opened anew behind the caller's back.

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
