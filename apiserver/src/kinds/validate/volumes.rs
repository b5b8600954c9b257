//! Checks of claims of volumes, of the parts of volumes that several fields decide, and of storage
//! classes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::fields::{self, FieldCheck, is_empty, named};
use super::pod;
use crate::kinds::quantity::Quantity;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Modes of access.
const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

/// Appends the faults of the spec of a claim.
pub(super) fn claim(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    if is_empty(&spec["accessModes"]) {
        let why = "at least 1 access mode is required";
        causes.push(required(&format!("{at}.accessModes"), why));
    }
    if spec["selector"].is_object() {
        fields::judge(&FieldCheck::Selector, &spec["selector"], &format!("{at}.selector"), causes);
    }
    modes(&spec["accessModes"], &format!("{at}.accessModes"), causes);
    let at_storage = format!("{at}.resources[storage]");
    match Quantity::parse(&spec["resources"]["requests"]["storage"]) {
        None => causes.push(required(&at_storage, "")),
        Some(held) if held.is_negative() || held.is_zero() => {
            let shown = held.to_string().into();
            causes.push(invalid_value(&at_storage, &shown, "must be greater than zero"));
        }
        Some(_) => {}
    }
    if let Some(name) = spec["storageClassName"].as_str().filter(|name| !name.is_empty()) {
        let at = format!("{at}.storageClassName");
        named(names::subdomain(name), &spec["storageClassName"], &at, causes);
    }
    mode(spec, at, causes);
    sources(spec, at, causes);
    if let Some(name) = spec["volumeAttributesClassName"].as_str().filter(|name| !name.is_empty()) {
        let at = format!("{at}.volumeAttributesClassName");
        named(names::subdomain(name), &spec["volumeAttributesClassName"], &at, causes);
    }
}

/// Appends the faults of the source of a claim's data, which two fields name.
fn sources(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    for field in ["dataSource", "dataSourceRef"] {
        let source = &spec[field];
        if !source.is_object() {
            continue;
        }
        let at = format!("{at}.{field}");
        let text = |field: &str| source[field].as_str().unwrap_or_default();
        for part in ["name", "kind"] {
            if text(part).is_empty() {
                causes.push(required(&format!("{at}.{part}"), ""));
            }
        }
        if text("apiGroup").is_empty() && text("kind") != "PersistentVolumeClaim" {
            let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            causes.push(invalid_value(&at, &text("kind").into(), why));
        }
        if !text("apiGroup").is_empty() {
            let faults = names::subdomain(text("apiGroup"));
            named(faults, &source["apiGroup"], &format!("{at}.apiGroup"), causes);
        }
    }
    let (older, newer) = (&spec["dataSource"], &spec["dataSourceRef"]);
    let differs = ["apiGroup", "kind", "name"].iter().any(|field| older[*field] != newer[*field]);
    if older.is_object() && newer.is_object() && differs {
        // The value is a path, which is printed as an object without fields.
        causes.push(invalid_value(at, &serde_json::json!({}), "must match dataSourceRef"));
    }
}

/// Appends the faults of modes of access.
fn modes(modes: &Value, at: &str, causes: &mut Vec<Cause>) {
    let held: Vec<&str> =
        modes.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for mode in held.iter().filter(|mode| !MODES.contains(mode)) {
        causes.push(unsupported(at, mode, &MODES));
    }
    let is_single = held.contains(&"ReadWriteOncePod");
    if is_single && held.iter().any(|mode| *mode != "ReadWriteOncePod") {
        let why = "may not use ReadWriteOncePod with other access modes";
        causes.push(forbidden_field(at, why));
    }
}

/// Appends the fault of the form in which a volume is used.
fn mode(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let known = ["Block", "Filesystem"];
    if let Some(mode) = spec["volumeMode"].as_str().filter(|mode| !known.contains(mode)) {
        causes.push(unsupported(&format!("{at}.volumeMode"), mode, &known));
    }
}

/// Appends the faults of a volume's modes, policies and sources.
pub(super) fn volume(spec: &Value, causes: &mut Vec<Cause>) {
    modes(&spec["accessModes"], "spec.accessModes", causes);
    mode(spec, "spec", causes);
    let policy = spec["persistentVolumeReclaimPolicy"].as_str().unwrap_or_default();
    let at = "spec.persistentVolumeReclaimPolicy";
    let known = ["Delete", "Recycle", "Retain"];
    if !policy.is_empty() && !known.contains(&policy) {
        causes.push(unsupported(at, policy, &known));
    }
    if policy == "Recycle" && spec["hostPath"]["path"] == "/" {
        let why = "may not be 'recycle' for a hostPath mount of '/'";
        causes.push(forbidden_field(at, why));
    }
    let class = spec["storageClassName"].as_str().unwrap_or_default();
    if !class.is_empty() {
        let at = "spec.storageClassName";
        named(names::subdomain(class), &spec["storageClassName"], at, causes);
    }
    if let Some(class) = spec["volumeAttributesClassName"].as_str() {
        let at = "spec.volumeAttributesClassName";
        if class.is_empty() {
            causes.push(required(at, "an empty string is disallowed"));
        } else {
            named(names::subdomain(class), &class.into(), at, causes);
        }
        if !spec["csi"].is_object() {
            let why = "has to be specified when using volumeAttributesClassName";
            causes.push(required("spec.csi", why));
        }
    }
    let affinity = &spec["nodeAffinity"];
    if affinity.is_object() && !affinity["required"].is_object() {
        let why = "must specify required node constraints";
        causes.push(required("spec.nodeAffinity.required", why));
    } else if affinity.is_object() {
        pod::node_selector(&affinity["required"], "spec.nodeAffinity.required", causes);
    } else if spec["local"].is_object() {
        causes.push(required("spec.nodeAffinity", "Local volume requires node affinity"));
    }
    let mut held = pod::SOURCES.into_iter().filter(|source| spec[*source].is_object());
    if let Some(first) = held.next() {
        let at = format!("spec.{first}");
        pod::volume_source(first, &spec[first], &at, causes);
        if first == "csi" {
            driven(&spec["csi"], causes);
        }
    }
    for more in held {
        let why = "may not specify more than 1 volume type";
        causes.push(forbidden_field(&format!("spec.{more}"), why));
    }
}

/// Appends the faults of what a volume of a driver has more than one of a Pod.
fn driven(source: &Value, causes: &mut Vec<Cause>) {
    if is_empty(&source["volumeHandle"]) {
        causes.push(required("spec.csi.volumeHandle", ""));
    }
    type NameFaults = fn(&str) -> Vec<String>;
    let parts: [(&str, NameFaults); 2] = [("name", names::subdomain), ("namespace", names::label)];
    for field in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let secret = &source[field];
        for (part, faults) in parts.into_iter().filter(|_| secret.is_object()) {
            let (at, held) = (format!("spec.csi.{field}.{part}"), &secret[part]);
            match held.as_str().unwrap_or_default() {
                "" => causes.push(required(&at, "")),
                text => named(faults(text), held, &at, causes),
            }
        }
    }
}

/// Appends the fault of options for mounts in the annotation, which some sources do not have.
pub(super) fn options(object: &Value, causes: &mut Vec<Cause>) {
    const OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
    const WITH: [&str; 13] = [
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "nfs",
        "rbd",
        "quobyte",
        "iscsi",
        "cinder",
        "cephfs",
        "azureFile",
        "vsphereVolume",
        "azureDisk",
        "photonPersistentDisk",
    ];
    let has_options = WITH.iter().any(|source| object["spec"][*source].is_object());
    if object["metadata"]["annotations"][OPTIONS].is_string() && !has_options {
        let at = format!("metadata.annotations.{OPTIONS}");
        causes.push(forbidden_field(&at, "may not specify mount options for this volume type"));
    }
}

/// Appends the faults of a storage class.
pub(super) fn class(object: &Value, causes: &mut Vec<Cause>) {
    let known = ["Delete", "Retain"];
    let policy = object["reclaimPolicy"].as_str().filter(|held| !held.is_empty());
    if let Some(policy) = policy.filter(|policy| !known.contains(policy)) {
        causes.push(unsupported("reclaimPolicy", policy, &known));
    }
    let known = ["Immediate", "WaitForFirstConsumer"];
    let mode = object["volumeBindingMode"].as_str();
    if let Some(mode) = mode.filter(|mode| !known.contains(mode)) {
        causes.push(unsupported("volumeBindingMode", mode, &known));
    }
    for (index, term) in object["allowedTopologies"].as_array().into_iter().flatten().enumerate() {
        let at = format!("allowedTopologies[{index}].matchLabelExpressions");
        let mut keys = BTreeSet::new();
        for (number, one) in
            term["matchLabelExpressions"].as_array().into_iter().flatten().enumerate()
        {
            let at = format!("{at}[{number}]");
            let key = one["key"].as_str().unwrap_or_default();
            if is_empty(&one["values"]) {
                causes.push(required(&format!("{at}.values"), ""));
            }
            let mut seen = BTreeSet::new();
            for (place, value) in one["values"].as_array().into_iter().flatten().enumerate() {
                if !seen.insert(value.as_str().unwrap_or_default()) {
                    causes.push(duplicate(&format!("{at}.values[{place}]"), value));
                }
            }
            named(names::qualified(key), &key.into(), &format!("{at}.key"), causes);
            if !keys.insert(key) {
                causes.push(duplicate(&format!("{at}.key"), &one["key"]));
            }
        }
    }
}

/// Appends the faults of the time for which a token is valid.
pub(super) fn token_time(seconds: &Value, at: &str, causes: &mut Vec<Cause>) {
    let why = match seconds.as_i64() {
        Some(held) if held < 600 => "may not specify a duration less than 10 minutes",
        Some(held) if held > 1 << 32 => "may not specify a duration larger than 2^32 seconds",
        _ => return,
    };
    causes.push(invalid_value(&format!("{at}.expirationSeconds"), seconds, why));
}

/// Returns the fault of a value that is there twice.
fn duplicate(at: &str, value: &Value) -> Cause {
    cause("FieldValueDuplicate", at, format!("Duplicate value: {value}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_volume_of_a_driver_names_secrets_and_its_class() {
        let faults = |more: Value| {
            let mut spec = json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                "csi": {"driver": "Driver.example.com", "volumeHandle": "h"}});
            for (field, value) in more.as_object().unwrap() {
                spec["csi"][field] = value.clone();
            }
            spec["volumeAttributesClassName"] = spec["csi"]["class"].take();
            let mut causes = Vec::new();
            volume(&spec, &mut causes);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        assert_eq!(faults(json!({})), [""; 0], "a driver is named in any case");
        assert_eq!(faults(json!({"driver": "a".repeat(64)})), ["spec.csi.driver"]);
        let secret = "spec.csi.controllerExpandSecretRef";
        let wanted = [format!("{secret}.name"), format!("{secret}.namespace")];
        assert_eq!(faults(json!({"controllerExpandSecretRef": {}})), wanted);
        let bad = json!({"nodeExpandSecretRef": {"name": "a", "namespace": "a.b"}});
        assert_eq!(faults(bad), ["spec.csi.nodeExpandSecretRef.namespace"]);
        assert_eq!(faults(json!({"class": ""})), ["spec.volumeAttributesClassName"]);
    }

    #[test]
    fn claims_ask_for_storage_in_known_modes() {
        let faults = |field: &str, value: Value| {
            let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
            spec[field] = value;
            let mut causes = Vec::new();
            claim(&spec, "spec", &mut causes);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        assert_eq!(faults("volumeMode", json!("Block")), [""; 0]);
        assert_eq!(faults("volumeMode", json!("X")), ["spec.volumeMode"]);
        assert_eq!(faults("accessModes", json!(["X"])), ["spec.accessModes"]);
        let both = json!(["ReadWriteOncePod", "ReadWriteOnce"]);
        assert_eq!(faults("accessModes", both), ["spec.accessModes"]);
        let none = json!({"requests": {"storage": "0"}});
        assert_eq!(faults("resources", none), ["spec.resources[storage]"]);
    }
}
