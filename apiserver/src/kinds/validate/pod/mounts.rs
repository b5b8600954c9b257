//! Checks of the places at which containers have volumes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{items, text, volumes};
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Appends the faults of the mounts and the devices of a container.
pub(super) fn check(
    container: &Value,
    at: &str,
    known: &BTreeMap<&str, &Value>,
    causes: &mut Vec<Cause>,
) {
    mounts(container, &format!("{at}.volumeMounts"), known, causes);
    devices(container, &format!("{at}.volumeDevices"), known, causes);
}

/// Whether an item of a list has a value in a field.
fn has(list: &Value, field: &str, value: &str) -> bool {
    items(list).any(|(_, one)| text(one, field) == value)
}

/// Returns the fault of a name that no volume has.
fn not_found(at: &str, name: &str) -> Cause {
    cause("FieldValueNotFound", at, format!("Not found: {}", Value::from(name)))
}

/// Appends the faults of the mounts of a container.
fn mounts(container: &Value, at: &str, known: &BTreeMap<&str, &Value>, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    let devices = &container["volumeDevices"];
    for (index, mount) in items(&container["volumeMounts"]) {
        let (name, path) = (text(mount, "name"), text(mount, "mountPath"));
        let at_name = format!("{at}[{index}].name");
        if name.is_empty() {
            causes.push(required(&at_name, ""));
        }
        if !known.contains_key(name) {
            causes.push(not_found(&at_name, name));
        }
        let at_path = format!("{at}[{index}].mountPath");
        if path.is_empty() {
            causes.push(required(&at_path, ""));
        }
        if !seen.insert(path) {
            causes.push(invalid_value(&at_path, &path.into(), "must be unique"));
        }
        if has(devices, "name", name) {
            let why = "must not already exist in volumeDevices";
            causes.push(invalid_value(&at_name, &name.into(), why));
        }
        if has(devices, "devicePath", path) {
            let why = "must not already exist as a path in volumeDevices";
            causes.push(invalid_value(&at_path, &path.into(), why));
        }
        // The paths of these faults lack the position.
        for field in ["subPath", "subPathExpr"] {
            volumes::descending(text(mount, field), &format!("{at}.{field}"), causes);
        }
        if !text(mount, "subPath").is_empty() && !text(mount, "subPathExpr").is_empty() {
            let why = "subPathExpr and subPath are mutually exclusive";
            let at = format!("{at}[{index}].subPathExpr");
            causes.push(invalid_value(&at, &mount["subPathExpr"], why));
        }
        propagation(mount, container, &format!("{at}.mountPropagation"), causes);
        recursive(mount, &format!("{at}.recursiveReadOnly"), causes);
    }
}

/// Appends the faults of a mount that others see, too.
fn propagation(mount: &Value, container: &Value, at: &str, causes: &mut Vec<Cause>) {
    let Some(mode) = mount["mountPropagation"].as_str() else { return };
    let known = ["Bidirectional", "HostToContainer", "None"];
    if !known.contains(&mode) {
        causes.push(unsupported(at, mode, &known));
    }
    if mode == "Bidirectional" && container["securityContext"]["privileged"] != true {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        causes.push(forbidden_field(at, why));
    }
}

/// Appends the faults of a mount that is read-only with all mounts below.
fn recursive(mount: &Value, at: &str, causes: &mut Vec<Cause>) {
    match mount["recursiveReadOnly"].as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if mount["readOnly"] != true {
                let why = "may only be specified when readOnly is true";
                causes.push(forbidden_field(at, why));
            }
            if !matches!(mount["mountPropagation"].as_str(), None | Some("None")) {
                let why = "may only be specified when mountPropagation is None or not specified";
                causes.push(forbidden_field(at, why));
            }
        }
        Some(other) => {
            causes.push(unsupported(at, other, &["Disabled", "Enabled", "IfPossible"]));
        }
    }
}

/// Appends the faults of the devices of a container.
fn devices(container: &Value, at: &str, known: &BTreeMap<&str, &Value>, causes: &mut Vec<Cause>) {
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    let mounts = &container["volumeMounts"];
    for (index, device) in items(&container["volumeDevices"]) {
        let (name, path) = (text(device, "name"), text(device, "devicePath"));
        let (at_name, at_path) =
            (format!("{at}[{index}].name"), format!("{at}[{index}].devicePath"));
        let mut refuse = |at: &str, value: &str, why: &str| {
            causes.push(invalid_value(at, &value.into(), why));
        };
        if names.contains(name) {
            refuse(&at_name, name, "must be unique");
        }
        let volume = known.get(name);
        let is_claim = |volume: &&&Value| {
            volume["persistentVolumeClaim"].is_object() || volume["ephemeral"].is_object()
        };
        if volume.is_some_and(|volume| !is_claim(&volume)) {
            let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for \
                       block mode";
            refuse(&at_name, name, why);
        }
        if paths.contains(path) {
            refuse(&at_path, path, "must be unique");
        }
        if path.split('/').any(|part| part == "..") {
            refuse(&at_path, path, "can not contain backsteps ('..')");
        } else {
            paths.insert(path);
        }
        if has(mounts, "name", name) {
            refuse(&at_name, name, "must not already exist in volumeMounts");
        }
        if has(mounts, "mountPath", path) {
            refuse(&at_path, path, "must not already exist as a path in volumeMounts");
        }
        if name.is_empty() {
            causes.push(required(&at_name, ""));
        } else {
            names.insert(name);
        }
        if volume.is_none() {
            causes.push(not_found(&at_name, name));
        }
        if path.is_empty() {
            causes.push(required(&at_path, ""));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(container: Value) -> Vec<String> {
        let (directory, claim) =
            (json!({"emptyDir": {}}), json!({"persistentVolumeClaim": {"claimName": "c"}}));
        let known = BTreeMap::from([("v", &directory), ("p", &claim)]);
        let mut causes = Vec::new();
        check(&container, "c", &known, &mut causes);
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn mounts_are_of_volumes_and_at_places_of_their_own() {
        assert_eq!(faults(json!({"volumeMounts": [{"name": "v", "mountPath": "/a"}]})), [""; 0]);
        let twice = json!([{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}]);
        assert_eq!(
            faults(json!({ "volumeMounts": twice })),
            [
                "c.volumeMounts[1].name: Not found: \"w\"",
                "c.volumeMounts[1].mountPath: Invalid value: \"/a\": must be unique",
            ]
        );
    }

    #[test]
    fn devices_are_claims_and_no_mounts() {
        let device = |name: &str| json!({"volumeDevices": [{"name": name, "devicePath": "/d"}]});
        assert_eq!(faults(device("p")), [""; 0]);
        assert!(faults(device("v"))[0].contains("for block mode"));
        assert_eq!(faults(device("x")), ["c.volumeDevices[0].name: Not found: \"x\""]);
        let mut both = device("p");
        both["volumeMounts"] = json!([{"name": "p", "mountPath": "/m"}]);
        assert_eq!(faults(both).len(), 2);
    }

    #[test]
    fn only_read_only_mounts_are_recursively_so() {
        let mount = |read_only: bool| {
            json!({"volumeMounts": [{"name": "v", "mountPath": "/a", "readOnly": read_only,
                "recursiveReadOnly": "Enabled"}]})
        };
        assert_eq!(faults(mount(true)), [""; 0]);
        assert!(faults(mount(false))[0].starts_with("c.volumeMounts.recursiveReadOnly: Forbidden"));
    }
}
