//! The last changes to a schema, after all checks.

use serde_json::{Value, json};

use super::lower::Node;

/// Removes marks, and moves the `enum` of nullable fields into `anyOf`.
///
/// The API server checks `enum` against null even if null is allowed, but not an `enum` inside of
/// `anyOf`. It does the same for `allOf`, where `kubectl explain` does not look.
pub(super) fn finish(node: &mut Node) {
    node.retain(|key, _| !key.starts_with('$') && !key.starts_with("x-windlass-"));
    if node.get("nullable") == Some(&Value::Bool(true))
        && let Some(values) = node.remove("enum")
    {
        let choices = json!([{ "enum": values }]);
        if node.contains_key("anyOf") {
            let all = node.entry("allOf").or_insert_with(|| json!([]));
            super::merge::append(all, json!([{ "anyOf": choices }]));
        } else {
            node.insert("anyOf".to_owned(), choices);
        }
    }
    let below = |value: &mut Value| {
        if let Value::Object(node) = value {
            finish(node);
        }
    };
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        properties.values_mut().for_each(below);
    }
    for key in ["items", "additionalProperties"] {
        node.get_mut(key).into_iter().for_each(below);
    }
}
