//! Rules for structural schemas.
//!
//! A structural schema gives the type of every value outside of `allOf`, `anyOf`, `oneOf` and
//! `not`, which may only narrow the type. Pruning, defaulting and apply depend on that.

use serde_json::{Map, Value, json};

use super::cause::{child, forbidden, index, invalid, key, required};
use super::node::{flag, list, text};
use super::pattern;
use crate::served::Cause;

/// Position of a node, which decides the texts of the faults.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodePosition {
    Root,
    Item,
    Field,
}

type Object = Map<String, Value>;

/// Whether the schema is free of constructs that cannot be converted to a structural schema at all.
pub(crate) fn convertible(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return true };
    const UNSUPPORTED: [&str; 7] = [
        "id",
        "$schema",
        "$ref",
        "patternProperties",
        "dependencies",
        "additionalItems",
        "definitions",
    ];
    if UNSUPPORTED.iter().any(|k| map.contains_key(*k))
        || map.get("items").is_some_and(Value::is_array)
        || map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false))
    {
        return false;
    }
    // The whole tree: a single construct anywhere is enough.
    let junctors = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|k| list(map, k));
    let single = ["items", "additionalProperties", "not"].into_iter().filter_map(|k| map.get(k));
    let fields = map.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    junctors.chain(single).chain(fields).all(convertible)
}

/// Returns all faults that keep a schema from being structural, sorted by their text.
pub(crate) fn check(schema: &Value, path: &str) -> Vec<Cause> {
    let mut out = Vec::new();
    invariants(schema, NodePosition::Root, path, &mut out);
    complete(schema, Some(schema), path, path, &mut out);
    out.sort_by_cached_key(|c| format!("{}: {}", c.field, c.message));
    out
}

/// Iterates over the properties of a node.
fn properties(map: &Object) -> impl Iterator<Item = (&String, &Value)> {
    map.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// Returns the type of a node; may be empty.
fn kind(map: &Object) -> &str {
    text(map, "type").unwrap_or_default()
}

/// Checks a node outside of junctors, with all children.
fn invariants(schema: &Value, level: NodePosition, path: &str, out: &mut Vec<Cause>) {
    let Some(map) = schema.as_object() else { return };
    match map.get("items") {
        Some(items) => invariants(items, NodePosition::Item, &child(path, "items"), out),
        None if kind(map) == "array" => {
            out.push(required(&child(path, "items"), "must be specified"));
        }
        None => {}
    }
    let fields = child(path, "properties");
    for (name, property) in properties(map) {
        invariants(property, NodePosition::Field, &key(&fields, name), out);
    }
    let additional = map.get("additionalProperties");
    if let Some(additional) = additional {
        let path = child(path, "additionalProperties");
        if level == NodePosition::Root {
            out.push(forbidden(&path, "must not be used at the root"));
        }
        invariants(additional, NodePosition::Field, &path, out);
    }
    extensions(map, path, out);
    // These branches repeat the types that the extension implies, which is allowed only there.
    let (skip_any, skip_first) = int_or_string_shapes(map);
    validations(map, skip_any, skip_first, path, out);
    types(map, level, path, out);
    meta_fields(map, level, path, out);
}

/// Checks that extensions do not contradict each other.
fn extensions(map: &Object, path: &str, out: &mut Vec<Cause>) {
    if !flag(map, "x-kubernetes-int-or-string") {
        return;
    }
    for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if flag(map, name) {
            let text = "must be false if x-kubernetes-int-or-string is true";
            out.push(invalid(&child(path, name), &json!(true), text));
        }
    }
}

/// Whether the types of `x-kubernetes-int-or-string` are spelled out in `anyOf`, and in the first
/// `allOf`.
fn int_or_string_shapes(map: &Object) -> (bool, bool) {
    let wanted = [json!({"type": "integer"}), json!({"type": "string"})];
    let first = list(map, "allOf").first().and_then(Value::as_object);
    (list(map, "anyOf") == wanted, first.is_some_and(|f| list(f, "anyOf") == wanted))
}

/// Checks that a node has a type, and that it fits.
fn types(map: &Object, level: NodePosition, path: &str, out: &mut Vec<Cause>) {
    let kind = kind(map);
    let at = child(path, "type");
    let value = json!(kind);
    let embedded = flag(map, "x-kubernetes-embedded-resource");
    let preserve = flag(map, "x-kubernetes-preserve-unknown-fields");
    if embedded && kind != "object" {
        let text = "must be object if x-kubernetes-embedded-resource is true";
        out.push(if kind.is_empty() { required(&at, text) } else { invalid(&at, &value, text) });
    } else if kind.is_empty() && !preserve && !flag(map, "x-kubernetes-int-or-string") {
        out.push(required(
            &at,
            match level {
                NodePosition::Root => "must not be empty at the root",
                NodePosition::Item => "must not be empty for specified array items",
                NodePosition::Field => "must not be empty for specified object fields",
            },
        ));
    }
    if embedded && map.contains_key("additionalProperties") {
        let text = "must not be used if x-kubernetes-embedded-resource is set";
        out.push(forbidden(&child(path, "additionalProperties"), text));
    }
    if level == NodePosition::Root && !kind.is_empty() && kind != "object" {
        out.push(invalid(&at, &value, "must be object at the root"));
    }
    if embedded && !preserve && properties(map).next().is_none() {
        let text = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        out.push(required(&child(path, "properties"), text));
    }
}

/// Checks the types of `kind`, `apiVersion` and `metadata`.
fn meta_fields(map: &Object, level: NodePosition, path: &str, out: &mut Vec<Cause>) {
    let resource = level == NodePosition::Root || flag(map, "x-kubernetes-embedded-resource");
    let fields = child(path, "properties");
    for (name, property) in properties(map) {
        let Some(property) = property.as_object() else { continue };
        let kind = kind(property);
        let at = key(&fields, name);
        if resource && matches!(name.as_str(), "kind" | "apiVersion") && kind != "string" {
            out.push(invalid(&child(&at, "type"), &json!(kind), "must be string"));
        }
        if name == "metadata" {
            if resource && kind != "object" {
                out.push(invalid(&child(&at, "type"), &json!(kind), "must be object"));
            }
            if level == NodePosition::Root && !only_names(property) {
                let text = "must not specify anything other than name and generateName, but metadata is implicitly specified";
                out.push(forbidden(&at, text));
            }
        }
    }
}

/// Whether root metadata restricts names and nothing else.
fn only_names(metadata: &Object) -> bool {
    metadata.keys().all(|k| matches!(k.as_str(), "type" | "default" | "properties"))
        && properties(metadata).all(|(k, _)| matches!(k.as_str(), "name" | "generateName"))
}

/// Checks junctors and the pattern of a node.
fn validations(map: &Object, skip_any: bool, skip_first: bool, path: &str, out: &mut Vec<Cause>) {
    if !skip_any {
        for (i, branch) in list(map, "anyOf").iter().enumerate() {
            nested(branch, false, &index(&child(path, "anyOf"), i), out);
        }
    }
    for (i, branch) in list(map, "allOf").iter().enumerate() {
        nested(branch, skip_first && i == 0, &index(&child(path, "allOf"), i), out);
    }
    for (i, branch) in list(map, "oneOf").iter().enumerate() {
        nested(branch, false, &index(&child(path, "oneOf"), i), out);
    }
    if let Some(not) = map.get("not") {
        nested(not, false, &child(path, "not"), out);
    }
    if let Some(source) = text(map, "pattern")
        && let Some(fault) = pattern::error(source)
    {
        let text = format!("must be a valid regular expression, but isn't: {fault}");
        out.push(invalid(&child(path, "pattern"), &json!(source), &text));
    }
}

/// Checks a schema below a junctor, which may only narrow values.
fn nested(schema: &Value, skip_any: bool, path: &str, out: &mut Vec<Cause>) {
    let Some(map) = schema.as_object() else { return };
    validations(map, skip_any, false, path, out);
    if let Some(items) = map.get("items") {
        nested(items, false, &child(path, "items"), out);
    }
    let fields = child(path, "properties");
    for (name, property) in properties(map) {
        nested(property, false, &key(&fields, name), out);
    }
    let mut forbid = |name: &str, text: &str| out.push(forbidden(&child(path, name), text));
    for name in ["type", "title", "description"] {
        if text(map, name).is_some_and(|t| !t.is_empty()) {
            forbid(name, "must be empty to be structural");
        }
    }
    if map.get("additionalProperties").is_some_and(|v| v != &Value::Bool(false)) {
        forbid("additionalProperties", "must be undefined to be structural");
    }
    for name in ["default", "x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if map.get(name).is_some_and(|v| !v.is_null()) {
            forbid(name, "must be undefined to be structural");
        }
    }
    for name in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if flag(map, name) {
            forbid(name, "must be false to be structural");
        }
    }
    for name in ["x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        if !list(map, name).is_empty() {
            forbid(name, "must be empty to be structural");
        }
    }
    // Metadata is validated by the server, and not by branches of a schema.
    if properties(map).any(|(name, _)| name == "metadata") {
        out.push(forbidden(&key(&fields, "metadata"), "must not be specified in a nested context"));
    }
}

/// Checks that every field or item inside a junctor is also specified outside of the junctor.
fn complete(rules: &Value, shape: Option<&Value>, at: &str, seen: &str, out: &mut Vec<Cause>) {
    let Some(map) = rules.as_object() else { return };
    if let Some(not) = map.get("not") {
        complete_nested(not, shape, at, &child(seen, "not"), out);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (i, branch) in list(map, name).iter().enumerate() {
            complete_nested(branch, shape, at, &index(&child(seen, name), i), out);
        }
    }
}

/// Checks a branch of a junctor against the node outside of it.
fn complete_nested(
    rules: &Value,
    shape: Option<&Value>,
    at: &str,
    seen: &str,
    out: &mut Vec<Cause>,
) {
    let Some(map) = rules.as_object() else { return };
    let Some(shape) = shape else {
        return out.push(required(at, &format!("because it is defined in {seen}")));
    };
    complete(rules, Some(shape), at, seen, out);
    if let Some(items) = map.get("items") {
        let (at, seen) = (child(at, "items"), child(seen, "items"));
        complete_nested(items, shape.get("items"), &at, &seen, out);
    }
    for (name, property) in properties(map) {
        let at = key(&child(at, "properties"), name);
        let seen = key(&child(seen, "properties"), name);
        let shape = shape.get("properties").and_then(|p| p.get(name));
        complete_nested(property, shape, &at, &seen, out);
    }
}
