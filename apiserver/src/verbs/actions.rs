//! Behaviour of single kinds: binding and evicting Pods, limits of ConfigMaps, immutable fields.

use serde_json::{Value, json};

use super::admit::policies::Operation;
use super::decode::Body;
use super::delete::Asked;
use super::subresources::{accounts, certificates, pods};
use super::{Call, ObjectResponse, admit, delete, options};
use crate::core::Core;
use crate::kinds::{Kind, meta};
use crate::selectors;
use crate::served::Cause;
use crate::status::{self, About, ApiError, cause, forbidden_field, invalid_value};
use crate::storage;

/// Name of the disruption budgets in the store.
const BUDGETS: &str = "poddisruptionbudgets.policy";

const MEBIBYTE: usize = 1024 * 1024;

/// Executes a POST to a subresource of an object.
pub(crate) fn act(
    core: &Core,
    call: &Call,
    body: &Body,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    match (call.kind.served.plural.as_str(), call.subresource.as_str()) {
        ("pods", "binding") => {
            check_name(call, &body.value, "Binding")?;
            let warnings =
                admit::observe(core, call, Operation::Create(&shown(call, &body.value)))?;
            Ok(bind(core, call, &body.value)?.warned(warnings))
        }
        ("pods", "eviction") => {
            check_name(call, &body.value, "Eviction")?;
            let warnings =
                admit::observe(core, call, Operation::Create(&shown(call, &body.value)))?;
            Ok(evict(core, call, &body.value)?.warned(warnings))
        }
        ("serviceaccounts", "token") => {
            let more = admit::observe(core, call, Operation::Create(&shown(call, &body.value)))?;
            warnings.extend(more);
            accounts::request(core, call, body.clone(), warnings)
        }
        _ => Err(ApiError::method()),
    }
}

/// Returns the body of an action as admission sees it: with its type, and in the namespace of the URL.
fn shown(call: &Call, body: &Value) -> Value {
    let mut shown = body.clone();
    if let Some(sub) = call.kind.subresource(&call.subresource) {
        let version = if sub.group.is_empty() {
            call.kind.served.api_version()
        } else {
            format!("{}/{}", sub.group, sub.version)
        };
        shown["apiVersion"] = version.into();
        shown["kind"] = sub.kind.clone().into();
    }
    meta::set(&mut shown, "name", call.name.clone().into());
    meta::set(&mut shown, "namespace", call.namespace.clone().into());
    shown
}

/// Checks that the body of an action names the Pod of the URL.
fn check_name(call: &Call, body: &Value, kind: &str) -> Result<(), ApiError> {
    if body["metadata"]["name"] == call.name.as_str() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("name in URL does not match name in {kind} object")))
}

/// Assigns a Pod to a node.
fn bind(core: &Core, call: &Call, binding: &Value) -> Result<ObjectResponse, ApiError> {
    let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
    let now = core.clock.rfc3339();
    // A concurrent write makes `put` fail: the Pod is then looked at again.
    loop {
        let held = call.find(core)?;
        let bound = held.value["spec"]["nodeName"].as_str().unwrap_or_default();
        if !bound.is_empty() {
            let why = format!("pod {} is already assigned to node {bound:?}", call.name);
            let about = About { group: "", kind: "pods/binding", name: &call.name };
            return Err(ApiError::conflict(about, &why));
        }
        let mut pod = held.value.clone();
        crate::kinds::defaults::child(&mut pod, "spec")["nodeName"] = json!(node);
        set_condition(
            &mut pod,
            json!({
                "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
            }),
        );
        if call.options.dry_run
            || core.store.put(&call.kind.storage, &call.key(), Some(&held), pod).is_ok()
        {
            return Ok(ObjectResponse::created(status::accepted()));
        }
    }
}

/// Sets a Pod's condition; the previous one of the same type is replaced.
fn set_condition(pod: &mut Value, condition: Value) {
    let conditions = &mut crate::kinds::defaults::child(pod, "status")["conditions"];
    let mut held = conditions.as_array().cloned().unwrap_or_default();
    held.retain(|one| one["type"] != condition["type"]);
    held.push(condition);
    *conditions = Value::Array(held);
}

/// Evicts a Pod, if the disruption budgets allow it.
fn evict(core: &Core, call: &Call, eviction: &Value) -> Result<ObjectResponse, ApiError> {
    let held = call.find(core)?;
    let budgets = check_budgets(core, call, &held.value)?;
    let main = Call { subresource: String::new(), ..call.clone() };
    let mut options = options::delete(&options::Query::default(), &eviction["deleteOptions"])?;
    // A dry run in the URL's parameter counts for the deletion, too.
    options.dry_run |= call.options.dry_run;
    // Before anything is spent: an eviction that cannot delete must cost no budget.
    delete::preconditions(&main, &options, &held.value)?;
    if !options.dry_run {
        // Another eviction took the last disruption in between: the budget now refuses.
        if !budgets.iter().all(|key| spend(core, call, key)) {
            return evict(core, call, eviction);
        }
        disrupt(core, call)?;
        // The condition has made another version of the Pod.
        options.version = None;
    }
    delete::delete_as(core, &main, &options, Asked::Other, &mut Vec::new())?;
    Ok(ObjectResponse::created(status::accepted()))
}

/// Sets the condition of a Pod that is being evicted.
fn disrupt(core: &Core, call: &Call) -> Result<(), ApiError> {
    let now = core.clock.rfc3339();
    loop {
        let held = call.find(core)?;
        let mut pod = held.value.clone();
        set_condition(
            &mut pod,
            json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
            }),
        );
        if core.store.put(&call.kind.storage, &call.key(), Some(&held), pod).is_ok() {
            return Ok(());
        }
    }
}

/// Takes one disruption from a budget; false if none is left. A concurrent write makes `put` fail: it
/// is then tried again.
fn spend(core: &Core, call: &Call, key: &str) -> bool {
    let kind = BUDGETS;
    while let Some(held) = core.store.get(kind, key) {
        let mut budget = held.value.clone();
        let status = crate::kinds::defaults::child(&mut budget, "status");
        let allowed = status["disruptionsAllowed"].as_i64().unwrap_or(0);
        if allowed < 1 {
            return false;
        }
        status["disruptionsAllowed"] = json!(allowed.saturating_sub(1));
        let pods = crate::kinds::defaults::child(status, "disruptedPods");
        pods[call.name.as_str()] = json!(core.clock.rfc3339());
        if core.store.put(kind, key, Some(&held), budget).is_ok() {
            return true;
        }
    }
    // The budget is gone, and forbids nothing.
    true
}

/// Fails if a disruption budget forbids that a Pod goes, else returns the keys of its budgets. Pods
/// that do not run need no permission.
fn check_budgets(core: &Core, call: &Call, pod: &Value) -> Result<Vec<String>, ApiError> {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    // No budget counts these Pods as available.
    if phase != "Running" || crate::kinds::meta::terminating(pod) {
        return Ok(Vec::new());
    }
    let mut spent = Vec::new();
    let (budgets, _) = core.store.snapshot(BUDGETS);
    for (key, budget) in storage::in_namespace(&budgets, &call.namespace) {
        if !selectors::selects(&budget.value["spec"]["selector"], pod) {
            continue;
        }
        let observed = budget.value["status"]["observedGeneration"].as_i64().unwrap_or(0);
        let allowed = budget.value["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
        let text = "Cannot evict pod as it would violate the pod's disruption budget.";
        let name = crate::kinds::meta::text(&budget.value, "name");
        // The budget's status describes an earlier spec: its numbers cannot be trusted yet.
        if observed < crate::kinds::meta::generation(&budget.value) {
            let detail =
                format!("The disruption budget {name} is still being processed by the server.");
            return Err(ApiError::too_many(text, 10).because(cause(
                "DisruptionBudget",
                "",
                detail,
            )));
        }
        if allowed < 1 {
            let error = ApiError::custom(429, "TooManyRequests", text);
            let count = |field: &str| budget.value["status"][field].as_i64().unwrap_or(0);
            let detail = format!(
                "The disruption budget {name} needs {} healthy pods and has {} currently",
                count("desiredHealthy"),
                count("currentHealthy")
            );
            return Err(error.because(cause("DisruptionBudget", "", detail)));
        }
        spent.push(key.to_string());
    }
    Ok(spent)
}

/// Returns a fault if a ConfigMap or Secret holds more than a mebibyte.
pub(crate) fn check_size(kind: &Kind, object: &Value) -> Option<Cause> {
    let field = match (kind.served.group.as_str(), kind.name()) {
        ("", "ConfigMap") => "[]",
        ("", "Secret") => "data",
        _ => return None,
    };
    let size = |field: &str| -> usize {
        let entries = object[field].as_object();
        entries.into_iter().flatten().map(|(_, value)| value.as_str().map_or(0, str::len)).sum()
    };
    // Binary data is base64: four characters are three bytes.
    let bytes = if field == "data" {
        size("data") / 4 * 3
    } else {
        size("data") + size("binaryData") / 4 * 3
    };
    let message = "Too long: may not be more than 1048576 bytes";
    (bytes > MEBIBYTE).then(|| cause("FieldValueTooLong", field, message))
}

/// Returns faults of a Namespace's finalizers: they must be standard or qualified, as those of
/// metadata.
pub(crate) fn check_namespace(kind: &Kind, object: &Value) -> Vec<Cause> {
    if !kind.is("", "namespaces") {
        return Vec::new();
    }
    let list = object["spec"]["finalizers"].as_array();
    let names = list.into_iter().flatten().filter_map(Value::as_str);
    let odd = names.filter(|name| *name != "kubernetes" && !name.contains('/'));
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    odd.map(|name| invalid_value("spec.finalizers", &name.into(), why)).collect()
}

/// Returns faults of changes to fields that are immutable for the kind.
pub(crate) fn check_change(call: &Call, old: &Value, new: &Value) -> Vec<Cause> {
    let immutable = |path: &str| {
        let pointer = format!("/{}", path.replace('.', "/"));
        let (before, after) = (old.pointer(&pointer), new.pointer(&pointer));
        let value = after.cloned().unwrap_or(Value::Null);
        (before != after).then(|| invalid_value(path, &value, "field is immutable"))
    };
    let kind = &call.kind;
    let paths: &[&str] = match (kind.served.group.as_str(), kind.name()) {
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => &["spec.selector"],
        ("batch", "Job") => &["spec.selector", "spec.completionMode"],
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            return immutable("roleRef")
                .map(|_| invalid_value("roleRef", &new["roleRef"], "cannot change roleRef"))
                .into_iter()
                .collect();
        }
        ("", "Pod") if call.subresource.is_empty() => return pod_change(old, new),
        ("", "Pod") => return pods::check_change(call, old, new),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            return certificates::check_change(call, old, new);
        }
        ("", "Secret") => {
            let frozen = old["immutable"] == true
                && (old["data"] != new["data"] || new["immutable"] != true);
            let why = "Forbidden: field is immutable when `immutable` is set";
            let mut causes: Vec<Cause> = immutable("type").into_iter().collect();
            causes.extend(frozen.then(|| cause("FieldValueForbidden", "data", why)));
            return causes;
        }
        ("", "ConfigMap") => {
            let same = |field: &str| old[field] == new[field];
            let frozen = old["immutable"] == true
                && !(same("data") && same("binaryData") && new["immutable"] == true);
            let why = "Forbidden: field is immutable when `immutable` is set";
            return frozen.then(|| cause("FieldValueForbidden", "data", why)).into_iter().collect();
        }
        _ => &[],
    };
    paths.iter().filter_map(|path| immutable(path)).collect()
}

/// Returns the faults of a Pod whose update changes more than it may.
fn pod_change(old: &Value, new: &Value) -> Vec<Cause> {
    let count = |object: &Value, list: &str| object["spec"][list].as_array().map_or(0, Vec::len);
    for list in ["containers", "initContainers"] {
        if count(old, list) != count(new, list) {
            let field = format!("spec.{list}");
            let why = "pod updates may not add or remove containers";
            return vec![forbidden_field(&field, why)];
        }
    }
    // The same as the old one, once the fields that may change are taken from it.
    let mut allowed = new["spec"].clone();
    for list in ["containers", "initContainers"] {
        let before = old["spec"][list].as_array().cloned().unwrap_or_default();
        let after = allowed.get_mut(list).and_then(Value::as_array_mut);
        for (container, held) in after.into_iter().flatten().zip(before) {
            container["image"] = held["image"].clone();
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        let held = &old["spec"][field];
        match allowed.as_object_mut() {
            Some(fields) if held.is_null() => drop(fields.remove(field)),
            Some(fields) => drop(fields.insert(field.to_owned(), held.clone())),
            None => {}
        }
    }
    if allowed == old["spec"] {
        return Vec::new();
    }
    let why = "pod updates may not change fields other than `spec.containers[*].image`,\
               `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` \
               (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` \
               (allow it to be set to 1 if it was previously negative)";
    vec![forbidden_field("spec", why)]
}
