//! Uniqueness in lists of type `set` and `map`, and the metadata of embedded resources.
//!
//! Neither is part of JSON schema, so both are checked after JSON schema.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::cause;
use super::node::{Additional, ListType, SchemaNode};
use crate::go;
use crate::names;
use crate::served::Cause;

/// Reports every value or key that occurs more than once, at the second occurrence.
pub(crate) fn unique(value: &Value, node: &SchemaNode, path: &str, out: &mut Vec<Cause>) {
    match value {
        Value::Object(map) => {
            for (key, child) in map {
                match (node.properties.get(key), &node.additional) {
                    (Some(schema), _) => unique(child, schema, &cause::child(path, key), out),
                    (None, Some(Additional::Schema(schema))) => {
                        unique(child, schema, &cause::key(path, key), out);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            match node.list_type {
                Some(ListType::Set) => second(&set_values(items), path, out),
                Some(ListType::Map) => unique_keys(items, node, path, out),
                _ => {}
            }
            if let Some(schema) = node.items.as_deref() {
                for (i, item) in items.iter().enumerate() {
                    unique(item, schema, &cause::index(path, i), out);
                }
            }
        }
        _ => {}
    }
}

/// Checks a list of type `map`: items are objects with different keys.
fn unique_keys(items: &[Value], node: &SchemaNode, path: &str, out: &mut Vec<Cause>) {
    // Keys of other items make no sense then.
    if let Some(i) = items.iter().position(|v| !v.is_object() && !v.is_null()) {
        let text = "must be an object for an array of list-type map";
        out.push(cause::invalid(&cause::index(path, i), &items[i], text));
        return;
    }
    let keys: Vec<Value> = items.iter().map(|item| list_key(item, &node.list_map_keys)).collect();
    second(&keys, path, out);
}

/// Returns the key of an item of a list of type `map`; absent fields stay absent.
fn list_key(item: &Value, keys: &[String]) -> Value {
    let fields = keys.iter().filter_map(|k| item.get(k).map(|v| (k.clone(), v.clone())));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Returns the items of a set as they are compared: within lists and maps 1.0 is the same as 1.
fn set_values(items: &[Value]) -> Vec<Value> {
    let mut values = items.to_vec();
    let nested = values.iter_mut().filter(|item| item.is_array() || item.is_object());
    nested.for_each(go::whole_numbers);
    values
}

/// Reports the second occurrence of each value.
fn second(values: &[Value], path: &str, out: &mut Vec<Cause>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (i, value) in values.iter().enumerate() {
        // By text: equal values are written alike, since keys are sorted. 1 and 1.0 are two values.
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        // Reported once, however often the value occurs.
        if *times == 2 {
            let mut shown = value.clone();
            go::whole_numbers(&mut shown);
            out.push(cause::duplicate(&cause::index(path, i), &shown));
        }
    }
}

/// The old items of a list of type `map` by their keys.
pub(crate) struct Correlated<'a> {
    /// Names of the keys.
    keys: &'a [String],
    /// Items by the text of their keys, of equal items the first.
    items: BTreeMap<String, &'a Value>,
}

impl<'a> Correlated<'a> {
    /// Looks at each old item once.
    pub(crate) fn new(old: &'a [Value], keys: &'a [String]) -> Self {
        let mut items = BTreeMap::new();
        for item in old {
            items.entry(list_key(item, keys).to_string()).or_insert(item);
        }
        Self { keys, items }
    }

    /// Returns the old item with the same key as `item`.
    pub(crate) fn find(&self, item: &Value) -> Option<&'a Value> {
        self.items.get(&list_key(item, self.keys).to_string()).copied()
    }
}

/// Reports embedded resources without kind or API version.
pub(crate) fn embedded(value: &Value, node: &SchemaNode, path: &str, out: &mut Vec<Cause>) {
    match value {
        Value::Object(map) => {
            if node.embedded {
                for name in ["apiVersion", "kind"] {
                    let held = map.get(name).and_then(Value::as_str).unwrap_or_default();
                    let path = cause::child(path, name);
                    if !map.contains_key(name) {
                        out.push(cause::required(&path, ""));
                    } else if held.is_empty() {
                        out.push(cause::invalid(&path, &held.into(), "must not be empty"));
                    } else if let Some(why) = head_fault(name, held) {
                        out.push(cause::invalid(&path, &held.into(), &why));
                    }
                }
            }
            if node.embedded {
                metadata(&value["metadata"], &cause::child(path, "metadata"), out);
            }
            for (key, child) in map {
                match (node.properties.get(key), &node.additional) {
                    (Some(schema), _) => embedded(child, schema, &cause::child(path, key), out),
                    (None, Some(Additional::Schema(schema))) => {
                        embedded(child, schema, &cause::key(path, key), out);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = node.items.as_deref() {
                for (i, item) in items.iter().enumerate() {
                    embedded(item, schema, &cause::index(path, i), out);
                }
            }
        }
        _ => {}
    }
}

/// Reports the faults of the metadata of an embedded resource.
fn metadata(metadata: &Value, path: &str, out: &mut Vec<Cause>) {
    let mut report = |field: &str, value: &str, faults: Vec<String>| {
        let at = cause::child(path, field);
        out.extend(faults.iter().map(|why| cause::invalid(&at, &value.into(), why)));
    };
    let name = metadata["name"].as_str().unwrap_or_default();
    if !name.is_empty() {
        report("name", name, names::path(name));
    }
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        report("labels", key, names::qualified(key));
        let value = value.as_str().unwrap_or_default();
        report("labels", value, names::label_value(value));
    }
    for (key, _) in metadata["annotations"].as_object().into_iter().flatten() {
        report("annotations", key, names::qualified(&key.to_lowercase()));
    }
}

/// Returns the fault of the version or the kind of an embedded resource.
fn head_fault(name: &str, held: &str) -> Option<String> {
    if name == "apiVersion" {
        let is_bad = held.matches('/').count() > 1;
        return is_bad.then(|| format!("unexpected GroupVersion string: {held}"));
    }
    let faults = super::names::dns1035(&held.to_lowercase());
    (!faults.is_empty())
        .then(|| format!("may have mixed case, but should otherwise match: {}", faults.join(",")))
}

/// Calls `visit` with each embedded resource and the path.
pub(crate) fn each_embedded(
    value: &mut Value,
    node: &SchemaNode,
    root: bool,
    path: &str,
    visit: &mut dyn FnMut(&str, &mut Value),
) {
    if !node.has_embedded {
        return;
    }
    if node.embedded && !root && value.is_object() {
        visit(path, value);
    }
    match value {
        Value::Object(map) => {
            for (key, child) in map.iter_mut() {
                if let Some(schema) = node.field(key) {
                    each_embedded(child, schema, false, &cause::child(path, key), visit);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = node.items.as_deref() else { return };
            for (i, item) in items.iter_mut().enumerate() {
                each_embedded(item, schema, false, &cause::index(path, i), visit);
            }
        }
        _ => {}
    }
}

/// Returns the fault of the first embedded resource whose kind, API version or metadata has a wrong
/// type.
pub(crate) fn embedded_fault(
    value: &Value,
    node: &SchemaNode,
    root: bool,
    path: &str,
) -> Option<String> {
    // The head of the object is checked elsewhere.
    if node.embedded && !root {
        let wrong = |name: &str, fine: fn(&Value) -> bool| {
            value.get(name).filter(|v| !fine(v)).map(|v| (cause::child(path, name), v))
        };
        let text =
            wrong("apiVersion", Value::is_string).or_else(|| wrong("kind", Value::is_string));
        if let Some((path, found)) = text {
            return Some(format!(
                "{path}: Invalid value: {}: must be a string",
                cause::print(found)
            ));
        }
        let head = wrong("metadata", |v| v.is_object() || v.is_null());
        if let Some((path, found)) = head {
            let kind = match found {
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                _ => "array",
            };
            let text = format!("json: cannot unmarshal {kind} into Go value of type v1.ObjectMeta");
            return Some(format!("{path}: Invalid value: {}: {text}", cause::print(found)));
        }
    }
    match value {
        Value::Object(map) => map.iter().find_map(|(key, child)| {
            let schema = node.field(key)?;
            embedded_fault(child, schema, false, &cause::child(path, key))
        }),
        Value::Array(items) => {
            let schema = node.items.as_deref()?;
            let mut items = items.iter().enumerate();
            items.find_map(|(i, v)| embedded_fault(v, schema, false, &cause::index(path, i)))
        }
        _ => None,
    }
}
