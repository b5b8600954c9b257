//! Canonical form: the effect of reading an object into the server's own types and writing the
//! object back.
//!
//! Server-side apply compares objects in that form. An OpenAPI schema does not say which optional
//! scalars are omitted when they are zero; for built-in types the marks of protobuf forms do.

mod equal;

use serde_json::{Map, Value};

pub(super) use equal::same;

use super::table::{Id, ObjectType, ScalarType, TypeShape, TypeTable, TypedField, UnsetValue};
use super::{TypeSchema, quantity};

/// Brings an object into canonical form.
pub(super) fn rewrite(schema: &TypeSchema, value: &mut Value) {
    walk(schema.table(), schema.root(), value);
}

/// Replaces null items of lists by Go's zero values, as decoding into lists of structures does.
pub(super) fn fill(schema: &TypeSchema, value: &mut Value) {
    fill_items(schema.table(), schema.root(), value);
}

/// Replaces null items of lists below a value.
fn fill_items(table: &TypeTable, id: Id, value: &mut Value) {
    match (table.shape(id), value) {
        (TypeShape::Object(object), Value::Object(map)) => {
            for (key, value) in map.iter_mut() {
                if let Some(id) = TypeTable::child(object, key) {
                    fill_items(table, id, value);
                }
            }
        }
        (TypeShape::List(_, items), Value::Array(list)) => {
            for item in list {
                if item.is_null() {
                    *item = zero(table.shape(*items));
                }
                fill_items(table, *items, item);
            }
        }
        _ => {}
    }
}

/// Returns Go's zero value of an item of a list.
fn zero(shape: &TypeShape) -> Value {
    match shape {
        TypeShape::Object(_) => Value::Object(Map::new()),
        TypeShape::Scalar(ScalarType::String, _) => Value::from(""),
        TypeShape::Scalar(ScalarType::Integer, _) => Value::from(0),
        TypeShape::Scalar(ScalarType::Boolean, _) => Value::from(false),
        _ => Value::Null,
    }
}

/// Replaces empty lists of fields that are always written by null.
pub(super) fn persist(schema: &TypeSchema, value: &mut Value) {
    empty(schema.table(), schema.root(), value);
}

/// Replaces empty lists below a value.
fn empty(table: &TypeTable, id: Id, value: &mut Value) {
    match (table.shape(id), value) {
        (TypeShape::Object(object), Value::Object(map)) => {
            for (key, value) in map.iter_mut() {
                let Some(id) = TypeTable::child(object, key) else { continue };
                let is_field = object.fields.contains_key(key.as_str());
                let is_list = matches!(table.shape(id), TypeShape::List(..));
                if is_field && is_list && value.as_array().is_some_and(Vec::is_empty) {
                    *value = Value::Null;
                }
                empty(table, id, value);
            }
        }
        (TypeShape::List(_, items), Value::Array(list)) => {
            list.iter_mut().for_each(|item| empty(table, *items, item));
        }
        _ => {}
    }
}

/// Visits a value.
fn walk(table: &TypeTable, id: Id, value: &mut Value) {
    match (table.shape(id), value) {
        (TypeShape::Object(object), Value::Object(map)) => walk_map(table, object, map),
        (TypeShape::List(_, items), Value::Array(list)) => {
            list.iter_mut().for_each(|item| walk_element(table, *items, item));
        }
        (TypeShape::Scalar(ScalarType::Quantity, _), value) => spell(value, false),
        _ => {}
    }
}

/// Visits an item of a list or a value of a map, where a null string is read as empty.
fn walk_element(table: &TypeTable, id: Id, value: &mut Value) {
    if value.is_null() && matches!(table.shape(id), TypeShape::Scalar(ScalarType::String, _)) {
        *value = Value::from("");
    }
    // Values of a map: a list of resources, whose defaults round up.
    if matches!(table.shape(id), TypeShape::Scalar(ScalarType::Quantity, _)) {
        return spell(value, true);
    }
    walk(table, id, value);
}

/// Brings a quantity into the server's spelling; numbers become texts.
fn spell(value: &mut Value, up: bool) {
    let text = match &*value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    let spelled = quantity::canonical(&text, up).unwrap_or_else(|| text.trim().to_owned());
    *value = Value::from(spelled);
}

/// Visits the fields of a map, then adds and removes those that are unset.
fn walk_map(table: &TypeTable, object: &ObjectType, map: &mut Map<String, Value>) {
    for (key, value) in map.iter_mut() {
        match (object.fields.get(key.as_str()), object.element) {
            (Some(field), _) => walk(table, field.node, value),
            (None, Some(element)) => walk_element(table, element, value),
            (None, None) => {}
        }
    }
    for (name, field) in &object.fields {
        let present = map.get(&**name);
        if present.is_some_and(|value| !omitted(table, field, value)) {
            continue;
        }
        // Both an absent field and one that would be omitted come here.
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

/// Whether an optional field with this value is not written.
fn omitted(table: &TypeTable, field: &TypedField, value: &Value) -> bool {
    match (value, table.shape(field.node)) {
        (Value::Null, _) => true,
        (Value::Array(list), TypeShape::List(..)) => {
            list.is_empty() && !field.required && field.written != UnsetValue::Null
        }
        (Value::Object(map), TypeShape::Object(object)) => {
            map.is_empty() && object.fields.is_empty() && !field.required && is_map(table, object)
        }
        _ => drops_zero(field) && is_zero(value),
    }
}

/// Whether a field is a scalar that Go's `omitempty` leaves out when zero.
fn drops_zero(field: &TypedField) -> bool {
    // The mark's end: `-` and a letter, with no sign for a pointer, a list or a map between them.
    matches!(field.wire.as_bytes(), [.., b'-', b'b' | b'i' | b'l' | b'd' | b's'])
}

/// Whether this is a map of keys to values, and not an object that merely has no fields at all.
fn is_map(table: &TypeTable, object: &ObjectType) -> bool {
    object.element.is_some_and(|id| !matches!(table.shape(id), TypeShape::Any))
}

/// Returns the value that is written for an unset field, if any.
fn always_written(table: &TypeTable, field: &TypedField) -> Option<Value> {
    match field.written {
        UnsetValue::Null => return Some(Value::Null),
        UnsetValue::Never => return None,
        UnsetValue::Default => {}
    }
    // The documents give a default to fields that are neither pointers nor omitted when zero.
    match (table.shape(field.node), &field.default) {
        (TypeShape::Object(object), Some(Value::Object(_))) if !object.fields.is_empty() => {
            let mut map = Map::new();
            walk_map(table, object, &mut map);
            Some(Value::Object(map))
        }
        (TypeShape::Scalar(..), Some(zero)) if is_zero(zero) => Some(zero.clone()),
        (TypeShape::Scalar(ScalarType::Quantity, _), _) => {
            // No pointer: Go's `omitempty` leaves out no structure.
            let is_value = field.wire.ends_with("-q");
            (field.required || is_value).then(|| Value::from("0"))
        }
        (TypeShape::Scalar(ScalarType::IntOrString, _), _) => {
            field.required.then(|| Value::from(0))
        }
        // A pointer that is left out when unset, although an object without it is refused.
        _ => (field.required && !field.wire.contains("-*")).then_some(Value::Null),
    }
}

/// Whether a value is Go's zero value of the type.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}
