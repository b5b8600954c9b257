//! Stand-in for the Deployment controller: reports Deployments available at once, as if their pods
//! had started.

use serde_json::{Value, json};

use super::changes::ChangedObject;
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::verbs::update::{self, NextState};

/// Updates the status of a changed Deployment.
pub(super) fn observe(core: &ServerCore, event: &ChangedObject) {
    let Some(after) = &event.after else { return };
    if meta::terminating(&after.value) {
        return;
    }
    let (namespace, name) =
        (meta::text(&after.value, "namespace"), meta::text(&after.value, "name"));
    let Some(mut call) = super::call(core, &event.kind, namespace, name) else { return };
    "status".clone_into(&mut call.subresource);
    let now = core.clock.rfc3339();
    let updated = update::change(core, &call, |held| {
        let mut next = held.cloned().ok_or_else(|| call.not_found())?;
        // The write is also a change, which is observed again; an equal status then ends the cycle,
        // since a write without a change is not stored.
        next["status"] = status(&next, &now);
        Ok(NextState::Update(next))
    });
    if let Err(error) = updated {
        tracing::debug!(namespace, name, %error, "could not report a Deployment available");
    }
}

/// Returns the status of a Deployment whose pods all run.
fn status(deployment: &Value, now: &str) -> Value {
    let replicas = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let name = meta::text(deployment, "name");
    let progress = format!("ReplicaSet {name:?} has successfully progressed.");
    let mut status = json!({
        "observedGeneration": meta::generation(deployment),
        "conditions": [
            condition(deployment, "Available", "MinimumReplicasAvailable", "Deployment has minimum availability.", now),
            condition(deployment, "Progressing", "NewReplicaSetAvailable", &progress, now),
        ],
    });
    if replicas > 0 {
        for field in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
            status[field] = json!(replicas);
        }
    }
    status
}

/// Returns a condition that is true; the times of a condition that was true before stay.
fn condition(deployment: &Value, kind: &str, reason: &str, message: &str, now: &str) -> Value {
    let held = deployment["status"]["conditions"].as_array().into_iter().flatten();
    let held = held.clone().find(|one| one["type"] == kind && one["status"] == "True");
    let time = |field: &str| held.and_then(|one| one[field].as_str()).unwrap_or(now).to_owned();
    json!({
        "type": kind, "status": "True", "reason": reason, "message": message,
        "lastUpdateTime": time("lastUpdateTime"), "lastTransitionTime": time("lastTransitionTime"),
    })
}
