//! Types that expressions can name without a declaration: those of the language and the protobuf
//! messages that stand for them.

use std::sync::Arc;

use super::environment::FieldLookup;
use crate::syntax::Literal;
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

/// Value of the constant with that name: of the enums that cel-go knows only this one is outside of
/// a message.
pub(super) fn constant(name: &str) -> Option<Literal> {
    (name == "google.protobuf.NullValue.NULL_VALUE").then_some(Literal::Int(0))
}

/// Type of a field of a protobuf message. In Kubernetes, the names of scalar types count as
/// objects, too: those without fields.
pub(super) fn field(object: &str, field: &str, is_kubernetes: bool) -> FieldLookup {
    let Some(message) = object.strip_prefix("google.protobuf.") else {
        return if is_kubernetes { scalar_field(object) } else { FieldLookup::UnknownObject };
    };
    match message_field(message, field).or_else(|| wrapped(object).filter(|_| field == "value")) {
        Some(ty) => FieldLookup::Found(ty),
        None if named(object).is_some() => FieldLookup::Undefined,
        None => FieldLookup::UnknownObject,
    }
}

fn scalar_field(object: &str) -> FieldLookup {
    match object {
        "map" => FieldLookup::Found(Type::Dyn),
        "bool" | "bytes" | "double" | "duration" | "int" | "list" | "null_type" | "string"
        | "timestamp" | "uint" => FieldLookup::Undefined,
        _ => FieldLookup::UnknownObject,
    }
}

fn message_field(message: &str, field: &str) -> Option<Type> {
    Some(match (message, field) {
        ("Duration" | "Timestamp", "seconds" | "nanos") | ("Value", "null_value") => Type::Int,
        ("Any", "type_url") | ("Value", "string_value") => Type::String,
        ("Any", "value") => Type::Bytes,
        ("Struct", "fields") | ("Value", "struct_value") => Type::map(Type::String, Type::Dyn),
        ("ListValue", "values") | ("Value", "list_value") => Type::list(Type::Dyn),
        ("Value", "number_value") => Type::Double,
        ("Value", "bool_value") => Type::Bool,
        _ => return None,
    })
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
