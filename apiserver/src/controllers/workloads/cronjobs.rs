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

/// Creates the Job whose time has come, and forgets those that have ended.
pub(super) fn sync(turn: &WorkloadReconcile<'_>, namespace: &str, name: &str) -> WorkResult {
    let Some(held) = objects::get(turn, CRONJOBS, namespace, name) else { return Ok(None) };
    let cron = &held.value;
    if meta::terminating(cron) {
        return Ok(None);
    }
    let jobs = objects::owned(turn, JOBS, cron);
    let mut status = cron["status"].clone();
    if !status.is_object() {
        status = json!({});
    }
    let mut active = still_active(turn, cron, &jobs, &mut status);
    tidy(turn, cron, &jobs)?;
    let again = if cron["spec"]["suspend"] == true {
        Ok(None)
    } else {
        run_due(turn, cron, &jobs, &mut active, &mut status)
    };
    match status.as_object_mut() {
        Some(fields) if active.is_empty() => drop(fields.remove("active")),
        _ => status["active"] = json!(active),
    }
    objects::set_status(turn, CRONJOBS, cron, &status)?;
    again
}

/// Returns the time at which a Job ended, and whether the Job succeeded.
fn ended(job: &Value) -> Option<(bool, String)> {
    [("Complete", true), ("Failed", false)].into_iter().find_map(|(name, succeeds)| {
        let condition = objects::condition(job, name).filter(|one| one["status"] == "True")?;
        let at = condition["lastTransitionTime"].as_str().unwrap_or_default();
        Some((succeeds, at.to_owned()))
    })
}

/// Returns the references to Jobs that still run, and notes those that have ended.
fn still_active(core: &ServerCore, cron: &Value, jobs: &[Value], status: &mut Value) -> Vec<Value> {
    let mut active = Vec::new();
    for held in objects::items(&cron["status"], "active") {
        let Some(job) = jobs.iter().find(|job| job["metadata"]["uid"] == held["uid"]) else {
            continue;
        };
        let Some((succeeds, _)) = ended(job) else {
            active.push(held.clone());
            continue;
        };
        let name = meta::text(job, "name");
        let condition = if succeeds { "Complete" } else { "Failed" };
        let text = format!("Saw completed job: {name}, condition: {condition}");
        note(core, cron, "Normal", "SawCompletedJob", &text);
    }
    let times = jobs.iter().filter_map(|job| job["status"]["completionTime"].as_str());
    if let Some(last) = times.max() {
        let before = status["lastSuccessfulTime"].as_str().unwrap_or_default();
        let last = last.max(before).to_owned();
        status["lastSuccessfulTime"] = json!(last);
    }
    active
}

/// Deletes Jobs that ended long ago, beyond the limits of the history.
fn tidy(core: &ServerCore, cron: &Value, jobs: &[Value]) -> Result<(), ApiError> {
    for (succeeds, limit) in [
        (true, objects::number(cron, "successfulJobsHistoryLimit", 3)),
        (false, objects::number(cron, "failedJobsHistoryLimit", 1)),
    ] {
        let mut done: Vec<(String, &Value)> = jobs
            .iter()
            .filter_map(|job| ended(job).filter(|end| end.0 == succeeds).map(|end| (end.1, job)))
            .collect();
        done.sort_by(|a, b| (&a.0, meta::text(a.1, "name")).cmp(&(&b.0, meta::text(b.1, "name"))));
        let surplus = done.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        for (_, job) in done.into_iter().take(surplus) {
            delete_job(core, cron, job)?;
        }
    }
    Ok(())
}

/// Deletes a Job.
fn delete_job(core: &ServerCore, cron: &Value, job: &Value) -> Result<(), ApiError> {
    objects::remove(core, JOBS, job, None)?;
    let text = format!("Deleted job {}", meta::text(job, "name"));
    note(core, cron, "Normal", "SuccessfulDelete", &text);
    Ok(())
}

/// Creates the Job of the last time that has passed, and returns the next time.
fn run_due(
    turn: &WorkloadReconcile<'_>,
    cron: &Value,
    jobs: &[Value],
    active: &mut Vec<Value>,
    status: &mut Value,
) -> WorkResult {
    let zone = cron["spec"]["timeZone"].as_str();
    let text = cron["spec"]["schedule"].as_str().unwrap_or_default();
    // The server checks schedules: an unreadable schedule has a zone that this machine does not
    // know.
    let Some(schedule) = Schedule::parse(text, zone) else { return Ok(None) };
    let now = turn.clock.seconds();
    let last = status["lastScheduleTime"].as_str().and_then(clock::parse);
    let made = clock::parse(meta::text(cron, "creationTimestamp"));
    let mut from = last.or(made).unwrap_or(now);
    let deadline = cron["spec"]["startingDeadlineSeconds"].as_i64();
    if let Some(seconds) = deadline {
        // Starts that are too late are not made up for.
        from = from.max(now.saturating_sub(seconds).saturating_sub(1));
    }
    let next = schedule.next(now);
    let Some(due) = most_recent(&schedule, from, now) else { return Ok(next) };
    let policy = cron["spec"]["concurrencyPolicy"].as_str().unwrap_or("Allow");
    if policy == "Forbid" && !active.is_empty() {
        let text =
            "Not starting job because prior execution is running and concurrency policy is Forbid";
        note(turn, cron, "Normal", "JobAlreadyActive", text);
        return Ok(next);
    }
    if policy == "Replace" {
        for held in std::mem::take(active) {
            if let Some(job) = jobs.iter().find(|job| job["metadata"]["uid"] == held["uid"]) {
                delete_job(turn, cron, job)?;
            }
        }
    }
    let made = start(turn, cron, due)?;
    active.push(json!({
        "apiVersion": "batch/v1", "kind": "Job", "name": made["metadata"]["name"],
        "namespace": made["metadata"]["namespace"], "uid": made["metadata"]["uid"],
        "resourceVersion": made["metadata"]["resourceVersion"],
    }));
    status["lastScheduleTime"] = json!(turn.clock.rfc3339_after(due - now));
    Ok(next)
}

/// Returns the last time of a schedule in `(from, now]`.
fn most_recent(schedule: &Schedule, from: i64, now: i64) -> Option<i64> {
    /// Times that are looked at, after a long time without the server.
    const MOST: usize = 10_000;
    let times = std::iter::successors(schedule.next(from), |at| schedule.next(*at));
    times.take_while(|at| *at <= now).take(MOST).last()
}

/// Creates the Job of a time.
fn start(turn: &WorkloadReconcile<'_>, cron: &Value, at: i64) -> Result<Value, ApiError> {
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
        json!(turn.clock.rfc3339_after(at - turn.clock.seconds()));
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"],
    });
    let name = meta::text(&job, "name").to_owned();
    let made = match turn.create(JOBS, namespace, job) {
        // Made before the time could be recorded.
        Err(error) if error.reason() == "AlreadyExists" => {
            let held = objects::get(turn, JOBS, namespace, &name);
            return held.map(|held| held.value.clone()).ok_or(error);
        }
        made => made.inspect_err(|error| {
            let text = format!("Error creating job: {}", error.message());
            turn.note_failure(cron, about("Warning", "FailedCreate"), error, &text);
        })?,
    };
    let text = format!("Created job {}", meta::text(&made, "name"));
    note(turn, cron, "Normal", "SuccessfulCreate", &text);
    Ok(made)
}

/// Writes an event about a `CronJob`.
fn note(core: &ServerCore, cron: &Value, level: &str, reason: &str, text: &str) {
    objects::note(core, cron, about(level, reason), text);
}

/// Returns an event of the controller.
fn about<'a>(level: &'a str, reason: &'a str) -> ObjectEvent<'a> {
    let (from, api_version, kind) = ("cronjob-controller", "batch/v1", "CronJob");
    ObjectEvent { from, api_version, kind, level, reason }
}
