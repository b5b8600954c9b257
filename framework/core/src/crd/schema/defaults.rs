//! Checks that defaults and examples satisfy their schema, and that lists have the keys that they
//! are merged by: otherwise the API server refuses the definition.

use serde_json::{Value, json};
use windlass_cel::rules::{Validator, check_definition};

use super::fits::fits;
use super::lower::Lower;
use super::node::{RULES, SchemaObject};

/// Checks every default, example and list in `node`.
pub(super) fn check(node: &SchemaObject, lower: &mut Lower<'_>) {
    if let Some(default) = node.get("default") {
        if let Err((place, message)) = fits(default, node) {
            lower.fault(&format!(
                "its default {default}{place} {message}; change the default or the rule"
            ));
        } else if let Some(message) = broken_rule(default, node) {
            lower.fault(&format!(
                "its default {default} breaks a rule of its own: {message}; change the default or the rule"
            ));
        }
    }
    // No server reads the example; people copy it.
    if let Some(example) = node.get("example") {
        if let Err((place, message)) = fits(example, node) {
            lower.warn(&format!(
                "its example {example}{place} {message}; change the example or the rule"
            ));
        } else if let Some(message) = broken_rule(example, node) {
            lower.warn(&format!(
                "its example {example} breaks a rule of its own: {message}; change the example or the rule"
            ));
        }
    }
    super::lists::check(node, lower);
    if let Some(Value::Object(properties)) = node.get("properties") {
        for (name, schema) in properties {
            below(name, schema, lower);
        }
    }
    for (key, step) in [("items", "[]"), ("additionalProperties", "*")] {
        if let Some(schema) = node.get(key) {
            below(step, schema, lower);
        }
    }
}

/// Checks the defaults of a nested schema.
fn below(step: &str, schema: &Value, lower: &mut Lower<'_>) {
    if let Value::Object(schema) = schema {
        lower.enter(step);
        check(schema, lower);
        lower.leave();
    }
}

/// Returns the fault of the first write of a status, which has a condition and nothing else, if the
/// schema refuses it.
pub(in crate::crd) fn first_status_fault(status: &SchemaObject) -> Option<String> {
    let conditions = json!([{
        "type": "Ready",
        "status": "True",
        "reason": "Applied",
        "message": "",
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }]);
    let field = status.get("properties").and_then(|fields| fields.get("conditions"));
    let first = match field.and_then(Value::as_object) {
        Some(field) if fits(&conditions, field).is_ok() => json!({ "conditions": conditions }),
        _ => json!({}),
    };
    let unfit = fits(&first, status).err().map(|(place, message)| format!("it{place} {message}"));
    unfit.or_else(|| broken_rule(&first, status))
}

/// The first rule that a value breaks.
fn broken_rule(value: &Value, node: &SchemaObject) -> Option<String> {
    if !has_rules(node) {
        return None;
    }
    let schema = json!({ "type": "object", "properties": { "value": node } });
    // A rule without a meaning is a separate error.
    if !check_definition(&schema).is_empty() {
        return None;
    }
    let report = Validator::new(&schema).validate(&json!({ "value": value }), None);
    report.violations.first().map(|violation| violation.detail.clone())
}

/// Whether a schema has a rule.
fn has_rules(node: &SchemaObject) -> bool {
    let below = |value: &Value| value.as_object().is_some_and(has_rules);
    let fields = node.get("properties").and_then(Value::as_object);
    node.contains_key(RULES)
        || fields.is_some_and(|fields| fields.values().any(below))
        || ["items", "additionalProperties"].iter().any(|key| node.get(*key).is_some_and(below))
}
