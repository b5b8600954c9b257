//! Programs: expressions that are ready to be evaluated.

use std::sync::Arc;

use super::error::EvalError;
use super::plan::{self, PlanNode};
use super::run::Evaluation;
use super::run::composed::{Composed, Definitions};
use super::value::Value;
use super::work::WorkBudget;
use crate::check::Checked;

/// Steps for each unit of the cost limit.
const STEPS_PER_COST: u64 = 16;

/// An expression that is planned for evaluation.
#[derive(Debug)]
pub struct Program {
    root: PlanNode,
    slots: usize,
    depth: usize,
}

/// Names bound to values for an evaluation.
#[derive(Debug, Clone, Default)]
pub struct Variables<'a> {
    values: Vec<(Arc<str>, Value<'a>)>,
    pub(crate) composed: Option<Composed<'a>>,
}

/// Bounds of an evaluation.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest cost; an expression that goes beyond ends with [`EvalError::CostLimitExceeded`].
    pub cost_limit: u64,
    /// Most steps of a [`WorkBudget`], for the work that no cost pays for, with that of the
    /// composed variables; an expression that goes beyond ends with
    /// [`EvalError::CostLimitExceeded`], too.
    pub work_limit: u64,
}

impl Limits {
    /// This largest cost, and 16 steps for each unit of the cost.
    pub const fn new(cost_limit: u64) -> Limits {
        Limits { cost_limit, work_limit: cost_limit.saturating_mul(STEPS_PER_COST) }
    }
}

/// Result of an evaluation.
#[derive(Debug, Clone)]
pub struct Outcome<'a> {
    /// The value or the error.
    pub result: Result<Value<'a>, EvalError>,
    /// The cost, also that of an expression that ended with an error.
    pub cost: u64,
    /// The steps that were taken.
    pub work: u64,
}

impl Program {
    /// The plan of a checked expression. An error if a constant cannot be converted or is no
    /// regular expression, for which kube-apiserver rejects the expression.
    pub fn new(checked: &Checked) -> Result<Program, EvalError> {
        let (root, slots, depth) = plan::plan(checked)?;
        Ok(Program { root, slots, depth })
    }

    /// The value of the expression. An expression that reads composed variables needs
    /// [`Program::evaluate_composed`].
    pub fn evaluate<'a>(&'a self, variables: &Variables<'a>, limits: Limits) -> Outcome<'a> {
        let work = WorkBudget::new(limits.work_limit);
        let mut run = Evaluation::new(self, &variables.values, limits.cost_limit, &work);
        let result = run.eval(&self.root);
        Outcome { result, cost: run.cost(), work: limits.work_limit.saturating_sub(work.left()) }
    }

    /// The value of the expression; composed variables are computed when they are first read, each
    /// with the same cost limit and all with the same steps.
    ///
    /// [`Variables::take_composed_cost`] returns their cost, which is not that of this expression.
    pub fn evaluate_composed<'a>(
        &'a self,
        variables: &mut Variables<'a>,
        limits: Limits,
    ) -> Outcome<'a> {
        let work = WorkBudget::new(limits.work_limit);
        let (result, cost) = self.compose(variables, limits.cost_limit, &work);
        Outcome { result, cost, work: limits.work_limit.saturating_sub(work.left()) }
    }

    /// Variables are computed within the expressions that read them, down to a depth of the stack.
    /// A variable that would go below is computed first, and the expression begun again: a chain of
    /// variables needs no deep stack. The work that is thrown away takes steps.
    fn compose<'a>(
        &'a self,
        variables: &mut Variables<'a>,
        cost_limit: u64,
        work: &WorkBudget,
    ) -> (Result<Value<'a>, EvalError>, u64) {
        let mut stack: Vec<(usize, &'a Program)> = Vec::new();
        loop {
            let program = stack.last().map_or(self, |(_, program)| program);
            let mut run = Evaluation::new(program, &variables.values, cost_limit, work);
            run.composed = variables.composed.take();
            let result = run.eval(&program.root);
            let (cost, pending) = (run.cost(), run.pending);
            variables.composed = run.composed;
            let Some(composed) = &mut variables.composed else { return (result, cost) };
            match (pending, stack.last().copied()) {
                (Some(index), _) => {
                    if let Err(error) = work.take(cost) {
                        return (Err(error), cost);
                    }
                    stack.extend(composed.begin(index).map(|next| (index, next)));
                }
                (None, Some((index, _))) => {
                    composed.finish(index, result, cost);
                    stack.pop();
                }
                (None, None) => return (result, cost),
            }
        }
    }

    /// The plan.
    pub(super) fn root(&self) -> &PlanNode {
        &self.root
    }

    /// Number of variables of folds.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Levels of expressions within each other.
    pub(super) fn depth(&self) -> usize {
        self.depth
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
        find(&self.values, name)
    }
}

/// Value of a name among those that are bound; the last value counts.
pub(super) fn find<'v, 'a>(
    values: &'v [(Arc<str>, Value<'a>)],
    name: &str,
) -> Option<&'v Value<'a>> {
    values.iter().rev().find(|(bound, _)| **bound == *name).map(|(_, value)| value)
}
