//! The planner: from the checked tree to a plan.

use std::sync::Arc;

use super::super::cost;
use super::super::error::EvalError;
use super::super::functions::{self, CallArgs};
use super::super::list::List;
use super::super::map::{Entries, Map};
use super::super::value::Value;
use super::super::work::WorkBudget;
use super::{
    Attribute, Fold, MessageLiteral, PlanNode, PlannedCall, Qualifier, Scopes, SelectionKey,
    SelectionRoot,
};
use crate::check::{Checked, Reference};
use crate::syntax::ast::{self, Comprehension, operators};
use crate::syntax::{Expr, ExprKind, Literal};
use crate::types::Type;

type PlanResult = Result<PlanNode, EvalError>;

/// The plan of an expression, the number of slots, and the levels of nested expressions.
pub(crate) fn plan(checked: &Checked) -> Result<(PlanNode, usize, usize), EvalError> {
    let mut planner = Planner { checked, scopes: Scopes::default(), depth: 0, deepest: 0 };
    let root = planner.expr(&checked.ast.root)?;
    Ok((root, planner.scopes.len(), planner.deepest))
}

struct Planner<'c> {
    checked: &'c Checked,
    scopes: Scopes,
    depth: usize,
    deepest: usize,
}

impl Planner<'_> {
    fn expr(&mut self, expr: &Expr) -> PlanResult {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let planned = self.of_kind(expr);
        self.depth -= 1;
        planned
    }

    fn of_kind(&mut self, expr: &Expr) -> PlanResult {
        match &expr.kind {
            ExprKind::Literal(value) => Ok(PlanNode::Const(literal(value))),
            ExprKind::Ident(name) => self.ident(expr, name),
            ExprKind::Select(select) => self.select(select),
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::List(list) => self.list(list),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct(literal) => self.message(literal),
            ExprKind::Comprehension(fold) => self.fold(fold),
        }
    }

    fn ident(&mut self, expr: &Expr, name: &str) -> PlanResult {
        if let Some(slot) = self.scopes.slot(name) {
            return Ok(root(SelectionRoot::Slot(slot)));
        }
        if let Type::Type(Some(ty)) = self.checked.type_of(expr.id)
            && let Type::Object(object) = &**ty
            && !object.name.starts_with("google.protobuf.")
        {
            // The checker of the server knows the type, the evaluation does not.
            let text = format!("reference to undefined type: {}", object.name);
            return Err(EvalError::new(text));
        }
        Ok(match self.checked.reference(expr.id) {
            Some(Reference::Ident { value: Some(value), .. }) => PlanNode::Const(literal(value)),
            Some(Reference::Ident { name, .. })
                if matches!(self.checked.type_of(expr.id), Type::Type(_)) =>
            {
                PlanNode::Const(Value::Type(name.clone()))
            }
            Some(Reference::Ident { name, .. }) => root(SelectionRoot::Variable(name.clone())),
            _ => root(SelectionRoot::Variable(Arc::from(name.trim_start_matches('.')))),
        })
    }

    fn select(&mut self, select: &ast::Select) -> PlanResult {
        let operand = self.expr(&select.operand)?;
        let key = SelectionKey::Const(Value::text(select.field.as_str()));
        let mut attribute = into_attribute(operand);
        attribute.qualifiers.push(Qualifier { key, is_optional: false, is_test: select.test_only });
        attribute.is_test = select.test_only;
        Ok(PlanNode::Attribute(Box::new(attribute)))
    }

    fn call(&mut self, expr: &Expr, call: &ast::Call) -> PlanResult {
        let mut args = Vec::with_capacity(call.args.len() + 1);
        for arg in call.target.iter().chain(&call.args) {
            args.push(self.expr(arg)?);
        }
        let overload = match self.checked.reference(expr.id) {
            Some(Reference::Overloads(ids)) => match ids.as_slice() {
                [one] => Some(*one),
                _ => None,
            },
            _ => None,
        };
        let args = match special(&call.function, args)? {
            Ok(node) => return Ok(node),
            Err(args) => args,
        };
        function_call(&call.function, overload, args)
    }

    fn list(&mut self, list: &ast::List) -> PlanResult {
        let mut elements = Vec::with_capacity(list.elements.len());
        for (index, element) in list.elements.iter().enumerate() {
            elements.push((self.expr(element)?, list.optional.contains(&index)));
        }
        let is_const = elements.iter().all(|(node, _)| matches!(node, PlanNode::Const(_)));
        fold_const(PlanNode::List(elements), is_const)
    }

    fn map(&mut self, entries: &[ast::MapEntry]) -> PlanResult {
        let mut planned = Vec::with_capacity(entries.len());
        for entry in entries {
            planned.push((self.expr(&entry.key)?, self.expr(&entry.value)?, entry.is_optional));
        }
        let is_const = |node: &PlanNode| matches!(node, PlanNode::Const(_));
        let all_const = planned.iter().all(|(key, value, _)| is_const(key) && is_const(value));
        fold_const(PlanNode::Map(planned), all_const)
    }

    fn message(&mut self, literal: &ast::Struct) -> PlanResult {
        let mut fields = Vec::with_capacity(literal.fields.len());
        for field in &literal.fields {
            let value = self.expr(&field.value)?;
            fields.push((Arc::from(field.name.as_str()), value, field.is_optional));
        }
        let type_name = literal.type_name.as_str().into();
        Ok(PlanNode::Message(Box::new(MessageLiteral { type_name, fields })))
    }

    fn fold(&mut self, fold: &Comprehension) -> PlanResult {
        let init = self.expr(&fold.init)?;
        let range = self.expr(&fold.range)?;
        let accumulator = self.scopes.push(&fold.accumulator);
        let variable = self.scopes.push(&fold.variable);
        let second = fold.second_variable.as_deref().map(|name| self.scopes.push(name));
        let condition = self.expr(&fold.condition)?;
        let mut step = self.expr(&fold.step)?;
        if let Some(name) = &fold.second_variable {
            self.scopes.pop(name);
        }
        self.scopes.pop(&fold.variable);
        let result = self.expr(&fold.result)?;
        self.scopes.pop(&fold.accumulator);
        mark_moved(&mut step, accumulator, fold);
        Ok(PlanNode::Fold(Box::new(Fold {
            range,
            variable,
            second,
            accumulator,
            init,
            condition,
            step,
            result,
        })))
    }
}

fn root(root: SelectionRoot) -> PlanNode {
    PlanNode::Attribute(Box::new(Attribute { root, qualifiers: Vec::new(), is_test: false }))
}

/// The selection that further parts are added to.
fn into_attribute(node: PlanNode) -> Attribute {
    match node {
        PlanNode::Attribute(attribute) if !attribute.is_test => *attribute,
        node => {
            Attribute { root: SelectionRoot::Operand(node), qualifiers: Vec::new(), is_test: false }
        }
    }
}

/// A branch of `?:`.
fn into_branch(node: PlanNode) -> Attribute {
    match node {
        PlanNode::Attribute(attribute) => *attribute,
        node => {
            Attribute { root: SelectionRoot::Operand(node), qualifiers: Vec::new(), is_test: false }
        }
    }
}

fn literal(value: &Literal) -> Value<'static> {
    match value {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::text(text.as_str()),
        Literal::Bytes(bytes) => Value::Bytes(Arc::from(bytes.as_slice())),
    }
}

/// Operators that are not functions; the arguments come back for any other call.
fn special(
    function: &str,
    args: Vec<PlanNode>,
) -> Result<Result<PlanNode, Vec<PlanNode>>, EvalError> {
    let is_optional = matches!(function, operators::OPTIONAL_INDEX | operators::OPTIONAL_SELECT);
    Ok(match <[PlanNode; 2]>::try_from(args) {
        Ok(pair) => match function {
            operators::LOGICAL_AND => Ok(PlanNode::And(Box::new(pair))),
            operators::LOGICAL_OR => Ok(PlanNode::Or(Box::new(pair))),
            operators::EQUALS | operators::NOT_EQUALS => {
                let is_negated = function == operators::NOT_EQUALS;
                let overload = if is_negated { "not_equals" } else { "equals" };
                let cost = cost::rule(function, Some(overload));
                Ok(PlanNode::Equals { operands: Box::new(pair), is_negated, cost })
            }
            operators::INDEX | operators::OPTIONAL_INDEX | operators::OPTIONAL_SELECT => {
                let [operand, key] = pair;
                let mut attribute = into_attribute(operand);
                let key = match key {
                    PlanNode::Const(value) => {
                        super::super::run::select::check_key(&value)?;
                        SelectionKey::Const(value)
                    }
                    PlanNode::Attribute(attribute) => SelectionKey::Attribute(*attribute),
                    node => SelectionKey::Node(node),
                };
                attribute.qualifiers.push(Qualifier { key, is_optional, is_test: false });
                Ok(PlanNode::Attribute(Box::new(attribute)))
            }
            "or" => Ok(PlanNode::OptionalOr { operands: Box::new(pair), is_value: false }),
            "orValue" => Ok(PlanNode::OptionalOr { operands: Box::new(pair), is_value: true }),
            _ => Err(pair.into()),
        },
        Err(args) if function == operators::CONDITIONAL => match <[PlanNode; 3]>::try_from(args) {
            Ok([condition, truthy, falsy]) => {
                let parts = (condition, into_branch(truthy), into_branch(falsy));
                Ok(root(SelectionRoot::Conditional(Box::new(parts))))
            }
            Err(args) => Err(args),
        },
        Err(args) => Err(args),
    })
}

/// Functions whose call with a constant is a constant.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

fn function_call(
    function: &str,
    overload: Option<&'static str>,
    args: Vec<PlanNode>,
) -> PlanResult {
    let args = match member_of_constants(overload, args)? {
        Ok(node) => return Ok(node),
        Err(args) => args,
    };
    let Some(body) = functions::lookup(function) else {
        return Ok(PlanNode::Error(EvalError::new(format!("no such overload: {function}"))));
    };
    let regex = match args.as_slice() {
        [_, PlanNode::Const(Value::String(pattern))]
        | [_, PlanNode::Const(Value::String(pattern)), _]
            if matches!(function, "matches" | "find" | "findAll") =>
        {
            Some(functions::compile_regex(pattern)?)
        }
        _ => None,
    };
    if let [PlanNode::Const(value)] = args.as_slice()
        && CONVERSIONS.contains(&function)
    {
        let mut value = [value.clone()];
        let work = WorkBudget::new(u64::MAX);
        let mut call = CallArgs {
            function,
            overload,
            regex: None,
            remaining: u64::MAX,
            work: &work,
            args: &mut value,
        };
        return body(&mut call).map(PlanNode::Const);
    }
    let cost = cost::rule(function, overload);
    let is_lenient = function == operators::NOT_STRICTLY_FALSE;
    let function = Arc::from(function);
    Ok(PlanNode::Call(Box::new(PlannedCall {
        function,
        overload,
        body,
        args,
        cost,
        regex,
        is_lenient,
        moved_slot: None,
    })))
}

/// `x in [constants]` as a look-up, which costs nothing.
fn member_of_constants(
    overload: Option<&str>,
    args: Vec<PlanNode>,
) -> Result<Result<PlanNode, Vec<PlanNode>>, EvalError> {
    let [_, PlanNode::Const(Value::List(list))] = args.as_slice() else { return Ok(Err(args)) };
    if overload != Some("in_list") {
        return Ok(Err(args));
    }
    if list.is_empty() {
        return Ok(Ok(PlanNode::Const(Value::Bool(false))));
    }
    let Some(set) = constant_set(list)? else { return Ok(Err(args)) };
    let mut args = args.into_iter();
    match args.next() {
        Some(value) => Ok(Ok(PlanNode::Member { value: Box::new(value), set: Arc::new(set) })),
        None => Ok(Err(Vec::new())),
    }
}

/// The elements of a list of scalars as keys; `None` for a list with other elements.
fn constant_set(list: &List<'static>) -> Result<Option<Entries<'static>>, EvalError> {
    let mut set = Entries::default();
    for value in list.iter() {
        match value? {
            value @ (Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)) => {
                set.set(value, Value::Bool(true))?;
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(set))
}

/// A literal of constants as a constant.
fn fold_const(node: PlanNode, is_const: bool) -> PlanResult {
    if !is_const {
        return Ok(node);
    }
    match constant(&node)? {
        Some(value) => Ok(PlanNode::Const(value)),
        None => Ok(node),
    }
}

fn constant(node: &PlanNode) -> Result<Option<Value<'static>>, EvalError> {
    match node {
        PlanNode::List(elements) => {
            if elements.iter().any(|(_, is_optional)| *is_optional) {
                return Ok(None);
            }
            let values = elements.iter().filter_map(|(node, _)| const_value(node)).collect();
            Ok(Some(Value::list(values)))
        }
        PlanNode::Map(nodes) if nodes.iter().all(|(_, _, is_optional)| !is_optional) => {
            let mut entries = Entries::default();
            for (key, value) in
                nodes.iter().filter_map(|(k, v, _)| const_value(k).zip(const_value(v)))
            {
                entries.set(key, value)?;
            }
            Ok(Some(Value::Map(Map::Entries(Arc::new(entries)))))
        }
        _ => Ok(None),
    }
}

fn const_value(node: &PlanNode) -> Option<Value<'static>> {
    match node {
        PlanNode::Const(value) => Some(value.clone()),
        _ => None,
    }
}

/// Lets `accumulator + x` and `insert(accumulator, ...)` at the end of a step take the accumulator
/// instead of a copy.
fn mark_moved(step: &mut PlanNode, slot: usize, fold: &Comprehension) {
    match step {
        PlanNode::Call(call) if matches!(&*call.function, operators::ADD | "cel.@mapInsert") => {
            let is_first = call.args.first().is_some_and(|node| is_slot(node, slot));
            if is_first && accumulator_uses(&fold.step, &fold.accumulator) <= 2 && is_macro(fold) {
                call.moved_slot = Some(slot);
            }
        }
        PlanNode::Attribute(attribute) => {
            if let SelectionRoot::Conditional(parts) = &mut attribute.root {
                for branch in [&mut parts.1, &mut parts.2] {
                    if let SelectionRoot::Operand(node) = &mut branch.root {
                        mark_moved(node, slot, fold);
                    }
                }
            }
        }
        _ => {}
    }
}

fn is_slot(node: &PlanNode, wanted: usize) -> bool {
    matches!(node, PlanNode::Attribute(attribute)
        if attribute.qualifiers.is_empty() && matches!(attribute.root, SelectionRoot::Slot(slot) if slot == wanted))
}

/// Whether no text of an expression can name the accumulator.
fn is_macro(fold: &Comprehension) -> bool {
    fold.accumulator.starts_with('@')
}

/// Number of places of a step, but not of inner folds, that name the accumulator.
fn accumulator_uses(expr: &Expr, name: &str) -> usize {
    let count = |expr: &Expr| accumulator_uses(expr, name);
    match &expr.kind {
        ExprKind::Ident(ident) => usize::from(ident == name),
        ExprKind::Select(select) => count(&select.operand),
        ExprKind::Call(call) => call.target.iter().chain(&call.args).map(count).sum(),
        ExprKind::List(list) => list.elements.iter().map(count).sum(),
        ExprKind::Map(entries) => {
            entries.iter().map(|entry| count(&entry.key) + count(&entry.value)).sum()
        }
        _ => 0,
    }
}
