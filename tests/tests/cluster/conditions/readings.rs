//! Readings of a status by other programs: kstatus (Flux, kpt), `kubectl wait` and Argo CD's usual
//! script. Written from their rules, for values as JSON.

use serde_json::Value;

/// The states of kstatus that an object can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Terminating,
    InProgress,
    Failed,
    Current,
}

fn conditions(object: &Value) -> &[Value] {
    object["status"]["conditions"].as_array().map_or(&[], Vec::as_slice)
}

fn status<'a>(object: &'a Value, type_: &str) -> Option<&'a str> {
    conditions(object).iter().find(|it| it["type"] == type_)?["status"].as_str()
}

/// kstatus for a custom resource: deletion, then an unobserved generation, then the first of
/// `Reconciling` and `Stalled` that is true, then `Ready`. An object without any of these is
/// current.
pub(super) fn kstatus(object: &Value) -> Reading {
    let metadata = &object["metadata"];
    if metadata["deletionTimestamp"].as_str().is_some_and(|time| !time.is_empty()) {
        return Reading::Terminating;
    }
    let generation = metadata["generation"].as_i64();
    let observed = object["status"]["observedGeneration"].as_i64();
    if let (Some(generation), Some(observed)) = (generation, observed)
        && generation != observed
    {
        return Reading::InProgress;
    }
    for it in conditions(object).iter().filter(|it| it["status"] == "True") {
        match it["type"].as_str() {
            Some("Reconciling") => return Reading::InProgress,
            Some("Stalled") => return Reading::Failed,
            _ => {}
        }
    }
    match status(object, "Ready") {
        Some("False" | "Unknown") => Reading::InProgress,
        _ => Reading::Current,
    }
}

/// `kubectl wait --for=condition=Ready`: a condition of an older generation does not count.
pub(super) fn kubectl_waits_no_more(object: &Value) -> bool {
    let Some(ready) = conditions(object).iter().find(|it| it["type"] == "Ready") else {
        return false;
    };
    let observed =
        ready["observedGeneration"].as_i64().or(object["status"]["observedGeneration"].as_i64());
    let is_old = observed.is_some_and(|it| Some(it) < object["metadata"]["generation"].as_i64());
    !is_old && ready["status"] == "True"
}

/// The health that Argo CD's scripts for kinds with `Ready` and `Stalled` (those of Flux) compute.
pub(super) fn argo(object: &Value) -> &'static str {
    if status(object, "Stalled") == Some("True") {
        return "Degraded";
    }
    match status(object, "Ready") {
        Some("True") => "Healthy",
        _ => "Progressing",
    }
}
