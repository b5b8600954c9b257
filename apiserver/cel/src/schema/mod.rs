//! Structural schemas as declarations: types for the checker, shapes for evaluation, sizes for the cost.

mod declaration;
mod sizes;

pub use declaration::{Content, Declaration, Field};
pub(crate) use sizes::MAX_REQUEST;

use serde_json::Value;

/// A member of a schema that is a text; empty if it is missing.
pub(crate) fn text<'a>(schema: &'a Value, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a member of a schema is true.
pub(crate) fn is_set(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or_default()
}
