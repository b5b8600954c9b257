//! Deployments: a `ReplicaSet` for each template, scaled as the strategy says.

use serde_json::{Value, json};

use super::WorkResult;
use super::objects::{self, DEPLOYMENTS, ObjectEvent, PODS, REPLICASETS};
use super::reconcile::WorkloadReconcile;
use super::replicasets::FAILURE;
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::status::ApiError;

/// Annotation and label names of upstream.
const REVISION: &str = "deployment.kubernetes.io/revision";
const HASH: &str = "pod-template-hash";

/// Scales the `ReplicaSets` of a Deployment, and writes the status.
pub(super) fn sync(reconcile: &WorkloadReconcile<'_>, namespace: &str, name: &str) -> WorkResult {
    let Some(stored) = objects::get(reconcile, DEPLOYMENTS, namespace, name) else {
        return Ok(None);
    };
    let deployment = &stored.value;
    if meta::terminating(deployment) {
        return Ok(None);
    }
    let sets = objects::owned(reconcile, REPLICASETS, deployment);
    let (new, old): (Vec<Value>, Vec<Value>) =
        sets.into_iter().partition(|set| has_template(set, &deployment["spec"]["template"]));
    let is_paused = deployment["spec"]["paused"] == true;
    let old_are_gone =
        old.iter().all(|set| replicas(set) == 0 && unfinished_pods(reconcile, set) == 0);
    let recreates = recreates(deployment);
    let new = match new.into_iter().next() {
        Some(set) => Some(set),
        // A new template waits for the Pods of the old template, unless both may run side by side.
        None if !is_paused && (!recreates || old_are_gone) => {
            Some(create(reconcile, deployment, &old)?)
        }
        None => None,
    };
    if !is_paused {
        match &new {
            Some(new) if !recreates => roll(reconcile, deployment, new, &old)?,
            Some(new) if old_are_gone => scale(reconcile, deployment, new, wanted(deployment))?,
            // `Recreate` with old Pods left: the old `ReplicaSets` are scaled to 0 first.
            _ => {
                for set in &old {
                    scale(reconcile, deployment, set, 0)?;
                }
            }
        }
    }
    report(reconcile, deployment, new.as_ref(), &old)
}

/// Whether old Pods end before new ones begin.
fn recreates(deployment: &Value) -> bool {
    deployment["spec"]["strategy"]["type"] == "Recreate"
}

/// Returns the wanted number of Pods.
fn wanted(deployment: &Value) -> i64 {
    objects::number(deployment, "replicas", 1)
}

/// Returns the number of Pods that a `ReplicaSet` is to have.
fn replicas(set: &Value) -> i64 {
    objects::number(set, "replicas", 1)
}

/// Returns the number of Pods of a `ReplicaSet`; those that have finished do not count.
fn unfinished_pods(core: &ServerCore, set: &Value) -> usize {
    objects::owned(core, PODS, set).iter().filter(|pod| !super::pods::is_finished(pod)).count()
}

/// Returns a number of a `ReplicaSet`'s status, such as `readyReplicas`; 0 if absent.
fn count(set: &Value, field: &str) -> i64 {
    set["status"][field].as_i64().unwrap_or(0)
}

/// Whether the template of a `ReplicaSet` equals `template`, the hash label ignored.
fn has_template(set: &Value, template: &Value) -> bool {
    let mut own = set["spec"]["template"].clone();
    if let Some(labels) = own["metadata"]["labels"].as_object_mut() {
        labels.remove(HASH);
    }
    own == *template
}

/// Returns `maxSurge` and `maxUnavailable` as numbers of Pods: of a percentage the first is rounded
/// up, the second down. Both are 0 for the strategy `Recreate`, which has no such fields.
fn limits(deployment: &Value) -> (i64, i64) {
    if recreates(deployment) {
        return (0, 0);
    }
    let strategy = &deployment["spec"]["strategy"]["rollingUpdate"];
    let wanted = wanted(deployment);
    let read = |field: &str, rounds_up: bool| match &strategy[field] {
        Value::String(text) => {
            let percent = text.trim_end_matches('%').parse::<i64>().unwrap_or(0);
            (wanted * percent + if rounds_up { 99 } else { 0 }) / 100
        }
        other => other.as_i64().unwrap_or(0),
    };
    let (surge, unavailable) = (read("maxSurge", true), read("maxUnavailable", false));
    // With both at 0 no Pod could be replaced; upstream uses 1.
    (surge, if surge == 0 && unavailable == 0 { 1 } else { unavailable }.min(wanted))
}

/// Creates the `ReplicaSet` of the current template.
fn create(
    reconcile: &WorkloadReconcile<'_>,
    deployment: &Value,
    old: &[Value],
) -> Result<Value, ApiError> {
    let (namespace, name) = (meta::text(deployment, "namespace"), meta::text(deployment, "name"));
    let hash = objects::hash(&deployment["spec"]["template"]);
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][HASH] = json!(hash);
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][HASH] = json!(hash);
    let (surge, _) = limits(deployment);
    // While old Pods exist, the new `ReplicaSet` begins with only as many Pods as `maxSurge`
    // permits.
    let total: i64 = old.iter().map(replicas).sum();
    let first = (wanted(deployment) + surge - total).clamp(0, wanted(deployment));
    let revision = old.iter().map(revision).max().unwrap_or(0) + 1;
    let mut spec = json!({"replicas": first, "selector": selector, "template": template});
    if let Some(seconds) = deployment["spec"]["minReadySeconds"].as_i64().filter(|it| *it > 0) {
        spec["minReadySeconds"] = json!(seconds);
    }
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{name}-{hash}"), "labels": template["metadata"]["labels"],
            "annotations": {
                REVISION: revision.to_string(),
                "deployment.kubernetes.io/desired-replicas": wanted(deployment).to_string(),
                "deployment.kubernetes.io/max-replicas": (wanted(deployment) + surge).to_string(),
            },
            "ownerReferences": objects::owner("apps/v1", "Deployment", deployment),
        },
        "spec": spec,
    });
    let made = reconcile.create(REPLICASETS, namespace, set);
    let made = made.inspect_err(|error| {
        report_failed_create(reconcile, deployment, &format!("{name}-{hash}"), error)
    })?;
    // Through the subresource: an update of the Deployment itself raises `generation` when
    // annotations change.
    objects::change(reconcile, DEPLOYMENTS, deployment, "status", |next| {
        meta::of(next).entry("annotations").or_insert_with(|| json!({}))[REVISION] =
            json!(revision.to_string());
    })?;
    if first > 0 {
        record_scaled(reconcile, deployment, &made, 0, first);
    }
    Ok(made)
}

/// Writes an Event and the condition `Progressing` about a `ReplicaSet` that could not be created.
fn report_failed_create(
    reconcile: &WorkloadReconcile<'_>,
    deployment: &Value,
    name: &str,
    error: &ApiError,
) {
    // The creation waits for a webhook's answer; it has not failed, and the next reconcile repeats
    // it.
    if reconcile.is_waiting() {
        return;
    }
    let text = format!("Failed to create new replica set {name:?}: {}", error.message());
    reconcile.record_failure(deployment, event_source("ReplicaSetCreateError"), error, &text);
    let reason = ("ReplicaSetCreateError", text);
    let condition = condition(deployment, "Progressing", false, reason, &reconcile.clock.rfc3339());
    let mut status = deployment["status"].clone();
    let mut all = objects::items(&status, "conditions").to_vec();
    all.retain(|one| one["type"] != "Progressing");
    all.push(condition);
    status["conditions"] = json!(all);
    if let Err(error) = objects::set_status(reconcile, DEPLOYMENTS, deployment, &status) {
        tracing::debug!(name, %error, "the failure of a Deployment could not be written");
    }
}

/// Returns the revision of a `ReplicaSet`.
fn revision(set: &Value) -> i64 {
    let text = set["metadata"]["annotations"][REVISION].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Moves Pods from the old `ReplicaSets` to the new `ReplicaSet`, within the limits.
fn roll(core: &ServerCore, deployment: &Value, new: &Value, old: &[Value]) -> Result<(), ApiError> {
    let (surge, max_unavailable) = limits(deployment);
    let wanted = wanted(deployment);
    let total: i64 = old.iter().map(replicas).sum::<i64>() + replicas(new);
    let room = (wanted + surge - total).max(0);
    let next = if replicas(new) > wanted { wanted } else { wanted.min(replicas(new) + room) };
    scale(core, deployment, new, next)?;
    // Pods of the new `ReplicaSet` that are not available yet already count as unavailable. `new`
    // and `total` are from before the call of `scale`.
    let pending = replicas(new) - count(new, "availableReplicas");
    let mut surplus = total - (wanted - max_unavailable) - pending.max(0);
    let mut old: Vec<&Value> = old.iter().collect();
    old.sort_by_key(|set| revision(set));
    for set in old {
        let less = surplus.clamp(0, replicas(set));
        surplus -= less;
        scale(core, deployment, set, replicas(set) - less)?;
    }
    Ok(())
}

/// Sets the number of a `ReplicaSet`'s Pods, with an Event if the number changes.
fn scale(core: &ServerCore, deployment: &Value, set: &Value, to: i64) -> Result<(), ApiError> {
    let from = replicas(set);
    if from == to {
        return Ok(());
    }
    objects::change(core, REPLICASETS, set, "", |next| next["spec"]["replicas"] = json!(to))?;
    record_scaled(core, deployment, set, from, to);
    Ok(())
}

/// Writes the Event about a scaled `ReplicaSet`.
fn record_scaled(core: &ServerCore, deployment: &Value, set: &Value, from: i64, to: i64) {
    let direction = if to > from { "up" } else { "down" };
    let name = meta::text(set, "name");
    let text = format!("Scaled {direction} replica set {name} from {from} to {to}");
    objects::record_event(core, deployment, event_source("ScalingReplicaSet"), &text);
}

/// Returns an Event of the controller without a message; `record_failure` makes it a Warning.
fn event_source(reason: &str) -> ObjectEvent<'_> {
    let (from, api_version) = ("deployment-controller", "apps/v1");
    ObjectEvent { from, api_version, kind: "Deployment", level: "Normal", reason }
}

/// Returns the condition of a Deployment whose new `ReplicaSet`, or else an old `ReplicaSet`,
/// cannot make Pods.
fn failure(new: Option<&Value>, old: &[Value]) -> Option<Value> {
    let mut all = new.into_iter().chain(old).filter_map(|set| objects::condition(set, FAILURE));
    let mut failure = all.next()?.clone();
    failure["lastUpdateTime"] = failure["lastTransitionTime"].clone();
    Some(failure)
}

/// Writes the status.
fn report(core: &ServerCore, deployment: &Value, new: Option<&Value>, old: &[Value]) -> WorkResult {
    let sum = |field: &str| -> i64 { old.iter().chain(new).map(|set| count(set, field)).sum() };
    let updated = new.map_or(0, |set| count(set, "replicas"));
    let (total, available) = (sum("replicas"), sum("availableReplicas"));
    let wanted = wanted(deployment);
    let mut status = json!({
        "observedGeneration": meta::generation(deployment),
        "terminatingReplicas": sum("terminatingReplicas"),
    });
    let size = |number: i64| usize::try_from(number).unwrap_or(0);
    for (field, number) in [
        ("replicas", total),
        ("updatedReplicas", updated),
        ("readyReplicas", sum("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", total.max(wanted) - available),
    ] {
        objects::set_count(&mut status, field, size(number));
    }
    let is_available = available >= wanted - limits(deployment).1;
    let is_complete = updated == wanted && total == wanted && available >= wanted;
    let set = new.map_or("", |set| meta::text(set, "name"));
    let now = core.clock.rfc3339();
    status["conditions"] = json!([
        condition(
            deployment,
            "Available",
            is_available,
            if is_available {
                ("MinimumReplicasAvailable", "Deployment has minimum availability.".to_owned())
            } else {
                (
                    "MinimumReplicasUnavailable",
                    "Deployment does not have minimum availability.".to_owned(),
                )
            },
            &now
        ),
        condition(
            deployment,
            "Progressing",
            true,
            if is_complete {
                let text = format!("ReplicaSet {set:?} has successfully progressed.");
                ("NewReplicaSetAvailable", text)
            } else {
                ("ReplicaSetUpdated", format!("ReplicaSet {set:?} is progressing."))
            },
            &now
        ),
    ]);
    if let (Some(failure), Some(all)) = (failure(new, old), status["conditions"].as_array_mut()) {
        all.push(failure);
    }
    objects::set_status(core, DEPLOYMENTS, deployment, &status)?;
    Ok(None)
}

/// Returns a condition. `lastTransitionTime` is kept while the status stays the same,
/// `lastUpdateTime` while reason and message stay the same as well.
fn condition(
    deployment: &Value,
    name: &str,
    is_true: bool,
    (reason, message): (&str, String),
    now: &str,
) -> Value {
    let status = if is_true { "True" } else { "False" };
    let current =
        objects::condition(deployment, name).filter(|current| current["status"] == status);
    let same =
        current.filter(|current| current["reason"] == reason && current["message"] == message);
    let time = |current: Option<&Value>, field: &str| {
        current.and_then(|current| current[field].as_str()).unwrap_or(now).to_owned()
    };
    json!({
        "type": name, "status": status, "reason": reason, "message": message,
        "lastUpdateTime": time(same, "lastUpdateTime"),
        "lastTransitionTime": time(current, "lastTransitionTime"),
    })
}
