//! Events about Pods that scheduler and kubelet write.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::objects;
use crate::core::ServerCore;
use crate::kinds::meta;

/// Most events in the store with which further events of Pods are written, since events are never
/// deleted.
const MOST: usize = 5000;

/// Writes an event once for a Pod; `container` is empty for an event about the whole Pod.
///
/// A failure changes nothing: events are for people.
pub(super) fn write(
    core: &ServerCore,
    pod: &Value,
    (level, reason): (&str, &str),
    container: &str,
    message: &str,
) {
    let (namespace, name) = (meta::text(pod, "namespace"), meta::text(pod, "name"));
    if core.store.snapshot("events").0.size() >= MOST {
        return tracing::debug!(
            namespace,
            name,
            reason,
            "an event is left out: there are too many"
        );
    }
    let uid = meta::text(pod, "uid");
    let digest = Sha256::digest([uid, reason, container, message].join("\n"));
    // The same event has the same name and is not written a second time.
    let suffix: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let from = if reason == "Scheduled" { "default-scheduler" } else { "kubelet" };
    let now = core.clock.rfc3339();
    let mut source = json!({"component": from});
    if from == "kubelet" {
        source["host"] = pod["spec"]["nodeName"].clone();
    }
    let mut about = json!({
        "apiVersion": "v1", "kind": "Pod", "name": name, "namespace": namespace, "uid": uid,
        "resourceVersion": pod["metadata"]["resourceVersion"],
    });
    if !container.is_empty() {
        about["fieldPath"] = json!(format!("spec.containers{{{container}}}"));
    }
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{name}.{suffix}")},
        "involvedObject": about, "type": level, "reason": reason, "message": message, "count": 1,
        "firstTimestamp": now, "lastTimestamp": now, "source": source, "reportingComponent": from,
    });
    if let Err(error) = objects::create_if_absent(core, ("", "events"), namespace, event) {
        tracing::debug!(namespace, name, %error, "an event could not be written");
    }
}

/// Writes the events of the containers that have begun with a new status.
pub(super) fn started(core: &ServerCore, pod: &Value, status: &Value) {
    for field in ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"] {
        for now in objects::items(status, field).iter().filter(|now| now["containerID"].is_string())
        {
            let earlier = objects::items(&pod["status"], field).iter();
            let mut earlier = earlier.filter(|earlier| earlier["name"] == now["name"]);
            // Restarts are not reported again.
            if earlier.any(|earlier| earlier["containerID"].is_string()) {
                continue;
            }
            let name = now["name"].as_str().unwrap_or_default();
            let pulled = format!("Container image {} already present on machine", now["image"]);
            for (reason, text) in [
                ("Pulled", pulled.as_str()),
                ("Created", "Container created"),
                ("Started", "Container started"),
            ] {
                write(core, pod, ("Normal", reason), name, text);
            }
        }
    }
}
