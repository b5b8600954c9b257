//! A failure in the form of Events and conditions.

// DESIGN.md, 247: What is wrong with a child is told while its owner waits, too

use crate::controller::Failure;
use crate::controller::conditions::reasons::{
    DEPENDENT_FAILED, FAILED, GAVE_UP, TERMINAL, TERMINATING, WAITING,
};
use crate::controller::conditions::{ConditionOutcome, OutcomeState};
use crate::controller::outcome::action::Wait;
use windlass_core::conditions::{Condition, unmet};

/// A failure, in relation to the failures before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedFailure<'a> {
    pub(crate) failure: &'a Failure,
    /// Failures in a row, this one included.
    pub(crate) failures: u32,
    /// Whether the failure is the first in a row, has another text than before, or gave up just
    /// now.
    pub(crate) is_new: bool,
    /// Whether the worker gave up just now.
    pub(crate) gave_up: bool,
}

impl ReportedFailure<'_> {
    /// Returns the condition of that type for this failure.
    pub(crate) fn condition(&self, type_: &str) -> Condition {
        unmet(type_, self.reason(), self.failure.to_string())
    }

    /// Returns the failure as the end of a reconcile.
    pub(crate) fn outcome(&self) -> ConditionOutcome {
        let is_retried = !self.failure.is_terminal() && !self.failure.gave_up();
        let state = if is_retried { OutcomeState::Retried } else { OutcomeState::Stalled };
        ConditionOutcome { state, reason: self.reason().into(), message: self.failure.to_string() }
    }

    fn reason(&self) -> &'static str {
        match self.failure {
            failure if failure.is_terminal() => TERMINAL,
            failure if failure.gave_up() => GAVE_UP,
            _ => FAILED,
        }
    }
}

/// Returns the condition of that type for a wait. The reason of the wait is in the message, because
/// a separate reason would look as if the reconciler had set the condition.
pub(crate) fn waiting(wait: &Wait, type_: &str, is_terminating: bool) -> Condition {
    let reason = match is_terminating {
        true => TERMINATING,
        false if wait.is_stalled => DEPENDENT_FAILED,
        false => WAITING,
    };
    unmet(type_, reason, format!("{}: {}", wait.reason, wait.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_stalled_by_a_failure_that_is_not_tried_again_and_by_no_other() {
        let retried = Failure::from("no answer");
        let mut given_up = Failure::from("no answer");
        given_up.gave_up = true;
        for (failure, state, reason) in [
            (retried, OutcomeState::Retried, FAILED),
            (given_up, OutcomeState::Stalled, GAVE_UP),
            (Failure::terminal("no such host"), OutcomeState::Stalled, TERMINAL),
        ] {
            let gave_up = failure.gave_up();
            let reported =
                ReportedFailure { failure: &failure, failures: 1, is_new: true, gave_up };
            let outcome = reported.outcome();
            assert_eq!((outcome.state, &*outcome.reason), (state, reason));
            assert_eq!(outcome.message, failure.to_string());
        }
    }
    #[test]
    fn a_child_that_has_failed_stalls_its_owner_but_for_a_clean_up() {
        let mut wait = Wait::new("RolledBack", "late".to_owned());
        assert_eq!(waiting(&wait, "Ready", false).reason, WAITING);
        wait.is_stalled = true;
        assert_eq!(waiting(&wait, "Ready", false).reason, DEPENDENT_FAILED);
        assert_eq!(waiting(&wait, "Ready", true).reason, TERMINATING);
        assert_eq!(waiting(&wait, "Ready", true).message, "RolledBack: late");
    }
}
