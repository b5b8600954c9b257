//! Late initialisation: values of a resource for the empty fields of a spec.

use serde_json::{Map, Value};

/// Returns the fields of `values` that are absent or null in `current`, as a merge patch; `None`
/// without any.
///
/// Only whole fields: a list or an object that is there counts as a value. Within an object a key
/// that was never set looks as one that was removed, and its removal would be undone. A null of
/// `values` fills nothing.
pub(super) fn only_empty(current: &Value, values: &Value) -> Option<Value> {
    let is_empty = |field: &String| current.get(field).is_none_or(Value::is_null);
    let filled =
        values.as_object()?.iter().filter(|(field, value)| !value.is_null() && is_empty(field));
    let patch: Map<String, Value> =
        filled.map(|(field, value)| (field.clone(), value.clone())).collect();
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_fields_without_a_value_are_filled() {
        let spec = json!({ "size": 5, "zone": null, "limits": { "cpu": 1 }, "names": [] });
        let values = json!({
            "size": 9, "zone": "b", "limits": { "cpu": 4, "memory": 2 }, "names": ["x"], "tier": null,
            "tags": { "team": "a", "cost": null },
        });
        let patch = only_empty(&spec, &values);
        assert_eq!(patch, Some(json!({ "zone": "b", "tags": { "team": "a", "cost": null } })));
        assert_eq!(only_empty(&spec, &json!({ "size": 9 })), None);
        assert_eq!(only_empty(&spec, &json!("text")), None);
    }
}
