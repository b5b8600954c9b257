//! `LimitRange`s: defaults and bounds of the resources that new Pods and claims ask for.

use serde_json::{Value, json};

use super::quota;
use crate::core::ServerCore;
use crate::kinds::defaults::child;
use crate::kinds::meta;
use crate::kinds::quantity::Quantity;
use crate::status::{ApiError, FailureSubject};
use crate::storage;
use crate::verbs::VerbCall;

/// Annotation of Pods whose containers got defaults.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Type of the limits of claims.
const CLAIM: &str = "PersistentVolumeClaim";

/// Fills in what the limits of a namespace give to the containers of a new Pod.
pub(crate) fn fill_in(core: &ServerCore, call: &VerbCall, object: &mut Value) {
    if !call.kind.is("", "pods") || !call.subresource.is_empty() {
        return;
    }
    let (ranges, _) = core.store.snapshot("limitranges");
    for (_, range) in storage::in_namespace(&ranges, &call.namespace) {
        let mut set = Vec::new();
        for limit in range.value["spec"]["limits"].as_array().into_iter().flatten() {
            if limit["type"] == "Container" {
                containers(limit, object, &mut set);
            }
        }
        if !set.is_empty() {
            let text = format!("LimitRanger plugin set: {}", set.join("; "));
            child(child(object, "metadata"), "annotations")[ANNOTATION] = text.into();
        }
    }
}

/// Checks the bounds of a namespace: of a new Pod, of a Pod whose resources change, and of a claim.
pub(crate) fn check(
    core: &ServerCore,
    call: &VerbCall,
    old: Option<&Value>,
    object: &Value,
) -> Result<(), ApiError> {
    let is_pod = call.kind.is("", "pods");
    let is_judged = match call.subresource.as_str() {
        "" if is_pod => old.is_none(),
        "" => call.kind.is("", "persistentvolumeclaims"),
        "resize" => is_pod,
        _ => false,
    };
    // Nothing holds back an object that is being deleted.
    if !is_judged || old.is_some_and(meta::terminating) {
        return Ok(());
    }
    let (ranges, _) = core.store.snapshot("limitranges");
    for (_, range) in storage::in_namespace(&ranges, &call.namespace) {
        let mut broken = Vec::new();
        for limit in range.value["spec"]["limits"].as_array().into_iter().flatten() {
            match limit["type"].as_str() {
                Some("Container") if is_pod => {
                    for list in ["containers", "initContainers"] {
                        for one in object["spec"][list].as_array().into_iter().flatten() {
                            bounds(limit, "Container", &one["resources"], &mut broken);
                        }
                    }
                }
                Some("Pod") if is_pod => {
                    let sums = json!({
                        "limits": quota::total(&object["spec"], "limits"),
                        "requests": quota::total(&object["spec"], "requests"),
                    });
                    bounds(limit, "Pod", &sums, &mut broken);
                }
                Some("PersistentVolumeClaim") if !is_pod => {
                    bounds(limit, CLAIM, &object["spec"]["resources"], &mut broken);
                }
                _ => {}
            }
        }
        let why = match broken.as_slice() {
            [] => continue,
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let name = meta::text(object, "name");
        return Err(ApiError::forbidden(FailureSubject::resource(&call.kind.served, name), &why));
    }
    Ok(())
}

/// Sets the defaults of containers. Adds to `set` the names of the resources that got a default.
fn containers(limit: &Value, object: &mut Value, set: &mut Vec<String>) {
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
        }
    }
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

/// Appends the bounds of a limit that resources break.
fn bounds(limit: &Value, kind: &str, resources: &Value, broken: &mut Vec<String>) {
    // Claims have requests only.
    let with_limits = kind != CLAIM;
    let amounts = |name: &str| {
        let read = |part: &str| Quantity::parse(&resources[part][name]);
        (read("requests"), read("limits").filter(|_| with_limits))
    };
    for (name, bound) in limit["min"].as_object().into_iter().flatten() {
        let Some(bound) = Quantity::parse(bound) else { continue };
        let why = format!("minimum {name} usage per {kind} is {bound}");
        match amounts(name) {
            (None, _) => broken.push(format!("{why}.  No request is specified")),
            (Some(held), _) if held < bound => {
                broken.push(format!("{why}, but request is {held}"));
            }
            (_, Some(held)) if held < bound => broken.push(format!("{why}, but limit is {held}")),
            _ => {}
        }
    }
    for (name, bound) in limit["max"].as_object().into_iter().flatten() {
        let Some(bound) = Quantity::parse(bound) else { continue };
        let why = format!("maximum {name} usage per {kind} is {bound}");
        match amounts(name) {
            (None, _) if !with_limits => broken.push(format!("{why}.  No request is specified")),
            (_, None) if with_limits => broken.push(format!("{why}.  No limit is specified")),
            (_, Some(held)) if held > bound => broken.push(format!("{why}, but limit is {held}")),
            (Some(held), _) if held > bound => broken.push(format!("{why}, but request is {held}")),
            _ => {}
        }
    }
    for (name, bound) in limit["maxLimitRequestRatio"].as_object().into_iter().flatten() {
        if let Some(bound) = Quantity::parse(bound).filter(|_| with_limits) {
            broken.extend(ratio(name, kind, bound, amounts(name)));
        }
    }
}

/// Returns the fault of a limit that is too many times the request.
fn ratio(
    name: &str,
    kind: &str,
    bound: Quantity,
    (request, limit): (Option<Quantity>, Option<Quantity>),
) -> Option<String> {
    let why = format!("{name} max limit to request ratio per {kind} is {bound}");
    let Some(request) = request.filter(|held| !held.is_zero()) else {
        return Some(format!("{why}, but no request is specified or request is 0"));
    };
    let Some(limit) = limit.filter(|held| !held.is_zero()) else {
        return Some(format!("{why}, but no limit is specified or limit is 0"));
    };
    let held = limit.share_of(request);
    let most = bound.share_of(Quantity::whole(1));
    (held > most).then(|| format!("{why}, but provided ratio is {held:.6}"))
}
