//! The counts of a Job's Pods, and the status that they make.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::{objects, pods};
use super::{indexes, is_tracked};
use crate::clock;
use crate::core::ServerCore;
use crate::kinds::meta;

/// Pods of a Job, by their state.
#[derive(Debug)]
pub(super) struct PodCounts {
    /// Pods that run, or are about to.
    pub(super) active: Vec<Value>,
    /// Number that has succeeded.
    pub(super) succeeded: usize,
    /// Number that has failed.
    pub(super) failed: usize,
    /// Indexes that have succeeded.
    pub(super) indexes: BTreeSet<usize>,
    /// Pods that are counted with this status, and lose their finalizer.
    pub(super) counted: Vec<Value>,
    /// Number that is terminating.
    terminating: usize,
}

/// The end of a Job.
#[derive(Debug)]
pub(super) struct JobEnd {
    /// Conditions: the early condition, and the condition once no Pod runs any more.
    conditions: [&'static str; 2],
    reason: &'static str,
    message: &'static str,
    /// Type, reason and text of the event.
    pub(super) level: &'static str,
    pub(super) event_reason: &'static str,
    pub(super) event_text: &'static str,
}

/// Whether a Job is complete or has failed.
pub(super) fn is_finished(job: &Value) -> bool {
    ["Complete", "Failed"]
        .iter()
        .any(|name| objects::condition(job, name).is_some_and(|one| one["status"] == "True"))
}

/// Returns the time at which an unfinished Job fails, in seconds since 1970.
pub(super) fn deadline(job: &Value) -> Option<i64> {
    let seconds = job["spec"]["activeDeadlineSeconds"].as_i64()?;
    let start = job["status"]["startTime"].as_str().and_then(clock::parse)?;
    Some(start.saturating_add(seconds))
}

impl PodCounts {
    /// Counts Pods, on top of those that were counted before.
    pub(super) fn of(job: &Value, all: &[Value]) -> Self {
        let status = &job["status"];
        let before = |field: &str| {
            usize::try_from(status[field].as_u64().unwrap_or(0)).unwrap_or(usize::MAX)
        };
        let done = status["completedIndexes"].as_str().unwrap_or_default();
        let mut counts = Self {
            active: Vec::new(),
            succeeded: before("succeeded"),
            failed: before("failed"),
            indexes: indexes::read(done),
            counted: Vec::new(),
            terminating: 0,
        };
        let is_indexed = job["spec"]["completionMode"] == "Indexed";
        for pod in all {
            if pods::is_active(pod) {
                counts.active.push(pod.clone());
                continue;
            }
            counts.terminating += usize::from(!pods::is_finished(pod));
            if !is_tracked(pod) {
                continue;
            }
            counts.counted.push(pod.clone());
            let has_succeeded = pod["status"]["phase"] == "Succeeded";
            match indexes::of(pod).filter(|_| is_indexed) {
                _ if !has_succeeded => counts.failed += 1,
                Some(index) => drop(counts.indexes.insert(index)),
                None => counts.succeeded += 1,
            }
        }
        if is_indexed {
            counts.succeeded = counts.indexes.len();
        }
        counts
    }

    /// Returns the end of the Job, if due.
    pub(super) fn end(&self, job: &Value, all: &[Value], now: i64) -> Option<JobEnd> {
        let limit = usize::try_from(objects::number(job, "backoffLimit", 6)).unwrap_or(usize::MAX);
        if self.failed > limit
            || restarts(job, all).is_some_and(|count| count > 0 && count >= limit)
        {
            let message = "Job has reached the specified backoff limit";
            return Some(JobEnd::failed("BackoffLimitExceeded", message));
        }
        if deadline(job).is_some_and(|at| at <= now) {
            let message = "Job was active longer than specified deadline";
            return Some(JobEnd::failed("DeadlineExceeded", message));
        }
        let is_complete = match job["spec"]["completions"].as_u64() {
            Some(total) => self.succeeded as u64 >= total,
            None => self.succeeded > 0 && self.active.is_empty(),
        };
        is_complete.then_some(JobEnd {
            conditions: ["SuccessCriteriaMet", "Complete"],
            reason: "CompletionsReached",
            message: "Reached expected number of succeeded pods",
            level: "Normal",
            event_reason: "Completed",
            event_text: "Job completed",
        })
    }

    /// Returns the status; with both conditions of the end once no Pod runs any more.
    pub(super) fn status(
        &self,
        core: &ServerCore,
        job: &Value,
        end: Option<&JobEnd>,
        is_suspended: bool,
    ) -> Value {
        let now = core.clock.rfc3339();
        let ready = self.active.iter().filter(|pod| pods::is_ready(pod)).count();
        let mut status = json!({
            "ready": ready, "terminating": self.terminating, "uncountedTerminatedPods": {},
        });
        objects::set_count(&mut status, "active", self.active.len());
        objects::set_count(&mut status, "succeeded", self.succeeded);
        objects::set_count(&mut status, "failed", self.failed);
        if !self.indexes.is_empty() {
            status["completedIndexes"] = json!(indexes::write(&self.indexes));
        }
        if !is_suspended {
            let start = job["status"]["startTime"].as_str().unwrap_or(&now);
            status["startTime"] = json!(start);
        }
        let mut conditions = objects::items(&job["status"], "conditions").to_vec();
        suspension(&mut conditions, is_suspended, &now);
        if let Some(end) = end {
            let rests = self.active.is_empty() && self.terminating == 0;
            let names = &end.conditions[..if rests { 2 } else { 1 }];
            for name in names {
                set_condition(&mut conditions, name, "True", end.reason, end.message, &now);
            }
            if names.contains(&"Complete") {
                status["completionTime"] = json!(now);
            }
        }
        if !conditions.is_empty() {
            status["conditions"] = json!(conditions);
        }
        status
    }
}

impl JobEnd {
    /// Whether the Job has failed.
    pub(super) fn is_failure(&self) -> bool {
        self.level == "Warning"
    }

    /// Returns a failure.
    fn failed(reason: &'static str, message: &'static str) -> Self {
        let conditions = ["FailureTarget", "Failed"];
        let (level, event_reason, event_text) = ("Warning", reason, message);
        Self { conditions, reason, message, level, event_reason, event_text }
    }
}

/// Returns the restarts of containers, if those count in place of failed Pods.
fn restarts(job: &Value, all: &[Value]) -> Option<usize> {
    if job["spec"]["template"]["spec"]["restartPolicy"] != "OnFailure" {
        return None;
    }
    let of = |pod: &Value| -> u64 {
        let statuses = objects::items(&pod["status"], "containerStatuses").iter();
        statuses.filter_map(|status| status["restartCount"].as_u64()).sum()
    };
    let running = all.iter().filter(|pod| !pods::is_finished(pod) && !meta::terminating(pod));
    usize::try_from(running.map(of).sum::<u64>()).ok()
}

/// Adds or changes the condition about suspension.
fn suspension(conditions: &mut Vec<Value>, is_suspended: bool, now: &str) {
    let is_known = conditions.iter().any(|one| one["type"] == "Suspended");
    if is_suspended {
        set_condition(conditions, "Suspended", "True", "JobSuspended", "Job suspended", now);
    } else if is_known {
        set_condition(conditions, "Suspended", "False", "JobResumed", "Job resumed", now);
    }
}

/// Sets a condition, unless the status is the same.
fn set_condition(
    conditions: &mut Vec<Value>,
    name: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    if conditions.iter().any(|one| one["type"] == name && one["status"] == status) {
        return;
    }
    conditions.retain(|one| one["type"] != name);
    conditions.push(json!({
        "type": name, "status": status, "reason": reason, "message": message,
        "lastProbeTime": now, "lastTransitionTime": now,
    }));
}
