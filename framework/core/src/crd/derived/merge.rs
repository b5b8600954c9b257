//! The schema of a flattened field as part of the surrounding object, by schemars' rules.

use schemars::Schema;
use serde_json::{Map, Value, json};

use crate::crd::shapes::{REFUSED, RULES_OF_OPTION, same_name};

/// Keywords under which a schema names further schemas of the same value.
const PARTS: &[&str] = &["if", "allOf", "anyOf", "oneOf", "$ref"];

/// Adds `other`, the schema of an object with the flattened field alone, to `object`.
pub(super) fn flatten(object: &mut Map<String, Value>, other: Schema) {
    match other.to_value() {
        Value::Object(mut other) => {
            leave_the_rest_to_parts(object, &other);
            leave_the_rest_to_parts(&mut other, object);
            refuse_same_names(object, &other);
            other.into_iter().for_each(|(key, value)| add(object, key, value));
        }
        Value::Bool(true)
            if !object.contains_key("additionalProperties")
                && !object.contains_key("unevaluatedProperties") =>
        {
            let has_parts = PARTS.iter().any(|key| object.contains_key(*key));
            let key = if has_parts { "unevaluatedProperties" } else { "additionalProperties" };
            object.insert(key.to_owned(), true.into());
        }
        _ => {}
    }
}

/// Marks an object in which two structs have a field of the same name: serde gives the value to the
/// first of them.
fn refuse_same_names(object: &mut Map<String, Value>, other: &Map<String, Value>) {
    let Some(Value::Object(fields)) = other.get("properties") else { return };
    if let Some(name) = fields.keys().find(|name| has_field(object, name)) {
        object.insert(REFUSED.to_owned(), same_name(name).into());
    }
}

/// Whether an object has a field of that name.
pub(super) fn has_field(object: &Map<String, Value>, name: &str) -> bool {
    object.get("properties").is_some_and(|fields| fields.get(name).is_some())
}

/// Returns the schema of a flattened option: without defaults, which would be written into objects
/// without the option, and with a mark if it has rules, which hold for those objects as well.
pub(super) fn of_option(mut schema: Schema) -> Schema {
    if schema.get("x-kubernetes-validations").is_some() {
        schema.insert(RULES_OF_OPTION.to_owned(), true.into());
    }
    if let Some(Value::Object(fields)) = schema.get_mut("properties") {
        for field in fields.values_mut().filter_map(Value::as_object_mut) {
            field.remove("default");
        }
    }
    schema
}

/// Replaces `additionalProperties`, which sees sibling fields only, where the other schema has
/// parts with fields of their own.
fn leave_the_rest_to_parts(object: &mut Map<String, Value>, other: &Map<String, Value>) {
    let has_parts = PARTS.iter().any(|key| other.contains_key(*key));
    if (has_parts || other.contains_key("unevaluatedProperties"))
        && let Some(rest) = object.remove("additionalProperties")
    {
        object.insert("unevaluatedProperties".to_owned(), rest);
    }
}

/// Adds a keyword; lists and properties add up, alternatives hold both, the outer object wins.
fn add(object: &mut Map<String, Value>, key: String, value: Value) {
    let Some(mine) = object.get_mut(&key) else {
        object.insert(key, value);
        return;
    };
    match (key.as_str(), mine, value) {
        (
            "required" | "allOf" | "x-kubernetes-validations",
            Value::Array(mine),
            Value::Array(more),
        ) => {
            mine.extend(more);
        }
        ("properties" | "patternProperties", Value::Object(mine), Value::Object(more)) => {
            mine.extend(more);
        }
        ("oneOf" | "anyOf", _, value) => {
            let mine = object.remove(&key).unwrap_or_default();
            add(object, "allOf".to_owned(), json!([{ &key: mine }, { key: value }]));
        }
        _ => {}
    }
}
