//! Parts of [windlass](https://docs.rs/windlass) that need neither I/O nor tasks: Kubernetes
//! resources as types and as values, scanning of their JSON, definitions and permissions of types,
//! the error type, and the sources of time, randomness and metrics.
//!
//! Operators depend on `windlass`, which re-exports every public module of this crate. Items that
//! are hidden from these pages are shared between windlass's crates of the same version, and may
//! change in any release.

// The derives name the crate as users do.
#[cfg(test)]
extern crate self as windlass;

pub mod clock;
pub mod conditions;
pub mod crd;
pub mod environment;
pub mod error;
pub mod metrics;
#[doc(hidden)]
pub mod panics;
pub mod rbac;
pub mod resource;
pub mod rng;
#[doc(hidden)]
pub mod sync;
#[doc(hidden)]
pub mod text;
pub mod wire;

#[doc(hidden)]
pub mod __private;

pub use crd::CustomResource;
pub use error::{Error, ErrorKind};
