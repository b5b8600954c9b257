//! Struct literals of the well-known protobuf messages: `google.protobuf.Int32Value{value: 1}`.
//!
//! The fields are stored as protobuf stores them (a `float` is rounded, numbers of JSON are
//! doubles), and the message is read back as the value for which the message stands. An object of a
//! schema has no literal: the server knows the type, but constructs no value of it.

use std::any::Any;
use std::sync::Arc;

use super::error::{EvalError, deeper};
use super::functions::display;
use super::map::{Entries, Map};
use super::value::{Opaque, Value};
use super::work::WorkBudget;
use crate::library::base64;
use crate::library::duration::Duration;
use crate::library::timestamp::Timestamp;

type Converted<'a> = Result<Value<'a>, EvalError>;

/// Prefix of the messages' names.
const PACKAGE: &str = "google.protobuf.";
/// Elements of a list that take the time and memory of an entry of a map.
const ENTRY: usize = 4;
/// Largest integer that a number of JSON holds exactly, both signs.
const MAX_JSON_INT: i64 = (1 << 53) - 1;
const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The value of a message with these fields, in the order of the literal.
///
/// # Errors
///
/// cel-go's texts, for a type that no literal can have and for a field that does not take its
/// value.
pub(super) fn construct<'a>(
    type_name: &str,
    fields: Vec<(&str, Value<'a>)>,
    work: &WorkBudget,
) -> Converted<'a> {
    let unknown = || EvalError::new(format!("unknown type '{type_name}'"));
    let message = type_name.strip_prefix(PACKAGE).ok_or_else(unknown)?;
    match message {
        "Value" => MessageFields { message, fields }.json_value(work),
        "Struct" => MessageFields { message, fields }.one(
            "fields",
            |value| json_struct(value, 0, work),
            empty_map(),
        ),
        "ListValue" => MessageFields { message, fields }.one(
            "values",
            |value| json_list(value, 0, work),
            empty_list(),
        ),
        // The server has no value for the message, whatever the content.
        "Any" => Err(EvalError::Static("unsupported conversion to ref.Val: (*dynamicpb.Message)")),
        "Empty" if fields.is_empty() => Ok(Value::Opaque(Arc::new(Empty))),
        "Duration" => MessageFields { message, fields }.duration(),
        "Timestamp" => MessageFields { message, fields }.timestamp(),
        _ => {
            let (scalar, default) = wrapped(message).ok_or_else(unknown)?;
            let convert = |value| scalar.convert(value);
            MessageFields { message, fields }.one("value", convert, default)
        }
    }
}

/// `google.protobuf.Empty`, the only message that stands for no other value.
#[derive(Debug)]
struct Empty;

impl Opaque for Empty {
    fn type_name(&self) -> &str {
        "google.protobuf.Empty"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().is::<Empty>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn empty_map() -> Value<'static> {
    Value::Map(Map::Entries(Arc::default()))
}

fn empty_list() -> Value<'static> {
    Value::list(Vec::new())
}

/// A protobuf type of a field.
#[derive(Debug, Clone, Copy)]
enum ProtobufScalar {
    Bool,
    Bytes,
    Double,
    Float,
    Int32,
    Int64,
    Null,
    String,
    Uint32,
    Uint64,
}

/// The field of a wrapper and the value of an unset field.
fn wrapped(message: &str) -> Option<(ProtobufScalar, Value<'static>)> {
    Some(match message {
        "BoolValue" => (ProtobufScalar::Bool, Value::Bool(false)),
        "BytesValue" => (ProtobufScalar::Bytes, Value::Bytes(Arc::from([]))),
        "DoubleValue" => (ProtobufScalar::Double, Value::Double(0.0)),
        "FloatValue" => (ProtobufScalar::Float, Value::Double(0.0)),
        "Int32Value" => (ProtobufScalar::Int32, Value::Int(0)),
        "Int64Value" => (ProtobufScalar::Int64, Value::Int(0)),
        "StringValue" => (ProtobufScalar::String, Value::text("")),
        "UInt32Value" => (ProtobufScalar::Uint32, Value::Uint(0)),
        "UInt64Value" => (ProtobufScalar::Uint64, Value::Uint(0)),
        _ => return None,
    })
}

impl ProtobufScalar {
    /// Name of the Go type, for messages.
    fn go_type(self) -> &'static str {
        match self {
            ProtobufScalar::Bool => "bool",
            ProtobufScalar::Bytes => "[]uint8",
            ProtobufScalar::Double => "float64",
            ProtobufScalar::Float => "float32",
            ProtobufScalar::Int32 => "int32",
            ProtobufScalar::Int64 => "int64",
            ProtobufScalar::Null => "structpb.NullValue",
            ProtobufScalar::String => "string",
            ProtobufScalar::Uint32 => "uint32",
            ProtobufScalar::Uint64 => "uint64",
        }
    }

    /// The value in the form that the field stores.
    fn convert<'a>(self, value: Value<'a>) -> Converted<'a> {
        match (self, value) {
            (ProtobufScalar::Int32 | ProtobufScalar::Null, Value::Int(value)) => {
                match i32::try_from(value) {
                    Ok(_) if matches!(self, ProtobufScalar::Null) => Ok(Value::Null),
                    Ok(value) => Ok(Value::Int(value.into())),
                    Err(_) => Err(EvalError::Static("integer overflow")),
                }
            }
            (ProtobufScalar::Null, Value::Null) => Ok(Value::Null),
            (ProtobufScalar::Uint32, Value::Uint(value)) => match u32::try_from(value) {
                Ok(value) => Ok(Value::Uint(value.into())),
                Err(_) => Err(EvalError::Static("unsigned integer overflow")),
            },
            (ProtobufScalar::Float, Value::Double(value)) => {
                Ok(Value::Double(f64::from(value as f32)))
            }
            (ProtobufScalar::Bool, value @ Value::Bool(_))
            | (ProtobufScalar::Bytes, value @ Value::Bytes(_))
            | (ProtobufScalar::Double, value @ Value::Double(_))
            | (ProtobufScalar::Int64, value @ Value::Int(_))
            | (ProtobufScalar::String, value @ Value::String(_))
            | (ProtobufScalar::Uint64, value @ Value::Uint(_)) => Ok(value),
            (_, value) => Err(unsupported(&value, self.go_type())),
        }
    }
}

/// The error for a value that does not become a Go type; each type of value has a separate text.
fn unsupported(value: &Value<'_>, target: &str) -> EvalError {
    EvalError::new(match value {
        Value::Int(_) => format!("unsupported type conversion from 'int' to {target}"),
        Value::Uint(_) => format!("unsupported type conversion from 'uint' to {target}"),
        Value::Double(_) => format!("type conversion error from Double to '{target}'"),
        Value::String(_) => format!("unsupported native conversion from string to '{target}'"),
        Value::Bytes(_) => format!("type conversion error from Bytes to '{target}'"),
        Value::Timestamp(_) => format!("type conversion error from 'Timestamp' to '{target}'"),
        Value::Duration(_) => format!("type conversion error from 'Duration' to '{target}'"),
        Value::Null => format!("type conversion error from 'null_type' to '{target}'"),
        other => format!("type conversion error from {} to '{target}'", other.type_name()),
    })
}

/// The fields of a literal under the name of the message.
struct MessageFields<'m, 'a> {
    message: &'m str,
    fields: Vec<(&'m str, Value<'a>)>,
}

impl<'a> MessageFields<'_, 'a> {
    /// The value of a message with a single field.
    fn one(
        self,
        field: &str,
        convert: impl Fn(Value<'a>) -> Converted<'a>,
        default: Value<'a>,
    ) -> Converted<'a> {
        let message = self.message;
        let mut result = default;
        for (name, value) in self.fields {
            if name != field {
                return Err(no_such_field(name));
            }
            if matches!(field, "fields" | "values") && !is_container(field, &value) {
                let ty = value.type_name();
                let text = format!("unsupported field type for {PACKAGE}{message}.{field}: {ty}");
                return Err(EvalError::new(text));
            }
            result = convert(value).map_err(|error| conversion_error(message, field, &error))?;
        }
        Ok(result)
    }

    /// `google.protobuf.Value`: the fields exclude each other, and the last field counts.
    fn json_value(self, work: &WorkBudget) -> Converted<'a> {
        let mut result = Value::Null;
        for (name, value) in self.fields {
            result = match name {
                "bool_value" => ProtobufScalar::Bool.convert(value),
                "number_value" => ProtobufScalar::Double.convert(value),
                "string_value" => ProtobufScalar::String.convert(value),
                "null_value" => ProtobufScalar::Null.convert(value),
                "list_value" => json_list(value, 0, work),
                "struct_value" => json_struct(value, 0, work),
                other => return Err(no_such_field(other)),
            }
            .map_err(|error| conversion_error(self.message, name, &error))?;
        }
        Ok(result)
    }

    /// Seconds and nanoseconds of a duration or a timestamp.
    fn seconds_and_nanos(self) -> Result<(i64, i64), EvalError> {
        let (mut seconds, mut nanos) = (0, 0);
        for (name, value) in self.fields {
            let (target, scalar) = match name {
                "seconds" => (&mut seconds, ProtobufScalar::Int64),
                "nanos" => (&mut nanos, ProtobufScalar::Int32),
                other => return Err(no_such_field(other)),
            };
            let converted = scalar.convert(value);
            match converted.map_err(|error| conversion_error(self.message, name, &error))? {
                Value::Int(value) => *target = value,
                _ => return Err(EvalError::no_such_overload()),
            }
        }
        Ok((seconds, nanos))
    }

    /// A duration; a duration out of range is the longest or the shortest, as protobuf's conversion
    /// to Go has it.
    fn duration(self) -> Converted<'a> {
        let (seconds, nanos) = self.seconds_and_nanos()?;
        let total = seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(nanos);
        Ok(Value::Duration(Duration::from_nanos(total)))
    }

    fn timestamp(self) -> Converted<'a> {
        let (seconds, nanos) = self.seconds_and_nanos()?;
        // Unlike `timestamp(text)` a literal may be out of the range of years that protobuf allows.
        let time = Timestamp::from_parts(seconds, nanos);
        time.map(Value::Timestamp).map_err(EvalError::Static)
    }
}

fn is_container(field: &str, value: &Value<'_>) -> bool {
    match field {
        "fields" => matches!(value, Value::Map(_)),
        _ => matches!(value, Value::List(_)),
    }
}

fn no_such_field(name: &str) -> EvalError {
    EvalError::new(format!("no such field: {name}"))
}

fn conversion_error(message: &str, field: &str, error: &EvalError) -> EvalError {
    if error.is_fatal() {
        return error.clone();
    }
    let place = format!("{PACKAGE}{message}.{field}");
    EvalError::new(format!("field type conversion error for {place} value type: {error}"))
}

/// A list whose elements are values of JSON.
fn json_list<'a>(value: Value<'a>, depth: usize, work: &WorkBudget) -> Converted<'a> {
    let depth = deeper(depth)?;
    let Value::List(list) = value else {
        return Err(unsupported(&value, "*structpb.ListValue"));
    };
    list.iter().map(|item| json(item?, depth, work)).collect::<Result<Vec<_>, _>>().map(Value::list)
}

/// A map from texts to values of JSON.
fn json_struct<'a>(value: Value<'a>, depth: usize, work: &WorkBudget) -> Converted<'a> {
    let depth = deeper(depth)?;
    let Value::Map(map) = value else { return Err(unsupported(&value, "*structpb.Struct")) };
    let mut entries = Entries::default();
    for key in map.keys() {
        // An entry has a key, and a place in the index.
        work.elements(ENTRY)?;
        let value = map.find(&key)?.unwrap_or(Value::Null);
        entries.set(ProtobufScalar::String.convert(key)?, json(value, depth, work)?)?;
    }
    Ok(Value::Map(Map::Entries(Arc::new(entries))))
}

/// The value of JSON that stands for a value: integers that a double does not hold, bytes and times
/// are texts.
fn json<'a>(value: Value<'a>, depth: usize, work: &WorkBudget) -> Converted<'a> {
    work.elements(1)?;
    Ok(match value {
        Value::Null | Value::Bool(_) | Value::Double(_) | Value::String(_) => value,
        Value::Int(value) if (-MAX_JSON_INT..=MAX_JSON_INT).contains(&value) => {
            Value::Double(value as f64)
        }
        Value::Uint(value) if value <= MAX_JSON_INT as u64 => Value::Double(value as f64),
        Value::Int(_) | Value::Uint(_) => Value::text(display(&value)),
        Value::Bytes(bytes) => Value::text(base64::encode(&bytes)),
        Value::Timestamp(time) => Value::text(time.to_rfc3339_utc()),
        Value::Duration(duration) => Value::text(duration.to_cel_string()),
        Value::List(_) => json_list(value, depth, work)?,
        Value::Map(_) => json_struct(value, depth, work)?,
        Value::Optional(Some(content)) => json((*content).clone(), deeper(depth)?, work)?,
        other => return Err(unsupported(&other, "*structpb.Value")),
    })
}

#[cfg(test)]
mod tests {
    use crate::check::Environment;
    use crate::eval::{Limits, Program, Variables, functions};

    fn evaluated(text: &str) -> String {
        let checked = Environment::kubernetes().compile(text).unwrap();
        let program = Program::new(&checked).unwrap();
        let (variables, limits) = (Variables::new(), Limits::new(1000));
        let outcome = program.evaluate(&variables, limits);
        outcome.result.map_or_else(|error| error.to_string(), |value| functions::display(&value))
    }

    #[test]
    fn a_message_is_the_value_that_it_stands_for() {
        let cases = [
            ("google.protobuf.FloatValue{value: 0.1} == 0.1", "false"),
            ("google.protobuf.Value{}", "null"),
            ("google.protobuf.Value{list_value: [1, 9007199254740993]}", "[1, 9007199254740993]"),
            ("type(google.protobuf.ListValue{values: [1]}[0])", "double"),
            ("google.protobuf.Struct{fields: {'a': b'\\x01'}}.a", "AQ=="),
            ("google.protobuf.Duration{seconds: 1, nanos: 500000000}", "1.5s"),
            ("google.protobuf.Timestamp{seconds: 1}", "1970-01-01T00:00:01Z"),
            ("google.protobuf.Timestamp{seconds: 253402300800, nanos: -1}.getFullYear()", "9999"),
            ("google.protobuf.Timestamp{seconds: 253402300800}.getFullYear()", "10000"),
            (
                "google.protobuf.Any{type_url: 'a'}",
                "unsupported conversion to ref.Val: (*dynamicpb.Message)",
            ),
            ("google.protobuf.Timestamp{seconds: -9223372036854775808}", "timestamp overflow"),
            ("google.protobuf.Int64Value{?value: optional.none()}", "0"),
            ("google.protobuf.NullValue.NULL_VALUE", "0"),
            ("google.protobuf.Empty{} == google.protobuf.Empty{}", "true"),
        ];
        for (text, expected) in cases {
            assert_eq!(evaluated(text), expected, "{text}");
        }
    }

    #[test]
    fn a_field_refuses_a_value_of_another_type() {
        let at = "field type conversion error for google.protobuf.";
        let cases = [
            (
                "google.protobuf.Int32Value{value: 2147483648}",
                "Int32Value.value value type: integer overflow",
            ),
            (
                "google.protobuf.UInt32Value{value: 4294967296u}",
                "UInt32Value.value value type: unsigned integer overflow",
            ),
            (
                "google.protobuf.BoolValue{value: dyn('a')}",
                "BoolValue.value value type: unsupported native conversion from string to 'bool'",
            ),
            (
                "google.protobuf.Struct{fields: dyn({1: 2})}",
                "Struct.fields value type: unsupported type conversion from 'int' to string",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(evaluated(text), format!("{at}{expected}"), "{text}");
        }
    }
}
