//! The priority of new Pods, by the name of a `PriorityClass`.

use std::sync::Arc;

use serde_json::Value;

use crate::core::ServerCore;
use crate::kinds::meta;
use crate::status::{ApiError, FailureSubject};
use crate::storage::StoredObject;
use crate::verbs::VerbCall;

/// Resource of priority classes in the store.
const CLASSES: &str = "priorityclasses.scheduling.k8s.io";
/// Preemption policy of Pods without another policy.
const PREEMPTS: &str = "PreemptLowerPriority";
/// Classes that every cluster has, with their values.
pub(crate) const SYSTEM: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Sets the priority of a new Pod from its class, or from the class that is the default of the
/// cluster. Pods that set a priority are refused.
pub(crate) fn apply(
    core: &ServerCore,
    call: &VerbCall,
    object: &mut Value,
) -> Result<(), ApiError> {
    if !call.kind.is("", "pods") {
        return Ok(());
    }
    let (class, priority, policy) = match found(core, &object["spec"]) {
        Ok(found) => found,
        Err(why) => return Err(refused(call, object, &why)),
    };
    if !class.is_empty() {
        object["spec"]["priorityClassName"] = class.into();
    }
    let given = object["spec"]["priority"].as_i64();
    if let Some(given) = given.filter(|given| *given != priority) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {priority} from the given PriorityClass name"
        );
        return Err(refused(call, object, &why));
    }
    let given = object["spec"]["preemptionPolicy"].as_str();
    if let Some(given) = given.filter(|given| *given != policy) {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        );
        return Err(refused(call, object, &why));
    }
    object["spec"]["priority"] = priority.into();
    object["spec"]["preemptionPolicy"] = policy.into();
    Ok(())
}

/// Returns the name of a Pod's class, which may be the default class or none, the priority and the
/// preemption policy; the error is the reason of a refusal.
fn found(core: &ServerCore, spec: &Value) -> Result<(String, i64, String), String> {
    let of = |class: &Value| {
        let policy = class["preemptionPolicy"].as_str().unwrap_or(PREEMPTS).to_owned();
        let value = class["value"].as_i64().unwrap_or_default();
        (meta::text(class, "name").to_owned(), value, policy)
    };
    let name = spec["priorityClassName"].as_str().unwrap_or_default();
    if name.is_empty() {
        let default = default_class(core, "");
        return Ok(default
            .map_or_else(|| (String::new(), 0, PREEMPTS.to_owned()), |class| of(&class.value)));
    }
    if let Some(class) = core.store.get(CLASSES, name) {
        return Ok(of(&class.value));
    }
    let system = SYSTEM.iter().find(|(known, _)| *known == name);
    let (_, value) =
        system.ok_or_else(|| format!("no PriorityClass with name {name} was found"))?;
    Ok((name.to_owned(), *value, PREEMPTS.to_owned()))
}

/// Returns the default class of the cluster, if there is a class other than `but`. Among several
/// the lowest counts.
fn default_class(core: &ServerCore, but: &str) -> Option<Arc<StoredObject>> {
    let (snapshot, _) = core.store.snapshot(CLASSES);
    let all = snapshot.iter().map(|(_, class)| class);
    let all = all.filter(|class| class.value["globalDefault"] == true);
    let all = all.filter(|class| meta::text(&class.value, "name") != but);
    all.min_by_key(|class| class.value["value"].as_i64()).cloned()
}

/// Refuses a second class that is the default of the cluster.
pub(crate) fn check_class(
    core: &ServerCore,
    call: &VerbCall,
    object: &Value,
) -> Result<(), ApiError> {
    let is_default = object["globalDefault"] == true;
    if !is_default || !call.kind.is("scheduling.k8s.io", "priorityclasses") {
        return Ok(());
    }
    let name = meta::text(object, "name");
    let Some(other) = default_class(core, name) else { return Ok(()) };
    let why = format!(
        "PriorityClass {} is already marked as default. Only one default can exist",
        meta::text(&other.value, "name")
    );
    Err(ApiError::forbidden(FailureSubject::resource(&call.kind.served, name), &why))
}

/// Returns the 403 for a Pod.
fn refused(call: &VerbCall, object: &Value, why: &str) -> ApiError {
    let names = ["name", "generateName"].map(|field| meta::text(object, field));
    let pod = names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown");
    ApiError::forbidden(FailureSubject::resource(&call.kind.served, pod), why)
}
