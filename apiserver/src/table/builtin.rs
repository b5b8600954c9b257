//! Columns and cells of built-in kinds.
//!
//! There is a line per kind in [`columns`] and an arm in [`cells`]; cells are in the order of the
//! columns.

use serde_json::{Value, json};

use super::human::{duration, labels, selector, since};
use super::{Definition, autoscaler, network, plain, pod, stored, workload};
use crate::served::Served;

/// Column of the name.
const NAME: Definition = ("Name", "string", "name", 0);
/// Column of the age.
const AGE: Definition = ("Age", "string", "", 0);

/// Returns a column of text.
const fn text(name: &'static str) -> Definition {
    (name, "string", "", 0)
}

/// Returns a column of text that only wide output shows.
const fn wide(name: &'static str) -> Definition {
    (name, "string", "", 1)
}

/// Returns a column of integers.
const fn number(name: &'static str) -> Definition {
    (name, "integer", "", 0)
}

/// Whether this is the storage class of claims that name none.
fn is_default_class(kind: &str, object: &Value) -> bool {
    let annotations = &object["metadata"]["annotations"];
    let names = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ];
    kind == "StorageClass" && names.iter().any(|name| annotations[*name] == "true")
}

/// Returns the columns of a kind.
pub(super) fn columns(served: &Served) -> Vec<Definition> {
    let bindings =
        [NAME, text("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")];
    let between = |own: &[Definition]| [&[NAME], own, &[AGE]].concat();
    let images = [wide("Containers"), wide("Images"), wide("Selector")];
    match served.kind.as_str() {
        "Pod" => [
            &between(&[text("Ready"), text("Status"), text("Restarts")])[..],
            &[wide("IP"), wide("Node"), wide("Nominated Node"), wide("Readiness Gates")],
        ]
        .concat(),
        "Deployment" => {
            [&between(&[text("Ready"), text("Up-to-date"), text("Available")])[..], &images]
                .concat()
        }
        "ReplicaSet" | "ReplicationController" => {
            let own = [number("Desired"), number("Current"), number("Ready")];
            [&between(&own)[..], &images].concat()
        }
        "DaemonSet" => {
            let own = ["Desired", "Current", "Ready", "Up-to-date", "Available"].map(number);
            [&between(&[&own[..], &[text("Node Selector")]].concat())[..], &images].concat()
        }
        "StatefulSet" => [&between(&[text("Ready")])[..], &images[..2]].concat(),
        "Job" => [&between(&["Status", "Completions", "Duration"].map(text))[..], &images].concat(),
        "CronJob" => {
            let own = [
                text("Schedule"),
                text("Timezone"),
                ("Suspend", "boolean", "", 0),
                number("Active"),
                text("Last Schedule"),
            ];
            [&between(&own)[..], &images].concat()
        }
        "HorizontalPodAutoscaler" => {
            between(&["Reference", "Targets", "MinPods", "MaxPods", "Replicas"].map(text))
        }
        "Service" => {
            let own = ["Type", "Cluster-IP", "External-IP", "Port(s)"].map(text);
            [&between(&own)[..], &[wide("Selector")]].concat()
        }
        "Event" => vec![
            text("Last Seen"),
            text("Type"),
            text("Reason"),
            text("Object"),
            wide("Subobject"),
            wide("Source"),
            text("Message"),
            wide("First Seen"),
            wide("Count"),
            ("Name", "string", "name", 1),
        ],
        "Node" => {
            let own = [NAME, text("Status"), text("Roles"), AGE, text("Version")];
            let more =
                ["Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"];
            [&own[..], &more.map(wide)].concat()
        }
        "RoleBinding" | "ClusterRoleBinding" => bindings.to_vec(),
        "PersistentVolume" => {
            let own = [
                "Capacity",
                "Access Modes",
                "Reclaim Policy",
                "Status",
                "Claim",
                "StorageClass",
                "VolumeAttributesClass",
                "Reason",
            ];
            [&between(&own.map(text))[..], &[wide("VolumeMode")]].concat()
        }
        "PodTemplate" => vec![NAME, text("Containers"), text("Images"), text("Pod Labels")],
        "ResourceQuota" => between(&["Request", "Limit"].map(text)),
        "FlowSchema" => {
            let own = ["PriorityLevel", "MatchingPrecedence", "DistinguisherMethod"].map(text);
            [&between(&own)[..], &[text("MissingPL")]].concat()
        }
        "Role"
        | "ClusterRole"
        | "CustomResourceDefinition"
        | "LimitRange"
        | "CSIStorageCapacity" => {
            vec![NAME, ("Created At", "date", "", 0)]
        }
        // Upstream has no column for the age, but a cell.
        "IPAddress" => vec![NAME, text("ParentRef")],
        "ComponentStatus" => [&[NAME][..], &["Status", "Message", "Error"].map(text)].concat(),
        "ConfigMap" => between(&[text("Data")]),
        "Secret" => between(&["Type", "Data"].map(text)),
        "Namespace" => between(&[text("Status")]),
        "Lease" => between(&[text("Holder")]),
        "Ingress" => between(&["Class", "Hosts", "Address", "Ports"].map(text)),
        "Endpoints" => between(&[text("Endpoints")]),
        "EndpointSlice" => between(&["AddressType", "Ports", "Endpoints"].map(text)),
        "NetworkPolicy" => between(&[text("Pod-Selector")]),
        "PodDisruptionBudget" => between(&[
            text("Min Available"),
            text("Max Unavailable"),
            number("Allowed Disruptions"),
        ]),
        "PersistentVolumeClaim" => {
            let own = [
                "Status",
                "Volume",
                "Capacity",
                "Access Modes",
                "StorageClass",
                "VolumeAttributesClass",
            ];
            [&between(&own.map(text))[..], &[wide("VolumeMode")]].concat()
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            between(&[number("Webhooks")])
        }
        "PriorityClass" => vec![
            NAME,
            number("Value"),
            ("Global-Default", "boolean", "", 0),
            AGE,
            text("PreemptionPolicy"),
        ],
        "CertificateSigningRequest" => {
            let own = ["SignerName", "Requestor", "RequestedDuration", "Condition"];
            [&[NAME, AGE][..], &own.map(text)].concat()
        }
        other => match plain::columns(other) {
            Some(own) => {
                // The name of a driver is marked as a name.
                let format = |name| if name == "Attacher" { "name" } else { "" };
                between(&own.map(|(name, kind)| (name, kind, format(name), 0)).collect::<Vec<_>>())
            }
            None => vec![NAME, AGE],
        },
    }
}

/// Returns the items of a list; none when absent.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the number of keys of a map; 0 when absent.
fn size(value: &Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

/// Returns a text, or a default if absent or empty.
pub(super) fn or<'a>(value: &'a Value, default: &'a str) -> &'a str {
    value.as_str().filter(|s| !s.is_empty()).unwrap_or(default)
}

/// Returns the cells of an object.
pub(super) fn cells(served: &Served, o: &Value, now: i64) -> Vec<Value> {
    let name = o["metadata"]["name"].clone();
    let age = json!(since(&o["metadata"]["creationTimestamp"], now));
    let (spec, status) = (&o["spec"], &o["status"]);
    let around = |own: Vec<Value>| [vec![name.clone()], own, vec![age.clone()]].concat();
    let then = |own: Vec<Value>, more: Vec<Value>| [around(own), more].concat();
    match served.kind.as_str() {
        "Pod" => {
            let (own, more) = pod::cells(o, now);
            then(own, more)
        }
        "Deployment"
        | "ReplicaSet"
        | "ReplicationController"
        | "DaemonSet"
        | "StatefulSet"
        | "Job"
        | "CronJob" => {
            let (own, more) = workload::cells(&served.kind, o, now);
            then(own, more)
        }
        "HorizontalPodAutoscaler" => around(autoscaler::cells(o)),
        "Service" => then(network::service(o), vec![json!(labels(&spec["selector"]))]),
        "Event" => event(o, now),
        "Node" => node(o, name, age),
        "RoleBinding" | "ClusterRoleBinding" => {
            let role =
                format!("{}/{}", or(&o["roleRef"]["kind"], ""), or(&o["roleRef"]["name"], ""));
            then(vec![json!(role)], subjects(o))
        }
        "Role"
        | "ClusterRole"
        | "CustomResourceDefinition"
        | "LimitRange"
        | "CSIStorageCapacity" => {
            vec![name, o["metadata"]["creationTimestamp"].clone()]
        }
        "ConfigMap" => around(vec![json!(size(&o["data"]) + size(&o["binaryData"]))]),
        "Secret" => around(vec![json!(or(&o["type"], "")), json!(size(&o["data"]))]),
        "Namespace" => around(vec![json!(or(&status["phase"], ""))]),
        "Lease" => around(vec![json!(or(&spec["holderIdentity"], ""))]),
        "Ingress" => around(network::ingress(o)),
        "Endpoints" => around(vec![json!(network::endpoints(o))]),
        "EndpointSlice" => around(network::endpoint_slice(o)),
        "NetworkPolicy" => around(vec![json!(selector(&spec["podSelector"]))]),
        "PodDisruptionBudget" => {
            let show = |v: &Value| match v {
                Value::Null => json!("N/A"),
                Value::String(s) => json!(s),
                other => json!(other.to_string()),
            };
            let allowed = status["disruptionsAllowed"].as_i64().unwrap_or_default();
            around(vec![show(&spec["minAvailable"]), show(&spec["maxUnavailable"]), json!(allowed)])
        }
        "PersistentVolumeClaim" => {
            let mode = json!(or(&spec["volumeMode"], "<unset>"));
            then(claim(o), vec![mode])
        }
        "PersistentVolume" => {
            then(stored::volume(o), vec![json!(or(&spec["volumeMode"], "<unset>"))])
        }
        "PodTemplate" => [vec![name], stored::template(o)].concat(),
        "ResourceQuota" => around(stored::quota(o)),
        "FlowSchema" => {
            let dangling = list(&status["conditions"]).iter().find(|one| one["type"] == "Dangling");
            let dangling = dangling.map_or("?", |one| or(&one["status"], ""));
            then(plain::cells("FlowSchema", o).unwrap_or_default(), vec![json!(dangling)])
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            around(vec![json!(list(&o["webhooks"]).len())])
        }
        "PriorityClass" => vec![
            name,
            json!(o["value"].as_i64().unwrap_or_default()),
            json!(o["globalDefault"] == true),
            age,
            json!(or(&o["preemptionPolicy"], "")),
        ],
        "CertificateSigningRequest" => [vec![name, age], certificate(o)].concat(),
        other => match plain::cells(other, o) {
            Some(own) if is_default_class(other, o) => {
                let name = format!("{} (default)", or(&name, ""));
                [vec![json!(name)], own, vec![age]].concat()
            }
            Some(own) => around(own),
            None => vec![name, age],
        },
    }
}

/// Returns the conditions of a row; only finished pods have some.
pub(super) fn conditions(served: &Served, object: &Value) -> Option<Value> {
    // A custom kind may be called Pod, too.
    (served.kind == "Pod" && !served.custom).then(|| pod::conditions(object)).flatten()
}

/// Returns the cells of a certificate request behind the age.
fn certificate(o: &Value) -> Vec<Value> {
    let (spec, status) = (&o["spec"], &o["status"]);
    let has = |kind: &str| list(&status["conditions"]).iter().any(|one| one["type"] == kind);
    let verdict = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let mut state = vec![verdict];
    state.extend(has("Failed").then_some("Failed"));
    state.extend((!or(&status["certificate"], "").is_empty()).then_some("Issued"));
    let time = spec["expirationSeconds"].as_i64().map(duration);
    vec![
        json!(or(&spec["signerName"], "<none>")),
        json!(or(&spec["username"], "")),
        json!(time.unwrap_or_else(|| "<none>".to_owned())),
        json!(state.join(",")),
    ]
}

/// Joins items, or returns `none` without any.
pub(super) fn joined(items: Vec<String>, separator: &str, none: &str) -> String {
    if items.is_empty() { none.to_owned() } else { items.join(separator) }
}

/// Returns the cells of an Event, in either API version.
fn event(o: &Value, now: i64) -> Vec<Value> {
    let first_of = |keys: &[&str]| -> &Value {
        keys.iter().map(|k| &o[*k]).find(|v| !v.is_null()).unwrap_or(&Value::Null)
    };
    let object = first_of(&["involvedObject", "regarding"]);
    let source = first_of(&["source", "deprecatedSource"]);
    let component =
        or(&source["component"], or(&o["reportingComponent"], or(&o["reportingController"], "")));
    let host = or(&source["host"], or(&o["reportingInstance"], ""));
    let source = match host {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    };
    let time = |keys: &[&str]| {
        keys.iter()
            .map(|k| &o[*k])
            .find(|v| v.as_str().is_some_and(|s| !s.is_empty()))
            .map_or_else(|| "<unknown>".to_owned(), |v| since(v, now))
    };
    let first = time(&["firstTimestamp", "deprecatedFirstTimestamp", "eventTime"]);
    let mut last = time(&["lastTimestamp", "deprecatedLastTimestamp"]);
    let mut count = first_of(&["count", "deprecatedCount"]).as_i64().unwrap_or_default().max(1);
    // A series counts and dates the repetitions.
    if o["series"].is_object() {
        last = since(&o["series"]["lastObservedTime"], now);
        count = o["series"]["count"].as_i64().unwrap_or(count);
    }
    // Events of the newer API may carry nothing but `eventTime`.
    if last == "<unknown>" {
        last.clone_from(&first);
    }
    // In the notation of `kubectl get kind/name`.
    let kind = or(&object["kind"], "").to_lowercase();
    let target = match kind.as_str() {
        "" => or(&object["name"], "").to_owned(),
        kind => format!("{kind}/{}", or(&object["name"], "")),
    };
    let message = or(&o["message"], or(&o["note"], "")).trim();
    vec![
        json!(last),
        json!(or(&o["type"], "")),
        json!(or(&o["reason"], "")),
        json!(target),
        json!(or(&object["fieldPath"], "")),
        json!(source),
        json!(message),
        json!(first),
        json!(count),
        o["metadata"]["name"].clone(),
    ]
}

/// Returns the cells of a Node.
fn node(o: &Value, name: Value, age: Value) -> Vec<Value> {
    let ready = list(&o["status"]["conditions"]).iter().find(|c| c["type"] == "Ready");
    let mut status = match ready {
        Some(c) if c["status"] == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if o["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<String> = Vec::new();
    for (key, value) in o["metadata"]["labels"].as_object().into_iter().flatten() {
        if let Some(role) = key.strip_prefix("node-role.kubernetes.io/") {
            roles.push(role.to_owned());
        } else if key == "kubernetes.io/role" {
            roles.push(or(value, "").to_owned());
        }
    }
    roles.retain(|r| !r.is_empty());
    roles.sort();
    roles.dedup();
    let address = |kind: &str| {
        let found = list(&o["status"]["addresses"]).iter().find(|a| a["type"] == kind);
        json!(found.map_or("<none>", |a| or(&a["address"], "<none>")))
    };
    let info = &o["status"]["nodeInfo"];
    let known = |key: &str| json!(or(&info[key], "<unknown>"));
    vec![
        name,
        json!(status),
        json!(joined(roles, ",", "<none>")),
        age,
        json!(or(&info["kubeletVersion"], "")),
        address("InternalIP"),
        address("ExternalIP"),
        known("osImage"),
        known("kernelVersion"),
        known("containerRuntimeVersion"),
    ]
}

/// Returns the subjects of a binding by kind.
fn subjects(o: &Value) -> Vec<Value> {
    let of = |kind: &str| {
        let found = list(&o["subjects"]).iter().filter(|s| s["kind"] == kind).map(|s| {
            let name = or(&s["name"], "");
            match kind {
                "ServiceAccount" => format!("{}/{name}", or(&s["namespace"], "")),
                _ => name.to_owned(),
            }
        });
        json!(joined(found.collect(), ", ", ""))
    };
    vec![of("User"), of("Group"), of("ServiceAccount")]
}

/// Returns the cells of a `PersistentVolumeClaim`.
fn claim(o: &Value) -> Vec<Value> {
    let (spec, status) = (&o["spec"], &o["status"]);
    let bound = spec["volumeName"].as_str().is_some_and(|n| !n.is_empty());
    let phase = match o["metadata"]["deletionTimestamp"].is_string() {
        true => "Terminating",
        false => or(&status["phase"], ""),
    };
    vec![
        json!(phase),
        json!(or(&spec["volumeName"], "")),
        json!(if bound { or(&status["capacity"]["storage"], "") } else { "" }),
        json!(if bound { stored::modes(&status["accessModes"]) } else { String::new() }),
        json!(stored::class(o)),
        json!(or(&spec["volumeAttributesClassName"], "<unset>")),
    ]
}
