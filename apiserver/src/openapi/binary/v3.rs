//! The messages of `openapi.v3`.

use super::{Form, Shape};

pub(super) static DOCUMENT: Shape = Shape {
    fields: &[
        ("openapi", 1, Form::Text),
        ("info", 2, Form::One(&INFO)),
        ("paths", 4, Form::Entries(1, &Form::One(&PATH))),
        ("components", 5, Form::One(&COMPONENTS)),
    ],
    extensions: 9,
};

static INFO: Shape =
    Shape { fields: &[("title", 1, Form::Text), ("version", 6, Form::Text)], extensions: 7 };

static COMPONENTS: Shape = Shape {
    fields: &[("schemas", 1, Form::Entries(1, &Form::Either(&Form::One(&SCHEMA))))],
    extensions: 10,
};

static PATH: Shape = Shape {
    fields: &[
        ("get", 4, Form::One(&OPERATION)),
        ("put", 5, Form::One(&OPERATION)),
        ("post", 6, Form::One(&OPERATION)),
        ("delete", 7, Form::One(&OPERATION)),
        ("patch", 10, Form::One(&OPERATION)),
        ("parameters", 13, Form::Each(&Form::Either(&Form::One(&PARAMETER)))),
    ],
    extensions: 14,
};

static OPERATION: Shape = Shape {
    fields: &[
        ("tags", 1, Form::Each(&Form::Text)),
        ("description", 3, Form::Text),
        ("operationId", 5, Form::Text),
        ("parameters", 6, Form::Each(&Form::Either(&Form::One(&PARAMETER)))),
        ("requestBody", 7, Form::Either(&Form::One(&BODY))),
        ("responses", 8, Form::Entries(2, &Form::Either(&Form::One(&RESPONSE)))),
    ],
    extensions: 13,
};

static PARAMETER: Shape = Shape {
    fields: &[
        ("name", 1, Form::Text),
        ("in", 2, Form::Text),
        ("description", 3, Form::Text),
        ("required", 4, Form::Flag),
        ("schema", 10, Form::Either(&Form::One(&SCHEMA))),
    ],
    extensions: 14,
};

static BODY: Shape = Shape {
    fields: &[
        ("description", 1, Form::Text),
        ("content", 2, Form::Entries(1, &Form::One(&MEDIA))),
        ("required", 3, Form::Flag),
    ],
    extensions: 4,
};

static RESPONSE: Shape = Shape {
    fields: &[("description", 1, Form::Text), ("content", 3, Form::Entries(1, &Form::One(&MEDIA)))],
    extensions: 5,
};

static MEDIA: Shape =
    Shape { fields: &[("schema", 1, Form::Either(&Form::One(&SCHEMA)))], extensions: 5 };

pub(super) static SCHEMA: Shape = Shape {
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
        ("required", 23, Form::Each(&Form::Text)),
        ("enum", 24, Form::Each(&Form::Any)),
        ("type", 25, Form::Text),
        ("allOf", 26, Form::Each(&Form::Either(&Form::One(&SCHEMA)))),
        ("oneOf", 27, Form::Each(&Form::Either(&Form::One(&SCHEMA)))),
        ("anyOf", 28, Form::Each(&Form::Either(&Form::One(&SCHEMA)))),
        ("not", 29, Form::One(&SCHEMA)),
        ("items", 30, Form::Inner(1, &Form::Either(&Form::One(&SCHEMA)))),
        ("properties", 31, Form::Entries(1, &Form::Either(&Form::One(&SCHEMA)))),
        ("additionalProperties", 32, Form::Additional(&Form::Either(&Form::One(&SCHEMA)))),
        ("default", 33, Form::Scalar),
        ("description", 34, Form::Text),
        ("format", 35, Form::Text),
    ],
    extensions: 36,
};

pub(super) static DOCUMENTATION: Shape =
    Shape { fields: &[("description", 1, Form::Text), ("url", 2, Form::Text)], extensions: 3 };
