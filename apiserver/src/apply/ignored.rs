//! Fields that an endpoint does not write, even if a client sends them.

use serde_json::Value;

use super::path::PathElement;
use super::set::PathSet;
use crate::typed::TypeSchema;

/// Kinds, besides custom resources, whose `/status` writes no metadata at all.
const NO_METADATA: [&str; 7] = [
    "APIService",
    "CustomResourceDefinition",
    "ResourceClaim",
    "ServiceCIDR",
    "ValidatingAdmissionPolicy",
    "VolumeAttachment",
    "PodGroup",
];

/// Returns the fields that no manager comes to own through the endpoint, with everything below
/// them.
pub(crate) fn fields(schema: &TypeSchema, subresource: Option<&str>) -> PathSet {
    let mut set = PathSet::default();
    if schema.kind() == Some("CertificateSigningRequest") {
        set.insert_fields(&["spec"]);
        set.insert_fields(match subresource.unwrap_or_default() {
            "approval" => &["status", "certificate"],
            "status" => &["status", "conditions"],
            _ => &["status"],
        });
        return set;
    }
    match subresource.unwrap_or_default() {
        // Without the subresource status is written, and owned, on the main endpoint.
        "" | "finalize" if schema.has_status_subresource() => set.insert_fields(&["status"]),
        "status" => {
            set.insert_fields(&["spec"]);
            match schema.kind() {
                // Without a name of a built-in kind: a custom resource.
                None => set.insert_fields(&["metadata"]),
                Some(kind) if NO_METADATA.contains(&kind) => set.insert_fields(&["metadata"]),
                Some("Deployment") => set.insert_fields(&["metadata", "labels"]),
                Some("Pod") => {
                    set.insert_fields(&["metadata", "deletionTimestamp"]);
                    set.insert_fields(&["metadata", "ownerReferences"]);
                }
                Some(_) => {}
            }
        }
        _ => {}
    }
    set
}

/// Sets these fields in `new` to their values in `old`.
pub(crate) fn restore(new: &mut Value, old: &Value, ignored: &PathSet) {
    let Some(map) = new.as_object_mut() else { return };
    for step in &ignored.members {
        let PathElement::Field(name) = step else { continue };
        match old.get(&**name) {
            Some(value) => {
                map.insert(name.to_string(), value.clone());
            }
            None => {
                map.remove(&**name);
            }
        }
    }
    for (step, below) in &ignored.children {
        if let PathElement::Field(name) = step
            && let Some(value) = map.get_mut(&**name)
        {
            restore(value, old.get(&**name).unwrap_or(&Value::Null), below);
        }
    }
}
