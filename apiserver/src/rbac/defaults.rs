//! The roles and bindings that exist from the start.

use serde_json::{Value, json};

use super::GROUP;

/// Paths that show what the server serves.
const DISCOVERY: &[&str] = &[
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];
/// Paths that anybody may read, with or without credentials.
const PUBLIC: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];
const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
/// What namespaced users work with: group and resources.
const WORKLOADS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "configmaps",
            "endpoints",
            "events",
            "persistentvolumeclaims",
            "pods",
            "pods/log",
            "pods/status",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "serviceaccounts",
            "services",
        ],
    ),
    (
        "apps",
        &[
            "daemonsets",
            "deployments",
            "deployments/scale",
            "replicasets",
            "replicasets/scale",
            "statefulsets",
            "statefulsets/scale",
        ],
    ),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs", "jobs"]),
    ("discovery.k8s.io", &["endpointslices"]),
    ("networking.k8s.io", &["ingresses", "networkpolicies"]),
    ("policy", &["poddisruptionbudgets"]),
];

/// Resource and object of every default ClusterRole and ClusterRoleBinding.
pub(crate) fn default_objects() -> Vec<(&'static str, Value)> {
    let everything = json!([
        { "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] },
        { "nonResourceURLs": ["*"], "verbs": ["*"] },
    ]);
    let review = json!([{
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        "verbs": ["create"],
    }, { "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"] }]);
    vec![
        ("clusterroles", role("cluster-admin", everything)),
        (
            "clusterroles",
            role("system:discovery", json!([{ "nonResourceURLs": DISCOVERY, "verbs": ["get"] }])),
        ),
        (
            "clusterroles",
            role(
                "system:public-info-viewer",
                json!([{ "nonResourceURLs": PUBLIC, "verbs": ["get"] }]),
            ),
        ),
        ("clusterroles", role("system:basic-user", review)),
        ("clusterroles", role("view", workloads(&[READ], false))),
        ("clusterroles", role("edit", workloads(&[READ, WRITE], true))),
        ("clusterroles", role("admin", admin())),
        ("clusterrolebindings", binding("cluster-admin", &["system:masters"])),
        ("clusterrolebindings", binding("system:discovery", &["system:authenticated"])),
        ("clusterrolebindings", binding("system:basic-user", &["system:authenticated"])),
        (
            "clusterrolebindings",
            binding(
                "system:public-info-viewer",
                &["system:authenticated", "system:unauthenticated"],
            ),
        ),
    ]
}

fn workloads(verbs: &[&[&str]], secrets: bool) -> Value {
    let verbs: Vec<&str> = verbs.concat();
    let mut rules: Vec<Value> = WORKLOADS
        .iter()
        .map(|(group, resources)| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs }))
        .collect();
    rules.push(json!({ "apiGroups": [""], "resources": ["namespaces", "limitranges", "resourcequotas"], "verbs": READ }));
    if secrets {
        rules.push(json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": verbs }));
        rules.push(json!({ "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs }));
    }
    Value::Array(rules)
}

fn admin() -> Value {
    let mut rules = workloads(&[READ, WRITE], true);
    if let Some(rules) = rules.as_array_mut() {
        let verbs = [READ, WRITE].concat();
        rules.push(
            json!({ "apiGroups": [GROUP], "resources": ["roles", "rolebindings"], "verbs": verbs }),
        );
        let local = json!({ "apiGroups": ["authorization.k8s.io"], "resources": ["localsubjectaccessreviews"], "verbs": ["create"] });
        rules.push(local);
    }
    rules
}

fn role(name: &str, rules: Value) -> Value {
    json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": metadata(name), "rules": rules })
}

fn binding(role: &str, groups: &[&str]) -> Value {
    let subjects: Vec<Value> = groups
        .iter()
        .map(|group| json!({ "kind": "Group", "apiGroup": GROUP, "name": group }))
        .collect();
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": metadata(role),
        "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": role },
        "subjects": subjects,
    })
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
        "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
    })
}
