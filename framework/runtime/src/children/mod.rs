//! Label and readiness of children, which graphs and rollouts share.

mod readiness;

pub use readiness::Readiness;

/// Label of the children of a graph: `CONTROLLER.GRAPH.DEPENDENT`.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// assert_eq!(windlass::dependents::LABEL, "windlass.dev/dependent");
/// ```
pub const LABEL: &str = "windlass.dev/dependent";
