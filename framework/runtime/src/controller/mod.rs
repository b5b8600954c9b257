//! Turns changes into keys and keys into reconciles.
//!
//! A [`Reconciler`] handles one object; the [`ControllerBuilder`] lists the kinds whose changes
//! trigger it: the reconciled kind itself, owned children, other watched kinds. Every change is
//! mapped to the key of a parent object and added to a queue, from which workers take keys. A
//! reconcile that fails, panics or exceeds its deadline is retried with backoff and does not affect
//! other keys.
//!
//! [`predicates`] filter changes; a [`Trigger`], a [`Poll`] or a [`Timer`] enqueues objects for
//! causes that no watch shows; [`Reasons`] list the causes of a reconcile.
//!
//! Absent by design: events handed to user code, and any state that a restart would lose.
//!
//! The parts from the lowest layer to the highest: `outcome` has the results of a reconcile and
//! `cluster` the other clusters; `state` is the memory between attempts of an object; `source`
//! turns changes and points in time into keys; `planned` records and compares writes that are dry
//! runs; `conditions` computes the conditions of an object; `worker` takes keys and decides about
//! retries; `context` is the interface of an attempt; `spec` has the settings; `reconcile` runs an
//! attempt with finalizer, steps and task; `run` starts and stops all these parts; `builder`
//! collects the settings.
//!
//! Invariants: one object is reconciled by at most one worker at a time; a key that is added during
//! the key's reconcile is reconciled once more; a lost in-memory state costs requests or a
//! superfluous reconcile, never correctness.

// DESIGN.md, 111: The controller is layers of folders

mod builder;
mod cluster;
mod conditions;
mod context;
mod outcome;
mod planned;
mod reconcile;
mod run;
mod source;
mod spec;
mod state;
mod worker;

#[doc(hidden)]
pub use builder::MOST_WORKERS;
pub use builder::{ChangeFuture, ControllerBuilder};
pub use cluster::Cluster;
pub use context::{
    ApplyOwned, CheckedApi, Context, ContextPatcher, Expectations, OwnsConditions, SetCondition,
    TaskContext, WatchFuture, WatchRead, WatchScope, WatchTarget, note_external_call,
};
pub(crate) use outcome::is_refusal;
pub use outcome::{Action, Failure, ResultExt};
pub use planned::{
    PlannedAction, PlannedChange, PlannedEvent, PlannedField, PlannedObject, PlannedOutcome,
};
#[doc(hidden)]
pub use reconcile::{
    AdmissionFuture, ObservedReconcile, ReconcileEnd, ReconcileObserver, current_reconcile,
};
pub use reconcile::{Flow, ObjectTask, OnFailure, Steps};
pub(crate) use reconcile::{records, soonest};
#[doc(hidden)]
pub use run::PlanRun;
pub use run::{BusyReport, ControllerRun, ControllerState, ErasedController};
pub use source::{PAUSED, Poll, PollHandle, Predicate, Reasons, Timer, Trigger, predicates};
#[doc(hidden)]
pub use state::ExternalRegistry;
pub(crate) use state::part_of;
pub use state::{ChangeLog, Changes, LastError, Pending};
pub use worker::{AfterMaxRetries, LoopGuard};

pub use crate::workqueue::RetryPolicy;

use std::future::Future;

use windlass_core::resource::Resource;

/// The return type of reconcilers. With both parameters the alias is the standard library's
/// `Result`, so importing the [`prelude`](crate::prelude) shadows nothing.
///
/// The error type defaults to [`Failure`], into which `?` converts every error.
pub type Result<T = Action, E = Failure> = std::result::Result<T, E>;

/// Brings the world in line with an object. Level-based: the reconciler is given an object, not an
/// event.
///
/// One instance serves all workers of the controller, hence `Send + Sync`. Values that reconciles
/// share (clients of other systems, configuration) are fields of the implementing type; state that
/// must survive a restart belongs into the cluster.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::events::Warning;
/// use windlass::prelude::*;
///
/// /// Logs a line for each map that has no data.
/// struct EmptyMaps;
///
/// impl Reconciler for EmptyMaps {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
///         if map.data.as_ref().is_none_or(|data| data.is_empty()) {
///             cx.event(Warning, "NoData", "the map holds no data");
///         }
///         Ok(Action::done())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reconciler",
    note = "implement `windlass::controller::Reconciler`: `type Object` and `async fn reconcile`"
)]
pub trait Reconciler: Send + Sync + Sized + 'static {
    /// The reconciled kind.
    type Object: Resource;

    /// Makes the world match `object`. Runs for one object at most once at a time. Runs again after
    /// an error, after a change of the object or of a child, and after every restart. Does not run
    /// for an object that is marked for deletion: see [`Finalize::cleanup`].
    ///
    /// `object` is the state in the cache when the reconcile began, own writes of earlier
    /// reconciles included, and does not change meanwhile. Returning [`Action::done`] means that
    /// the world matches the object; see [`Action::requeue_after`] for work that goes on elsewhere.
    ///
    /// # Cancel safety
    /// The future is dropped on exceeding the controller's deadline, and at the end of a drain.
    /// # Errors
    /// Any error, by `?`. The error is logged, counted and retried with backoff, unless the
    /// [`Failure`] says otherwise. A panic counts as a failure, too, and ends neither the worker
    /// nor the process.
    fn reconcile(
        &self,
        object: &Self::Object,
        cx: &Context<Self>,
    ) -> impl Future<Output = Result<Action>> + Send;
}

/// Cleans up outside the cluster before an object disappears.
///
/// Objects of a controller with a [finalizer](ControllerBuilder::finalizer) stay in the API server,
/// marked for deletion, until the clean-up has succeeded. Children with owner references need no
/// clean-up: garbage collection deletes them.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::controller::Finalize;
/// use windlass::controller::ControllerBuilder;
/// use windlass::prelude::*;
///
/// struct Records;
///
/// # impl Records {
/// #     async fn delete_record(&self, _: &str) -> Result<()> { Ok(()) }
/// # }
/// impl Reconciler for Records {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
///         Ok(Action::done())
///     }
/// }
///
/// impl Finalize for Records {
///     async fn cleanup(&self, map: &ConfigMap, _: &Context<Self>) -> Result<()> {
///         // A record that is gone already is no error: this may be the second run.
///         self.delete_record(map.name()).await?;
///         Ok(())
///     }
/// }
///
/// let builder = ControllerBuilder::<Records>::new().finalizer("example.dev/record");
/// # let _ = builder;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has a finalizer but no clean-up",
    note = "implement `windlass::controller::Finalize` for it, or drop the finalizer"
)]
pub trait Finalize: Reconciler {
    /// Undoes everything that `reconcile` did outside of owned children; the finalizer is removed
    /// when this returns `Ok`. Must be repeatable: the clean-up may run again after a success.
    ///
    /// # Errors
    /// Any error; the object keeps the finalizer, and the clean-up is retried by the controller's
    /// policy. An object whose clean-up never succeeds is never deleted.
    ///
    /// # Cancel safety
    /// Dropped at the controller's deadline and at the end of a drain, as a reconcile.
    fn cleanup(
        &self,
        object: &Self::Object,
        cx: &Context<Self>,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// A reconciler with a builder; implemented by `#[derive(Controller)]`.
///
/// The derive writes [`builder`](Self::builder) from the attributes; a hand-written implementation
/// has the same effect:
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// use windlass::controller::ControllerBuilder;
/// use windlass::prelude::*;
///
/// struct Sites;
///
/// impl Reconciler for Sites {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
///         Ok(Action::done())
///     }
/// }
///
/// impl Controller for Sites {
///     fn builder() -> ControllerBuilder<Self> {
///         ControllerBuilder::new().owns::<Deployment>().workers(8)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a controller",
    note = "derive `windlass::Controller` for it, or implement `fn builder() -> ControllerBuilder<Self>`"
)]
pub trait Controller: Reconciler {
    /// Returns the kinds to watch and to own, the permissions and the settings of this controller.
    ///
    /// Called when the controller is added to a manager.
    /// [`Manager::controller_configured`] changes the returned builder for a single program.
    ///
    /// [`Manager::controller_configured`]: crate::manager::Manager::controller_configured
    fn builder() -> ControllerBuilder<Self>;
}

#[cfg(test)]
mod tests;
