//! Description of a write: versions before and after, and the changed places.

use serde_json::{Value, json};

use crate::storage::StoredChange;

/// Most changed places of an object; further places are counted.
const PLACES: usize = 64;
/// Longest value of a place, as JSON; longer values are cut.
const LONGEST: usize = 256;
/// Longest path of a place, in characters; longer paths are cut.
const LONGEST_PATH: usize = 512;
/// Text in place of every value of a Secret.
const MASK: &str = "***";

/// Changed places of an object.
#[derive(Default)]
struct ChangedPlaces {
    found: Vec<Value>,
    more: usize,
    masks: bool,
}

/// Returns the changes of a write.
pub(super) fn describe(resource: &str, change: &StoredChange) -> Value {
    let state = change.after.as_ref().or(change.before.as_ref());
    let metadata = state.map_or(&Value::Null, |state| &state.value["metadata"]);
    let before = change.before.as_ref().map(|state| state.revision.to_string());
    let operation = match (&change.before, &change.after) {
        (None, _) => "create",
        (Some(_), Some(_)) => "update",
        (Some(_), None) => "delete",
    };
    let mut described = json!({
        "operation": operation, "resource": resource,
        "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"],
        "resourceVersionBefore": before, "resourceVersionAfter": change.revision.to_string(),
    });
    if let (Some(before), Some(after)) = (&change.before, &change.after) {
        let mut places = ChangedPlaces { masks: resource == "secrets", ..ChangedPlaces::default() };
        compare(&before.value, &after.value, "", &mut places);
        described["paths"] = places.found.into();
        if places.more > 0 {
            described["morePaths"] = json!(places.more);
        }
    }
    described
}

/// Adds the places in which two values differ. The recursion is as deep as the values.
fn compare(before: &Value, after: &Value, path: &str, places: &mut ChangedPlaces) {
    // They change with every write, and say nothing about it.
    if before == after || path == "metadata.managedFields" || path == "metadata.resourceVersion" {
        return;
    }
    // Not looked at further: a large object may differ in every field.
    if places.found.len() == PLACES {
        places.more += 1;
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                let absent = Value::Null;
                let (old, new) = (old.get(key).unwrap_or(&absent), new.get(key).unwrap_or(&absent));
                compare(old, new, &below(path, key), places);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for index in 0..old.len().max(new.len()) {
                let item = |list: &[Value]| list.get(index).cloned().unwrap_or_default();
                compare(&item(old), &item(new), &format!("{path}[{index}]"), places);
            }
        }
        _ => {
            let shown = |value: &Value| shown(value, places.masks);
            let place = json!({"path": path, "before": shown(before), "after": shown(after)});
            places.found.push(place);
        }
    }
}

/// Returns the path of a field; names with other characters than those of fields stand in brackets.
fn below(path: &str, key: &str) -> String {
    if path.ends_with('…') {
        return path.to_owned();
    }
    let is_plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut below = match (is_plain, path.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{}]", Value::from(key)),
    };
    if below.chars().nth(LONGEST_PATH).is_some() {
        below = below.chars().take(LONGEST_PATH).chain(['…']).collect();
    }
    below
}

/// Returns a value in the form of an entry.
fn shown(value: &Value, masks: bool) -> Value {
    if masks && !value.is_null() {
        return json!(MASK);
    }
    let mut text = value.to_string();
    if text.len() <= LONGEST {
        return value.clone();
    }
    let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    text.truncate(end);
    json!(format!("{text}…"))
}
