//! Fields that serde writes and reads differently.
//!
//! schemars describes the values that a type reads and, separately, the values that it writes. The
//! differences show two facts that the first description lacks: that a field is an option although
//! its schema is written by hand, and that a field is written under a name that is not read.

use serde_json::{Map, Value};

use super::super::shapes;
use super::node::SchemaObject;

/// Mark of an object: names that serde writes and does not read.
pub(super) const WRITTEN: &str = "$written";
/// Mark of an object: names that serde leaves out on writing, and needs on reading.
pub(super) const LEFT_OUT: &str = "$leftOut";

/// Mark of an object: names that serde needs on reading, and never writes.
pub(super) const UNWRITTEN: &str = "$unwritten";

/// Mark of an object: names that serde reads and need not, and never writes.
pub(super) const DROPPED: &str = "$dropped";

/// Mark of a value: the type of the values that serde writes, if it is another one.
pub(super) const OTHER_TYPE: &str = "$otherType";

/// Marks the differences in `read`, the schema of values that are read.
pub(super) fn compare(read: &mut Value, written: &Value) {
    let (Value::Object(read), Value::Object(written)) = (read, written) else { return };
    fields(read, written);
    other_type(read, written);
    for key in ["items", "additionalProperties"] {
        if let (Some(read), Some(written)) = (read.get_mut(key), written.get(key)) {
            compare(read, written);
        }
    }
    for key in ["prefixItems", "allOf", "anyOf", "oneOf"] {
        if let (Some(Value::Array(read)), Some(Value::Array(written))) =
            (read.get_mut(key), written.get(key))
            // Alternatives correspond by their positions.
            && read.len() == written.len()
        {
            read.iter_mut().zip(written).for_each(|(read, written)| compare(read, written));
        }
    }
}

/// Marks the differences in all types.
pub(super) fn compare_all(read: &mut Map<String, Value>, written: &Map<String, Value>) {
    for (name, read) in read {
        if let Some(written) = written.get(name) {
            compare(read, written);
        }
    }
}

/// Marks a value that serde writes as another type, as by two types in `from` and `into`.
fn other_type(read: &mut SchemaObject, written: &SchemaObject) {
    let (Some(reads), Some(writes)) = (read.get("type"), written.get("type")) else { return };
    let (Some(reads), Some(writes)) = (reads.as_str(), writes.as_str()) else { return };
    // A server takes integers where it takes numbers.
    if reads != writes && (reads, writes) != ("number", "integer") {
        read.insert(OTHER_TYPE.to_owned(), writes.into());
    }
}

/// Marks the differences in the fields of an object.
fn fields(read: &mut SchemaObject, written: &SchemaObject) {
    let none = Map::new();
    let writes = match written.get("properties") {
        Some(Value::Object(writes)) => writes,
        // Serde writes no field at all of such a struct.
        None if written.get("type").is_some_and(|name| name == "object") => &none,
        _ => return,
    };
    let needs = |node: &SchemaObject, name: &str| {
        let required = node.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|found| found == name))
    };
    let is_open = ["additionalProperties", "unevaluatedProperties"]
        .iter()
        .any(|key| read.get(*key).is_some_and(|value| *value != Value::Bool(false)));
    let (mut options, mut left_out, mut unread) = (Vec::new(), Vec::new(), Vec::new());
    for (name, writes) in writes {
        match read.get("properties").and_then(|properties| properties.get(name)) {
            None if !is_open => unread.push(Value::from(name.as_str())),
            Some(reads) if needs(read, name) && !needs(written, name) => {
                // Without `Option` schemars requires a field that has no default; such a field
                // could not be read again. A schema of this crate stands for an unknown type.
                if shapes::is_shape(reads) {
                    options.push(name.clone());
                } else {
                    left_out.push(Value::from(name.as_str()));
                }
            }
            _ => {}
        }
        if let Some(reads) = read.get_mut("properties").and_then(|fields| fields.get_mut(name)) {
            compare(reads, writes);
        }
    }
    let is_written_open = ["additionalProperties", "unevaluatedProperties"]
        .iter()
        .any(|key| written.get(*key).is_some_and(|value| *value != Value::Bool(false)));
    let reads = read.get("properties").and_then(Value::as_object).into_iter().flatten();
    let unwritten = reads.filter(|(name, _)| !is_written_open && !writes.contains_key(*name));
    let (unwritten, others): (Vec<_>, Vec<_>) = unwritten.partition(|(name, _)| needs(read, name));
    // Without the remark of `skip_serializing` the field may be part of a branch.
    let dropped = others.into_iter().filter(|(_, reads)| reads.get("writeOnly").is_some());
    let dropped: Vec<Value> = dropped.map(|(name, _)| name.as_str().into()).collect();
    let unwritten: Vec<Value> = unwritten.iter().map(|(name, _)| name.as_str().into()).collect();
    for name in options {
        let field = read.get_mut("properties").and_then(|fields| fields.get_mut(&name));
        if let Some(Value::Object(field)) = field {
            field.insert(shapes::OPTIONAL.to_owned(), true.into());
        }
    }
    let marks =
        [(WRITTEN, unread), (LEFT_OUT, left_out), (UNWRITTEN, unwritten), (DROPPED, dropped)];
    for (mark, names) in marks {
        if !names.is_empty() {
            read.insert(mark.to_owned(), Value::Array(names));
        }
    }
}
