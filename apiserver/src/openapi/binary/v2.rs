//! The messages of `openapi.v2`.

use serde_json::Value;

use super::{Form, Shape, put_inner, write_field};

pub(super) static DOCUMENT: Shape = Shape {
    fields: &[
        ("swagger", 1, Form::Text),
        ("info", 2, Form::One(&INFO)),
        ("paths", 8, Form::Entries(2, &Form::One(&PATH))),
        ("definitions", 9, Form::Entries(1, &Form::One(&SCHEMA))),
    ],
    extensions: 16,
};

static INFO: Shape =
    Shape { fields: &[("title", 1, Form::Text), ("version", 2, Form::Text)], extensions: 7 };

static PATH: Shape = Shape {
    fields: &[
        ("get", 2, Form::One(&OPERATION)),
        ("put", 3, Form::One(&OPERATION)),
        ("post", 4, Form::One(&OPERATION)),
        ("delete", 5, Form::One(&OPERATION)),
        ("patch", 8, Form::One(&OPERATION)),
        ("parameters", 9, Form::Each(&Form::Inner(1, &Form::Parameter))),
    ],
    extensions: 10,
};

static OPERATION: Shape = Shape {
    fields: &[
        ("tags", 1, Form::Each(&Form::Text)),
        ("description", 3, Form::Text),
        ("operationId", 5, Form::Text),
        ("produces", 6, Form::Each(&Form::Text)),
        ("consumes", 7, Form::Each(&Form::Text)),
        ("parameters", 8, Form::Each(&Form::Inner(1, &Form::Parameter))),
        ("responses", 9, Form::Entries(1, &Form::Inner(1, &Form::One(&RESPONSE)))),
        ("schemes", 10, Form::Each(&Form::Text)),
    ],
    extensions: 13,
};

static BODY: Shape = Shape {
    fields: &[
        ("description", 1, Form::Text),
        ("name", 2, Form::Text),
        ("in", 3, Form::Text),
        ("required", 4, Form::Flag),
        ("schema", 5, Form::One(&SCHEMA)),
    ],
    extensions: 6,
};

static QUERY: Shape = Shape {
    fields: &[
        ("required", 1, Form::Flag),
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("name", 4, Form::Text),
        ("type", 6, Form::Text),
        ("uniqueItems", 20, Form::Flag),
    ],
    extensions: 23,
};

static IN_PATH: Shape = Shape {
    fields: &[
        ("required", 1, Form::Flag),
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("name", 4, Form::Text),
        ("type", 5, Form::Text),
        ("uniqueItems", 19, Form::Flag),
    ],
    extensions: 22,
};

static RESPONSE: Shape = Shape {
    fields: &[("description", 1, Form::Text), ("schema", 2, Form::Inner(1, &Form::One(&SCHEMA)))],
    extensions: 5,
};

static SCHEMA: Shape = Shape {
    fields: &[
        ("$ref", 1, Form::Text),
        ("format", 2, Form::Text),
        ("title", 3, Form::Text),
        ("description", 4, Form::Text),
        ("default", 5, Form::Any),
        ("multipleOf", 6, Form::Double),
        ("maximum", 7, Form::Double),
        ("exclusiveMaximum", 8, Form::Flag),
        ("minimum", 9, Form::Double),
        ("exclusiveMinimum", 10, Form::Flag),
        ("maxLength", 11, Form::Whole),
        ("minLength", 12, Form::Whole),
        ("pattern", 13, Form::Text),
        ("maxItems", 14, Form::Whole),
        ("minItems", 15, Form::Whole),
        ("uniqueItems", 16, Form::Flag),
        ("maxProperties", 17, Form::Whole),
        ("minProperties", 18, Form::Whole),
        ("required", 19, Form::Each(&Form::Text)),
        ("enum", 20, Form::Each(&Form::Any)),
        ("additionalProperties", 21, Form::Additional(&Form::One(&SCHEMA))),
        ("type", 22, Form::Inner(1, &Form::Text)),
        ("items", 23, Form::Inner(1, &Form::One(&SCHEMA))),
        ("allOf", 24, Form::Each(&Form::One(&SCHEMA))),
        ("properties", 25, Form::Entries(1, &Form::One(&SCHEMA))),
        ("readOnly", 27, Form::Flag),
        ("externalDocs", 29, Form::One(&DOCUMENTATION)),
        ("example", 30, Form::Any),
    ],
    extensions: 31,
};

static DOCUMENTATION: Shape =
    Shape { fields: &[("description", 1, Form::Text), ("url", 2, Form::Text)], extensions: 3 };

/// Appends the message for a parameter's place.
pub(super) fn write_parameter(out: &mut Vec<u8>, value: &Value) {
    match value["in"].as_str() {
        Some("body") => write_field(out, 1, Form::One(&BODY), value),
        Some("path") => put_inner(out, 2, |out| write_field(out, 4, Form::One(&IN_PATH), value)),
        _ => put_inner(out, 2, |out| write_field(out, 3, Form::One(&QUERY), value)),
    }
}
