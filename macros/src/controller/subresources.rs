//! Subresources that only some kinds of Kubernetes have.

use syn::Type;

/// A subresource, and the kinds of Kubernetes that have this subresource. Many kinds have `status`
/// and `finalizers`.
const OWNERS: &[(&str, &[&str])] = &[
    ("approval", &["CertificateSigningRequest"]),
    ("attach", &["Pod"]),
    ("binding", &["Pod"]),
    ("ephemeralcontainers", &["Pod"]),
    ("eviction", &["Pod"]),
    ("exec", &["Pod"]),
    ("finalize", &["Namespace"]),
    // The kubelet's own logs are those of nodes.
    ("log", &["Node", "Pod"]),
    ("portforward", &["Pod"]),
    ("proxy", &["Node", "Pod", "Service"]),
    ("resize", &["Pod"]),
    ("scale", &["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"]),
    ("token", &["ServiceAccount"]),
];

/// Kinds of Kubernetes whose plain name is hardly that of a custom resource.
const BUILT_IN: &[&str] = &[
    "CertificateSigningRequest",
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ControllerRevision",
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Endpoints",
    "EndpointSlice",
    "Event",
    "HorizontalPodAutoscaler",
    "Ingress",
    "IngressClass",
    "Job",
    "Lease",
    "LimitRange",
    "Namespace",
    "NetworkPolicy",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "PodTemplate",
    "PriorityClass",
    "ReplicaSet",
    "ReplicationController",
    "ResourceQuota",
    "Role",
    "RoleBinding",
    "RuntimeClass",
    "Secret",
    "Service",
    "ServiceAccount",
    "StatefulSet",
    "StorageClass",
];

/// Returns the text against the name of a subresource that no API has; a wildcard would permit all
/// subresources of a kind, such as commands in Pods.
pub(super) fn name_fault(sub: &str) -> Option<String> {
    if sub.contains('*') {
        return Some("name the subresource: a wildcard grants more than is used".to_owned());
    }
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_good = sub.starts_with(|c: char| c.is_ascii_lowercase()) && sub.chars().all(is_plain);
    (!is_good).then(|| {
        format!("`{sub}` is no subresource: its name is a word in lower case, such as `status`")
    })
}

/// Returns the text against a subresource of another kind; `None` for a subresource that the kind
/// may have.
pub(super) fn fault(kind: &Type, sub: &str) -> Option<String> {
    let Type::Path(path) = kind else { return None };
    // A type of the same name from elsewhere may have any subresource.
    let segments = &path.path.segments;
    let is_plain = segments.len() == 1 || segments.first()?.ident == "k8s_openapi";
    let kind = segments.last()?.ident.to_string();
    let (_, owners) = OWNERS.iter().find(|(name, _)| *name == sub)?;
    if !is_plain || !BUILT_IN.contains(&kind.as_str()) || owners.contains(&kind.as_str()) {
        return None;
    }
    let owners: Vec<String> = owners.iter().map(|owner| format!("`{owner}/{sub}`")).collect();
    Some(format!("`{kind}` has no subresource `{sub}`; there is {}", owners.join(", ")))
}
