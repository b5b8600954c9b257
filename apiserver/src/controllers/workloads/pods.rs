//! Pods from templates, and the meaning of their status.

use serde_json::{Value, json};

use super::objects::{self, ObjectEvent};
use super::reconcile::WorkloadReconcile;
use crate::clock;
use crate::kinds::meta;
use crate::status::ApiError;

/// Most Pods that one pass over an owner makes or deletes, as upstream's controllers; the events of
/// these lead to the next pass, and other owners come in between. Less in tests, which exceed
/// this number.
pub(super) const BURST: usize = if cfg!(test) { 20 } else { 500 };

/// Returns a Pod from a template: with labels, annotations and finalizers, and an owner.
pub(super) fn from_template(template: &Value, owner: Value) -> Value {
    let given = &template["metadata"];
    let mut metadata = json!({"ownerReferences": owner});
    for field in ["labels", "annotations", "finalizers"] {
        if given[field].as_object().is_some_and(|all| !all.is_empty()) || given[field].is_array() {
            metadata[field] = given[field].clone();
        }
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
}

/// Creates a Pod of an owner; a failure is an event about the owner.
pub(super) fn create(
    reconcile: &WorkloadReconcile<'_>,
    owner: &Value,
    event: ObjectEvent<'_>,
    namespace: &str,
    pod: Value,
) -> Result<Value, ApiError> {
    reconcile.create(objects::PODS, namespace, pod).inspect_err(|error| {
        let text = format!("Error creating: {}", error.message());
        reconcile.record_failure(owner, event, error, &text);
    })
}

/// Whether a Pod has ended.
pub(super) fn is_finished(pod: &Value) -> bool {
    pod["status"]["phase"] == "Succeeded" || pod["status"]["phase"] == "Failed"
}

/// Whether a Pod has neither ended nor is about to go.
pub(super) fn is_active(pod: &Value) -> bool {
    !is_finished(pod) && !meta::terminating(pod)
}

/// Whether a Pod is ready.
pub(super) fn is_ready(pod: &Value) -> bool {
    objects::condition(pod, "Ready").is_some_and(|one| one["status"] == "True")
}

/// Whether a Pod has been ready for as long as the owner demands.
pub(super) fn is_available(pod: &Value, seconds: i64, now: i64) -> bool {
    available_at(pod, seconds).is_some_and(|at| at <= now)
}

/// Returns the time from which on a ready Pod is available.
pub(super) fn available_at(pod: &Value, seconds: i64) -> Option<i64> {
    let ready = objects::condition(pod, "Ready").filter(|one| one["status"] == "True")?;
    let since = ready["lastTransitionTime"].as_str().and_then(clock::parse).unwrap_or(0);
    Some(since + seconds)
}

/// Returns the next time at which any of some ready Pods becomes available.
pub(super) fn next_available<'a>(
    pods: impl IntoIterator<Item = &'a Value>,
    seconds: i64,
    now: i64,
) -> Option<i64> {
    let times = pods.into_iter().filter_map(|pod| available_at(pod, seconds));
    times.filter(|at| *at > now).min()
}

/// Returns the rank by which Pods are deleted first: those that are not placed, not ready, and
/// younger.
pub(super) fn deletion_rank(pod: &Value) -> (bool, bool, std::cmp::Reverse<String>) {
    let placed = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let made = meta::text(pod, "creationTimestamp").to_owned();
    (placed, is_ready(pod), std::cmp::Reverse(made))
}
