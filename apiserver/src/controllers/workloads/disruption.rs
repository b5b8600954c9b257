//! Disruption budgets: how many of their Pods may go.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::objects::{self, BUDGETS, DEPLOYMENTS, PODS, REPLICASETS, Resource, STATEFULSETS};
use super::{WorkResult, pods};
use crate::clock;
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::selectors::selects;
use crate::storage::{self, StoredObject};

/// Seconds in which an evicted Pod has to go: until then the Pod counts as gone.
const TIMEOUT: i64 = 120;

/// Returns the names of the budgets that count any of the states of a Pod.
pub(super) fn budgets_of<'a>(
    core: &ServerCore,
    namespace: &str,
    states: impl Iterator<Item = &'a Arc<StoredObject>> + Clone,
) -> Vec<String> {
    let all = objects::list(core, BUDGETS, namespace).into_iter();
    all.filter(|stored| states.clone().any(|state| counts(&stored.value, &state.value)))
        .map(|stored| meta::text(&stored.value, "name").to_owned())
        .collect()
}

/// Whether a budget counts a Pod.
fn counts(budget: &Value, pod: &Value) -> bool {
    let selector = &budget["spec"]["selector"];
    selector.is_object() && selects(selector, pod)
}

/// Writes the status of a budget; returns when an evicted Pod that is still there counts again.
pub(super) fn sync(core: &ServerCore, namespace: &str, name: &str) -> WorkResult {
    let Some(stored) = objects::get(core, BUDGETS, namespace, name) else { return Ok(None) };
    let budget = &stored.value;
    let all = objects::list(core, PODS, namespace).into_iter();
    let own: Vec<Arc<StoredObject>> = all.filter(|pod| counts(budget, &pod.value)).collect();
    let own: Vec<&Value> = own.iter().map(|pod| &pod.value).collect();
    let now = core.clock.seconds();
    let (disrupted, again) = disrupted(budget, &own, now);
    let mut status = match expected(core, budget, &own) {
        Ok((expected, desired)) => {
            let healthy = own.iter().filter(|pod| {
                !meta::terminating(pod)
                    && pods::is_ready(pod)
                    && !disrupted.contains_key(meta::text(pod, "name"))
            });
            let healthy = i64::try_from(healthy.count()).unwrap_or(i64::MAX);
            // Without expected Pods none may go: the first Pods may be about to come.
            let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
            json!({
                "expectedPods": expected, "desiredHealthy": desired, "currentHealthy": healthy,
                "disruptionsAllowed": allowed, "observedGeneration": meta::generation(budget),
            })
        }
        Err(why) => {
            let mut status = budget["status"].clone();
            status["disruptionsAllowed"] = json!(0);
            for field in ["currentHealthy", "desiredHealthy", "expectedPods"] {
                if status[field].is_null() {
                    status[field] = json!(0);
                }
            }
            status["conditions"] = conditions(core, budget, &status, Some(&why));
            return objects::set_status(core, BUDGETS, budget, &status).map(|()| again);
        }
    };
    if !disrupted.is_empty() {
        status["disruptedPods"] = json!(disrupted);
    }
    status["conditions"] = conditions(core, budget, &status, None);
    objects::set_status(core, BUDGETS, budget, &status)?;
    Ok(again)
}

/// Returns the evicted Pods that are about to go, with the time of each, and the time at which the
/// first of them counts again.
fn disrupted(budget: &Value, own: &[&Value], now: i64) -> (BTreeMap<String, Value>, Option<i64>) {
    let listed = &budget["status"]["disruptedPods"];
    let mut evicted = BTreeMap::new();
    let mut again: Option<i64> = None;
    for pod in own.iter().filter(|pod| !meta::terminating(pod)) {
        let name = meta::text(pod, "name");
        let Some(since) = listed[name].as_str().and_then(clock::parse) else { continue };
        let end = since.saturating_add(TIMEOUT);
        if end >= now {
            // Counted again in the second after the last.
            again = Some(again.map_or(end + 1, |at| at.min(end + 1)));
            evicted.insert(name.to_owned(), listed[name].clone());
        }
    }
    (evicted, again)
}

/// Returns the number of expected Pods and of those that have to be healthy.
fn expected(core: &ServerCore, budget: &Value, own: &[&Value]) -> Result<(i64, i64), String> {
    let spec = &budget["spec"];
    if !spec["maxUnavailable"].is_null() {
        let expected = scale(core, own)?;
        let most = scaled(&spec["maxUnavailable"], expected);
        return Ok((expected, expected.saturating_sub(most).max(0)));
    }
    if spec["minAvailable"].is_string() {
        let expected = scale(core, own)?;
        return Ok((expected, scaled(&spec["minAvailable"], expected)));
    }
    let expected = i64::try_from(own.len()).unwrap_or(i64::MAX);
    Ok((expected, spec["minAvailable"].as_i64().unwrap_or(0)))
}

/// Returns a number, or a share of a number, rounded up.
fn scaled(value: &Value, of: i64) -> i64 {
    let Some(text) = value.as_str() else { return value.as_i64().unwrap_or(0) };
    let percent = text.trim_end_matches('%').parse::<i64>().unwrap_or(0);
    of.saturating_mul(percent).saturating_add(99) / 100
}

/// Returns the sum of the replicas that the controllers of some Pods want.
fn scale(core: &ServerCore, own: &[&Value]) -> Result<i64, String> {
    let mut scales: BTreeMap<String, i64> = BTreeMap::new();
    for pod in own {
        // Those without a controller are not expected.
        let Some(owner) = objects::controller_of(pod) else { continue };
        let found = controller(core, meta::text(pod, "namespace"), owner);
        let (uid, replicas) = found
            .ok_or_else(|| format!("found no controllers for pod {:?}", meta::text(pod, "name")))?;
        scales.insert(uid, replicas);
    }
    Ok(scales.values().fold(0, |sum: i64, replicas| sum.saturating_add(*replicas)))
}

/// Returns the uid and the replicas of the object that counts for a Pod: for a `ReplicaSet` the
/// Deployment.
fn controller(core: &ServerCore, namespace: &str, owner: &Value) -> Option<(String, i64)> {
    let find = |resource: Resource, owner: &Value| {
        let stored = objects::get(core, resource, namespace, owner["name"].as_str()?)?;
        (stored.value["metadata"]["uid"] == owner["uid"]).then_some(stored)
    };
    let (version, kind) = (owner["apiVersion"].as_str()?, owner["kind"].as_str()?);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let found = match (group, kind) {
        ("apps", "ReplicaSet") => {
            let set = find(REPLICASETS, owner)?;
            let above = objects::controller_of(&set.value);
            let above = above.filter(|above| above["kind"] == "Deployment");
            above.and_then(|above| find(DEPLOYMENTS, above)).unwrap_or(set)
        }
        ("apps", "StatefulSet") => find(STATEFULSETS, owner)?,
        ("", "ReplicationController") => find(("", "replicationcontrollers"), owner)?,
        _ => return custom_scale(core, namespace, owner),
    };
    let replicas = objects::number(&found.value, "replicas", 1);
    Some((meta::text(&found.value, "uid").to_owned(), replicas))
}

/// Returns the uid and the replicas of a custom resource that can be scaled.
fn custom_scale(core: &ServerCore, namespace: &str, owner: &Value) -> Option<(String, i64)> {
    let group = owner["apiVersion"].as_str()?.split_once('/')?.0;
    let kinds = core.registry.table().stored();
    let kind = kinds.into_iter().find(|one| {
        one.served.group == group && owner["kind"] == one.name() && one.custom.is_some()
    })?;
    let path = &kind.custom.as_ref()?.scale.as_ref()?[0];
    let name = owner["name"].as_str()?;
    let stored = core.store.get(&kind.storage, &storage::key(namespace, name))?;
    let own = stored.value["metadata"]["uid"] == owner["uid"];
    let replicas = path.split('.').filter(|field| !field.is_empty());
    let replicas = replicas.fold(&stored.value, |at, field| &at[field]).as_i64().unwrap_or(0);
    own.then(|| (meta::text(&stored.value, "uid").to_owned(), replicas))
}

/// Returns the conditions of a budget; the time stays as long as the status does.
fn conditions(core: &ServerCore, budget: &Value, status: &Value, failed: Option<&str>) -> Value {
    let is_allowed = failed.is_none() && status["disruptionsAllowed"].as_i64().unwrap_or(0) > 0;
    let text = if is_allowed { "True" } else { "False" };
    let reason = match (failed, is_allowed) {
        (Some(_), _) => "SyncFailed",
        (None, true) => "SufficientPods",
        (None, false) => "InsufficientPods",
    };
    let current =
        objects::condition(budget, "DisruptionAllowed").filter(|one| one["status"] == text);
    let since = current.map(|one| one["lastTransitionTime"].clone());
    let mut own = json!({
        "type": "DisruptionAllowed", "status": text, "reason": reason,
        "message": failed.unwrap_or_default(),
        "lastTransitionTime": since.unwrap_or_else(|| json!(core.clock.rfc3339())),
    });
    if status["observedGeneration"].as_i64().unwrap_or(0) > 0 {
        own["observedGeneration"] = status["observedGeneration"].clone();
    }
    let others = objects::items(&budget["status"], "conditions").iter();
    let others = others.filter(|one| one["type"] != "DisruptionAllowed").cloned();
    json!(others.chain([own]).collect::<Vec<Value>>())
}
