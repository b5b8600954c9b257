//! Client of the Kubernetes API: single requests, with credentials, TLS, retries, deadlines and
//! limits; typed verbs on top; discovery of the kinds that a server has.
//!
//! Operators depend on `windlass`, which re-exports every public module of this crate; a program
//! that only sends requests depends on this crate alone. Items that are hidden from these pages are
//! shared between windlass's crates of the same version, and may change in any release.

// The derives name the crate as users do.
#[cfg(test)]
extern crate self as windlass;

pub mod api;
pub mod client;
pub mod discovery;

pub use api::Api;
pub use client::Client;
#[doc(no_inline)]
pub use windlass_core::{
    CustomResource, Error, ErrorKind, clock, conditions, crd, environment, error, metrics, rbac,
    resource, rng, wire,
};

#[doc(hidden)]
pub use windlass_core::__private;

/// The example of the crate's page compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateExample;
