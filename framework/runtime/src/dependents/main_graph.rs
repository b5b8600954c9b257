//! The graph whose kinds a controller owns for calls beside its graphs.

// DESIGN.md, 212: A kind of two graphs is owned through the first of them

/// The graph whose grants a controller has, for calls such as
/// [`Context::apply_owned`](crate::controller::Context::apply_owned); implemented by `#[controller(dependents(Children))]`
/// for the first of its graphs.
///
/// Two graphs may have children of one kind, which is owned once.
pub trait MainGraph {
    /// The name of the graph.
    type Graph;
}

/// The name of a graph as a type, by a hash of it: a graph may be more private than its controller.
#[derive(Clone, Copy, Debug)]
pub struct GraphName<const HASH: u64>;
