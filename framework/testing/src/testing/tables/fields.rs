//! Objects as fields by path, in the form in which plans have changes.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_runtime::controller::PlannedField;

/// Values by path.
pub(super) type FieldValues = BTreeMap<String, FieldValue>;

/// A value of an object.
pub(super) struct FieldValue {
    /// Beginning of its JSON; empty where a plan does not have it.
    pub(super) text: String,
    /// Hash of all of its JSON.
    hash: u64,
}

impl FieldValue {
    /// Whether both are one value.
    pub(super) fn is_equal(&self, other: &Self) -> bool {
        self.hash == other.hash
    }

    /// Whether it is that JSON.
    pub(super) fn is(&self, text: &str) -> bool {
        self.hash == PlannedField::hash_of(text)
    }
}

/// Returns the fields of an object of that group and plural name.
pub(super) fn of(object: &Value, (group, plural): (&str, &str)) -> FieldValues {
    let mut fields = FieldValues::new();
    // Nothing stands above or below another field of the same object.
    let all = PlannedField::all_of(object, group, plural);
    all.iter().for_each(|field| insert(&mut fields, field));
    fields
}

/// Sets, or removes, a field and all below it.
pub(super) fn set(fields: &mut FieldValues, field: &PlannedField) {
    fields.remove(&field.path);
    // Paths of one beginning follow each other in the map.
    for separator in ['.', '['] {
        let from = format!("{}{separator}", field.path);
        let known = fields.range(from.clone()..).map(|(path, _)| path.clone());
        let below: Vec<String> = known.take_while(|path| path.starts_with(&from)).collect();
        below.iter().for_each(|path| drop(fields.remove(path)));
    }
    insert(fields, field);
}

fn insert(fields: &mut FieldValues, PlannedField { path, to, hash, .. }: &PlannedField) {
    let Some(to) = to else { return };
    // A list of texts is one value as a whole, and one for each item when a part of it changes.
    match serde_json::from_str(to) {
        Ok(Value::Array(items)) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                let text = item.to_string();
                let hash = PlannedField::hash_of(&text);
                fields.insert(format!("{path}[{at}]"), FieldValue { text, hash });
            }
        }
        _ => drop(fields.insert(path.clone(), FieldValue { text: to.clone(), hash: *hash })),
    }
}

/// Whether a path is `name`, or below it.
pub(super) fn is_within(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
