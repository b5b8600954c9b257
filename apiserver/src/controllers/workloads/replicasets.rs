//! `ReplicaSets`: as many Pods as wanted.

use serde_json::{Value, json};

use super::objects::{self, ObjectEvent, PODS, REPLICASETS};
use super::reconcile::WorkloadReconcile;
use super::{WorkResult, pods};
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::selectors::selects;
use crate::status::ApiError;

/// Type of the condition of a set whose Pods cannot be made.
pub(super) const FAILURE: &str = "ReplicaFailure";

/// Creates and deletes Pods of a `ReplicaSet`, and writes the status.
pub(super) fn sync(reconcile: &WorkloadReconcile<'_>, namespace: &str, name: &str) -> WorkResult {
    let Some(stored) = objects::get(reconcile, REPLICASETS, namespace, name) else {
        return Ok(None);
    };
    let set = &stored.value;
    let all = objects::owned(reconcile, PODS, set);
    let mut active: Vec<Value> = all.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
    let mut failed = None;
    if !meta::terminating(set) {
        failed = scale(reconcile, set, &mut active).err();
    }
    let terminating = all.iter().filter(|pod| meta::terminating(pod) && !pods::is_finished(pod));
    let failure = failure(reconcile, set, &active, failed.as_ref());
    let again = report(reconcile, set, &active, terminating.count(), failure)?;
    failed.map_or(Ok(again), Err)
}

/// Makes the number of active Pods that of the spec.
fn scale(
    reconcile: &WorkloadReconcile<'_>,
    set: &Value,
    active: &mut Vec<Value>,
) -> Result<(), ApiError> {
    let namespace = meta::text(set, "namespace");
    let wanted = usize::try_from(objects::number(set, "replicas", 1)).unwrap_or(0);
    let owner = objects::owner("apps/v1", "ReplicaSet", set);
    let goal = wanted.min(active.len() + pods::BURST);
    while active.len() < goal {
        let mut pod = pods::from_template(&set["spec"]["template"], owner.clone());
        pod["metadata"]["generateName"] = json!(format!("{}-", meta::text(set, "name")));
        let made = pods::create(reconcile, set, event_source("FailedCreate"), namespace, pod)?;
        let text = format!("Created pod: {}", meta::text(&made, "name"));
        objects::record_event(reconcile, set, event_source("SuccessfulCreate"), &text);
        active.push(made);
    }
    if active.len() > wanted {
        active.sort_by_key(pods::deletion_rank);
        let surplus = (active.len() - wanted).min(pods::BURST);
        for pod in active.drain(..surplus) {
            objects::remove(reconcile, PODS, &pod, None)?;
            let text = format!("Deleted pod: {}", meta::text(&pod, "name"));
            objects::record_event(reconcile, set, event_source("SuccessfulDelete"), &text);
        }
    }
    Ok(())
}

/// Returns an Event of the controller without its text.
fn event_source(reason: &str) -> ObjectEvent<'_> {
    let (from, api_version) = ("replicaset-controller", "apps/v1");
    ObjectEvent { from, api_version, kind: "ReplicaSet", level: "Normal", reason }
}

/// Returns the condition of a set whose Pods cannot be created or deleted. The first text stays
/// until there is no failure any more, and while webhooks are asked.
fn failure(
    reconcile: &WorkloadReconcile<'_>,
    set: &Value,
    active: &[Value],
    failed: Option<&ApiError>,
) -> Option<Value> {
    let current = objects::condition(set, FAILURE);
    if reconcile.is_waiting() || current.is_some() && failed.is_some() {
        return current.cloned();
    }
    let wanted = usize::try_from(objects::number(set, "replicas", 1)).unwrap_or(0);
    let reason = if active.len() > wanted { "FailedDelete" } else { "FailedCreate" };
    failed.map(|error| {
        json!({
            "type": FAILURE, "status": "True", "reason": reason, "message": error.message(),
            "lastTransitionTime": reconcile.clock.rfc3339(),
        })
    })
}

/// Writes the status; returns when a Pod becomes available next.
fn report(
    core: &ServerCore,
    set: &Value,
    active: &[Value],
    terminating: usize,
    failure: Option<Value>,
) -> WorkResult {
    let (now, wait) = (core.clock.seconds(), objects::number(set, "minReadySeconds", 0));
    let labels = json!({"matchLabels": set["spec"]["template"]["metadata"]["labels"]});
    let mut status = json!({
        "replicas": active.len(), "observedGeneration": meta::generation(set),
        "terminatingReplicas": terminating,
    });
    let count = |is: &dyn Fn(&Value) -> bool| active.iter().filter(|pod| is(pod)).count();
    let full = count(&|pod| selects(&labels, pod));
    objects::set_count(&mut status, "fullyLabeledReplicas", full);
    objects::set_count(&mut status, "readyReplicas", count(&pods::is_ready));
    let available = count(&|pod| pods::is_available(pod, wait, now));
    objects::set_count(&mut status, "availableReplicas", available);
    if let Some(failure) = failure {
        status["conditions"] = json!([failure]);
    }
    objects::set_status(core, REPLICASETS, set, &status)?;
    Ok(pods::next_available(active, wait, now))
}
