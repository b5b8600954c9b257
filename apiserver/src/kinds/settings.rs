//! Defaults of kinds that configure the cluster: policies, flow control, storage, limits.

use serde_json::{Map, Value, json};

use super::defaults::{child, default, default_list, items};

/// Fills in the defaults of an admission policy, or of a binding.
pub(super) fn policy(kind: &str, object: &mut Value) {
    let spec = child(object, "spec");
    if kind.ends_with("Policy") {
        default(spec, "failurePolicy", json!("Fail"));
        matching(spec, "matchConstraints");
    } else {
        matching(spec, "matchResources");
    }
    if kind == "ValidatingAdmissionPolicy" {
        child(object, "status");
    }
}

/// Fills in the defaults of the resources that a policy is about, if any are named.
fn matching(spec: &mut Value, field: &str) {
    if !spec[field].is_object() {
        return;
    }
    let matched = &mut spec[field];
    default(matched, "matchPolicy", json!("Equivalent"));
    child(matched, "namespaceSelector");
    child(matched, "objectSelector");
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in items(matched, list) {
            default(rule, "scope", json!("*"));
        }
    }
}

/// Fills in the defaults of flow control.
pub(super) fn flow(kind: &str, object: &mut Value) {
    child(object, "status");
    let spec = child(object, "spec");
    if kind == "FlowSchema" {
        default(spec, "matchingPrecedence", json!(1000));
        return;
    }
    if spec["limited"].is_object() {
        let limited = &mut spec["limited"];
        default(limited, "nominalConcurrencyShares", json!(30));
        default(limited, "lendablePercent", json!(0));
    }
}

/// Fills in the defaults of kinds about storage.
pub(super) fn storage(kind: &str, object: &mut Value) {
    match kind {
        "StorageClass" => {
            default(object, "reclaimPolicy", json!("Delete"));
            default(object, "volumeBindingMode", json!("Immediate"));
        }
        "CSIDriver" => {
            let spec = child(object, "spec");
            default(spec, "attachRequired", json!(true));
            default(spec, "fsGroupPolicy", json!("ReadWriteOnceWithFSType"));
            for field in ["podInfoOnMount", "requiresRepublish", "seLinuxMount", "storageCapacity"]
            {
                default(spec, field, json!(false));
            }
            default_list(spec, "volumeLifecycleModes", json!(["Persistent"]));
        }
        "VolumeAttachment" => default(child(object, "status"), "attached", json!(false)),
        _ => {}
    }
}

/// Fills in the defaults of a `LimitRange`: the default of a container is its maximum, and the
/// default request is that default, or the minimum.
pub(super) fn limits(object: &mut Value) {
    for limit in items(child(object, "spec"), "limits") {
        if limit["type"] != "Container" {
            continue;
        }
        for (field, source) in
            [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")]
        {
            let Some(source) = limit[source].as_object().cloned() else { continue };
            let held = child(limit, field);
            let missing: Map<String, Value> =
                source.into_iter().filter(|(name, _)| held.get(name).is_none()).collect();
            if let Value::Object(held) = held {
                held.extend(missing);
            }
        }
    }
}
