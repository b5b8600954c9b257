//! Schemas without keywords that derived schemas cannot have; each becomes a warning.

use serde_json::{Value, json};

use super::module::SchemaNode;
use windlass_core::crd::FORMATS;

/// Keywords that only check a value and may stand in an alternative.
const CHECKS: [&str; 12] = [
    "enum",
    "maximum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minimum",
    "minItems",
    "minLength",
    "minProperties",
    "multipleOf",
    "pattern",
    "required",
];

/// Removes keywords from a schema and from all schemas below.
pub(super) fn simplify(node: &mut SchemaNode, path: &str, warnings: &mut Vec<String>) {
    let place = if path.is_empty() { "the object" } else { path };
    let mut left_out = |text: String| warnings.push(format!("{place}: {text}"));
    for key in [
        "nullable",
        "uniqueItems",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
    ] {
        if node.get(key) == Some(&Value::Bool(false)) {
            node.remove(key);
        }
    }
    for key in ["not", "$ref", "$schema", "id"] {
        if node.remove(key).is_some() {
            left_out(format!("`{key}` is left out"));
        }
    }
    if node.get("format").and_then(Value::as_str).is_some_and(|name| !FORMATS.contains(&name))
        && let Some(format) = node.remove("format")
    {
        left_out(format!("the format {format} is left out: API servers do not know it"));
    }
    let format = node.get("format").and_then(Value::as_str);
    let of_numbers = format.map(|name| matches!(name, "int32" | "int64" | "float" | "double"));
    let of_type = match node.get("type").and_then(Value::as_str) {
        Some("string") => Some(false),
        Some("integer" | "number") => Some(true),
        _ => None,
    };
    if of_type.is_some()
        && of_numbers.is_some_and(|is| Some(is) != of_type)
        && let Some(format) = node.remove("format")
    {
        left_out(format!("the format {format} is left out: it says nothing about the type"));
    }
    if node.get("type").is_some_and(|name| name != "array") {
        // Derived schemas have them at texts with a format by themselves.
        node.remove("minItems");
        node.remove("maxItems");
    }
    all_of(node, &mut left_out);
    bounds(node, &mut left_out);
    alternatives(node, &mut left_out);
    values(node, &mut left_out);
    maps(node, &mut left_out);
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        for (name, field) in properties {
            below(field, &format!("{path}.{name}"), warnings);
        }
    }
    for (key, step) in [("items", "[]"), ("additionalProperties", ".*")] {
        if let Some(schema) = node.get_mut(key) {
            below(schema, &format!("{path}{step}"), warnings);
        }
    }
}

/// Largest bound: API servers read bounds as floating numbers, and the next one is beyond `i64`.
const MOST: i128 = 9_223_372_036_854_774_784;

/// Removes bounds of integers that no value of the type has: the derive refuses them.
fn bounds(node: &mut SchemaNode, left_out: &mut impl FnMut(String)) {
    if node.get("type").and_then(Value::as_str) != Some("integer") {
        return;
    }
    let is_short = node.get("format").and_then(Value::as_str) == Some("int32");
    let (name, least, most) = match is_short {
        true => ("int32", i128::from(i32::MIN), i128::from(i32::MAX)),
        false => ("int64", -MOST, MOST),
    };
    for (key, flag, step) in
        [("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)]
    {
        let Some(bound) = node.get(key).filter(|bound| bound.is_number()) else { continue };
        let step = if node.get(flag) == Some(&Value::Bool(true)) { step } else { 0 };
        let is_value = whole(bound).is_some_and(|bound| {
            [bound, bound + step].iter().all(|it| (least..=most).contains(it))
        });
        if !is_value {
            left_out(format!(
                "the {key} {bound} is left out: a bound of {name} is a whole number from {least} to {most}"
            ));
            node.remove(key);
            node.remove(flag);
        }
    }
}

/// The value of a number without a fraction.
fn whole(number: &Value) -> Option<i128> {
    let of_float = || number.as_f64().filter(|number| number.fract() == 0.0).map(|it| it as i128);
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from)).or_else(of_float)
}

fn below(schema: &mut Value, path: &str, warnings: &mut Vec<String>) {
    if let Value::Object(node) = schema {
        simplify(node, path, warnings);
    }
}

/// Moves checks out of `allOf` where that changes nothing, and removes the rest.
fn all_of(node: &mut SchemaNode, left_out: &mut impl FnMut(String)) {
    let Some(Value::Array(parts)) = node.remove("allOf") else { return };
    for part in parts {
        let Value::Object(part) = part else { continue };
        let is_union = part.len() == 1 && part.get("anyOf").is_some_and(is_int_or_string);
        if is_union && node.contains_key("x-kubernetes-int-or-string") {
            continue;
        }
        let is_check = |key: &String| CHECKS.contains(&key.as_str()) && !node.contains_key(key);
        if part.keys().all(is_check) {
            node.extend(part);
        } else {
            left_out(format!("`allOf` of {} is left out", Value::Object(part)));
        }
    }
}

/// Removes alternatives that repeat the type or that a derived schema cannot have.
fn alternatives(node: &mut SchemaNode, left_out: &mut impl FnMut(String)) {
    if node.contains_key("x-kubernetes-int-or-string")
        && node.get("anyOf").is_some_and(is_int_or_string)
    {
        node.remove("anyOf");
    }
    let is_object = node.get("type").and_then(Value::as_str) == Some("object")
        && node.contains_key("properties");
    // Two lists of alternatives become a part of `allOf`.
    let both = node.contains_key("anyOf") && node.contains_key("oneOf");
    for key in ["anyOf", "oneOf"] {
        let Some(value) = node.get(key) else { continue };
        if is_object && !both && is_simple(value) {
            continue;
        }
        left_out(format!("`{key}` is left out"));
        node.remove(key);
    }
}

/// Whether the alternatives are those of a number or a text.
fn is_int_or_string(value: &Value) -> bool {
    *value == json!([{ "type": "integer" }, { "type": "string" }])
        || *value == json!([{ "type": "string" }, { "type": "integer" }])
}

/// Whether each alternative only requires fields, and not all require the same fields.
fn is_simple(value: &Value) -> bool {
    let Some(branches) = value.as_array() else { return false };
    let is_branch = |branch: &Value| {
        branch.as_object().is_some_and(|branch| {
            let required = branch.get("required").and_then(Value::as_array);
            branch.len() == 1 && required.is_some_and(|names| !names.is_empty())
        })
    };
    branches.iter().all(is_branch) && branches.iter().any(|branch| *branch != branches[0])
}

/// Removes null from the listed values, which `nullable` allows, and a list without values, which
/// API servers drop.
fn values(node: &mut SchemaNode, left_out: &mut impl FnMut(String)) {
    let Some(Value::Array(values)) = node.get_mut("enum") else { return };
    let count = values.len();
    values.retain(|value| !value.is_null());
    if values.is_empty() {
        node.remove("enum");
        if count > 0 {
            left_out("`enum` of null alone is left out".to_owned());
        }
    }
}

/// Replaces forms of maps that derived schemas have in another way.
fn maps(node: &mut SchemaNode, left_out: &mut impl FnMut(String)) {
    match node.get("additionalProperties") {
        Some(Value::Bool(false)) => {
            node.remove("additionalProperties");
        }
        Some(Value::Bool(true)) => {
            node.remove("additionalProperties");
            node.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
            let text = "`additionalProperties: true` becomes \
                        `x-kubernetes-preserve-unknown-fields: true`";
            left_out(text.to_owned());
        }
        _ => {}
    }
    if node.get("properties") == Some(&json!({})) {
        node.remove("properties");
    }
    if node.get("required") == Some(&json!([])) {
        node.remove("required");
    }
}
