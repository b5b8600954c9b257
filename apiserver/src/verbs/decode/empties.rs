//! Empty lists and maps, which are read as none, but for those that a refusal would show.

use serde_json::Value;

use crate::kinds::{Generation, Kind, defaults};

/// Returns the name of the map of bytes in a ConfigMap or Secret, if empty. Only for these maps the
/// real server distinguishes an empty map from none.
pub(super) fn empty_data(kind: &Kind, object: &Value) -> Option<&'static str> {
    let field = match kind.name() {
        _ if !kind.served.group.is_empty() => return None,
        "Secret" => "data",
        "ConfigMap" => "binaryData",
        _ => return None,
    };
    object[field].as_object().filter(|map| map.is_empty()).map(|_| field)
}

/// Removes the empty map of bytes of a ConfigMap or Secret, which is written as none.
pub(crate) fn forget_empty_data(kind: &Kind, object: &mut Value) {
    if let Some(field) = empty_data(kind, object)
        && let Value::Object(fields) = object
    {
        fields.remove(field);
    }
}

/// Gives an applied object those empty values of the applied body that refusals show, or that count
/// as a change.
pub(crate) fn keep_refused(kind: &Kind, applied: &Value, object: &mut Value) {
    put_back(object, refused_empty(kind, applied));
    put_back(object, sent_empty(kind, applied));
    if let Some(field) = empty_data(kind, applied) {
        defaults::child(object, field);
    }
}

/// Returns the empty lists and maps of an object, with their places. Some of them count as a change
/// although they are not stored.
pub(super) fn sent_empty(kind: &Kind, object: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    if kind.facts.generation == Generation::Sent {
        for (name, value) in object.as_object().into_iter().flatten() {
            if name != "metadata" {
                collect(value, &format!("/{name}"), &mut found);
            }
        }
    }
    found
}

/// Collects the empty lists and maps of a value at a place.
fn collect(value: &Value, at: &str, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Array(items) if items.is_empty() => found.push((at.to_owned(), value.clone())),
        Value::Object(map) if map.is_empty() => found.push((at.to_owned(), value.clone())),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(map) => {
            for (name, value) in map {
                // Names of fields have neither of the signs that pointers escape.
                collect(value, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// Removes the empty values that have not been refused.
pub(crate) fn forget_refused(kind: &Kind, object: &mut Value) {
    if kind.facts.generation == Generation::Sent {
        let metadata = object["metadata"].take();
        kind.types.canonicalize(object);
        object["metadata"] = metadata;
    }
    for (pointer, _) in refused_empty(kind, object) {
        let (parent, field) = pointer.rsplit_once('/').unwrap_or_default();
        if let Some(Value::Object(parent)) = object.pointer_mut(parent) {
            parent.remove(field);
        }
    }
}

/// Sets values in the objects above their places, where these are.
pub(super) fn put_back(
    object: &mut Value,
    values: impl IntoIterator<Item = (impl AsRef<str>, Value)>,
) {
    for (pointer, value) in values {
        let (parent, field) = pointer.as_ref().rsplit_once('/').unwrap_or_default();
        if let Some(Value::Object(parent)) = object.pointer_mut(parent) {
            parent.entry(field).or_insert(value);
        }
    }
}

/// Returns empty values that refusals show in other words than none, with their places.
pub(super) fn refused_empty(kind: &Kind, object: &Value) -> Vec<(&'static str, Value)> {
    let places: &[&str] = match (kind.served.group.as_str(), kind.name()) {
        ("", "PersistentVolume") => &["/spec/capacity"],
        ("", "Pod") => &["/spec/nodeSelector", "/spec/overhead"],
        ("", "PersistentVolumeClaim") => &["/spec/accessModes"],
        ("autoscaling", "HorizontalPodAutoscaler") => {
            &["/spec/behavior/scaleUp/policies", "/spec/behavior/scaleDown/policies"]
        }
        ("networking.k8s.io", "Ingress") if object["spec"]["defaultBackend"].is_null() => {
            &["/spec/rules"]
        }
        _ => &[],
    };
    let held = places.iter().filter_map(|at| Some((*at, object.pointer(at)?)));
    let is_empty = |value: &Value| match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    held.filter(|(_, value)| is_empty(value)).map(|(at, value)| (at, value.clone())).collect()
}
