//! Checks of list types and map types, in the words of an API server.

use serde_json::Value;

use super::lower::Lower;
use super::node::SchemaObject;

/// Checks the list type and the map type of a node.
pub(super) fn check(node: &SchemaObject, lower: &mut Lower<'_>) {
    let kind = text(node, "type");
    if let Some(map) = node.get("x-kubernetes-map-type") {
        expect(kind, "object", "x-kubernetes-map-type", lower);
        supported("x-kubernetes-map-type", map, &["atomic", "granular"], lower);
    }
    let keys = keys(node);
    let Some(list) = node.get("x-kubernetes-list-type") else {
        if !keys.is_empty() {
            lower.fault(
                "x-kubernetes-list-type must be map if x-kubernetes-list-map-keys is non-empty; add \
                 \"x-kubernetes-list-type\" = \"map\"",
            );
        }
        return;
    };
    expect(kind, "array", "x-kubernetes-list-type", lower);
    supported("x-kubernetes-list-type", list, &["atomic", "set", "map"], lower);
    if !keys.is_empty() && list != "map" {
        lower
            .fault("x-kubernetes-list-type must be map if x-kubernetes-list-map-keys is non-empty");
    }
    let Some(Value::Object(items)) = node.get("items") else { return };
    match list.as_str() {
        Some("map") => map(items, &keys, lower),
        Some("set") => set(items, lower),
        _ => return,
    }
    if items.get("nullable") == Some(&Value::Bool(true)) {
        lower.fault(&format!(
            "its items cannot be nullable when x-kubernetes-list-type is {}; use a type other than `Option`",
            list.as_str().unwrap_or_default()
        ));
    }
}

/// The first item that a set or a list with keys has twice, by its position, and the fault: an API
/// server refuses the list.
pub(super) fn duplicate(list: &[Value], node: &SchemaObject) -> Option<(usize, &'static str)> {
    let of_keys = |item: &Value| -> Vec<Value> {
        let value = |key: &&str| {
            let items = node.get("items").and_then(|items| items.get("properties"));
            let default = || items.and_then(|all| all.get(*key)?.get("default")).cloned();
            item.get(*key).cloned().or_else(default).unwrap_or_default()
        };
        keys(node).iter().map(value).collect()
    };
    let repeats = |is_same: &dyn Fn(&Value, &Value) -> bool| {
        (1..list.len()).find(|place| list[..*place].iter().any(|item| is_same(item, &list[*place])))
    };
    match text(node, "x-kubernetes-list-type") {
        "set" => repeats(&|one, other| one == other).map(|i| (i, "is an item before it")),
        "map" => {
            let found = repeats(&|one, other| of_keys(one) == of_keys(other));
            found.map(|i| (i, "has the key of an item before it"))
        }
        _ => None,
    }
}

/// A keyword's text; empty if there is none.
fn text<'a>(node: &'a SchemaObject, key: &str) -> &'a str {
    node.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The keys of a list of type `map`.
fn keys(node: &SchemaObject) -> Vec<&str> {
    let keys = node.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    keys.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Reports a keyword on a value of the wrong type.
fn expect(kind: &str, wanted: &str, keyword: &str, lower: &mut Lower<'_>) {
    if kind != wanted {
        let found = if kind.is_empty() { "has no type" } else { kind };
        lower.fault(&format!("must be {wanted} if {keyword} is specified, and it is: {found}"));
    }
}

/// Reports a value that a keyword does not have.
fn supported(keyword: &str, value: &Value, values: &[&str], lower: &mut Lower<'_>) {
    if !value.as_str().is_some_and(|value| values.contains(&value)) {
        let known: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        lower.fault(&format!(
            "{keyword}: Unsupported value: {value}: supported values: {}",
            known.join(", ")
        ));
    }
}

/// Checks that items can be compared as a whole.
fn set(items: &SchemaObject, lower: &mut Lower<'_>) {
    let must = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let list = text(items, "x-kubernetes-list-type");
    match text(items, "type") {
        "array" if !matches!(list, "" | "atomic") => {
            lower.fault(&format!("x-kubernetes-list-type of its items {must}"));
        }
        "object" if text(items, "x-kubernetes-map-type") != "atomic" => lower.fault(&format!(
            "x-kubernetes-map-type of its items {must}; a list of objects is mostly a map: \
             `#[schema(list(map, keys(name)))]`, or \"x-kubernetes-list-type\" = \"map\" with \"x-kubernetes-list-map-keys\" = [\"name\"]"
        )),
        _ => {}
    }
}

/// Checks that every item has the keys.
fn map(items: &SchemaObject, keys: &[&str], lower: &mut Lower<'_>) {
    if keys.is_empty() {
        lower.fault(
            "x-kubernetes-list-map-keys must not be empty if x-kubernetes-list-type is map; name the fields by \
             which items differ",
        );
    }
    if text(items, "type") != "object" {
        return lower
            .fault("its items must be object if parent array's x-kubernetes-list-type is map");
    }
    let empty = SchemaObject::new();
    let properties = items.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required = items.get("required").and_then(Value::as_array);
    for (i, key) in keys.iter().enumerate() {
        if keys[..i].contains(key) {
            lower.fault(&format!(
                "x-kubernetes-list-map-keys must not contain duplicate entries: \"{key}\""
            ));
        }
        let Some(property) = properties.get(*key).and_then(Value::as_object) else {
            let known: Vec<&str> = properties.keys().map(String::as_str).collect();
            lower.fault(&format!(
                "x-kubernetes-list-map-keys: \"{key}\": entries must all be names of item properties; the items \
                 have {} (JSON names count)",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            ));
            continue;
        };
        if matches!(text(property, "type"), "array" | "object") {
            lower.fault(&format!(
                "the key \"{key}\" must be a scalar type if parent array's x-kubernetes-list-type is map"
            ));
        }
        if property.get("nullable") == Some(&Value::Bool(true)) {
            lower.fault(&format!(
                "the key \"{key}\": this property is in x-kubernetes-list-map-keys, so it cannot be nullable; make \
                 its type other than `Option`"
            ));
        } else if !required.is_some_and(|names| names.iter().any(|name| name == key))
            && !property.contains_key("default")
        {
            lower.fault(&format!(
                "the key \"{key}\": this property is in x-kubernetes-list-map-keys, so it must have a default or be \
                 a required property"
            ));
        }
    }
}
