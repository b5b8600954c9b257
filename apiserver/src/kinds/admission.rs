//! Fields that admission and strategies add to new built-in objects; they have no owner.

// DESIGN.md, 286: What never changes is a row, and what is off is dropped late

use serde_json::{Value, json};

use super::Kind;
use super::defaults::{child, default, items};

/// Adds the fields that the server decides when an object is created.
pub(crate) fn enter(kind: &Kind, object: &mut Value) {
    match (kind.served.group.as_str(), kind.name()) {
        ("", "Pod") => pod(object),
        ("", "Node") => {
            // No kubelet has reported the Node ready yet.
            let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
            let spec = child(object, "spec");
            default(spec, "taints", json!([]));
            if let Some(taints) = spec["taints"].as_array_mut() {
                let is_same = |held: &Value| {
                    ["key", "effect"].iter().all(|field| held[*field] == taint[*field])
                };
                if !taints.iter().any(is_same) {
                    taints.push(taint);
                }
            }
            drop_disabled(kind, &Value::Null, object);
        }
        ("batch", "Job") => job(object),
        ("", "PersistentVolumeClaim") => source(&Value::Null, object),
        _ => drop_disabled(kind, &Value::Null, object),
    }
}

/// Removes fields of features that are off, and fields without effect. Senders own them
/// nevertheless.
fn drop_disabled(kind: &Kind, old: &Value, object: &mut Value) {
    let is_external = object["spec"]["type"] == "ExternalName";
    let is_new = !kind.types.same("endpoints", &old["endpoints"], &object["endpoints"]);
    let mut remove = |path: &str, field: &str| {
        if let Some(Value::Object(fields)) = object.pointer_mut(path) {
            fields.remove(field);
        }
    };
    match (kind.served.group.as_str(), kind.name()) {
        ("", "Node") => {
            remove("/spec", "configSource");
            remove("/status", "config");
        }
        ("storage.k8s.io", "CSIDriver")
            if old["spec"]["preventPodSchedulingIfMissing"].is_null() =>
        {
            remove("/spec", "preventPodSchedulingIfMissing");
        }
        ("", "ServiceAccount") => {
            // In references to Secrets only the names count.
            for secret in items(object, "secrets") {
                if let Value::Object(fields) = secret {
                    fields.retain(|field, _| field == "name");
                }
            }
        }
        ("apps", "StatefulSet") => remove("/spec/updateStrategy/rollingUpdate", "maxUnavailable"),
        // Nothing routes to the Pods of such a Service.
        ("", "Service") if is_external => remove("/spec", "internalTrafficPolicy"),
        ("discovery.k8s.io", "EndpointSlice") if is_new => {
            for endpoint in items(object, "endpoints") {
                endpoint.as_object_mut().and_then(|fields| fields.remove("deprecatedTopology"));
            }
        }
        _ => {}
    }
}

/// Numbers the templates of a `DaemonSet` in an annotation.
fn number_template(kind: &Kind, old: &Value, object: &mut Value) {
    const NUMBER: &str = "deprecated.daemonset.template.generation";
    let held = old["metadata"]["annotations"][NUMBER].as_str();
    let number: i64 = held.and_then(|held| held.parse().ok()).unwrap_or_default();
    let (before, after) = (&old["spec"]["template"], &object["spec"]["template"]);
    let grown = !kind.types.same("spec.template", before, after);
    let number = number.saturating_add(i64::from(grown)).to_string();
    child(child(object, "metadata"), "annotations")[NUMBER] = json!(number);
}

/// Makes the two fields for the source of a claim's data agree.
fn source(old: &Value, object: &mut Value) {
    let spec = child(object, "spec");
    let is_there = |spec: &Value, field: &str| spec[field].is_object();
    let was_there = ["dataSource", "dataSourceRef"].map(|field| is_there(&old["spec"], field));
    // Another namespace is a feature that is off.
    let elsewhere = spec["dataSourceRef"]["namespace"].as_str().is_some_and(|one| !one.is_empty());
    if elsewhere && !was_there[1] {
        spec["dataSourceRef"] = Value::Null;
    }
    let held = &spec["dataSource"];
    let group = held["apiGroup"].as_str().unwrap_or_default();
    let is_known = match held["kind"].as_str() {
        Some("PersistentVolumeClaim") => group.is_empty(),
        Some("VolumeSnapshot") => group == "snapshot.storage.k8s.io",
        _ => false,
    };
    // Before there was the second field, other kinds were ignored.
    if !was_there[0] && !was_there[1] && !is_there(spec, "dataSourceRef") && !is_known {
        spec["dataSource"] = Value::Null;
    }
    let fields = match (is_there(spec, "dataSource"), is_there(spec, "dataSourceRef")) {
        (true, false) => ["dataSource", "dataSourceRef"],
        (false, true) if spec["dataSourceRef"]["namespace"].is_null() => {
            ["dataSourceRef", "dataSource"]
        }
        _ => ["", ""],
    };
    if !fields[0].is_empty() {
        spec[fields[1]] = spec[fields[0]].clone();
    }
    if let Value::Object(fields) = spec {
        for field in ["dataSource", "dataSourceRef"] {
            if fields.get(field).is_some_and(Value::is_null) {
                fields.remove(field);
            }
        }
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
    } else if kind.is("", "persistentvolumeclaims") {
        source(old, object);
    } else if kind.is("apps", "daemonsets") {
        number_template(kind, old, object);
    } else {
        drop_disabled(kind, old, object);
    }
}

/// Sets the priority of a Pod, and the tolerations of nodes that are away for a while.
fn pod(object: &mut Value) {
    let annotations = object["metadata"]["annotations"].clone();
    let spec = child(object, "spec");
    let own = spec["securityContext"]["appArmorProfile"].clone();
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            silence(container);
            confine(container, &annotations, &own);
        }
    }
    if let Value::Object(fields) = spec {
        fields.remove("schedulingGroup");
    }
    for volume in items(spec, "volumes") {
        for source in items(&mut volume["projected"], "sources") {
            if let Value::Object(fields) = source {
                fields.retain(|kind, _| kind != "clusterTrustBundle" && kind != "podCertificate");
            }
        }
        if volume["projected"].is_null() {
            volume.as_object_mut().and_then(|fields| fields.remove("projected"));
        }
    }
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

/// Gives a container the `AppArmor` profile of an annotation, from before there was a field.
fn confine(container: &mut Value, annotations: &Value, own: &Value) {
    let name = container["name"].as_str().unwrap_or_default();
    let key = format!("container.apparmor.security.beta.kubernetes.io/{name}");
    let Some(profile) = armor(annotations[&key].as_str()) else { return };
    let is_set = container["securityContext"]["appArmorProfile"].is_object();
    if !is_set && profile != *own {
        child(container, "securityContext")["appArmorProfile"] = profile;
    }
}

/// Returns the profile of `AppArmor` that an annotation names.
pub(crate) fn armor(annotation: Option<&str>) -> Option<Value> {
    match annotation? {
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        "unconfined" => Some(json!({"type": "Unconfined"})),
        other => {
            let path = other.strip_prefix("localhost/").filter(|path| !path.is_empty())?;
            Some(json!({"type": "Localhost", "localhostProfile": path}))
        }
    }
}

/// Removes the signal that ends a container, which is a feature that is off.
fn silence(container: &mut Value) {
    let Some(Value::Object(lifecycle)) = container.get_mut("lifecycle") else { return };
    if lifecycle.remove("stopSignal").is_some()
        && lifecycle.is_empty()
        && let Value::Object(fields) = container
    {
        fields.remove("lifecycle");
    }
}

/// Ties a Job to Pods by labels and selector, which need the Job's uid.
fn job(object: &mut Value) {
    let uid = object["metadata"]["uid"].clone();
    let name = object["metadata"]["name"].clone();
    // Labels that came from the template are the template's own, which get more now.
    let own = &object["metadata"]["labels"];
    let shares = own.is_object() && *own == object["spec"]["template"]["metadata"]["labels"];
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
    let labels = labels.clone();
    let selector = child(child(spec, "selector"), "matchLabels");
    default(selector, "batch.kubernetes.io/controller-uid", uid);
    let metadata = child(object, "metadata");
    if shares {
        metadata["labels"] = labels;
    }
}

/// Gives a Job without labels those of the template: as such a Job is read, and not as it is
/// checked.
pub(crate) fn label(kind: &Kind, object: &mut Value) {
    if kind.is("batch", "jobs") && object["metadata"]["labels"].is_null() {
        let labels = object["spec"]["template"]["metadata"]["labels"].clone();
        if labels.is_object() {
            object["metadata"]["labels"] = labels;
        }
    }
}
