//! JSON patches (RFC 6902) from one value to another, with one operation per changed field.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::change::common;

/// An operation of a patch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(crate) enum PatchOperation {
    Add { path: String, value: Value },
    Remove { path: String },
    Replace { path: String, value: Value },
}

/// Returns the operations that make `to` out of `from`, in order; none for equal values.
pub(crate) fn diff(from: &Value, to: &Value) -> Vec<PatchOperation> {
    let mut operations = Vec::new();
    compare(from, to, "", &mut operations);
    operations
}

fn compare(from: &Value, to: &Value, path: &str, operations: &mut Vec<PatchOperation>) {
    match (from, to) {
        _ if from == to => {}
        (Value::Object(from), Value::Object(to)) => members(from, to, path, operations),
        (Value::Array(from), Value::Array(to)) => items(from, to, path, operations),
        _ => operations.push(PatchOperation::Replace { path: path.to_owned(), value: to.clone() }),
    }
}

fn members(
    from: &Map<String, Value>,
    to: &Map<String, Value>,
    path: &str,
    operations: &mut Vec<PatchOperation>,
) {
    let at = |name: &str| format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        operations.push(PatchOperation::Remove { path: at(name) });
    }
    for (name, value) in to {
        match from.get(name) {
            Some(old) => compare(old, value, &at(name), operations),
            None => {
                operations.push(PatchOperation::Add { path: at(name), value: value.clone() });
            }
        }
    }
}

fn items(from: &[Value], to: &[Value], path: &str, operations: &mut Vec<PatchOperation>) {
    let (start, end) = common(from, to);
    let old = &from[start..from.len() - end];
    let new = &to[start..to.len() - end];
    let at = |place: usize| format!("{path}/{}", start + place);
    for (place, (old, new)) in old.iter().zip(new).enumerate() {
        compare(old, new, &at(place), operations);
    }
    // From the end, so that the places of the others do not move.
    for place in (new.len()..old.len()).rev() {
        operations.push(PatchOperation::Remove { path: at(place) });
    }
    for (place, value) in new.iter().enumerate().skip(old.len()) {
        operations.push(PatchOperation::Add { path: at(place), value: value.clone() });
    }
}
