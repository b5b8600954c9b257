//! The set of fields that an applied configuration names.

use std::collections::BTreeMap;

use serde_json::Value;

use super::items;
use super::path::PathElement;
use super::set::PathSet;
use crate::typed::{Id, ListMerge, ObjectType, TypeTable, ValueTreatment};

/// Returns every leaf and every list item in `value`, a valid object.
pub(crate) fn of(table: &TypeTable, root: Id, value: &Value) -> PathSet {
    let mut set = PathSet::default();
    walk(table, root, value, &mut Vec::new(), &mut set);
    set
}

/// Adds the fields of a value.
fn walk(table: &TypeTable, id: Id, value: &Value, path: &mut Vec<PathElement>, set: &mut PathSet) {
    match (table.kind(id, Some(value)), value) {
        (ValueTreatment::Scalar(_), _) => set.insert(path),
        (ValueTreatment::Map(object), _) if object.atomic => set.insert(path),
        (ValueTreatment::List(kind, _), _) if kind.is_atomic() => set.insert(path),
        (ValueTreatment::Map(object), Value::Object(map)) => {
            for (key, value) in map {
                walk_field(table, object, (key, value), path, set);
            }
        }
        (ValueTreatment::List(kind, items), Value::Array(list)) => {
            walk_items(table, (kind, items), list, path, set);
        }
        _ => {}
    }
}

/// Adds the fields of a map's value.
fn walk_field(
    table: &TypeTable,
    object: &ObjectType,
    (key, value): (&str, &Value),
    path: &mut Vec<PathElement>,
    set: &mut PathSet,
) {
    // The value was validated before: an undeclared field does not occur.
    let Some(child) = TypeTable::child(object, key) else { return };
    path.push(PathElement::field(key));
    walk(table, child, value, path, set);
    // An empty map or a null, and a key of a free map, are owned by themselves: no leaf below names
    // them.
    let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
    if empty || !object.fields.contains_key(key) {
        set.insert(path);
    }
    path.pop();
}

/// Adds the items of a list, and the fields of those that occur once.
fn walk_items(
    table: &TypeTable,
    (kind, items): (&ListMerge, Id),
    list: &[Value],
    path: &mut Vec<PathElement>,
    set: &mut PathSet,
) {
    let steps: Vec<(PathElement, &Value)> = list
        .iter()
        .filter_map(|item| items::step(table, kind, items, item).ok().map(|step| (step, item)))
        .collect();
    let mut count: BTreeMap<&PathElement, usize> = BTreeMap::new();
    for (step, _) in &steps {
        *count.entry(step).or_default() += 1;
    }
    for (step, item) in &steps {
        path.push(step.clone());
        // An item that occurs twice is owned as a whole, without fields.
        if count.get(step) == Some(&1) {
            walk(table, items, item, path, set);
        }
        set.insert(path);
        path.pop();
    }
}
