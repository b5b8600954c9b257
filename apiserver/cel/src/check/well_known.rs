//! Types that expressions can name without a declaration: those of the language and the protobuf messages
//! that stand for them.

use std::sync::Arc;

use super::environment::Field;
use crate::types::{ObjectType, Type};

/// The type that a name stands for.
pub(super) fn named(name: &str) -> Option<Type> {
    let parameter = |name: &str| Type::Param(name.into());
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "int" => Type::Int,
        "list" => Type::list(parameter("A")),
        "map" => Type::map(parameter("A"), parameter("B")),
        "null_type" => Type::Null,
        "string" => Type::String,
        "type" => Type::Type(None),
        "uint" => Type::Uint,
        "google.protobuf.Any" | "google.protobuf.Value" => Type::Dyn,
        "google.protobuf.Empty" => {
            Type::Object(Arc::new(ObjectType { name: name.into(), fields: Vec::new() }))
        }
        "google.protobuf.Struct" => Type::map(Type::String, Type::Dyn),
        "google.protobuf.ListValue" => Type::list(Type::Dyn),
        other => Type::Wrapper(Arc::new(wrapped(other)?)),
    })
}

/// Type of a field of a protobuf message. In Kubernetes, the names of scalar types count as objects, too:
/// those without fields.
pub(super) fn field(object: &str, field: &str, is_kubernetes: bool) -> Field {
    let Some(message) = object.strip_prefix("google.protobuf.") else {
        let is_scalar = matches!(
            object,
            "bool"
                | "bytes"
                | "double"
                | "duration"
                | "int"
                | "list"
                | "null_type"
                | "string"
                | "timestamp"
                | "uint"
        );
        return match object {
            "map" if is_kubernetes => Field::Found(Type::Dyn),
            _ if is_kubernetes && is_scalar => Field::Undefined,
            _ => Field::UnknownObject,
        };
    };
    let ty = match (message, field) {
        ("Duration" | "Timestamp", "seconds" | "nanos") | ("Value", "null_value") => {
            Some(Type::Int)
        }
        ("Any", "type_url") | ("Value", "string_value") => Some(Type::String),
        ("Any", "value") => Some(Type::Bytes),
        ("Struct", "fields") | ("Value", "struct_value") => {
            Some(Type::map(Type::String, Type::Dyn))
        }
        ("ListValue", "values") | ("Value", "list_value") => Some(Type::list(Type::Dyn)),
        ("Value", "number_value") => Some(Type::Double),
        ("Value", "bool_value") => Some(Type::Bool),
        (_, "value") => wrapped(object),
        _ => None,
    };
    match ty {
        Some(ty) => Field::Found(ty),
        None if named(object).is_some() => Field::Undefined,
        None => Field::UnknownObject,
    }
}

/// The primitive in a protobuf wrapper.
fn wrapped(message: &str) -> Option<Type> {
    Some(match message.strip_prefix("google.protobuf.")? {
        "BoolValue" => Type::Bool,
        "BytesValue" => Type::Bytes,
        "DoubleValue" | "FloatValue" => Type::Double,
        "Int32Value" | "Int64Value" => Type::Int,
        "StringValue" => Type::String,
        "UInt32Value" | "UInt64Value" => Type::Uint,
        _ => return None,
    })
}
