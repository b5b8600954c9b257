//! Defaults of kinds that configure the cluster: policies, flow control, storage, limits.

use serde_json::{Map, Value, json};

use super::defaults::{child, default, default_list, default_pointer, items};

/// Fills in the defaults of an admission policy, or of a binding.
pub(super) fn policy(kind: &str, object: &mut Value) {
    let spec = child(object, "spec");
    if kind.ends_with("Policy") {
        default_pointer(spec, "failurePolicy", json!("Fail"));
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
    default_pointer(matched, "matchPolicy", json!("Equivalent"));
    child(matched, "namespaceSelector");
    child(matched, "objectSelector");
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in items(matched, list) {
            default_pointer(rule, "scope", json!("*"));
        }
    }
}

/// Fills in the defaults of flow control.
pub(super) fn flow(kind: &str, object: &mut Value) {
    child(object, "status");
    let spec = child(object, "spec");
    if kind == "FlowSchema" {
        default_number(spec, "matchingPrecedence", 1000);
        return;
    }
    if spec["exempt"].is_object() {
        default(&mut spec["exempt"], "nominalConcurrencyShares", json!(0));
        default(&mut spec["exempt"], "lendablePercent", json!(0));
    }
    if spec["limited"].is_object() {
        let limited = &mut spec["limited"];
        default(limited, "nominalConcurrencyShares", json!(30));
        default(limited, "lendablePercent", json!(0));
        let queuing = &mut limited["limitResponse"]["queuing"];
        if queuing.is_object() {
            for (field, value) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
                default_number(queuing, field, value);
            }
        }
    }
}

/// Sets a number that is absent or 0, which Go does not distinguish.
fn default_number(object: &mut Value, field: &str, value: i64) {
    if object[field].as_i64().unwrap_or_default() == 0 {
        object[field] = json!(value);
    }
}

/// Fills in the defaults of a Node: of the two spellings of blocks of addresses the older counts.
pub(super) fn node(object: &mut Value) {
    let spec = child(object, "spec");
    let (older, all) = (spec["podCIDR"].clone(), spec["podCIDRs"].clone());
    let first = all.as_array().and_then(|all| all.first()).cloned().unwrap_or(Value::Null);
    let is_set = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    if is_set(&older) && older != first {
        spec["podCIDRs"] = json!([older]);
    } else if first.is_string() {
        spec["podCIDR"] = first;
    }
    let status = child(object, "status");
    if status["allocatable"].is_null() && status["capacity"].is_object() {
        status["allocatable"] = status["capacity"].clone();
    }
}

/// Fills in the defaults of requests for devices.
pub(super) fn devices(object: &mut Value) {
    for path in ["/spec/devices", "/spec/spec/devices"] {
        if let Some(devices) = object.pointer_mut(path) {
            requests(devices);
        }
    }
}

/// Fills in the defaults of the requests of a claim.
fn requests(devices: &mut Value) {
    for request in items(devices, "requests") {
        if request["exactly"].is_object() {
            request_of(&mut request["exactly"]);
        }
        items(request, "firstAvailable").for_each(request_of);
    }
}

/// Fills in the defaults of a request for devices.
fn request_of(request: &mut Value) {
    default(request, "allocationMode", json!("ExactCount"));
    if request["allocationMode"] == "ExactCount" {
        default_number(request, "count", 1);
    }
    for toleration in items(request, "tolerations") {
        default(toleration, "operator", json!("Equal"));
    }
}

/// Fills in the defaults of kinds about storage.
pub(super) fn storage(kind: &str, object: &mut Value) {
    match kind {
        "StorageClass" => {
            default_pointer(object, "reclaimPolicy", json!("Delete"));
            default_pointer(object, "volumeBindingMode", json!("Immediate"));
        }
        "CSIDriver" => {
            let spec = child(object, "spec");
            default(spec, "attachRequired", json!(true));
            default_pointer(spec, "fsGroupPolicy", json!("ReadWriteOnceWithFSType"));
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
