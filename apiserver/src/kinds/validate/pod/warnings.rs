//! Warnings about pod specs, and about objects that make Pods: valid values that are probably
//! mistakes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{integer, items, text};
use crate::kinds::quantity::Quantity;
use crate::kinds::validate::networking;
use crate::kinds::{Kind, meta};
use crate::names;

/// Returns the warnings about an object that is written.
pub(crate) fn warnings(kind: &Kind, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let template = ["spec", "template", "spec"];
    let path: &[&str] = match (kind.served.group.as_str(), kind.name()) {
        ("", "Pod") => &["spec"],
        ("", "ReplicationController") => &template,
        ("", "PodTemplate") => &["template", "spec"],
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") | ("batch", "Job") => {
            &template
        }
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template", "spec"],
        ("networking.k8s.io", "Ingress") => {
            return networking::warning(object).into_iter().collect();
        }
        ("", "PersistentVolume") => return volume(object),
        ("", "PersistentVolumeClaim") => return older_class(object).into_iter().collect(),
        _ => return found,
    };
    let makers = ["Deployment", "ReplicaSet", "ReplicationController", "Job", "CronJob"];
    if makers.contains(&kind.name()) {
        found.extend(odd_name(object));
    }
    let spec = path.iter().fold(object, |held, field| &held[*field]);
    pod(spec, &path.join("."), &mut found);
    found
}

/// Returns the warning about a name that becomes a part of names of hosts.
fn odd_name(object: &Value) -> Option<String> {
    let faults = names::label(meta::text(object, "name"));
    (!faults.is_empty()).then(|| {
        let faults = faults.join(" ");
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [{faults}]"
        )
    })
}

/// Returns the warnings about a volume.
fn volume(object: &Value) -> Vec<String> {
    let recycles = object["spec"]["persistentVolumeReclaimPolicy"] == "Recycle";
    let text = "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, \
                the recommended approach is to use dynamic provisioning.";
    older_class(object).into_iter().chain(recycles.then(|| text.to_owned())).collect()
}

/// Returns the warning about the annotation that had the storage class.
fn older_class(object: &Value) -> Option<String> {
    let name = "volume.beta.kubernetes.io/storage-class";
    object["metadata"]["annotations"][name].is_string().then(|| {
        format!(
            "metadata.annotations[{name}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
        )
    })
}

/// Appends the warnings about a pod spec at a path.
fn pod(spec: &Value, at: &str, found: &mut Vec<String>) {
    let constraints = items(&spec["topologySpreadConstraints"]);
    for (index, _) in constraints.filter(|(_, one)| one["labelSelector"].is_null()) {
        found.push(format!(
            "{at}.topologySpreadConstraints[{index}].labelSelector: a null labelSelector results in matching no pod"
        ));
    }
    let mut seen = BTreeSet::new();
    for (index, secret) in items(&spec["imagePullSecrets"]) {
        let (at, name) = (format!("{at}.imagePullSecrets[{index}].name"), text(secret, "name"));
        if name.is_empty() {
            found.push(format!("{at}: invalid empty name \"\""));
        } else if !seen.insert(name) {
            found.push(format!("{at}: duplicate name {name:?}"));
        }
    }
    for (_, volume) in items(&spec["volumes"]) {
        let sources = items(&volume["projected"]["sources"]);
        let empty =
            sources.filter(|(_, one)| one.as_object().is_some_and(serde_json::Map::is_empty));
        if empty.count() > 0 {
            let name = text(volume, "name");
            found.push(format!("volume {name:?} (Projected) has no sources provided"));
        }
    }
    for list in ["initContainers", "containers"] {
        for (index, one) in items(&spec[list]) {
            container(one, &format!("{at}.{list}[{index}]"), found);
        }
    }
}

/// Appends the warnings about a container.
fn container(container: &Value, at: &str, found: &mut Vec<String>) {
    for part in ["limits", "requests"] {
        for name in ["memory", "ephemeral-storage"] {
            let amount = &container["resources"][part][name];
            if Quantity::parse(amount).is_some_and(|held| !held.is_whole()) {
                let shown = amount.as_str().unwrap_or_default();
                found.push(format!(
                    "{at}.resources.{part}[{name}]: fractional byte value {shown:?} is invalid, must be an integer"
                ));
            }
        }
    }
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for (index, variable) in items(&container["env"]) {
        let (name, value) = (text(variable, "name"), text(variable, "value"));
        // A value that is made of the value before does not hide it.
        let refers = value.contains(&format!("$({name})"));
        if names.insert(name, value).is_some() && !refers {
            found.push(format!(
                "{at}.env[{index}]: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
    let mut ports: BTreeMap<(i64, i64, &str, &str), usize> = BTreeMap::new();
    for (index, port) in items(&container["ports"]) {
        let key = (
            integer(port, "containerPort"),
            integer(port, "hostPort"),
            text(port, "protocol"),
            text(port, "hostIP"),
        );
        if let Some(first) = ports.get(&key) {
            found.push(format!(
                "{at}.ports[{index}]: duplicate port definition with {at}.ports[{first}]"
            ));
        } else {
            ports.insert(key, index);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_there_twice_or_matches_nothing_is_told() {
        let mut found = Vec::new();
        let spec = json!({
            "containers": [{
                "env": [{"name": "A"}, {"name": "A"}, {"name": "A", "value": "$(A)"}],
                "ports": [{"containerPort": 80}, {"containerPort": 80}, {"containerPort": 81}],
                "resources": {"limits": {"memory": "100m", "cpu": "100m"}},
            }],
            "topologySpreadConstraints": [{"maxSkew": 1}, {"labelSelector": {}}],
        });
        pod(&spec, "spec", &mut found);
        assert_eq!(
            found,
            [
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
                "spec.containers[0].resources.limits[memory]: fractional byte value \"100m\" is invalid, must be an integer",
                "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
                "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
            ]
        );
    }
}
