//! Managed fields: who owns what, kept along with every write.

use serde_json::{Value, json};

use super::Call;
use crate::core::Core;
use crate::kinds::meta;
use crate::typed::TypeSchema;

/// Records a create or update by the call's manager.
///
/// Objects that were created owning nothing, or whose list was reset, are not tracked.
pub(crate) fn track(core: &Core, call: &Call, old: Option<&Value>, new: &mut Value) {
    if !settle(old, new) {
        return;
    }
    let now = core.clock.rfc3339();
    *new = crate::apply::track_update(
        types(call),
        old,
        new,
        &call.options.manager,
        &call.kind.served.api_version(),
        call.tracked_subresource(),
        &now,
    );
}

/// The types of the call's kind.
pub(crate) fn types(call: &Call) -> &TypeSchema {
    &call.kind.types
}

/// Decides which list the write starts from; is it tracked at all?
fn settle(old: Option<&Value>, new: &mut Value) -> bool {
    let given = new["metadata"].get("managedFields").cloned().unwrap_or(Value::Null);
    let Some(old) = old else {
        // Whoever creates brings no history.
        meta::set(new, "managedFields", Value::Null);
        return true;
    };
    let held = old["metadata"].get("managedFields").cloned().unwrap_or(Value::Null);
    if is_reset(&given) {
        meta::set(new, "managedFields", Value::Null);
        return false;
    }
    if !is_valid(&given) {
        meta::set(new, "managedFields", held.clone());
    }
    held.as_array().is_some_and(|entries| !entries.is_empty())
}

/// An empty list, or one empty entry, resets.
fn is_reset(given: &Value) -> bool {
    match given.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([one]) => *one == json!({}),
        _ => false,
    }
}

/// Invalid lists are ignored.
fn is_valid(given: &Value) -> bool {
    let Some(entries) = given.as_array() else { return false };
    entries.iter().all(|entry| {
        let known = entry["operation"] == "Apply" || entry["operation"] == "Update";
        known && entry["fieldsType"] == "FieldsV1"
    })
}

/// Do the objects differ in nothing but the times of their managed fields?
pub(crate) fn unchanged(old: &Value, new: &Value) -> bool {
    if old == new {
        return true;
    }
    let timeless = |object: &Value| {
        let mut object = object.clone();
        let entries = object["metadata"].get_mut("managedFields").and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            if let Value::Object(fields) = entry {
                fields.remove("time");
            }
        }
        object
    };
    timeless(old) == timeless(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_managed_fields_stays_untracked() {
        let old = json!({"metadata": {"name": "a"}});
        assert!(!settle(Some(&old), &mut old.clone()));
        assert!(settle(None, &mut old.clone()));
    }

    #[test]
    fn null_keeps_the_list_and_an_empty_one_resets_it() {
        let entry = json!({"manager": "m", "operation": "Update", "fieldsType": "FieldsV1"});
        let old = json!({"metadata": {"managedFields": [entry]}});
        let mut without = json!({"metadata": {}});
        assert!(settle(Some(&old), &mut without));
        assert_eq!(without["metadata"]["managedFields"], json!([entry]));
        for reset in [json!([]), json!([{}])] {
            let mut new = json!({"metadata": {"managedFields": reset}});
            assert!(!settle(Some(&old), &mut new));
            assert_eq!(new["metadata"].get("managedFields"), None);
        }
        let mut invalid = json!({"metadata": {"managedFields": [{"operation": "Bogus"}]}});
        assert!(settle(Some(&old), &mut invalid));
        assert_eq!(invalid["metadata"]["managedFields"], json!([entry]));
    }

    #[test]
    fn other_times_of_managers_are_no_change() {
        let at =
            |time: &str| json!({"metadata": {"managedFields": [{"manager": "m", "time": time}]}});
        assert!(unchanged(&at("1"), &at("2")));
        assert!(!unchanged(&at("1"), &json!({"metadata": {}})));
    }
}
