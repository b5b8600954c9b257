//! The errors with which kube-apiserver refuses a policy, or a list of match conditions, at
//! creation.

use std::collections::HashSet;

use serde_json::Value;

use super::compile::{Compiled, Compiler, ExpectedType};
use super::constraints;
use super::environment::AvailableVariables;
use super::names::is_identifier;
use crate::library::named_format::NamedFormat;
use crate::rules::{FieldPath, Reason, Violation, go_json};

/// The failure policies in the order in which messages list them.
pub(super) const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];

/// The reasons that a validation may name, in the order in which messages list them.
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// Largest number of match conditions.
const MAX_CONDITIONS: usize = 64;

/// Largest number of audit annotations.
const MAX_ANNOTATIONS: usize = 20;

/// Longest expression of an audit annotation, in bytes.
const MAX_VALUE_EXPRESSION: usize = 5 * 1024;

/// Checks the `spec` of a policy with this name.
///
/// The paths begin with `spec`, and the order is the server's. `matchConstraints` must be there; in
/// this member and elsewhere, members that are left out have their defaults. A `paramKind` declares
/// `params`. No expression of a policy has a limit for its estimated cost: the cost is bounded at
/// run time.
///
/// The members have the types of Kubernetes' API: a text that is a number, which a server cannot
/// decode, counts as missing here. Whether the kind of `paramKind` exists and may be read is not
/// checked.
pub fn check_policy(name: &str, spec: &Value) -> Vec<Violation> {
    let has_params = spec.get("paramKind").is_some_and(|kind| !kind.is_null());
    let variables = list(spec, "variables");
    let compiler = if variables.is_empty() { Compiler::stateless() } else { Compiler::composing() };
    let mut check = PolicyCheck { found: Vec::new(), compiler, has_params };
    let at = FieldPath::root().child("spec");
    if let Some(policy) = member(spec, "failurePolicy")
        && !FAILURE_POLICIES.contains(&policy)
    {
        let path = at.child("failurePolicy");
        check.found.push(Violation::not_supported(path, policy, &FAILURE_POLICIES));
    }
    if let Some(kind) = spec.get("paramKind").filter(|kind| !kind.is_null()) {
        check.found.extend(constraints::param_kind(kind, &at.child("paramKind")));
    }
    check.found.extend(constraints::match_constraints(spec, &at.child("matchConstraints")));
    check.conditions(list(spec, "matchConditions"), &at.child("matchConditions"));
    for (index, variable) in variables.iter().enumerate() {
        check.variable(variable, &at.child("variables").index(index));
    }
    let (validations, annotations) = (list(spec, "validations"), list(spec, "auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        check.required(at.child("validations"), detail);
        check.required(at.child("auditAnnotations"), detail);
        return check.found;
    }
    for (index, validation) in validations.iter().enumerate() {
        check.validation(validation, &at.child("validations").index(index));
    }
    check.annotations(name, annotations, &at.child("auditAnnotations"));
    check.found
}

/// Checks a list of match conditions, as of a webhook; the paths begin with `at`.
pub fn check_match_conditions(conditions: &Value, at: &FieldPath) -> Vec<Violation> {
    let compiler = Compiler::stateless();
    let mut check = PolicyCheck { found: Vec::new(), compiler, has_params: false };
    check.conditions(conditions.as_array().map_or(&[], Vec::as_slice), at);
    check.found
}

/// A text of an object; `None` if the member is missing.
pub(super) fn member<'a>(json: &'a Value, name: &str) -> Option<&'a str> {
    json.get(name).and_then(Value::as_str)
}

/// A text of an object; empty if the member is missing.
pub(super) fn text<'a>(json: &'a Value, name: &str) -> &'a str {
    member(json, name).unwrap_or_default()
}

/// A list of an object; empty if the member is missing.
pub(super) fn list<'a>(json: &'a Value, name: &str) -> &'a [Value] {
    json.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) struct PolicyCheck {
    pub(super) found: Vec<Violation>,
    pub(super) compiler: Compiler,
    pub(super) has_params: bool,
}

impl PolicyCheck {
    pub(super) fn required(&mut self, path: FieldPath, detail: &str) {
        self.found.push(Violation::without_value(path, Reason::Required, detail));
    }

    pub(super) fn invalid(&mut self, path: FieldPath, value: &str, detail: impl Into<String>) {
        self.found.push(Violation::invalid(path, Value::from(value), detail));
    }

    pub(super) fn scope(&self) -> AvailableVariables {
        AvailableVariables { has_params: self.has_params, has_authorizer: true, has_patches: false }
    }

    /// Reports an expression that has no program; `shown` is the expression's text in the message.
    fn compiled(&mut self, compiled: &Compiled, path: FieldPath, shown: &str) {
        match &compiled.program {
            Ok(_) => {}
            Err(failure) if failure.is_internal => {
                let detail = failure.detail.clone();
                self.found.push(Violation::without_value(path, Reason::Internal, detail));
            }
            Err(failure) => self.invalid(path, shown, failure.detail.clone()),
        }
    }

    pub(super) fn conditions(&mut self, conditions: &[Value], at: &FieldPath) {
        if conditions.len() > MAX_CONDITIONS {
            self.found.push(Violation {
                path: at.clone(),
                reason: Reason::TooMany,
                shown: Some(conditions.len().to_string()),
                detail: format!("must have at most {MAX_CONDITIONS} items"),
            });
        }
        let mut compiler = Compiler::stateless();
        let mut names = HashSet::new();
        for (index, condition) in conditions.iter().enumerate() {
            let at = at.index(index);
            let expression = text(condition, "expression").trim();
            if expression.is_empty() {
                self.required(at.child("expression"), "");
            } else {
                let compiled = compiler.compile(expression, ExpectedType::Bool, self.scope());
                self.compiled(&compiled, at.child("expression"), expression);
            }
            let (name, path) = (text(condition, "name"), at.child("name"));
            if name.is_empty() {
                self.required(path, "");
                continue;
            }
            self.qualified_name(&path, name);
            if !names.insert(name) {
                self.duplicate(path, name);
            }
        }
    }

    fn qualified_name(&mut self, path: &FieldPath, name: &str) {
        for error in NamedFormat::QualifiedName.validate(name) {
            self.invalid(path.clone(), name, error);
        }
    }

    fn duplicate(&mut self, path: FieldPath, value: &str) {
        let invalid = Violation::invalid(path, Value::from(value), "");
        self.found.push(Violation { reason: Reason::Duplicate, ..invalid });
    }

    pub(super) fn variable(&mut self, variable: &Value, at: &FieldPath) {
        let (name, expression) = (text(variable, "name"), text(variable, "expression"));
        if name.trim().is_empty() {
            self.required(at.child("name"), "name is not specified");
        } else if !is_identifier(name) {
            self.invalid(at.child("name"), name, "must be a valid CEL identifier");
        }
        if expression.trim().is_empty() {
            self.required(at.child("expression"), "expression is not specified");
            return;
        }
        let scope = self.scope();
        let variable = self.compiler.variable(name, expression, scope);
        self.compiled(&variable.compiled, at.child("expression"), expression);
    }

    fn validation(&mut self, validation: &Value, at: &FieldPath) {
        let expression = text(validation, "expression");
        let scope = self.scope();
        if expression.trim().is_empty() {
            self.required(at.child("expression"), "expression is not specified");
        } else {
            let compiled = self.compiler.compile(expression, ExpectedType::Bool, scope);
            self.compiled(&compiled, at.child("expression"), expression);
        }
        let (computed, path) =
            (text(validation, "messageExpression"), at.child("messageExpression"));
        if !computed.trim().is_empty() {
            let scope = AvailableVariables { has_authorizer: false, ..scope };
            let compiled = self.compiler.compile(computed, ExpectedType::String, scope);
            self.compiled(&compiled, path, computed);
        } else if !computed.is_empty() {
            self.invalid(path, computed, "must be non-empty if specified");
        }
        let message = text(validation, "message");
        if !message.is_empty() && message.trim().is_empty() {
            self.invalid(at.child("message"), message, "must be non-empty if specified");
        } else if message.trim().contains(['\n', '\r']) {
            self.invalid(at.child("message"), message, "must not contain line breaks");
        }
        if let Some(reason) = member(validation, "reason").filter(|name| !REASONS.contains(name)) {
            self.found.push(Violation::not_supported(at.child("reason"), reason, &REASONS));
        }
    }

    fn annotations(&mut self, name: &str, annotations: &[Value], at: &FieldPath) {
        if annotations.len() > MAX_ANNOTATIONS {
            self.found.push(Violation {
                path: at.clone(),
                reason: Reason::Invalid,
                shown: Some(shown_annotations(annotations)),
                detail: format!("must not have more than {MAX_ANNOTATIONS} auditAnnotations"),
            });
        }
        let mut keys = HashSet::new();
        for (index, annotation) in annotations.iter().enumerate() {
            let (at, key) = (at.index(index), text(annotation, "key"));
            if name.is_empty() {
                self.invalid(at.child("key"), key, "requires metadata.name be non-empty");
            } else {
                self.qualified_name(&at.child("key"), &format!("{name}/{key}"));
            }
            self.value_expression(text(annotation, "valueExpression"), at.child("valueExpression"));
            if !keys.insert(key) {
                self.duplicate(at.child("key"), key);
            }
        }
    }

    fn value_expression(&mut self, expression: &str, path: FieldPath) {
        let trimmed = expression.trim();
        if trimmed.is_empty() {
            self.required(path, "valueExpression is not specified");
        } else if trimmed.len() > MAX_VALUE_EXPRESSION {
            let detail = format!("must not exceed {MAX_VALUE_EXPRESSION} bytes in length");
            self.required(path, &detail);
        } else {
            let scope = self.scope();
            let compiled = self.compiler.compile(trimmed, ExpectedType::StringOrNull, scope);
            self.compiled(&compiled, path, expression);
        }
    }
}

/// The annotations as a message shows them: JSON with the names of Go's fields.
fn shown_annotations(annotations: &[Value]) -> String {
    let text = |json: &Value, name: &str| go_json(&Value::from(text(json, name)));
    let shown = |json: &Value| {
        let (key, value) = (text(json, "key"), text(json, "valueExpression"));
        format!("{{\"Key\":{key},\"ValueExpression\":{value}}}")
    };
    let all: Vec<String> = annotations.iter().map(shown).collect();
    format!("[{}]", all.join(","))
}
