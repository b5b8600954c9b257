//! Managed fields: ownership that is recorded with every write.

use serde_json::Value;

use super::VerbCall;
use crate::core::ServerCore;
use crate::typed::TypeSchema;

/// Records a create or update by the call's manager.
pub(crate) fn track(core: &ServerCore, call: &VerbCall, old: Option<&Value>, new: &mut Value) {
    let now = call.now(core);
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

/// Whether an object has the types that tracking needs: the managed fields of others are dropped.
pub(crate) fn are_typed(call: &VerbCall, object: &Value) -> bool {
    crate::apply::is_typed(types(call), object)
}

/// Returns the types of the call's kind.
pub(crate) fn types(call: &VerbCall) -> &TypeSchema {
    &call.kind.types
}

/// Whether the objects differ in nothing but the times of their managed fields.
pub(crate) fn unchanged(old: &Value, new: &Value) -> bool {
    crate::apply::are_equal_but_times(old, new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn other_times_of_managers_are_no_change() {
        let at =
            |time: &str| json!({"metadata": {"managedFields": [{"manager": "m", "time": time}]}});
        assert!(unchanged(&at("1"), &at("2")));
        assert!(!unchanged(&at("1"), &json!({"metadata": {}})));
    }
}
