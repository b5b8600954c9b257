//! The static estimate of the cost of an expression, with the figures of cel-go and of Kubernetes.
//! No dependencies.

mod calls;
mod estimator;
mod kubernetes;
mod range;

pub use estimator::{DefaultEstimator, SizeEstimator, estimate};
pub use range::CostEstimate;
