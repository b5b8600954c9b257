//! A Kubernetes API server in the test process, and the real server if its programs are installed.
//!
//! Operators depend on `windlass` with the feature `testing`, which re-exports [`testing`]. Items
//! that are hidden from these pages are shared between windlass's crates of the same version, and
//! may change in any release.

// The derives name the crate as users do.
#[cfg(test)]
extern crate self as windlass;

#[doc(hidden)]
pub mod embedded;
pub mod testing;

// Examples and derives name modules of the crates below as users of `windlass` do.
#[doc(hidden)]
pub use windlass_runtime::{
    __private, Controller, CustomResource, Error, ErrorKind, Projection, api, client, clock,
    conditions, controller, crd, delta, discovery, environment, error, events, external, finalizer,
    informer, leader, manager, metrics, owner, prelude, rbac, reflector, resource, rng, store,
    wire, workqueue,
};
