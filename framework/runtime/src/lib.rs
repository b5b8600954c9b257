//! Work queue, controllers and their helpers, leader election, and the manager that runs them.
//!
//! Operators depend on `windlass`, which re-exports every public module of this crate. Items that
//! are hidden from these pages are shared between windlass's crates of the same version, and may
//! change in any release.

// The derives name the crate as users do.
#[cfg(test)]
extern crate self as windlass;

mod children;
pub mod controller;
pub mod dependents;
pub mod events;
pub mod external;
pub mod finalizer;
pub mod leader;
pub mod manager;
pub mod owner;
pub mod prelude;
pub mod rollout;
pub mod workqueue;

#[doc(hidden)]
pub mod __private;

pub use controller::Controller;
pub use dependents::Dependents;
pub use windlass_macros::{
    ApplyConfiguration, ConditionType, Conditions, Controller, Convertible, CustomResource,
    Projection, Schema,
};

/// Items that the code of `windlass::webhook::cel!` names. Not public API: they may change in any
/// release.
#[doc(hidden)]
pub mod expansion {
    pub use windlass_macros::cel_expression;

    pub use crate::__private::path;
}

#[doc = include_str!("../../../macros/docs/object.md")]
#[macro_export]
macro_rules! object {
    ($($literal:tt)*) => {
        $crate::__private::object_literal!($crate; $($literal)*)
    };
}

// Examples and derives name modules of the crates below as users of `windlass` do.
#[doc(hidden)]
pub use windlass_cache::{delta, informer, reflector, store};
#[doc(hidden)]
pub use windlass_client::{
    CustomResource, Error, ErrorKind, api, client, clock, conditions, crd, discovery, environment,
    error, metrics, rbac, resource, rng, wire,
};
