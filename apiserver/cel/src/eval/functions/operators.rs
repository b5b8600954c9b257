//! Operators: arithmetic, order, membership, negation.

use std::cmp::Ordering;

use super::super::equal::{compare, equals};
use super::super::error::EvalError;
use super::super::list::List;
use super::super::map::Map;
use super::super::value::Value;
use super::super::work::WorkBudget;
use super::{CallArgs, Function};

const INT_OVERFLOW: EvalError = EvalError::Static("integer overflow");
const UINT_OVERFLOW: EvalError = EvalError::Static("unsigned integer overflow");

/// Returns the body of the operator with this name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "_+_" => add,
        "_-_" => subtract,
        "_*_" => multiply,
        "_/_" => divide,
        "_%_" => modulo,
        "-_" => negate,
        "!_" => not,
        "_<_" => |call| order(call, Ordering::is_lt),
        "_<=_" => |call| order(call, Ordering::is_le),
        "_>_" => |call| order(call, Ordering::is_gt),
        "_>=_" => |call| order(call, Ordering::is_ge),
        "@in" | "in" => member,
        "@not_strictly_false" | "__not_strictly_false__" => not_strictly_false,
        "size" => size,
        _ => return None,
    })
}

/// The error of an operator on values: the operator is named only if the left value knows no such
/// operator at all.
fn mismatch(call: &CallArgs<'_, '_>, is_known: fn(&Value<'_>) -> bool) -> EvalError {
    match call.args.first() {
        Some(left) if is_known(left) => EvalError::no_such_overload(),
        _ => EvalError::new(format!("no such overload: {}", call.function)),
    }
}

fn has_order(value: &Value<'_>) -> bool {
    use Value::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    matches!(
        value,
        Bool(_) | Int(_) | Uint(_) | Double(_) | String(_) | Bytes(_) | Timestamp(_) | Duration(_)
    )
}

fn has_sum(value: &Value<'_>) -> bool {
    (has_order(value) && !matches!(value, Value::Bool(_))) || matches!(value, Value::List(_))
}

fn has_difference(value: &Value<'_>) -> bool {
    has_number(value) || matches!(value, Value::Timestamp(_) | Value::Duration(_))
}

fn has_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

fn has_modulo(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_))
}

fn order<'a>(
    call: &mut CallArgs<'_, 'a>,
    accept: fn(Ordering) -> bool,
) -> Result<Value<'a>, EvalError> {
    let [left, right] = &*call.args else { return Err(call.no_such_overload()) };
    if !has_order(left) {
        return Err(mismatch(call, has_order));
    }
    compare_within(left, right, call.work).map(|order| Value::Bool(accept(order)))
}

/// The order of two values; strings and bytes take the steps of reading them.
pub(super) fn compare_within<'a>(
    left: &Value<'a>,
    right: &Value<'a>,
    work: &WorkBudget,
) -> Result<Ordering, EvalError> {
    match (left, right) {
        (Value::String(a), Value::String(b)) => work.scan(a.len().min(b.len()))?,
        (Value::Bytes(a), Value::Bytes(b)) => work.scan(a.len().min(b.len()))?,
        _ => {}
    }
    compare(left, right)
}

/// A sum. Where the types are not declared the server's cost is 1, for any length: a chain of
/// doublings of a text could use all memory.
fn add<'a>(call: &mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError> {
    let value = match (call.take(0), call.take(1)) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(b).ok_or(INT_OVERFLOW)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_add(b).ok_or(UINT_OVERFLOW)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
        (Value::String(a), Value::String(b)) => {
            call.work.copy(a.len().saturating_add(b.len()))?;
            Value::text([&*a, &*b].concat())
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            call.work.copy(a.len().saturating_add(b.len()))?;
            Value::Bytes([&*a, &*b].concat().into())
        }
        (Value::List(a), Value::List(b)) => Value::List(super::lists::sum_of(a, b, call.work)?),
        (Value::Duration(a), Value::Duration(b)) => {
            Value::Duration(a.checked_add(b).map_err(EvalError::Static)?)
        }
        (Value::Timestamp(time), Value::Duration(d))
        | (Value::Duration(d), Value::Timestamp(time)) => {
            Value::Timestamp(time.checked_add(d).map_err(EvalError::Static)?)
        }
        (left, right) => {
            if let [first, second] = call.args {
                (*first, *second) = (left, right);
            }
            return Err(mismatch(call, has_sum));
        }
    };
    Ok(value)
}

fn subtract<'a>(call: &mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError> {
    match &*call.args {
        [Value::Int(a), Value::Int(b)] => a.checked_sub(*b).map(Value::Int).ok_or(INT_OVERFLOW),
        [Value::Uint(a), Value::Uint(b)] => a.checked_sub(*b).map(Value::Uint).ok_or(UINT_OVERFLOW),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => {
            a.checked_sub(*b).map(Value::Duration).map_err(EvalError::Static)
        }
        [Value::Timestamp(a), Value::Timestamp(b)] => {
            a.duration_since(*b).map(Value::Duration).map_err(EvalError::Static)
        }
        [Value::Timestamp(time), Value::Duration(d)] => {
            time.checked_sub(*d).map(Value::Timestamp).map_err(EvalError::Static)
        }
        _ => Err(mismatch(call, has_difference)),
    }
}

fn multiply<'a>(call: &mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError> {
    match &*call.args {
        [Value::Int(a), Value::Int(b)] => a.checked_mul(*b).map(Value::Int).ok_or(INT_OVERFLOW),
        [Value::Uint(a), Value::Uint(b)] => a.checked_mul(*b).map(Value::Uint).ok_or(UINT_OVERFLOW),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => Err(mismatch(call, has_number)),
    }
}

fn divide<'a>(call: &mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError> {
    match &*call.args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(EvalError::Static("division by zero"))
        }
        [Value::Int(a), Value::Int(b)] => a.checked_div(*b).map(Value::Int).ok_or(INT_OVERFLOW),
        [Value::Uint(a), Value::Uint(b)] => a.checked_div(*b).map(Value::Uint).ok_or(UINT_OVERFLOW),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => Err(mismatch(call, has_number)),
    }
}

fn modulo<'a>(call: &mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError> {
    match &*call.args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(EvalError::Static("modulus by zero"))
        }
        [Value::Int(a), Value::Int(b)] => a.checked_rem(*b).map(Value::Int).ok_or(INT_OVERFLOW),
        [Value::Uint(a), Value::Uint(b)] => a.checked_rem(*b).map(Value::Uint).ok_or(UINT_OVERFLOW),
        _ => Err(mismatch(call, has_modulo)),
    }
}

fn negate<'a>(call: &mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError> {
    match &*call.args {
        [Value::Int(value)] => value.checked_neg().map(Value::Int).ok_or(INT_OVERFLOW),
        [Value::Double(value)] => Ok(Value::Double(-value)),
        [Value::Duration(value)] => {
            value.checked_neg().map(Value::Duration).map_err(EvalError::Static)
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn not<'a>(call: &mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError> {
    match &*call.args {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn not_strictly_false<'a>(call: &mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError> {
    Ok(Value::Bool(!matches!(&*call.args, [Value::Bool(false)])))
}

fn member<'a>(call: &mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError> {
    match &*call.args {
        [value, Value::List(list)] => contains(list, value, call.work).map(Value::Bool),
        [key, Value::Map(map)] => {
            if let Value::String(text) = key {
                call.work.scan(text.len())?;
            }
            Ok(Value::Bool(map_contains(map, key)?))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn map_contains<'a>(map: &Map<'a>, key: &Value<'a>) -> Result<bool, EvalError> {
    map.find(key).map(|value| value.is_some())
}

/// Whether a list has an equal element. In an array of the data an element that cannot be compared
/// is an error unless another element is equal.
pub(super) fn contains<'a>(
    list: &List<'a>,
    value: &Value<'a>,
    work: &WorkBudget,
) -> Result<bool, EvalError> {
    let mut error = None;
    for item in list.iter() {
        // A list of the server asks the elements, a list of cel-go the wanted value.
        let compared = item.and_then(|item| {
            if list.shape().is_some() {
                equals(&item, value, work)
            } else {
                equals(value, &item, work)
            }
        });
        match compared {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(fatal) if fatal.is_fatal() => return Err(fatal),
            Err(other) => error = error.or(Some(other)),
        }
    }
    match error {
        Some(error) if matches!(list, List::Json(..)) => Err(error),
        _ => Ok(false),
    }
}

fn size<'a>(call: &mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError> {
    match &*call.args {
        [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            if let Value::String(text) = value {
                call.work.scan(text.len())?;
            }
            Ok(Value::Int(value.size() as i64))
        }
        _ => Err(EvalError::new(format!("no such overload: {}", call.function))),
    }
}
