//! OpenAPI documents in protobuf, in the messages of gnostic (`openapi.v2` and `openapi.v3`).
//!
//! The messages follow the documents, so each is a table: key, number of the field, form. Only the
//! parts of OpenAPI are there that the documents have.

mod v2;
mod v3;

use serde_json::Value;

use crate::protobuf::wire::{put_bytes, put_double, put_inner, put_number};

/// Type of a field.
#[derive(Clone, Copy)]
enum GnosticType {
    /// A text.
    Text,
    /// A boolean.
    Flag,
    /// An integer.
    Whole,
    /// A floating-point number.
    Double,
    /// Any value, as YAML.
    Any,
    /// A scalar, in a message with a field per type.
    Scalar,
    /// A message.
    One(&'static GnosticMessage),
    /// Each item of a list.
    Each(&'static GnosticType),
    /// A message that has the value in a field.
    Inner(u32, &'static GnosticType),
    /// A message that has each key of the object with the value in a field.
    Entries(u32, &'static GnosticType),
    /// A message that has the value or a reference.
    Either(&'static GnosticType),
    /// A message that has the type of further keys, or whether there may be some.
    Additional(&'static GnosticType),
    /// A parameter of `openapi.v2`, whose message depends on the place.
    Parameter,
}

/// A message.
struct GnosticMessage {
    /// Key in the document, number and form.
    fields: &'static [(&'static str, u32, GnosticType)],
    /// Number of the field for keys that start with `x-`.
    extensions: u32,
}

/// Returns a document of version 2 in protobuf.
pub(super) fn v2(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, &v2::DOCUMENT, document);
    out
}

/// Returns a document of version 3 in protobuf.
pub(super) fn v3(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, &v3::DOCUMENT, document);
    out
}

/// Appends the fields of a message.
fn write(out: &mut Vec<u8>, shape: &GnosticMessage, object: &Value) {
    for (key, number, form) in shape.fields {
        if let Some(value) = object.get(*key) {
            write_field(out, *number, *form, value);
        }
    }
    for (key, value) in object.as_object().into_iter().flatten() {
        if key.starts_with("x-") {
            put_inner(out, shape.extensions, |out| {
                put_text(out, 1, key);
                write_field(out, 2, GnosticType::Any, value);
            });
        }
    }
}

/// Appends a field.
fn write_field(out: &mut Vec<u8>, number: u32, form: GnosticType, value: &Value) {
    match form {
        GnosticType::Text => put_text(out, number, value.as_str().unwrap_or_default()),
        GnosticType::Flag | GnosticType::Whole | GnosticType::Double => {
            write_number(out, number, form, value)
        }
        GnosticType::Any => {
            // JSON is YAML.
            let text = serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string());
            put_inner(out, number, |out| put_text(out, 2, &text));
        }
        GnosticType::Scalar => put_inner(out, number, |out| write_scalar(out, value)),
        GnosticType::One(shape) => put_inner(out, number, |out| write(out, shape, value)),
        GnosticType::Each(form) => {
            for item in value.as_array().into_iter().flatten() {
                write_field(out, number, *form, item);
            }
        }
        GnosticType::Inner(inner, form) => {
            put_inner(out, number, |out| write_field(out, inner, *form, value));
        }
        GnosticType::Entries(inner, form) => put_inner(out, number, |out| {
            for (key, value) in value.as_object().into_iter().flatten() {
                put_inner(out, inner, |out| {
                    put_text(out, 1, key);
                    write_field(out, 2, *form, value);
                });
            }
        }),
        GnosticType::Either(form) => {
            put_inner(out, number, |out| match value.get("$ref").and_then(Value::as_str) {
                Some(target) => put_inner(out, 2, |out| put_text(out, 1, target)),
                None => write_field(out, 1, *form, value),
            })
        }
        GnosticType::Additional(form) => put_inner(out, number, |out| match value {
            // Written even if false, as a choice between two fields is.
            Value::Bool(value) => put_number(out, 2, (*value).into()),
            _ => write_field(out, 1, *form, value),
        }),
        GnosticType::Parameter => put_inner(out, number, |out| v2::write_parameter(out, value)),
    }
}

/// Appends a number or a boolean, unless zero.
fn write_number(out: &mut Vec<u8>, number: u32, form: GnosticType, value: &Value) {
    let double = value.as_f64().unwrap_or_default();
    let whole = match form {
        GnosticType::Flag => value.as_bool().unwrap_or_default().into(),
        _ => value.as_i64().unwrap_or_default(),
    };
    if matches!(form, GnosticType::Double) {
        if double != 0.0 {
            put_double(out, number, double);
        }
    } else if whole != 0 {
        put_number(out, number, whole.cast_unsigned());
    }
}

/// Appends the field for a scalar's type; nothing for other values.
fn write_scalar(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Number(value) => put_double(out, 1, value.as_f64().unwrap_or_default()),
        Value::Bool(value) => put_number(out, 2, (*value).into()),
        Value::String(text) => put_bytes(out, 3, text.as_bytes()),
        _ => {}
    }
}

/// Appends a text, unless empty.
fn put_text(out: &mut Vec<u8>, number: u32, text: &str) {
    if !text.is_empty() {
        put_bytes(out, number, text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the bytes of a schema.
    fn schema(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, &v3::SCHEMA, value);
        out
    }

    #[test]
    fn schemas_are_written_as_gnostic_writes_them() {
        for (value, bytes) in [
            (
                json!({"type": "object", "minLength": 0, "nullable": false}),
                &b"\xca\x01\x06object"[..],
            ),
            (json!({"minimum": 0.5}), b"\x69\0\0\0\0\0\0\xe0\x3f"),
            (json!({"enum": ["x"]}), b"\xc2\x01\x04\x12\x02x\n"),
            (json!({"items": {"$ref": "#/b"}}), b"\xf2\x01\x09\x0a\x07\x12\x05\x0a\x03#/b"),
            (json!({"properties": {"a": {}}}), b"\xfa\x01\x09\x0a\x07\x0a\x01a\x12\x02\x0a\x00"),
            (json!({"additionalProperties": false}), b"\x82\x02\x02\x10\x00"),
            (json!({"additionalProperties": {}}), b"\x82\x02\x04\x0a\x02\x0a\x00"),
            (json!({"default": {}}), b"\x8a\x02\x00"),
            (json!({"default": ""}), b"\x8a\x02\x02\x1a\x00"),
            (json!({"default": 0}), b"\x8a\x02\x09\x09\0\0\0\0\0\0\0\0"),
            (json!({"x-a": true}), b"\xa2\x02\x0e\x0a\x03x-a\x12\x07\x12\x05true\n"),
        ] {
            assert_eq!(schema(&value), bytes, "{value}");
        }
    }
}
