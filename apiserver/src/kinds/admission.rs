//! Fields that admission and strategies add to new built-in objects; they have no owner.

use serde_json::{Value, json};

use super::Kind;
use super::defaults::{child, default};

/// Adds the fields that the server decides when an object is created.
pub(crate) fn enter(kind: &Kind, object: &mut Value) {
    match (kind.served.group.as_str(), kind.name()) {
        ("", "Pod") => pod(object),
        ("", "Node") => {
            // No kubelet has reported the Node ready yet.
            let taint = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
            default(child(object, "spec"), "taints", taint);
        }
        ("batch", "Job") => job(object),
        _ => {}
    }
}

/// Adds the fields that the server decides at each update, too; `old` is the present state.
pub(crate) fn update(kind: &Kind, old: &Value, object: &mut Value) {
    if kind.is("", "pods") {
        // Set once: a replacement that leaves them out keeps them.
        for field in ["priority", "preemptionPolicy"] {
            default(child(object, "spec"), field, old["spec"][field].clone());
        }
        pod(object);
    }
}

/// Sets the priority of a Pod, and the tolerations of nodes that are away for a while.
fn pod(object: &mut Value) {
    let spec = child(object, "spec");
    default(spec, "priority", json!(0));
    default(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covers = |toleration: &Value| {
            let (held, effect) = (&toleration["key"], &toleration["effect"]);
            (held.is_null() || held == key) && (effect.is_null() || effect == "NoExecute")
        };
        if !tolerations.iter().any(covers) {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
    spec["tolerations"] = Value::Array(tolerations);
}

/// Ties a Job to Pods by labels and selector, which need the Job's uid.
fn job(object: &mut Value) {
    let uid = object["metadata"]["uid"].clone();
    let name = object["metadata"]["name"].clone();
    // Labels that came from the template are the template's own, which get more now.
    let shares = object["metadata"]["labels"] == object["spec"]["template"]["metadata"]["labels"];
    let spec = child(object, "spec");
    // The client provides the selector.
    if spec["manualSelector"] == true {
        return;
    }
    let labels = child(child(child(spec, "template"), "metadata"), "labels");
    for (key, value) in [("controller-uid", &uid), ("job-name", &name)] {
        default(labels, key, value.clone());
        default(labels, &format!("batch.kubernetes.io/{key}"), value.clone());
    }
    // The Job gets the labels of the template.
    let labels = labels.clone();
    let selector = child(child(spec, "selector"), "matchLabels");
    default(selector, "batch.kubernetes.io/controller-uid", uid);
    let metadata = child(object, "metadata");
    if shares {
        metadata["labels"] = labels;
    } else {
        default(metadata, "labels", labels);
    }
}
