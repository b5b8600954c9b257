//! Warnings about pod specs, and about objects that make Pods: valid values that are probably
//! mistakes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::annotations::APP_ARMOR_OF;
use super::{integer, items, text};
use crate::kinds::quantity::Quantity;
use crate::kinds::validate::{cluster, networking};
use crate::kinds::{Kind, admission, meta};
use crate::names;

/// End of the warning about a profile of `AppArmor` in an annotation.
const ARMOR: &str = "deprecated since v1.30; use the \"appArmorProfile\" field instead";

/// Returns the warnings about an object that is written; `old` is the present state, if any.
pub(crate) fn warnings(kind: &Kind, old: Option<&Value>, object: &Value) -> Vec<String> {
    let mut found = cluster::warnings(kind, old, object);
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
            found.extend(networking::warning(object));
            return found;
        }
        ("", "PersistentVolume") => {
            found.extend(volume(object));
            return found;
        }
        ("", "PersistentVolumeClaim") => {
            found.extend(older_class(object));
            return found;
        }
        _ => return found,
    };
    let makers = ["Deployment", "ReplicaSet", "ReplicationController", "Job", "CronJob"];
    if old.is_none() && makers.contains(&kind.name()) {
        found.extend(odd_name(object));
    }
    if old.is_some_and(|old| !is_judged_again(kind, old, object)) {
        return found;
    }
    let spec = path.iter().fold(object, |held, field| &held[*field]);
    let parent = path[..path.len() - 1].iter().fold(object, |held, field| &held[*field]);
    let above = path[..path.len() - 1].join(".");
    annotations(parent, spec, &above, &mut found);
    pod(spec, &path.join("."), &mut found);
    found
}

/// Whether a change gets the warnings about the pod spec: those of templates are not repeated
/// unless the generation grows, in a `DaemonSet` that of the template.
fn is_judged_again(kind: &Kind, old: &Value, new: &Value) -> bool {
    match kind.name() {
        "Pod" => true,
        "DaemonSet" => {
            let [old, new] = [old, new].map(|set| &set["spec"]["template"]);
            !kind.types.same("spec.template", old, new)
        }
        _ => old["metadata"]["generation"] != new["metadata"]["generation"],
    }
}

/// Appends the warnings about annotations that fields have replaced.
fn annotations(parent: &Value, spec: &Value, above: &str, found: &mut Vec<String>) {
    const OLD: [(&str, &str); 3] = [
        (
            "scheduler.alpha.kubernetes.io/critical-pod",
            "non-functional in v1.16+; use the \"priorityClassName\" field instead",
        ),
        (
            "security.alpha.kubernetes.io/sysctls",
            "non-functional in v1.11+; use the \"sysctls\" field instead",
        ),
        (
            "security.alpha.kubernetes.io/unsafe-sysctls",
            "non-functional in v1.11+; use the \"sysctls\" field instead",
        ),
    ];
    const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
    let held = &parent["metadata"]["annotations"];
    let dot = if above.is_empty() { "" } else { "." };
    let at = |key: &str| format!("{above}{dot}metadata.annotations[{key}]");
    for (key, text) in OLD.iter().filter(|(key, _)| held[*key].is_string()) {
        found.push(format!("{}: {text}", at(key)));
    }
    let text = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    if spec["securityContext"]["seccompProfile"].is_null() && held[SECCOMP].is_string() {
        found.push(format!("{}: {text}", at(SECCOMP)));
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (_, one) in items(&spec[list]) {
            let name = self::text(one, "name");
            let key = format!("container.seccomp.security.alpha.kubernetes.io/{name}");
            if one["securityContext"]["seccompProfile"].is_null() && held[&key].is_string() {
                found.push(format!("{}: {text}", at(&key)));
            }
            let key = format!("{APP_ARMOR_OF}{name}");
            let has_field = [spec, one]
                .iter()
                .any(|held| held["securityContext"]["appArmorProfile"].is_object());
            // Those of Pods come earlier, before the field gets the profile of the annotation.
            if held[&key].is_string() && !has_field && !above.is_empty() {
                found.push(format!("{}: {ARMOR}", at(&key)));
            }
        }
    }
}

/// Returns the warnings about annotations of a new Pod whose profiles no field has.
pub(crate) fn armor_warnings(kind: &Kind, pod: &Value) -> Vec<String> {
    if !kind.is("", "pods") {
        return Vec::new();
    }
    let annotations = &pod["metadata"]["annotations"];
    let all = ["containers", "initContainers", "ephemeralContainers"];
    let containers = all.iter().flat_map(|list| items(&pod["spec"][*list]));
    let bare = containers.filter(|(_, one)| !one["securityContext"]["appArmorProfile"].is_object());
    let keys = bare.map(|(_, one)| format!("{APP_ARMOR_OF}{}", text(one, "name")));
    let own = &pod["spec"]["securityContext"]["appArmorProfile"];
    let warnings = keys.filter(|key| {
        let profile = annotations[key].as_str();
        profile.is_some() && admission::armor(profile).is_none_or(|profile| profile != *own)
    });
    warnings.map(|key| format!("metadata.annotations[{key}]: {ARMOR}")).collect()
}

/// Appends the warnings about labels of nodes that have others in their place.
fn node_labels(spec: &Value, at: &str, found: &mut Vec<String>) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    for (key, _) in spec["nodeSelector"].as_object().into_iter().flatten() {
        let warnings = cluster::node_label(key);
        found.extend(warnings.map(|text| format!("{at}.nodeSelector[{key}]: {text}")));
    }
    let (nodes, at_nodes) =
        (&spec["affinity"]["nodeAffinity"], format!("{at}.affinity.nodeAffinity"));
    for (index, one) in items(&nodes[REQUIRED]["nodeSelectorTerms"]) {
        cluster::term(one, &format!("{at_nodes}.{REQUIRED}.nodeSelectorTerms[{index}]"), found);
    }
    for (index, one) in items(&nodes[PREFERRED]) {
        let at = format!("{at_nodes}.{PREFERRED}[{index}].preference");
        cluster::term(&one["preference"], &at, found);
    }
    for (index, one) in items(&spec["topologySpreadConstraints"]) {
        let key = text(one, "topologyKey");
        let warnings = cluster::node_label(key);
        found.extend(warnings.map(|text| {
            format!("{at}.topologySpreadConstraints[{index}].topologyKey: {key} is {text}")
        }));
    }
    let null = "a null labelSelector results in matching no pod";
    for field in ["podAffinity", "podAntiAffinity"] {
        let (pods, at) = (&spec["affinity"][field], format!("{at}.affinity.{field}"));
        for (index, one) in items(&pods[REQUIRED]) {
            if one["labelSelector"].is_null() {
                found.push(format!("{at}.{REQUIRED}[{index}].labelSelector: {null}"));
            }
        }
        for (index, one) in items(&pods[PREFERRED]) {
            if one["podAffinityTerm"]["labelSelector"].is_null() {
                let at = format!("{at}.{PREFERRED}[{index}].podAffinityTerm.labelSelector");
                found.push(format!("{at}: {null}"));
            }
        }
    }
}

/// Appends the warnings about volumes that nothing provides any more.
fn volumes(spec: &Value, at: &str, found: &mut Vec<String>) {
    const OLD: [(&str, &str, &str); 9] = [
        ("photonPersistentDisk", "", "deprecated in v1.11, non-functional in v1.16+"),
        ("gitRepo", "", "deprecated in v1.11, and disabled by default in v1.33+"),
        ("scaleIO", "", "deprecated in v1.16, non-functional in v1.22+"),
        ("flocker", "", "deprecated in v1.22, non-functional in v1.25+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("quobyte", "", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "", "deprecated in v1.25, non-functional in v1.26+"),
        ("cephfs", "", "deprecated in v1.28, non-functional in v1.31+"),
        ("rbd", "", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    for (index, volume) in items(&spec["volumes"]) {
        let at = format!("{at}.volumes[{index}]");
        for (field, shown, text) in OLD.iter().filter(|(field, ..)| volume[*field].is_object()) {
            let shown = if shown.is_empty() { field } else { shown };
            found.push(format!("{at}.{shown}: {text}"));
        }
        let claim = &volume["ephemeral"]["volumeClaimTemplate"]["spec"];
        cluster::claim(claim, &format!("{at}.ephemeral.volumeClaimTemplate.spec"), found);
    }
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
    node_labels(spec, at, found);
    volumes(spec, at, found);
    let mut addresses = BTreeSet::new();
    for (index, alias) in items(&spec["hostAliases"]) {
        let address = text(alias, "ip");
        if !addresses.insert(address) {
            found.push(format!("{at}.hostAliases[{index}].ip: duplicate ip {address:?}"));
        }
    }
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
    ports(spec, at, found);
    for (index, server) in items(&spec["dnsConfig"]["nameservers"]) {
        let at = format!("{at}.dnsConfig.nameservers[{index}]");
        found.extend(cluster::ip_warning(&at, server.as_str().unwrap_or_default()));
    }
    for (index, alias) in items(&spec["hostAliases"]) {
        let at = format!("{at}.hostAliases[{index}].ip");
        found.extend(cluster::ip_warning(&at, text(alias, "ip")));
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
}

/// Appends the warnings about ports of all containers, and about their names.
fn ports(spec: &Value, at: &str, found: &mut Vec<String>) {
    let mut seen: BTreeMap<(i64, &str), Vec<(String, &Value)>> = BTreeMap::new();
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    let mut named = Vec::new();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for (index, container) in items(&spec[list]) {
            for (number, port) in items(&container["ports"]) {
                let at = format!("{at}.{list}[{index}].ports[{number}]");
                let (host, address) = (integer(port, "hostPort"), text(port, "hostIP"));
                let (own, protocol) = (integer(port, "containerPort"), text(port, "protocol"));
                let name = text(port, "name");
                if !address.is_empty() && host == 0 {
                    found.push(format!(
                        "{at}: hostIP set without hostPort: {{Name:{name} HostPort:{host} ContainerPort:{own} Protocol:{protocol} HostIP:{address}}}"
                    ));
                }
                let others = seen.entry((own, protocol)).or_default();
                for (other_at, other) in &*others {
                    let (its_host, its_address) =
                        (integer(other, "hostPort"), text(other, "hostIP"));
                    let how = if address == its_address && host == its_host {
                        "duplicate"
                    } else if host == 0 || its_host == 0 {
                        "overlapping"
                    } else if host == its_host && address.is_empty() != its_address.is_empty() {
                        "dangerously ambiguous"
                    } else {
                        continue;
                    };
                    found.push(format!("{at}: {how} port definition with {other_at}"));
                }
                others.push((at.clone(), port));
                match names.get(name) {
                    _ if name.is_empty() => {}
                    Some(other) => named.push(format!(
                        "{at}: duplicate port name {name:?} with {other}, services and probes that select ports by name will use {other}"
                    )),
                    None => drop(names.insert(name, at)),
                }
            }
        }
    }
    found.extend(named);
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
