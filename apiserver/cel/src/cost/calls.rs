//! Costs of the functions and operators of the language and of cel-go's extensions.

use super::estimator::Estimator;
use super::kubernetes;
use super::range::{CostEstimate, REGEX, TRAVERSAL, UNKNOWN};
use crate::syntax::{Expr, ExprKind, Literal};
use crate::types::Type;

/// An argument, or the receiver.
pub(super) struct Arg<'e> {
    /// Path of the value in the data; empty for other values.
    pub(super) path: Vec<String>,
    pub(super) ty: &'e Type,
    pub(super) expr: &'e Expr,
    pub(super) size: Option<CostEstimate>,
}

/// A call with the known facts about its arguments.
pub(super) struct CostedCall<'c> {
    pub(super) function: &'c str,
    pub(super) overload: &'static str,
    pub(super) target: Option<&'c Arg<'c>>,
    pub(super) args: &'c [Arg<'c>],
    pub(super) costs: &'c [CostEstimate],
}

/// Cost of a call without its arguments, and the size of the result where it is known.
pub(super) type Estimate = (CostEstimate, Option<CostEstimate>);

pub(super) const ONE: CostEstimate = CostEstimate::fixed(1);
/// Cost of a list that a function makes.
const LIST: CostEstimate = CostEstimate::fixed(10);

impl Arg<'_> {
    pub(super) fn size_or_unknown(&self) -> CostEstimate {
        self.size.unwrap_or(UNKNOWN)
    }

    /// A constant integer; another value gives `default`.
    fn int_or(&self, default: u64) -> u64 {
        match &self.expr.kind {
            ExprKind::Literal(Literal::Int(value)) => u64::try_from(*value).unwrap_or(0),
            _ => default,
        }
    }
}

impl CostedCall<'_> {
    /// The estimate with the costs of the arguments.
    pub(super) fn estimate(&self, estimator: &Estimator<'_>) -> Estimate {
        if let Some(cost) = self.logical() {
            return cost;
        }
        let own = self
            .extension()
            .or_else(|| kubernetes::estimate(self, estimator))
            .or_else(|| self.standard())
            .unwrap_or((ONE, None));
        let sum = self.costs.iter().copied().fold(CostEstimate::fixed(0), CostEstimate::add);
        (own.0.add(sum), own.1)
    }

    /// Operators that do not evaluate all of their arguments.
    fn logical(&self) -> Option<Estimate> {
        match (self.overload, self.costs, self.args) {
            ("logical_or" | "logical_and", [left, right], _) => {
                Some((CostEstimate { min: left.min, max: left.add(*right).max }, None))
            }
            ("conditional", [condition, yes, no], [_, one, other]) => {
                let size = one.size_or_unknown().union(other.size_or_unknown());
                Some((condition.add(yes.union(*no)), Some(size)))
            }
            _ => None,
        }
    }

    fn extension(&self) -> Option<Estimate> {
        let size = |arg: &Arg<'_>| arg.size_or_unknown();
        match (self.overload, self.target, self.args) {
            ("list_sets_contains_list" | "list_sets_intersects_list", None, [left, right]) => {
                Some((size(left).multiply(size(right)).times(1.0).add(ONE), None))
            }
            ("list_sets_equivalent_list", None, [left, right]) => {
                Some((size(left).multiply(size(right)).times(2.0).add(ONE), None))
            }
            ("list_slice", Some(target), [from, to]) => {
                let end = to.int_or(size(target).max);
                Some(made(1.0, CostEstimate::fixed(end.wrapping_sub(from.int_or(0)))))
            }
            ("list_flatten", Some(target), []) => Some(made(1.0, size(target))),
            ("list_flatten_int", Some(target), [depth]) => {
                Some(made(depth.int_or(u64::MAX) as f64, size(target)))
            }
            ("lists_range", None, [count]) => {
                Some(made(1.0, CostEstimate::fixed(count.int_or(u64::MAX))))
            }
            ("list_reverse", Some(target), []) => Some(made(1.0, size(target))),
            ("list_distinct", Some(target), []) => {
                Some(made(2.0, size(target).multiply(size(target))))
            }
            (overload, Some(target), args) => {
                let sorted = match (overload.strip_prefix("list_")?, args) {
                    (name, []) if name.ends_with("_sort") => target,
                    (name, [keys]) if name.ends_with("_sortByAssociatedKeys") => keys,
                    _ => return None,
                };
                let is_text = overload.contains("_string_") || overload.contains("_bytes_");
                let factor = if is_text { 2.0 + TRAVERSAL } else { 2.0 };
                Some(made(factor, size(sorted).multiply(size(sorted))))
            }
            _ => None,
        }
    }

    fn standard(&self) -> Option<Estimate> {
        let size = |arg: &Arg<'_>| arg.size_or_unknown();
        match (self.overload, self.target, self.args) {
            ("string_format", Some(target), _) => Some((size(target).times(TRAVERSAL), None)),
            ("string_to_bytes", None, [text]) => {
                let CostEstimate { min, max } = size(text);
                // cel-go multiplies without a check of the range.
                let result = CostEstimate { min, max: max.wrapping_mul(4) };
                Some((size(text).times(TRAVERSAL), Some(result)))
            }
            ("bytes_to_string", None, [bytes]) => {
                let CostEstimate { min, max } = size(bytes);
                Some((size(bytes).times(TRAVERSAL), Some(CostEstimate { min: min / 4, max })))
            }
            ("strings_quote", None, [text]) => {
                let CostEstimate { min, max } = size(text);
                // Every character may be escaped, and there are two quotes; unchecked in cel-go as
                // well.
                let result = CostEstimate {
                    min: min.wrapping_add(2),
                    max: max.wrapping_mul(2).wrapping_add(2),
                };
                Some((size(text).times(TRAVERSAL), Some(result)))
            }
            ("starts_with_string" | "ends_with_string", _, [part]) => {
                Some((size(part).times(TRAVERSAL), None))
            }
            ("in_list", None, [_, list]) => Some((size(list).times(1.0), None)),
            ("matches_string", Some(text), [pattern]) => {
                let text = size(text).add(ONE).times(TRAVERSAL);
                Some((text.multiply(size(pattern).times(REGEX)), None))
            }
            ("contains_string", Some(text), [part]) => {
                Some((size(text).times(TRAVERSAL).multiply(size(part).times(TRAVERSAL)), None))
            }
            ("add_string" | "add_bytes" | "add_list", None, [left, right]) => {
                let sum = size(left).add(size(right));
                let is_list = self.overload == "add_list";
                Some((if is_list { ONE } else { sum.times(TRAVERSAL) }, Some(sum)))
            }
            (overload, None, [left, right]) if compares_contents(overload) => {
                let max = size(left).max.min(size(right).max);
                let compared = CostEstimate { min: u64::from(max > 0), max };
                Some((compared.times(TRAVERSAL), None))
            }
            _ => None,
        }
    }
}

/// Whether a comparison reads its arguments as a whole.
fn compares_contents(overload: &str) -> bool {
    matches!(overload, "equals" | "not_equals")
        || (overload.starts_with("less_") || overload.starts_with("greater_"))
            && (overload.ends_with("_string") || overload.ends_with("_bytes"))
}

/// Cost of a function that makes a list of this size.
fn made(factor: f64, size: CostEstimate) -> Estimate {
    (size.times(factor).add(ONE).add(LIST), Some(size))
}
