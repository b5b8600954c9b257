//! The last changes to a schema, after all checks.

use serde_json::{Value, json};

use super::node::SchemaObject;

/// Removes marks, moves the `enum` of nullable fields into `anyOf`, and keeps any value where there
/// is no type.
///
/// A definition needs a type, or the keyword that keeps any value: bounds alone hold for the values
/// of their own type, as in JSON Schema.
///
/// The API server checks `enum` against null even if null is allowed, but not an `enum` inside of
/// `anyOf`. The server also checks an `enum` inside of `allOf`, where `kubectl explain` does not
/// look.
///
/// The API server skips the type of a text with a format if the value is a list (`typeValidator` in
/// kube-openapi), and would store `["10.0.0.1"]`, which serde cannot read. Bounds that no list has
/// close the hole. `is_written` says that users write the field; a status comes from an operator's
/// types, and the schema of a status stays as short as upstream's.
pub(super) fn finish(node: &mut SchemaObject, is_written: bool) {
    node.retain(|key, _| !key.starts_with('$') && !key.starts_with("x-windlass-"));
    if node.get("nullable") == Some(&Value::Bool(true))
        && let Some(values) = node.remove("enum")
    {
        let choices = json!([{ "enum": values }]);
        if node.contains_key("anyOf") {
            let all = node.entry("allOf").or_insert_with(|| json!([]));
            super::node::append(all, json!([{ "anyOf": choices }]));
        } else {
            node.insert("anyOf".to_owned(), choices);
        }
    }
    if !node.contains_key("type") && !node.contains_key("x-kubernetes-int-or-string") {
        node.entry("x-kubernetes-preserve-unknown-fields").or_insert(Value::Bool(true));
    }
    if is_written && is_formatted_text(node) {
        node.insert("minItems".to_owned(), 1.into());
        node.insert("maxItems".to_owned(), 0.into());
    }
    let below = |value: &mut Value| {
        if let Value::Object(node) = value {
            finish(node, is_written);
        }
    };
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        properties.values_mut().for_each(below);
    }
    for key in ["items", "additionalProperties"] {
        node.get_mut(key).into_iter().for_each(below);
    }
}

/// Whether a schema describes texts of a format that API servers check.
fn is_formatted_text(node: &SchemaObject) -> bool {
    node.get("type").is_some_and(|name| name == "string") && node.contains_key("format")
}
