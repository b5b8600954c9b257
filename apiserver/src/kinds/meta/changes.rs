//! Checks of the metadata of changes, which upstream makes in several places.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    check_common, check_generate_name, check_owners, finalizer_names, finalizers, terminating,
    unqualified_finalizers,
};
use crate::kinds::Kind;
use crate::served::Cause;
use crate::status::{forbidden_field, invalid_value};

/// Checks of the metadata that upstream makes for a change of a kind, beside those of all changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MetadataChecks {
    /// As those of a change.
    Change,
    /// As those of a change, then as those of a new object.
    ChangeAndNew,
    /// As those of a new object before the checks of the spec, then as those of a change.
    NewAndChange,
    /// As those of a new object.
    New,
    /// As those of a new object, twice.
    NewTwice,
    /// None.
    Neither,
}

use MetadataChecks::{Change, ChangeAndNew, Neither, New, NewAndChange, NewTwice};

/// Checks of built-in kinds; kinds without a row are checked as a change and as a new object.
const CHECKS: [(&str, &str, MetadataChecks); 49] = [
    ("", "Event", Neither),
    ("", "LimitRange", New),
    ("", "Namespace", NewAndChange),
    ("", "Node", NewAndChange),
    ("", "PersistentVolume", NewTwice),
    ("", "PodTemplate", Change),
    ("", "ReplicationController", Change),
    ("", "ResourceQuota", Change),
    ("", "Service", Change),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy", New),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", New),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", New),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", New),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", New),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", New),
    ("apiextensions.k8s.io", "CustomResourceDefinition", Change),
    ("apps", "DaemonSet", Change),
    ("apps", "Deployment", Change),
    ("apps", "ReplicaSet", Change),
    ("apps", "StatefulSet", Change),
    ("autoscaling", "HorizontalPodAutoscaler", Change),
    ("batch", "CronJob", Change),
    ("batch", "Job", NewAndChange),
    ("coordination.k8s.io", "Lease", Change),
    ("discovery.k8s.io", "EndpointSlice", New),
    ("events.k8s.io", "Event", Neither),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema", New),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", New),
    ("networking.k8s.io", "IPAddress", NewAndChange),
    ("networking.k8s.io", "NetworkPolicy", Change),
    ("networking.k8s.io", "ServiceCIDR", Change),
    ("node.k8s.io", "RuntimeClass", NewAndChange),
    ("policy", "PodDisruptionBudget", Neither),
    ("rbac.authorization.k8s.io", "ClusterRole", NewAndChange),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", NewAndChange),
    ("rbac.authorization.k8s.io", "Role", NewAndChange),
    ("rbac.authorization.k8s.io", "RoleBinding", NewAndChange),
    ("resource.k8s.io", "DeviceClass", NewAndChange),
    ("resource.k8s.io", "DeviceTaintRule", Change),
    ("resource.k8s.io", "ResourceClaim", NewAndChange),
    ("resource.k8s.io", "ResourceClaimTemplate", NewAndChange),
    ("resource.k8s.io", "ResourceSlice", Change),
    ("scheduling.k8s.io", "PriorityClass", Change),
    ("storage.k8s.io", "CSIDriver", Change),
    ("storage.k8s.io", "CSINode", New),
    ("storage.k8s.io", "CSIStorageCapacity", NewAndChange),
    ("storage.k8s.io", "StorageClass", NewAndChange),
    ("storage.k8s.io", "VolumeAttachment", New),
    ("", "ComponentStatus", Neither),
];

/// Returns the checks of a change of a kind or of its status.
fn checks(kind: &Kind, is_status: bool) -> MetadataChecks {
    let name = (kind.served.group.as_str(), kind.name());
    let row = CHECKS.iter().find(|row| (row.0, row.1) == name);
    let found = row.map_or(if kind.served.custom { Change } else { ChangeAndNew }, |row| row.2);
    let is_new = matches!(found, New) && !kind.served.group.is_empty();
    match (name, is_status) {
        (_, false) => found,
        (("batch", "CronJob") | ("policy", "PodDisruptionBudget"), true) => Neither,
        (("storage.k8s.io", "VolumeAttachment"), true) => New,
        (_, true) if is_new => Neither,
        (_, true) => Change,
    }
}

/// Faults of the metadata of a change, in upstream's order.
pub(crate) struct MetadataFaults {
    /// Faults before those of fields that a kind never changes.
    pub(crate) first: Vec<Cause>,
    /// Faults after those, and before those of the spec.
    pub(crate) as_new: Vec<Cause>,
    /// Faults after those of the spec.
    pub(crate) last: Vec<Cause>,
}

/// Returns the faults of a change. Upstream checks in several places and repeats each finding.
pub(crate) fn check_change(
    kind: &Kind,
    is_status: bool,
    old: &Value,
    new: &Value,
) -> MetadataFaults {
    let mut common = check_common(new);
    common.extend(check_owners(new));
    let mut of_finalizers = finalizer_names(new);
    of_finalizers.extend(unqualified_finalizers(kind, new));
    // As often as upstream reports them: clients may compare the list of causes.
    let mut first = common.clone();
    first.extend(never_changed(old, new));
    first.extend(common.iter().cloned());
    let all = |parts: [&[Cause]; 3]| -> Vec<Cause> { parts.concat() };
    let change = all([&never_changed(old, new), &common, &of_finalizers]);
    let as_new = all([&check_generate_name(kind, new), &common, &of_finalizers]);
    let none = Vec::new;
    let (more, as_new, last) = match checks(kind, is_status) {
        Change => (change, none(), none()),
        ChangeAndNew => (change, as_new, none()),
        NewAndChange => (none(), as_new, change),
        New => (none(), as_new, none()),
        NewTwice => (none(), [as_new.clone(), as_new].concat(), none()),
        Neither => (none(), none(), none()),
    };
    first.extend(more);
    MetadataFaults { first, as_new, last }
}

/// Returns the faults of fields of the metadata that no change may touch.
fn never_changed(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if terminating(old) {
        let before: BTreeSet<String> = finalizers(old).into_iter().collect();
        let after: BTreeSet<String> = finalizers(new).into_iter().collect();
        let added: Vec<String> =
            after.difference(&before).map(|name| format!("{name:?}")).collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            causes.push(forbidden_field("metadata.finalizers", &detail));
        }
    }
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = &new["metadata"][field];
        if *value != old["metadata"][field] {
            causes.push(invalid_value(&format!("metadata.{field}"), value, "field is immutable"));
        }
    }
    causes
}

/// Returns advice about the new finalizers of custom resources; none for other kinds.
pub(crate) fn finalizer_warnings(kind: &Kind, old: Option<&Value>, new: &Value) -> Vec<String> {
    if !kind.served.custom {
        return Vec::new();
    }
    let standard = ["orphan", "foregroundDeletion"];
    let held: BTreeSet<String> = old.map(finalizers).unwrap_or_default().into_iter().collect();
    let now: BTreeSet<String> = finalizers(new).into_iter().collect();
    let odd = now.difference(&held);
    let odd = odd.filter(|name| !name.contains('/') && !standard.contains(&name.as_str()));
    odd.map(|name| {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        format!("metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers")
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::builtin;

    fn of(name: &str) -> Kind {
        builtin::kinds().into_iter().find(|kind| kind.name() == name).unwrap()
    }

    fn all(name: &str, old: &Value, new: &Value) -> Vec<Cause> {
        let MetadataFaults { first, as_new, last } = check_change(&of(name), false, old, new);
        [first, as_new, last].concat()
    }

    #[test]
    fn a_new_finalizer_on_a_terminating_object_is_reported_twice() {
        let old = json!({"metadata": {"deletionTimestamp": "t", "finalizers": ["a.io/f"]}});
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!(["a.io/f", "new.io/f"]);
        let causes = all("ConfigMap", &old, &new);
        assert_eq!(causes.len(), 2);
        assert_eq!(
            causes[0].message,
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"new.io/f\"}"
        );
    }

    #[test]
    fn a_finalizer_without_a_domain_is_reported_for_most_built_in_kinds() {
        let (old, new) = (json!({"metadata": {}}), json!({"metadata": {"finalizers": ["f"]}}));
        for (name, count) in [("Secret", 2), ("Deployment", 1), ("Lease", 0)] {
            assert_eq!(all(name, &old, &new).len(), count, "{name}");
        }
    }

    #[test]
    fn a_bad_label_is_reported_once_less_for_kinds_whose_changes_alone_are_checked() {
        let old = json!({"metadata": {}});
        let label = json!({"metadata": {"labels": {"a": "-"}}});
        let finalizer = json!({"metadata": {"finalizers": ["a b/c"]}});
        for (name, labels, finalizers) in [("ConfigMap", 4, 2), ("Lease", 3, 1), ("Service", 3, 1)]
        {
            assert_eq!(all(name, &old, &label).len(), labels, "{name}");
            assert_eq!(all(name, &old, &finalizer).len(), finalizers, "{name}");
        }
    }
}
