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

#[allow(unused_variables, clippy::unimplemented)]
impl<C: Reconciler> Wiring<C> {
    /// Nothing but the kind itself.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { _controller: PhantomData }
    }

    /// Owns children of kind `K`.
    #[must_use]
    pub fn owns<K: Resource>(self) -> Self {
        unimplemented!()
    }

    /// Watches `K`; `keys` says which objects a change concerns.
    #[must_use]
    pub fn watches<K: Resource>(
        self,
        keys: fn(&crate::store::Cached<K>) -> Vec<crate::resource::ObjectKey>,
    ) -> Self {
        unimplemented!()
    }

    /// Runs `cleanup` before an object disappears.
    #[must_use]
    pub fn finalizer(self, name: &'static str) -> Self
    where
        C: Finalize,
    {
        unimplemented!()
    }

    /// May use verb `V` on `K`.
    #[must_use]
    pub fn can<V: crate::rbac::verbs::VerbType, K: Resource>(self) -> Self {
        unimplemented!()
    }

    /// Name of the controller.
    #[must_use]
    pub fn name(self, name: &'static str) -> Self {
        unimplemented!()
    }

    /// Number of objects reconciled at once.
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        unimplemented!()
    }
}
