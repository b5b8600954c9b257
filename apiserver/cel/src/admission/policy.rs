//! A compiled policy, and its evaluation on a request.

use serde_json::Value as Json;

use super::activation::{Activation, EvaluatedExpression, OutOfBudget};
use super::attributes::{Attributes, Prepared};
use super::check::{list, member, text};
use super::compile::{Compiled, Compiler, ExpectedType};
use super::conditions::{Match, MatchConditions};
use super::environment::AvailableVariables;
use crate::eval::{Definitions, Value};
use crate::rules::{OBJECT_BUDGET, OUT_OF_BUDGET, message};

/// `failurePolicy`: the meaning of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FailurePolicy {
    /// An error denies the request.
    #[default]
    Fail,
    /// An error admits the request.
    Ignore,
}

/// The outcome of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyDecisionEvaluation {
    /// The expression is true.
    Admit,
    /// The expression is false.
    Deny,
    /// The expression has no value.
    Error,
}

/// The decision of a validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyDecision {
    /// The outcome of the expression.
    pub evaluation: PolicyDecisionEvaluation,
    /// Whether the request is denied: by a false expression, or by an error under
    /// [`FailurePolicy::Fail`].
    pub is_denied: bool,
    /// The reason for the client; empty for an admission.
    pub message: String,
    /// `reason` of the `Status`, which only a false expression has.
    pub reason: Option<String>,
}

/// The outcome of an audit annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditAnnotation {
    /// The annotation is published.
    Publish {
        /// The key, without the name of the policy.
        key: String,
        /// The value.
        value: String,
    },
    /// The annotation has no value.
    Exclude,
    /// The expression has an error, which denies the request.
    Error(String),
}

/// The decision of a policy on a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evaluation {
    /// The decisions in the order of the validations; none if the match conditions skip the
    /// request, and a single one if match conditions or the budget have failed.
    pub decisions: Vec<PolicyDecision>,
    /// The audit annotations in their order.
    pub audit_annotations: Vec<AuditAnnotation>,
    /// The cost of all expressions.
    pub cost: u64,
}

/// A policy, ready to judge requests. Compile once, use for every request.
#[derive(Debug)]
pub struct Policy {
    failure_policy: FailurePolicy,
    conditions: Option<MatchConditions>,
    variables: Definitions,
    validations: Vec<Validation>,
    annotations: Vec<(String, Compiled)>,
}

#[derive(Debug)]
struct Validation {
    condition: Compiled,
    message: String,
    message_expression: Option<Compiled>,
    reason: String,
}

impl Policy {
    /// Compiles the `spec` of a policy. An expression that cannot be compiled is an error of every
    /// request; [`check_policy`](super::check_policy) finds such expressions before.
    pub fn new(spec: &Json) -> Policy {
        let failure_policy = match member(spec, "failurePolicy") {
            Some("Ignore") => FailurePolicy::Ignore,
            _ => FailurePolicy::Fail,
        };
        let has_params = spec.get("paramKind").is_some_and(|kind| !kind.is_null());
        let scope = AvailableVariables { has_params, has_authorizer: true, has_patches: false };
        let mut compiler = Compiler::composing();
        let mut variables = Definitions::default();
        for variable in list(spec, "variables") {
            let (name, expression) = (text(variable, "name"), text(variable, "expression"));
            let variable = compiler.variable(name, expression, scope);
            let program = variable.compiled.program.map_err(|failure| failure.detail);
            variables.insert(variable.name, program);
        }
        let conditions = list(spec, "matchConditions");
        let conditions = (!conditions.is_empty())
            .then(|| MatchConditions::compile(conditions, failure_policy, &mut compiler, scope));
        let validations = list(spec, "validations").iter();
        let validations =
            validations.map(|json| Validation::compile(json, &mut compiler, scope)).collect();
        let annotation = |json: &Json| {
            let expression = text(json, "valueExpression");
            let compiled = compiler.compile(expression, ExpectedType::StringOrNull, scope);
            (text(json, "key").to_owned(), compiled)
        };
        let annotations = list(spec, "auditAnnotations").iter().map(annotation).collect();
        Policy { failure_policy, conditions, variables, validations, annotations }
    }

    /// Judges a request with the budgets of kube-apiserver: one for the match conditions, one for
    /// the validations with their messages, one for the audit annotations.
    pub fn evaluate(&self, attributes: &Attributes<'_>) -> Evaluation {
        self.evaluate_within(attributes, OBJECT_BUDGET)
    }

    /// The evaluation of a request for which no budget is left.
    pub fn exhausted(&self) -> Evaluation {
        self.failed(OUT_OF_BUDGET.to_owned(), 0)
    }

    pub(super) fn evaluate_within(&self, attributes: &Attributes<'_>, budget: u64) -> Evaluation {
        let prepared = Prepared::new(attributes);
        let judged = self.conditions.as_ref().map(|conditions| {
            conditions.matches_prepared(attributes, &prepared, Some(&self.variables))
        });
        let (outcome, mut cost) = judged.unwrap_or((Match::Matched, 0));
        match outcome {
            Match::Skipped(_) => return Evaluation { cost, ..Evaluation::default() },
            Match::Failed(error) => return self.failed(error, cost),
            Match::Matched => {}
        }
        let (decisions, used) = match self.decisions(attributes, &prepared, budget) {
            Ok(decisions) => decisions,
            Err(stopped) => return self.failed(stopped.text().to_owned(), cost + budget),
        };
        cost += used;
        match self.audit_annotations(attributes, &prepared, budget) {
            Ok((audit_annotations, used)) => {
                Evaluation { decisions, audit_annotations, cost: cost + used }
            }
            Err(stopped) => self.failed(stopped.text().to_owned(), cost + budget),
        }
    }

    /// The evaluation that an error ends.
    fn failed(&self, message: String, cost: u64) -> Evaluation {
        Evaluation { decisions: vec![self.error(message)], cost, ..Evaluation::default() }
    }

    fn error(&self, message: String) -> PolicyDecision {
        let is_denied = self.failure_policy == FailurePolicy::Fail;
        PolicyDecision {
            evaluation: PolicyDecisionEvaluation::Error,
            is_denied,
            message,
            reason: None,
        }
    }

    fn decisions(
        &self,
        attributes: &Attributes<'_>,
        prepared: &Prepared,
        budget: u64,
    ) -> Result<(Vec<PolicyDecision>, u64), OutOfBudget> {
        let namespace = &prepared.namespace;
        let mut activation =
            Activation::new(attributes, prepared, namespace, Some(&self.variables), budget);
        let conditions = self.validations.iter().map(|validation| Some(&validation.condition));
        let values = activation.evaluate_all(conditions)?;
        let left = activation.budget();
        // Messages are computed for validations that hold, too: their cost counts. They know no
        // authorizer.
        let attributes = Attributes { authorizer: None, ..*attributes };
        let mut activation =
            Activation::new(&attributes, prepared, namespace, Some(&self.variables), left);
        let expressions = self.validations.iter().map(|one| one.message_expression.as_ref());
        let messages = activation.evaluate_all(expressions);
        let decide = |(index, value): (usize, EvaluatedExpression<'_>)| {
            let message = messages.as_ref().map(|all| all.get(index).and_then(Option::as_ref));
            self.decision(index, value, message)
        };
        let cost = if messages.is_ok() { budget - activation.budget() } else { budget };
        Ok((values.into_iter().enumerate().filter_map(decide).collect(), cost))
    }

    fn decision(
        &self,
        index: usize,
        value: EvaluatedExpression<'_>,
        message: Result<Option<&Result<Value<'_>, String>>, &OutOfBudget>,
    ) -> Option<PolicyDecision> {
        let validation = self.validations.get(index)?;
        Some(match (value?, message) {
            (Err(error), _) => self.error(error),
            (Ok(_), Err(stopped)) => {
                self.error(format!("failed messageExpression: {}", stopped.text()))
            }
            (Ok(Value::Bool(true)), _) => PolicyDecision {
                evaluation: PolicyDecisionEvaluation::Admit,
                is_denied: false,
                message: String::new(),
                reason: None,
            },
            (Ok(_), Ok(message)) => PolicyDecision {
                evaluation: PolicyDecisionEvaluation::Deny,
                is_denied: true,
                message: validation.denial(message),
                reason: Some(validation.reason.clone()),
            },
        })
    }

    fn audit_annotations(
        &self,
        attributes: &Attributes<'_>,
        prepared: &Prepared,
        budget: u64,
    ) -> Result<(Vec<AuditAnnotation>, u64), OutOfBudget> {
        // The expressions are compiled with an authorizer and run without one.
        let attributes = Attributes { authorizer: None, ..*attributes };
        let namespace = &prepared.whole_namespace;
        let mut activation =
            Activation::new(&attributes, prepared, namespace, Some(&self.variables), budget);
        let expressions = self.annotations.iter().map(|(_, compiled)| Some(compiled));
        let values = activation.evaluate_all(expressions)?;
        let all = self.annotations.iter().zip(values.into_iter().flatten());
        let cost = budget - activation.budget();
        Ok((all.map(|((key, _), value)| self.audit_annotation(key, value)).collect(), cost))
    }

    fn audit_annotation(&self, key: &str, value: Result<Value<'_>, String>) -> AuditAnnotation {
        match value {
            Ok(Value::String(value)) if !value.trim().is_empty() => {
                AuditAnnotation::Publish { key: key.to_owned(), value: value.trim().to_owned() }
            }
            Err(error) if self.failure_policy == FailurePolicy::Fail => {
                AuditAnnotation::Error(error)
            }
            _ => AuditAnnotation::Exclude,
        }
    }
}

impl Validation {
    fn compile(json: &Json, compiler: &mut Compiler, scope: AvailableVariables) -> Validation {
        let message_expression = text(json, "messageExpression");
        let without_authorizer = AvailableVariables { has_authorizer: false, ..scope };
        Validation {
            condition: compiler.compile(text(json, "expression"), ExpectedType::Bool, scope),
            message: text(json, "message").trim().to_owned(),
            message_expression: (!message_expression.is_empty()).then(|| {
                compiler.compile(message_expression, ExpectedType::String, without_authorizer)
            }),
            reason: member(json, "reason").unwrap_or("Invalid").to_owned(),
        }
    }

    /// The message of a denial: that of the expression if the text is fit, else the fixed message,
    /// else the text of the validation.
    fn denial(&self, computed: Option<&Result<Value<'_>, String>>) -> String {
        if let Some(message) = computed.and_then(|value| message(value.as_ref().ok()?)) {
            return message;
        }
        if self.message.is_empty() {
            format!("failed expression: {}", self.condition.text.trim())
        } else {
            self.message.clone()
        }
    }
}
