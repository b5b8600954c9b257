//! The plan of an expression: variables as slots, constants folded, functions looked up.

mod planner;

pub(super) use planner::plan;

use std::collections::HashMap;
use std::sync::Arc;

use super::cost::CostRule;
use super::functions::Function;
use super::value::Value;
use crate::library::regex::Regex;

/// A step of a program.
#[derive(Debug)]
pub(crate) enum PlanNode {
    /// A constant.
    Const(Value<'static>),
    /// A variable or a selection.
    Attribute(Box<Attribute>),
    /// `a && b`
    And(Box<[PlanNode; 2]>),
    /// `a || b`
    Or(Box<[PlanNode; 2]>),
    /// `a == b`, `a != b`
    Equals { operands: Box<[PlanNode; 2]>, is_negated: bool, cost: CostRule },
    /// A call of a function.
    Call(Box<PlannedCall>),
    /// `a in [constants]`
    Member { value: Box<PlanNode>, set: Arc<super::map::Entries<'static>> },
    /// `a.or(b)`, `a.orValue(b)`
    OptionalOr { operands: Box<[PlanNode; 2]>, is_value: bool },
    /// A list literal; an element with `true` is optional.
    List(Vec<(PlanNode, bool)>),
    /// A map literal.
    Map(Vec<(PlanNode, PlanNode, bool)>),
    /// A literal of a message.
    Message(Box<MessageLiteral>),
    /// A fold.
    Fold(Box<Fold>),
    /// An expression that cannot be evaluated: a call of an unknown function.
    Error(super::error::EvalError),
}

/// A literal of a message.
#[derive(Debug)]
pub(crate) struct MessageLiteral {
    pub(crate) type_name: Arc<str>,
    /// The fields; `true` marks an optional field.
    pub(crate) fields: Vec<(Arc<str>, PlanNode, bool)>,
}

/// A call.
#[derive(Debug)]
pub(crate) struct PlannedCall {
    pub(crate) function: Arc<str>,
    pub(crate) overload: Option<&'static str>,
    pub(crate) body: Function,
    pub(crate) args: Vec<PlanNode>,
    pub(crate) cost: CostRule,
    /// The regular expression of a constant pattern.
    pub(crate) regex: Option<Regex>,
    /// Whether the function takes an error as an argument.
    pub(crate) is_lenient: bool,
    /// Slot of the accumulator that is the first argument and not used in the others: the value is
    /// moved.
    pub(crate) moved_slot: Option<usize>,
}

/// A root with the parts that are selected.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) root: SelectionRoot,
    pub(crate) qualifiers: Vec<Qualifier>,
    /// Whether the last part is tested for presence.
    pub(crate) is_test: bool,
}

/// The beginning of a selection.
#[derive(Debug)]
pub(crate) enum SelectionRoot {
    /// A variable of the evaluation.
    Variable(Arc<str>),
    /// A variable of a fold.
    Slot(usize),
    /// The value of an expression.
    Operand(PlanNode),
    /// `c ? a : b`
    Conditional(Box<(PlanNode, Attribute, Attribute)>),
}

/// A selected part.
#[derive(Debug)]
pub(crate) struct Qualifier {
    pub(crate) key: SelectionKey,
    pub(crate) is_optional: bool,
    pub(crate) is_test: bool,
}

/// The key of a selected part.
#[derive(Debug)]
pub(crate) enum SelectionKey {
    /// A name or an index.
    Const(Value<'static>),
    /// A variable or a selection; the root has no separate cost.
    Attribute(Attribute),
    /// Any other expression.
    Node(PlanNode),
}

/// A fold over a range.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) range: PlanNode,
    pub(crate) variable: usize,
    pub(crate) second: Option<usize>,
    pub(crate) accumulator: usize,
    pub(crate) init: PlanNode,
    pub(crate) condition: PlanNode,
    pub(crate) step: PlanNode,
    pub(crate) result: PlanNode,
}

/// Names of fold variables with their slots.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    slots: HashMap<String, Vec<usize>>,
    next: usize,
}

impl Scopes {
    /// Slot of a name in the innermost fold that has the name.
    pub(crate) fn slot(&self, name: &str) -> Option<usize> {
        self.slots.get(name).and_then(|slots| slots.last().copied())
    }

    /// A new slot under this name. No two folds share a slot: an accumulator's first value is
    /// evaluated late.
    pub(crate) fn push(&mut self, name: &str) -> usize {
        let slot = self.next;
        self.next += 1;
        self.slots.entry(name.to_owned()).or_default().push(slot);
        slot
    }

    /// Ends the innermost scope of a name.
    pub(crate) fn pop(&mut self, name: &str) {
        if let Some(slots) = self.slots.get_mut(name) {
            slots.pop();
        }
    }

    /// Number of slots.
    pub(crate) fn len(&self) -> usize {
        self.next
    }
}
