//! `ResourceQuota`s: limits on the content of a namespace.
//!
//! The use of a namespace is counted from its stored objects for each new object, so deletions free
//! their share at once. Changes that may use more are counted: of Services, claims, and
//! the resources of Pods. Without `resourcequota-controller` nothing is counted: a quota limits by
//! the limits and the use in its status, to which each write adds its own.

mod scopes;
#[cfg(test)]
mod tests;
mod usage;

use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;
use serde_json::{Value, json};

use crate::apply;
use crate::core::ServerCore;
use crate::status::{ApiError, FailureSubject};
use crate::storage;
use crate::typed::TypeSchema;
use crate::verbs::VerbCall;
use usage::{Amounts, amounts};

/// Name under which the server writes the use.
const MANAGER: &str = "kube-apiserver";
/// Resource of quotas in the store.
const QUOTAS: &str = "resourcequotas";

/// Whether quotas can count the objects of a call.
fn is_counted(call: &VerbCall) -> bool {
    call.kind.served.namespaced && !call.kind.is("", "events")
}

/// Returns the lock under which an object of a namespace with quotas is counted and stored; `None`
/// in a namespace without quotas.
///
/// The caller holds the lock until the object is stored: otherwise two requests could each find
/// room for an object, and both use that room.
pub(crate) fn lock<'c>(core: &'c ServerCore, call: &VerbCall) -> Option<MutexGuard<'c, ()>> {
    let (quotas, _) = core.store.snapshot(QUOTAS);
    let has_quota = storage::in_namespace(&quotas, &call.namespace).next().is_some();
    (is_counted(call) && has_quota).then(|| core.quotas.lock())
}

/// Returns the requests or limits of a Pod, for limits of whole Pods.
pub(crate) fn total(spec: &Value, part: &str) -> Value {
    let sums = usage::total(spec, part);
    sums.into_iter().map(|(name, amount)| (name, json!(amount.to_string()))).collect()
}

/// Whether a change of a kind may use more of what quotas limit.
fn grows(call: &VerbCall) -> bool {
    match call.subresource.as_str() {
        "" => call.kind.is("", "services") || call.kind.is("", "persistentvolumeclaims"),
        "resize" => call.kind.is("", "pods"),
        _ => false,
    }
}

/// Checks that the quotas of the namespace allow a new object, or a change of the `old` one.
pub(crate) fn check(
    core: &ServerCore,
    call: &VerbCall,
    old: Option<&Value>,
    object: &Value,
) -> Result<(), ApiError> {
    if !is_counted(call) || old.is_some() && !grows(call) {
        return Ok(());
    }
    let (quotas, _) = core.store.snapshot(QUOTAS);
    let mut held = storage::in_namespace(&quotas, &call.namespace).peekable();
    if held.peek().is_none() {
        return Ok(());
    }
    let added = added(core, call, old, object);
    for (_, quota) in held {
        let spec = &quota.value["spec"];
        if !scopes::cover(&call.kind, spec, object) {
            continue;
        }
        let limits = limits(core, &quota.value);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let about = FailureSubject::resource(&call.kind.served, name);
        let quota_name = quota.value["metadata"]["name"].as_str().unwrap_or_default();
        if let Some(missing) = usage::unspecified(call, object, &limits) {
            let why = format!("failed quota: {quota_name}: must specify {missing}");
            return Err(ApiError::forbidden(about, &why));
        }
        let used = used(core, call, &quota.value, &limits);
        if let Some(unknown) = uncounted(call, &limits, &used) {
            let why = format!("status unknown for quota: {quota_name}, resources: {unknown}");
            return Err(ApiError::forbidden(about, &why));
        }
        if let Some(excess) = excess(&limits, &used, &added) {
            let why = format!("exceeded quota: {quota_name}, {excess}");
            return Err(ApiError::forbidden(about, &why));
        }
    }
    Ok(())
}

/// Returns the usage that a new object adds, or a change of the `old` one.
fn added(core: &ServerCore, call: &VerbCall, old: Option<&Value>, object: &Value) -> Amounts {
    let now = core.clock.seconds();
    let mut added = usage::of(call, object, now);
    for (name, amount) in old.map(|old| usage::of(call, old, now)).into_iter().flatten() {
        added.entry(name).and_modify(|more| *more = more.minus(amount));
    }
    added
}

/// Whether the use is counted from the stored objects.
fn is_counting(core: &ServerCore) -> bool {
    core.counts_quotas.load(Ordering::Relaxed)
}

/// Returns the limits that are in force.
fn limits(core: &ServerCore, quota: &Value) -> Amounts {
    amounts(if is_counting(core) { &quota["spec"]["hard"] } else { &quota["status"]["hard"] })
}

/// Returns the names of the call's resources that are limited and have not been counted
/// yet.
fn uncounted(call: &VerbCall, limits: &Amounts, used: &Amounts) -> Option<String> {
    let unknown = |name: &&String| usage::covers(call, name) && !used.contains_key(*name);
    let unknown: Vec<&str> = limits.keys().filter(unknown).map(String::as_str).collect();
    (!unknown.is_empty()).then(|| unknown.join(","))
}

/// Writes the use of a namespace to the status of all quotas, after an object has been stored.
pub(crate) fn record(core: &ServerCore, call: &VerbCall, old: Option<&Value>, object: &Value) {
    if !is_counted(call) || old.is_some() && (is_counting(core) || !grows(call)) {
        return;
    }
    let (quotas, _) = core.store.snapshot(QUOTAS);
    for (key, quota) in storage::in_namespace(&quotas, &call.namespace) {
        let limits = limits(core, &quota.value);
        if !limits.keys().any(|name| usage::covers(call, name)) {
            continue;
        }
        let mut used = used(core, call, &quota.value, &limits);
        if !is_counting(core) && scopes::cover(&call.kind, &quota.value["spec"], object) {
            for (name, amount) in added(core, call, old, object) {
                used.entry(name).and_modify(|sum| *sum = *sum + amount);
            }
        }
        let mut next = quota.value.clone();
        // Other resources keep the use that was last counted.
        for (name, amount) in amounts(&quota.value["status"]["used"]) {
            if !usage::covers(call, &name) {
                used.insert(name, amount);
            }
        }
        let text = |amounts: &Amounts| -> Value {
            amounts.iter().map(|(name, amount)| (name.clone(), json!(amount.to_string()))).collect()
        };
        next["status"] = json!({"hard": text(&limits), "used": text(&used)});
        if next["status"] != quota.value["status"] {
            let types = TypeSchema::builtin("v1", "ResourceQuota");
            if let Some(types) = types {
                let now = core.clock.rfc3339();
                let (before, part) = (Some(&quota.value), Some("status"));
                next = apply::track_update(&types, before, &next, MANAGER, "v1", part, &now);
            }
            // A concurrent write of the quota comes first: the next object counts again.
            drop(core.store.put(QUOTAS, key, Some(quota), next));
        }
    }
}

/// Returns the use of a quota's limited resources: by the stored objects of the call's kind, or, if
/// nothing counts them, as the status has it.
fn used(core: &ServerCore, call: &VerbCall, quota: &Value, limits: &Amounts) -> Amounts {
    if !is_counting(core) {
        let mut used = amounts(&quota["status"]["used"]);
        used.retain(|name, _| limits.contains_key(name));
        return used;
    }
    let spec = &quota["spec"];
    let mut out: Amounts = limits.keys().map(|name| (name.clone(), Default::default())).collect();
    let (objects, _) = core.store.snapshot(&call.kind.storage);
    for (_, object) in storage::in_namespace(&objects, &call.namespace) {
        if !scopes::cover(&call.kind, spec, &object.value) {
            continue;
        }
        for (name, amount) in usage::of(call, &object.value, core.clock.seconds()) {
            if let Some(sum) = out.get_mut(&name) {
                *sum = *sum + amount;
            }
        }
    }
    out
}

/// Returns the sentence about the resources of which too much would be used.
fn excess(limits: &Amounts, used: &Amounts, added: &Amounts) -> Option<String> {
    let mut parts: [Vec<String>; 3] = Default::default();
    for (name, limit) in limits {
        let (Some(more), Some(held)) = (added.get(name), used.get(name)) else { continue };
        if *held + *more > *limit && !more.is_zero() && !more.is_negative() {
            for (part, amount) in parts.iter_mut().zip([more, held, limit]) {
                part.push(format!("{name}={amount}"));
            }
        }
    }
    let [requested, used, limited] = parts.map(|part| part.join(","));
    (!requested.is_empty())
        .then(|| format!("requested: {requested}, used: {used}, limited: {limited}"))
}
