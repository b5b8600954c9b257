//! Patched objects as refusals show them: upstream patches text, and only the objects that a patch
//! reaches are written anew, with sorted keys. The others keep the order of Go's structures.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::PatchType;
use crate::typed::{Id, TypeSchema, TypeShape, TypeTable};
use crate::verbs::{VerbCall, fields};

/// Fields of the Go structures whose fields stand in another order than the numbers in protobuf,
/// by the end of the type's name.
static ORDER: LazyLock<Vec<(String, Vec<&'static str>)>> = LazyLock::new(|| {
    let lines = include_str!("order.txt").lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, fields)| (format!(".{name}"), fields.split(' ').collect()))
        .collect()
});

/// The objects that a patch reaches, by key.
#[derive(Debug, Default)]
struct ReachedObjects {
    inner: BTreeMap<String, ReachedObjects>,
    /// Whether all objects below are reached, too.
    whole: bool,
}

impl ReachedObjects {
    /// Returns the objects that a merge patch reaches: all of those in its lists.
    fn by_merge(patch: &Value) -> Self {
        let fields = patch.as_object().into_iter().flatten();
        let inner = fields.filter(|(_, value)| value.is_object() || value.is_array());
        let inner = inner.map(|(key, value)| (key.clone(), Self::by_merge(value))).collect();
        Self { inner, whole: patch.is_array() }
    }

    /// Returns the reached part below a key.
    fn below(&self, key: &str) -> Option<&Self> {
        if self.whole { Some(self) } else { self.inner.get(key) }
    }

    /// Returns the objects that a JSON patch reaches.
    fn by_operations(operations: &Value) -> Self {
        let mut all = Self::default();
        for operation in operations.as_array().into_iter().flatten() {
            for name in ["path", "from"] {
                let path = operation[name].as_str().unwrap_or_default();
                let mut keys: Vec<&str> = path.split('/').skip(1).collect();
                keys.pop();
                let mut at = &mut all;
                for key in keys {
                    let key = key.replace("~1", "/").replace("~0", "~");
                    at = at.inner.entry(key).or_default();
                }
            }
        }
        all
    }
}

/// Returns a patched object as text.
pub(super) fn patched(
    call: &VerbCall,
    form: PatchType,
    patch: &Value,
    held: &Value,
    object: &Value,
) -> String {
    let reached = match form {
        _ if call.kind.custom.is_some() => return object.to_string(),
        PatchType::Merge => ReachedObjects::by_merge(patch),
        PatchType::Json => ReachedObjects::by_operations(patch),
        PatchType::Strategic => {
            let types = fields::types(call);
            return as_go(&used(types.table(), Some(types.root()), patch, held));
        }
        PatchType::Apply => return object.to_string(),
    };
    let types = fields::types(call);
    let mut out = String::new();
    print(types.table(), Some(types.root()), object, Some(&reached), &mut out);
    out
}

/// Returns a strategic merge patch in the state after its use: the merge takes directives, and the
/// lists whose order they give, out of the maps that the object has; nulls out of maps that the
/// object lacks; and merges items of one key that the object does not have into the first of them.
fn used(table: &TypeTable, id: Option<Id>, patch: &Value, held: &Value) -> Value {
    const ORDER: &str = "$setElementOrder/";
    let (Value::Object(map), Value::Object(_)) = (patch, held) else { return patch.clone() };
    let is_taken = |key: &str| {
        key == "$retainKeys" || key.starts_with(ORDER) || map.contains_key(&format!("{ORDER}{key}"))
    };
    let object = id.and_then(|id| table.object(id));
    let left = map.iter().filter(|(key, _)| !is_taken(key));
    let left = left.map(|(key, value)| {
        let child = object.and_then(|object| TypeTable::child(object, key));
        let strategy = object.and_then(|object| Some(&object.fields.get(key.as_str())?.strategy));
        let by = strategy.filter(|it| it.merge).and_then(|it| it.key.as_deref());
        let value = match (held.get(key), value, by) {
            (None, _, _) => without_nulls(value),
            (Some(Value::Array(held)), Value::Array(items), Some(by)) => {
                joined((table, child.and_then(|id| element(table, id))), items, held, by)
            }
            (Some(held), _, _) => used(table, child, value, held),
        };
        (key.clone(), value)
    });
    Value::Object(left.collect())
}

/// Returns a value without the nulls in maps.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let left = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(left.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// Returns the type of the items of a list.
fn element(table: &TypeTable, list: Id) -> Option<Id> {
    match table.shape(list) {
        TypeShape::List(_, items) => Some(*items),
        _ => None,
    }
}

/// Returns the items of a list after their use, in which new items have got the fields of later
/// items with the same key.
fn joined(types: (&TypeTable, Option<Id>), items: &[Value], held: &[Value], by: &str) -> Value {
    let mut all: Vec<Value> = items.to_vec();
    for (at, item) in items.iter().enumerate() {
        let has_key = |other: &Value| other.is_object() && other[by] == item[by];
        if let Some(found) = held.iter().find(|other| has_key(other)) {
            // Items with a directive of their own are taken out before.
            if item["$patch"].is_null() {
                all[at] = used(types.0, types.1, item, found);
            }
            continue;
        }
        let first = items[..at].iter().position(has_key);
        if let (Some(first), Value::Object(fields)) = (first, item) {
            for (key, value) in fields {
                all[first][key] = value.clone();
            }
        }
    }
    Value::Array(all)
}

/// Returns the metadata of an object with fields in the order of the Go structure.
pub(in crate::verbs) fn metadata(types: &TypeSchema, object: &Value) -> String {
    let table = types.table();
    let id = table.object(types.root()).and_then(|root| TypeTable::child(root, "metadata"));
    let mut out = String::new();
    print(table, id, &object["metadata"], None, &mut out);
    out
}

/// Returns a value as printed by Go's `%v`.
fn as_go(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let inner: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", as_go(value))).collect();
            format!("map[{}]", inner.join(" "))
        }
        Value::Array(items) => {
            let inner: Vec<String> = items.iter().map(as_go).collect();
            format!("[{}]", inner.join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

/// Appends a value.
fn print(
    table: &TypeTable,
    id: Option<Id>,
    value: &Value,
    reached: Option<&ReachedObjects>,
    out: &mut String,
) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            if reached.is_none() {
                entries.sort_by_key(|(key, _)| (position(table, id, key), (*key).clone()));
            }
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                let child = id.and_then(|id| TypeTable::child(table.object(id)?, key));
                let reached = reached.and_then(|reached| reached.below(key));
                print(table, child, value, reached, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            let child = id.and_then(|id| match table.shape(id) {
                TypeShape::List(_, items) => Some(*items),
                _ => None,
            });
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                let reached = reached.and_then(|reached| reached.below(&index.to_string()));
                print(table, child, item, reached, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// Returns the place of a field in the Go structure, which follows the field's number in protobuf.
fn position(table: &TypeTable, id: Option<Id>, key: &str) -> u64 {
    let field = id.and_then(|id| table.object(id)?.fields.get(key));
    let number = field.map_or("", |field| field.wire);
    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    let name = id.and_then(|id| table.node(id).name.as_deref()).unwrap_or_default();
    let place = number[..end].parse::<u64>().unwrap_or(0) * 10;
    let known = ORDER.iter().find(|(known, _)| name.ends_with(known.as_str()));
    let found = known.and_then(|(_, fields)| fields.iter().position(|field| *field == key));
    found.and_then(|at| u64::try_from(at + 1).ok()).unwrap_or(place)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_is_shown_without_the_lists_that_its_merge_has_taken_out() {
        let patch = json!({"spec": {"x": 1,
            "$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "a"}]}});
        assert_eq!(as_go(&left(&patch, &json!({"spec": {}}))), "map[spec:map[x:1]]");
        assert_eq!(left(&patch, &json!({})), patch);
    }

    #[test]
    fn a_patch_is_shown_without_nulls_in_new_maps_and_with_new_items_of_one_key_joined() {
        let patch = json!({"metadata": {"labels": {"a": null, "b": "c"}}});
        assert_eq!(left(&patch, &json!({"metadata": {"labels": {}}})), patch);
        assert_eq!(
            left(&patch, &json!({"metadata": {}})),
            json!({"metadata": {"labels": {"b": "c"}}})
        );
        let patch =
            json!({"spec": {"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]}});
        let shown = left(&patch, &json!({"spec": {"ports": [{"port": 2}]}}));
        assert_eq!(shown["spec"]["ports"][0]["name"], "b");
        assert_eq!(left(&patch, &json!({"spec": {"ports": [{"port": 1}]}})), patch);
    }

    fn left(patch: &Value, held: &Value) -> Value {
        let types = crate::typed::TypeSchema::builtin("v1", "Service").unwrap();
        used(types.table(), Some(types.root()), patch, held)
    }
}
