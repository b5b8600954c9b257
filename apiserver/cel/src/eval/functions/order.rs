//! Comparisons by methods, which quantities and versions share by name.

use std::cmp::Ordering;

use super::super::error::EvalError;
use super::super::value::Value;
use super::{CallArgs, Function, quantity, semver};

/// Returns the body of the comparison with this name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "isGreaterThan" => |call| order(call).map(|order| Value::Bool(order.is_gt())),
        "isLessThan" => |call| order(call).map(|order| Value::Bool(order.is_lt())),
        "compareTo" => |call| order(call).map(|order| Value::Int(order as i64)),
        _ => return None,
    })
}

fn order(call: &CallArgs<'_, '_>) -> Result<Ordering, EvalError> {
    semver::order(call)
        .or_else(|| quantity::order(call))
        .unwrap_or_else(|| Err(call.no_such_overload()))
}
