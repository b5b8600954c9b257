//! JSON read under its shape, with the messages of kube-apiserver for data that does not fit.

use serde_json::{Number, Value as Json};

use super::error::EvalError;
use super::list::List;
use super::map::Map;
use super::value::{Text, Value};
use crate::types::shape::{ListShape, Shape};

/// A shape for lists inside of data without a schema would need an owner; they are [`List::Dyn`] instead.
impl<'a> Value<'a> {
    /// A value of JSON under its shape. Objects and arrays are not copied; their parts are read when they are used.
    pub fn json(json: &'a Json, shape: &'a Shape) -> Result<Value<'a>, EvalError> {
        match (shape, json) {
            (Shape::Dyn, _) => Ok(without_shape(json)),
            (_, Json::Null) => {
                Err(EvalError::Static("invalid data, got null for schema with nullable=false"))
            }
            (Shape::Bool, Json::Bool(value)) => Ok(Value::Bool(*value)),
            (Shape::String | Shape::IntOrString, Json::String(text)) => {
                Ok(Value::String(Text::Borrowed(text)))
            }
            (Shape::Int, Json::Number(number)) if number.is_i64() => Ok(integer(number)),
            (Shape::IntOrString, Json::Number(number)) if number.is_i64() => Ok(integer(number)),
            (Shape::Double, Json::Number(number)) => {
                Ok(Value::Double(number.as_f64().unwrap_or(f64::NAN)))
            }
            (Shape::Bytes | Shape::Timestamp | Shape::Duration, Json::String(text)) => {
                formatted(text, shape)
            }
            (Shape::List(shape), Json::Array(items)) => {
                Ok(Value::List(List::Json(items, list_shape(shape))))
            }
            (Shape::Map(shape), Json::Object(map)) => Ok(Value::Map(Map::Json(map, shape))),
            (Shape::Object(shape), Json::Object(map)) => Ok(Value::Map(Map::Object(map, shape))),
            _ => Err(mismatch(shape, json)),
        }
    }
}

fn list_shape(shape: &std::sync::Arc<ListShape>) -> &ListShape {
    shape
}

fn integer<'a>(number: &Number) -> Value<'a> {
    Value::Int(number.as_i64().unwrap_or_default())
}

/// A value of data without a schema.
fn without_shape(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) if number.is_i64() => integer(number),
        Json::Number(number) => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::List(List::Dyn(items)),
        Json::Object(map) => Value::Map(Map::Dyn(map)),
    }
}

/// The error for data of another type than its schema's.
fn mismatch(shape: &Shape, json: &Json) -> EvalError {
    let expected = match shape {
        Shape::IntOrString => {
            let text = "invalid data, expected XIntOrString value to be either a string or integer";
            return EvalError::Static(text);
        }
        Shape::Map(_) | Shape::Object(_) => {
            return EvalError::Static(
                "invalid data, expected a map for the provided schema with type=object",
            );
        }
        Shape::List(_) => {
            return EvalError::Static(
                "invalid data, expected an array for the provided schema with type=array",
            );
        }
        Shape::Bool => "bool",
        Shape::Int => "int",
        Shape::Double => "float",
        _ => "string",
    };
    EvalError::new(format!("invalid data, expected {expected}, got {}", go_type_of(json)))
}

/// Name of the Go type that the data decodes to.
fn go_type_of(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}

/// A text of a format that is read as another type.
fn formatted<'a>(text: &str, shape: &Shape) -> Result<Value<'a>, EvalError> {
    match shape {
        Shape::Bytes => base64(text).map(|bytes| Value::Bytes(bytes.into())).ok_or_else(|| {
            EvalError::new(format!("Invalid byte formatted string {text}: illegal base64 data"))
        }),
        Shape::Duration => {
            super::time::parse_duration(text).map(Value::Duration).ok_or_else(|| {
                EvalError::new(format!(
                    "Invalid duration {text}: unable to parse {text} as duration"
                ))
            })
        }
        _ => super::time::parse_date_or_time(text).map(Value::Timestamp).ok_or_else(|| {
            EvalError::new(format!("Invalid date-time formatted string {text}: unable to parse"))
        }),
    }
}

/// Bytes of a padded base64 text.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    if digits.len() % 4 != 0 {
        return None;
    }
    let padding = digits.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let (data, _) = digits.split_at(digits.len() - padding);
    let mut bytes = Vec::with_capacity(data.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in data {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}
