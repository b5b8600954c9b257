//! Checks of the volumes of Pods, of references to fields of the Pod, and of security contexts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{claims as devices, duplicate, items, named, text};
use crate::kinds::quantity::Quantity;
use crate::kinds::validate::cluster;
use crate::kinds::validate::fields::is_empty;
use crate::kinds::validate::volumes as claims;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};
use crate::typed::internal;

/// Sources of volumes, in the order in which the server looks at them.
pub(in crate::kinds::validate) const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "configMap",
    "azureFile",
    "flexVolume",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

/// Fields of the Pod that a variable can have as a value.
const OF_VARIABLES: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Fields of the Pod that a file of a volume can have as content.
const OF_FILES: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// Kinds of paths of the node, in the order in which the server names them.
const PATHS: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// Other fields that have a name in references, although nothing can refer to them.
const KNOWN: [&str; 4] = ["spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"];

/// Appends the faults of a list of volumes, and returns the valid volumes by name.
pub(super) fn check<'a>(
    volumes: &'a Value,
    at: &str,
    causes: &mut Vec<Cause>,
) -> BTreeMap<&'a str, &'a Value> {
    let mut good = BTreeMap::new();
    for (index, volume) in items(volumes) {
        let at = format!("{at}[{index}]");
        let before = causes.len();
        self::volume(volume, &at, causes);
        let (at, name) = (format!("{at}.name"), text(volume, "name"));
        if name.is_empty() {
            causes.push(required(&at, ""));
        } else {
            named(names::label(name), name, &at, causes);
        }
        if good.contains_key(name) {
            causes.push(duplicate(&at, name));
        }
        // Mounts of a bad volume are refused like mounts of a missing volume.
        if causes.len() == before {
            good.insert(name, volume);
        }
    }
    good
}

/// Appends the faults of a volume.
fn volume(volume: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut held = SOURCES.into_iter().filter(|source| !volume[*source].is_null());
    if let Some(first) = held.next() {
        source(first, &volume[first], &format!("{at}.{first}"), causes);
    }
    for more in held {
        // Two of the paths are misspelled upstream.
        let shown = match more {
            "downwardAPI" => "downwarAPI",
            "cephfs" => "cephFS",
            other => other,
        };
        let detail = "may not specify more than 1 volume type";
        causes.push(forbidden_field(&format!("{at}.{shown}"), detail));
    }
}

/// Appends the faults of the source of a volume.
pub(in crate::kinds::validate) fn source(
    name: &str,
    source: &Value,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    let mut need = |field: &str| {
        if text(source, field).is_empty() {
            causes.push(required(&format!("{at}.{field}"), ""));
        }
    };
    match name {
        "secret" => need("secretName"),
        "configMap" => need("name"),
        "persistentVolumeClaim" => need("claimName"),
        "hostPath" => {
            need("path");
            host_path(source, at, causes);
        }
        "gitRepo" => need("repository"),
        "image" => {
            need("reference");
            let policy = text(source, "pullPolicy");
            let known = ["Always", "IfNotPresent", "Never"];
            if !policy.is_empty() && !known.contains(&policy) {
                causes.push(unsupported(&format!("{at}.pullPolicy"), policy, &known));
            }
        }
        "iscsi" => ["targetPortal", "iqn"].into_iter().for_each(need),
        "nfs" => {
            ["server", "path"].into_iter().for_each(need);
            let path = text(source, "path");
            if !path.starts_with('/') {
                let at = format!("{at}.path");
                causes.push(invalid_value(&at, &path.into(), "must be an absolute path"));
            }
        }
        "fc" => {
            let is_there = |field: &str| !is_empty(&source[field]);
            if is_there("targetWWNs") == is_there("wwids") {
                let why = "must specify either targetWWNs or wwids, but not both";
                causes.push(required(&format!("{at}.targetWWNs"), why));
            }
        }
        "csi" => csi(source, at, causes),
        "ephemeral" => {
            let (template, at) =
                (&source["volumeClaimTemplate"], format!("{at}.volumeClaimTemplate"));
            if template.is_null() {
                causes.push(required(&at, ""));
            } else {
                claims::claim(&template["spec"], &format!("{at}.spec"), causes);
            }
        }
        "emptyDir" => {
            let limit = Quantity::parse(&source["sizeLimit"]);
            if limit.is_some_and(Quantity::is_negative) {
                let why = "SizeLimit field must be a valid resource quantity";
                causes.push(forbidden_field(&format!("{at}.sizeLimit"), why));
            }
        }
        "downwardAPI" => {
            // The paths of these faults lack the list, upstream too.
            for (_, item) in items(&source["items"]) {
                file(item, at, causes);
            }
        }
        "projected" => projected(source, at, causes),
        _ => {}
    }
    if ["secret", "configMap", "downwardAPI", "projected"].contains(&name) {
        mode(&source["defaultMode"], &format!("{at}.defaultMode"), causes);
    }
    if ["secret", "configMap"].contains(&name) {
        for (index, item) in items(&source["items"]) {
            key(item, &format!("{at}.items[{index}]"), causes);
        }
    }
}

/// Appends the faults of a volume of a driver.
fn csi(source: &Value, at: &str, causes: &mut Vec<Cause>) {
    cluster::driver_name(text(source, "driver"), &format!("{at}.driver"), causes);
    let secret = &source["nodePublishSecretRef"];
    if secret.is_object() && text(secret, "name").is_empty() {
        causes.push(required(&format!("{at}.nodePublishSecretRef.name"), ""));
    }
}

/// Appends the faults of a path of the node.
fn host_path(source: &Value, at: &str, causes: &mut Vec<Cause>) {
    let path = text(source, "path");
    if path.is_empty() {
        return;
    }
    steps_back(path, &format!("{at}.path"), causes);
    let kind = text(source, "type");
    if !PATHS.contains(&kind) {
        causes.push(unsupported(&format!("{at}.type"), kind, &PATHS));
    }
}

/// Appends the faults of a volume with files of several sources.
fn projected(volume: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, source) in items(&volume["sources"]) {
        let at_source = format!("{at}.sources[{index}]");
        for kind in ["secret", "configMap"] {
            let held = &source[kind];
            let at_held = format!("{at_source}.{kind}");
            if held.is_object() && text(held, "name").is_empty() {
                causes.push(required(&format!("{at_held}.name"), ""));
            }
            for (number, item) in items(&held["items"]) {
                key(item, &format!("{at_held}.items[{number}]"), causes);
                let path = text(item, "path");
                if !path.is_empty() && !seen.insert(path) {
                    let why = "conflicting duplicate paths";
                    causes.push(invalid_value(at, &text(held, "name").into(), why));
                }
            }
        }
        let token = &source["serviceAccountToken"];
        if token.is_object() {
            let at_token = format!("{at_source}.serviceAccountToken");
            claims::token_time(&token["expirationSeconds"], &at_token, causes);
            // The path of this fault lacks the source.
            let at_path = format!("{at}.path");
            match text(token, "path") {
                "" => causes.push(required(&at_path, "")),
                path => local(path, &at_path, causes),
            }
        }
        let kinds = [
            "secret",
            "configMap",
            "downwardAPI",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ];
        if kinds.iter().filter(|kind| source[**kind].is_object()).count() > 1 {
            let why = "may not specify more than 1 volume type per source";
            causes.push(forbidden_field(&at_source, why));
        }
        for (_, item) in items(&source["downwardAPI"]["items"]) {
            file(item, &format!("{at_source}.downwardAPI"), causes);
            let path = text(item, "path");
            if !path.is_empty() && !seen.insert(path) {
                causes.push(invalid_value(at, &path.into(), "conflicting duplicate paths"));
            }
        }
    }
}

/// Appends the faults of a key that becomes a file.
fn key(item: &Value, at: &str, causes: &mut Vec<Cause>) {
    for field in ["key", "path"] {
        if text(item, field).is_empty() {
            causes.push(required(&format!("{at}.{field}"), ""));
        }
    }
    local(text(item, "path"), &format!("{at}.path"), causes);
    mode(&item["mode"], &format!("{at}.mode"), causes);
}

/// Appends the faults of a file with a field of the Pod.
fn file(item: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (at_path, path) = (format!("{at}.path"), text(item, "path"));
    if path.is_empty() {
        causes.push(required(&at_path, ""));
    }
    local(path, &at_path, causes);
    if item["fieldRef"].is_object() {
        reference(&item["fieldRef"], &format!("{at}.fieldRef"), &OF_FILES, causes);
        if item["resourceFieldRef"].is_object() {
            let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
            causes.push(invalid_value(at, &"resource".into(), why));
        }
    } else if item["resourceFieldRef"].is_object() {
        let at = format!("{at}.resourceFieldRef");
        devices::resource_field(&item["resourceFieldRef"], &at, true, causes);
    } else {
        causes.push(required(at, "one of fieldRef and resourceFieldRef is required"));
    }
    mode(&item["mode"], &format!("{at}.mode"), causes);
}

/// Appends the fault of permissions of files.
fn mode(mode: &Value, at: &str, causes: &mut Vec<Cause>) {
    if mode.as_i64().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        causes.push(invalid_value(at, mode, why));
    }
}

/// Appends the faults of a path within a volume.
pub(super) fn descending(path: &str, at: &str, causes: &mut Vec<Cause>) {
    if path.starts_with('/') {
        causes.push(invalid_value(at, &path.into(), "must be a relative path"));
    }
    steps_back(path, at, causes);
}

/// Appends the faults of a path within a volume whose names the kubelet does not use.
fn local(path: &str, at: &str, causes: &mut Vec<Cause>) {
    descending(path, at, causes);
    if path.starts_with("..") && !path.starts_with("../") {
        causes.push(invalid_value(at, &path.into(), "must not start with '..'"));
    }
}

/// Appends the fault of a path that leaves the folder.
fn steps_back(path: &str, at: &str, causes: &mut Vec<Cause>) {
    if path.split('/').any(|part| part == "..") {
        causes.push(invalid_value(at, &path.into(), "must not contain '..'"));
    }
}

/// Appends the faults of a reference in the source of a variable.
pub(super) fn variable(source: &Value, at: &str, causes: &mut Vec<Cause>) {
    reference(source, at, &OF_VARIABLES, causes);
}

/// Appends the faults of a container that may and may not gain privileges.
pub(super) fn escalation(context: &Value, at: &str, causes: &mut Vec<Cause>) {
    if context["allowPrivilegeEscalation"] != false {
        return;
    }
    let mut refuse = |what: &str| {
        let detail = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
        let shown = internal::compact("core.SecurityContext", context);
        let message = format!("Invalid value: {shown}: {detail}");
        causes.push(cause("FieldValueInvalid", at, message));
    };
    if context["privileged"] == true {
        refuse("`privileged` to true");
    }
    let added = context["capabilities"]["add"].as_array();
    if added.is_some_and(|added| added.iter().any(|name| name == "CAP_SYS_ADMIN")) {
        refuse("`capabilities.Add` CAP_SYS_ADMIN");
    }
}

/// Appends the fault of a reference to a field of the Pod.
fn reference(source: &Value, at: &str, allowed: &[&str], causes: &mut Vec<Cause>) {
    for field in ["apiVersion", "fieldPath"] {
        if is_empty(&source[field]) {
            causes.push(required(&format!("{at}.{field}"), ""));
            return;
        }
    }
    let at = format!("{at}.fieldPath");
    let path = source["fieldPath"].as_str().unwrap_or_default();
    let refuse = |why: &str| {
        let detail = format!("error converting fieldPath: {why}");
        invalid_value(&at, &path.into(), &detail)
    };
    if let Some((base, _)) = path.split_once("['").filter(|_| path.ends_with("']")) {
        if base != "metadata.annotations" && base != "metadata.labels" {
            causes.push(refuse(&format!("field label does not support subscript: {path}")));
        }
    } else if ![&OF_VARIABLES[..], &OF_FILES, &KNOWN].iter().any(|known| known.contains(&path)) {
        causes.push(refuse(&format!("field label not supported: {path}")));
    } else if !allowed.contains(&path) && path != "spec.host" {
        causes.push(unsupported(&at, path, allowed));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(volumes: Value) -> Vec<String> {
        let mut causes = Vec::new();
        check(&volumes, "spec.volumes", &mut causes);
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn a_reference_names_a_field_that_its_place_can_show() {
        let of = |path: &str| {
            let mut causes = Vec::new();
            let source = json!({"apiVersion": "v1", "fieldPath": path});
            variable(&source, "at", &mut causes);
            causes.into_iter().map(|cause| cause.message).collect::<Vec<_>>()
        };
        assert_eq!(of("metadata.name"), [""; 0]);
        assert_eq!(of("metadata.labels['a']"), [""; 0]);
        assert!(of("spec.nope")[0].ends_with("field label not supported: spec.nope"));
        assert!(of("metadata.labels")[0].contains("Unsupported value: \"metadata.labels\""));
        let item =
            json!({"path": "a", "fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}});
        let found = faults(json!([{"name": "v", "downwardAPI": {"items": [item]}}]));
        assert!(found[0].starts_with("spec.volumes[0].downwardAPI.fieldRef"));
    }

    #[test]
    fn a_volume_has_one_source() {
        let expected =
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type";
        let two = json!([{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]);
        assert_eq!(faults(two), [expected]);
    }

    #[test]
    fn volumes_have_names_of_their_own_and_sources_with_names() {
        let same = json!([{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]);
        assert_eq!(faults(same), ["spec.volumes[1].name: Duplicate value: \"v\""]);
        let nameless = json!([{"name": "v", "secret": {}}]);
        assert_eq!(faults(nameless), ["spec.volumes[0].secret.secretName: Required value"]);
        let back = json!([{"name": "v", "configMap": {
            "name": "c", "defaultMode": 512, "items": [{"key": "k", "path": "../a"}]}}]);
        assert_eq!(
            faults(back),
            [
                "spec.volumes[0].configMap.defaultMode: Invalid value: 512: must be a number \
                 between 0 and 0777 (octal), both inclusive",
                "spec.volumes[0].configMap.items[0].path: Invalid value: \"../a\": must not \
                 contain '..'",
            ]
        );
    }
}
