//! JSON read under a shape, with the messages of kube-apiserver for data that does not fit.

use serde_json::{Number, Value as Json};

use super::error::EvalError;
use super::list::List;
use super::map::Map;
use super::value::{Text, Value};
use crate::library::base64::{self, Alphabet};
use crate::library::duration::Duration;
use crate::library::timestamp::Timestamp;
use crate::types::shape::{ListShape, Shape};

/// Length of `2024-01-31`.
const DATE_LENGTH: usize = 10;

impl<'a> Value<'a> {
    /// A value of JSON under a shape. Objects and arrays are not copied; their parts are read when
    /// they are used.
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

/// The error for data of another type than the schema's.
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
    let failed =
        |what: &str, cause: String| EvalError::new(format!("Invalid {what} {text}: {cause}"));
    match shape {
        Shape::Bytes => base64::decode(text, Alphabet::Url)
            .map(|bytes| Value::Bytes(bytes.into()))
            .map_err(|cause| failed("byte formatted string", cause)),
        Shape::Duration => Duration::parse_schema_format(text)
            .map(Value::Duration)
            .map_err(|cause| failed("duration", cause)),
        // The shape does not distinguish `date` from `date-time`; the text of a date is always
        // shorter.
        _ if text.len() <= DATE_LENGTH => Timestamp::parse_schema_date(text)
            .map(Value::Timestamp)
            .map_err(|cause| failed("date formatted string", cause)),
        _ => Timestamp::parse_schema_date_time(text)
            .map(Value::Timestamp)
            .map_err(|cause| failed("date-time formatted string", cause)),
    }
}
