//! Cells of the kinds that run pods.

use serde_json::{Value, json};

use super::builtin::{list, or};
use super::human::{duration, labels, seconds, selector, since};

/// Returns the cells between name and age, and the cells of wide output after the age.
pub(super) fn cells(kind: &str, o: &Value, now: i64) -> (Vec<Value>, Vec<Value>) {
    let (spec, status) = (&o["spec"], &o["status"]);
    let count = |key: &str| status[key].as_i64().unwrap_or_default();
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let wide = || images(&spec["template"]["spec"], selector(&spec["selector"]));
    match kind {
        "Deployment" => {
            let ready = format!("{}/{wanted}", count("readyReplicas"));
            let own = vec![
                json!(ready),
                json!(count("updatedReplicas")),
                json!(count("availableReplicas")),
            ];
            (own, wide())
        }
        "ReplicaSet" => {
            let own = [wanted, count("replicas"), count("readyReplicas")];
            (own.map(Value::from).to_vec(), wide())
        }
        "ReplicationController" => {
            let own = [wanted, count("replicas"), count("readyReplicas")];
            let wide = images(&spec["template"]["spec"], labels(&spec["selector"]));
            (own.map(Value::from).to_vec(), wide)
        }
        "StatefulSet" => {
            let ready = format!("{}/{wanted}", count("readyReplicas"));
            (vec![json!(ready)], wide()[..2].to_vec())
        }
        "DaemonSet" => {
            let own = [
                "desiredNumberScheduled",
                "currentNumberScheduled",
                "numberReady",
                "updatedNumberScheduled",
                "numberAvailable",
            ];
            let nodes = labels(&spec["template"]["spec"]["nodeSelector"]);
            let mut own: Vec<Value> = own.iter().map(|key| json!(count(key))).collect();
            own.push(json!(nodes));
            (own, wide())
        }
        "Job" => (job(o, now), wide()),
        _ => cron_job(o, now),
    }
}

/// Returns container names, images and the selector.
fn images(pod: &Value, selector: String) -> Vec<Value> {
    let join = |key: &str| {
        let all: Vec<&str> = list(&pod["containers"]).iter().map(|c| or(&c[key], "")).collect();
        json!(all.join(","))
    };
    vec![join("name"), join("image"), json!(selector)]
}

/// Returns the cells of a Job: status, completions, duration.
fn job(o: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&o["spec"], &o["status"]);
    let done = status["succeeded"].as_i64().unwrap_or_default();
    let completions = match (spec["completions"].as_i64(), spec["parallelism"].as_i64()) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        // A work queue: any of the parallel Pods may complete the Job.
        (None, Some(parallel)) if parallel > 1 => format!("{done}/1 of {parallel}"),
        _ => format!("{done}/1"),
    };
    let time = |key: &str| status[key].as_str().and_then(seconds);
    let took = match (time("startTime"), time("completionTime")) {
        (None, _) => String::new(),
        // A Job that runs shows the time until now.
        (Some(start), end) => duration(end.unwrap_or(now) - start),
    };
    let is = |kind: &str| {
        list(&status["conditions"]).iter().any(|c| c["type"] == kind && c["status"] == "True")
    };
    let state = match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if o["metadata"]["deletionTimestamp"].is_string() => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    vec![json!(state), json!(completions), json!(took)]
}

/// Returns the cells of a `CronJob`.
fn cron_job(o: &Value, now: i64) -> (Vec<Value>, Vec<Value>) {
    let (spec, status) = (&o["spec"], &o["status"]);
    let last = match &status["lastScheduleTime"] {
        Value::Null => "<none>".to_owned(),
        time => since(time, now),
    };
    let suspended = if spec["suspend"] == true { "True" } else { "False" };
    let own = vec![
        json!(or(&spec["schedule"], "")),
        json!(or(&spec["timeZone"], "<none>")),
        json!(suspended),
        json!(list(&status["active"]).len()),
        json!(last),
    ];
    let job = &spec["jobTemplate"]["spec"];
    (own, images(&job["template"]["spec"], selector(&job["selector"])))
}
