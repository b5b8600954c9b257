//! Cells of Pods, as `kubectl get pods` prints them.

use serde_json::{Value, json};

use super::human::{duration, seconds};

/// State of a Pod, summed up over all containers.
struct Summary {
    /// Text of the status column.
    reason: String,
    ready: i64,
    total: usize,
    restarts: i64,
    /// Time of the last restart, in seconds since 1970.
    last_restart: Option<i64>,
}

/// Returns the cells between name and age, and the cells of wide output after the age.
pub(super) fn cells(pod: &Value, now: i64) -> (Vec<Value>, Vec<Value>) {
    let summary = summarize(pod);
    let restarts = match summary.last_restart.filter(|_| summary.restarts > 0) {
        Some(then) => format!("{} ({} ago)", summary.restarts, duration(now - then)),
        None => summary.restarts.to_string(),
    };
    let ready = format!("{}/{}", summary.ready, summary.total);
    let text = |v: &Value| match v.as_str() {
        Some(s) if !s.is_empty() => json!(s),
        _ => json!("<none>"),
    };
    let status = &pod["status"];
    let ip = if status["podIPs"][0]["ip"].is_string() {
        &status["podIPs"][0]["ip"]
    } else {
        &status["podIP"]
    };
    let gates = list(&pod["spec"]["readinessGates"]);
    let met = gates.iter().filter(|g| condition(pod, g["conditionType"].as_str())).count();
    let gates = match gates.len() {
        0 => json!("<none>"),
        n => json!(format!("{met}/{n}")),
    };
    (
        vec![json!(ready), json!(summary.reason), json!(restarts)],
        vec![text(ip), text(&pod["spec"]["nodeName"]), text(&status["nominatedNodeName"]), gates],
    )
}

/// Returns the condition of a finished Pod, by which clients may hide the Pod.
pub(super) fn conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match pod["status"]["phase"].as_str() {
        Some("Succeeded") => ("Succeeded", "The pod has completed successfully."),
        Some("Failed") => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

/// Returns the items of a list; none when absent.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Whether a Pod has a condition that is true.
fn condition(pod: &Value, kind: Option<&str>) -> bool {
    let met = |c: &&Value| c["type"].as_str() == kind && c["status"] == "True";
    kind.is_some() && list(&pod["status"]["conditions"]).iter().any(|c| met(&c))
}

/// Returns the reason why a container ended, from signal or exit code if none is given.
fn ended(terminated: &Value) -> String {
    match (terminated["reason"].as_str(), terminated["signal"].as_i64()) {
        (Some(reason), _) if !reason.is_empty() => reason.to_owned(),
        (_, Some(signal)) if signal != 0 => format!("Signal:{signal}"),
        _ => format!("ExitCode:{}", terminated["exitCode"].as_i64().unwrap_or_default()),
    }
}

/// Sums up the state of a Pod.
fn summarize(pod: &Value) -> Summary {
    let status = &pod["status"];
    let text = |v: &Value| v.as_str().filter(|s| !s.is_empty()).map(str::to_owned);
    let mut reason = text(&status["reason"]).or_else(|| text(&status["phase"])).unwrap_or_default();
    let gated = |c: &&Value| c["type"] == "PodScheduled" && c["reason"] == "SchedulingGated";
    if list(&status["conditions"]).iter().any(|c| gated(&c)) {
        reason = "SchedulingGated".to_owned();
    }
    // Init containers that are restarted always are sidecars: they count like main containers.
    let sidecars = list(&pod["spec"]["initContainers"])
        .iter()
        .filter(|c| c["restartPolicy"] == "Always")
        .filter_map(|c| c["name"].as_str())
        .collect::<Vec<_>>();
    let mut out = Summary {
        reason,
        ready: 0,
        total: list(&pod["spec"]["containers"]).len() + sidecars.len(),
        restarts: 0,
        last_restart: None,
    };
    let sidecar_restarts = init(pod, &sidecars, &mut out);
    if let Some(restarts) = sidecar_restarts {
        // From here on restarts of finished init containers do not count.
        out.restarts = restarts;
        main(pod, &mut out);
    }
    if pod["metadata"]["deletionTimestamp"].is_string() {
        // The node does not answer: whether the Pod still runs is unknown.
        if status["reason"] == "NodeLost" {
            out.reason = "Unknown".to_owned();
        } else if status["phase"] != "Succeeded" && status["phase"] != "Failed" {
            out.reason = "Terminating".to_owned();
        }
    }
    out
}

/// Adds the restarts of a container to the sum and returns them.
fn count_restart(container: &Value, out: &mut Summary) -> i64 {
    let restarts = container["restartCount"].as_i64().unwrap_or_default();
    let finished = container["lastState"]["terminated"]["finishedAt"].as_str().and_then(seconds);
    out.last_restart = out.last_restart.max(finished);
    out.restarts += restarts;
    restarts
}

/// Visits the init containers; returns the sidecars' restarts once all init containers are done.
fn init(pod: &Value, sidecars: &[&str], out: &mut Summary) -> Option<i64> {
    let statuses = list(&pod["status"]["initContainerStatuses"]);
    let total = list(&pod["spec"]["initContainers"]).len();
    let mut restarts = 0;
    for (i, container) in statuses.iter().enumerate() {
        let count = count_restart(container, out);
        let sidecar = container["name"].as_str().is_some_and(|n| sidecars.contains(&n));
        restarts += if sidecar { count } else { 0 };
        let state = &container["state"];
        let waiting = state["waiting"]["reason"].as_str().unwrap_or_default();
        if state["terminated"].is_object() && state["terminated"]["exitCode"] == 0 {
            continue;
        }
        if sidecar && container["started"] == true {
            out.ready += i64::from(container["ready"] == true);
            continue;
        }
        out.reason = if state["terminated"].is_object() {
            format!("Init:{}", ended(&state["terminated"]))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{i}/{total}")
        };
        // An init container is not done: main containers count only if the Pod is reported as
        // initialized.
        return condition(pod, Some("Initialized")).then_some(restarts);
    }
    Some(restarts)
}

/// Visits the main containers.
fn main(pod: &Value, out: &mut Summary) {
    let mut running = false;
    for container in list(&pod["status"]["containerStatuses"]).iter().rev() {
        count_restart(container, out);
        let state = &container["state"];
        let waiting = state["waiting"]["reason"].as_str().unwrap_or_default();
        if !waiting.is_empty() {
            waiting.clone_into(&mut out.reason);
        } else if state["terminated"].is_object() {
            out.reason = ended(&state["terminated"]);
        } else if container["ready"] == true && state["running"].is_object() {
            running = true;
            out.ready += 1;
        }
    }
    // A container completed, but others run: the Pod as a whole runs.
    if out.reason == "Completed" && running {
        let ready = condition(pod, Some("Ready"));
        out.reason = if ready { "Running" } else { "NotReady" }.to_owned();
    }
}
