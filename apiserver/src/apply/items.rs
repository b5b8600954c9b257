//! Identity of list items: by key fields, or by value in sets.

use serde_json::Value;

use super::path::PathElement;
use crate::go;
use crate::typed::{Id, ListMerge, TypeTable};

/// Returns the step from a list to an item.
///
/// # Errors
///
/// The reason why the item has no step.
pub(crate) fn step(
    table: &TypeTable,
    kind: &ListMerge,
    items: Id,
    item: &Value,
) -> Result<PathElement, String> {
    match kind {
        // Items of atomic lists have no identity: paths end at the list.
        ListMerge::Atomic(_) => Err("invalid indexing of non-associative list".to_owned()),
        ListMerge::Set => set_step(item),
        ListMerge::Map(keys) => key_step(table, keys, items, item),
    }
}

/// Returns the step to an item of a set.
fn set_step(item: &Value) -> Result<PathElement, String> {
    let text = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        _ => return Ok(PathElement::Value(identity(item).into())),
    };
    Err(text.to_owned())
}

/// Returns a value as a part of an item's identity, where 1.0 is written like 1.
fn identity(value: &Value) -> Value {
    let mut value = value.clone();
    go::whole_numbers(&mut value);
    value
}

/// Returns the step to an item by the key fields; absent fields count with the default.
fn key_step(
    table: &TypeTable,
    keys: &[String],
    items: Id,
    item: &Value,
) -> Result<PathElement, String> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut fields = Vec::with_capacity(keys.len());
    for key in keys {
        let default = || table.object(items)?.fields.get(key.as_str())?.default.as_ref();
        // A key field without value and default is left out of the key.
        if let Some(value) = map.get(key).or_else(default) {
            fields.push((key.clone(), identity(value)));
        }
    }
    if fields.is_empty() && !keys.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and \
             doesn't have default values for any key fields)",
            keys.join(" ")
        ));
    }
    Ok(PathElement::key(fields))
}
