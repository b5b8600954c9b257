//! Checks of the volumes of Pods, of references to fields of the Pod, and of security contexts.

use serde_json::{Value, json};

use super::fields::is_empty;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Sources of volumes, in the order in which the server looks at them.
const SOURCES: [&str; 30] = [
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

/// Fields of the Pod that a variable can have as its value.
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

/// Fields of the Pod that a file of a volume can have as its content.
const OF_FILES: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// Other fields that have a name in references, although nothing can refer to them.
const KNOWN: [&str; 4] = ["spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host"];

/// Appends the faults of the spec of a Pod.
pub(super) fn check(spec: &Value, causes: &mut Vec<Cause>) {
    for (index, volume) in spec["volumes"].as_array().into_iter().flatten().enumerate() {
        self::volume(volume, &format!("spec.volumes[{index}]"), causes);
    }
    for list in ["containers", "initContainers"] {
        for (index, one) in spec[list].as_array().into_iter().flatten().enumerate() {
            container(one, &format!("spec.{list}[{index}]"), causes);
        }
    }
}

/// Appends the faults of a volume.
fn volume(volume: &Value, at: &str, causes: &mut Vec<Cause>) {
    let held = SOURCES.iter().filter(|source| !volume[**source].is_null());
    for source in held.skip(1) {
        let detail = "may not specify more than 1 volume type";
        causes.push(forbidden_field(&format!("{at}.{source}"), detail));
    }
    let items = volume["downwardAPI"]["items"].as_array().into_iter().flatten();
    for (index, item) in items.enumerate().filter(|(_, item)| item["fieldRef"].is_object()) {
        let at = format!("{at}.downwardAPI.items[{index}].fieldRef");
        reference(&item["fieldRef"], &at, &OF_FILES, causes);
    }
}

/// Appends the faults of the variables and the security context of a container.
fn container(container: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (index, variable) in container["env"].as_array().into_iter().flatten().enumerate() {
        let source = &variable["valueFrom"]["fieldRef"];
        if source.is_object() {
            let at = format!("{at}.env[{index}].valueFrom.fieldRef");
            reference(source, &at, &OF_VARIABLES, causes);
        }
    }
    let context = &container["securityContext"];
    if context["allowPrivilegeEscalation"] != false {
        return;
    }
    let mut refuse = |what: &str| {
        let detail = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
        let message = format!("Invalid value: {}: {detail}", shown(context));
        causes.push(cause("FieldValueInvalid", &format!("{at}.securityContext"), message));
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

/// Returns a security context as Go prints the server's own type.
fn shown(context: &Value) -> String {
    let capabilities = match &context["capabilities"] {
        Value::Null => "null".to_owned(),
        held => format!("{{\"Add\":{},\"Drop\":{}}}", held["add"], held["drop"]),
    };
    let options = |field: &str, names: &[(&str, &str, Value)]| {
        let held = &context[field];
        let part = |(name, key, zero): &(&str, &str, Value)| {
            let value = held.get(*key).unwrap_or(zero);
            format!("{name:?}:{value}")
        };
        let parts: Vec<String> = names.iter().map(part).collect();
        if held.is_null() { "null".to_owned() } else { format!("{{{}}}", parts.join(",")) }
    };
    let text = |name, key| (name, key, json!(""));
    let none = |name, key| (name, key, Value::Null);
    let linux =
        [text("User", "user"), text("Role", "role"), text("Type", "type"), text("Level", "level")];
    let windows = [
        none("GMSACredentialSpecName", "gmsaCredentialSpecName"),
        none("GMSACredentialSpec", "gmsaCredentialSpec"),
        none("RunAsUserName", "runAsUserName"),
        none("HostProcess", "hostProcess"),
    ];
    let profile = [text("Type", "type"), none("LocalhostProfile", "localhostProfile")];
    let plain = |field: &str| context[field].to_string();
    let parts = [
        ("Capabilities", capabilities),
        ("Privileged", plain("privileged")),
        ("SELinuxOptions", options("seLinuxOptions", &linux)),
        ("WindowsOptions", options("windowsOptions", &windows)),
        ("RunAsUser", plain("runAsUser")),
        ("RunAsGroup", plain("runAsGroup")),
        ("RunAsNonRoot", plain("runAsNonRoot")),
        ("ReadOnlyRootFilesystem", plain("readOnlyRootFilesystem")),
        ("AllowPrivilegeEscalation", plain("allowPrivilegeEscalation")),
        ("ProcMount", plain("procMount")),
        ("SeccompProfile", options("seccompProfile", &profile)),
        ("AppArmorProfile", options("appArmorProfile", &profile)),
    ];
    let parts: Vec<String> = parts.iter().map(|(name, text)| format!("{name:?}:{text}")).collect();
    format!("{{{}}}", parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(spec: &Value) -> Vec<String> {
        let mut causes = Vec::new();
        check(spec, &mut causes);
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn a_reference_names_a_field_that_its_place_can_show() {
        let of = |path: &str| {
            let source = json!({"fieldRef": {"apiVersion": "v1", "fieldPath": path}});
            faults(&json!({"containers": [{"env": [{"name": "A", "valueFrom": source}]}]}))
        };
        assert_eq!(of("metadata.name"), [] as [&str; 0]);
        assert_eq!(of("metadata.labels['a']"), [] as [&str; 0]);
        assert!(of("spec.nope")[0].ends_with("field label not supported: spec.nope"));
        assert!(of("metadata.labels")[0].contains("Unsupported value: \"metadata.labels\""));
        let item =
            json!({"path": "a", "fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}});
        let spec = json!({"volumes": [{"name": "v", "downwardAPI": {"items": [item]}}]});
        assert!(faults(&spec)[0].starts_with("spec.volumes[0].downwardAPI.items[0].fieldRef"));
    }

    #[test]
    fn a_volume_has_one_source() {
        let spec = json!({"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]});
        let expected =
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type";
        assert_eq!(faults(&spec), [expected]);
    }
}
