//! Tests of connections: their opening, their end, and the data on them.

mod auth_rotation;
mod connections;
mod header_rules;
mod layers;
mod proxy;
pub(in crate::client) mod tls;
