//! Jobs: Pods until enough have succeeded, or too many have failed.

mod indexes;
mod status;

use serde_json::{Value, json};

use super::objects::{self, JOBS, ObjectEvent, PODS};
use super::reconcile::WorkloadReconcile;
use super::{WorkResult, pods};
use crate::clock;
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::status::ApiError;
use status::PodCounts;

/// Finalizer of Pods that have not been counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// First backoff after a failed Pod, in seconds, doubled by each failure.
const BACKOFF: i64 = 10;
/// Longest backoff, in seconds.
const MAX_BACKOFF: i64 = 600;
/// The value of `spec.managedBy` that stands for the built-in controller.
const CONTROLLER: &str = "kubernetes.io/job-controller";

/// Creates and counts the Pods of a Job, and writes the status.
pub(super) fn sync(reconcile: &WorkloadReconcile<'_>, namespace: &str, name: &str) -> WorkResult {
    let stored = objects::get(reconcile, JOBS, namespace, name);
    let uid = stored.as_ref().map(|stored| meta::text(&stored.value, "uid"));
    release_orphans(reconcile, namespace, name, uid)?;
    let Some(stored) = &stored else { return Ok(None) };
    let job = &stored.value;
    // The other controller counts the Pods, and takes their finalizer away.
    if is_managed_by_another(job) {
        return Ok(None);
    }
    if meta::terminating(job) {
        return release_all(reconcile, job).map(|()| None);
    }
    if status::is_finished(job) {
        release_all(reconcile, job)?;
        return expire(reconcile, job);
    }
    let all = objects::owned(reconcile, PODS, job);
    let now = reconcile.clock.seconds();
    let mut counts = PodCounts::of(job, &all);
    let end = counts.end(job, &all, now);
    let is_suspended = job["spec"]["suspend"] == true;
    // The error is returned last: the status must also record what was done before the failure.
    let mut failed = None;
    let mut next_at = None;
    if end.is_some() || is_suspended {
        // The Pods that still run are deleted, and count as failed, as upstream counts them.
        if end.as_ref().is_some_and(status::JobEnd::is_failure) {
            counts.failed += counts.active.len();
        }
        failed = delete_active(reconcile, job, &mut counts).err();
    } else {
        match manage(reconcile, job, &mut counts, &all, now) {
            Ok(at) => next_at = at,
            Err(error) => failed = Some(error),
        }
    }
    let next = counts.status(reconcile, job, end.as_ref(), is_suspended);
    objects::set_status(reconcile, JOBS, job, &next)?;
    // Only after the status is stored: a Pod without the finalizer is never counted, so a failed
    // write of the status would lose the Pod.
    for pod in &counts.counted {
        release(reconcile, pod)?;
    }
    // The Event waits for the final condition, which comes after `SuccessCriteriaMet` or
    // `FailureTarget`, when no Pod runs any more.
    if let Some(end) = end.filter(|_| status::is_finished(&json!({"status": next}))) {
        record_event(reconcile, job, end.level, end.event_reason, end.event_text);
    }
    let deadline = status::deadline(job).filter(|at| *at > now);
    let next_at = next_at.into_iter().chain(deadline).min();
    failed.map_or(Ok(next_at), Err)
}

/// Returns the time at which a finished Job is deleted, or deletes the Job.
fn expire(core: &ServerCore, job: &Value) -> WorkResult {
    let Some(seconds) = job["spec"]["ttlSecondsAfterFinished"].as_i64() else { return Ok(None) };
    let finished = ["Complete", "Failed"].iter().find_map(|name| objects::condition(job, name));
    let at = finished.and_then(|one| one["lastTransitionTime"].as_str()).and_then(clock::parse);
    let at = at.unwrap_or(0).saturating_add(seconds);
    if at > core.clock.seconds() {
        return Ok(Some(at));
    }
    objects::remove(core, JOBS, job, None)?;
    Ok(None)
}

/// Creates Pods, up to the parallelism, or deletes the surplus. Returns the time of the next sync,
/// if one is needed.
fn manage(
    reconcile: &WorkloadReconcile<'_>,
    job: &Value,
    counts: &mut PodCounts,
    all: &[Value],
    now: i64,
) -> Result<Option<i64>, ApiError> {
    let parallelism = usize::try_from(objects::number(job, "parallelism", 1)).unwrap_or(0);
    let wanted = match job["spec"]["completions"].as_u64() {
        Some(total) => parallelism
            .min(usize::try_from(total).unwrap_or(usize::MAX).saturating_sub(counts.succeeded)),
        // A Job without `completions`: after the first success no Pod is created any more, and
        // those that run may finish.
        None if counts.succeeded > 0 => counts.active.len(),
        None => parallelism,
    };
    if counts.active.len() > wanted {
        counts.active.sort_by_key(pods::deletion_rank);
        let surplus = (counts.active.len() - wanted).min(pods::BURST);
        for pod in counts.active.drain(..surplus).collect::<Vec<_>>() {
            delete(reconcile, job, &pod)?;
        }
        return Ok(None);
    }
    if counts.active.len() == wanted {
        return Ok(None);
    }
    if let Some(at) = backoff_until(counts.failed, all).filter(|at| *at > now) {
        return Ok(Some(at));
    }
    let is_indexed = job["spec"]["completionMode"] == "Indexed";
    let goal = wanted.min(counts.active.len() + pods::BURST);
    let mut free = indexes::free(job, &counts.active, &counts.indexes).into_iter();
    while counts.active.len() < goal {
        let index = if is_indexed { free.next() } else { None };
        if is_indexed && index.is_none() {
            break;
        }
        let namespace = meta::text(job, "namespace");
        let made = pods::create(
            reconcile,
            job,
            event_source("Warning", "FailedCreate"),
            namespace,
            pod(job, index),
        )?;
        let text = format!("Created pod: {}", meta::text(&made, "name"));
        record_event(reconcile, job, "Normal", "SuccessfulCreate", &text);
        counts.active.push(made);
    }
    Ok(None)
}

/// Whether a Job belongs to another controller than the built-in one.
fn is_managed_by_another(job: &Value) -> bool {
    job["spec"]["managedBy"].as_str().is_some_and(|name| name != CONTROLLER)
}

/// Returns the time until which no Pod is created after a failed Pod. All failures count, not only
/// those since the last success.
fn backoff_until(failed: usize, all: &[Value]) -> Option<i64> {
    let last = all.iter().filter(|pod| pod["status"]["phase"] == "Failed").filter_map(|pod| {
        let statuses = objects::items(&pod["status"], "containerStatuses").iter();
        let times = statuses.filter_map(|it| it["state"]["terminated"]["finishedAt"].as_str());
        times.filter_map(clock::parse).max()
    });
    let doublings = u32::try_from(failed.checked_sub(1)?).unwrap_or(u32::MAX);
    // The longest backoff is reached at six doublings; many more would overflow.
    Some(last.max()? + (BACKOFF << doublings.min(10)).min(MAX_BACKOFF))
}

/// Returns a new Pod of a Job.
fn pod(job: &Value, index: Option<usize>) -> Value {
    let name = meta::text(job, "name");
    let template = &job["spec"]["template"];
    let mut pod = pods::from_template(template, objects::owner("batch/v1", "Job", job));
    let metadata = &mut pod["metadata"];
    let mut finalizers = objects::items(metadata, "finalizers").to_vec();
    finalizers.push(json!(TRACKING));
    metadata["finalizers"] = json!(finalizers);
    metadata["generateName"] = json!(format!("{name}-"));
    if let Some(index) = index {
        let text = index.to_string();
        metadata["generateName"] = json!(format!("{name}-{text}-"));
        metadata["labels"][indexes::INDEX] = json!(text);
        metadata["annotations"][indexes::INDEX] = json!(text);
        pod["spec"]["hostname"] = json!(format!("{name}-{text}"));
        indexes::add_index_variable(&mut pod["spec"]);
    }
    pod
}

/// Deletes the Pods that still run.
fn delete_active(core: &ServerCore, job: &Value, counts: &mut PodCounts) -> Result<(), ApiError> {
    for pod in std::mem::take(&mut counts.active) {
        delete(core, job, &pod)?;
    }
    Ok(())
}

/// Removes the finalizer from a running Pod, and deletes the Pod.
fn delete(core: &ServerCore, job: &Value, pod: &Value) -> Result<(), ApiError> {
    // First the finalizer: with it the deleted Pod would stay, and be counted when it ends.
    release(core, pod)?;
    objects::remove(core, PODS, pod, None)?;
    let text = format!("Deleted pod: {}", meta::text(pod, "name"));
    record_event(core, job, "Normal", "SuccessfulDelete", &text);
    Ok(())
}

/// Removes the finalizer from all Pods of a Job whose Pods need not be counted any more: the Job is
/// finished, or is being deleted.
fn release_all(core: &ServerCore, job: &Value) -> Result<(), ApiError> {
    objects::owned(core, PODS, job).iter().try_for_each(|pod| release(core, pod))
}

/// Removes the finalizer from the Pods of a Job that is gone: these Pods are not counted any more.
/// `current` is the uid of the existing Job of that name, if any; its Pods are left alone.
fn release_orphans(
    core: &ServerCore,
    namespace: &str,
    name: &str,
    current: Option<&str>,
) -> Result<(), ApiError> {
    let all = objects::list(core, PODS, namespace);
    let is_orphan = |pod: &Value| {
        objects::controller_of(pod).is_some_and(|owner| {
            let is_job = owner["apiVersion"] == "batch/v1" && owner["kind"] == "Job";
            is_job && owner["name"] == name && current.is_none_or(|uid| owner["uid"] != uid)
        })
    };
    all.iter().filter(|pod| is_orphan(&pod.value)).try_for_each(|pod| release(core, &pod.value))
}

/// Removes the finalizer from a Pod.
fn release(core: &ServerCore, pod: &Value) -> Result<(), ApiError> {
    if !is_tracked(pod) {
        return Ok(());
    }
    objects::change(core, PODS, pod, "", |next| {
        let mut finalizers = meta::finalizers(next);
        finalizers.retain(|one| one != TRACKING);
        meta::set(next, "finalizers", json!(finalizers));
        meta::clean(next);
    })
}

/// Whether a Pod has the tracking finalizer, and so has not been counted.
fn is_tracked(pod: &Value) -> bool {
    meta::finalizers(pod).iter().any(|one| one == TRACKING)
}

/// Writes an Event about a Job.
fn record_event(core: &ServerCore, job: &Value, level: &str, reason: &str, text: &str) {
    objects::record_event(core, job, event_source(level, reason), text);
}

/// Returns an Event of the controller without a message.
fn event_source<'a>(level: &'a str, reason: &'a str) -> ObjectEvent<'a> {
    let (from, api_version, kind) = ("job-controller", "batch/v1", "Job");
    ObjectEvent { from, api_version, kind, level, reason }
}
