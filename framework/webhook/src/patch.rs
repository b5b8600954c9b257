//! JSON patches (RFC 6902) from one value to another, with one operation per changed field.

// DESIGN.md, 295: The patch of a long list is made by an index, and has a bound of operations

use serde::Serialize;
use serde_json::{Map, Value};

use crate::change::common;

/// Most operations of a list or map: each takes many times the bytes of a number, and a user
/// decides how many there are.
const MOST: usize = 1000;

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

/// Adds the operations of a value; those of a list or map with too many are one, for the whole.
fn compare(from: &Value, to: &Value, path: &str, operations: &mut Vec<PatchOperation>) {
    let begin = operations.len();
    let are_few = match (from, to) {
        _ if from == to => true,
        (Value::Object(from), Value::Object(to)) => members(from, to, path, operations),
        (Value::Array(from), Value::Array(to)) => items(from, to, path, operations),
        _ => false,
    };
    if !are_few {
        operations.truncate(begin);
        operations.push(PatchOperation::Replace { path: path.to_owned(), value: to.clone() });
    }
}

/// Adds the operations of a map; false when there are too many.
fn members(
    from: &Map<String, Value>,
    to: &Map<String, Value>,
    path: &str,
    operations: &mut Vec<PatchOperation>,
) -> bool {
    let begin = operations.len();
    // The object itself is never replaced: users of patches refuse its empty path.
    let are_few = |now: usize| path.is_empty() || now - begin <= MOST;
    let at = |name: &str| format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        operations.push(PatchOperation::Remove { path: at(name) });
        if !are_few(operations.len()) {
            return false;
        }
    }
    for (name, value) in to {
        match from.get(name) {
            Some(old) => compare(old, value, &at(name), operations),
            None => {
                operations.push(PatchOperation::Add { path: at(name), value: value.clone() });
            }
        }
        if !are_few(operations.len()) {
            return false;
        }
    }
    true
}

/// Adds the operations of a list; false when there are too many.
fn items(from: &[Value], to: &[Value], path: &str, operations: &mut Vec<PatchOperation>) -> bool {
    let (start, end) = common(from, to);
    let old = &from[start..from.len() - end];
    let new = &to[start..to.len() - end];
    if new.len().abs_diff(old.len()) > MOST {
        return false;
    }
    let begin = operations.len();
    let at = |place: usize| format!("{path}/{}", start + place);
    for (place, (old, new)) in old.iter().zip(new).enumerate() {
        compare(old, new, &at(place), operations);
        if operations.len() - begin > MOST {
            return false;
        }
    }
    // From the end, so that the places of the others do not move.
    for place in (new.len()..old.len()).rev() {
        operations.push(PatchOperation::Remove { path: at(place) });
    }
    for (place, value) in new.iter().enumerate().skip(old.len()) {
        operations.push(PatchOperation::Add { path: at(place), value: value.clone() });
    }
    operations.len() - begin <= MOST
}
