//! Conversions between types, and the texts of values.

use std::sync::Arc;

use super::super::error::EvalError;
use super::super::value::Value;
use super::super::work::WorkBudget;
use super::{CallArgs, Function};
use crate::library::duration::Duration;
use crate::library::number;
use crate::library::timestamp::Timestamp;
use crate::schema::MAX_DEPTH;

/// Maximum number of steps of `display`.
const MAX_STEPS: u64 = 4_000_000;
/// Steps for each part of a value that the text of the value shows.
const PART: u64 = 4;

/// Returns the body of the conversion with this name.
pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "int" => |call| convert(call, "int", to_int),
        "uint" => |call| convert(call, "uint", to_uint),
        "double" => |call| convert(call, "double", to_double),
        "bool" => |call| convert(call, "bool", to_bool),
        "string" => |call| convert(call, "string", to_string),
        "bytes" => |call| convert(call, "bytes", to_bytes),
        "timestamp" => |call| convert(call, "google.protobuf.Timestamp", to_timestamp),
        "duration" => |call| convert(call, "google.protobuf.Duration", to_duration),
        "dyn" => |call| Ok(call.take(0)),
        "type" => |call| Ok(Value::Type(Arc::from(call.take(0).type_name()))),
        _ => return None,
    })
}

type Converted<'a> = Result<Option<Value<'a>>, EvalError>;

fn convert<'a>(
    call: &mut CallArgs<'_, 'a>,
    target: &str,
    body: fn(&Value<'a>) -> Converted<'a>,
) -> Result<Value<'a>, EvalError> {
    let value = call.take(0);
    if !overload_accepts(call.overload, &value) {
        let from = value.type_name();
        return Err(EvalError::new(format!("no such overload: {}({from})", call.function)));
    }
    if value.type_name() == target {
        return Ok(value);
    }
    // CEL's cost of a conversion without a declared type is 1 for any length, but the work grows
    // with the length, and some errors repeat the text.
    match &value {
        Value::String(text) => call.work.copy(text.len())?,
        Value::Bytes(bytes) => call.work.copy(bytes.len())?,
        _ => {}
    }
    if let Some(converted) = body(&value)? {
        return Ok(converted);
    }
    let from = value.type_name();
    Err(EvalError::new(match value {
        // The type can be converted, this value cannot; the server declares
        // `duration(int)` but does not implement it.
        Value::String(_) | Value::Bytes(_) => {
            format!("type conversion error from '{from}' to '{target}'")
        }
        Value::Int(_) if call.function == "duration" => {
            format!("type conversion error from '{from}' to '{target}'")
        }
        _ => format!("no such overload: {}({from})", call.function),
    }))
}

/// Whether the overload that the type checker chose accepts the type of the value. The value of an
/// optional `oldSelf` has no schema, and so the parts may have other types than those that are
/// declared.
fn overload_accepts(overload: Option<&str>, value: &Value<'_>) -> bool {
    let from = match value {
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "double",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Timestamp(_) => "timestamp",
        Value::Duration(_) => "duration",
        _ => return true,
    };
    let declared = overload.and_then(|overload| overload.split_once("_to_"));
    declared.is_none_or(|(declared, _)| declared == from)
}

fn to_int<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(match value {
        Value::Uint(value) => Some(Value::Int(
            i64::try_from(*value).map_err(|_| EvalError::Static("integer overflow"))?,
        )),
        Value::Double(value) => {
            Some(Value::Int(number::double_to_int(*value).map_err(EvalError::Static)?))
        }
        Value::String(text) => number::parse_int(text).map(Value::Int),
        Value::Timestamp(time) => Some(Value::Int(time.unix_seconds())),
        Value::Duration(duration) => Some(Value::Int(duration.as_nanos())),
        _ => None,
    })
}

fn to_uint<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(match value {
        Value::Int(value) => Some(Value::Uint(
            u64::try_from(*value).map_err(|_| EvalError::Static("unsigned integer overflow"))?,
        )),
        Value::Double(value) => {
            Some(Value::Uint(number::double_to_uint(*value).map_err(EvalError::Static)?))
        }
        Value::String(text) => number::parse_uint(text).map(Value::Uint),
        _ => None,
    })
}

fn to_double<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(match value {
        Value::Int(value) => Some(Value::Double(*value as f64)),
        Value::Uint(value) => Some(Value::Double(*value as f64)),
        Value::String(text) => number::parse_float(text).map(Value::Double),
        _ => None,
    })
}

fn to_bool<'a>(value: &Value<'a>) -> Converted<'a> {
    let Value::String(text) = value else { return Ok(None) };
    Ok(number::parse_bool(text).map(Value::Bool))
}

fn to_string<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(match value {
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Some(Value::text(text)),
            Err(_) => {
                return Err(EvalError::Static("invalid UTF-8 in bytes, cannot convert to string"));
            }
        },
        Value::Double(value) => Some(Value::text(number::format_double(*value))),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) => Some(Value::text(display(value))),
        Value::Timestamp(_) | Value::Duration(_) => Some(Value::text(display(value))),
        Value::Opaque(value) => super::net::to_text(&**value).map(Value::text),
        _ => None,
    })
}

fn to_bytes<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(match value {
        Value::String(text) => Some(Value::Bytes(Arc::from(text.as_bytes()))),
        _ => None,
    })
}

fn to_timestamp<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(match value {
        Value::Int(seconds) => {
            Some(Value::Timestamp(Timestamp::from_unix(*seconds).map_err(EvalError::Static)?))
        }
        Value::String(text) => {
            Some(Value::Timestamp(Timestamp::parse(text).map_err(EvalError::Static)?))
        }
        _ => None,
    })
}

fn to_duration<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(match value {
        Value::String(text) => Duration::parse(text).ok().map(Value::Duration),
        _ => None,
    })
}

/// The text of a value in messages. It ends with `...` where the value is nested too deeply or has
/// too many parts.
pub fn display(value: &Value<'_>) -> String {
    display_at(value, 0, &WorkBudget::new(MAX_STEPS))
}

/// Returns the text of a value; an error if that takes more steps than are left.
pub(crate) fn display_within(value: &Value<'_>, work: &WorkBudget) -> Result<String, EvalError> {
    let text = display_at(value, 0, work);
    work.copy(text.len())?;
    // After a refusal the text is a short `...`, for which the remaining steps always suffice.
    if work.was_exceeded() { Err(EvalError::CostLimitExceeded) } else { Ok(text) }
}

/// Joins the texts of items or entries. `...` stands for those for which no steps are left.
fn parts<T>(
    all: impl Iterator<Item = T>,
    work: &WorkBudget,
    display: impl Fn(T) -> String,
) -> String {
    let mut texts = Vec::new();
    for one in all {
        if work.left() == 0 {
            texts.push("...".to_owned());
            break;
        }
        texts.push(display(one));
    }
    texts.join(", ")
}

fn display_at(value: &Value<'_>, depth: usize, work: &WorkBudget) -> String {
    let display = |value: &Value<'_>| display_at(value, depth + 1, work);
    match value {
        _ if depth > MAX_DEPTH || work.take(PART).is_err() => "...".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => number::format_double(*value),
        Value::String(text) if work.copy(text.len()).is_err() => "...".to_owned(),
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) if work.copy(bytes.len()).is_err() => "...".to_owned(),
        Value::Bytes(bytes) => format!("{bytes:?}").replace(',', ""),
        Value::List(list) => {
            let item = |item: Result<Value<'_>, EvalError>| {
                item.map_or_else(|error| error.to_string(), |item| display(&item))
            };
            format!("[{}]", parts(list.iter(), work, item))
        }
        Value::Map(map) => {
            let entry = |key: &Value<'_>, value: Option<Value<'_>>| {
                format!("{}: {}", display(key), value.as_ref().map(&display).unwrap_or_default())
            };
            let entry = |key: &Value<'_>| entry(key, map.find(key).ok().flatten());
            format!("{{{}}}", parts(map.keys().iter(), work, entry))
        }
        Value::Timestamp(time) => time.to_rfc3339(),
        Value::Duration(duration) => duration.to_cel_string(),
        Value::Type(name) => name.to_string(),
        Value::Optional(Some(content)) => format!("optional({})", display(content)),
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Opaque(value) => format!("{value:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_takes_more_steps_than_are_left_is_an_error_and_not_a_short_text() {
        let text = Value::text("x".repeat(80));
        for steps in 0..24 {
            let shown = display_within(&text, &WorkBudget::new(steps));
            assert_eq!(shown, Err(EvalError::CostLimitExceeded), "{steps} steps");
        }
        // 4 for the value, 10 for reading the text, 10 for the copy.
        assert_eq!(display_within(&text, &WorkBudget::new(24)), Ok("x".repeat(80)));
    }

    #[test]
    fn a_list_whose_steps_end_between_two_items_shows_that_items_are_missing() {
        let list = Value::list((0..3).map(Value::Int).collect());
        assert_eq!(display_at(&list, 0, &WorkBudget::new(8)), "[0, ...]");
        assert_eq!(display_at(&list, 0, &WorkBudget::new(16)), "[0, 1, 2]");
    }
}
