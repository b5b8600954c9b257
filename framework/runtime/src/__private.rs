//! Functions for the derive macros. Not public API: they may change in any release.

pub use windlass_core::__private::*;
pub use windlass_macros::{field_path, object_literal};

/// The parts of a graph of children.
pub mod dependents {
    pub use k8s_openapi::api::apps::v1::ControllerRevision;

    pub use crate::dependents::external::ExternalNode;
    pub use crate::dependents::graph_run::{FieldOutcome, GraphRun};
    pub use crate::dependents::main_graph::{GraphKinds, GraphName, MainGraph, NoGraph};
    pub use crate::dependents::marker::Marker;
    pub use crate::dependents::node::{
        AnyKind, AnyNode, DesiredFuture, GraphNode, Marked, OwnedKind,
    };
    pub use crate::dependents::rollout::RolloutNode;
    pub use crate::dependents::run::FieldOutcomes;
}

use std::future::Future;

use crate::controller::{ChangeFuture, Context, Reconciler, Result};

/// A reconciler of the kind `K`.
///
/// As a bound of the generated impl this trait reports a missing reconciler, or a reconciler of
/// another kind, once.
#[diagnostic::on_unimplemented(
    message = "the controller is `for = {K}`, but `{Self}` reconciles another kind",
    label = "`type Object` of the reconciler is another",
    note = "`#[controller(for = …)]` and `type Object = …` of the `Reconciler` name the same kind"
)]
pub trait Reconciles<K>: Reconciler {}

#[diagnostic::do_not_recommend]
impl<C: Reconciler, K> Reconciles<K> for C where C::Object: Is<K> {}

/// Compiles if `C` reconciles `K`. For generic controllers, of which a bound would be a condition.
pub fn reconciles<C: Reconciler, K>()
where
    C::Object: Is<K>,
{
}

/// A method or function of `on_change(…)`.
#[diagnostic::on_unimplemented(
    message = "`on_change` cannot run this handler",
    label = "expected `async fn(&self, &{O}, &Context<Self>) -> Result<()>`",
    note = "the handler is a method of `{C}`: `async fn name(&self, object: &{O}, cx: &Context<Self>) -> Result<()>`, \
            with the `Result` of `windlass::controller`"
)]
pub trait ChangeMethod<'a, C: Reconciler, O> {
    /// The running handler.
    type Done: Future<Output: Handled>;

    /// Starts the handler.
    fn start(self, controller: &'a C, object: &'a O, cx: &'a Context<C>) -> Self::Done;
}

#[diagnostic::do_not_recommend]
impl<'a, C, O, F, R> ChangeMethod<'a, C, O> for F
where
    C: Reconciler,
    O: 'a,
    F: FnOnce(&'a C, &'a O, &'a Context<C>) -> R,
    R: Future<Output: Handled>,
{
    type Done = R;

    fn start(self, controller: &'a C, object: &'a O, cx: &'a Context<C>) -> R {
        self(controller, object, cx)
    }
}

/// The result of a handler.
pub trait Handled {
    /// The same result.
    ///
    /// # Errors
    /// That of the handler.
    fn handled(self) -> Result<()>;
}

impl Handled for Result<()> {
    fn handled(self) -> Self {
        self
    }
}

/// Runs a handler of `on_change(…)`.
///
/// The future is a parameter: with bounds on `F::Done`, the compiler reports a handler of another
/// signature at the derive as well.
pub fn run_handler<'a, C, O, F, R>(
    controller: &'a C,
    object: &'a O,
    cx: &'a Context<C>,
    handler: F,
) -> ChangeFuture<'a>
where
    C: Reconciler,
    F: ChangeMethod<'a, C, O, Done = R>,
    R: Future<Output: Handled> + Send + 'a,
{
    boxed(handler.start(controller, object, cx))
}

/// Boxes a running handler. The type of the future is a parameter: the compiler does not find
/// `Send` of an associated type with a lifetime inside of an `async` block.
fn boxed<'a, R>(running: R) -> ChangeFuture<'a>
where
    R: Future<Output: Handled> + Send + 'a,
{
    Box::pin(async move { running.await.handled() })
}
