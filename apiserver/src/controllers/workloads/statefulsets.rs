//! `StatefulSets`: Pods with ordinals and separate claims, in sequence.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::objects::{self, CLAIMS, ObjectEvent, PODS, REVISIONS, STATEFULSETS};
use super::reconcile::WorkloadReconcile;
use super::revisions::{self, HASH as REVISION};
use super::{WorkResult, pods};
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::status::ApiError;

/// Revisions of the template.
#[derive(Debug)]
struct Revisions {
    /// That of the last finished update.
    current: String,
    /// That of the present template.
    update: String,
}

/// Creates and deletes Pods of a `StatefulSet`, and writes the status.
pub(super) fn sync(reconcile: &WorkloadReconcile<'_>, namespace: &str, name: &str) -> WorkResult {
    let Some(stored) = objects::get(reconcile, STATEFULSETS, namespace, name) else {
        return Ok(None);
    };
    let set = &stored.value;
    if meta::terminating(set) {
        return Ok(None);
    }
    let revisions = revisions(reconcile, set)?;
    let failed = step(reconcile, set, &revisions).err();
    let again = report(reconcile, set, &revisions)?;
    let owned = objects::owned(reconcile, PODS, set);
    let mut used: BTreeSet<&str> =
        owned.iter().filter_map(|pod| pod["metadata"]["labels"][REVISION].as_str()).collect();
    used.extend([revisions.current.as_str(), revisions.update.as_str()]);
    revisions::prune(reconcile, set, &used)?;
    failed.map_or(Ok(again), Err)
}

/// Returns the revisions; a new present revision is stored.
fn revisions(core: &ServerCore, set: &Value) -> Result<Revisions, ApiError> {
    let update = revisions::record(core, "StatefulSet", set)?;
    let current = set["status"]["currentRevision"].as_str().filter(|name| !name.is_empty());
    let current = current.unwrap_or(&update).to_owned();
    Ok(Revisions { current, update })
}

/// Returns the ordinal of a Pod of a `StatefulSet`.
fn ordinal(set: &Value, pod: &Value) -> Option<i64> {
    let rest = meta::text(pod, "name").strip_prefix(meta::text(set, "name"))?;
    rest.strip_prefix('-')?.parse().ok()
}

/// Takes the next step to the wanted Pods. With ordered management the set waits for each Pod.
fn step(
    reconcile: &WorkloadReconcile<'_>,
    set: &Value,
    revisions: &Revisions,
) -> Result<(), ApiError> {
    let is_ordered = set["spec"]["podManagementPolicy"] != "Parallel";
    let now = reconcile.clock.seconds();
    let wait = objects::number(set, "minReadySeconds", 0);
    let start = set["spec"]["ordinals"]["start"].as_i64().unwrap_or(0);
    let wanted = start..start + objects::number(set, "replicas", 1);
    let owned = objects::owned(reconcile, PODS, set);
    let found: BTreeMap<i64, &Value> =
        owned.iter().filter_map(|pod| Some((ordinal(set, pod)?, pod))).collect();
    let mut made = 0;
    for ordinal in wanted.clone() {
        let is_there = match found.get(&ordinal) {
            // The events of those that were made lead to the next reconcile.
            None if made == pods::BURST => return Ok(()),
            None => {
                made += 1;
                create(reconcile, set, ordinal, revisions)?;
                false
            }
            Some(pod) if pods::is_finished(pod) && !meta::terminating(pod) => {
                objects::remove(reconcile, PODS, pod, None)?;
                false
            }
            Some(pod) => !meta::terminating(pod) && pods::is_available(pod, wait, now),
        };
        if !is_there && is_ordered {
            return Ok(());
        }
    }
    let mut surplus: Vec<&Value> = owned.iter().collect();
    surplus.retain(|pod| ordinal(set, pod).is_none_or(|at| !wanted.contains(&at)));
    surplus.sort_by_key(|pod| std::cmp::Reverse(ordinal(set, pod)));
    for pod in surplus {
        delete(reconcile, set, pod)?;
        if is_ordered {
            return Ok(());
        }
    }
    update(reconcile, set, revisions, &owned)
}

/// Replaces a Pod of an older revision, the highest ordinal first.
fn update(
    core: &ServerCore,
    set: &Value,
    revisions: &Revisions,
    owned: &[Value],
) -> Result<(), ApiError> {
    if set["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return Ok(());
    }
    let mut targets: Vec<&Value> = owned.iter().collect();
    targets.retain(|pod| ordinal(set, pod).is_some_and(|at| at >= partition(set)));
    targets.sort_by_key(|pod| std::cmp::Reverse(ordinal(set, pod)));
    for pod in targets {
        if pod["metadata"]["labels"][REVISION] != revisions.update.as_str() {
            return delete(core, set, pod);
        }
        // The next Pod waits for this Pod.
        if meta::terminating(pod) || !pods::is_ready(pod) {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns the ordinal below which Pods keep the current revision.
fn partition(set: &Value) -> i64 {
    set["spec"]["updateStrategy"]["rollingUpdate"]["partition"].as_i64().unwrap_or(0)
}

/// Deletes a Pod.
fn delete(core: &ServerCore, set: &Value, pod: &Value) -> Result<(), ApiError> {
    if meta::terminating(pod) {
        return Ok(());
    }
    objects::remove(core, PODS, pod, None)?;
    let (name, owner) = (meta::text(pod, "name"), meta::text(set, "name"));
    let text = format!("Delete Pod {name} in StatefulSet {owner} successful");
    objects::record_event(core, set, event_source("SuccessfulDelete"), &text);
    Ok(())
}

/// Creates the Pod of an ordinal, and its claims.
fn create(
    reconcile: &WorkloadReconcile<'_>,
    set: &Value,
    at: i64,
    revisions: &Revisions,
) -> Result<(), ApiError> {
    let (namespace, name) = (meta::text(set, "namespace"), meta::text(set, "name"));
    let pod_name = format!("{name}-{at}");
    let is_old = at < partition(set) && revisions.current != revisions.update;
    let old = objects::get(reconcile, REVISIONS, namespace, &revisions.current).filter(|_| is_old);
    let (mut template, revision) = match &old {
        Some(old) => (old.value["data"]["spec"]["template"].clone(), &revisions.current),
        None => (set["spec"]["template"].clone(), &revisions.update),
    };
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    let mut pod = pods::from_template(&template, objects::owner("apps/v1", "StatefulSet", set));
    let metadata = &mut pod["metadata"];
    metadata["name"] = json!(pod_name);
    metadata["generateName"] = json!(format!("{name}-"));
    metadata["labels"]["apps.kubernetes.io/pod-index"] = json!(at.to_string());
    metadata["labels"][REVISION] = json!(revision);
    metadata["labels"]["statefulset.kubernetes.io/pod-name"] = json!(pod_name);
    pod["spec"]["hostname"] = json!(pod_name);
    if let Some(service) = set["spec"]["serviceName"].as_str().filter(|name| !name.is_empty()) {
        pod["spec"]["subdomain"] = json!(service);
    }
    claims(reconcile, set, &pod_name, &mut pod)?;
    reconcile.create(PODS, namespace, pod).inspect_err(|error| {
        let why = error.message();
        let text = format!("create Pod {pod_name} in StatefulSet {name} failed error: {why}");
        reconcile.record_failure(set, event_source("FailedCreate"), error, &text);
    })?;
    let text = format!("Create Pod {pod_name} in StatefulSet {name} successful");
    objects::record_event(reconcile, set, event_source("SuccessfulCreate"), &text);
    Ok(())
}

/// Creates the claims of a Pod, and puts them in the place of the volumes of their names.
fn claims(
    reconcile: &WorkloadReconcile<'_>,
    set: &Value,
    pod_name: &str,
    pod: &mut Value,
) -> Result<(), ApiError> {
    let namespace = meta::text(set, "namespace");
    let mut volumes = objects::items(&pod["spec"], "volumes").to_vec();
    for template in objects::items(&set["spec"], "volumeClaimTemplates") {
        let volume = meta::text(template, "name");
        let name = format!("{volume}-{pod_name}");
        volumes.retain(|other| other["name"] != volume);
        volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": name}}));
        if objects::get(reconcile, CLAIMS, namespace, &name).is_none() {
            create_claim(reconcile, set, template, pod_name, &name)?;
        }
    }
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = json!(volumes);
    }
    Ok(())
}

/// Creates a claim of a Pod.
fn create_claim(
    reconcile: &WorkloadReconcile<'_>,
    set: &Value,
    template: &Value,
    pod_name: &str,
    name: &str,
) -> Result<(), ApiError> {
    let mut metadata = json!({"name": name, "labels": template["metadata"]["labels"]});
    if let Some(annotations) = template["metadata"]["annotations"].as_object() {
        metadata["annotations"] = json!(annotations);
    }
    // All labels of the selector: by them the claims of a set are found.
    for (key, value) in set["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten() {
        metadata["labels"][key] = value.clone();
    }
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": metadata, "spec": template["spec"],
    });
    let about = format!("Claim {name} Pod {pod_name} in StatefulSet {}", meta::text(set, "name"));
    match reconcile.create(CLAIMS, meta::text(set, "namespace"), claim) {
        Err(error) if error.reason() != "AlreadyExists" => {
            let text = format!("create {about} failed error: {}", error.message());
            reconcile.record_failure(set, event_source("FailedCreate"), &error, &text);
            return Err(error);
        }
        _ => {}
    }
    objects::record_event(
        reconcile,
        set,
        event_source("SuccessfulCreate"),
        &format!("Create {about} success"),
    );
    Ok(())
}

/// Returns an Event of the controller without its text.
fn event_source(reason: &str) -> ObjectEvent<'_> {
    let (from, api_version) = ("statefulset-controller", "apps/v1");
    ObjectEvent { from, api_version, kind: "StatefulSet", level: "Normal", reason }
}

/// Writes the status; returns when a Pod becomes available next.
fn report(core: &ServerCore, set: &Value, revisions: &Revisions) -> WorkResult {
    let (now, wait) = (core.clock.seconds(), objects::number(set, "minReadySeconds", 0));
    let owned = objects::owned(core, PODS, set);
    let count = |is: &dyn Fn(&Value) -> bool| owned.iter().filter(|pod| is(pod)).count();
    let of = |revision: &str| {
        let has = |pod: &Value| pod["metadata"]["labels"][REVISION] == revision;
        count(&|pod| has(pod) && !meta::terminating(pod))
    };
    let ready = count(&pods::is_ready);
    let (mut current, updated) = (revisions.current.as_str(), of(&revisions.update));
    let wanted = usize::try_from(objects::number(set, "replicas", 1)).unwrap_or(0);
    if updated == wanted && ready == wanted && owned.len() == wanted {
        current = &revisions.update;
    }
    let mut status = json!({
        "observedGeneration": meta::generation(set), "collisionCount": 0,
        "replicas": owned.len(), "currentRevision": current, "updateRevision": revisions.update,
        "availableReplicas": count(&|pod| pods::is_available(pod, wait, now)),
    });
    objects::set_count(&mut status, "readyReplicas", ready);
    objects::set_count(&mut status, "currentReplicas", of(current));
    objects::set_count(&mut status, "updatedReplicas", updated);
    objects::set_status(core, STATEFULSETS, set, &status)?;
    Ok(pods::next_available(&owned, wait, now))
}
