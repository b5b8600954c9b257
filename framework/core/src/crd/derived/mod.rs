//! Functions that the code of `#[derive(Schema)]` calls.
//!
//! The derive reads serde's attributes and lists fields and variants; the parts below build the
//! same JSON Schema that `#[derive(schemars::JsonSchema)]` gives for the type, so that the type
//! implements `JsonSchema` for all other users. The schemas differ in three points: Kubernetes
//! types need no attribute (`shape`), serde is asked whether a field may be absent or null (`ask`),
//! and the keys of `#[schema(…)]` are written into the schema (`keys`).

// DESIGN.md, 130: `#[derive(Schema)]` writes the schema itself

mod ask;
mod default_of;
mod erased;
mod fields;
mod form;
mod kept;
mod keys;
mod merge;
mod shape;
#[cfg(test)]
mod tests;
mod variants;

pub use std::borrow::Cow;

pub use schemars::{JsonSchema, Schema, SchemaGenerator};
pub use serde::Serialize;
pub use serde_json::{json, value::Serializer as ValueSerializer};

pub use super::kubernetes::KubernetesSchema;
pub use super::schema::key_type;
pub use default_of::{DefaultOf, NoDefault};
pub use fields::Fields;
pub use kept::{embedded_list, embedded_map, int_or_string_list, int_or_string_map, unknown};
pub use keys::{Keys, SchemaNode, TextSerializer, same_as, written};
pub use shape::{
    FieldSchema, Flat, FullSchema, Generic, HasSchema, Leaf, NoSchemaInside, NoSchemaItself, Of,
    Probe, ProbeAbsence, RootLeaf, full,
};
pub use variants::{Content, Tagging, TupleItems, Variants};
