//! The debug page: the operator's internal state as a JSON document, for people with a problem and
//! for tools.
//!
//! Served at `/debug` beside the metrics, if those are on the loopback interface: the names of
//! objects and the texts of errors must not be readable from the network, though no secret is among
//! them. Each list has a bound, `?limit=`, so that a queue of a million keys costs no more than a
//! queue of a hundred. Times are seconds.
//!
//! Not included: profiles, and any operation that changes state.

// DESIGN.md, 38: The debug page shares the port of the metrics, on loopback

use std::time::Duration;

use serde_json::{Value, json};

use super::health::OperatorStatus;
use crate::leader::Leadership;
use crate::manager::runnable::{Runnable, RunnableStage, RunnableState};
use windlass_cache::informer::{InformerRegistry, InformerStatus};

/// Entries of each list by default; and the largest number that a request may ask for.
pub(crate) const LIMIT: usize = 100;
pub(crate) const MOST: usize = 10_000;

/// Returns the whole document.
pub(crate) fn dump(status: &OperatorStatus, limit: usize) -> Value {
    let limit = limit.min(MOST);
    let clock = status.client.environment().clock.clone();
    let up = clock.now().saturating_duration_since(status.began);
    let readiness = status.ready();
    let clusters: serde_json::Map<String, Value> = status
        .registries()
        .into_iter()
        .map(|(place, informers)| (place.unwrap_or("local").to_owned(), caches(informers, limit)))
        .collect();
    json!({
        "operator": status.name,
        "framework": concat!("windlass ", env!("CARGO_PKG_VERSION")),
        "time": clock.wall().to_string(),
        "uptimeSeconds": seconds(up),
        "stopping": status.stop.is_cancelled(),
        "ready": readiness.is_ready(),
        "notReady": readiness
            .checks
            .iter()
            .filter(|check| !check.ok)
            .map(|check| format!("{}: {}", check.name, check.detail))
            .collect::<Vec<_>>(),
        "leadership": leadership(status),
        "controllers": status.controllers.iter().map(|one| one.dump(limit)).collect::<Vec<_>>(),
        "informers": clusters,
        "runnables": status.runnables.iter().map(|one| runnable(one)).collect::<Vec<_>>(),
    })
}

/// Returns seconds, rounded to milliseconds.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

/// Returns the state of the election; null if there is none.
fn leadership(status: &OperatorStatus) -> Value {
    let Some(elector) = &status.elector else { return Value::Null };
    let (state, holder) = match status.leadership() {
        Some(Leadership::Leading) => ("leading", Some(elector.identity().to_owned())),
        Some(Leadership::Holding) => ("holding", Some(elector.identity().to_owned())),
        Some(Leadership::Candidate { holder }) => ("candidate", holder),
        Some(Leadership::Ended) | None => ("ended", None),
    };
    let validity = status.gate.lock().as_ref().and_then(|gate| gate.validity());
    json!({
        "lease": status.lease,
        "identity": elector.identity(),
        "state": state,
        "holder": holder,
        "validForSeconds": validity.map(seconds),
    })
}

/// Returns the caches of a cluster.
fn caches(informers: &InformerRegistry, limit: usize) -> Value {
    informers.status().iter().take(limit).map(|one| cache(one, limit)).collect()
}

fn cache(status: &InformerStatus, limit: usize) -> Value {
    let listeners: Vec<Value> = status
        .listeners
        .iter()
        .take(limit)
        .map(|one| json!({ "name": one.name, "synced": one.synced, "waiting": one.waiting }))
        .collect();
    json!({
        "name": status.name,
        "kind": status.info.kind,
        "apiVersion": status.info.api_version(),
        "synced": status.synced,
        "optional": status.is_optional,
        "state": status.state,
        "objects": status.objects,
        "bytes": status.bytes,
        "undecodable": status.invalid,
        "resourceVersion": status.resource_version,
        "newestVersionSecondsAgo": status.age.map(seconds),
        "lastHeardSecondsAgo": status.silence.map(seconds),
        "queued": status.queued,
        "listeners": listeners,
    })
}

/// Returns the state of a runnable.
fn runnable(runnable: &Runnable) -> Value {
    let record = runnable.record.lock().clone();
    let stage = match runnable.stage() {
        RunnableStage::BeforeCaches => "before caches",
        RunnableStage::Always => "always",
        RunnableStage::Leading => "leading",
    };
    let state = match record.state {
        RunnableState::Waiting => "waiting",
        RunnableState::Running => "running",
        RunnableState::Restarting => "restarting",
        RunnableState::Ended => "ended",
    };
    json!({
        "name": runnable.name(),
        "when": stage,
        "state": state,
        "failures": record.failures,
        "lastError": record.last_error,
    })
}
