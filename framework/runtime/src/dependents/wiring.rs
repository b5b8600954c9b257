//! Watches and permissions of a graph.

use super::Dependents;
use crate::controller::ControllerBuilder;
use windlass_core::resource::ResourceInfo;

/// Adds each kind of the graph to the controller once. A kind is optional if all of its fields are.
pub(super) fn wire<G: Dependents>(
    mut builder: ControllerBuilder<G::Controller>,
) -> ControllerBuilder<G::Controller> {
    let nodes = G::nodes();
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
    for kind in G::retired() {
        // A kind of the graph has its watch already.
        if !seen.contains(&kind.info()) {
            builder = kind.retires(builder);
            seen.push(kind.info());
        }
    }
    builder
}
