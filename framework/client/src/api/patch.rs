//! Changes to objects, in the four formats that API servers accept.

use std::fmt;

use serde_json::Value;

use crate::client::PatchType;

/// A change to an object.
///
/// `Debug` shows the format and the number of bytes only.
///
/// | format | lists | removes a field by | repeated after a lost answer |
/// |---|---|---|---|
/// | [`Merge`](Self::Merge) | replaced | `null` | with `metadata.resourceVersion` |
/// | [`Json`](Self::Json) | by index | `remove` | with a `test` of `/metadata/resourceVersion` |
/// | [`Strategic`](Self::Strategic) | merged by key | `$patch`, `null` | with `metadata.resourceVersion` |
/// | [`Apply`](Self::Apply) | merged by key | leaving the field out | always |
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use serde_json::json;
/// use windlass::api::Patch;
///
/// let merge = Patch::Merge(json!({ "data": { "color": "red", "size": null } }));
/// let steps = Patch::Json(json!([{ "op": "remove", "path": "/data/size" }]));
/// # let _ = (merge, steps);
/// ```
#[derive(Clone)]
pub enum Patch {
    /// JSON merge patch (RFC 7386): named fields are set, `null` removes, lists are replaced.
    Merge(Value),
    /// JSON patch (RFC 6902): an array of operations.
    Json(Value),
    /// Strategic merge patch: lists are merged by their keys. Built-in kinds only.
    Strategic(Value),
    /// Server-side apply, as [`Api::apply`](crate::api::Api::apply): all fields that this manager
    /// wants.
    Apply(Value),
}

impl Patch {
    /// The content of the patch.
    pub(crate) fn body(&self) -> &Value {
        match self {
            Self::Merge(body) | Self::Json(body) | Self::Strategic(body) | Self::Apply(body) => {
                body
            }
        }
    }

    /// The format of the patch, which decides the content type.
    pub(crate) fn form(&self) -> PatchType {
        match self {
            Self::Merge(_) => PatchType::Merge,
            Self::Json(_) => PatchType::Json,
            Self::Strategic(_) => PatchType::Strategic,
            Self::Apply(_) => PatchType::Apply,
        }
    }

    /// Whether sending the patch twice does no harm: an apply may be repeated, other formats must
    /// contain the version on which they depend.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self {
            Self::Merge(body) | Self::Strategic(body) => has_version(body),
            Self::Json(operations) => {
                operations.as_array().into_iter().flatten().any(|operation| {
                    let is = |key: &str, text: &str| operation[key].as_str() == Some(text);
                    is("op", "test") && is("path", "/metadata/resourceVersion")
                })
            }
            Self::Apply(_) => true,
        }
    }
}

/// Shows only the length of the body: the body may be part of a Secret.
impl fmt::Debug for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Patch({:?}, {} bytes)", self.form(), self.body().to_string().len())
    }
}

/// Whether the object names the version on which a write of the object depends.
pub(crate) fn has_version(object: &Value) -> bool {
    object
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str)
        .is_some_and(|version| !version.is_empty())
}

/// The JSON merge patch that turns `from` into `to`; `None` when they are equal.
///
/// A merge patch cannot set a field to `null`: such a field is removed.
pub(crate) fn merge_diff(from: &Value, to: &Value) -> Option<Value> {
    if from == to {
        return None;
    }
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return Some(to.clone()) };
    let mut patch = serde_json::Map::new();
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in to {
        let before = from.get(key).unwrap_or(&Value::Null);
        // An object that replaces another type of value is written whole. No `null` inside could
        // mean a removal, because typed objects leave empty fields out.
        if let Some(change) = merge_diff(before, value) {
            patch.insert(key.clone(), change);
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_merge_patch_names_only_what_differs() {
        let from = json!({ "a": 1, "b": { "c": [1, 2], "d": "x" }, "gone": true });
        let to = json!({ "a": 1, "b": { "c": [1], "d": "x", "new": {} } });
        let patch = merge_diff(&from, &to).unwrap();
        assert_eq!(patch, json!({ "b": { "c": [1], "new": {} }, "gone": null }));
        let mut patched = from.clone();
        json_patch::merge(&mut patched, &patch);
        assert_eq!(patched, to);
        assert_eq!(merge_diff(&to, &to), None);
    }
}
