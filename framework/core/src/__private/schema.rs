//! Items that the code of `#[derive(Schema)]` names.

pub use super::list_keys::{GuessedNames, KeyNames, ListField, item_of};
pub use super::{FieldName, FieldNames};
pub use crate::crd::derived::*;

/// A field with a name that differs from the Rust name.
pub const fn named(rust: &'static str, json: &'static str) -> FieldName {
    FieldName { rust, json, flattened: false }
}

/// A flattened field, whose inner fields stand beside the others.
pub const fn flattened(rust: &'static str) -> FieldName {
    FieldName { rust, json: rust, flattened: true }
}
