//! The evaluation of a list of expressions with a budget that they share.

use serde_json::Value as Json;

use super::attributes::{Attributes, Prepared};
use super::compile::{Compiled, ExpressionRefusal};
use crate::eval::{Definitions, EvalError, Limits, Value, Variables};
use crate::rules::{OUT_OF_BUDGET, PER_CALL_LIMIT};
use crate::types::shape::Shape;

/// The budget is used up: no further expression is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutOfBudget;

impl OutOfBudget {
    pub(super) fn text(self) -> &'static str {
        OUT_OF_BUDGET
    }
}

/// Value of an expression, or the text of the error; `None` where there is no expression.
pub(super) type EvaluatedExpression<'a> = Option<Result<Value<'a>, String>>;

/// The variables of expressions, and the budget that is left for them.
#[derive(Debug)]
pub(super) struct Activation<'a> {
    variables: Variables<'a>,
    budget: u64,
    /// Steps that are left for all expressions.
    work: u64,
}

impl<'a> Activation<'a> {
    /// An activation with these parts of a request; composed variables are computed anew in each
    /// activation.
    pub(super) fn new(
        attributes: &Attributes<'a>,
        prepared: &'a Prepared,
        namespace: &'a Json,
        definitions: Option<&'a Definitions>,
        budget: u64,
    ) -> Activation<'a> {
        let value = |json: Option<&'a Json>| json.map_or(Value::Null, dynamic);
        let mut variables = Variables::new()
            .bind("object", value(attributes.object))
            .bind("oldObject", value(attributes.old_object))
            .bind("params", value(attributes.params))
            .bind("namespaceObject", dynamic(namespace))
            .bind("request", dynamic(&prepared.request));
        if let Some((authorizer, resource)) = attributes.authorizer {
            variables = variables
                .bind("authorizer", authorizer.clone())
                .bind("authorizer.requestResource", resource.clone());
        }
        if let Some(definitions) = definitions {
            variables = variables.compose("variables", definitions);
        }
        let work = Limits::new(budget).work_limit;
        Activation { variables, budget, work }
    }

    /// The values of all expressions, in order; none if the budget does not last for them.
    pub(super) fn evaluate_all(
        &mut self,
        expressions: impl Iterator<Item = Option<&'a Compiled>>,
    ) -> Result<Vec<EvaluatedExpression<'a>>, OutOfBudget> {
        expressions
            .map(|expression| expression.map(|compiled| self.evaluate(compiled)).transpose())
            .collect()
    }

    /// The budget that is left.
    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    fn evaluate(
        &mut self,
        compiled: &'a Compiled,
    ) -> Result<Result<Value<'a>, String>, OutOfBudget> {
        let program = match &compiled.program {
            Ok(program) => program,
            Err(ExpressionRefusal { detail, .. }) => {
                return Ok(Err(format!("compilation error: {detail}")));
            }
        };
        let limits = Limits::new(PER_CALL_LIMIT);
        let limits = Limits { work_limit: limits.work_limit.min(self.work), ..limits };
        let outcome = program.evaluate_composed(&mut self.variables, limits);
        self.work = self.work.saturating_sub(outcome.work);
        let cost = self.variables.take_composed_cost().saturating_add(outcome.cost);
        self.budget = self.budget.checked_sub(cost).ok_or(OutOfBudget)?;
        let failed =
            |error: EvalError| format!("expression '{}' resulted in error: {error}", compiled.text);
        Ok(outcome.result.map_err(failed))
    }
}

/// A value without a schema.
fn dynamic(json: &Json) -> Value<'_> {
    // Data without a shape is read unchanged.
    Value::json(json, &Shape::Dyn).unwrap_or(Value::Null)
}
