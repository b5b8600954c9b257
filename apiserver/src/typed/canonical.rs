//! What reading an object into the server's own types and writing it back does to it.
//!
//! Server-side apply compares objects in that form. An OpenAPI schema does not say which optional
//! scalars are omitted when zero, so those are left as they are.

use serde_json::{Map, Value};

use super::TypeSchema;
use super::table::{Field, Id, Object, Scalar, Shape, Table};

pub(super) fn rewrite(schema: &TypeSchema, value: &mut Value) {
    walk(schema.table(), schema.root(), value);
}

fn walk(table: &Table, id: Id, value: &mut Value) {
    match (table.shape(id), value) {
        (Shape::Object(object), Value::Object(map)) => walk_map(table, object, map),
        (Shape::List(_, items), Value::Array(list)) => {
            list.iter_mut().for_each(|item| walk(table, *items, item));
        }
        _ => {}
    }
}

fn walk_map(table: &Table, object: &Object, map: &mut Map<String, Value>) {
    for (key, value) in map.iter_mut() {
        if let Some(id) = Table::child(object, key) {
            walk(table, id, value);
        }
    }
    for (name, field) in &object.fields {
        let present = map.get(&**name);
        if present.is_some_and(|value| !omitted(table, field, value)) {
            continue;
        }
        match always_written(table, field) {
            Some(zero) => {
                map.insert(name.to_string(), zero);
            }
            None => {
                map.remove(&**name);
            }
        }
    }
}

/// Would an optional field with this value not be written?
fn omitted(table: &Table, field: &Field, value: &Value) -> bool {
    match (value, table.shape(field.node)) {
        (Value::Null, _) => true,
        (Value::Array(list), Shape::List(..)) => list.is_empty() && !field.required,
        (Value::Object(map), Shape::Object(object)) => {
            map.is_empty() && object.fields.is_empty() && !field.required && is_map(table, object)
        }
        _ => false,
    }
}

/// Is it a map of keys to values, not an object that merely has no fields of its own?
fn is_map(table: &Table, object: &Object) -> bool {
    object.element.is_some_and(|id| !matches!(table.shape(id), Shape::Any))
}

/// The value that is written for an unset field, if one is.
fn always_written(table: &Table, field: &Field) -> Option<Value> {
    match table.shape(field.node) {
        Shape::Object(object) if !object.fields.is_empty() => match &field.default {
            Some(Value::Object(_)) => {
                let mut map = Map::new();
                walk_map(table, object, &mut map);
                Some(Value::Object(map))
            }
            _ => field.required.then_some(Value::Null),
        },
        Shape::Object(_) | Shape::List(..) | Shape::Any => field.required.then_some(Value::Null),
        Shape::Scalar(scalar, _) => field.required.then(|| match scalar {
            Scalar::String => match &field.default {
                Some(Value::String(_)) => Value::from(""),
                _ => Value::Null,
            },
            Scalar::Boolean => Value::from(false),
            Scalar::Quantity => Value::from("0"),
            Scalar::Integer | Scalar::Number | Scalar::IntOrString => Value::from(0),
        }),
    }
}
