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

/// Built-in kinds whose update is checked by rules for changes alone, and not as a new object, too.
const CHANGED_ONLY: [(&str, &str); 21] = [
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("batch", "CronJob"),
    ("coordination.k8s.io", "Lease"),
    ("", "PodTemplate"),
    ("", "ReplicationController"),
    ("", "ResourceQuota"),
    ("", "Service"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "DeviceTaintRule"),
    ("resource.k8s.io", "ResourceClaim"),
    ("resource.k8s.io", "ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSIStorageCapacity"),
    ("storage.k8s.io", "StorageClass"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// Whether the metadata of a change are checked as those of a new object, too.
fn is_checked_as_new(kind: &Kind) -> bool {
    let name = (kind.served.group.as_str(), kind.name());
    !kind.served.custom && !CHANGED_ONLY.contains(&name)
}

/// Faults of the metadata of a change.
pub(crate) struct MetadataFaults {
    /// Faults that all kinds have.
    pub(crate) change: Vec<Cause>,
    /// Faults that a check as of a new object finds again.
    pub(crate) as_new: Vec<Cause>,
}

/// Returns the faults of a change. Upstream checks in several places and repeats each finding.
pub(crate) fn check_change(kind: &Kind, old: &Value, new: &Value) -> MetadataFaults {
    let mut often = check_common(new);
    often.extend(check_owners(new));
    let mut twice = Vec::new();
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
            twice.push(forbidden_field("metadata.finalizers", &detail));
        }
    }
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = &new["metadata"][field];
        if *value != old["metadata"][field] {
            twice.push(invalid_value(&format!("metadata.{field}"), value, "field is immutable"));
        }
    }
    let mut change = Vec::new();
    // As often as upstream reports them: clients may compare the list of causes.
    for _ in 0..2 {
        change.extend(twice.iter().cloned());
    }
    for _ in 0..3 {
        change.extend(often.iter().cloned());
    }
    let mut of_finalizers = finalizer_names(new);
    of_finalizers.extend(unqualified_finalizers(kind, new));
    change.extend(of_finalizers.iter().cloned());
    let mut as_new = Vec::new();
    if is_checked_as_new(kind) {
        as_new = check_generate_name(kind, new);
        as_new.extend(often);
        as_new.extend(of_finalizers);
    }
    MetadataFaults { change, as_new }
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
        let MetadataFaults { mut change, as_new } = check_change(&of(name), old, new);
        change.extend(as_new);
        change
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
