//! Conditions that show the outcome of a part of a reconcile: of a handler of a field, or of a step.

// DESIGN.md, 177: The condition of a handler shows its outcome, and holds while its field stays

use super::reasons::WAITING;
use super::summary::is_valid;
use crate::controller::Failure;
use windlass_core::conditions::{Condition, met, unknown, unmet};

/// Reason after a success.
const SUCCEEDED: &str = "Succeeded";
/// Reason after the failure of a handler.
const HANDLER_FAILED: &str = "HandlerFailed";
/// Reason while a handler has not ended.
const NOT_FINISHED: &str = "HandlerNotFinished";

/// The part succeeded, now or at an earlier reconcile whose result still stands.
pub(in crate::controller) fn succeeded(type_: &str) -> Condition {
    met(type_, SUCCEEDED, "")
}

/// The handler panicked, or was dropped.
pub(in crate::controller) fn not_finished(type_: &str) -> Condition {
    unknown(type_, NOT_FINISHED, "its handler has panicked or was dropped")
}

/// Returns the condition after a handler.
pub(in crate::controller) fn outcome_of(type_: &str, end: &Result<(), Failure>) -> Condition {
    match end {
        Ok(()) => succeeded(type_),
        Err(failure) => failed(type_, failure, HANDLER_FAILED),
    }
}

/// Returns the condition after a failure, with that reason unless the failure is a wait.
pub(in crate::controller) fn failed(type_: &str, failure: &Failure, reason: &str) -> Condition {
    let reason = match failure.wait_reason() {
        Some(wait) if is_valid(wait) => wait,
        Some(_) => WAITING,
        None => reason,
    };
    unmet(type_, reason, failure.to_string())
}
