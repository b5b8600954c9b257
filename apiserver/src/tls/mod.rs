//! Listening on a socket: certificates, TLS, kubeconfig.
//!
//! The server makes a separate authority, so that nothing has to be installed and nothing is shared
//! between two runs. Requests are served by the same code as in memory.

mod authority;
mod clients;
mod kubeconfig;
mod listen;
mod sec1;
#[cfg(test)]
mod tests;

pub(crate) use authority::{Authority, PemIdentity, authorities};
pub use listen::Listening;
pub(crate) use listen::listen;
