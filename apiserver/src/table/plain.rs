//! Columns of kinds whose cells are single fields of the object.

use serde_json::{Value, json};

/// A column: name, type, pointer to the field, and the cell without a value.
type Column = (&'static str, &'static str, &'static str, &'static str);

/// Columns between name and age, by kind.
const TABLE: [(&str, &[Column]); 20] = [
    (
        "ControllerRevision",
        &[
            ("Controller", "string", "/metadata/ownerReferences/0/name", "<none>"),
            ("Revision", "string", "/revision", ""),
        ],
    ),
    (
        "IngressClass",
        &[
            ("Controller", "string", "/spec/controller", ""),
            ("Parameters", "string", "/spec/parameters/name", "<none>"),
        ],
    ),
    (
        "CSIDriver",
        &[
            ("AttachRequired", "boolean", "/spec/attachRequired", ""),
            ("PodInfoOnMount", "boolean", "/spec/podInfoOnMount", ""),
            ("StorageCapacity", "boolean", "/spec/storageCapacity", ""),
            ("TokenRequests", "string", "/spec/tokenRequests", "<unset>"),
            ("RequiresRepublish", "boolean", "/spec/requiresRepublish", ""),
            ("Modes", "string", "/spec/volumeLifecycleModes", "<none>"),
        ],
    ),
    (
        "APIService",
        &[
            ("Service", "string", "/spec/service/name", "Local"),
            ("Available", "string", "/status/conditions/available", "Unknown"),
        ],
    ),
    ("CSINode", &[("Drivers", "integer", "/spec/drivers", "0")]),
    (
        "VolumeAttachment",
        &[
            ("Attacher", "string", "/spec/attacher", ""),
            ("PV", "string", "/spec/source/persistentVolumeName", ""),
            ("Node", "string", "/spec/nodeName", ""),
            ("Attached", "boolean", "/status/attached", ""),
        ],
    ),
    ("VolumeAttributesClass", &[("DriverName", "string", "/driverName", "")]),
    ("RuntimeClass", &[("Handler", "string", "/handler", "")]),
    (
        "ValidatingAdmissionPolicy",
        &[
            ("Validations", "integer", "/spec/validations", "0"),
            ("ParamKind", "string", "/spec/paramKind/kind", "<unset>"),
        ],
    ),
    (
        "ValidatingAdmissionPolicyBinding",
        &[
            ("PolicyName", "string", "/spec/policyName", ""),
            ("ParamRef", "string", "/spec/paramRef/name", "<unset>"),
        ],
    ),
    (
        "MutatingAdmissionPolicy",
        &[
            ("Mutations", "integer", "/spec/mutations", "0"),
            ("ParamKind", "string", "/spec/paramKind/kind", "<unset>"),
        ],
    ),
    (
        "MutatingAdmissionPolicyBinding",
        &[
            ("PolicyName", "string", "/spec/policyName", ""),
            ("ParamRef", "string", "/spec/paramRef/name", "<unset>"),
        ],
    ),
    ("ResourceClaim", &[("State", "string", "/status/allocation/state", "pending")]),
    (
        "ResourceSlice",
        &[
            ("Node", "string", "/spec/nodeName", ""),
            ("Driver", "string", "/spec/driver", ""),
            ("Pool", "string", "/spec/pool/name", ""),
        ],
    ),
    (
        "PriorityLevelConfiguration",
        &[
            ("Type", "string", "/spec/type", ""),
            (
                "NominalConcurrencyShares",
                "string",
                "/spec/limited/nominalConcurrencyShares",
                "<none>",
            ),
            ("Queues", "string", "/spec/limited/limitResponse/queuing/queues", "<none>"),
            ("HandSize", "string", "/spec/limited/limitResponse/queuing/handSize", "<none>"),
            (
                "QueueLengthLimit",
                "string",
                "/spec/limited/limitResponse/queuing/queueLengthLimit",
                "<none>",
            ),
        ],
    ),
    (
        "EndpointSlice",
        &[
            ("AddressType", "string", "/addressType", ""),
            ("Ports", "string", "/ports/0/port", "<unset>"),
            ("Endpoints", "string", "/endpoints/0/addresses/0", "<unset>"),
        ],
    ),
    (
        "StorageClass",
        &[
            ("Provisioner", "string", "/provisioner", ""),
            ("ReclaimPolicy", "string", "/reclaimPolicy", "Delete"),
            ("VolumeBindingMode", "string", "/volumeBindingMode", "Immediate"),
            ("AllowVolumeExpansion", "string", "/allowVolumeExpansion", "false"),
        ],
    ),
    (
        "FlowSchema",
        &[
            ("PriorityLevel", "string", "/spec/priorityLevelConfiguration/name", ""),
            ("MatchingPrecedence", "string", "/spec/matchingPrecedence", ""),
            ("DistinguisherMethod", "string", "/spec/distinguisherMethod/type", "<none>"),
        ],
    ),
    ("IPAddress", &[("ParentRef", "string", "/spec/parentRef/name", "<none>")]),
    ("ServiceCIDR", &[("CIDRs", "string", "/spec/cidrs", "<none>")]),
];

/// Returns the columns of a kind.
fn find(kind: &str) -> Option<&'static [Column]> {
    TABLE.iter().find(|(name, _)| *name == kind).map(|(_, columns)| *columns)
}

/// Returns names and types of the columns between name and age.
pub(super) fn columns(kind: &str) -> Option<impl Iterator<Item = (&'static str, &'static str)>> {
    Some(find(kind)?.iter().map(|(name, kind, _, _)| (*name, *kind)))
}

/// Returns the cells between name and age.
pub(super) fn cells(kind: &str, object: &Value) -> Option<Vec<Value>> {
    Some(find(kind)?.iter().map(|column| cell(column, object)).collect())
}

/// Returns the cell of a reference, of which several parts are shown.
fn joined(pointer: &str, object: &Value) -> Option<String> {
    let parent = object.pointer(pointer.rsplit_once('/')?.0).filter(|held| held.is_object())?;
    let text = |field: &str| parent[field].as_str().unwrap_or_default();
    let dotted = |kind: &str, group: &str| match group {
        "" => kind.to_owned(),
        _ => format!("{kind}.{group}"),
    };
    match pointer {
        "/spec/parameters/name" => {
            Some(format!("{}/{}", dotted(text("kind"), text("apiGroup")), text("name")))
        }
        "/spec/paramRef/name" => {
            let namespace = Some(text("namespace")).filter(|name| !name.is_empty());
            Some(format!("{}/{}", namespace.unwrap_or("*"), text("name")))
        }
        "/spec/parentRef/name" => {
            let kind = dotted(text("resource"), text("group"));
            let parts = [kind.as_str(), text("namespace"), text("name")];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            Some(parts.join("/"))
        }
        "/spec/service/name" => Some(format!("{}/{}", text("namespace"), text("name"))),
        "/metadata/ownerReferences/0/name" => {
            let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
            Some(format!("{}/{}", dotted(&text("kind").to_lowercase(), group), text("name")))
        }
        _ => None,
    }
}

/// Returns the state of a claim of devices.
fn claim_state(object: &Value) -> String {
    let (status, dies) = (&object["status"], object["metadata"]["deletionTimestamp"].is_string());
    let mut states = Vec::new();
    states.extend(dies.then_some("deleted"));
    if status["allocation"].is_object() {
        states.push("allocated");
        states.extend(status["reservedFor"].get(0).map(|_| "reserved"));
    } else if !dies {
        states.push("pending");
    }
    states.join(",")
}

/// Returns the cell of a column.
fn cell((_, kind, pointer, without): &Column, object: &Value) -> Value {
    match *pointer {
        "/status/allocation/state" => return json!(claim_state(object)),
        "/status/conditions/available" => {
            let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
            let found = all.find(|one| one["type"] == "Available");
            return found.map_or(json!(without), |one| one["status"].clone());
        }
        _ => {}
    }
    if let Some(text) = joined(pointer, object) {
        return json!(text);
    }
    let held = object.pointer(pointer).unwrap_or(&Value::Null);
    match (*kind, held) {
        ("integer", Value::Array(items)) => json!(items.len()),
        ("integer", Value::Null) => json!(0),
        (_, Value::Array(items)) if !items.is_empty() => {
            let text =
                |item: &'_ Value| item.as_str().or(item["audience"].as_str()).map(str::to_owned);
            json!(items.iter().filter_map(text).collect::<Vec<_>>().join(","))
        }
        ("string", Value::Null) if *without == "false" => json!(false),
        (_, Value::Null | Value::Array(_)) => json!(without),
        ("string", Value::Number(number)) if pointer.ends_with("/port") => {
            json!(number.to_string())
        }
        _ => held.clone(),
    }
}
