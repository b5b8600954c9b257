//! Programs: expressions that are ready to be evaluated.

use std::sync::Arc;

use super::error::EvalError;
use super::plan::{self, Node};
use super::run::Run;
use super::run::composed::{Composed, Definitions};
use super::value::Value;
use crate::check::Checked;

/// Work that is done again for composed variables, as a multiple of the cost limit.
const MAX_REPEATED: u64 = 4;

/// An expression that is planned for evaluation.
#[derive(Debug)]
pub struct Program {
    root: Node,
    slots: usize,
}

/// Names bound to values for one evaluation.
#[derive(Debug, Clone, Default)]
pub struct Variables<'a> {
    values: Vec<(Arc<str>, Value<'a>)>,
    pub(crate) composed: Option<Composed<'a>>,
}

/// Bounds of one evaluation.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest cost; an expression that goes beyond it ends with [`EvalError::CostLimitExceeded`].
    pub cost_limit: u64,
}

/// Result of an evaluation.
#[derive(Debug, Clone)]
pub struct Outcome<'a> {
    /// The value or the error.
    pub result: Result<Value<'a>, EvalError>,
    /// The cost, also that of an expression that ended with an error.
    pub cost: u64,
}

impl Program {
    /// The plan of a checked expression. An error if a constant cannot be converted or is no regular expression,
    /// for which kube-apiserver rejects the expression.
    pub fn new(checked: &Checked) -> Result<Program, EvalError> {
        let (root, slots) = plan::plan(checked)?;
        Ok(Program { root, slots })
    }

    /// The value of the expression. One that reads composed variables needs [`Program::evaluate_composed`].
    pub fn evaluate<'a>(&'a self, variables: &Variables<'a>, limits: Limits) -> Outcome<'a> {
        let mut run = Run::new(variables, self.slots, limits.cost_limit);
        let result = run.eval(&self.root);
        Outcome { result, cost: run.cost() }
    }

    /// The value of the expression; composed variables are computed when they are first read, each with these limits.
    ///
    /// [`Variables::take_composed_cost`] tells their cost, which is not that of this expression.
    pub fn evaluate_composed<'a>(
        &'a self,
        variables: &mut Variables<'a>,
        limits: Limits,
    ) -> Outcome<'a> {
        // An expression that reads a variable which is not computed yet is begun again after that one, so that a chain
        // of variables needs no deep stack. The work that is thrown away has a bound, which the server's cost has not.
        let mut stack: Vec<(usize, &'a Program)> = Vec::new();
        let mut repeated = 0_u64;
        loop {
            let program = stack.last().map_or(self, |(_, program)| program);
            let mut run = Run::new(variables, program.slots, limits.cost_limit);
            let result = run.eval(&program.root);
            let (cost, pending) = (run.cost(), run.pending);
            let Some(composed) = &mut variables.composed else { return Outcome { result, cost } };
            match (pending, stack.last().copied()) {
                (Some(index), _) => {
                    repeated = repeated.saturating_add(cost);
                    if repeated > limits.cost_limit.saturating_mul(MAX_REPEATED) {
                        return Outcome { result: Err(EvalError::CostLimitExceeded), cost };
                    }
                    stack.extend(composed.begin(index).map(|next| (index, next)));
                }
                (None, Some((index, _))) => {
                    composed.finish(index, result, cost);
                    stack.pop();
                }
                (None, None) => return Outcome { result, cost },
            }
        }
    }
}

impl<'a> Variables<'a> {
    /// No variable.
    pub fn new() -> Variables<'a> {
        Variables::default()
    }

    /// The same with a variable bound.
    pub fn bind(mut self, name: impl Into<Arc<str>>, value: Value<'a>) -> Variables<'a> {
        self.values.push((name.into(), value));
        self
    }

    /// The same with composed variables, which are fields of the variable `name`.
    pub fn compose(self, name: impl Into<Arc<str>>, definitions: &'a Definitions) -> Variables<'a> {
        let mut variables = self.bind(name, Composed::object());
        variables.composed = Some(Composed::new(definitions));
        variables
    }

    /// The cost of the composed variables that were computed since the last call.
    pub fn take_composed_cost(&mut self) -> u64 {
        self.composed.as_mut().map_or(0, Composed::take_cost)
    }

    /// Value of a name.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.values.iter().rev().find(|(bound, _)| **bound == *name).map(|(_, value)| value)
    }
}
