//! A failure as it is reported, and the reasons of the condition that shows it.

use crate::controller::Failure;
use crate::controller::action::Wait;
use crate::controller::conditions::{Outcome, State};
use windlass_core::conditions::{Condition, unmet};

/// Reasons of a condition that shows a failure.
const FAILED: &str = "ReconcileFailed";
const GAVE_UP: &str = "ReconcileGaveUp";
const TERMINAL: &str = "TerminalError";
/// Reasons of a condition that shows a wait.
pub(crate) const WAITING: &str = "Waiting";
pub(crate) const TERMINATING: &str = "Terminating";
/// Reason of a condition that shows a success.
pub(crate) const RECONCILED: &str = "Reconciled";
/// All reasons of a condition that shows the outcome of a reconcile.
pub(crate) const REASONS: [&str; 6] = [FAILED, GAVE_UP, TERMINAL, WAITING, TERMINATING, RECONCILED];

/// A failure, in relation to the failures before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedFailure<'a> {
    pub(crate) failure: &'a Failure,
    /// Failures in a row, this one included.
    pub(crate) failures: u32,
    /// Whether it is the first in a row, has another text than before, or gave up just now.
    pub(crate) is_new: bool,
    /// Whether it gave up just now.
    pub(crate) gave_up: bool,
}

impl ReportedFailure<'_> {
    /// Returns the condition of that type for this failure.
    pub(crate) fn condition(&self, type_: &str) -> Condition {
        unmet(type_, self.reason(), self.failure.to_string())
    }

    /// Returns the failure as the end of a reconcile.
    pub(crate) fn outcome(&self) -> Outcome {
        let is_retried = !self.failure.is_terminal() && !self.failure.gave_up();
        let state = if is_retried { State::Retried } else { State::Stalled };
        Outcome { state, reason: self.reason().into(), message: self.failure.to_string() }
    }

    fn reason(&self) -> &'static str {
        match self.failure {
            failure if failure.is_terminal() => TERMINAL,
            failure if failure.gave_up() => GAVE_UP,
            _ => FAILED,
        }
    }
}

/// Returns the condition of that type for a wait. The reason of the wait is in the message, because a reason of
/// its own would look as if the reconciler had set the condition.
pub(crate) fn waiting(wait: &Wait, type_: &str, is_terminating: bool) -> Condition {
    let reason = if is_terminating { TERMINATING } else { WAITING };
    unmet(type_, reason, format!("{}: {}", wait.reason, wait.text))
}
