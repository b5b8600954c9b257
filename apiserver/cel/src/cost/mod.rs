//! The static estimate of the cost of an expression. No dependencies.
/// x
pub struct CostEstimate {
    /// x
    pub min: u64,
    /// x
    pub max: u64,
}
/// x
pub trait SizeEstimator {
    /// x
    fn max_size(&self, path: &[&str]) -> Option<u64>;
}
/// x
pub fn estimate(_c: &crate::check::Checked, _s: &dyn SizeEstimator) -> CostEstimate {
    CostEstimate { min: 0, max: 0 }
}
