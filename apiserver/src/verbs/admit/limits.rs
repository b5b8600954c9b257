//! `LimitRange`s: defaults and bounds of the resources that new Pods and claims ask for.

use serde_json::{Value, json};

use crate::core::Core;
use crate::kinds::defaults::child;
use crate::kinds::quantity::Quantity;
use crate::status::{About, ApiError};
use crate::storage;
use crate::verbs::Call;

/// Annotation of Pods whose containers got defaults.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Applies the limits of a namespace to a new Pod or claim.
pub(crate) fn apply(core: &Core, call: &Call, object: &mut Value) -> Result<(), ApiError> {
    let is_pod = call.kind.is("", "pods");
    if !is_pod && !call.kind.is("", "persistentvolumeclaims") || !call.subresource.is_empty() {
        return Ok(());
    }
    let (ranges, _) = core.store.snapshot("limitranges");
    for (_, range) in storage::in_namespace(&ranges, &call.namespace) {
        let mut set = Vec::new();
        for limit in range.value["spec"]["limits"].as_array().into_iter().flatten() {
            let fault = match limit["type"].as_str() {
                Some("Container") if is_pod => containers(limit, object, &mut set),
                Some("Pod") if is_pod => pod(limit, object),
                Some("PersistentVolumeClaim") if !is_pod => {
                    let name = "PersistentVolumeClaim";
                    bounds(limit, name, &object["spec"]["resources"])
                }
                _ => None,
            };
            if let Some(why) = fault {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                return Err(ApiError::forbidden(About::resource(&call.kind.served, name), &why));
            }
        }
        if !set.is_empty() {
            let text = format!("LimitRanger plugin set: {}", set.join("; "));
            child(child(object, "metadata"), "annotations")[ANNOTATION] = text.into();
        }
    }
    Ok(())
}

/// Sets the defaults of containers, and returns the first broken bound. Adds to `set` the names of
/// the resources that got a default.
fn containers(limit: &Value, object: &mut Value, set: &mut Vec<String>) -> Option<String> {
    let mut fault = None;
    for (list, word) in [("containers", "container"), ("initContainers", "init container")] {
        let items = object["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in items.into_iter().flatten().filter(|item| item.is_object()) {
            // The container's own values count before the defaults of the limit.
            let given = container["resources"]["limits"].clone();
            let limits = fill(container, "limits", &limit["default"]);
            fill(container, "requests", &given);
            let requests = fill(container, "requests", &limit["defaultRequest"]);
            let name = container["name"].as_str().unwrap_or_default();
            for (names, part) in [(requests, "request"), (limits, "limit")] {
                if !names.is_empty() {
                    set.push(format!("{} {part} for {word} {name}", names.join(", ")));
                }
            }
            fault = fault.or_else(|| bounds(limit, "Container", &container["resources"]));
        }
    }
    fault
}

/// Adds missing resources to a part of a container's resources, and returns their names.
fn fill(container: &mut Value, part: &str, source: &Value) -> Vec<String> {
    let mut added = Vec::new();
    let Some(source) = source.as_object().filter(|source| !source.is_empty()) else {
        return added;
    };
    if !container["resources"].is_object() {
        container["resources"] = json!({});
    }
    let held = &mut container["resources"][part];
    if !held.is_object() {
        *held = json!({});
    }
    for (name, amount) in source {
        if held.get(name).is_none() {
            held[name] = amount.clone();
            added.push(name.clone());
        }
    }
    added
}

/// Returns the first bound that the sum of a Pod's containers breaks.
fn pod(limit: &Value, object: &Value) -> Option<String> {
    let mut sums = json!({"limits": {}, "requests": {}});
    for container in object["spec"]["containers"].as_array().into_iter().flatten() {
        for part in ["limits", "requests"] {
            for (name, amount) in container["resources"][part].as_object().into_iter().flatten() {
                let before = Quantity::parse(&sums[part][name]).unwrap_or_default();
                let sum = before + Quantity::parse(amount).unwrap_or_default();
                sums[part][name] = json!(sum.to_string());
            }
        }
    }
    bounds(limit, "Pod", &sums)
}

/// Returns the first bound of a limit that the resources break.
fn bounds(limit: &Value, kind: &str, resources: &Value) -> Option<String> {
    let read = |part: &str, name: &str| Quantity::parse(&resources[part][name]);
    for (name, bound) in limit["min"].as_object().into_iter().flatten() {
        let (bound, request) = (Quantity::parse(bound)?, read("requests", name));
        let why = format!("minimum {name} usage per {kind} is {bound}");
        match request.or(read("limits", name)) {
            None => return Some(format!("{why}.  No request is specified")),
            Some(held) if held < bound => return Some(format!("{why}, but request is {held}")),
            Some(_) => {}
        }
    }
    for (name, bound) in limit["max"].as_object().into_iter().flatten() {
        let bound = Quantity::parse(bound)?;
        let why = format!("maximum {name} usage per {kind} is {bound}");
        // Claims have requests only.
        let held = if kind == "PersistentVolumeClaim" {
            read("requests", name).map(|held| (held, "request"))
        } else {
            read("limits", name).map(|held| (held, "limit"))
        };
        match held {
            None if kind != "PersistentVolumeClaim" => {
                return Some(format!("{why}.  No limit is specified"));
            }
            Some((held, word)) if held > bound => {
                return Some(format!("{why}, but {word} is {held}"));
            }
            _ => {}
        }
    }
    None
}
