//! Structural schemas as declarations: types for the checker, shapes for evaluation, sizes for the
//! cost.

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

/// Deepest nesting of a schema, and of data that are read as a whole. JSON is parsed with at most
/// 128 levels.
pub(crate) const MAX_DEPTH: usize = 256;

/// Whether JSON is nested deeper than [`MAX_DEPTH`]; read without recursion, which such a value
/// would exhaust.
pub(crate) fn is_too_deep(value: &Value) -> bool {
    node_count(value).is_none()
}

/// Number of values in JSON with the values inside; `None` if it is nested deeper than
/// [`MAX_DEPTH`].
pub(crate) fn node_count(value: &Value) -> Option<u64> {
    let mut rest = vec![(value, 0)];
    let mut count = 0;
    while let Some((value, depth)) = rest.pop() {
        if depth > MAX_DEPTH {
            return None;
        }
        count += 1;
        match value {
            Value::Array(items) => rest.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(entries) => rest.extend(entries.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    Some(count)
}
