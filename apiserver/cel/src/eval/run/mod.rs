//! The evaluation of a plan, with its cost.

pub(super) mod composed;
mod fold;
pub(super) mod select;

use std::sync::Arc;

use super::cost::{self, CostRule};
use super::equal;
use super::error::EvalError;
use super::functions::CallArgs;
use super::list::List;
use super::map::{Entries, Map};
use super::messages;
use super::patches;
use super::plan::{MessageLiteral, PlanNode, PlannedCall};
use super::program::Program;
use super::value::Value;
use super::work::WorkBudget;
use composed::Composed;

/// Levels that a variable adds to those of its expression.
const VARIABLE_DEPTH: usize = 4;
/// Most levels of an expression with the variables that are computed within. A single expression
/// may have as many.
const MAX_VARIABLES_DEPTH: usize = 200;

/// The value of a step.
pub(crate) type EvalResult<'a> = Result<Value<'a>, EvalError>;

/// A variable of a fold.
#[derive(Debug, Default)]
pub(crate) enum FoldVariable<'a> {
    /// Not bound.
    #[default]
    Unset,
    /// An accumulator whose first value is evaluated at the first use.
    Late(&'a PlanNode),
    /// A value or an error.
    Bound(EvalResult<'a>),
}

/// An evaluation.
#[derive(Debug)]
pub(crate) struct Evaluation<'r, 'a> {
    values: &'r [(Arc<str>, Value<'a>)],
    pub(crate) composed: Option<Composed<'a>>,
    /// The composed variable that ended the evaluation, because there is no stack for the
    /// computation.
    pub(crate) pending: Option<usize>,
    work: &'r WorkBudget,
    /// Levels of this expression and of those that read this expression as a variable.
    depth: usize,
    slots: Vec<FoldVariable<'a>>,
    cost: u64,
    limit: u64,
}

impl<'r, 'a> Evaluation<'r, 'a> {
    /// An evaluation of a program with variables and limits.
    pub(crate) fn new(
        program: &Program,
        values: &'r [(Arc<str>, Value<'a>)],
        limit: u64,
        work: &'r WorkBudget,
    ) -> Evaluation<'r, 'a> {
        let slots = std::iter::repeat_with(FoldVariable::default).take(program.slots()).collect();
        let depth = program.depth();
        Evaluation { values, composed: None, pending: None, work, depth, slots, cost: 0, limit }
    }

    /// Computes a composed variable within this evaluation, if the stack allows that.
    fn compute(&mut self, index: usize) -> EvalResult<'a> {
        let Some(composed) = &mut self.composed else { return Err(EvalError::no_such_overload()) };
        let depth = self.depth.saturating_add(composed.depth(index)).saturating_add(VARIABLE_DEPTH);
        if depth > MAX_VARIABLES_DEPTH {
            self.pending = Some(index);
            return Err(EvalError::CostLimitExceeded);
        }
        if let Some(program) = composed.begin(index) {
            let mut inner = Evaluation::new(program, self.values, self.limit, self.work);
            (inner.composed, inner.depth) = (self.composed.take(), depth);
            let result = inner.eval(program.root());
            let (cost, pending) = (inner.cost, inner.pending);
            self.composed = inner.composed;
            let Some(composed) = &mut self.composed else { return result };
            if pending.is_some() {
                composed.abandon(index);
                self.pending = pending;
                self.work.take(cost)?;
                return Err(EvalError::CostLimitExceeded);
            }
            composed.finish(index, result, cost);
        }
        let value = self.composed.as_ref().and_then(|composed| composed.value(index));
        value.unwrap_or_else(|| Err(EvalError::no_such_overload()))
    }

    /// The cost so far.
    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    /// Adds to the cost; an error beyond the limit.
    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::CostLimitExceeded) } else { Ok(()) }
    }

    /// Value of a fold's variable.
    pub(crate) fn slot(&mut self, index: usize) -> EvalResult<'a> {
        let late = match self.slots.get(index) {
            Some(FoldVariable::Bound(value)) => return value.clone(),
            Some(FoldVariable::Late(node)) => *node,
            _ => {
                return Err(EvalError::Static("no such attribute(s): variable of a comprehension"));
            }
        };
        let value = self.eval(late);
        self.bind(index, FoldVariable::Bound(value.clone()));
        value
    }

    #[inline]
    fn bind(&mut self, index: usize, value: FoldVariable<'a>) {
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = value;
        }
    }

    /// Value of a step.
    pub(crate) fn eval(&mut self, node: &'a PlanNode) -> EvalResult<'a> {
        match node {
            PlanNode::Const(value) => Ok(value.clone()),
            PlanNode::Attribute(attribute) => self.attribute(attribute),
            PlanNode::And(terms) => self.logical(terms, false),
            PlanNode::Or(terms) => self.logical(terms, true),
            PlanNode::Equals { operands, is_negated, cost } => {
                self.equals(operands, *is_negated, *cost)
            }
            PlanNode::Call(call) => self.call(call),
            PlanNode::Member { value, set } => {
                let value = self.eval(value)?;
                Ok(Value::Bool(set.get(&value).is_some()))
            }
            PlanNode::OptionalOr { operands, is_value } => self.optional_or(operands, *is_value),
            PlanNode::List(elements) => self.list(elements),
            PlanNode::Map(entries) => self.map(entries),
            PlanNode::Message(message) => {
                let result = self.message(message);
                self.constructed(cost::STRUCT, result)
            }
            PlanNode::Fold(fold) => self.fold(fold),
            PlanNode::Error(error) => Err(error.clone()),
        }
    }

    /// `&&` and `||`: a term with the value `decisive` decides, an error counts only if no term
    /// does.
    fn logical(&mut self, terms: &'a [PlanNode; 2], decisive: bool) -> EvalResult<'a> {
        let mut error = None;
        for term in terms {
            match self.eval(term) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Err(fatal) if fatal.is_fatal() => return Err(fatal),
                Err(other) => error = error.or(Some(other)),
                Ok(_) => error = error.or(Some(EvalError::no_such_overload())),
            }
        }
        error.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn equals(
        &mut self,
        operands: &'a [PlanNode; 2],
        is_negated: bool,
        rule: CostRule,
    ) -> EvalResult<'a> {
        let [left, right] = operands;
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        let error = left.as_ref().err().or(right.as_ref().err()).cloned();
        let args = [left.unwrap_or(Value::Null), right.unwrap_or(Value::Null)];
        self.charge(cost::call_cost(rule, &args, &Value::Null, self.work)?)?;
        match error {
            Some(error) => Err(error),
            None if is_negated => equal::is_equal(&args[0], &args[1], self.work)
                .map(|is_equal| Value::Bool(!is_equal)),
            None => equal::equals(&args[0], &args[1], self.work).map(Value::Bool),
        }
    }

    /// Value of an operand that is evaluated even if another operand is an error; only a fatal
    /// error ends the evaluation.
    fn operand(&mut self, node: &'a PlanNode) -> Result<EvalResult<'a>, EvalError> {
        match self.eval(node) {
            Err(error) if error.is_fatal() => Err(error),
            other => Ok(other),
        }
    }

    fn call(&mut self, call: &'a PlannedCall) -> EvalResult<'a> {
        match call.args.as_slice() {
            [one] => {
                let one = self.operand(one)?;
                let error = one.as_ref().err().cloned();
                cost::check_counted(call.cost, [one.is_err(), false])?;
                self.apply(call, &mut [one.unwrap_or(Value::Null)], error)
            }
            [left, right] => {
                let left = match call.moved_slot {
                    Some(slot) => self.moved(slot)?,
                    None => self.operand(left)?,
                };
                let right = self.operand(right)?;
                let error = left.as_ref().err().or(right.as_ref().err()).cloned();
                cost::check_counted(call.cost, [left.is_err(), right.is_err()])?;
                let mut args = [left.unwrap_or(Value::Null), right.unwrap_or(Value::Null)];
                self.apply(call, &mut args, error)
            }
            nodes => {
                let mut args = Vec::with_capacity(nodes.len());
                for (index, node) in nodes.iter().enumerate() {
                    // An error ends the call before the cost is counted: cel-go does not find the
                    // missing arguments.
                    let arg = match call.moved_slot.filter(|_| index == 0) {
                        Some(slot) => self.moved(slot)??,
                        None => self.eval(node)?,
                    };
                    args.push(arg);
                }
                self.apply(call, &mut args, None)
            }
        }
    }

    /// Takes an accumulator out of its slot; the step that reads the accumulator writes the next
    /// one.
    fn moved(&mut self, slot: usize) -> Result<EvalResult<'a>, EvalError> {
        if let Some(bound @ FoldVariable::Bound(Ok(_))) = self.slots.get_mut(slot)
            && let FoldVariable::Bound(value) = std::mem::take(bound)
        {
            self.charge(1)?;
            return Ok(value);
        }
        let value = self.slot(slot);
        self.charge(1)?;
        Ok(value)
    }

    fn apply(
        &mut self,
        call: &'a PlannedCall,
        args: &mut [Value<'a>],
        error: Option<EvalError>,
    ) -> EvalResult<'a> {
        let needs_args =
            !matches!(call.cost, CostRule::Fixed(_) | CostRule::ListResult | CostRule::Join);
        if needs_args {
            // Paid before the work, so that no work is done for which the cost does not last.
            self.charge(cost::call_cost(call.cost, args, &Value::Null, self.work)?)?;
        }
        let result = match error {
            Some(_) if call.is_lenient => Ok(Value::Bool(true)),
            Some(error) => Err(error),
            None => (call.body)(&mut CallArgs {
                function: &call.function,
                overload: call.overload,
                regex: call.regex.as_ref(),
                remaining: self.limit.saturating_sub(self.cost),
                work: self.work,
                args,
            }),
        };
        if let Err(fatal) = &result
            && fatal.is_fatal()
        {
            // The function refused work that the cost would not allow; callers see the budget as
            // used up.
            self.cost = self.cost.max(self.limit.saturating_add(1));
            return result;
        }
        if !needs_args {
            let value = result.as_ref().unwrap_or(&Value::Null);
            self.charge(cost::call_cost(call.cost, &[], value, self.work)?)?;
        }
        result
    }

    fn optional_or(&mut self, operands: &'a [PlanNode; 2], is_value: bool) -> EvalResult<'a> {
        let [left, right] = operands;
        match self.eval(left)? {
            Value::Optional(Some(content)) if is_value => Ok((*content).clone()),
            Value::Optional(Some(content)) => Ok(Value::Optional(Some(content))),
            Value::Optional(None) => self.eval(right),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    fn list(&mut self, elements: &'a [(PlanNode, bool)]) -> EvalResult<'a> {
        let result = self.list_elements(elements);
        self.constructed(cost::LIST, result)
    }

    /// A literal with its cost, which an error within it has as well.
    fn constructed(&mut self, cost: u64, result: EvalResult<'a>) -> EvalResult<'a> {
        if !matches!(&result, Err(error) if error.is_fatal()) {
            self.charge(cost)?;
        }
        result
    }

    fn list_elements(&mut self, elements: &'a [(PlanNode, bool)]) -> EvalResult<'a> {
        let mut values = Vec::with_capacity(elements.len());
        for (node, is_optional) in elements {
            match (self.eval(node)?, is_optional) {
                (Value::Optional(content), true) => {
                    values.extend(content.map(|content| (*content).clone()))
                }
                (value, false) => values.push(value),
                (value, true) => {
                    let text = super::functions::display_within(&value, self.work)?;
                    let message = format!(
                        "cannot initialize optional list element from non-optional value {text}"
                    );
                    return Err(EvalError::new(message));
                }
            }
        }
        Ok(Value::List(List::from(values)))
    }

    fn map(&mut self, entries: &'a [(PlanNode, PlanNode, bool)]) -> EvalResult<'a> {
        let result = self.map_entries(entries);
        self.constructed(cost::MAP, result)
    }

    fn map_entries(&mut self, nodes: &'a [(PlanNode, PlanNode, bool)]) -> EvalResult<'a> {
        let mut entries = Entries::default();
        for (key, value, is_optional) in nodes {
            let key = self.eval(key)?;
            match (self.eval(value)?, is_optional) {
                (Value::Optional(Some(content)), true) => entries.set(key, (*content).clone())?,
                (Value::Optional(None), true) => entries.remove(&key),
                (value, false) => entries.set(key, value)?,
                (value, true) => {
                    let key = super::functions::display_within(&key, self.work)?;
                    return Err(self.not_optional(&key, &value));
                }
            }
        }
        Ok(Value::Map(Map::Entries(Arc::new(entries))))
    }

    fn message(&mut self, message: &'a MessageLiteral) -> EvalResult<'a> {
        let mut fields: Vec<(&str, Value<'a>)> = Vec::with_capacity(message.fields.len());
        for (name, node, is_optional) in &message.fields {
            match (self.eval(node)?, is_optional) {
                (Value::Optional(Some(content)), true) => fields.push((name, (*content).clone())),
                (Value::Optional(None), true) => fields.retain(|(field, _)| *field != &**name),
                (value, false) => fields.push((name, value)),
                (value, true) => return Err(self.not_optional(name, &value)),
            }
        }
        if patches::is_literal(&message.type_name) {
            return patches::construct(&message.type_name, fields, self.work);
        }
        messages::construct(&message.type_name, fields, self.work)
    }

    /// The error for the value of an entry or a field that is written `?key: value`.
    fn not_optional(&self, key: &str, value: &Value<'_>) -> EvalError {
        super::functions::display_within(value, self.work).map_or_else(
            |fatal| fatal,
            |value| {
                EvalError::new(format!(
                    "cannot initialize optional entry '{key}' from non-optional value {value}"
                ))
            },
        )
    }
}
