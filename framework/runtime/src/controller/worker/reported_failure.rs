//! A failure in the form of Events and conditions.

// DESIGN.md, 247: The message of a waiting owner has the fights about its children, too
// DESIGN.md, 315: A request that is refused for good stalls the object, and is tried again

use crate::controller::Failure;
use crate::controller::conditions::reasons::{
    DEPENDENT_FAILED, FAILED, GAVE_UP, REFUSED, TERMINAL, TERMINATING, WAITING,
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
        let reason = self.reason();
        // A retry may pass by then, and nothing is on its way that would let it.
        let state = if reason == FAILED { OutcomeState::Retried } else { OutcomeState::Stalled };
        ConditionOutcome { state, reason: reason.into(), message: self.failure.to_string() }
    }

    fn reason(&self) -> &'static str {
        match self.failure {
            failure if failure.is_terminal() => TERMINAL,
            failure if failure.gave_up() => GAVE_UP,
            failure if failure.is_refused() => REFUSED,
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
    use windlass_core::error::{Error, ErrorKind};

    #[test]
    fn an_object_is_stalled_by_a_failure_that_only_a_change_ends_and_by_no_other() {
        let refused = |status: &str| {
            let status = serde_json::from_str(status).unwrap();
            Failure::from(Error::from_status("write", status))
        };
        let invalid = || refused(r#"{"code": 422, "reason": "Invalid"}"#);
        let forbidden = r#"{"code": 403, "reason": "Forbidden", "message": "no grant"}"#;
        let ending = r#"{"code": 403, "reason": "Forbidden", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}"#;
        let quota = r#"{"code": 403, "reason": "Forbidden", "message": "pods \"a\" is forbidden: exceeded quota: q, requested: pods=1"}"#;
        let conflict = r#"{"code": 409, "reason": "Conflict"}"#;
        let starting = r#"{"code": 403, "reason": "Forbidden", "message": "pods \"a\" is forbidden: status unknown for quota: q, resources: pods"}"#;
        let test = r#"{"code": 422, "reason": "Invalid", "details": {"causes": [{"reason": "UnexpectedServerResponse", "message": "testing value /a failed"}]}}"#;
        let successor = r#"{"code": 422, "reason": "Invalid", "details": {"causes": [{"reason": "FieldValueInvalid", "field": "metadata.uid", "message": "field is immutable"}]}}"#;
        let own_forbidden =
            || Failure::from(Error::new(ErrorKind::Forbidden, "the registry says no"));
        let retried = Failure::from("no answer");
        let mut given_up = Failure::from("no answer");
        given_up.gave_up = true;
        for (failure, state, reason) in [
            (retried, OutcomeState::Retried, FAILED),
            (given_up, OutcomeState::Stalled, GAVE_UP),
            (Failure::terminal("no such host"), OutcomeState::Stalled, TERMINAL),
            (invalid(), OutcomeState::Stalled, REFUSED),
            (invalid().tried("applying a child"), OutcomeState::Stalled, REFUSED),
            (Failure::from("no answer").and(invalid()), OutcomeState::Stalled, REFUSED),
            (refused(forbidden), OutcomeState::Stalled, REFUSED),
            (refused(ending), OutcomeState::Retried, FAILED),
            (refused(quota), OutcomeState::Retried, FAILED),
            (refused(conflict), OutcomeState::Retried, FAILED),
            (refused(starting), OutcomeState::Retried, FAILED),
            (refused(test), OutcomeState::Retried, FAILED),
            (refused(successor), OutcomeState::Retried, FAILED),
            // Made by a reconciler: its own system refuses, and not the API server.
            (own_forbidden(), OutcomeState::Retried, FAILED),
            (own_forbidden().tried("pushing an image"), OutcomeState::Retried, FAILED),
            (Failure::from("no answer").and(own_forbidden()), OutcomeState::Retried, FAILED),
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
