//! Caches of Kubernetes objects: a reflector lists and watches a kind, an apply queue orders its
//! deltas, a store holds the objects by key and by index, and an informer shares the cache among
//! listeners.
//!
//! Operators depend on `windlass`, which re-exports every public module of this crate. Items that
//! are hidden from these pages are shared between windlass's crates of the same version, and may
//! change in any release.

// The derives name the crate as users do.
#[cfg(test)]
extern crate self as windlass;

pub mod delta;
pub mod informer;
pub mod reflector;
pub mod store;

// Examples and derives name modules of the crates below as users of `windlass` do.
#[doc(hidden)]
pub use windlass_client::{
    __private, CustomResource, Error, ErrorKind, api, client, clock, conditions, crd, discovery,
    environment, error, metrics, rbac, resource, rng, wire,
};
