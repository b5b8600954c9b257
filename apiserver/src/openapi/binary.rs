//! OpenAPI v3 documents in protobuf, in the messages of gnostic (`openapi.v3.Document`).
//!
//! The messages follow the documents, so each is a table: key, number of the field, form. Only the
//! parts of OpenAPI are here that the documents have.

use serde_json::{Map, Value};

use crate::protobuf::wire::{put_bytes, put_double, put_inner, put_number};

/// Form of a field.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Flag,
    Whole,
    Double,
    Texts,
    /// Any value, as YAML.
    Any,
    /// A list of any values.
    List,
    /// A message.
    One(&'static Shape),
    /// A message or a reference, in a message around both.
    Either(&'static Shape),
    /// A list of messages or references.
    Eithers(&'static Shape),
    /// A message with all keys of the object, in the order of the object.
    Named(&'static Shape),
    /// As `Named`, of messages or references.
    NamedEithers(&'static Shape),
    /// Responses by status code.
    Responses,
    /// Type of the items of a list.
    Items,
    /// Type of the values of a map, or whether there may be others.
    Additional,
    /// A scalar, in a message with a field per type.
    Default,
}

/// A message.
struct Shape {
    /// Key in the document, number and form.
    fields: &'static [(&'static str, u32, Form)],
    /// Number of the field for keys that start with `x-`.
    extensions: u32,
}

static DOCUMENT: Shape = Shape {
    fields: &[
        ("openapi", 1, Form::Text),
        ("info", 2, Form::One(&INFO)),
        ("paths", 4, Form::Named(&PATH)),
        ("components", 5, Form::One(&COMPONENTS)),
    ],
    extensions: 9,
};

static INFO: Shape =
    Shape { fields: &[("title", 1, Form::Text), ("version", 6, Form::Text)], extensions: 7 };

static COMPONENTS: Shape =
    Shape { fields: &[("schemas", 1, Form::NamedEithers(&SCHEMA))], extensions: 10 };

static PATH: Shape = Shape {
    fields: &[
        ("get", 4, Form::One(&OPERATION)),
        ("put", 5, Form::One(&OPERATION)),
        ("post", 6, Form::One(&OPERATION)),
        ("delete", 7, Form::One(&OPERATION)),
        ("patch", 10, Form::One(&OPERATION)),
        ("parameters", 13, Form::Eithers(&PARAMETER)),
    ],
    extensions: 14,
};

static OPERATION: Shape = Shape {
    fields: &[
        ("tags", 1, Form::Texts),
        ("description", 3, Form::Text),
        ("operationId", 5, Form::Text),
        ("parameters", 6, Form::Eithers(&PARAMETER)),
        ("requestBody", 7, Form::Either(&BODY)),
        ("responses", 8, Form::Responses),
    ],
    extensions: 13,
};

static PARAMETER: Shape = Shape {
    fields: &[
        ("name", 1, Form::Text),
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("required", 4, Form::Flag),
        ("schema", 10, Form::Either(&SCHEMA)),
    ],
    extensions: 14,
};

static BODY: Shape = Shape {
    fields: &[
        ("description", 1, Form::Text),
        ("content", 2, Form::Named(&MEDIA)),
        ("required", 3, Form::Flag),
    ],
    extensions: 4,
};

static RESPONSE: Shape = Shape {
    fields: &[("description", 1, Form::Text), ("content", 3, Form::Named(&MEDIA))],
    extensions: 5,
};

static MEDIA: Shape = Shape { fields: &[("schema", 1, Form::Either(&SCHEMA))], extensions: 5 };

static SCHEMA: Shape = Shape {
    fields: &[
        ("nullable", 1, Form::Flag),
        ("readOnly", 3, Form::Flag),
        ("writeOnly", 4, Form::Flag),
        ("externalDocs", 6, Form::One(&DOCUMENTATION)),
        ("example", 7, Form::Any),
        ("deprecated", 8, Form::Flag),
        ("title", 9, Form::Text),
        ("multipleOf", 10, Form::Double),
        ("maximum", 11, Form::Double),
        ("exclusiveMaximum", 12, Form::Flag),
        ("minimum", 13, Form::Double),
        ("exclusiveMinimum", 14, Form::Flag),
        ("maxLength", 15, Form::Whole),
        ("minLength", 16, Form::Whole),
        ("pattern", 17, Form::Text),
        ("maxItems", 18, Form::Whole),
        ("minItems", 19, Form::Whole),
        ("uniqueItems", 20, Form::Flag),
        ("maxProperties", 21, Form::Whole),
        ("minProperties", 22, Form::Whole),
        ("required", 23, Form::Texts),
        ("enum", 24, Form::List),
        ("type", 25, Form::Text),
        ("allOf", 26, Form::Eithers(&SCHEMA)),
        ("oneOf", 27, Form::Eithers(&SCHEMA)),
        ("anyOf", 28, Form::Eithers(&SCHEMA)),
        ("not", 29, Form::One(&SCHEMA)),
        ("items", 30, Form::Items),
        ("properties", 31, Form::NamedEithers(&SCHEMA)),
        ("additionalProperties", 32, Form::Additional),
        ("default", 33, Form::Default),
        ("description", 34, Form::Text),
        ("format", 35, Form::Text),
    ],
    extensions: 36,
};

static DOCUMENTATION: Shape =
    Shape { fields: &[("description", 1, Form::Text), ("url", 2, Form::Text)], extensions: 3 };

/// Returns a document in protobuf.
pub(super) fn document(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, &DOCUMENT, document);
    out
}

/// Appends the fields of a message.
fn write(out: &mut Vec<u8>, shape: &Shape, object: &Value) {
    for (key, number, form) in shape.fields {
        if let Some(value) = object.get(*key) {
            write_field(out, *number, *form, value);
        }
    }
    for (key, value) in object.as_object().into_iter().flatten() {
        if key.starts_with("x-") {
            put_inner(out, shape.extensions, |out| {
                put_text(out, 1, key);
                put_inner(out, 2, |out| write_any(out, value));
            });
        }
    }
}

/// Appends a field. Zero values of scalars are not written, as proto3 has it.
fn write_field(out: &mut Vec<u8>, number: u32, form: Form, value: &Value) {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    match form {
        Form::Text => put_text(out, number, value.as_str().unwrap_or_default()),
        Form::Flag => {
            if value.as_bool() == Some(true) {
                put_number(out, number, 1);
            }
        }
        Form::Whole => {
            let whole = value.as_i64().unwrap_or_default();
            if whole != 0 {
                put_number(out, number, whole.cast_unsigned());
            }
        }
        Form::Double => {
            let double = value.as_f64().unwrap_or_default();
            if double != 0.0 {
                put_double(out, number, double);
            }
        }
        Form::Texts => {
            for item in items {
                put_bytes(out, number, item.as_str().unwrap_or_default().as_bytes());
            }
        }
        Form::Any => put_inner(out, number, |out| write_any(out, value)),
        Form::List => {
            items.iter().for_each(|item| put_inner(out, number, |out| write_any(out, item)));
        }
        Form::One(shape) => put_inner(out, number, |out| write(out, shape, value)),
        Form::Either(shape) => put_inner(out, number, |out| write_either(out, shape, value)),
        Form::Eithers(shape) => items
            .iter()
            .for_each(|item| put_inner(out, number, |out| write_either(out, shape, item))),
        Form::Named(shape) => write_named(out, number, value, 1, |out, value| {
            write(out, shape, value);
        }),
        Form::NamedEithers(shape) => {
            write_named(out, number, value, 1, |out, value| write_either(out, shape, value));
        }
        // Field 1 of the message is for the response without a code.
        Form::Responses => {
            write_named(out, number, value, 2, |out, value| write_either(out, &RESPONSE, value));
        }
        Form::Items | Form::Additional | Form::Default => write_choice(out, number, form, value),
    }
}

/// Appends a field with one field per type of value.
fn write_choice(out: &mut Vec<u8>, number: u32, form: Form, value: &Value) {
    put_inner(out, number, |out| match (form, value) {
        (Form::Default, Value::Number(value)) => {
            put_double(out, 1, value.as_f64().unwrap_or_default());
        }
        (Form::Default | Form::Additional, Value::Bool(value)) => {
            put_number(out, 2, (*value).into());
        }
        (Form::Default, Value::String(text)) => put_bytes(out, 3, text.as_bytes()),
        // Other defaults have no form.
        (Form::Default, _) => {}
        (_, schema) => put_inner(out, 1, |out| write_either(out, &SCHEMA, schema)),
    });
}

/// Appends a message with the entries of an object, in field `inner`.
fn write_named(
    out: &mut Vec<u8>,
    number: u32,
    value: &Value,
    inner: u32,
    write: impl Fn(&mut Vec<u8>, &Value),
) {
    let none = Map::new();
    let entries = value.as_object().unwrap_or(&none);
    put_inner(out, number, |out| {
        for (key, value) in entries {
            put_inner(out, inner, |out| {
                put_text(out, 1, key);
                put_inner(out, 2, |out| write(out, value));
            });
        }
    });
}

/// Appends a message or a reference.
fn write_either(out: &mut Vec<u8>, shape: &Shape, value: &Value) {
    match value.get("$ref").and_then(Value::as_str) {
        Some(target) => put_inner(out, 2, |out| put_text(out, 1, target)),
        None => put_inner(out, 1, |out| write(out, shape, value)),
    }
}

/// Appends any value, as YAML.
fn write_any(out: &mut Vec<u8>, value: &Value) {
    // JSON is YAML.
    let text = serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string());
    put_text(out, 2, &text);
}

/// Appends a text, unless it is empty.
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
        write(&mut out, &SCHEMA, value);
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
