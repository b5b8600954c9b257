//! A Kubernetes operator framework: derive a resource, write one `reconcile`, run a correct operator.

// The derives name the crate as users do.
#[cfg(test)]
extern crate self as windlass;

pub mod clock;
pub mod entropy;
pub mod error;
pub mod metrics;
pub mod seams;

pub mod resource;
pub mod wire;

pub mod api;
pub mod client;
pub mod crd;

pub mod delta;
pub mod informer;
pub mod reflector;
pub mod store;

pub mod workqueue;

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

#[cfg(feature = "testing")]
pub mod testing;

pub use error::{Error, ErrorKind};
pub use windlass_macros::{Controller, CustomResource};
