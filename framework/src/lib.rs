//! A Kubernetes operator framework: derive a resource, write one `reconcile`, run a correct
//! operator.
//!
//! A custom kind is a struct that derives `CustomResource`; a
//! [`Reconciler`](controller::Reconciler) brings the world in line with the kind's objects; a
//! [`Manager`](manager::Manager) runs the reconciler with caches, queues, leader election, probes,
//! metrics and shutdown. [`prelude`] holds the names that most operators import.
//!
//! The modules lie in separate crates, which this crate re-exports: [`resource`], [`wire`], [`crd`]
//! and [`rbac`] are data (`windlass-core`, with the leaves [`clock`], [`rng`], [`metrics`] and
//! [`error`]); [`client`], [`api`] and [`discovery`] speak to the API server (`windlass-client`);
//! [`informer`], [`reflector`], [`delta`] and [`store`] keep caches (`windlass-cache`);
//! [`workqueue`] orders work, [`controller`] and its helpers do the work, [`leader`] and
//! [`manager`] run the controllers (`windlass-runtime`). The module `webhook` judges and changes
//! objects before they are stored, and is served to API servers (`windlass-webhook`, a feature).
//! [`fifo`] has the queues and rate limiters of client-go that no cache of windlass uses. A program
//! that only sends requests depends on `windlass-client` alone.
//!
//! Features: `ring` (default) or `aws-lc-rs` for TLS; `cli` for a command line; `local` for an API
//! server inside the program when no cluster is configured; `testing` for tests with that server;
//! `ws` for exec, attach and port-forward; `cold` for caches that are compressed; `webhook` for
//! admission webhooks.

// DESIGN.md, 118: The framework is seven crates and a façade

// The derives name the crate as users do.
#[cfg(test)]
extern crate self as windlass;

#[doc(hidden)]
pub mod __private;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "local")]
pub mod local;

#[doc(inline)]
pub use windlass_cache::{delta, informer, reflector, store};
#[doc(inline)]
pub use windlass_client::{api, client, discovery};
#[doc(inline)]
pub use windlass_core::{
    clock, conditions, crd, environment, error, metrics, rbac, resource, rng, wire,
};
#[doc(inline)]
pub use windlass_fifo as fifo;
#[doc(inline)]
pub use windlass_runtime::{
    controller, dependents, events, external, finalizer, leader, manager, owner, prelude, rollout,
    workqueue,
};
#[cfg(feature = "testing")]
#[doc(inline)]
pub use windlass_testing::testing;
#[cfg(feature = "webhook")]
#[doc(inline)]
pub use windlass_webhook as webhook;

/// A path of fields, checked by the compiler: `path!(Website: spec.template.replicas)` is a
/// [`FieldPath<Website, i32>`](resource::FieldPath).
///
/// Segments are Rust fields, of types of `k8s_openapi`, of a derived kind, or of any struct.
/// Options and boxes are passed implicitly; `ports[]` leads to each element of a list or value of a
/// map, `ports[0]` to a single element, `labels["app"]` to a single value of a map. The path is a
/// constant.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use windlass::path;
/// use windlass::resource::FieldPath;
///
/// const REPLICAS: FieldPath<Deployment, i32> = path!(Deployment: spec.replicas);
/// assert_eq!(REPLICAS.json_path()?, ".spec.replicas");
///
/// let images = path!(Deployment: spec.template.spec.containers[].image);
/// assert_eq!(images.json_path()?, ".spec.template.spec.containers[*].image");
/// let first = path!(Deployment: spec.template.spec.containers[0].image);
/// assert_eq!(first.json_pointer()?, "/spec/template/spec/containers/0/image");
/// assert_eq!(first.get(&Deployment::default()), None);
/// # Ok::<(), windlass::Error>(())
/// ```
///
/// A segment that is no field is an error of the compiler at that segment:
///
/// ```compile_fail,E0609
/// # use k8s_openapi::api::apps::v1::Deployment;
/// let replicas = windlass::path!(Deployment: spec.replica);
/// ```
#[macro_export]
macro_rules! path {
    ($($path:tt)*) => {
        $crate::__private::field_path!($crate; $($path)*)
    };
}

pub use windlass_core::{Error, ErrorKind};
// Each of the first two names is a trait and its derive macro.
#[doc(inline)]
pub use windlass_runtime::{
    ApplyConfiguration, ConditionType, Conditions, Controller, Convertible, CustomResource,
    Dependents, Projection, Schema, object,
};
