//! JSON merge patches.

use serde_json::Value;

/// Applies a JSON merge patch.
pub(super) fn apply(doc: &Value, patch: &Value) -> Value {
    match (doc, patch) {
        (Value::Object(doc), Value::Object(patch)) => {
            let mut out = doc.clone();
            for (key, value) in patch {
                if value.is_null() {
                    out.remove(key);
                    continue;
                }
                let merged = match doc.get(key) {
                    // New content: nulls have nothing to delete.
                    None | Some(Value::Null) => without_nulls(value),
                    Some(old) => apply(old, value),
                };
                out.insert(key.clone(), merged);
            }
            Value::Object(out)
        }
        (Value::Object(_), other) => other.clone(),
        (_, patch) => without_nulls(patch),
    }
}

/// Returns new content without the null keys of maps; nulls in lists are items and stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}
