//! A binding: the consequences of the decisions of a policy.

use serde_json::json;

use super::policy::{AuditAnnotation, Evaluation};
use crate::rules::go_json;

/// Key of the annotation about a failed validation.
const VALIDATION_FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// Longest value of an audit annotation, in bytes.
const MAX_VALUE: usize = 10 * 1024;

/// `validationActions` of a binding: the consequences of a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidationAction {
    /// The request is refused.
    Deny,
    /// The client gets a warning.
    Warn,
    /// The audit event gets an annotation.
    Audit,
}

impl ValidationAction {
    fn name(self) -> &'static str {
        match self {
            ValidationAction::Deny => "Deny",
            ValidationAction::Warn => "Warn",
            ValidationAction::Audit => "Audit",
        }
    }
}

/// A binding of a policy, by the names of both.
#[derive(Debug, Clone)]
pub struct Binding {
    policy: String,
    name: String,
    actions: Vec<ValidationAction>,
}

/// The refusal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// `message` of the cause; that of the `Status` begins with the name of the object.
    pub message: String,
    /// `reason` of the `Status`.
    pub reason: String,
    /// `code` of the `Status`.
    pub code: u16,
}

/// The consequences of the decisions of a policy on a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Enforcement {
    /// The refusal of the request: that of the first validation that denies it.
    pub denial: Option<Denial>,
    /// The warnings for the client.
    pub warnings: Vec<String>,
    /// The annotations of the audit event, with their keys.
    pub audit_annotations: Vec<(String, String)>,
}

impl Binding {
    /// A binding that refuses requests.
    pub fn new(policy: impl Into<String>, name: impl Into<String>) -> Binding {
        Binding { policy: policy.into(), name: name.into(), actions: vec![ValidationAction::Deny] }
    }

    /// The same with other actions.
    #[must_use]
    pub fn actions(self, actions: impl Into<Vec<ValidationAction>>) -> Binding {
        Binding { actions: actions.into(), ..self }
    }

    /// The consequences of an evaluation.
    pub fn enforce(&self, evaluation: &Evaluation) -> Enforcement {
        let mut enforcement = Enforcement::default();
        let denied = evaluation.decisions.iter().enumerate().filter(|(_, one)| one.is_denied);
        for (index, decision) in denied {
            for action in &self.actions {
                match action {
                    ValidationAction::Deny => {
                        let reason = decision.reason.as_deref();
                        self.deny(&mut enforcement, &decision.message, reason);
                    }
                    ValidationAction::Warn => enforcement.warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        self.policy, self.name, decision.message
                    )),
                    ValidationAction::Audit => {
                        let value = self.validation_failure(index, &decision.message);
                        annotate(&mut enforcement, VALIDATION_FAILURE, value);
                    }
                }
            }
        }
        for annotation in &evaluation.audit_annotations {
            match annotation {
                AuditAnnotation::Publish { key, value } => {
                    let key = format!("{}/{key}", self.policy);
                    annotate(&mut enforcement, &key, shortened(value).to_owned());
                }
                AuditAnnotation::Exclude => {}
                // An error denies the request, whatever the actions are.
                AuditAnnotation::Error(error) => self.deny(&mut enforcement, error, None),
            }
        }
        enforcement
    }

    /// Refuses the request, unless it is refused already.
    fn deny(&self, enforcement: &mut Enforcement, message: &str, reason: Option<&str>) {
        let reason = reason.filter(|reason| !reason.is_empty()).unwrap_or("Invalid");
        let denial = || Denial {
            message: format!(
                "ValidatingAdmissionPolicy '{}' with binding '{}' denied request: {message}",
                self.policy, self.name
            ),
            reason: reason.to_owned(),
            code: code(reason),
        };
        enforcement.denial.get_or_insert_with(denial);
    }

    /// The value of the annotation about a failed validation.
    fn validation_failure(&self, index: usize, message: &str) -> String {
        let actions: Vec<&str> = self.actions.iter().map(|action| action.name()).collect();
        let text = |text: &str| go_json(&json!(text));
        format!(
            "[{{\"message\":{},\"policy\":{},\"binding\":{},\"expressionIndex\":{index},\"validationActions\":{}}}]",
            text(message),
            text(&self.policy),
            text(&self.name),
            json!(actions)
        )
    }
}

/// Adds an annotation; the first annotation of a key stays.
fn annotate(enforcement: &mut Enforcement, key: &str, value: String) {
    if !enforcement.audit_annotations.iter().any(|(known, _)| known == key) {
        enforcement.audit_annotations.push((key.to_owned(), value));
    }
}

fn shortened(value: &str) -> &str {
    let end = (0..=MAX_VALUE.min(value.len())).rev().find(|end| value.is_char_boundary(*end));
    value.get(..end.unwrap_or_default()).unwrap_or_default()
}

fn code(reason: &str) -> u16 {
    match reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    }
}
