//! Late initialisation: values of a resource for the empty fields of a spec.

use serde_json::{Map, Value};

/// Returns the parts of `values` whose fields are absent or null in `current`, as a merge patch; `None` without any.
///
/// Lists count as one value. A null of `values` fills nothing.
pub(super) fn only_empty(current: &Value, values: &Value) -> Option<Value> {
    let Value::Object(values) = values else { return None };
    let empty = Map::new();
    let current = current.as_object().unwrap_or(&empty);
    let mut patch = Map::new();
    for (field, value) in values {
        let filled = match (current.get(field), value) {
            (_, Value::Null) => None,
            (None | Some(Value::Null), value) => Some(value.clone()),
            (Some(present @ Value::Object(_)), Value::Object(_)) => only_empty(present, value),
            _ => None,
        };
        if let Some(filled) = filled {
            patch.insert(field.clone(), filled);
        }
    }
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
        });
        let patch = only_empty(&spec, &values);
        assert_eq!(patch, Some(json!({ "zone": "b", "limits": { "memory": 2 } })));
        assert_eq!(only_empty(&spec, &json!({ "size": 9 })), None);
        assert_eq!(only_empty(&spec, &json!("text")), None);
    }
}
