//! The messages of `openapi.v3`.

use super::{GnosticMessage, GnosticType};

pub(super) static DOCUMENT: GnosticMessage = GnosticMessage {
    fields: &[
        ("openapi", 1, GnosticType::Text),
        ("info", 2, GnosticType::One(&INFO)),
        ("paths", 4, GnosticType::Entries(1, &GnosticType::One(&PATH))),
        ("components", 5, GnosticType::One(&COMPONENTS)),
    ],
    extensions: 9,
};

static INFO: GnosticMessage = GnosticMessage {
    fields: &[("title", 1, GnosticType::Text), ("version", 6, GnosticType::Text)],
    extensions: 7,
};

static COMPONENTS: GnosticMessage = GnosticMessage {
    fields: &[(
        "schemas",
        1,
        GnosticType::Entries(1, &GnosticType::Either(&GnosticType::One(&SCHEMA))),
    )],
    extensions: 10,
};

static PATH: GnosticMessage = GnosticMessage {
    fields: &[
        ("get", 4, GnosticType::One(&OPERATION)),
        ("put", 5, GnosticType::One(&OPERATION)),
        ("post", 6, GnosticType::One(&OPERATION)),
        ("delete", 7, GnosticType::One(&OPERATION)),
        ("patch", 10, GnosticType::One(&OPERATION)),
        ("parameters", 13, GnosticType::Each(&GnosticType::Either(&GnosticType::One(&PARAMETER)))),
    ],
    extensions: 14,
};

static OPERATION: GnosticMessage = GnosticMessage {
    fields: &[
        ("tags", 1, GnosticType::Each(&GnosticType::Text)),
        ("description", 3, GnosticType::Text),
        ("operationId", 5, GnosticType::Text),
        ("parameters", 6, GnosticType::Each(&GnosticType::Either(&GnosticType::One(&PARAMETER)))),
        ("requestBody", 7, GnosticType::Either(&GnosticType::One(&BODY))),
        (
            "responses",
            8,
            GnosticType::Entries(2, &GnosticType::Either(&GnosticType::One(&RESPONSE))),
        ),
    ],
    extensions: 13,
};

static PARAMETER: GnosticMessage = GnosticMessage {
    fields: &[
        ("name", 1, GnosticType::Text),
        ("in", 2, GnosticType::Text),
        ("description", 3, GnosticType::Text),
        ("required", 4, GnosticType::Flag),
        ("schema", 10, GnosticType::Either(&GnosticType::One(&SCHEMA))),
    ],
    extensions: 14,
};

static BODY: GnosticMessage = GnosticMessage {
    fields: &[
        ("description", 1, GnosticType::Text),
        ("content", 2, GnosticType::Entries(1, &GnosticType::One(&MEDIA))),
        ("required", 3, GnosticType::Flag),
    ],
    extensions: 4,
};

static RESPONSE: GnosticMessage = GnosticMessage {
    fields: &[
        ("description", 1, GnosticType::Text),
        ("content", 3, GnosticType::Entries(1, &GnosticType::One(&MEDIA))),
    ],
    extensions: 5,
};

static MEDIA: GnosticMessage = GnosticMessage {
    fields: &[("schema", 1, GnosticType::Either(&GnosticType::One(&SCHEMA)))],
    extensions: 5,
};

pub(super) static SCHEMA: GnosticMessage = GnosticMessage {
    fields: &[
        ("nullable", 1, GnosticType::Flag),
        ("readOnly", 3, GnosticType::Flag),
        ("writeOnly", 4, GnosticType::Flag),
        ("externalDocs", 6, GnosticType::One(&DOCUMENTATION)),
        ("example", 7, GnosticType::Any),
        ("deprecated", 8, GnosticType::Flag),
        ("title", 9, GnosticType::Text),
        ("multipleOf", 10, GnosticType::Double),
        ("maximum", 11, GnosticType::Double),
        ("exclusiveMaximum", 12, GnosticType::Flag),
        ("minimum", 13, GnosticType::Double),
        ("exclusiveMinimum", 14, GnosticType::Flag),
        ("maxLength", 15, GnosticType::Whole),
        ("minLength", 16, GnosticType::Whole),
        ("pattern", 17, GnosticType::Text),
        ("maxItems", 18, GnosticType::Whole),
        ("minItems", 19, GnosticType::Whole),
        ("uniqueItems", 20, GnosticType::Flag),
        ("maxProperties", 21, GnosticType::Whole),
        ("minProperties", 22, GnosticType::Whole),
        ("required", 23, GnosticType::Each(&GnosticType::Text)),
        ("enum", 24, GnosticType::Each(&GnosticType::Any)),
        ("type", 25, GnosticType::Text),
        ("allOf", 26, GnosticType::Each(&GnosticType::Either(&GnosticType::One(&SCHEMA)))),
        ("oneOf", 27, GnosticType::Each(&GnosticType::Either(&GnosticType::One(&SCHEMA)))),
        ("anyOf", 28, GnosticType::Each(&GnosticType::Either(&GnosticType::One(&SCHEMA)))),
        ("not", 29, GnosticType::One(&SCHEMA)),
        ("items", 30, GnosticType::Inner(1, &GnosticType::Either(&GnosticType::One(&SCHEMA)))),
        (
            "properties",
            31,
            GnosticType::Entries(1, &GnosticType::Either(&GnosticType::One(&SCHEMA))),
        ),
        (
            "additionalProperties",
            32,
            GnosticType::Additional(&GnosticType::Either(&GnosticType::One(&SCHEMA))),
        ),
        ("default", 33, GnosticType::Scalar),
        ("description", 34, GnosticType::Text),
        ("format", 35, GnosticType::Text),
    ],
    extensions: 36,
};

pub(super) static DOCUMENTATION: GnosticMessage = GnosticMessage {
    fields: &[("description", 1, GnosticType::Text), ("url", 2, GnosticType::Text)],
    extensions: 3,
};
