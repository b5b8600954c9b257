//! Programs: expressions that are ready to be evaluated.

use std::sync::Arc;

use super::error::EvalError;
use super::plan::Node;
use super::planner;
use super::run::Run;
use super::value::Value;
use crate::check::Checked;

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
        let (root, slots) = planner::plan(checked)?;
        Ok(Program { root, slots })
    }

    /// The value of the expression.
    pub fn evaluate<'a>(&'a self, variables: &'a Variables<'a>, limits: Limits) -> Outcome<'a> {
        let mut run = Run::new(variables, self.slots, limits.cost_limit);
        let result = run.eval(&self.root);
        Outcome { result, cost: run.cost() }
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

    /// Value of a name.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.values.iter().rev().find(|(bound, _)| **bound == *name).map(|(_, value)| value)
    }
}
