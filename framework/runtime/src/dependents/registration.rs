//! Watches and permissions of a graph.

use super::node::{AnyKind, AnyNode, info_of};
use super::removal::delete_all;
use super::{Dependents, Object};
use crate::controller::{ControllerBuilder, Reconciler};
use windlass_core::resource::{Resource, ResourceInfo, Scope};

/// Adds each kind of the graph to the controller once. A kind is optional if all of its fields are.
///
/// # Panics
/// When a child is of the reconciled kind, when its scope needs another key, and when a kind is
/// retired that a field has.
pub(super) fn add_to<G: Dependents>(
    mut builder: ControllerBuilder<G::Controller>,
) -> ControllerBuilder<G::Controller> {
    let (nodes, retired) = (G::nodes(), G::retired());
    let own = <Object<G> as Resource>::static_info();
    if let Some(text) = fault(own.as_ref(), &nodes, &retired) {
        panic!("the graph `{}` cannot be added to the controller: {text}", G::NAME);
    }
    // By version too: each version of a kind that a field names has a cache of its own.
    let mut seen: Vec<Option<ResourceInfo>> = Vec::new();
    for node in &nodes {
        let Some(kind) = node.kind() else { continue };
        let info = kind.info();
        if seen.contains(&info) {
            continue;
        }
        let same = || nodes.iter().filter(|other| info_of(&***other) == info);
        let is_optional = same().all(|node| node.is_optional());
        builder = kind.owns(builder, is_optional, same().any(|node| node.has_marks()));
        seen.push(info);
    }
    if let Some(kind) = nodes.iter().find_map(|node| node.revisions())
        && !seen.contains(&kind.info())
    {
        builder = kind.owns(builder, false, false);
        seen.push(kind.info());
    }
    // An earlier version may have made children of these kinds elsewhere, and given the object a
    // finalizer for them.
    let may_have_former = !retired.is_empty();
    for kind in retired {
        if !seen.contains(&kind.info()) {
            builder = kind.retires(builder);
            seen.push(kind.info());
        }
    }
    builder = builder.drives(|controller| {
        G::nodes().iter().filter_map(|node| node.driver_name(controller)).collect()
    });
    // No garbage collection knows these.
    let finalizer = nodes.iter().find_map(|node| node.finalizer());
    if finalizer.is_some() || nodes.iter().any(|node| node.has_marks()) {
        builder = builder.cleans_up(finalizer, |controller, object, cx| {
            Box::pin(delete_all::<G>(controller, object, cx))
        });
    } else if may_have_former {
        builder = builder.cleans_up_former(|controller, object, cx| {
            Box::pin(delete_all::<G>(controller, object, cx))
        });
    }
    builder
}

/// Returns the fault of a graph's kinds. The derive compares kinds as they are written,
/// and does not see that two names, or two versions, are of one kind.
fn fault<C: Reconciler>(
    own: Option<&ResourceInfo>,
    nodes: &[Box<dyn AnyNode<C>>],
    retired: &[Box<dyn AnyKind<C>>],
) -> Option<String> {
    let of_fields = || nodes.iter().find_map(|node| own.and_then(|own| fault_of(own, &**node)));
    let of_retired = || retired.iter().find_map(|kind| fault_of_retired(own, nodes, &kind.info()?));
    of_fields().or_else(|| fault_of_finalizers(nodes)).or_else(of_retired)
}

/// Returns the fault of a field's kind.
fn fault_of<C: Reconciler>(own: &ResourceInfo, node: &dyn AnyNode<C>) -> Option<String> {
    let (info, name) = (info_of(node)?, node.name());
    if own.group_resource() == info.group_resource() {
        return Some(format!(
            "its field `{name}` is of the reconciled kind {info}, which has no children of its own \
             kind: make the child of another kind"
        ));
    }
    match (own.scope, info.scope, node.has_marks()) {
        (Scope::Namespaced, Scope::Cluster, false) => Some(format!(
            "its field `{name}` is of the cluster-scoped kind {info}, which a namespaced {} cannot own by \
             reference: write `#[dependent(scope = cluster)]` on it",
            own.kind
        )),
        (Scope::Cluster, _, true) => Some(format!(
            "its field `{name}` has `scope = cluster`, but {} is cluster-scoped and owns its children \
             everywhere by reference: leave it out",
            own.kind
        )),
        _ => None,
    }
}

/// Returns the fault of the finalizers of external resources.
fn fault_of_finalizers<C: Reconciler>(nodes: &[Box<dyn AnyNode<C>>]) -> Option<String> {
    let mut finalizers = nodes.iter().filter_map(|node| Some((node.name(), node.finalizer()?)));
    let (first, finalizer) = finalizers.next()?;
    let (name, other) = finalizers.find(|(_, other)| *other != finalizer)?;
    Some(format!(
        "its field `{name}` needs the finalizer {other}, and `{first}` needs {finalizer}: the external resources of \
         a graph share one, so give both the same `FINALIZER`"
    ))
}

/// Returns the fault of a retired kind.
fn fault_of_retired<C: Reconciler>(
    own: Option<&ResourceInfo>,
    nodes: &[Box<dyn AnyNode<C>>],
    info: &ResourceInfo,
) -> Option<String> {
    if own.is_some_and(|own| own.group_resource() == info.group_resource()) {
        return Some(format!("`retired` names {info}, which is the reconciled kind: leave it out"));
    }
    let node = nodes.iter().find(|node| is_of(node.as_ref(), info))?;
    Some(format!(
        "`retired` names {info}, which is the kind of its field `{}`, maybe in another \
         version: leave it out, since a field's children are removed without it",
        node.name()
    ))
}

/// Whether a field has that kind, in whatever version.
fn is_of<C: Reconciler>(node: &dyn AnyNode<C>, info: &ResourceInfo) -> bool {
    info_of(node).is_some_and(|its| its.group_resource() == info.group_resource())
}
