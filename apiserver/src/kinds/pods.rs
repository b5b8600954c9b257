//! Defaults of pod specs, in Pods and in templates of workloads.

use serde_json::{Value, json};

use super::defaults::{child, default, default_pointer, items};
use super::quantity::Quantity;

/// Fills in the defaults of a Pod.
pub(crate) fn pod(object: &mut Value) {
    let spec = child(object, "spec");
    pod_spec(spec);
    default(spec, "enableServiceLinks", json!(true));
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            requests(container);
        }
    }
    if spec["resources"].is_object() {
        whole(spec);
    }
    if spec["hostNetwork"] == true {
        for list in ["containers", "initContainers"] {
            items(spec, list).for_each(host_ports);
        }
    }
    addresses(child(object, "status"));
}

/// Brings the address of a Pod and the list of addresses into line: the single address counts, and
/// an absent one is the first of the list.
fn addresses(status: &mut Value) {
    let single = status["podIP"].as_str().unwrap_or_default().to_owned();
    let first = status["podIPs"][0]["ip"].as_str().unwrap_or_default().to_owned();
    if single.is_empty() && !first.is_empty() {
        status["podIP"] = json!(first);
    } else if !single.is_empty() && single != first {
        status["podIPs"] = json!([{"ip": single}]);
    }
}

/// Requests each resource that a Pod limits as a whole: as much as its containers do, or the limit.
fn whole(spec: &mut Value) {
    let names: Vec<String> = match spec["resources"]["limits"].as_object() {
        Some(limits) => limits.keys().cloned().collect(),
        None => return,
    };
    let is_of_pod = |name: &String| {
        ["cpu", "memory"].contains(&name.as_str()) || name.starts_with("hugepages-")
    };
    for name in names.into_iter().filter(is_of_pod) {
        if !spec["resources"]["requests"][&name].is_null() {
            continue;
        }
        let amounts = spec["containers"].as_array().into_iter().flatten();
        let amounts = amounts.map(|one| Quantity::parse(&one["resources"]["requests"][&name]));
        let sum = amounts.flatten().reduce(|sum, more| sum + more);
        let limit = spec["resources"]["limits"][&name].clone();
        let value = sum.map_or(limit, |sum| json!(sum.to_string()));
        child(child(spec, "resources"), "requests")[&name] = value;
    }
}

/// Opens the ports of a container on the node.
fn host_ports(container: &mut Value) {
    for port in items(container, "ports") {
        if port["hostPort"].as_i64().unwrap_or_default() == 0 {
            port["hostPort"] = port["containerPort"].clone();
        }
    }
}

/// Sets the status of a new Pod.
pub(crate) fn start(object: &mut Value) {
    default(child(object, "status"), "phase", json!("Pending"));
    gated(object);
    let class = qos(&object["spec"]);
    object["status"]["qosClass"] = json!(class);
}

/// Keeps the class of a Pod in a status that lacks a class.
pub(crate) fn keep_class(old: &Value, new: &mut Value) {
    if let Some(class) = old["status"]["qosClass"].as_str() {
        default(child(new, "status"), "qosClass", json!(class));
    }
}

/// Adds the condition of a Pod that waits for scheduling gates.
fn gated(object: &mut Value) {
    let has_gates =
        object["spec"]["schedulingGates"].as_array().is_some_and(|list| !list.is_empty());
    let conditions = &mut object["status"]["conditions"];
    if has_gates && conditions.is_null() {
        *conditions = json!([{
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": null,
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
}

/// Fills in the defaults of the template in `spec`.
pub(crate) fn template(spec: &mut Value) {
    let template = child(spec, "template");
    child(template, "metadata");
    pod_spec(child(template, "spec"));
}

/// Fills in the defaults of a pod spec.
fn pod_spec(spec: &mut Value) {
    default(spec, "dnsPolicy", json!("ClusterFirst"));
    default(spec, "restartPolicy", json!("Always"));
    child(spec, "securityContext");
    default(spec, "terminationGracePeriodSeconds", json!(30));
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        spec["terminationGracePeriodSeconds"] = json!(1);
    }
    default(spec, "schedulerName", json!("default-scheduler"));
    // The older name of the same field always has the same value.
    let account = spec["serviceAccountName"].clone();
    if account.is_string() {
        spec["serviceAccount"] = account;
    } else if spec["serviceAccount"].is_string() {
        let account = spec["serviceAccount"].clone();
        spec["serviceAccountName"] = account;
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for one in items(spec, list) {
            container(one);
        }
    }
    for one in items(spec, "volumes") {
        volume(one);
    }
}

/// Fills in the defaults of a container.
fn container(container: &mut Value) {
    default(container, "terminationMessagePath", json!("/dev/termination-log"));
    default(container, "terminationMessagePolicy", json!("File"));
    let image = container["image"].as_str().unwrap_or_default();
    let policy = if latest(image) { "Always" } else { "IfNotPresent" };
    default(container, "imagePullPolicy", json!(policy));
    child(container, "resources");
    for port in items(container, "ports") {
        default(port, "protocol", json!("TCP"));
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[name].is_object() {
            probe(&mut container[name]);
        }
    }
    for event in ["postStart", "preStop"] {
        if let Some(handler) = container.pointer_mut(&format!("/lifecycle/{event}")) {
            http_get(handler);
        }
    }
    for variable in items(container, "env") {
        let source = &mut variable["valueFrom"];
        if source.is_object() && source["fieldRef"].is_object() {
            default(&mut source["fieldRef"], "apiVersion", json!("v1"));
        }
    }
    strip_absent(container);
}

/// Removes the nulls that reading through an index leaves behind.
fn strip_absent(container: &mut Value) {
    super::defaults::strip_nulls(container);
}

/// Whether the image names the latest version: by tag, or by naming no version.
fn latest(image: &str) -> bool {
    // What cannot be read has no tag.
    if image.is_empty() {
        return false;
    }
    // A digest always names the same version.
    if image.contains('@') {
        return false;
    }
    // Only the last part has a tag: the first may have a port.
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// Fills in the defaults of a probe; zero counts as unset.
fn probe(probe: &mut Value) {
    for (field, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        // Zero means unset, since Go's field is no pointer.
        if probe[field] == 0 {
            probe[field] = Value::Null;
        }
        default(probe, field, json!(value));
    }
    http_get(probe);
    if probe["grpc"].is_object() && probe["grpc"].get("service").is_none() {
        probe["grpc"]["service"] = json!("");
    }
}

/// Fills in the defaults of the request of a probe or hook.
fn http_get(handler: &mut Value) {
    if let Some(request) = handler.get_mut("httpGet").filter(|request| request.is_object()) {
        default(request, "path", json!("/"));
        default(request, "scheme", json!("HTTP"));
    }
}

/// Fills in the defaults of a volume; one without a source is an `emptyDir`.
fn volume(volume: &mut Value) {
    let Value::Object(fields) = volume else { return };
    // A volume has a single source besides its name.
    if fields.keys().all(|key| key == "name") {
        fields.insert("emptyDir".to_owned(), json!({}));
    }
    for (source, field, value) in [
        ("secret", "defaultMode", json!(420)),
        ("configMap", "defaultMode", json!(420)),
        ("downwardAPI", "defaultMode", json!(420)),
        ("projected", "defaultMode", json!(420)),
        ("hostPath", "type", json!("")),
    ] {
        if let Some(source) = fields.get_mut(source).filter(|held| held.get(field).is_none()) {
            default(source, field, value);
        }
    }
    if let Some(source) = fields.get_mut("downwardAPI") {
        references(source);
    }
    if fields.keys().any(|key| SOURCES.iter().any(|(source, ..)| source == key)) {
        sources(volume);
    }
    let Value::Object(fields) = volume else { return };
    for source in fields.get_mut("projected").into_iter().flat_map(|held| items(held, "sources")) {
        references(&mut source["downwardAPI"]);
        if source["serviceAccountToken"].is_object() {
            default(&mut source["serviceAccountToken"], "expirationSeconds", json!(3600));
        }
        super::defaults::strip_nulls(source);
    }
    let claim = fields.get_mut("ephemeral").and_then(|held| held.get_mut("volumeClaimTemplate"));
    if let Some(claim) = claim.filter(|claim| claim.is_object()) {
        default_pointer(child(claim, "spec"), "volumeMode", json!("Filesystem"));
    }
}

/// Defaults of sources of volumes, by source and field.
const SOURCES: [(&str, &str, &str); 9] = [
    ("rbd", "pool", "rbd"),
    ("rbd", "user", "admin"),
    ("rbd", "keyring", "/etc/ceph/keyring"),
    ("iscsi", "iscsiInterface", "default"),
    ("azureDisk", "cachingMode", "ReadWrite"),
    ("azureDisk", "fsType", "ext4"),
    ("azureDisk", "kind", "Shared"),
    ("scaleIO", "storageMode", "ThinProvisioned"),
    ("scaleIO", "fsType", "xfs"),
];

/// Fills in the defaults of the source of a volume.
pub(super) fn sources(volume: &mut Value) {
    for (source, field, value) in SOURCES {
        if let Some(held) = volume.get_mut(source).filter(|held| held.is_object()) {
            default(held, field, json!(value));
        }
    }
    if let Some(disk) = volume.get_mut("azureDisk").filter(|disk| disk.is_object()) {
        default(disk, "readOnly", json!(false));
    }
}

/// Fills in the defaults of references to fields of the Pod.
fn references(source: &mut Value) {
    if !source.is_object() {
        return;
    }
    for item in items(source, "items").filter(|item| item["fieldRef"].is_object()) {
        default(&mut item["fieldRef"], "apiVersion", json!("v1"));
    }
}

/// Requests each resource that a container limits, unless already requested.
fn requests(container: &mut Value) {
    let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
    for (name, limit) in limits {
        let requests = child(child(container, "resources"), "requests");
        // A limit without a request is also the request.
        default(requests, &name, limit);
    }
}

/// Returns the quality of service class of a Pod: the class in the status, which no change of the
/// spec moves.
pub(crate) fn qos_of(pod: &Value) -> &str {
    let known = pod["status"]["qosClass"].as_str().filter(|class| !class.is_empty());
    known.unwrap_or_else(|| qos(&pod["spec"]))
}

/// Returns the quality of service class of a pod spec.
pub(crate) fn qos(spec: &Value) -> &'static str {
    // Resources of the whole Pod count in place of container resources.
    let of_pod = &spec["resources"];
    let is_set = |part: &str| of_pod[part].as_object().is_some_and(|held| !held.is_empty());
    let whole = (is_set("requests") || is_set("limits")).then_some(spec);
    let containers = ["containers", "initContainers"].into_iter();
    let containers = containers.flat_map(|list| spec[list].as_array().into_iter().flatten());
    let counted: Vec<&Value> = match whole {
        Some(spec) => vec![spec],
        None => containers.collect(),
    };
    let amount = |one: &Value, part: &str, name: &str| {
        let amount = Quantity::parse(&one["resources"][part][name]);
        amount.filter(|amount| !amount.is_zero() && !amount.is_negative())
    };
    let sum = |part: &str, name: &str| {
        counted.iter().filter_map(|one| amount(one, part, name)).reduce(|sum, more| sum + more)
    };
    let sums = ["cpu", "memory"].map(|name| (sum("requests", name), sum("limits", name)));
    if sums.iter().all(|(requests, limits)| requests.is_none() && limits.is_none()) {
        return "BestEffort";
    }
    let limited =
        |one: &&Value| ["cpu", "memory"].iter().all(|n| amount(one, "limits", n).is_some());
    let is_equal = sums.iter().all(|(requests, limits)| requests == limits);
    if is_equal && counted.iter().all(limited) { "Guaranteed" } else { "Burstable" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_untagged_and_latest_images_are_always_pulled() {
        for (image, always) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1.2", false),
            ("localhost:5000/nginx", true),
            ("localhost:5000/nginx:1", false),
            ("nginx@sha256:ab", false),
        ] {
            assert_eq!(latest(image), always, "{image}");
        }
    }

    #[test]
    fn a_hook_asks_for_the_root_over_http() {
        let hook = json!({"httpGet": {"port": 1}});
        let lifecycle = json!({"preStop": hook, "postStart": {"exec": {}}});
        let mut object = json!({"spec": {"containers": [{"name": "c", "lifecycle": lifecycle}]}});
        pod(&mut object);
        let held = &object["spec"]["containers"][0]["lifecycle"];
        let expected = json!({"port": 1, "path": "/", "scheme": "HTTP"});
        assert_eq!(held["preStop"]["httpGet"], expected);
        assert_eq!(held["postStart"], json!({"exec": {}}));
    }

    #[test]
    fn limits_without_requests_make_a_guaranteed_pod() {
        let mut object = json!({"spec": {"containers": [
            {"name": "a", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}});
        pod(&mut object);
        start(&mut object);
        assert_eq!(object["status"]["qosClass"], "Guaranteed");
        assert_eq!(object["spec"]["containers"][0]["resources"]["requests"]["cpu"], "1");
    }

    #[test]
    fn only_a_new_pod_becomes_pending() {
        let mut object = json!({"spec": {"containers": []}, "status": {"message": "m"}});
        pod(&mut object);
        assert_eq!(object["status"], json!({"message": "m"}));
        start(&mut object);
        assert_eq!(object["status"]["phase"], "Pending");
    }

    #[test]
    fn ports_in_the_network_of_the_node_are_open_there() {
        let mut object = json!({"spec": {"hostNetwork": true, "containers": [
            {"name": "a", "ports": [{"containerPort": 80}]}]}});
        pod(&mut object);
        assert_eq!(object["spec"]["containers"][0]["ports"][0]["hostPort"], 80);
    }

    #[test]
    fn a_volume_without_a_source_is_an_empty_directory() {
        let mut one = json!({"name": "v"});
        volume(&mut one);
        assert_eq!(one, json!({"name": "v", "emptyDir": {}}));
    }
}
