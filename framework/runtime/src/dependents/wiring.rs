//! Watches and permissions of a graph.

use super::node::{AnyKind, AnyNode};
use super::{Dependents, Object};
use crate::controller::{ControllerBuilder, Reconciler};
use windlass_core::resource::{Resource, ResourceInfo};

/// Adds each kind of the graph to the controller once. A kind is optional if all of its fields are.
///
/// # Panics
/// When a child is of the reconciled kind, and when a kind is retired that a field has.
pub(super) fn wire<G: Dependents>(
    mut builder: ControllerBuilder<G::Controller>,
) -> ControllerBuilder<G::Controller> {
    let (nodes, retired) = (G::nodes(), G::retired());
    let own = <Object<G> as Resource>::static_info();
    if let Some(text) = fault(own.as_ref(), &nodes, &retired) {
        panic!("the graph `{}` cannot be wired: {text}", G::NAME);
    }
    // By version too: each version of a kind that a field names has a cache of its own.
    let mut seen: Vec<Option<ResourceInfo>> = Vec::new();
    for node in &nodes {
        let info = node.kind().info();
        if seen.contains(&info) {
            continue;
        }
        let mut same = nodes.iter().filter(|other| other.kind().info() == info);
        builder = node.kind().owns(builder, same.all(|node| node.is_optional()));
        seen.push(info);
    }
    for kind in retired {
        if !seen.contains(&kind.info()) {
            builder = kind.retires(builder);
            seen.push(kind.info());
        }
    }
    builder
}

/// Returns what is wrong with the kinds of a graph. The derive compares kinds as they are written, and
/// does not see that two names, or two versions, are of one kind.
fn fault<C: Reconciler>(
    own: Option<&ResourceInfo>,
    nodes: &[Box<dyn AnyNode<C>>],
    retired: &[Box<dyn AnyKind<C>>],
) -> Option<String> {
    for node in nodes {
        if let (Some(own), Some(info)) = (own, node.kind().info())
            && own.group_resource() == info.group_resource()
        {
            return Some(format!(
                "its field `{}` is of the reconciled kind {info}, which has no children of its own \
                 kind: make the child of another kind",
                node.name()
            ));
        }
    }
    for kind in retired {
        let Some(info) = kind.info() else { continue };
        if own.is_some_and(|own| own.group_resource() == info.group_resource()) {
            return Some(format!(
                "`retired` names {info}, which is the reconciled kind: leave it out"
            ));
        }
        if let Some(node) = nodes.iter().find(|node| is_of(node.as_ref(), &info)) {
            return Some(format!(
                "`retired` names {info}, which is the kind of its field `{}`, maybe in another \
                 version: leave it out, since a field's children are removed without it",
                node.name()
            ));
        }
    }
    None
}

/// Whether a field has that kind, in whatever version.
fn is_of<C: Reconciler>(node: &dyn AnyNode<C>, info: &ResourceInfo) -> bool {
    node.kind().info().is_some_and(|its| its.group_resource() == info.group_resource())
}
