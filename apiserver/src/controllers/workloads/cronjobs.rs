//! `CronJobs`: Jobs by a schedule, on the server's clock.

use serde_json::{Value, json};

use super::WorkResult;
use super::objects::{self, CRONJOBS, JOBS, ObjectEvent};
use super::reconcile::WorkloadReconcile;
use super::schedule::Schedule;
use crate::clock;
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::status::ApiError;

/// Creates the Job whose time has come, and removes ended Jobs from `status.active`.
pub(super) fn sync(reconcile: &WorkloadReconcile<'_>, namespace: &str, name: &str) -> WorkResult {
    let Some(stored) = objects::get(reconcile, CRONJOBS, namespace, name) else { return Ok(None) };
    let cron = &stored.value;
    if meta::terminating(cron) {
        return Ok(None);
    }
    let jobs = objects::owned(reconcile, JOBS, cron);
    let mut status = cron["status"].clone();
    if !status.is_object() {
        status = json!({});
    }
    let mut active = still_active(reconcile, cron, &jobs, &mut status);
    tidy(reconcile, cron, &jobs)?;
    // The error is returned last: the status must also record what was done before the failure.
    let next_at = if cron["spec"]["suspend"] == true {
        Ok(None)
    } else {
        run_due(reconcile, cron, &jobs, &mut active, &mut status)
    };
    match status.as_object_mut() {
        Some(fields) if active.is_empty() => drop(fields.remove("active")),
        _ => status["active"] = json!(active),
    }
    objects::set_status(reconcile, CRONJOBS, cron, &status)?;
    next_at
}

/// The end of a Job.
struct EndedJob<'a> {
    has_succeeded: bool,
    /// Time in the notation of the API.
    at: &'a str,
}

impl<'a> EndedJob<'a> {
    /// Returns the end of a Job that has ended.
    fn of(job: &'a Value) -> Option<Self> {
        [("Complete", true), ("Failed", false)].into_iter().find_map(|(name, has_succeeded)| {
            let condition = objects::condition(job, name).filter(|one| one["status"] == "True")?;
            let at = condition["lastTransitionTime"].as_str().unwrap_or_default();
            Some(Self { has_succeeded, at })
        })
    }
}

/// Returns the references to Jobs that still run, writes Events about those that have ended, and
/// sets `lastSuccessfulTime`.
fn still_active(core: &ServerCore, cron: &Value, jobs: &[Value], status: &mut Value) -> Vec<Value> {
    let mut active = Vec::new();
    for reference in objects::items(&cron["status"], "active") {
        let Some(job) = jobs.iter().find(|job| job["metadata"]["uid"] == reference["uid"]) else {
            continue;
        };
        let Some(end) = EndedJob::of(job) else {
            active.push(reference.clone());
            continue;
        };
        let name = meta::text(job, "name");
        let condition = if end.has_succeeded { "Complete" } else { "Failed" };
        let text = format!("Saw completed job: {name}, condition: {condition}");
        record_event(core, cron, "Normal", "SawCompletedJob", &text);
    }
    let times = jobs.iter().filter_map(|job| job["status"]["completionTime"].as_str());
    if let Some(last) = times.max() {
        let before = status["lastSuccessfulTime"].as_str().unwrap_or_default();
        let last = last.max(before).to_owned();
        status["lastSuccessfulTime"] = json!(last);
    }
    active
}

/// Deletes the oldest ended Jobs beyond the history limits.
fn tidy(core: &ServerCore, cron: &Value, jobs: &[Value]) -> Result<(), ApiError> {
    for (has_succeeded, limit) in [
        (true, objects::number(cron, "successfulJobsHistoryLimit", 3)),
        (false, objects::number(cron, "failedJobsHistoryLimit", 1)),
    ] {
        let ended = jobs.iter().filter_map(|job| Some((EndedJob::of(job)?, job)));
        let mut ended: Vec<(&str, &Value)> = ended
            .filter(|(end, _)| end.has_succeeded == has_succeeded)
            .map(|(end, job)| (end.at, job))
            .collect();
        ended.sort_by_key(|(at, job)| (*at, meta::text(job, "name")));
        let surplus = ended.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        for (_, job) in ended.into_iter().take(surplus) {
            delete_job(core, cron, job)?;
        }
    }
    Ok(())
}

/// Deletes a Job, with an Event about the deletion.
fn delete_job(core: &ServerCore, cron: &Value, job: &Value) -> Result<(), ApiError> {
    objects::remove(core, JOBS, job, None)?;
    let text = format!("Deleted job {}", meta::text(job, "name"));
    record_event(core, cron, "Normal", "SuccessfulDelete", &text);
    Ok(())
}

/// Creates the Job of the last time that has passed, and returns the next time.
fn run_due(
    reconcile: &WorkloadReconcile<'_>,
    cron: &Value,
    jobs: &[Value],
    active: &mut Vec<Value>,
    status: &mut Value,
) -> WorkResult {
    let zone = cron["spec"]["timeZone"].as_str();
    let text = cron["spec"]["schedule"].as_str().unwrap_or_default();
    // Validation accepted the schedule, so only an unknown time zone is left as a cause.
    let Some(schedule) = Schedule::parse(text, zone) else { return Ok(None) };
    let now = reconcile.clock.seconds();
    let last = status["lastScheduleTime"].as_str().and_then(clock::parse);
    let created_at = clock::parse(meta::text(cron, "creationTimestamp"));
    let mut from = last.or(created_at).unwrap_or(now);
    let deadline = cron["spec"]["startingDeadlineSeconds"].as_i64();
    if let Some(seconds) = deadline {
        // Missed starts older than the deadline are skipped; 1 s less because the interval leaves
        // out its beginning.
        from = from.max(now.saturating_sub(seconds).saturating_sub(1));
    }
    let next = schedule.next(now);
    let Some(due) = most_recent(&schedule, from, now) else { return Ok(next) };
    if has_missed_many(&schedule, from, now) {
        let text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or \
                    check clock skew";
        record_event(reconcile, cron, "Warning", "TooManyMissedTimes", text);
    }
    let policy = cron["spec"]["concurrencyPolicy"].as_str().unwrap_or("Allow");
    if policy == "Forbid" && !active.is_empty() {
        let text =
            "Not starting job because prior execution is running and concurrency policy is Forbid";
        record_event(reconcile, cron, "Normal", "JobAlreadyActive", text);
        return Ok(next);
    }
    if policy == "Replace" {
        for reference in std::mem::take(active) {
            if let Some(job) = jobs.iter().find(|job| job["metadata"]["uid"] == reference["uid"]) {
                delete_job(reconcile, cron, job)?;
            }
        }
    }
    let job = start(reconcile, cron, due)?;
    active.push(json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": job["metadata"]["name"],
        "namespace": job["metadata"]["namespace"], "uid": job["metadata"]["uid"],
        "resourceVersion": job["metadata"]["resourceVersion"],
    }));
    status["lastScheduleTime"] = json!(reconcile.clock.rfc3339_after(due - now));
    Ok(next)
}

/// Returns the last time of a schedule in `(from, now]`.
///
/// The search halves the interval: a time follows the middle or none does. After a year without the
/// server a `CronJob` of each minute takes 25 steps, not 500 000.
fn most_recent(schedule: &Schedule, from: i64, now: i64) -> Option<i64> {
    let due_after = |at: i64| schedule.next(at).filter(|next| *next <= now);
    let mut due = due_after(from)?;
    let mut end = now;
    while due < end {
        let middle = due + (end - due) / 2;
        match due_after(middle) {
            Some(later) => due = later,
            None => end = middle,
        }
    }
    Some(due)
}

/// Whether about more than 100 times have passed in `(from, now]`, judged by the first two as
/// upstream does.
fn has_missed_many(schedule: &Schedule, from: i64, now: i64) -> bool {
    /// Times up to which upstream does not warn.
    const MOST: i64 = 100;
    let Some(first) = schedule.next(from) else { return false };
    let Some(second) = schedule.next(first) else { return false };
    (now - first) / (second - first) + 1 > MOST
}

/// Creates the Job of a time.
fn start(reconcile: &WorkloadReconcile<'_>, cron: &Value, at: i64) -> Result<Value, ApiError> {
    let (namespace, name) = (meta::text(cron, "namespace"), meta::text(cron, "name"));
    let template = &cron["spec"]["jobTemplate"];
    let mut metadata = json!({
        "name": format!("{name}-{}", at / 60),
        "ownerReferences": objects::owner("batch/v1", "CronJob", cron),
    });
    if template["metadata"]["labels"].is_object() {
        metadata["labels"] = template["metadata"]["labels"].clone();
    }
    if template["metadata"]["annotations"].is_object() {
        metadata["annotations"] = template["metadata"]["annotations"].clone();
    }
    metadata["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] =
        json!(reconcile.clock.rfc3339_after(at - reconcile.clock.seconds()));
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"],
    });
    let name = meta::text(&job, "name").to_owned();
    let created = match reconcile.create(JOBS, namespace, job) {
        // Created before the time could be recorded.
        Err(error) if error.reason() == "AlreadyExists" => {
            let stored = objects::get(reconcile, JOBS, namespace, &name);
            return stored.map(|stored| stored.value.clone()).ok_or(error);
        }
        created => created.inspect_err(|error| {
            let text = format!("Error creating job: {}", error.message());
            reconcile.record_failure(cron, event_source("Warning", "FailedCreate"), error, &text);
        })?,
    };
    let text = format!("Created job {}", meta::text(&created, "name"));
    record_event(reconcile, cron, "Normal", "SuccessfulCreate", &text);
    Ok(created)
}

/// Writes an event about a `CronJob`.
fn record_event(core: &ServerCore, cron: &Value, level: &str, reason: &str, text: &str) {
    objects::record_event(core, cron, event_source(level, reason), text);
}

/// Returns an Event of the controller without its text.
fn event_source<'a>(level: &'a str, reason: &'a str) -> ObjectEvent<'a> {
    let (from, api_version, kind) = ("cronjob-controller", "batch/v1", "CronJob");
    ObjectEvent { from, api_version, kind, level, reason }
}
