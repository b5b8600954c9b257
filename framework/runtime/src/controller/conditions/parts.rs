//! Conditions that show the outcome of a part of a reconcile: of a handler of a field, or of a
//! step.

// DESIGN.md, 177: The condition of a handler shows its outcome, and holds while its field stays
// DESIGN.md, 188: A stalling condition of a handler shows the failures that nothing but a change
// helps against

use super::ConditionChange;
use super::accepted::is_valid;
use super::reasons::WAITING;
use crate::controller::Failure;
use windlass_core::conditions::{Condition, ConditionTypes, met, unknown, unmet};

/// Reason after a success.
const SUCCEEDED: &str = "Succeeded";
/// Reason after the failure of a handler.
const HANDLER_FAILED: &str = "HandlerFailed";
/// Reason while a handler has not ended.
const NOT_FINISHED: &str = "HandlerNotFinished";

/// A declared condition that shows the outcome of a part.
#[derive(Clone, Copy, Debug)]
pub(in crate::controller) struct PartCondition<'a> {
    pub(in crate::controller) type_: &'a str,
    /// Whether it is one of `stalled_on(…)`: true in a bad state, and present only while it is
    /// true.
    pub(in crate::controller) is_stalling: bool,
}

impl<'a> PartCondition<'a> {
    /// Returns the condition of that type among the `declared` ones.
    pub(in crate::controller) fn of(type_: &'a str, declared: Option<&ConditionTypes>) -> Self {
        let is_stalling = declared.is_some_and(|declared| declared.stalled_on.contains(&type_));
        Self { type_, is_stalling }
    }

    /// The change before a handler runs, which stays after its panic, and when it is dropped.
    pub(in crate::controller) fn begun(self) -> Option<ConditionChange> {
        let text = "its handler has panicked or was dropped";
        (!self.is_stalling).then(|| ConditionChange::Set(unknown(self.type_, NOT_FINISHED, text)))
    }

    /// The change after a success, now or at an earlier reconcile whose result still stands.
    pub(in crate::controller) fn succeeded(self) -> ConditionChange {
        match self.is_stalling {
            true => ConditionChange::Clear(self.type_.to_owned()),
            false => ConditionChange::Set(succeeded(self.type_)),
        }
    }

    /// The change after a failure, with that reason unless the failure is a wait; `None` if it says
    /// nothing about the condition.
    pub(in crate::controller) fn failed(
        self,
        failure: &Failure,
        reason: &str,
    ) -> Option<ConditionChange> {
        if !self.is_stalling {
            return Some(ConditionChange::Set(failed(self.type_, failure, reason)));
        }
        // Any other failure may pass without a change of the object.
        let is_stalled = failure.is_terminal();
        is_stalled.then(|| ConditionChange::Set(met(self.type_, reason, failure.to_string())))
    }

    /// The change after a handler.
    pub(in crate::controller) fn ended(self, end: &Result<(), Failure>) -> Option<ConditionChange> {
        match end {
            Ok(()) => Some(self.succeeded()),
            Err(failure) => self.failed(failure, HANDLER_FAILED),
        }
    }
}

/// Returns the condition after a success.
pub(in crate::controller) fn succeeded(type_: &str) -> Condition {
    met(type_, SUCCEEDED, "")
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
