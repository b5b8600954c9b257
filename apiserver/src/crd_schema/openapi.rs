//! Checks of an `openAPIV3Schema` beyond structure: types, lists, maps, defaults, form of rules.

use serde_json::{Map, Value, json};

use super::cause::{self, child, forbidden, index, invalid, key, not_supported, required};
use super::node::{SchemaNode, flag, list, text, texts};
use super::{Budget, broken_rule, lists, prune, structural, validate};
use crate::served::Cause;

type Object = Map<String, Value>;

/// The reason why defaults are refused below a node; empty where they are allowed.
#[derive(Clone, Copy, Default)]
struct DefaultsRefusal<'a> {
    /// Text of the refusal.
    no_defaults: &'a str,
    /// Whether the node is inside metadata.
    meta: bool,
}

/// Checks the schema of a version at `path` (`….openAPIV3Schema`).
pub(crate) fn check(schema: &Value, status: bool, path: &str) -> Vec<Cause> {
    let mut out = Vec::new();
    let Some(map) = schema.as_object() else { return out };
    if status {
        status_root(schema, map, path, &mut out);
    }
    if flag(map, "nullable") {
        out.push(forbidden(&child(path, "nullable"), "nullable cannot be true at the root"));
    }
    // Upstream builds the structural form only from a schema that can be converted.
    if structural::convertible(schema) {
        let faults = structural::check(schema, path);
        if faults.is_empty() {
            defaults(schema, true, path, &Budget::default(), &mut out);
        }
        // Structural faults are reported whether or not defaults were checked.
        out.extend(faults);
    }
    // Also for schemas that cannot be converted: their other faults are reported, too.
    node(schema, path, true, DefaultsRefusal::default(), &mut out);
    // Rules are compiled against a schema that is right.
    if out.is_empty() {
        let broken = windlass_cel::rules::check_definition(schema);
        out.extend(broken.iter().map(|broken| broken_rule(path, broken)));
    }
    out
}

/// Checks the root of a kind with a status subresource: the root may have only keys that still hold
/// when `properties.status` is taken out.
fn status_root(schema: &Value, map: &Object, path: &str, out: &mut Vec<Cause>) {
    const ALLOWED: [&str; 22] = [
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    ];
    match text(map, "type") {
        Some("object") | None => {}
        Some(other) => {
            let text = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            return out.push(invalid(&child(path, "type"), &json!(other), text));
        }
    }
    let empty = |v: &Value| v.is_null() || v == &json!(false) || v == &json!([]) || v == &json!({});
    if map.iter().any(|(k, v)| !empty(v) && !ALLOWED.contains(&k.as_str())) {
        let names = "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations";
        let text = format!(
            "only [{names}] fields are allowed at the root of the schema if the status subresource is enabled"
        );
        out.push(invalid(path, schema, &text));
    }
}

/// Checks a node with all children.
fn node(schema: &Value, path: &str, root: bool, scope: DefaultsRefusal<'_>, out: &mut Vec<Cause>) {
    let Some(map) = schema.as_object() else { return };
    standard(map, path, scope, out);
    if flag(map, "uniqueItems") {
        let text =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        out.push(forbidden(&child(path, "uniqueItems"), text));
    }
    children(map, path, root, scope, out);
    if map.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
        let at = child(path, "x-kubernetes-preserve-unknown-fields");
        out.push(invalid(&at, &json!(false), "must be true or undefined"));
    }
    map_type(map, path, out);
    list_type(map, path, out);
    list_map(map, path, out);
    rules(map, path, out);
}

/// Checks the keys that every node may have.
fn standard(map: &Object, path: &str, scope: DefaultsRefusal<'_>, out: &mut Vec<Cause>) {
    const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
    let kind = text(map, "type").unwrap_or_default();
    if !kind.is_empty() && !TYPES.contains(&kind) {
        out.push(not_supported(&child(path, "type"), &json!(kind), &TYPES));
    }
    if map.get("default").is_some_and(|v| !v.is_null()) && !scope.no_defaults.is_empty() {
        let text = format!("must not be set {}", scope.no_defaults);
        out.push(forbidden(&child(path, "default"), &text));
    }
    for name in
        ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"]
    {
        if map.contains_key(name) {
            out.push(forbidden(&child(path, name), &format!("{name} is not supported")));
        }
    }
    if kind == "null" {
        let text = "type cannot be set to null, use nullable as an alternative";
        out.push(forbidden(&child(path, "type"), text));
    }
    if map.get("items").is_some_and(Value::is_array) {
        let text = "items must be a schema object and not an array";
        out.push(forbidden(&child(path, "items"), text));
    }
    if scope.meta && flag(map, "x-kubernetes-embedded-resource") {
        let at = child(path, "x-kubernetes-embedded-resource");
        out.push(forbidden(&at, "must not be used inside of resource meta"));
    }
}

/// Checks the children of a node.
fn children(
    map: &Object,
    path: &str,
    root: bool,
    scope: DefaultsRefusal<'_>,
    out: &mut Vec<Cause>,
) {
    let properties = map.get("properties").and_then(Value::as_object);
    if let Some(additional) = map.get("additionalProperties") {
        let at = child(path, "additionalProperties");
        if properties.is_some_and(|p| !p.is_empty()) && additional != &Value::Bool(true) {
            out.push(forbidden(&at, "additionalProperties and properties are mutual exclusive"));
        }
        let mut scope = scope;
        if scope.meta {
            scope.no_defaults = "inside additionalProperties applying to object metadata";
        }
        node(additional, &at, false, scope, out);
    }
    for (name, property) in properties.into_iter().flatten() {
        let mut scope = scope;
        let reason = format!("in top-level {name}");
        if (root || flag(map, "x-kubernetes-embedded-resource")) && prune::is_meta(name) {
            scope.meta = true;
            if root {
                scope.no_defaults = &reason;
            }
        }
        node(property, &key(&child(path, "properties"), name), false, scope, out);
    }
    if let Some(not) = map.get("not") {
        node(not, &child(path, "not"), false, scope, out);
    }
    for name in ["allOf", "oneOf", "anyOf"] {
        for (i, branch) in list(map, name).iter().enumerate() {
            node(branch, &index(&child(path, name), i), false, scope, out);
        }
    }
    if let Some(items) = map.get("items") {
        node(items, &child(path, "items"), false, scope, out);
    }
}

/// Checks that `type` is `wanted`, as the extension `because` demands.
fn needs_type(map: &Object, wanted: &str, because: &str, path: &str, out: &mut Vec<Cause>) -> bool {
    let kind = text(map, "type").unwrap_or_default();
    let detail = format!("must be {wanted} if {because} is specified");
    match kind {
        k if k == wanted => return true,
        "" => out.push(required(&child(path, "type"), &detail)),
        other => out.push(invalid(&child(path, "type"), &json!(other), &detail)),
    }
    false
}

/// Checks `x-kubernetes-map-type`.
fn map_type(map: &Object, path: &str, out: &mut Vec<Cause>) {
    let Some(kind) = text(map, "x-kubernetes-map-type") else { return };
    needs_type(map, "object", "x-kubernetes-map-type", path, out);
    if !matches!(kind, "atomic" | "granular") {
        let at = child(path, "x-kubernetes-map-type");
        out.push(not_supported(&at, &json!(kind), &["atomic", "granular"]));
    }
}

/// Checks `x-kubernetes-list-type`.
fn list_type(map: &Object, path: &str, out: &mut Vec<Cause>) {
    let Some(kind) = text(map, "x-kubernetes-list-type") else { return };
    // The items are looked at only in a list.
    let array = needs_type(map, "array", "x-kubernetes-list-type", path, out);
    let items = map.get("items").and_then(Value::as_object);
    if array
        && kind == "set"
        && let Some(items) = items
    {
        let inner_list = text(items, "x-kubernetes-list-type");
        let inner_map = text(items, "x-kubernetes-map-type");
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let at = |name: &str| child(&child(path, "items"), name);
        match text(items, "type") {
            Some("array") if inner_list.is_some_and(|t| t != "atomic") => {
                out.push(invalid(&at("x-kubernetes-list-type"), &json!(inner_list), detail));
            }
            Some("object") if inner_map != Some("atomic") => {
                out.push(invalid(&at("x-kubernetes-map-type"), &json!(inner_list), detail));
            }
            _ => {}
        }
    }
    if !matches!(kind, "atomic" | "set" | "map") {
        let at = child(path, "x-kubernetes-list-type");
        out.push(not_supported(&at, &json!(kind), &["atomic", "set", "map"]));
    }
}

/// Checks the items and keys of lists of type `set` and `map`.
fn list_map(map: &Object, path: &str, out: &mut Vec<Cause>) {
    let kind = text(map, "x-kubernetes-list-type");
    let keys = texts(map, "x-kubernetes-list-map-keys");
    if !keys.is_empty() && kind != Some("map") {
        let at = child(path, "x-kubernetes-list-type");
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        out.push(match kind {
            None => required(&at, detail),
            Some(other) => invalid(&at, &json!(other), detail),
        });
    }
    if kind == Some("map") {
        map_keys(map, &keys, path, out);
    }
    let Some(items) = map.get("items").and_then(Value::as_object) else { return };
    if !matches!(kind, Some("set" | "map")) {
        return;
    }
    let at = child(path, "items");
    if flag(items, "nullable") {
        let detail = format!(
            "cannot be nullable when x-kubernetes-list-type is {}",
            kind.unwrap_or_default()
        );
        out.push(forbidden(&child(&at, "nullable"), &detail));
    }
    if kind == Some("map") {
        key_presence(items, &keys, &at, out);
    }
}

/// Checks that the keys of a list of type `map` name scalar properties of the items.
fn map_keys(map: &Object, keys: &[String], path: &str, out: &mut Vec<Cause>) {
    let at = child(path, "x-kubernetes-list-map-keys");
    if keys.is_empty() {
        out.push(required(&at, "must not be empty if x-kubernetes-list-type is map"));
    }
    let items_at = child(path, "items");
    let Some(items) = map.get("items") else {
        return out
            .push(required(&items_at, "must have a schema if x-kubernetes-list-type is map"));
    };
    let Some(items) = items.as_object() else {
        let detail = "must only have a single schema if x-kubernetes-list-type is map";
        return out.push(invalid(&items_at, items, detail));
    };
    let kind = text(items, "type").unwrap_or_default();
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        return out.push(invalid(&child(&items_at, "type"), &json!(kind), detail));
    }
    for (i, name) in keys.iter().enumerate() {
        match items.get("properties").and_then(|p| p.get(name)) {
            None => {
                out.push(invalid(
                    &at,
                    &json!(keys),
                    "entries must all be names of item properties",
                ));
            }
            Some(p) if p["type"] == "array" || p["type"] == "object" => {
                let at = child(&key(&child(&items_at, "properties"), name), "type");
                let detail =
                    "must be a scalar type if parent array's x-kubernetes-list-type is map";
                out.push(invalid(&at, &json!(kind), detail));
            }
            Some(_) => {}
        }
        if keys[..i].contains(name) {
            out.push(invalid(&at, &json!(keys), "must not contain duplicate entries"));
        }
    }
}

/// Checks that the keys of a list of type `map` are always present and never null.
fn key_presence(items: &Object, keys: &[String], path: &str, out: &mut Vec<Cause>) {
    let must = texts(items, "required");
    for name in keys {
        let Some(property) =
            items.get("properties").and_then(|p| p.get(name)).and_then(Value::as_object)
        else {
            continue;
        };
        let at = key(&child(path, "properties"), name);
        if !must.contains(name) && property.get("default").is_none_or(Value::is_null) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            out.push(required(&child(&at, "default"), detail));
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            out.push(forbidden(&child(&at, "nullable"), detail));
        }
    }
}

/// Checks the form of `x-kubernetes-validations`; expressions are not compiled.
fn rules(map: &Object, path: &str, out: &mut Vec<Cause>) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    for (i, rule) in list(map, "x-kubernetes-validations").iter().enumerate() {
        let Some(rule) = rule.as_object() else { continue };
        let at = |name: &str| child(&index(&child(path, "x-kubernetes-validations"), i), name);
        let get = |name: &str| text(rule, name).unwrap_or_default();
        let blank = |name: &str| !get(name).is_empty() && get(name).trim().is_empty();
        let lines = |s: &str| s.contains(['\n', '\r']);
        if get("rule").trim().is_empty() {
            out.push(required(&at("rule"), "rule is not specified"));
        // The first fault of message and rule is reported, not all of them.
        } else if blank("message") {
            let value = json!(get("message"));
            out.push(invalid(&at("message"), &value, "must be non-empty if specified"));
        } else if lines(get("message").trim()) {
            let value = json!(get("message"));
            out.push(invalid(&at("message"), &value, "must not contain line breaks"));
        } else if lines(get("rule").trim()) && get("message").trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            out.push(required(&at("message"), detail));
        }
        if blank("messageExpression") {
            let detail = "messageExpression must be non-empty if specified";
            out.push(required(&at("messageExpression"), detail));
        }
        if let Some(reason) = text(rule, "reason").filter(|r| !REASONS.contains(r)) {
            out.push(not_supported(&at("reason"), &json!(reason), &REASONS));
        }
        let field_path = json!(get("fieldPath"));
        if blank("fieldPath") {
            out.push(invalid(&at("fieldPath"), &field_path, "must be non-empty if specified"));
        }
        if lines(get("fieldPath")) {
            out.push(invalid(&at("fieldPath"), &field_path, "must not contain line breaks"));
        }
    }
}

/// Checks that defaults have no unknown fields and are valid.
fn defaults(schema: &Value, resource: bool, path: &str, budget: &Budget, out: &mut Vec<Cause>) {
    let Some(map) = schema.as_object() else { return };
    let embedded = resource || flag(map, "x-kubernetes-embedded-resource");
    if let Some(value) = map.get("default").filter(|v| !v.is_null()) {
        // Compiled by itself: the default is checked as if it were a whole value.
        let mut node = SchemaNode::compile(schema, budget);
        node.embedded = embedded;
        default(&node, value, &child(path, "default"), out);
    }
    if let Some(items) = map.get("items") {
        defaults(items, false, &child(path, "items"), budget, out);
    }
    for (name, property) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if embedded && prune::is_meta(name) {
            continue;
        }
        defaults(property, false, &key(&child(path, "properties"), name), budget, out);
    }
}

/// Checks a default against the schema of its node.
fn default(node: &SchemaNode, value: &Value, path: &str, out: &mut Vec<Cause>) {
    let mut pruned = value.clone();
    prune::prune(&mut pruned, Some(node), node.embedded, "", &mut Vec::new());
    if &pruned != value {
        out.push(invalid(path, value, "must not have unknown fields"));
    }
    let mut causes = Vec::new();
    lists::embedded(value, node, "", &mut causes);
    if causes.is_empty() {
        causes = validate::validate(node, value, None);
    }
    for mut found in causes {
        found.field = match found.field.as_str() {
            "<nil>" => path.to_owned(),
            field => cause::child(path, field),
        };
        out.push(found);
    }
}
