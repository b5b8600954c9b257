//! The messages of `openapi.v2`.

use serde_json::Value;

use super::{GnosticMessage, GnosticType, put_inner, write_field};

pub(super) static DOCUMENT: GnosticMessage = GnosticMessage {
    fields: &[
        ("swagger", 1, GnosticType::Text),
        ("info", 2, GnosticType::One(&INFO)),
        ("paths", 8, GnosticType::Entries(2, &GnosticType::One(&PATH))),
        ("definitions", 9, GnosticType::Entries(1, &GnosticType::One(&SCHEMA))),
    ],
    extensions: 16,
};

static INFO: GnosticMessage = GnosticMessage {
    fields: &[("title", 1, GnosticType::Text), ("version", 2, GnosticType::Text)],
    extensions: 7,
};

static PATH: GnosticMessage = GnosticMessage {
    fields: &[
        ("get", 2, GnosticType::One(&OPERATION)),
        ("put", 3, GnosticType::One(&OPERATION)),
        ("post", 4, GnosticType::One(&OPERATION)),
        ("delete", 5, GnosticType::One(&OPERATION)),
        ("patch", 8, GnosticType::One(&OPERATION)),
        ("parameters", 9, GnosticType::Each(&GnosticType::Inner(1, &GnosticType::Parameter))),
    ],
    extensions: 10,
};

static OPERATION: GnosticMessage = GnosticMessage {
    fields: &[
        ("tags", 1, GnosticType::Each(&GnosticType::Text)),
        ("description", 3, GnosticType::Text),
        ("operationId", 5, GnosticType::Text),
        ("produces", 6, GnosticType::Each(&GnosticType::Text)),
        ("consumes", 7, GnosticType::Each(&GnosticType::Text)),
        ("parameters", 8, GnosticType::Each(&GnosticType::Inner(1, &GnosticType::Parameter))),
        (
            "responses",
            9,
            GnosticType::Entries(1, &GnosticType::Inner(1, &GnosticType::One(&RESPONSE))),
        ),
        ("schemes", 10, GnosticType::Each(&GnosticType::Text)),
    ],
    extensions: 13,
};

static BODY: GnosticMessage = GnosticMessage {
    fields: &[
        ("description", 1, GnosticType::Text),
        ("name", 2, GnosticType::Text),
        ("in", 3, GnosticType::Text),
        ("required", 4, GnosticType::Flag),
        ("schema", 5, GnosticType::One(&SCHEMA)),
    ],
    extensions: 6,
};

static QUERY: GnosticMessage = GnosticMessage {
    fields: &[
        ("required", 1, GnosticType::Flag),
        ("in", 2, GnosticType::Text),
        ("description", 3, GnosticType::Text),
        ("name", 4, GnosticType::Text),
        ("type", 6, GnosticType::Text),
        ("uniqueItems", 20, GnosticType::Flag),
    ],
    extensions: 23,
};

static IN_PATH: GnosticMessage = GnosticMessage {
    fields: &[
        ("required", 1, GnosticType::Flag),
        ("in", 2, GnosticType::Text),
        ("description", 3, GnosticType::Text),
        ("name", 4, GnosticType::Text),
        ("type", 5, GnosticType::Text),
        ("uniqueItems", 19, GnosticType::Flag),
    ],
    extensions: 22,
};

static RESPONSE: GnosticMessage = GnosticMessage {
    fields: &[
        ("description", 1, GnosticType::Text),
        ("schema", 2, GnosticType::Inner(1, &GnosticType::One(&SCHEMA))),
    ],
    extensions: 5,
};

static SCHEMA: GnosticMessage = GnosticMessage {
    fields: &[
        ("$ref", 1, GnosticType::Text),
        ("format", 2, GnosticType::Text),
        ("title", 3, GnosticType::Text),
        ("description", 4, GnosticType::Text),
        ("default", 5, GnosticType::Any),
        ("multipleOf", 6, GnosticType::Double),
        ("maximum", 7, GnosticType::Double),
        ("exclusiveMaximum", 8, GnosticType::Flag),
        ("minimum", 9, GnosticType::Double),
        ("exclusiveMinimum", 10, GnosticType::Flag),
        ("maxLength", 11, GnosticType::Whole),
        ("minLength", 12, GnosticType::Whole),
        ("pattern", 13, GnosticType::Text),
        ("maxItems", 14, GnosticType::Whole),
        ("minItems", 15, GnosticType::Whole),
        ("uniqueItems", 16, GnosticType::Flag),
        ("maxProperties", 17, GnosticType::Whole),
        ("minProperties", 18, GnosticType::Whole),
        ("required", 19, GnosticType::Each(&GnosticType::Text)),
        ("enum", 20, GnosticType::Each(&GnosticType::Any)),
        ("additionalProperties", 21, GnosticType::Additional(&GnosticType::One(&SCHEMA))),
        ("type", 22, GnosticType::Inner(1, &GnosticType::Text)),
        ("items", 23, GnosticType::Inner(1, &GnosticType::One(&SCHEMA))),
        ("allOf", 24, GnosticType::Each(&GnosticType::One(&SCHEMA))),
        ("properties", 25, GnosticType::Entries(1, &GnosticType::One(&SCHEMA))),
        ("readOnly", 27, GnosticType::Flag),
        ("externalDocs", 29, GnosticType::One(&DOCUMENTATION)),
        ("example", 30, GnosticType::Any),
    ],
    extensions: 31,
};

static DOCUMENTATION: GnosticMessage = GnosticMessage {
    fields: &[("description", 1, GnosticType::Text), ("url", 2, GnosticType::Text)],
    extensions: 3,
};

/// Appends the message for a parameter's place.
pub(super) fn write_parameter(out: &mut Vec<u8>, value: &Value) {
    match value["in"].as_str() {
        Some("body") => write_field(out, 1, GnosticType::One(&BODY), value),
        Some("path") => {
            put_inner(out, 2, |out| write_field(out, 4, GnosticType::One(&IN_PATH), value))
        }
        _ => put_inner(out, 2, |out| write_field(out, 3, GnosticType::One(&QUERY), value)),
    }
}
