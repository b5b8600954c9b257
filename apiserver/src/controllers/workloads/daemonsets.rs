//! `DaemonSets`: a Pod on each node.

use serde_json::{Value, json};

use super::objects::{self, DAEMONSETS, NODES, ObjectEvent, PODS};
use super::reconcile::WorkloadReconcile;
use super::revisions::{self, HASH};
use super::{WorkResult, pods};
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::status::ApiError;

/// Taints that the Pods of every `DaemonSet` tolerate: key and effect.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// Creates and deletes Pods of a `DaemonSet`, and writes the status.
pub(super) fn sync(reconcile: &WorkloadReconcile<'_>, namespace: &str, name: &str) -> WorkResult {
    let Some(stored) = objects::get(reconcile, DAEMONSETS, namespace, name) else {
        return Ok(None);
    };
    let set = &stored.value;
    if meta::terminating(set) {
        return Ok(None);
    }
    let nodes: Vec<String> = objects::list(reconcile, NODES, "")
        .iter()
        .filter(|node| suits(set, &node.value))
        .map(|node| meta::text(&node.value, "name").to_owned())
        .collect();
    revisions::record(reconcile, "DaemonSet", set)?;
    let failed = place(reconcile, set, &nodes).err();
    let again = report(reconcile, set, &nodes)?;
    let owned = objects::owned(reconcile, PODS, set);
    let used = owned.iter().filter_map(|pod| pod["metadata"]["labels"][HASH].as_str());
    revisions::prune(reconcile, set, &used.collect())?;
    failed.map_or(Ok(again), Err)
}

/// Whether Pods of a `DaemonSet` run on a node: by the node selector of the template.
fn suits(set: &Value, node: &Value) -> bool {
    let selector = set["spec"]["template"]["spec"]["nodeSelector"].as_object();
    let labels = &node["metadata"]["labels"];
    selector.into_iter().flatten().all(|(key, value)| labels[key] == *value)
}

/// Returns the node that a Pod is on, or is meant for.
pub(super) fn node_of(pod: &Value) -> &str {
    let node = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty());
    node.or_else(|| target(pod)).unwrap_or_default()
}

/// Returns the only node whose name the affinity of a Pod allows.
pub(super) fn target(pod: &Value) -> Option<&str> {
    let affinity = &pod["spec"]["affinity"]["nodeAffinity"];
    let terms = &affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    let field =
        terms[0]["matchFields"].as_array()?.iter().find(|it| it["key"] == "metadata.name")?;
    field["values"][0].as_str()
}

/// Creates the missing Pods, and deletes those that have failed, are too many, or of an old
/// template.
fn place(reconcile: &WorkloadReconcile<'_>, set: &Value, nodes: &[String]) -> Result<(), ApiError> {
    let owned = objects::owned(reconcile, PODS, set);
    let hash = objects::hash(&set["spec"]["template"]);
    for node in nodes {
        let mut on_node = owned.iter().filter(|pod| node_of(pod) == node);
        match on_node.next() {
            None => create(reconcile, set, node, &hash)?,
            Some(pod) if pods::is_finished(pod) && !meta::terminating(pod) => {
                delete(reconcile, set, pod)?;
            }
            Some(_) => {}
        }
        for pod in on_node {
            delete(reconcile, set, pod)?;
        }
    }
    for pod in owned.iter().filter(|pod| !nodes.iter().any(|node| node_of(pod) == node)) {
        delete(reconcile, set, pod)?;
    }
    if set["spec"]["updateStrategy"]["type"] == "OnDelete" {
        return Ok(());
    }
    // One at a time: the next Pod waits until all others are ready.
    let is_old = |pod: &&Value| pod["metadata"]["labels"][HASH] != hash.as_str();
    let unready = owned.iter().filter(|pod| !pods::is_ready(pod) || meta::terminating(pod));
    match (owned.iter().find(is_old), unready.count()) {
        (Some(pod), 0) if owned.len() >= nodes.len() => delete(reconcile, set, pod),
        _ => match owned.iter().find(|pod| is_old(pod) && !pods::is_ready(pod)) {
            Some(pod) => delete(reconcile, set, pod),
            None => Ok(()),
        },
    }
}

/// Deletes a Pod.
fn delete(core: &ServerCore, set: &Value, pod: &Value) -> Result<(), ApiError> {
    if meta::terminating(pod) {
        return Ok(());
    }
    objects::remove(core, PODS, pod, None)?;
    let text = format!("Deleted pod: {}", meta::text(pod, "name"));
    objects::record_event(core, set, event_source("SuccessfulDelete"), &text);
    Ok(())
}

/// Creates the Pod of a node, which the scheduler may place only there.
fn create(
    reconcile: &WorkloadReconcile<'_>,
    set: &Value,
    node: &str,
    hash: &str,
) -> Result<(), ApiError> {
    let template = &set["spec"]["template"];
    let mut pod = pods::from_template(template, objects::owner("apps/v1", "DaemonSet", set));
    let metadata = &mut pod["metadata"];
    metadata["generateName"] = json!(format!("{}-", meta::text(set, "name")));
    metadata["labels"][HASH] = json!(hash);
    let generation = &set["metadata"]["annotations"]["deprecated.daemonset.template.generation"];
    if generation.is_string() {
        metadata["labels"]["pod-template-generation"] = generation.clone();
    }
    let spec = &mut pod["spec"];
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!({
        "nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [node]}]}]});
    let mut tolerations = objects::items(spec, "tolerations").to_vec();
    tolerations.extend(
        TOLERATED
            .iter()
            .map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect})),
    );
    spec["tolerations"] = json!(tolerations);
    let made = pods::create(
        reconcile,
        set,
        event_source("FailedCreate"),
        meta::text(set, "namespace"),
        pod,
    )?;
    let text = format!("Created pod: {}", meta::text(&made, "name"));
    objects::record_event(reconcile, set, event_source("SuccessfulCreate"), &text);
    Ok(())
}

/// Returns an Event of the controller without its text.
fn event_source(reason: &str) -> ObjectEvent<'_> {
    let (from, api_version) = ("daemonset-controller", "apps/v1");
    ObjectEvent { from, api_version, kind: "DaemonSet", level: "Normal", reason }
}

/// Writes the status; returns when a Pod becomes available next.
fn report(core: &ServerCore, set: &Value, nodes: &[String]) -> WorkResult {
    let (now, wait) = (core.clock.seconds(), objects::number(set, "minReadySeconds", 0));
    let hash = objects::hash(&set["spec"]["template"]);
    let owned = objects::owned(core, PODS, set);
    let placed: Vec<&Value> =
        nodes.iter().filter_map(|node| owned.iter().find(|pod| node_of(pod) == node)).collect();
    let count = |is: &dyn Fn(&Value) -> bool| placed.iter().filter(|pod| is(pod)).count();
    let available = count(&|pod| pods::is_available(pod, wait, now));
    let mut status = json!({
        "currentNumberScheduled": placed.len(), "desiredNumberScheduled": nodes.len(),
        "numberMisscheduled": owned.iter().filter(|pod| !nodes.iter().any(|node| node_of(pod) == node)).count(),
        "numberReady": count(&pods::is_ready), "observedGeneration": meta::generation(set),
    });
    let updated = count(&|pod| pod["metadata"]["labels"][HASH] == hash.as_str());
    objects::set_count(&mut status, "updatedNumberScheduled", updated);
    objects::set_count(&mut status, "numberAvailable", available);
    objects::set_count(&mut status, "numberUnavailable", nodes.len() - available);
    objects::set_status(core, DAEMONSETS, set, &status)?;
    Ok(pods::next_available(placed, wait, now))
}
