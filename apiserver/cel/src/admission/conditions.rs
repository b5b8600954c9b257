//! Match conditions of policies and webhooks: whether a request is judged at all.

use serde_json::Value as Json;

use super::activation::{Activation, EvaluatedExpression};
use super::attributes::{Attributes, Prepared};
use super::check::text;
use super::compile::{Compiled, Compiler, ExpectedType};
use super::environment::AvailableVariables;
use super::policy::FailurePolicy;
use crate::eval::{Definitions, Value};

/// Cost that all match conditions of a policy or webhook may use together.
const BUDGET: u64 = 2_500_000;

/// The compiled match conditions of a webhook or a policy.
#[derive(Debug)]
pub struct MatchConditions {
    conditions: Vec<(String, Compiled)>,
    failure_policy: FailurePolicy,
}

/// The outcome of match conditions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// All conditions are true.
    Matched,
    /// A condition is false, or a condition has an error that the failure policy ignores: the
    /// request is not judged. The name is that of the false condition.
    Skipped(Option<String>),
    /// No condition is false, and a condition has an error: the request fails with this text.
    Failed(String),
}

impl MatchConditions {
    /// Compiles the `matchConditions` of a webhook. A condition that cannot be compiled is an error
    /// of every request; [`check_match_conditions`](super::check_match_conditions) finds such
    /// conditions before.
    pub fn new(conditions: &[Json], failure_policy: FailurePolicy) -> MatchConditions {
        let scope =
            AvailableVariables { has_params: false, has_authorizer: true, has_patches: false };
        MatchConditions::compile(conditions, failure_policy, &mut Compiler::stateless(), scope)
    }

    pub(super) fn compile(
        conditions: &[Json],
        failure_policy: FailurePolicy,
        compiler: &mut Compiler,
        scope: AvailableVariables,
    ) -> MatchConditions {
        let compiled = |condition: &Json| {
            let compiled =
                compiler.compile(text(condition, "expression"), ExpectedType::Bool, scope);
            (text(condition, "name").to_owned(), compiled)
        };
        let conditions = conditions.iter().map(compiled).collect();
        MatchConditions { conditions, failure_policy }
    }

    /// Judges a request. `namespaceObject` is null for match conditions, whatever the namespace.
    pub fn matches(&self, attributes: &Attributes<'_>) -> Match {
        self.matches_prepared(attributes, &Prepared::new(attributes), None).0
    }

    /// Judges a request; returns the cost, too.
    pub(super) fn matches_prepared<'a>(
        &'a self,
        attributes: &Attributes<'a>,
        prepared: &'a Prepared,
        definitions: Option<&'a Definitions>,
    ) -> (Match, u64) {
        let mut activation =
            Activation::new(attributes, prepared, &Json::Null, definitions, BUDGET);
        let expressions = self.conditions.iter().map(|(_, compiled)| Some(compiled));
        match activation.evaluate_all(expressions) {
            Ok(values) => (self.judge(values), BUDGET - activation.budget()),
            Err(stopped) => (self.failed(&[stopped.text().to_owned()]), BUDGET),
        }
    }

    fn judge(&self, values: Vec<EvaluatedExpression<'_>>) -> Match {
        let mut errors = Vec::new();
        for ((name, _), value) in self.conditions.iter().zip(values.into_iter().flatten()) {
            match value {
                Ok(Value::Bool(false)) => return Match::Skipped(Some(name.clone())),
                Ok(_) => {}
                Err(error) if errors.contains(&error) => {}
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Match::Matched } else { self.failed(&errors) }
    }

    fn failed(&self, errors: &[String]) -> Match {
        match (self.failure_policy, errors) {
            (FailurePolicy::Ignore, _) => Match::Skipped(None),
            (FailurePolicy::Fail, [error]) => Match::Failed(error.clone()),
            (FailurePolicy::Fail, errors) => Match::Failed(format!("[{}]", errors.join(", "))),
        }
    }
}
