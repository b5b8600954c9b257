//! Removal of fields and list items from an object.

use serde_json::{Map, Value};

use super::items;
use super::path::PathElement;
use super::set::PathSet;
use crate::typed::{Id, TypeTable, ValueTreatment};

/// Returns `value` without the members of `set`; null if nothing is left.
pub(crate) fn remove(table: &TypeTable, id: Id, value: &Value, set: &PathSet) -> Value {
    match (table.kind(id, Some(value)), value) {
        (ValueTreatment::Scalar(_), value) => value.clone(),
        (ValueTreatment::List(kind, items), Value::Array(list)) if !kind.is_atomic() => {
            let mut out = Vec::with_capacity(list.len());
            for item in list {
                // An item without identity cannot be named by the set, and stays.
                let step = items::step(table, kind, items, item).ok();
                if step.as_ref().is_some_and(|step| set.members.contains(step)) {
                    continue;
                }
                let below = step.as_ref().and_then(|step| set.children.get(step));
                out.push(descend(table, Some(items), item, below));
            }
            if out.is_empty() { Value::Null } else { Value::Array(out) }
        }
        (ValueTreatment::Map(object), Value::Object(map)) if !object.atomic => {
            let mut out = Map::new();
            for (key, value) in map {
                let step = PathElement::field(key);
                if set.members.contains(&step) {
                    continue;
                }
                let child = TypeTable::child(object, key);
                let below = set.children.get(&step);
                out.insert(key.clone(), descend(table, child, value, below));
            }
            if out.is_empty() { Value::Null } else { Value::Object(out) }
        }
        _ => Value::Null,
    }
}

/// Removes the members below a field or item.
fn descend(table: &TypeTable, id: Option<Id>, value: &Value, set: Option<&PathSet>) -> Value {
    match (id, set) {
        (Some(id), Some(set)) if !set.is_empty() => remove(table, id, value, set),
        _ => value.clone(),
    }
}
