//! Schemas for fields whose type has none: functions for `#[schemars(schema_with = "…")]`.
//!
//! ```
//! # extern crate windlass_core as windlass;
//! use k8s_openapi::api::core::v1::PodTemplateSpec;
//!
//! #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
//! struct Spec {
//!     #[schemars(schema_with = "windlass::crd::object")]
//!     template: PodTemplateSpec,
//! }
//! ```

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

/// Mark of a value that an API server does not check, because the type is kept whole; the mark's
/// value lists which values serde refuses.
pub(super) const UNCHECKED: &str = "x-windlass-unchecked";

/// Mark of a schema whose every value an API server refuses; the mark's value is the reason.
pub(super) const REFUSED: &str = "x-windlass-refused";

/// The reason against an object with two fields of the same name.
pub(super) fn same_name(name: &str) -> String {
    format!(
        "two fields have the name `{name}` in this object, one of them flattened into it (or the tag of an enum): serde \
         gives the value to one of them alone; rename the other"
    )
}

/// Mark of a field with a default of which serde leaves out other values.
pub(super) const REFILLED: &str = "x-windlass-refilled";

/// Mark of a field that may be absent or null, although the field's schema is written by hand.
pub(super) const OPTIONAL: &str = "x-windlass-optional";

/// Mark of a field that only the default in the schema makes optional: serde refuses an object
/// without the field.
pub(super) const NEEDED: &str = "x-windlass-needed";

/// Mark of an object around a flattened option whose type has rules.
pub(super) const RULES_OF_OPTION: &str = "x-windlass-rules-of-option";

/// Remark on a value of which the server checks only that the value is an object.
pub(super) const OPAQUE: &str =
    "an API server stores any object here; serde refuses one that its type does not fit";
/// Remark on an embedded object.
pub(super) const EMBEDDED: &str = "an API server checks nothing of this object but its metadata; serde refuses one that its type does not fit";
/// Remark on a number or a text.
const INT_OR_STRING: &str =
    "an API server stores numbers beyond 32 bits here, and serde refuses them for `IntOrString`";

/// Whether a schema comes from this module, with remarks beside it.
pub(super) fn is_shape(schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return false };
    let mut schema = schema.clone();
    schema.retain(|key, _| !matches!(key.as_str(), "title" | "description" | "default"));
    let schema = Value::Object(schema);
    let shapes: [fn(&mut SchemaGenerator) -> Schema; 8] =
        [object, objects, any, embedded_object, int_or_string, quantity, time, conditions];
    let mut generator = SchemaGenerator::default();
    shapes.iter().any(|shape| *shape(&mut generator).as_value() == schema)
}

/// The shapes for fields that are an `Option`: absent and null are allowed, too.
///
/// schemars does not see the type behind `schema_with`, and requires the field. A field with
/// `#[serde(default)]` or `skip_serializing_if` is known to be an option without these functions.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use k8s_openapi::api::core::v1::PodTemplateSpec;
/// use windlass::crd::structural_schema;
///
/// #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// struct Spec {
///     #[schemars(schema_with = "windlass::crd::optional::object")]
///     template: Option<PodTemplateSpec>,
/// }
///
/// let schema = structural_schema::<Spec>()?.schema;
/// assert_eq!(schema["required"], serde_json::Value::Null);
/// assert_eq!(schema["properties"]["template"]["nullable"], true);
/// # Ok::<(), windlass::Error>(())
/// ```
pub mod optional {
    use schemars::{Schema, SchemaGenerator};

    /// Marks a shape.
    fn optional(mut schema: Schema) -> Schema {
        schema.insert(super::OPTIONAL.to_owned(), true.into());
        schema
    }

    /// [`object`](super::object), or nothing.
    pub fn object(generator: &mut SchemaGenerator) -> Schema {
        optional(super::object(generator))
    }

    /// [`objects`](super::objects), or nothing.
    pub fn objects(generator: &mut SchemaGenerator) -> Schema {
        optional(super::objects(generator))
    }

    /// [`embedded_object`](super::embedded_object), or nothing.
    pub fn embedded_object(generator: &mut SchemaGenerator) -> Schema {
        optional(super::embedded_object(generator))
    }

    /// [`int_or_string`](super::int_or_string), or nothing.
    pub fn int_or_string(generator: &mut SchemaGenerator) -> Schema {
        optional(super::int_or_string(generator))
    }

    /// [`quantity`](super::quantity), or nothing.
    pub fn quantity(generator: &mut SchemaGenerator) -> Schema {
        optional(super::quantity(generator))
    }

    /// [`time`](super::time), or nothing.
    pub fn time(generator: &mut SchemaGenerator) -> Schema {
        optional(super::time(generator))
    }

    /// [`conditions`](super::conditions), or nothing.
    pub fn conditions(generator: &mut SchemaGenerator) -> Schema {
        optional(super::conditions(generator))
    }
}

/// Any object; the API server keeps every field of the object and checks none. For embedded types
/// such as `PodTemplateSpec`, `ResourceRequirements` or `LabelSelector`.
///
/// No validation happens at all: a wrong field is noticed by the operator that reads the object.
pub fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        (UNCHECKED): OPAQUE
    })
}

/// A list of [`object`]s, replaced as a whole by server-side apply.
///
/// Two appliers of the same list are a conflict.
pub fn objects(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": object(generator),
        "x-kubernetes-list-type": "atomic"
    })
}

/// Any value at all, null included.
///
/// For values of a foreign format that the operator only hands on.
pub fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true, "nullable": true })
}

/// A whole Kubernetes object with `apiVersion`, `kind` and `metadata`, which the API server checks.
///
/// The API server checks `metadata` as that of any object, and keeps every other field.
pub fn embedded_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
        (UNCHECKED): EMBEDDED
    })
}

/// A number or a text: `IntOrString`.
///
/// For ports and percentages.
pub fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-int-or-string": true, (UNCHECKED): INT_OR_STRING })
}

/// An amount such as `500m` or `2Gi`: `Quantity`.
///
/// The pattern is that of apimachinery's `resource.Quantity`: a number with an optional suffix.
pub fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    })
}

/// A point in time: `Time` or `MicroTime`.
///
/// [`ApiTime`](crate::resource::ApiTime) has this schema without an attribute.
pub fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// Status conditions: a list keyed by `type`, so that several controllers can each apply their own.
///
/// [`Conditions`](crate::conditions::Conditions) has a schema without an attribute; this function
/// is for a plain `Vec<Condition>`.
pub fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "type": "string",
                    "description": "Type of the condition.",
                    "maxLength": 316,
                },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "nullable": true,
                    "description": "The generation that the condition was computed from."
                },
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status changed last."
                },
                "reason": {
                    "type": "string",
                    "description": "Why, in one CamelCase word.",
                    "maxLength": 1024
                },
                "message": { "type": "string", "description": "Why, in words.", "maxLength": 32768 }
            }
        }
    })
}
