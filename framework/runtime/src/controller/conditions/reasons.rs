//! Reasons of the conditions that show the outcome of a reconcile.

/// Reasons of a condition that shows a failure.
pub(in crate::controller) const FAILED: &str = "ReconcileFailed";
pub(in crate::controller) const GAVE_UP: &str = "ReconcileGaveUp";
pub(in crate::controller) const TERMINAL: &str = "TerminalError";
/// Reason of a failure by a request that the API server refuses for good, and that is tried again.
pub(in crate::controller) const REFUSED: &str = "RequestRefused";
/// Reasons of a condition that shows a wait.
pub(in crate::controller) const WAITING: &str = "Waiting";
pub(in crate::controller) const TERMINATING: &str = "Terminating";
/// Reason of a condition that shows a child that has failed for good.
pub(in crate::controller) const DEPENDENT_FAILED: &str = "DependentFailed";
/// Reason of a condition that shows a success.
pub(in crate::controller) const RECONCILED: &str = "Reconciled";
/// All reasons of a condition that shows the outcome of a reconcile, with `Stalled`, which earlier
/// versions wrote for `DependentFailed`.
pub(in crate::controller) const ALL: [&str; 9] = [
    FAILED,
    GAVE_UP,
    TERMINAL,
    REFUSED,
    WAITING,
    TERMINATING,
    DEPENDENT_FAILED,
    RECONCILED,
    "Stalled",
];
