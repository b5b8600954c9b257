//! Turns changes into keys and keys into reconciles.

mod action;
mod erased;
mod failure;

pub use action::Action;
pub use erased::{ControllerRun, ControllerState, ErasedController};
pub use failure::Failure;

use std::future::Future;
use std::marker::PhantomData;

use crate::resource::Resource;

/// What reconcilers return.
pub type Result<T = Action> = std::result::Result<T, Failure>;

/// What a reconcile can do and know. The grants hang on `C`.
#[derive(Debug)]
pub struct Context<C> {
    _controller: PhantomData<fn() -> C>,
}

/// Brings the world in line with one object. Level-based: it is told which object, never why.
pub trait Reconciler: Send + Sync + Sized + 'static {
    /// The kind it reconciles.
    type Object: Resource;

    /// Makes the world match `object`. Called for one object at most once at a time.
    fn reconcile(
        &self,
        object: &Self::Object,
        cx: &Context<Self>,
    ) -> impl Future<Output = Result<Action>> + Send;
}

/// Cleans up outside the cluster before an object disappears.
pub trait Finalize: Reconciler {
    /// Undoes what `reconcile` did outside of owned children; the finalizer is removed when it
    /// returns `Ok`. Must be repeatable.
    fn cleanup(
        &self,
        object: &Self::Object,
        cx: &Context<Self>,
    ) -> impl Future<Output = Result<()>> + Send;
}

/// A reconciler with its wiring; implemented by `#[derive(Controller)]`.
pub trait Controller: Reconciler {
    /// What it watches, owns and may do.
    fn wiring() -> Wiring<Self>;
}

/// What a controller watches, owns and may do.
#[derive(Debug)]
pub struct Wiring<C> {
    _controller: PhantomData<fn() -> C>,
}
