//! The generation of a changed object, and the fields that the server decides at a change.

use serde_json::Value;

use crate::kinds::{Generation, Kind, admission, meta};
use crate::verbs::VerbCall;

/// Sets the fields that the server decides, and the generation.
pub(super) fn decide(call: &VerbCall, old: &Value, new: &mut Value) {
    // Counted before the server drops fields that slices no longer have.
    let grows_first = call.kind.is("discovery.k8s.io", "endpointslices");
    if grows_first {
        grow(&call.kind, old, new);
    }
    if call.subresource.is_empty() {
        admission::update(&call.kind, old, new);
        if call.kind.is("apiextensions.k8s.io", "customresourcedefinitions") {
            crate::crds::note_storage(new);
        }
    }
    let has_spec =
        matches!(call.subresource.as_str(), "" | "scale" | "ephemeralcontainers" | "resize");
    if has_spec && !grows_first {
        grow(&call.kind, old, new);
    }
}

/// Increments the generation if the object has changed in a way that counts.
fn grow(kind: &Kind, old: &Value, new: &mut Value) {
    let other = |field: &str| old["metadata"][field] != new["metadata"][field];
    let grows = match kind.facts.generation {
        Generation::Unmanaged => {
            // Such kinds store the generation that clients send at creation; an update cannot
            // change the generation.
            return;
        }
        Generation::Fixed => false,
        Generation::Spec | Generation::Late | Generation::Sent => differ(kind, old, new),
        Generation::SpecOrAnnotations => differ(kind, old, new) || other("annotations"),
        Generation::SpecOrLabels => differ(kind, old, new) || other("labels"),
    };
    if grows {
        meta::set(new, "generation", meta::generation(old).wrapping_add(1).into());
    }
}

/// Whether the objects differ outside metadata (and outside status, if that is a subresource).
fn differ(kind: &Kind, old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let counts = |key: &str| key != "metadata" && (key != "status" || !kind.has_status());
    let mut keys = old.keys().chain(new.keys()).filter(|key| counts(key));
    keys.any(|key| {
        let [old, new] = [old, new].map(|object| object.get(key));
        // A field without a type has no zero: null is another value than none.
        old != new
            && (kind.custom.is_some() || kind.facts.generation == Generation::Sent || {
                let [old, new] = [old, new].map(|value| value.unwrap_or(&Value::Null));
                !kind.types.same(key, old, new)
            })
    })
}
