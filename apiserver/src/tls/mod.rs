//! Listening on a socket: certificates, TLS, kubeconfig.
//!
//! The server makes its own authority, so nothing has to be installed and nothing is shared between two
//! runs. Serving requests is the same as in memory and not here.

mod authority;
mod identity;
mod kubeconfig;
mod listen;
#[cfg(test)]
mod tests;

pub(crate) use authority::Authority;
pub(crate) use listen::listen;
