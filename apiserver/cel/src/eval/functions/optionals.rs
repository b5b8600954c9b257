//! Optionals.

use super::super::error::EvalError;
use super::super::list::List;
use super::super::map::Map;
use super::super::value::Value;
use super::{CallArgs, Function};
use crate::library::timestamp::Timestamp;

/// Returns the body of the function of optionals with this name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "optional.of" => |call| Ok(Value::some(call.take(0))),
        "optional.ofNonZeroValue" => |call| {
            let value = call.take(0);
            Ok(if is_zero(&value) { Value::Optional(None) } else { Value::some(value) })
        },
        "optional.none" => |_| Ok(Value::Optional(None)),
        "value" => value,
        "hasValue" => |call| match call.take(0) {
            Value::Optional(content) => Ok(Value::Bool(content.is_some())),
            other => Err(restored(call, other)),
        },
        "last" => |call| end(call, true),
        "first" => |call| end(call, false),
        "optional.unwrap" | "unwrapOpt" => unwrap_all,
        _ => return None,
    })
}

/// The error for an argument that is no optional.
fn restored<'a>(call: &mut CallArgs<'_, 'a>, value: Value<'a>) -> EvalError {
    if let Some(first) = call.args.first_mut() {
        *first = value;
    }
    call.no_such_overload()
}

fn value<'a>(call: &mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError> {
    match call.take(0) {
        Value::Optional(Some(content)) => Ok((*content).clone()),
        Value::Optional(None) => Err(EvalError::Static("optional.none() dereference")),
        other => Err(restored(call, other)),
    }
}

fn end<'a>(call: &mut CallArgs<'_, 'a>, is_last: bool) -> Result<Value<'a>, EvalError> {
    let list = call.list(0)?;
    let index = if is_last { list.len().saturating_sub(1) } else { 0 };
    Ok(list.get(index).transpose()?.map_or(Value::Optional(None), Value::some))
}

fn unwrap_all<'a>(call: &mut CallArgs<'_, 'a>) -> Result<Value<'a>, EvalError> {
    let mut values = Vec::new();
    for (index, item) in call.list(0)?.iter().enumerate() {
        call.work.elements(1)?;
        match item? {
            Value::Optional(Some(content)) => values.push((*content).clone()),
            Value::Optional(None) => {}
            // The type guard of cel-go looks at the first element only.
            _ if index == 0 => return Err(call.no_such_overload()),
            other => {
                let text = call.display(&other)?;
                return Err(EvalError::new(format!("value {text} is not optional")));
            }
        }
    }
    Ok(Value::list(values))
}

/// Whether a value is the zero of its type.
fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        // Lists and objects of the data have no zero value in the server, even if they are empty.
        Value::List(List::Json(..) | List::Keyed(..))
        | Value::Map(Map::Object(..) | Map::Json(..)) => false,
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Duration(duration) => duration.as_nanos() == 0,
        // The first instant of year 1 is the zero of Go's time.
        Value::Timestamp(time) => {
            time.unix_seconds() == -62_135_596_800
                && *time == Timestamp::from_unix(-62_135_596_800).unwrap_or(*time)
        }
        Value::Optional(content) => content.is_none(),
        _ => false,
    }
}
