//! Conversions between types, and the texts of values.

use std::sync::Arc;

use super::super::error::EvalError;
use super::super::value::Value;
use super::{CallArgs, Function};

/// The body of a conversion by its name.
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
    if value.type_name() == target {
        return Ok(value);
    }
    let from = value.type_name();
    let error = || EvalError::new(format!("type conversion error from '{from}' to '{target}'"));
    body(&value)?.ok_or_else(error)
}

const INT_OVERFLOW: EvalError = EvalError::Static("integer overflow");
const UINT_OVERFLOW: EvalError = EvalError::Static("unsigned integer overflow");

fn to_int<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(match value {
        Value::Uint(value) => Some(Value::Int(i64::try_from(*value).map_err(|_| INT_OVERFLOW)?)),
        Value::Double(value) => {
            // The largest double below 2^63 is the last one; NaN and the infinities fail as well.
            if !(*value > -9_223_372_036_854_775_808.0 && *value < 9_223_372_036_854_775_807.0) {
                return Err(INT_OVERFLOW);
            }
            Some(Value::Int(*value as i64))
        }
        Value::String(text) => text.parse().ok().map(Value::Int),
        Value::Timestamp(time) => Some(Value::Int(time.as_second())),
        Value::Duration(nanoseconds) => Some(Value::Int(*nanoseconds)),
        _ => None,
    })
}

fn to_uint<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(match value {
        Value::Int(value) => Some(Value::Uint(u64::try_from(*value).map_err(|_| UINT_OVERFLOW)?)),
        Value::Double(value) => {
            if !(*value >= 0.0 && *value < 18_446_744_073_709_551_615.0) {
                return Err(UINT_OVERFLOW);
            }
            Some(Value::Uint(*value as u64))
        }
        Value::String(text) if !text.starts_with('+') => text.parse().ok().map(Value::Uint),
        _ => None,
    })
}

fn to_double<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(match value {
        Value::Int(value) => Some(Value::Double(*value as f64)),
        Value::Uint(value) => Some(Value::Double(*value as f64)),
        Value::String(text) => text.parse().ok().map(Value::Double),
        _ => None,
    })
}

fn to_bool<'a>(value: &Value<'a>) -> Converted<'a> {
    let Value::String(text) = value else { return Ok(None) };
    Ok(match &**text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(Value::Bool(true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(Value::Bool(false)),
        _ => None,
    })
}

fn to_string<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(match value {
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Some(Value::text(text)),
            Err(_) => {
                return Err(EvalError::Static("invalid UTF-8 in bytes, cannot convert to string"));
            }
        },
        Value::Double(value) => Some(Value::text(double_text(*value))),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) => Some(Value::text(display(value))),
        Value::Timestamp(_) | Value::Duration(_) => Some(Value::text(display(value))),
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
        Value::Int(seconds) if (-62_135_596_800..=253_402_300_799).contains(seconds) => {
            jiff::Timestamp::from_second(*seconds).ok().map(Value::Timestamp)
        }
        Value::Int(_) => return Err(EvalError::Static("timestamp overflow")),
        Value::String(text) => text.parse().ok().map(Value::Timestamp),
        _ => None,
    })
}

fn to_duration<'a>(value: &Value<'a>) -> Converted<'a> {
    Ok(match value {
        Value::Int(nanoseconds) => Some(Value::Duration(*nanoseconds)),
        Value::String(text) => super::super::time::parse_duration(text).map(Value::Duration),
        _ => None,
    })
}

/// A number as Go formats it in its shortest form: with an exponent from 1e-5 down and from 1e+06 up.
fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = exponent.parse().unwrap_or_default();
    if value != 0.0 && !(-4..6).contains(&power) {
        let sign = if power < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", power.abs());
    }
    format!("{value}")
}

/// The text of a value in messages.
pub fn display(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => double_text(*value),
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => format!("{bytes:?}").replace(',', ""),
        Value::List(list) => {
            let items: Vec<String> = list
                .iter()
                .map(|item| item.map_or_else(|error| error.to_string(), |item| display(&item)))
                .collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entry = |key: &Value<'_>, value: Option<Value<'_>>| {
                format!("{}: {}", display(key), value.as_ref().map(display).unwrap_or_default())
            };
            let entries: Vec<String> =
                map.keys().iter().map(|key| entry(key, map.find(key).ok().flatten())).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(nanoseconds) => duration_text(*nanoseconds),
        Value::Type(name) => name.to_string(),
        Value::Optional(Some(content)) => format!("optional({})", display(content)),
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Opaque(value) => format!("{value:?}"),
    }
}

/// Seconds with a unit, the way cel-go writes a duration.
fn duration_text(nanoseconds: i64) -> String {
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    if rest == 0 {
        return format!("{seconds}s");
    }
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let fraction = format!("{:09}", rest.abs());
    format!("{sign}{}.{}s", seconds.abs(), fraction.trim_end_matches('0'))
}
