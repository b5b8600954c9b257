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

use crate::controller::Reconciler;

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
