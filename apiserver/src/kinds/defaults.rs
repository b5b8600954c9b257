//! Defaults of built-in kinds, for the fields that clients and controllers compare.
//!
//! Without them an operator that compares the wanted state with the stored state would see other
//! differences than on a real cluster. Addresses of Services depend on other Services and are
//! assigned elsewhere.

use base64::Engine;
use serde_json::{Value, json};

use super::{Kind, pods, settings};

/// Sets `field` of `object` if absent, null or an empty text.
pub(crate) fn default(object: &mut Value, field: &str, value: Value) {
    let Value::Object(fields) = object else { return };
    let absent = match fields.get(field) {
        None | Some(Value::Null) => true,
        // Go's typed decoding does not distinguish an empty text from an absent text.
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if absent {
        fields.insert(field.to_owned(), value);
    }
}

/// Sets `field` of `object` if absent or null: for fields behind a pointer in Go, whose empty text
/// is a value, which validation refuses.
pub(crate) fn default_pointer(object: &mut Value, field: &str, value: Value) {
    if object.get(field).is_none_or(Value::is_null) {
        default(object, field, value);
    }
}

/// Sets the list `field` of `object` if absent, null or empty.
///
/// For defaults that upstream sets by the list's length. Where upstream distinguishes an empty list
/// from none, the empty list stays, and is refused.
pub(crate) fn default_list(object: &mut Value, field: &str, value: Value) {
    if let Value::Object(fields) = object
        && fields.get(field).and_then(Value::as_array).is_some_and(Vec::is_empty)
    {
        fields.remove(field);
    }
    default(object, field, value);
}

/// Returns a child object; creates it if absent or no object.
pub(crate) fn child<'a>(object: &'a mut Value, field: &str) -> &'a mut Value {
    if !object.is_object() {
        *object = json!({});
    }
    let held = &mut object[field];
    if !held.is_object() {
        *held = json!({});
    }
    held
}

/// Iterates over the objects in a list; an absent list has none.
pub(crate) fn items<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = object.get_mut(field).and_then(Value::as_array_mut);
    list.into_iter().flatten().filter(|item| item.is_object())
}

/// Removes nulls, as decoding into typed structures does.
pub(crate) fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

/// Turns nulls in the data of ConfigMaps and Secrets into empty texts, as decoding into maps does.
pub(crate) fn empty_texts(kind: &Kind, object: &mut Value) {
    if !kind.is("", "configmaps") && !kind.is("", "secrets") {
        return;
    }
    for field in ["data", "binaryData", "stringData"] {
        let Some(Value::Object(data)) = object.get_mut(field) else { continue };
        for value in data.values_mut().filter(|value| value.is_null()) {
            *value = json!("");
        }
    }
}

/// Fills in the fields that clients of a built-in kind may leave out.
pub(crate) fn apply(kind: &Kind, object: &mut Value) {
    match (kind.served.group.as_str(), kind.name()) {
        ("", "Service") => super::services::defaults(object),
        ("", "Secret") => secret(object),
        ("", "Namespace") => namespace(object),
        ("", "Pod") => pods::pod(object),
        ("", "PersistentVolumeClaim") => claim(object),
        ("", "PersistentVolume") => volume(object),
        ("", "PodTemplate") => pods::template(object),
        ("", "Endpoints") => endpoints(object),
        ("", "Node") => settings::node(object),
        ("" | "apps", "ReplicationController" | "ReplicaSet") => replicas(object),
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("batch", "Job") => job(object),
        ("batch", "CronJob") => cron_job(object),
        ("autoscaling", _) => autoscaler(kind, object),
        ("admissionregistration.k8s.io", name) if name.contains("Policy") => {
            settings::policy(name, object);
        }
        ("admissionregistration.k8s.io", _) => webhooks(kind, object),
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("networking.k8s.io", "IngressClass") if object["spec"]["parameters"].is_object() => {
            default_pointer(&mut object["spec"]["parameters"], "scope", json!("Cluster"));
        }
        ("networking.k8s.io", "Ingress") => drop(child(child(object, "status"), "loadBalancer")),
        ("rbac.authorization.k8s.io", _) => rbac(object),
        ("scheduling.k8s.io", _) => {
            default_pointer(object, "preemptionPolicy", json!("PreemptLowerPriority"))
        }
        ("storage.k8s.io", name) => settings::storage(name, object),
        ("flowcontrol.apiserver.k8s.io", name) => settings::flow(name, object),
        ("", "LimitRange") => settings::limits(object),
        ("discovery.k8s.io", _) => {
            for port in items(object, "ports") {
                default(port, "name", json!(""));
                default_pointer(port, "protocol", json!("TCP"));
            }
        }
        ("resource.k8s.io", _) => settings::devices(object),
        ("apiextensions.k8s.io", _) => definition(object),
        ("apiregistration.k8s.io", _) if object["spec"]["service"].is_object() => {
            default_pointer(&mut object["spec"]["service"], "port", json!(443));
        }
        _ => {}
    }
}

/// Defaults of Endpoints.
fn endpoints(object: &mut Value) {
    for subset in items(object, "subsets") {
        for port in items(subset, "ports") {
            default(port, "protocol", json!("TCP"));
        }
    }
}

/// Defaults of autoscalers.
fn autoscaler(kind: &Kind, object: &mut Value) {
    let spec = child(object, "spec");
    default(spec, "minReplicas", json!(1));
    // The older version has no list of metrics.
    if kind.served.version == "v1" {
        return;
    }
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    if spec["behavior"].is_object() {
        scaling(&mut spec["behavior"]);
    }
    let metric = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
    default_list(spec, "metrics", metric);
}

/// Defaults of the behaviour of an autoscaler: down at once, up by four Pods or twice as many.
fn scaling(behavior: &mut Value) {
    let by = |kind: &str, value: u32| json!({"type": kind, "value": value, "periodSeconds": 15});
    let up = child(behavior, "scaleUp");
    default(up, "stabilizationWindowSeconds", json!(0));
    default_pointer(up, "selectPolicy", json!("Max"));
    default(up, "policies", json!([by("Pods", 4), by("Percent", 100)]));
    let down = child(behavior, "scaleDown");
    default_pointer(down, "selectPolicy", json!("Max"));
    default(down, "policies", json!([by("Percent", 100)]));
}

/// Defaults of Secrets; moves `stringData` into `data`.
fn secret(object: &mut Value) {
    default(object, "type", json!("Opaque"));
    let Value::Object(fields) = object else { return };
    let Some(Value::Object(texts)) = fields.remove("stringData") else { return };
    let data = child(object, "data");
    for (key, text) in texts {
        let bytes = text.as_str().unwrap_or_default();
        data[key] = json!(base64::engine::general_purpose::STANDARD.encode(bytes));
    }
}

/// Labels a Namespace with its name: selectors of policies and webhooks rely on this label.
pub(crate) fn label_namespace(object: &mut Value, name: Value) {
    child(child(object, "metadata"), "labels")["kubernetes.io/metadata.name"] = name;
}

/// Defaults of Namespaces.
fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    if name.as_str().is_some_and(|name| !name.is_empty()) {
        label_namespace(object, name);
    }
    default(child(object, "status"), "phase", json!("Active"));
}

/// Defaults of claims to volumes.
fn claim(object: &mut Value) {
    default_pointer(child(object, "spec"), "volumeMode", json!("Filesystem"));
    default(child(object, "status"), "phase", json!("Pending"));
}

/// Defaults of persistent volumes.
fn volume(object: &mut Value) {
    let spec = child(object, "spec");
    default(spec, "persistentVolumeReclaimPolicy", json!("Retain"));
    default_pointer(spec, "volumeMode", json!("Filesystem"));
    if spec["hostPath"].is_object() && spec["hostPath"]["type"].is_null() {
        spec["hostPath"]["type"] = json!("");
    }
    pods::sources(spec);
    default(child(object, "status"), "phase", json!("Pending"));
}

/// Defaults of webhook configurations.
fn webhooks(kind: &Kind, object: &mut Value) {
    for webhook in items(object, "webhooks") {
        default_pointer(webhook, "failurePolicy", json!("Fail"));
        default_pointer(webhook, "matchPolicy", json!("Equivalent"));
        default(webhook, "timeoutSeconds", json!(10));
        child(webhook, "namespaceSelector");
        child(webhook, "objectSelector");
        if kind.name() == "MutatingWebhookConfiguration" {
            default_pointer(webhook, "reinvocationPolicy", json!("Never"));
        }
        for rule in items(webhook, "rules") {
            default_pointer(rule, "scope", json!("*"));
        }
        if webhook["clientConfig"]["service"].is_object() {
            default(&mut webhook["clientConfig"]["service"], "port", json!(443));
        }
    }
}

/// Defaults of replica sets and replication controllers.
fn replicas(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    // Only this oldest kind takes the selector from the template.
    if labels.is_object() && object["kind"] == "ReplicationController" {
        default_map(child(object, "spec"), "selector", &labels);
        default_map(child(object, "metadata"), "labels", &labels);
    }
    let is_oldest = object["kind"] == "ReplicationController";
    let spec = child(object, "spec");
    default(spec, "replicas", json!(1));
    // The template of the oldest kind is behind a pointer.
    if spec["template"].is_object() || !is_oldest {
        pods::template(spec);
    }
    default(child(object, "status"), "replicas", json!(0));
}

/// Sets the map `field` of `object` if absent, null or empty.
fn default_map(object: &mut Value, field: &str, value: &Value) {
    if object[field].as_object().is_none_or(serde_json::Map::is_empty) {
        object[field] = value.clone();
    }
}

/// Defaults of Deployments.
fn deployment(object: &mut Value) {
    let spec = child(object, "spec");
    default(spec, "replicas", json!(1));
    default(spec, "revisionHistoryLimit", json!(10));
    default(spec, "progressDeadlineSeconds", json!(600));
    let strategy = child(spec, "strategy");
    default(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        default(rolling, "maxUnavailable", json!("25%"));
        default(rolling, "maxSurge", json!("25%"));
    }
    pods::template(spec);
    child(object, "status");
}

/// Defaults of stateful sets.
fn stateful_set(object: &mut Value) {
    let spec = child(object, "spec");
    default(spec, "replicas", json!(1));
    default(spec, "revisionHistoryLimit", json!(10));
    default(spec, "podManagementPolicy", json!("OrderedReady"));
    let strategy = child(spec, "updateStrategy");
    // A strategy with a type but without parameters stays without them.
    if strategy["type"].as_str().is_none_or(str::is_empty) {
        default(strategy, "type", json!("RollingUpdate"));
        child(strategy, "rollingUpdate");
    }
    if strategy["type"] == "RollingUpdate" && strategy["rollingUpdate"].is_object() {
        default(&mut strategy["rollingUpdate"], "partition", json!(0));
    }
    let retention = child(spec, "persistentVolumeClaimRetentionPolicy");
    default(retention, "whenDeleted", json!("Retain"));
    default(retention, "whenScaled", json!("Retain"));
    for volume in items(spec, "volumeClaimTemplates") {
        // Not only defaults: kind and version are no fields of the volume inside of the server,
        // which writes these.
        volume["apiVersion"] = json!("v1");
        volume["kind"] = json!("PersistentVolumeClaim");
        claim(volume);
    }
    pods::template(spec);
    let status = child(object, "status");
    default(status, "replicas", json!(0));
    default(status, "availableReplicas", json!(0));
}

/// Defaults of daemon sets.
fn daemon_set(object: &mut Value) {
    let annotations = child(child(object, "metadata"), "annotations");
    default(annotations, "deprecated.daemonset.template.generation", json!("1"));
    let spec = child(object, "spec");
    default(spec, "revisionHistoryLimit", json!(10));
    let strategy = child(spec, "updateStrategy");
    default(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        default(rolling, "maxUnavailable", json!(1));
        default(rolling, "maxSurge", json!(0));
    }
    pods::template(spec);
    let status = child(object, "status");
    for field in
        ["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"]
    {
        default(status, field, json!(0));
    }
}

/// Defaults of the spec of Jobs.
fn job_spec(spec: &mut Value) {
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        default(spec, "completions", json!(1));
    }
    default(spec, "parallelism", json!(1));
    // With a limit per index there is no limit for the Job as a whole.
    let many = !spec["backoffLimitPerIndex"].is_null();
    default(spec, "backoffLimit", json!(if many { i32::MAX } else { 6 }));
    default_pointer(spec, "completionMode", json!("NonIndexed"));
    default(spec, "suspend", json!(false));
    let failed = !spec["podFailurePolicy"].is_null();
    let replace = if failed { "Failed" } else { "TerminatingOrFailed" };
    default_pointer(spec, "podReplacementPolicy", json!(replace));
    default(spec, "manualSelector", json!(false));
    if failed {
        for rule in items(&mut spec["podFailurePolicy"], "rules") {
            for condition in items(rule, "onPodConditions") {
                default(condition, "status", json!("True"));
            }
        }
    }
    pods::template(spec);
}

/// Defaults of Jobs.
fn job(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if labels.is_object() && object["metadata"]["labels"].is_null() {
        child(object, "metadata")["labels"] = labels;
    }
    job_spec(child(object, "spec"));
    child(object, "status");
}

/// Defaults of cron jobs.
fn cron_job(object: &mut Value) {
    let spec = child(object, "spec");
    default(spec, "concurrencyPolicy", json!("Allow"));
    default(spec, "suspend", json!(false));
    default(spec, "successfulJobsHistoryLimit", json!(3));
    default(spec, "failedJobsHistoryLimit", json!(1));
    // A template leaves most of a Job's fields open: they are filled in when the Job is created.
    let inner = child(child(spec, "jobTemplate"), "spec");
    pods::template(inner);
    child(object, "status");
}

/// Defaults of network policies.
fn network_policy(object: &mut Value) {
    let spec = child(object, "spec");
    let has_egress = spec["egress"].as_array().is_some_and(|rules| !rules.is_empty());
    let types = if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    default_list(spec, "policyTypes", types);
    for direction in ["ingress", "egress"] {
        for rule in items(spec, direction) {
            for port in items(rule, "ports") {
                default_pointer(port, "protocol", json!("TCP"));
            }
        }
    }
}

/// Defaults of roles and bindings.
fn rbac(object: &mut Value) {
    if object["roleRef"].is_object() {
        default(&mut object["roleRef"], "apiGroup", json!("rbac.authorization.k8s.io"));
    }
    for subject in items(object, "subjects") {
        if subject["kind"] == "User" || subject["kind"] == "Group" {
            default(subject, "apiGroup", json!("rbac.authorization.k8s.io"));
        }
    }
}

/// Defaults of definitions.
fn definition(object: &mut Value) {
    let spec = child(object, "spec");
    default(spec, "conversion", json!({"strategy": "None"}));
    let stored = items(spec, "versions").find(|version| version["storage"] == true);
    let stored = stored.map(|version| version["name"].clone());
    let names = child(spec, "names");
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    default(names, "singular", json!(kind.to_lowercase()));
    if !kind.is_empty() {
        default(names, "listKind", json!(format!("{kind}List")));
    }
    if let Some(stored) = stored {
        default_list(child(object, "status"), "storedVersions", json!([stored]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::builtin;

    fn defaulted(name: &str, mut object: Value) -> Value {
        let kind = builtin::kinds().into_iter().find(|kind| kind.name() == name).unwrap();
        apply(&kind, &mut object);
        object
    }

    #[test]
    fn a_deployment_gets_one_replica_and_a_rolling_update() {
        let object = defaulted(
            "Deployment",
            json!({"spec": {"template": {"spec": {"containers": [
            {"name": "a", "image": "nginx", "ports": [{"containerPort": 80}]}]}}}}),
        );
        assert_eq!(object["spec"]["replicas"], 1);
        assert_eq!(object["spec"]["strategy"]["rollingUpdate"]["maxSurge"], "25%");
        let pod = &object["spec"]["template"]["spec"];
        assert_eq!(pod["restartPolicy"], "Always");
        assert_eq!(pod["containers"][0]["imagePullPolicy"], "Always");
        assert_eq!(pod["containers"][0]["ports"][0]["protocol"], "TCP");
    }

    #[test]
    fn explicit_zeroes_stay() {
        let object = defaulted("Deployment", json!({"spec": {"replicas": 0}}));
        assert_eq!(object["spec"]["replicas"], 0);
    }

    #[test]
    fn a_secrets_texts_become_bytes() {
        let object = defaulted("Secret", json!({"stringData": {"a": "b"}}));
        assert_eq!(object, json!({"type": "Opaque", "data": {"a": "Yg=="}}));
    }

    #[test]
    fn an_empty_list_gets_the_default_of_a_missing_one() {
        let of = |name: &str, spec: Value| defaulted(name, json!({ "spec": spec }))["spec"].take();
        let policy = |spec: Value| of("NetworkPolicy", spec)["policyTypes"].take();
        assert_eq!(policy(json!({ "policyTypes": [], "egress": [] })), json!(["Ingress"]));
        let both = json!(["Ingress", "Egress"]);
        assert_eq!(policy(json!({ "policyTypes": [], "egress": [{}] })), both);
        let scaler = of(
            "HorizontalPodAutoscaler",
            json!({ "metrics": [], "behavior": { "scaleUp": { "policies": [] } } }),
        );
        assert_eq!(scaler["metrics"][0]["resource"]["name"], "cpu");
        assert_eq!(scaler["behavior"]["scaleUp"]["policies"], json!([]), "it is refused");
        let driver = of("CSIDriver", json!({ "volumeLifecycleModes": [] }));
        assert_eq!(driver["volumeLifecycleModes"], json!(["Persistent"]));
    }

    #[test]
    fn a_template_of_claims_is_one_whatever_it_says() {
        let template = json!({ "apiVersion": "v9", "kind": "X", "metadata": { "name": "data" } });
        let set =
            defaulted("StatefulSet", json!({ "spec": { "volumeClaimTemplates": [template] } }));
        let template = &set["spec"]["volumeClaimTemplates"][0];
        assert_eq!(template["apiVersion"], "v1");
        assert_eq!(template["kind"], "PersistentVolumeClaim");
    }

    #[test]
    fn a_services_ports_target_themselves() {
        let object = defaulted("Service", json!({"spec": {"ports": [{"port": 80}]}}));
        assert_eq!(
            object["spec"]["ports"][0],
            json!({"port": 80, "targetPort": 80, "protocol": "TCP"})
        );
        assert_eq!(object["spec"]["type"], "ClusterIP");
    }
}
