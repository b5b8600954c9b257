//! Objects as fields by path, in the form in which plans have changes.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_runtime::controller::PlannedField;

/// Values by path, each as JSON.
pub(super) type Fields = BTreeMap<String, String>;

/// Returns the fields of an object.
pub(super) fn of(object: &Value, is_secret: bool) -> Fields {
    let mut fields = Fields::new();
    PlannedField::all_of(object, is_secret).iter().for_each(|field| set(&mut fields, field));
    fields
}

/// Sets, or removes, a field and all below it.
pub(super) fn set(fields: &mut Fields, PlannedField { path, to, .. }: &PlannedField) {
    fields.retain(|known, _| !is_within(known, path));
    let Some(to) = to else { return };
    // A list of texts is one value as a whole, and one for each item when a part of it changes.
    match serde_json::from_str(to) {
        Ok(Value::Array(items)) if !items.is_empty() => {
            let item = |(at, item): (usize, &Value)| (format!("{path}[{at}]"), item.to_string());
            fields.extend(items.iter().enumerate().map(item));
        }
        _ => drop(fields.insert(path.clone(), to.clone())),
    }
}

/// Whether a path is `name`, or below it.
pub(super) fn is_within(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
