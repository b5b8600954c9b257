//! Status of a Pod, computed from its annotations.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::objects;
use crate::clock;
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::verbs::subresources::kubelet::{EXIT_CODE, exit_code};

/// Annotation with the state of a Pod.
const STATE: &str = "windlass.dev/pod-state";
/// Annotation with the seconds for which the Pod's programs run.
const SECONDS: &str = "windlass.dev/run-seconds";
/// First pause before a restart, in seconds; doubled by each restart.
const PAUSE: i64 = 10;
/// Longest pause before a restart, in seconds.
const LONGEST: i64 = 300;

/// State of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The containers are not made.
    Pending,
    /// The containers run, and are ready or not.
    Running { is_ready: bool },
    /// The containers have ended with an exit code.
    Ended(u8),
    /// The containers have ended with an exit code, and are about to be restarted.
    Restarting(u8),
}

/// The place of a container in the Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The container has ended before the others begin.
    Init,
    /// A main container of the Pod.
    Main,
    /// The container was added for debugging.
    Ephemeral,
}

/// States that the annotation knows.
const STATES: [&str; 5] = ["Running", "NotReady", "Pending", "Failed", "Succeeded"];

/// Returns the text about an annotation of a Pod that is ignored; `None` if there is none.
pub(super) fn fault(pod: &Value) -> Option<String> {
    let annotations = &pod["metadata"]["annotations"];
    let ignored = |name: &str, text: &str, wanted: &str| {
        Some(format!("annotation {name} is ignored: {text:?} is not {wanted}"))
    };
    if let Some(text) = annotations[STATE].as_str().filter(|text| !STATES.contains(text)) {
        return ignored(STATE, text, &format!("one of {}", STATES.join(", ")));
    }
    let seconds = annotations[SECONDS].as_str();
    if let Some(text) = seconds.filter(|text| text.parse::<i64>().is_err()) {
        return ignored(SECONDS, text, "a number of seconds");
    }
    let code = annotations[EXIT_CODE].as_str();
    if let Some(text) = code.filter(|text| text.parse::<u8>().is_err()) {
        return ignored(EXIT_CODE, text, "a number from 0 to 255");
    }
    None
}

/// Returns the next status of a Pod, and the time of its next change.
pub(super) fn next(core: &ServerCore, pod: &Value, host: &str, ip: &str) -> (Value, Option<i64>) {
    let now = core.clock.seconds();
    let (state, again) = state(pod, now);
    let time = core.clock.rfc3339();
    let mut status = pod["status"].clone();
    status["observedGeneration"] = json!(meta::generation(pod));
    status["phase"] = json!(match state {
        State::Pending => "Pending",
        State::Running { .. } | State::Restarting(_) => "Running",
        State::Ended(0) => "Succeeded",
        State::Ended(_) => "Failed",
    });
    status["hostIP"] = json!(host);
    status["hostIPs"] = json!([{"ip": host}]);
    if state != State::Pending {
        status["podIP"] = json!(ip);
        status["podIPs"] = json!([{"ip": ip}]);
    }
    if status["startTime"].is_null() {
        status["startTime"] = json!(time);
    }
    for (list, field, role) in [
        ("initContainers", "initContainerStatuses", Role::Init),
        ("containers", "containerStatuses", Role::Main),
        ("ephemeralContainers", "ephemeralContainerStatuses", Role::Ephemeral),
    ] {
        let containers = objects::items(&pod["spec"], list).iter();
        let all: Vec<Value> = containers
            .map(|container| {
                let current = objects::items(&pod["status"], field).iter();
                let current = current.clone().find(|current| current["name"] == container["name"]);
                container_status(pod, container, current, (state, role), &time)
            })
            .collect();
        if !all.is_empty() {
            status[field] = json!(all);
        }
    }
    status["conditions"] = conditions(pod, state, &time);
    (status, again)
}

/// Returns the present state of a Pod, and the time of its next change.
fn state(pod: &Value, now: i64) -> (State, Option<i64>) {
    let annotations = &pod["metadata"]["annotations"];
    let code = exit_code(pod);
    match annotations[STATE].as_str().unwrap_or_default() {
        "Pending" => return (State::Pending, None),
        "NotReady" => return (State::Running { is_ready: false }, None),
        "Running" => return (State::Running { is_ready: true }, None),
        "Succeeded" => return (State::Ended(0), None),
        "Failed" => return (State::Ended(code.max(1)), None),
        _ => {}
    }
    let policy = pod["spec"]["restartPolicy"].as_str().unwrap_or("Always");
    if policy == "Always" {
        return (State::Running { is_ready: true }, None);
    }
    let seconds = annotations[SECONDS].as_str().and_then(|text| text.parse::<i64>().ok());
    let current = &pod["status"]["containerStatuses"][0];
    let time = |path: &Value| path.as_str().and_then(clock::parse);
    let begun = time(&current["state"]["running"]["startedAt"]);
    let ended = time(&current["lastState"]["terminated"]["finishedAt"]);
    if let (true, Some(ended)) = (current["state"]["waiting"].is_object(), ended) {
        let restarts = current["restartCount"].as_i64().unwrap_or(0).clamp(1, 10);
        let at = ended + (PAUSE << (restarts - 1)).min(LONGEST);
        if at > now {
            return (State::Restarting(code), Some(at));
        }
        return (State::Running { is_ready: true }, Some(now + seconds.unwrap_or(0).max(1)));
    }
    let end = begun.unwrap_or(now).saturating_add(seconds.unwrap_or(0));
    match (end > now, code) {
        (true, _) => (State::Running { is_ready: true }, Some(end)),
        (false, 1..) if policy == "OnFailure" => (State::Restarting(code), Some(now + PAUSE)),
        (false, _) => (State::Ended(code), None),
    }
}

/// Returns the status of a container; times stay as long as the state does.
fn container_status(
    pod: &Value,
    container: &Value,
    current: Option<&Value>,
    (state, role): (State, Role),
    now: &str,
) -> Value {
    let current = current.unwrap_or(&Value::Null);
    let restarts = current["restartCount"].as_i64().unwrap_or(0);
    let is_waiting = matches!(state, State::Restarting(_)) && role == Role::Main;
    let restarts_now = is_waiting && current["state"]["waiting"].is_null();
    // The id of the ended container, until the next container begins.
    let id = id(pod, container, restarts - i64::from(is_waiting && !restarts_now));
    let (next, ended) = container_state(current, (state, role), &id, now);
    let last = ended.filter(|_| restarts_now).unwrap_or_else(|| current["lastState"].clone());
    let restarts = restarts + i64::from(restarts_now);
    let runs = matches!(state, State::Running { .. }) && role == Role::Main;
    let is_ready = match role {
        Role::Init => state != State::Pending,
        Role::Main => state == State::Running { is_ready: true },
        Role::Ephemeral => false,
    };
    let mut status = json!({
        "name": container["name"], "image": container["image"], "imageID": "",
        "ready": is_ready, "started": runs, "restartCount": restarts, "state": next,
        "lastState": if last.is_object() { last } else { json!({}) },
    });
    if state != State::Pending {
        status["containerID"] = json!(id);
        status["imageID"] = json!(image_id(container["image"].as_str().unwrap_or_default()));
    }
    status
}

/// Returns the state of a container, and the new `lastState` if it restarts.
fn container_state(
    current: &Value,
    (state, role): (State, Role),
    id: &str,
    now: &str,
) -> (Value, Option<Value>) {
    let begun = current["state"]["running"]["startedAt"].as_str().unwrap_or(now);
    let terminated = |code: u8| {
        let reason = if code == 0 { "Completed" } else { "Error" };
        json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": begun,
            "finishedAt": now, "containerID": id}})
    };
    let next = match (state, role) {
        (State::Pending, _) => json!({"waiting": {"reason": "ContainerCreating"}}),
        // Init containers have done their work before the others begin.
        (_, Role::Init) => {
            let ended = &current["state"]["terminated"];
            if ended.is_null() { terminated(0) } else { json!({"terminated": ended}) }
        }
        (State::Running { .. }, _) | (State::Restarting(_), Role::Ephemeral) => {
            json!({"running": {"startedAt": begun}})
        }
        (State::Ended(code), _) => terminated(code),
        (State::Restarting(code), Role::Main) => {
            return (json!({"waiting": {"reason": "CrashLoopBackOff"}}), Some(terminated(code)));
        }
    };
    (next, None)
}

/// Returns a digest of a text, in hexadecimal digits.
fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the id of a container: another id after each restart.
fn id(pod: &Value, container: &Value, restarts: i64) -> String {
    let text = format!("{}/{}/{restarts}", meta::text(pod, "uid"), container["name"]);
    format!("windlass://{}", digest(&text))
}

/// Returns the id of an image: a name with the digest in the place of the tag.
fn image_id(image: &str) -> String {
    if image.contains('@') {
        return image.to_owned();
    }
    let path = image.rfind('/').map_or(0, |at| at + 1);
    let tag = image[path..].find(':').map_or(image.len(), |at| path + at);
    format!("{}@sha256:{}", &image[..tag], digest(image))
}

/// Returns the conditions; their times stay as long as their status does.
fn conditions(pod: &Value, state: State, now: &str) -> Value {
    let begun = state != State::Pending;
    let ready = state == State::Running { is_ready: true };
    let has_ended = state == State::Ended(0);
    let reason = if has_ended { Some("PodCompleted") } else { Some("ContainersNotReady") };
    let all = [
        ("PodReadyToStartContainers", begun && !matches!(state, State::Ended(_)), None),
        ("Initialized", begun || objects::items(&pod["spec"], "initContainers").is_empty(), reason),
        ("Ready", ready, reason),
        ("ContainersReady", ready, reason),
        ("PodScheduled", true, None),
    ];
    let mut conditions: Vec<Value> = Vec::new();
    for (name, is_true, reason) in all {
        let status = if is_true { "True" } else { "False" };
        let current = objects::condition(pod, name).filter(|current| current["status"] == status);
        let since =
            current.and_then(|current| current["lastTransitionTime"].as_str()).unwrap_or(now);
        let mut condition = json!({
            "type": name, "status": status, "lastProbeTime": null, "lastTransitionTime": since,
            "observedGeneration": meta::generation(pod),
        });
        if let Some(reason) = reason.filter(|_| !is_true) {
            condition["reason"] = json!(reason);
        }
        conditions.push(condition);
    }
    // Conditions of other writers, such as readiness gates, stay.
    let others = objects::items(&pod["status"], "conditions").iter();
    conditions.extend(
        others.filter(|current| all.iter().all(|(name, ..)| current["type"] != *name)).cloned(),
    );
    json!(conditions)
}
