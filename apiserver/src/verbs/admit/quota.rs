//! `ResourceQuota`s: what a namespace may hold.
//!
//! The use of a namespace is counted from its stored objects for each new one, so deletions free
//! what they used at once. Scopes of quotas are not supported: such quotas allow everything.
//! Objects that are created at the same moment may together exceed a quota.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::core::Core;
use crate::kinds::quantity::Quantity;
use crate::status::{About, ApiError};
use crate::storage;
use crate::verbs::Call;

/// Resource of quotas in the store.
const QUOTAS: &str = "resourcequotas";
/// Plurals that quotas also count by this name alone.
const BARE: [&str; 7] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];

/// Amounts by the names of resources.
type Amounts = BTreeMap<String, Quantity>;

/// Checks that the quotas of the namespace allow a new object, and writes the use to their status.
pub(crate) fn check(core: &Core, call: &Call, object: &Value) -> Result<(), ApiError> {
    if !call.kind.served.namespaced || call.kind.is("", "events") {
        return Ok(());
    }
    let (quotas, _) = core.store.snapshot(QUOTAS);
    let held: Vec<_> = storage::in_namespace(&quotas, &call.namespace).collect();
    if held.is_empty() {
        return Ok(());
    }
    let added = use_of(call, object);
    for (_, quota) in &held {
        let spec = &quota.value["spec"];
        if spec["scopes"].is_array() || spec["scopeSelector"].is_object() {
            continue;
        }
        let limits = amounts(&spec["hard"]);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let about = About::resource(&call.kind.served, name);
        let quota_name = quota.value["metadata"]["name"].as_str().unwrap_or_default();
        if let Some(missing) = unspecified(call, object, &limits) {
            let why = format!("failed quota: {quota_name}: must specify {missing}");
            return Err(ApiError::forbidden(about, &why));
        }
        let used = used(core, call, &limits);
        if let Some(excess) = excess(&limits, &used, &added) {
            let why = format!("exceeded quota: {quota_name}, {excess}");
            return Err(ApiError::forbidden(about, &why));
        }
    }
    Ok(())
}

/// Writes the use of a namespace to the status of its quotas, after an object has been created.
pub(crate) fn record(core: &Core, call: &Call) {
    if !call.kind.served.namespaced || call.kind.is("", "events") {
        return;
    }
    let (quotas, _) = core.store.snapshot(QUOTAS);
    for (key, quota) in storage::in_namespace(&quotas, &call.namespace) {
        let limits = amounts(&quota.value["spec"]["hard"]);
        if !limits.keys().any(|name| covers(call, name)) {
            continue;
        }
        let mut used = used(core, call, &limits);
        let mut next = quota.value.clone();
        // Other resources keep the use that was last counted.
        for (name, amount) in amounts(&quota.value["status"]["used"]) {
            if !covers(call, &name) {
                used.insert(name, amount);
            }
        }
        let text = |amounts: &Amounts| -> Value {
            amounts.iter().map(|(name, amount)| (name.clone(), json!(amount.to_string()))).collect()
        };
        next["status"] = json!({"hard": text(&limits), "used": text(&used)});
        if next["status"] != quota.value["status"] {
            // A concurrent write of the quota comes first: the next object counts again.
            drop(core.store.put(QUOTAS, key, Some(quota), next));
        }
    }
}

/// Returns the amounts of a map of quantities.
fn amounts(map: &Value) -> Amounts {
    let fields = map.as_object().into_iter().flatten();
    fields.filter_map(|(name, value)| Some((name.clone(), Quantity::parse(value)?))).collect()
}

/// Whether objects of the call's kind count for a resource.
fn covers(call: &Call, name: &str) -> bool {
    let of_pods =
        ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
    counted(call).iter().any(|own| own == name)
        || call.kind.is("", "pods") && of_pods.contains(&name)
        || call.kind.is("", "persistentvolumeclaims") && name == "requests.storage"
}

/// Returns the resources that count objects of the call's kind.
fn counted(call: &Call) -> Vec<String> {
    let served = &call.kind.served;
    let plural = &served.plural;
    if !served.group.is_empty() {
        return vec![format!("count/{plural}.{}", served.group)];
    }
    let mut names = vec![format!("count/{plural}")];
    names.extend(BARE.contains(&plural.as_str()).then(|| plural.clone()));
    names
}

/// Returns what an object uses.
fn use_of(call: &Call, object: &Value) -> Amounts {
    let mut out: Amounts =
        counted(call).into_iter().map(|name| (name, Quantity::whole(1))).collect();
    if call.kind.is("", "persistentvolumeclaims")
        && let Some(size) = Quantity::parse(&object["spec"]["resources"]["requests"]["storage"])
    {
        out.insert("requests.storage".to_owned(), size);
    }
    if call.kind.is("", "pods") {
        for container in object["spec"]["containers"].as_array().into_iter().flatten() {
            for part in ["requests", "limits"] {
                for (name, amount) in amounts(&container["resources"][part]) {
                    let mut add = |name: String| {
                        let sum = out.entry(name).or_default();
                        *sum = *sum + amount;
                    };
                    add(format!("{part}.{name}"));
                    if part == "requests" {
                        add(name);
                    }
                }
            }
        }
    }
    out
}

/// Returns what the stored objects of the call's kind use of limited resources.
fn used(core: &Core, call: &Call, limits: &Amounts) -> Amounts {
    let mut out: Amounts = limits.keys().map(|name| (name.clone(), Quantity::default())).collect();
    let (objects, _) = core.store.snapshot(&call.kind.storage);
    for (_, object) in storage::in_namespace(&objects, &call.namespace) {
        // Pods that have ended use nothing any more.
        let phase = &object.value["status"]["phase"];
        if call.kind.is("", "pods") && (phase == "Succeeded" || phase == "Failed") {
            continue;
        }
        for (name, amount) in use_of(call, &object.value) {
            if let Some(sum) = out.get_mut(&name) {
                *sum = *sum + amount;
            }
        }
    }
    out
}

/// Returns the limited resources that containers of a Pod do not name, with the containers.
fn unspecified(call: &Call, object: &Value, limits: &Amounts) -> Option<String> {
    if !call.kind.is("", "pods") {
        return None;
    }
    let mut missing = Vec::new();
    for name in limits.keys() {
        let (part, resource) = name.split_once('.').unwrap_or(("requests", name));
        if !["cpu", "memory"].contains(&resource) {
            continue;
        }
        let containers = object["spec"]["containers"].as_array().into_iter().flatten();
        let lacking: Vec<&str> = containers
            .filter(|container| container["resources"][part].get(resource).is_none())
            .filter_map(|container| container["name"].as_str())
            .collect();
        if !lacking.is_empty() {
            missing.push(format!("{name} for: {}", lacking.join(",")));
        }
    }
    (!missing.is_empty()).then(|| missing.join("; "))
}

/// Returns the sentence about the resources of which too much would be used.
fn excess(limits: &Amounts, used: &Amounts, added: &Amounts) -> Option<String> {
    let mut parts: [Vec<String>; 3] = Default::default();
    for (name, limit) in limits {
        let (Some(more), Some(held)) = (added.get(name), used.get(name)) else { continue };
        if *held + *more > *limit {
            for (part, amount) in parts.iter_mut().zip([more, held, limit]) {
                part.push(format!("{name}={amount}"));
            }
        }
    }
    let [requested, used, limited] = parts.map(|part| part.join(","));
    (!requested.is_empty())
        .then(|| format!("requested: {requested}, used: {used}, limited: {limited}"))
}
