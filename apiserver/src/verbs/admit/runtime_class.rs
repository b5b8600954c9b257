//! The runtime class of new Pods: it must exist, and adds overhead and placement.

use serde_json::Value;

use crate::core::ServerCore;
use crate::kinds::{Kind, meta};
use crate::status::{ApiError, FailureSubject};
use crate::verbs::VerbCall;

/// Resource of runtime classes in the store.
const CLASSES: &str = "runtimeclasses.node.k8s.io";

/// Completes a new Pod by the runtime class.
pub(crate) fn apply(
    core: &ServerCore,
    call: &VerbCall,
    object: &mut Value,
) -> Result<(), ApiError> {
    if !call.kind.is("", "pods") {
        return Ok(());
    }
    complete(core, &call.kind, &mut object["spec"]).map_err(|why| {
        let pod = meta::text(object, "name");
        // Upstream adds the prefix to errors of the class only, not to those of its scheduling.
        let prefix = if why.starts_with("conflict:") { "" } else { "pod rejected: " };
        let why = format!("{prefix}{why}");
        ApiError::forbidden(FailureSubject::resource(&call.kind.served, pod), &why)
    })
}

/// Completes the spec of a Pod; the error is the reason of a refusal.
fn complete(core: &ServerCore, kind: &Kind, spec: &mut Value) -> Result<(), String> {
    let name = spec["runtimeClassName"].as_str().map(str::to_owned);
    let class = match &name {
        None => Value::Null,
        Some(name) => match core.store.get(CLASSES, name) {
            Some(class) => class.value.clone(),
            None => return Err(format!("RuntimeClass {name:?} not found")),
        },
    };
    let fixed = &class["overhead"]["podFixed"];
    match (spec["overhead"].as_object(), fixed.is_object()) {
        // Upstream refuses an empty overhead, too.
        (Some(_), false) => {
            return Err(
                "Pod Overhead set without corresponding RuntimeClass defined Overhead".into()
            );
        }
        (Some(current), true) if !current.is_empty() => {
            if !kind.types.same("spec.overhead", &spec["overhead"], fixed) {
                return Err("Pod's Overhead doesn't match RuntimeClass's defined Overhead".into());
            }
        }
        (_, true) => spec["overhead"] = fixed.clone(),
        (None, false) => {}
    }
    place(spec, &class["scheduling"])
}

/// Adds the place of a class: labels of nodes, and tolerations.
fn place(spec: &mut Value, scheduling: &Value) -> Result<(), String> {
    for (key, value) in scheduling["nodeSelector"].as_object().into_iter().flatten() {
        let current = &spec["nodeSelector"][key];
        if current.is_string() && current != value {
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                value.as_str().unwrap_or_default(),
                current.as_str().unwrap_or_default(),
            ));
        }
        spec["nodeSelector"][key] = value.clone();
    }
    let added = scheduling["tolerations"].as_array().cloned().unwrap_or_default();
    if !added.is_empty() {
        let mut all = spec["tolerations"].as_array().cloned().unwrap_or_default();
        all.extend(added.into_iter().filter(|one| !all.contains(one)).collect::<Vec<_>>());
        spec["tolerations"] = Value::Array(all);
    }
    Ok(())
}
