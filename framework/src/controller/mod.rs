//! Turns changes into keys and keys into reconciles.
//!
//! A [`Reconciler`] says what to do with one object; [`Wiring`] says what makes it look again: the
//! object itself, children it owns, other kinds it watches. Every change becomes the key of a parent
//! in one queue, and workers take keys from it. A reconcile that fails, panics or runs into its
//! deadline is retried with backoff and disturbs no other key.
//!
//! [`predicates`] say which changes count; a [`Trigger`], a [`Poll`] and a [`Timer`] wake objects for
//! what no watch shows; [`Reasons`] tell why an object is looked at.
//!
//! Absent: events handed to user code, and any state that a restart would miss.

mod action;
mod applied;
mod attend;
mod changes;
mod cluster;
mod context;
mod debounce;
mod dump;
mod echoes;
mod erased;
mod expectations;
mod failure;
mod feed;
mod giveup;
mod keys;
mod last;
mod limits;
mod meter;
mod namespaces;
mod pace;
mod paused;
mod polls;
pub mod predicates;
mod pump;
mod rare;
mod reasons;
mod report;
mod resync;
mod runtime;
mod sources;
mod spec;
mod step;
mod steps;
mod superseded;
mod timers;
mod triggers;
mod turn;
mod unrest;
mod waking;
mod wiring;
mod worker;

pub use action::Action;
pub use attend::{Attend, Attendance};
pub use changes::Changes;
pub use cluster::Cluster;
pub use context::{ApplyOwned, Context, ContextPatcher, Expectations, Pending};
pub use erased::{ControllerRun, ControllerState, ErasedController};
pub use failure::{Failure, ResultExt};
pub use giveup::Then;
pub use last::LastError;
pub use limits::LoopGuard;
pub use paused::PAUSED;
pub use polls::{Poll, Polled};
pub use predicates::Predicate;
pub use reasons::Reasons;
pub use report::OnFailure;
pub use steps::{Flow, Steps};
pub use timers::Timer;
pub use triggers::Trigger;
pub use unrest::Unrest;
pub(crate) use wiring::MOST_WORKERS;
pub use wiring::Wiring;

pub use crate::workqueue::RetryPolicy;

use std::future::Future;

use crate::resource::Resource;

/// What reconcilers return. With both parameters it is the one of the standard library, so that
/// importing the [`prelude`](crate::prelude) takes no name away.
pub type Result<T = Action, E = Failure> = std::result::Result<T, E>;

/// Brings the world in line with one object. Level-based: it is told which object, never why.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reconciler",
    note = "implement `windlass::controller::Reconciler`: `type Object` and `async fn reconcile`"
)]
pub trait Reconciler: Send + Sync + Sized + 'static {
    /// The kind it reconciles.
    type Object: Resource;

    /// Makes the world match `object`. Called for one object at most once at a time; again after an
    /// error, after a change of the object or of its children, and after every restart. Not called
    /// for an object that is marked for deletion: what is to be done then is
    /// [`Finalize::cleanup`].
    ///
    /// # Cancel safety
    /// The future is dropped when it runs into the controller's deadline, and at the end of a drain.
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
    /// Undoes what `reconcile` did outside of owned children; the finalizer is removed when it
    /// returns `Ok`. Must be repeatable: it may run again after it succeeded.
    fn cleanup(
        &self,
        object: &Self::Object,
        cx: &Context<Self>,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// A reconciler with its wiring; implemented by `#[derive(Controller)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no wiring",
    note = "derive `windlass::Controller` for it, or implement `fn wiring() -> Wiring<Self>`"
)]
pub trait Controller: Reconciler {
    /// What it watches, owns and may do.
    fn wiring() -> Wiring<Self>;
}

#[cfg(test)]
mod tests;
