//! A Kubernetes operator framework: derive a resource, write one `reconcile`, run a correct
//! operator.
//! A kind of your own is a struct that derives `CustomResource`; a
//! [`Reconciler`](controller::Reconciler) brings the world in line with its objects; a
//! [`Manager`](manager::Manager) runs the reconciler with caches, queues, leader election, probes,
//! metrics and shutdown. [`prelude`] holds the names that most operators import.
//!
//! Modules import only from lower layers: [`resource`] and [`wire`] are data; [`client`], [`api`]
//! and [`discovery`] speak to the API server; [`informer`], [`reflector`], [`delta`] and [`store`]
//! keep caches; [`workqueue`] orders work; [`fifo`] has client-go's queues; [`controller`] and its helpers do it; [`leader`] and
//! [`manager`] run it. [`clock`], [`rng`], [`metrics`] and [`error`] are leaves that all may
//! use.
//!
//! Features: `ring` (default) or `aws-lc-rs` for TLS; `cli` for a command line; `local` for an API
//! server inside the program when no cluster is configured; `testing` for tests with one; `ws` for
//! exec, attach and port-forward; `cold` for caches that are compressed.

// The derives name the crate as users do.
#[cfg(test)]
extern crate self as windlass;

pub mod clock;
pub mod environment;
pub mod error;
pub mod metrics;
mod panics;
pub mod rng;
mod sync;

pub mod resource;
pub mod wire;

pub mod api;
pub mod client;
pub mod crd;
pub mod discovery;

pub mod delta;
pub mod informer;
pub mod reflector;
pub mod store;

pub mod workqueue;

pub mod fifo;

pub mod conditions;
pub mod controller;
pub mod events;
pub mod finalizer;
pub mod owner;
pub mod rbac;

#[doc(hidden)]
pub mod __private;

pub mod leader;
pub mod manager;

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(any(feature = "local", feature = "testing"))]
mod embedded;
#[cfg(feature = "local")]
pub mod local;
#[cfg(feature = "testing")]
pub mod testing;

pub mod prelude;

pub use controller::Controller;
pub use crd::CustomResource;
pub use error::{Error, ErrorKind};
pub use windlass_macros::{Controller, CustomResource, Projection};
