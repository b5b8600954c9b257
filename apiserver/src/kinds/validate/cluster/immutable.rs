//! Checks of changes: fields that keep the value of the creation.

// DESIGN.md, 286: What never changes is a row, and what is off is dropped late

use std::collections::BTreeSet;

use serde_json::Value;

use super::{addresses, items, nodes, text};
use crate::kinds::Kind;
use crate::kinds::quantity::Quantity;
use crate::kinds::validate::fields::invalid_selector;
use crate::kinds::validate::pod::SOURCES;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value};
use crate::typed::{internal, line_diff};

/// Text of most of these faults.
const FIXED: &str = "field is immutable";
/// Annotation with the storage class, from before there was a field.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Fields that keep their value: the path, the path in the fault, and the server's own type of the
/// value if that is a structure.
type FixedFields = &'static [(&'static str, &'static str, &'static str)];

/// Fields that keep their value, by group and kind.
const FIELDS: [(&str, &str, FixedFields); 15] = [
    ("", "PersistentVolume", &[("spec.volumeMode", "volumeMode", "")]),
    ("", "PersistentVolumeClaim", &[("spec.volumeMode", "volumeMode", "")]),
    ("apps", "ControllerRevision", &[("data", "data", "")]),
    ("discovery.k8s.io", "EndpointSlice", &[("addressType", "addressType", "")]),
    (
        "events.k8s.io",
        "Event",
        &[
            ("regarding", "involvedObject", "core.ObjectReference"),
            // Upstream reports the fault twice, too.
            ("reason", "reason", ""),
            ("reason", "reason", ""),
            ("note", "message", ""),
            ("type", "type", ""),
            ("eventTime", "eventTime", ""),
            ("action", "action", ""),
            ("related", "related", "core.ObjectReference"),
            ("reportingController", "reportingController", ""),
            ("reportingInstance", "reportingInstance", ""),
        ],
    ),
    (
        "networking.k8s.io",
        "IPAddress",
        &[("spec.parentRef", "spec.parentRef", "networking.ParentReference")],
    ),
    ("networking.k8s.io", "IngressClass", &[("spec.controller", "spec.controller", "")]),
    ("node.k8s.io", "RuntimeClass", &[("handler", "handler", "")]),
    ("resource.k8s.io", "ResourceClaim", &[("spec", "spec", "resource.ResourceClaimSpec")]),
    (
        "resource.k8s.io",
        "ResourceClaimTemplate",
        &[("spec", "spec", "resource.ResourceClaimTemplateSpec")],
    ),
    ("scheduling.k8s.io", "PriorityClass", &[("preemptionPolicy", "preemptionPolicy", "")]),
    (
        "storage.k8s.io",
        "CSIDriver",
        &[
            // The name is misspelled upstream.
            ("spec.attachRequired", "spec.attachedRequired", ""),
            ("spec.volumeLifecycleModes", "spec.volumeLifecycleModes", ""),
        ],
    ),
    ("storage.k8s.io", "CSIStorageCapacity", &[("storageClassName", "storageClassName", "")]),
    (
        "storage.k8s.io",
        "StorageClass",
        &[
            ("parameters", "parameters", ""),
            ("provisioner", "provisioner", ""),
            ("reclaimPolicy", "reclaimPolicy", ""),
            ("volumeBindingMode", "volumeBindingMode", ""),
        ],
    ),
    ("storage.k8s.io", "VolumeAttachment", &[("spec", "spec", "storage.VolumeAttachmentSpec")]),
];

/// Returns the faults of a change of an object of a built-in kind.
pub(in crate::kinds::validate) fn change(kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
    let (group, name) = (kind.served.group.as_str(), kind.name());
    let same = |path: &str, held: &Value, sent: &Value| kind.types.same(path, held, sent);
    // The mode of volumes and claims is judged behind other parts.
    let is_late = group.is_empty() && name.starts_with("PersistentVolume");
    let mut causes = if is_late { Vec::new() } else { fixed(kind, old, new) };
    match (group, name) {
        ("", "Node") => causes.extend(nodes::change(old, new)),
        ("", "PersistentVolume") => {
            causes.extend(volume(kind, old, new));
            causes.extend(fixed(kind, old, new));
            let (held, wanted) = (&old["spec"]["nodeAffinity"], &new["spec"]["nodeAffinity"]);
            if held.is_object() && !same("spec.nodeAffinity", held, wanted) {
                let shown = match wanted {
                    Value::Null => "null".to_owned(),
                    wanted => internal::compact("core.VolumeNodeAffinity", wanted),
                };
                causes.push(cause(
                    "FieldValueInvalid",
                    "nodeAffinity",
                    format!(
                        "Invalid value: {shown}: {FIXED}, except for updating from beta label to GA"
                    ),
                ));
            }
            causes.extend(attributes(old, new));
        }
        ("", "PersistentVolumeClaim") => {
            causes.extend(claim(kind, old, new));
            causes.extend(fixed(kind, old, new));
            causes.extend(claimed_attributes(old, new));
        }
        ("", "ResourceQuota") => causes.extend(scopes(&old["spec"], &new["spec"])),
        ("apps", "StatefulSet") => causes.extend(stateful(kind, &old["spec"], &new["spec"])),
        ("networking.k8s.io", "ServiceCIDR") => {
            blocks(&old["spec"]["cidrs"], &new["spec"]["cidrs"], &mut causes);
        }
        ("storage.k8s.io", "CSINode") => drivers(kind, &old["spec"], &new["spec"], &mut causes),
        ("storage.k8s.io", "CSIStorageCapacity") => {
            let at = "nodeTopology";
            if !same(at, &old[at], &new[at]) {
                causes.push(invalid_selector(at, &new[at], FIXED));
            }
        }
        ("storage.k8s.io", "VolumeAttributesClass") => {
            for field in ["driverName", "parameters"] {
                if !same(field, &old[field], &new[field]) {
                    let why = format!("updates to {field} are forbidden.");
                    causes.push(forbidden_field(field, &why));
                }
            }
        }
        _ => {}
    }
    causes
}

/// Returns the faults of fields of the table.
fn fixed(kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
    let of = (kind.served.group.as_str(), kind.name());
    let rows = FIELDS.iter().filter(|row| (row.0, row.1) == of);
    let mut causes = Vec::new();
    for (path, at, own) in rows.flat_map(|row| row.2) {
        let pointer = format!("/{}", path.replace('.', "/"));
        let (before, after) = (old.pointer(&pointer), new.pointer(&pointer));
        let [held, sent] = [before, after].map(|value| value.unwrap_or(&Value::Null));
        if kind.types.same(path, held, sent) {
            continue;
        }
        // A text without a pointer is empty when unset.
        let unset = if held.is_string() { Value::from("") } else { Value::Null };
        let value = after.unwrap_or(&unset);
        let shown = if own.is_empty() { value.to_string() } else { internal::compact(own, value) };
        causes.push(cause("FieldValueInvalid", at, format!("Invalid value: {shown}: {FIXED}")));
    }
    causes
}

/// Returns the fault of a change of a volume's source.
fn volume(kind: &Kind, old: &Value, new: &Value) -> Option<Cause> {
    const TYPE: &str = "core.PersistentVolumeSource";
    let sources = |spec: &Value| {
        let held = SOURCES.iter().filter(|source| !spec[**source].is_null());
        held.map(|source| ((*source).to_owned(), spec[*source].clone())).collect::<Value>()
    };
    let (before, mut after) = (sources(&old["spec"]), sources(&new["spec"]));
    // The secret for growth may be added.
    let secret = "controllerExpandSecretRef";
    if before["csi"].is_object()
        && before["csi"][secret].is_null()
        && let Some(Value::Object(csi)) = after.get_mut("csi")
    {
        csi.remove(secret);
    }
    (!kind.types.same("spec", &before, &after)).then(|| {
        let diff =
            line_diff::unified(&internal::lines(TYPE, &before), &internal::lines(TYPE, &after));
        let why = format!("spec.persistentvolumesource is immutable after creation\n{diff}");
        forbidden_field("spec.persistentvolumesource", &why)
    })
}

/// Returns the fault of a volume that gives up its class of attributes.
fn attributes(old: &Value, new: &Value) -> Option<Cause> {
    let class = |object: &Value| object["spec"]["volumeAttributesClassName"].is_null();
    (!class(old) && class(new)).then(|| {
        let why = "update from non-nil value to nil is forbidden";
        forbidden_field("spec.volumeAttributesClassName", why)
    })
}

/// Returns the fault of a claim that gives up the class of attributes that its volume has.
fn claimed_attributes(old: &Value, new: &Value) -> Option<Cause> {
    let field = "volumeAttributesClassName";
    let class = &new["spec"][field];
    if *class == old["spec"][field] || old["status"]["currentVolumeAttributesClassName"].is_null() {
        return None;
    }
    let what = match class.as_str() {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return None,
    };
    let why = format!(
        "update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
    );
    Some(forbidden_field(&format!("spec.{field}"), &why))
}

/// Returns the faults of a change of a claim.
fn claim(kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
    const TYPE: &str = "core.PersistentVolumeClaimSpec";
    let mut causes = Vec::new();
    let (mut before, mut after) = (old["spec"].clone(), new["spec"].clone());
    let class = |object: &Value| object["metadata"]["annotations"][CLASS].clone();
    let (old_class, new_class) = (class(old), class(new));
    if text(&before, "volumeName").is_empty() {
        before["volumeName"] = after["volumeName"].clone();
    }
    let (name, sent) = (&before["storageClassName"], &after["storageClassName"]);
    let takes_over = old_class.is_string()
        && name.is_null()
        && *sent == old_class
        && (new_class.is_null() || new_class == old_class);
    let was_unset = name.is_null() && !sent.is_null();
    if takes_over || was_unset && (old_class.is_null() || *sent == old_class) {
        after["storageClassName"] = Value::Null;
    }
    if !takes_over && old_class != new_class {
        let at = format!("metadata.annotations.{CLASS}");
        let value = new_class.as_str().unwrap_or_default();
        causes.push(invalid_value(&at, &value.into(), FIXED));
    }
    let storage = |spec: &Value| spec["resources"]["requests"]["storage"].clone();
    if new["status"]["phase"] == "Bound" {
        if after["resources"]["requests"].is_object() {
            after["resources"]["requests"]["storage"] = storage(&before);
        }
        after["volumeAttributesClassName"] = before["volumeAttributesClassName"].clone();
    }
    for spec in [&mut before, &mut after] {
        if let Value::Object(fields) = spec {
            fields.retain(|_, value| !value.is_null());
        }
    }
    if !kind.types.same("spec", &before, &after) {
        let diff =
            line_diff::unified(&internal::lines(TYPE, &before), &internal::lines(TYPE, &after));
        let why = format!(
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims\n{diff}"
        );
        causes.push(forbidden_field("spec", &why));
    }
    let amount = |value: &Value| Quantity::parse(value).unwrap_or(Quantity::whole(0));
    let (held, wanted) = (amount(&storage(&old["spec"])), amount(&storage(&new["spec"])));
    if wanted < held && wanted <= amount(&old["status"]["capacity"]["storage"]) {
        let why = "field can not be less than status.capacity";
        causes.push(forbidden_field("spec.resources.requests.storage", why));
    }
    causes
}

/// Returns the fault of a change of the scopes of a quota.
fn scopes(old: &Value, new: &Value) -> Option<Cause> {
    let set = |spec: &Value| -> BTreeSet<String> {
        items(&spec["scopes"]).filter_map(|(_, one)| one.as_str().map(str::to_owned)).collect()
    };
    (set(old) != set(new)).then(|| invalid_value("spec.scopes", &new["scopes"], FIXED))
}

/// Returns the fault of a change of a `StatefulSet` that would need other Pods.
fn stateful(kind: &Kind, old: &Value, new: &Value) -> Option<Cause> {
    const MUTABLE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    let rest = |spec: &Value| {
        let mut fields = spec.as_object().cloned().unwrap_or_default();
        fields.retain(|name, _| !MUTABLE.contains(&name.as_str()));
        Value::Object(fields)
    };
    let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
               'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
               'minReadySeconds' are forbidden";
    (!kind.types.same("spec", &rest(old), &rest(new))).then(|| forbidden_field("spec", why))
}

/// Appends the faults of a change of blocks of addresses, to which one of the other family may be
/// added.
fn blocks(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let count = |list: &Value| list.as_array().map_or(0, Vec::len);
    let at = "spec.cidrs";
    let (before, after) = (count(old), count(new));
    if before != after && (before, after) != (1, 2) {
        let shown = if new.is_null() { Value::Array(Vec::new()) } else { new.clone() };
        causes.push(invalid_value(at, &shown, FIXED));
        return;
    }
    for (index, block) in items(old).filter(|(index, block)| new[*index] != **block) {
        let _ = block;
        causes.push(invalid_value(&format!("{at}[{index}]"), &new[index], FIXED));
    }
    if before != after {
        addresses::blocks(new, causes);
    }
}

/// Appends the faults of changes of drivers, whose limits alone may change.
fn drivers(kind: &Kind, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let without = |driver: &Value| {
        let mut driver = driver.clone();
        if let Value::Object(fields) = &mut driver {
            fields.remove("allocatable");
        }
        driver
    };
    for (_, held) in items(&old["drivers"]) {
        for (_, sent) in items(&new["drivers"]).filter(|(_, sent)| sent["name"] == held["name"]) {
            let (held, sent) = (without(held), without(sent));
            if !kind.types.same("spec.drivers[]", &held, &sent) {
                let shown = internal::compact("storage.CSINodeDriver", &sent);
                let message = format!("Invalid value: {shown}: {FIXED}");
                causes.push(cause("FieldValueInvalid", "spec.drivers", message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::builtin;

    fn kind(name: &str) -> Kind {
        builtin::kinds().into_iter().find(|kind| kind.name() == name).unwrap()
    }

    fn fields(causes: impl IntoIterator<Item = Cause>) -> Vec<String> {
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn a_claim_keeps_its_spec_but_for_the_name_of_its_volume() {
        let with = |name: &str, value: Value| {
            let mut claim = json!({"spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}});
            claim["spec"][name] = value;
            claim
        };
        let old = with("volumeMode", json!("Filesystem"));
        assert_eq!(
            claim(&kind("PersistentVolumeClaim"), &old, &with("volumeName", json!("v")))[0].field,
            "spec"
        );
        let mut bound = old.clone();
        bound["spec"]["volumeName"] = json!("v");
        assert_eq!(claim(&kind("PersistentVolumeClaim"), &old, &bound), []);
        let mut other = old.clone();
        other["spec"]["accessModes"] = json!(["ReadWriteMany"]);
        let message = &claim(&kind("PersistentVolumeClaim"), &old, &other)[0].message;
        assert!(
            message.contains("\n- \"ReadWriteOnce\"\n+ \"ReadWriteMany\"\n")
                || message.contains("-  \"ReadWriteOnce\"\n+  \"ReadWriteMany\"\n"),
            "{message}"
        );
    }

    #[test]
    fn a_bound_claim_may_grow() {
        let with = |size: &str| {
            json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}},
                "spec": {"resources": {"requests": {"storage": size}}}})
        };
        assert_eq!(claim(&kind("PersistentVolumeClaim"), &with("1Gi"), &with("2Gi")), []);
        assert_eq!(
            fields(claim(&kind("PersistentVolumeClaim"), &with("2Gi"), &with("1Gi"))),
            ["spec.resources.requests.storage"]
        );
    }

    #[test]
    fn a_set_keeps_what_its_pods_are_made_of() {
        let old = json!({"replicas": 1, "serviceName": "a"});
        assert_eq!(
            stateful(&kind("StatefulSet"), &old, &json!({"replicas": 2, "serviceName": "a"})),
            None
        );
        assert_eq!(
            fields(stateful(&kind("StatefulSet"), &old, &json!({"serviceName": "b"}))),
            ["spec"]
        );
    }

    #[test]
    fn a_block_of_the_other_family_is_added_behind() {
        let faults = |old: Value, new: Value| {
            let mut causes = Vec::new();
            blocks(&old, &new, &mut causes);
            fields(causes)
        };
        let one = json!(["10.0.0.0/8"]);
        assert_eq!(faults(one.clone(), json!(["10.0.0.0/8", "2001:db8::/64"])), [""; 0]);
        assert_eq!(faults(one.clone(), json!(["11.0.0.0/8"])), ["spec.cidrs[0]"]);
        assert_eq!(faults(one, json!([])), ["spec.cidrs"]);
    }
}
