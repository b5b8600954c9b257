//! The client against a real kube-apiserver: identity, protocols, restarts, and writes over a
//! network that cuts connections. See `tests/README.md`.

#![allow(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

mod answers;
mod bench;
mod caches;
mod certificates;
mod fence;
mod identity;
mod plugins;
mod protocol;
mod proxy;
mod restart;
mod servers;
mod set_back;
mod webhooks;
mod writes;
