//! Turns changes into keys and keys into reconciles.
//!
//! A [`Reconciler`] handles one object; its [`ControllerBuilder`] lists the kinds whose changes
//! trigger it: the reconciled kind itself, owned children, other watched kinds. Every change is
//! mapped to the key of a parent object and added to one queue, from which workers take keys. A
//! reconcile that fails, panics or exceeds its deadline is retried with backoff and does not affect
//! other keys.
//!
//! [`predicates`] filter changes; a [`Trigger`], a [`Poll`] or a [`Timer`] enqueues objects for
//! causes that no watch shows; [`Reasons`] list the causes of a reconcile.
//!
//! Absent by design: events handed to user code, and any state that a restart would lose.

mod action;
mod builder;
mod cluster;
mod context;
mod failure;
mod plan;
mod reconcile;
mod run;
mod source;
mod state;
mod worker;

pub use action::Action;
pub use builder::ControllerBuilder;
#[doc(hidden)]
pub use builder::MOST_WORKERS;
pub use cluster::Cluster;
pub use context::{ApplyOwned, Context, ContextPatcher, Expectations, TaskContext};
pub use failure::{Failure, ResultExt};
pub use reconcile::{Flow, ObjectTask, OnFailure, Steps};
pub use run::{BusyReport, ControllerRun, ControllerState, ErasedController};
pub use source::{PAUSED, Poll, PollHandle, Predicate, Reasons, Timer, Trigger, predicates};
pub use state::{Changes, LastError, Pending};
pub use worker::{AfterMaxRetries, LoopGuard};

pub use crate::workqueue::RetryPolicy;

use std::future::Future;

use windlass_core::resource::Resource;

/// The return type of reconcilers. With both parameters given it is the standard library's
/// `Result`, so importing the [`prelude`](crate::prelude) shadows nothing.
pub type Result<T = Action, E = Failure> = std::result::Result<T, E>;

/// Brings the world in line with one object. Level-based: the reconciler is given an object, not an
/// event.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reconciler",
    note = "implement `windlass::controller::Reconciler`: `type Object` and `async fn reconcile`"
)]
pub trait Reconciler: Send + Sync + Sized + 'static {
    /// The reconciled kind.
    type Object: Resource;

    /// Makes the world match `object`. Runs for one object at most once at a time. Runs again after
    /// an error, after a change of the object or of its children, and after every restart. Does not
    /// run for an object that is marked for deletion: see [`Finalize::cleanup`].
    ///
    /// # Cancel safety
    /// The future is dropped when it exceeds the controller's deadline, and at the end of a drain.
    fn reconcile(
        &self,
        object: &Self::Object,
        cx: &Context<Self>,
    ) -> impl Future<Output = Result<Action>> + Send;
}

/// Cleans up outside the cluster before an object disappears.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has a finalizer but no clean-up",
    note = "implement `windlass::controller::Finalize` for it, or drop the finalizer"
)]
pub trait Finalize: Reconciler {
    /// Undoes everything that `reconcile` did outside of owned children; the finalizer is removed
    /// when this returns `Ok`. Must be repeatable: it may run again after it succeeded.
    fn cleanup(
        &self,
        object: &Self::Object,
        cx: &Context<Self>,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// A reconciler with its builder; implemented by `#[derive(Controller)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no wiring",
    note = "derive `windlass::Controller` for it, or implement `fn wiring() -> ControllerBuilder<Self>`"
)]
pub trait Controller: Reconciler {
    /// Returns the kinds to watch and to own, the permissions and the settings of this controller.
    fn wiring() -> ControllerBuilder<Self>;
}

#[cfg(test)]
mod tests;
