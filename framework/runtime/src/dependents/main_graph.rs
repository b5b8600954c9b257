//! The graph whose kinds a controller owns for calls beside its graphs.

// DESIGN.md, 212: A kind of two graphs is owned through the first of them

use std::marker::PhantomData;

use super::Dependents;

/// The graph whose grants a controller has, for calls such as
/// [`Context::apply_owned`](crate::controller::Context::apply_owned); implemented by
/// `#[controller(dependents(Children))]` for the first of its graphs.
///
/// Two graphs may have children of one kind, which is owned once.
pub trait MainGraph {
    /// The name of the graph.
    type Graph;
}

/// The name of a graph as a type, by a hash of it: a graph may be more private than its controller.
#[derive(Clone, Copy, Debug)]
pub struct GraphName<const HASH: u64>;

/// Type with the constant [`OF`](Self::OF), for derived code: the kinds of a graph, or else those
/// of [`NoGraph`], so that a type which is no graph is reported elsewhere, and once.
#[derive(Debug)]
pub struct GraphKinds<G>(PhantomData<G>);

impl<G: Dependents> GraphKinds<G> {
    /// Kinds of the graph's fields.
    pub const OF: &'static [(&'static [&'static str], usize, usize)] = G::KINDS;
}

/// Kinds of a type that is no graph.
pub trait NoGraph {
    /// Kinds of the type: none.
    const OF: &'static [(&'static [&'static str], usize, usize)] = &[];
}

impl<G> NoGraph for GraphKinds<G> {}
