//! The walk over a checked tree that sums costs and follows sizes.

use std::collections::HashMap;

use super::calls::{self, Arg};
use super::range::{CostEstimate, UNKNOWN};
use crate::check::{Checked, Reference};
use crate::syntax::ast::{Call, Comprehension, operators};
use crate::syntax::{Expr, ExprId, ExprKind, Literal};
use crate::types::Type;

/// Bounds of the data that an expression reads.
pub trait SizeEstimator {
    /// Largest size of the value at a path: the name of a variable, then fields, `@items` for the
    /// elements of a list, `@keys` and `@values` of a map. `None` if nothing is known about the
    /// value.
    fn max_size(&self, path: &[&str]) -> Option<u64>;
}

/// Data of which nothing is known: their sizes are bounded by a request's only.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultEstimator;

impl SizeEstimator for DefaultEstimator {
    fn max_size(&self, _: &[&str]) -> Option<u64> {
        None
    }
}

/// The least and the largest cost of an evaluation.
///
/// The figures are those of cel-go's estimate with the estimator of Kubernetes, which
/// kube-apiserver compares with its limits when a rule is created.
pub fn estimate(checked: &Checked, sizes: &dyn SizeEstimator) -> CostEstimate {
    let mut estimator = Estimator {
        checked,
        sizes,
        paths: HashMap::new(),
        locals: Vec::new(),
        computed: HashMap::new(),
        entries: HashMap::new(),
    };
    estimator.cost(&checked.ast.root)
}

/// Path of a value in the data.
type Path = Vec<String>;

/// Sizes of the keys and values of a literal, or of the elements of a list as values.
#[derive(Debug, Clone, Copy)]
struct EntrySizes {
    is_list: bool,
    key: CostEstimate,
    value: CostEstimate,
}

/// A variable of a comprehension.
struct Local {
    name: String,
    path: Path,
    size: Option<CostEstimate>,
    entries: Option<EntrySizes>,
}

pub(super) struct Estimator<'a> {
    checked: &'a Checked,
    sizes: &'a dyn SizeEstimator,
    paths: HashMap<ExprId, Path>,
    locals: Vec<Local>,
    computed: HashMap<ExprId, CostEstimate>,
    entries: HashMap<ExprId, EntrySizes>,
}

const NOTHING: CostEstimate = CostEstimate::fixed(0);
const ONE: CostEstimate = CostEstimate::fixed(1);
const LIST: CostEstimate = CostEstimate::fixed(10);
const MAP: CostEstimate = CostEstimate::fixed(30);
const STRUCT: CostEstimate = CostEstimate::fixed(40);
/// The union of this with a range is that range.
const EMPTY: CostEstimate = CostEstimate { min: u64::MAX, max: 0 };

impl<'a> Estimator<'a> {
    fn cost(&mut self, expr: &Expr) -> CostEstimate {
        match &expr.kind {
            ExprKind::Literal(_) => NOTHING,
            ExprKind::Ident(name) => {
                let local = self.local(name).map(|local| local.path.clone());
                self.paths.insert(expr.id, local.unwrap_or_else(|| vec![name.clone()]));
                ONE
            }
            ExprKind::Select(select) => {
                let operand = self.cost(&select.operand);
                if select.test_only {
                    return operand;
                }
                let ty = self.checked.type_of(select.operand.id);
                let is_access = matches!(ty, Type::Map(..) | Type::Object(_) | Type::Param(_));
                let path = [self.path(&select.operand), vec![select.field.clone()]].concat();
                self.paths.insert(expr.id, path);
                if is_access { operand.add(ONE) } else { operand }
            }
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::List(list) => {
                let (sum, value) = self.parts(list.elements.iter());
                self.entries.insert(expr.id, EntrySizes { is_list: true, key: ONE, value });
                sum.add(LIST)
            }
            ExprKind::Map(entries) => {
                let (keys, key) = self.parts(entries.iter().map(|entry| &entry.key));
                let (values, value) = self.parts(entries.iter().map(|entry| &entry.value));
                self.entries.insert(expr.id, EntrySizes { is_list: false, key, value });
                keys.add(values).add(MAP)
            }
            ExprKind::Struct(object) => {
                let fields = object.fields.iter().map(|field| self.cost(&field.value));
                fields.fold(STRUCT, CostEstimate::add)
            }
            ExprKind::Comprehension(fold) if is_binding(fold) => self.binding(expr, fold),
            ExprKind::Comprehension(fold) => self.comprehension(expr, fold),
        }
    }

    /// Costs of the parts of a literal, and the range of their sizes.
    fn parts<'e>(&mut self, parts: impl Iterator<Item = &'e Expr>) -> (CostEstimate, CostEstimate) {
        let (mut sum, mut size, mut is_empty) = (NOTHING, EMPTY, true);
        for part in parts {
            is_empty = false;
            sum = sum.add(self.cost(part));
            size = size.union(self.size_or_unknown(part));
        }
        (sum, if is_empty { NOTHING } else { size })
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> CostEstimate {
        if let ("dyn", Some(arg)) = (call.function.as_str(), call.args.first()) {
            let cost = self.cost(arg);
            self.copy_sizes(expr, arg);
            return cost.add(ONE);
        }
        let costs: Vec<CostEstimate> = call.args.iter().map(|arg| self.cost(arg)).collect();
        let args: Vec<Arg<'_>> = call.args.iter().map(|arg| self.arg(arg)).collect();
        let Some(Reference::Overloads(overloads)) = self.checked.reference(expr.id) else {
            return NOTHING;
        };
        let mut sum = NOTHING;
        let target = call.target.as_ref().map(|target| {
            sum = self.cost(target);
            self.arg(target)
        });
        let (mut cost, mut result) = (EMPTY, None);
        for overload in overloads {
            let one = calls::CostedCall {
                function: &call.function,
                overload,
                target: target.as_ref(),
                args: &args,
                costs: &costs,
            };
            let (own, size) = one.estimate(self);
            cost = cost.union(own);
            result = match (result, size) {
                (Some(result), Some(size)) => Some(CostEstimate::union(result, size)),
                (result, size) => result.or(size),
            };
            self.entries_of_call(expr, call, overload);
            if let ("index_list" | "index_map", Some(operand)) = (*overload, call.args.first()) {
                result = self.entry_sizes(operand).map(|entries| entries.value);
                let step = if *overload == "index_list" { "@items" } else { "@values" };
                let path = [self.path(operand), vec![step.to_owned()]].concat();
                self.paths.insert(expr.id, path);
            }
            result = result.or_else(|| self.size(expr));
        }
        self.computed.extend(result.map(|size| (expr.id, size)));
        sum.add(cost)
    }

    /// Sizes of the parts of a condition's or a sum's result.
    fn entries_of_call(&mut self, expr: &Expr, call: &Call, overload: &str) {
        let (left, right) = match (overload, call.args.as_slice()) {
            ("conditional", [_, left, right]) => (left, right),
            ("add_string" | "add_bytes" | "add_list", [left, right]) => (left, right),
            _ => return,
        };
        if let (Some(left), Some(right)) = (self.entry_sizes(left), self.entry_sizes(right)) {
            let (key, value) = (left.key.union(right.key), left.value.union(right.value));
            self.entries.insert(expr.id, EntrySizes { is_list: left.is_list, key, value });
        }
    }

    fn comprehension(&mut self, expr: &Expr, fold: &Comprehension) -> CostEstimate {
        let sum = self.cost(&fold.range).add(self.cost(&fold.init));
        self.push_value(&fold.accumulator, &fold.init);
        let depth = self.locals.len();
        match &fold.second_variable {
            Some(second) => {
                self.push_part(&fold.variable, &fold.range, RangePart::Key);
                self.push_part(second, &fold.range, RangePart::Value);
            }
            None => self.push_part(&fold.variable, &fold.range, RangePart::Single),
        }
        let round = self.cost(&fold.condition);
        let round = self.cost(&fold.step).add(round);
        self.locals.truncate(depth);
        let sum = sum.add(self.cost(&fold.result));
        self.locals.pop();
        let count = self.size_or_unknown(&fold.range);
        match &fold.init.kind {
            ExprKind::Literal(_) => {
                let size = self.size(&fold.init);
                self.computed.extend(size.map(|size| (expr.id, size)));
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.computed.insert(expr.id, count);
                self.entries.extend(self.entry_sizes(&fold.step).map(|entries| (expr.id, entries)));
            }
            _ => {}
        }
        sum.add(count.multiply(round))
    }

    fn binding(&mut self, expr: &Expr, fold: &Comprehension) -> CostEstimate {
        let sum = self.cost(&fold.range).add(self.cost(&fold.init));
        self.push_value(&fold.accumulator, &fold.init);
        let sum = sum.add(self.cost(&fold.result));
        // The sizes of the result are those with the variable bound.
        self.copy_sizes(expr, &fold.result);
        self.locals.pop();
        sum
    }

    fn push_value(&mut self, name: &str, value: &Expr) {
        let (path, size) = (self.path(value), self.size(value));
        let entries = self.entry_sizes(value);
        self.locals.push(Local { name: name.to_owned(), path, size, entries });
    }

    fn push_part(&mut self, name: &str, range: &Expr, part: RangePart) {
        let entries = self.entry_sizes(range);
        let by_type = || matches!(self.checked.type_of(range.id), Type::List(_));
        let is_list = entries.map_or_else(by_type, |entries| entries.is_list);
        let (step, is_key) = match (part, is_list) {
            (RangePart::Key, true) => ("@indices", true),
            (RangePart::Key | RangePart::Single, false) => ("@keys", true),
            (RangePart::Value | RangePart::Single, true) => ("@items", false),
            (RangePart::Value, false) => ("@values", false),
        };
        let size = entries.map(|entries| if is_key { entries.key } else { entries.value });
        let path = [self.path(range), vec![step.to_owned()]].concat();
        self.locals.push(Local { name: name.to_owned(), path, size, entries: None });
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, expr: &Expr) -> Path {
        let local = match &expr.kind {
            ExprKind::Ident(name) => self.local(name),
            _ => None,
        };
        let own = || self.paths.get(&expr.id).cloned().unwrap_or_default();
        local.map_or_else(own, |local| local.path.clone())
    }

    fn arg<'e>(&mut self, expr: &'e Expr) -> Arg<'e>
    where
        'a: 'e,
    {
        let mut path = self.path(expr);
        if path
            .first()
            .is_some_and(|first| first == operators::ACCUMULATOR || first == "__result__")
        {
            path.clear();
        }
        Arg { path, ty: self.checked.type_of(expr.id), expr, size: self.size(expr) }
    }

    /// Largest size of the data at a path.
    pub(super) fn size_at(&self, path: &[String]) -> Option<CostEstimate> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let max = if path.is_empty() { None } else { self.sizes.max_size(&path) };
        max.map(|max| CostEstimate { min: 0, max })
    }

    fn size(&mut self, expr: &Expr) -> Option<CostEstimate> {
        if let Some(size) = self.computed.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(CostEstimate::fixed(size));
        }
        if let Some(size) = self.size_at(&self.path(expr)) {
            self.computed.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(expr.id)) {
            return Some(ONE);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> CostEstimate {
        self.size(expr).unwrap_or(UNKNOWN)
    }

    fn entry_sizes(&self, expr: &Expr) -> Option<EntrySizes> {
        if let Some(entries) = self.entries.get(&expr.id) {
            return Some(*entries);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.entries,
            _ => None,
        }
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        let (size, entries) = (self.size(from), self.entry_sizes(from));
        self.computed.extend(size.map(|size| (to.id, size)));
        self.entries.extend(entries.map(|entries| (to.id, entries)));
    }
}

/// The part of a range that a variable has.
#[derive(Clone, Copy)]
enum RangePart {
    /// Index or key.
    Key,
    /// Element or value.
    Value,
    /// The element of a list, the key of a map.
    Single,
}

/// Whether a comprehension runs no round and only binds its accumulator.
fn is_binding(fold: &Comprehension) -> bool {
    let has_no_range = matches!(&fold.range.kind, ExprKind::List(list) if list.elements.is_empty());
    let has_no_round = matches!(fold.condition.kind, ExprKind::Literal(Literal::Bool(false)));
    has_no_range && has_no_round && fold.accumulator != "__result__"
}

fn literal_size(expr: &Expr) -> Option<u64> {
    match &expr.kind {
        ExprKind::Literal(Literal::String(text)) => Some(text.chars().count() as u64),
        ExprKind::Literal(Literal::Bytes(bytes)) => Some(bytes.len() as u64),
        ExprKind::Literal(_) => Some(1),
        ExprKind::List(list) => Some(list.elements.len() as u64),
        ExprKind::Map(entries) => Some(entries.len() as u64),
        _ => None,
    }
}

fn is_scalar(ty: &Type) -> bool {
    use Type::{Bool, Double, Duration, Int, Timestamp, Uint};
    matches!(ty, Bool | Double | Duration | Int | Timestamp | Uint)
        || ty.optional_content().is_some_and(is_scalar)
}
