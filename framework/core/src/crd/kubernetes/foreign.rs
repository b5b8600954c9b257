//! Schemas that `k8s_openapi` has for Kubernetes' types, completed by the missing parts.
//!
//! With the feature `schemars` of that crate the types have their fields, requirements and
//! descriptions, but no list types: without list types server-side apply replaces `containers` as a
//! whole. The tables have the markers `+listType` and `+structType` of Kubernetes 1.36, as
//! published by the API server under `/openapi/v3`. Lists that are not in them are atomic there,
//! too.

use serde_json::{Map, Value, json};

/// Lists whose items are distinguished by a field: the field, the type, and the lists.
const KEYED: &[(&str, &str, &[&str])] = &[
    ("name", "admissionregistration.v1.MutatingAdmissionPolicySpec", &["matchConditions"]),
    ("name", "admissionregistration.v1.MutatingWebhook", &["matchConditions"]),
    ("name", "admissionregistration.v1.MutatingWebhookConfiguration", &["webhooks"]),
    (
        "name",
        "admissionregistration.v1.ValidatingAdmissionPolicySpec",
        &["matchConditions", "variables"],
    ),
    ("name", "admissionregistration.v1.ValidatingWebhook", &["matchConditions"]),
    ("name", "admissionregistration.v1.ValidatingWebhookConfiguration", &["webhooks"]),
    ("name", "core.v1.Container", &["env"]),
    ("name", "core.v1.ContainerStatus", &["allocatedResourcesStatus"]),
    ("name", "core.v1.EphemeralContainer", &["env"]),
    (
        "name",
        "core.v1.PodSpec",
        &[
            "containers",
            "ephemeralContainers",
            "imagePullSecrets",
            "initContainers",
            "resourceClaims",
            "schedulingGates",
            "volumes",
        ],
    ),
    ("name", "core.v1.PodStatus", &["resourceClaimStatuses"]),
    ("name", "core.v1.ResourceRequirements", &["claims"]),
    ("name", "storage.v1.CSINodeSpec", &["drivers"]),
    ("type", "admissionregistration.v1.ValidatingAdmissionPolicyStatus", &["conditions"]),
    ("type", "apps.v1.DaemonSetStatus", &["conditions"]),
    ("type", "apps.v1.DeploymentStatus", &["conditions"]),
    ("type", "apps.v1.ReplicaSetStatus", &["conditions"]),
    ("type", "apps.v1.StatefulSetStatus", &["conditions"]),
    ("type", "autoscaling.v2.HorizontalPodAutoscalerStatus", &["conditions"]),
    ("type", "certificates.v1.CertificateSigningRequestStatus", &["conditions"]),
    ("type", "core.v1.ComponentStatus", &["conditions"]),
    ("type", "core.v1.NamespaceStatus", &["conditions"]),
    ("type", "core.v1.NodeStatus", &["addresses", "conditions"]),
    ("type", "core.v1.PersistentVolumeClaimStatus", &["conditions"]),
    ("type", "core.v1.PodStatus", &["conditions"]),
    ("type", "core.v1.ReplicationControllerStatus", &["conditions"]),
    ("type", "core.v1.ServiceStatus", &["conditions"]),
    ("type", "networking.v1.ServiceCIDRStatus", &["conditions"]),
    ("type", "policy.v1.PodDisruptionBudgetStatus", &["conditions"]),
    ("type", "resource.v1.AllocatedDeviceStatus", &["conditions"]),
    ("devicePath", "core.v1.Container", &["volumeDevices"]),
    ("devicePath", "core.v1.EphemeralContainer", &["volumeDevices"]),
    ("mountPath", "core.v1.Container", &["volumeMounts"]),
    ("mountPath", "core.v1.ContainerStatus", &["volumeMounts"]),
    ("mountPath", "core.v1.EphemeralContainer", &["volumeMounts"]),
    ("ip", "core.v1.PodSpec", &["hostAliases"]),
    ("ip", "core.v1.PodStatus", &["podIPs"]),
    ("resourceID", "core.v1.ResourceStatus", &["resources"]),
    ("uid", "resource.v1.ResourceClaimStatus", &["reservedFor"]),
    ("uid", "meta.v1.ObjectMeta", &["ownerReferences"]),
];

/// Lists whose items are distinguished by two fields.
const KEYED_BY_TWO: &[(&str, &str, [&str; 2])] = &[
    ("core.v1.Container", "ports", ["containerPort", "protocol"]),
    ("core.v1.EphemeralContainer", "ports", ["containerPort", "protocol"]),
    ("core.v1.PodSpec", "topologySpreadConstraints", ["topologyKey", "whenUnsatisfiable"]),
    ("core.v1.ServiceSpec", "ports", ["port", "protocol"]),
];

/// Lists without duplicates.
const SETS: &[(&str, &[&str])] = &[
    ("admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec", &["validationActions"]),
    ("batch.v1.PodFailurePolicyOnExitCodesRequirement", &["values"]),
    ("batch.v1.UncountedTerminatedPods", &["failed", "succeeded"]),
    ("core.v1.ContainerRestartRuleOnExitCodes", &["values"]),
    ("core.v1.NodeAllocatableResourceClaimStatus", &["containers"]),
    ("core.v1.NodeSpec", &["podCIDRs"]),
    ("discovery.v1.Endpoint", &["addresses"]),
    ("flowcontrol.v1.NonResourcePolicyRule", &["nonResourceURLs", "verbs"]),
    ("flowcontrol.v1.ResourcePolicyRule", &["apiGroups", "namespaces", "resources", "verbs"]),
    ("storage.v1.CSIDriverSpec", &["volumeLifecycleModes"]),
    ("meta.v1.ObjectMeta", &["finalizers"]),
];

/// Types that server-side apply replaces as a whole.
const ATOMIC: &[&str] = &[
    "admissionregistration.v1.MatchResources",
    "admissionregistration.v1.NamedRuleWithOperations",
    "admissionregistration.v1.ParamKind",
    "admissionregistration.v1.ParamRef",
    "admissionregistration.v1.Variable",
    "autoscaling.v1.CrossVersionObjectReference",
    "core.v1.ConfigMapKeySelector",
    "core.v1.EndpointAddress",
    "core.v1.EndpointPort",
    "core.v1.FileKeySelector",
    "core.v1.LocalObjectReference",
    "core.v1.NodeSelector",
    "core.v1.NodeSelectorTerm",
    "core.v1.ObjectFieldSelector",
    "core.v1.ObjectReference",
    "core.v1.ResourceFieldSelector",
    "core.v1.ScopeSelector",
    "core.v1.SecretKeySelector",
    "core.v1.SecretReference",
    "core.v1.TopologySelectorTerm",
    "core.v1.TypedLocalObjectReference",
    "discovery.v1.EndpointPort",
    "meta.v1.LabelSelector",
    "meta.v1.OwnerReference",
    "networking.v1.ServiceBackendPort",
    "rbac.v1.RoleRef",
    "rbac.v1.Subject",
];

/// Defaults of fields by which items are distinguished: a key is required or has a default.
const DEFAULTS: &[(&str, &str, &str)] = &[
    ("core.v1.ContainerPort", "protocol", "TCP"),
    ("core.v1.LocalObjectReference", "name", ""),
    ("core.v1.ServicePort", "protocol", "TCP"),
];

/// Groups, as names of types have them and as `apiVersion` does.
const GROUPS: &[(&str, &str)] = &[
    ("admissionregistration", "admissionregistration.k8s.io/"),
    ("apiextensions", "apiextensions.k8s.io/"),
    ("apiregistration", "apiregistration.k8s.io/"),
    ("apiserverinternal", "internal.apiserver.k8s.io/"),
    ("apps", "apps/"),
    ("authentication", "authentication.k8s.io/"),
    ("authorization", "authorization.k8s.io/"),
    ("autoscaling", "autoscaling/"),
    ("batch", "batch/"),
    ("certificates", "certificates.k8s.io/"),
    ("coordination", "coordination.k8s.io/"),
    ("core", ""),
    ("discovery", "discovery.k8s.io/"),
    ("events", "events.k8s.io/"),
    ("flowcontrol", "flowcontrol.apiserver.k8s.io/"),
    ("meta", ""),
    ("networking", "networking.k8s.io/"),
    ("node", "node.k8s.io/"),
    ("policy", "policy/"),
    ("rbac", "rbac.authorization.k8s.io/"),
    ("resource", "resource.k8s.io/"),
    ("scheduling", "scheduling.k8s.io/"),
    ("storage", "storage.k8s.io/"),
    ("storagemigration", "storagemigration.k8s.io/"),
];

/// Values whose description explains their notation, at each place where they are used: as in
/// upstream's definitions only the fields are described.
const VALUES: &[&str] =
    &["resource.Quantity", "intstr.IntOrString", "meta.v1.Time", "meta.v1.MicroTime"];

/// Completes the schema of a Kubernetes type; `name` is the type's name in `k8s_openapi`.
///
/// `described` says that the field has a description besides the type's description.
pub(in crate::crd) fn complete(name: &str, described: bool, target: &mut Map<String, Value>) {
    if !name.starts_with("io.k8s.") {
        return;
    }
    let is_type =
        |short: &&str| name.strip_suffix(*short).is_some_and(|before| before.ends_with('.'));
    // Described as an object without fields, of which nothing would be kept.
    if is_type(&"runtime.RawExtension") {
        target.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
    }
    if !described && VALUES.iter().any(is_type) {
        target.remove("description");
    }
    if ATOMIC.iter().any(is_type) {
        target.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
    }
    let Some(Value::Object(fields)) = target.get_mut("properties") else { return };
    is_of_kind(name, fields);
    for (_, field, default) in DEFAULTS.iter().filter(|(short, ..)| is_type(short)) {
        if let Some(Value::Object(field)) = fields.get_mut(*field) {
            field.insert("default".to_owned(), (*default).into());
        }
    }
    for (field, schema) in fields {
        let Value::Object(schema) = schema else { continue };
        if schema.get("type").is_none_or(|name| name != "array") {
            continue;
        }
        let has = |lists: &[&str]| lists.contains(&field.as_str());
        let one = KEYED.iter().find(|(_, short, lists)| is_type(short) && has(lists));
        let two = KEYED_BY_TWO.iter().find(|(short, list, _)| is_type(short) && field == list);
        let keys = match (one, two) {
            (Some((key, ..)), _) => Some(json!([key])),
            (None, Some((.., keys))) => Some(json!(keys)),
            (None, None) => None,
        };
        let is_set = SETS.iter().any(|(short, lists)| is_type(short) && has(lists));
        let kind = match &keys {
            Some(_) => "map",
            None if is_set => "set",
            None => "atomic",
        };
        schema.insert("x-kubernetes-list-type".to_owned(), kind.into());
        if let Some(keys) = keys {
            schema.insert("x-kubernetes-list-map-keys".to_owned(), keys);
        }
    }
}

/// Restricts the `apiVersion` and `kind` of a whole object to those that serde reads.
fn is_of_kind(name: &str, fields: &mut Map<String, Value>) {
    let mut parts = name.rsplit('.');
    let (Some(kind), Some(version), Some(group)) = (parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    if !["apiVersion", "kind", "metadata"].iter().all(|field| fields.contains_key(*field)) {
        return;
    }
    let Some((_, prefix)) = GROUPS.iter().find(|(name, _)| *name == group) else { return };
    let api_version = format!("{prefix}{version}");
    for (field, only) in [("apiVersion", api_version), ("kind", kind.to_owned())] {
        if let Some(Value::Object(field)) = fields.get_mut(field) {
            field.insert("enum".to_owned(), json!([only]));
        }
    }
}
