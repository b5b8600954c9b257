//! Intents of built-in kinds without Pods.

use super::*;

pub(super) fn service(choices: &Choices) -> Value {
    let ports = [
        json!({ "port": 80, "name": "a" }),
        json!({ "port": 80, "name": "b", "protocol": "UDP" }),
        json!({ "port": 81, "name": "c", "targetPort": "http" }),
    ];
    let mut some = choices.some(&ports);
    if some.is_empty() {
        some.push(ports[0].clone());
    }
    let mut spec = json!({ "ports": some });
    choices.put(
        &mut spec,
        "selector",
        &[json!({ "a": "1" }), json!({ "a": "1", "b": "2" }), json!({})],
    );
    choices.put(&mut spec, "sessionAffinity", &[json!("None"), json!("ClientIP"), json!("")]);
    choices.put(&mut spec, "publishNotReadyAddresses", &[json!(false), json!(true)]);
    json!({ "metadata": metadata(choices), "spec": spec })
}

pub(super) fn config_map(choices: &Choices) -> Value {
    let mut map = json!({ "metadata": metadata(choices) });
    choices.put(&mut map, "data", &[json!({ "a": "1" }), json!({ "a": "1", "b": "" }), json!({})]);
    choices.put(&mut map, "binaryData", &[json!({ "c": "AAAA" })]);
    choices.put(&mut map, "immutable", &[json!(false)]);
    map
}

/// Without `stringData`, which `apply_owned` moves into `data`.
pub(super) fn secret(choices: &Choices) -> Value {
    let mut secret = json!({ "metadata": metadata(choices) });
    choices.keep(&mut secret, "type", &[json!("Opaque"), json!("x.io/y"), json!(""), Value::Null]);
    choices.put(
        &mut secret,
        "data",
        &[json!({ "a": "MQ==" }), json!({ "a": "MQ==", "b": "" }), json!({})],
    );
    choices.put(&mut secret, "immutable", &[json!(false)]);
    secret
}

pub(super) fn service_account(choices: &Choices) -> Value {
    let mut account = json!({ "metadata": metadata(choices) });
    let names =
        [json!({ "name": "a" }), json!({ "name": "b" }), json!({ "name": "c", "kind": "Secret" })];
    choices.put(&mut account, "secrets", &[json!(choices.some(&names))]);
    choices.put(&mut account, "imagePullSecrets", &[json!(choices.some(&names[..2]))]);
    choices.put(&mut account, "automountServiceAccountToken", &[json!(false), json!(true)]);
    account
}

pub(super) fn ingress(choices: &Choices) -> Value {
    let backend = |choices: &Choices| {
        let port = choices.of(&[json!({ "number": 80 }), json!({ "name": "http" })]);
        json!({ "service": { "name": "x", "port": port } })
    };
    let path = |choices: &Choices| {
        let path = choices.of(&[json!("/"), json!("/a")]);
        json!({ "path": path, "pathType": choices.of(&[json!("Prefix"), json!("Exact")]), "backend": backend(choices) })
    };
    let rule = |choices: &Choices| {
        let mut rule = json!({ "http": { "paths": [path(choices), path(choices)] } });
        choices.put(&mut rule, "host", &[json!("a.example"), json!("")]);
        rule
    };
    let mut spec = json!({ "defaultBackend": backend(choices) });
    choices.put(
        &mut spec,
        "rules",
        &[json!([rule(choices)]), json!([rule(choices), rule(choices)]), json!([])],
    );
    choices.put(&mut spec, "ingressClassName", &[json!("nginx"), json!("other")]);
    choices.put(
        &mut spec,
        "tls",
        &[
            json!([{ "hosts": ["a.example"], "secretName": "x" }]),
            json!([{ "hosts": [] }, { "secretName": "" }]),
            json!([]),
        ],
    );
    json!({ "metadata": metadata(choices), "spec": spec })
}

pub(super) fn network_policy(choices: &Choices) -> Value {
    let selector = |choices: &Choices| {
        choices.of(&[
            json!({}),
            json!({ "matchLabels": { "a": "1" } }),
            json!({ "matchLabels": {} }),
            json!({ "matchExpressions": [{ "key": "a", "operator": "Exists" }] }),
            json!({ "matchExpressions": [{ "key": "a", "operator": "In", "values": ["1", "2"] }] }),
        ])
    };
    let rule = |choices: &Choices, peers: &str| {
        let mut rule = json!({});
        let peer = [
            json!({ "podSelector": selector(choices) }),
            json!({ "namespaceSelector": selector(choices) }),
            json!({ "ipBlock": { "cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"] } }),
            json!({ "ipBlock": { "cidr": "10.0.0.0/8", "except": [] } }),
        ];
        choices.put(&mut rule, peers, &[json!(choices.some(&peer))]);
        let ports = [
            json!({ "port": 80 }),
            json!({ "port": "http", "protocol": "UDP" }),
            json!({ "protocol": "TCP" }),
            json!({ "port": 80, "endPort": 90 }),
        ];
        choices.put(&mut rule, "ports", &[json!(choices.some(&ports))]);
        rule
    };
    let mut spec = json!({ "podSelector": selector(choices) });
    choices.put(&mut spec, "ingress", &[json!([rule(choices, "from")]), json!([{}]), json!([])]);
    choices.put(&mut spec, "egress", &[json!([rule(choices, "to")]), json!([])]);
    choices.put(
        &mut spec,
        "policyTypes",
        &[json!(["Ingress"]), json!(["Ingress", "Egress"]), json!([])],
    );
    json!({ "metadata": metadata(choices), "spec": spec })
}

pub(super) fn disruption_budget(choices: &Choices) -> Value {
    let bound = choices.of(&[json!("minAvailable"), json!("maxUnavailable")]);
    let mut spec = json!({});
    spec[bound.as_str().expect("a text")] = choices.of(&[json!(0), json!(1), json!("50%")]);
    choices.put(
        &mut spec,
        "selector",
        &[
            json!({}),
            json!({ "matchLabels": { "a": "1" } }),
            json!({ "matchLabels": { "b": "1" } }),
        ],
    );
    choices.put(
        &mut spec,
        "unhealthyPodEvictionPolicy",
        &[json!("AlwaysAllow"), json!("IfHealthyBudget")],
    );
    json!({ "metadata": metadata(choices), "spec": spec })
}

pub(super) fn role(choices: &Choices) -> Value {
    let rules = [
        json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }),
        json!({ "apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"], "resourceNames": ["x"] }),
        json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["*"], "resourceNames": [] }),
    ];
    let mut role = json!({ "metadata": metadata(choices) });
    choices.put(&mut role, "rules", &[json!(choices.some(&rules)), json!([])]);
    role
}

pub(super) fn role_binding(choices: &Choices) -> Value {
    let subjects = [
        json!({ "kind": "ServiceAccount", "name": "a", "namespace": "shop" }),
        json!({ "kind": "User", "name": "b" }),
        json!({ "kind": "Group", "name": "c", "apiGroup": "rbac.authorization.k8s.io" }),
        json!({ "kind": "ServiceAccount", "name": "a", "namespace": "shop", "apiGroup": "" }),
    ];
    let mut binding = json!({ "metadata": metadata(choices) });
    choices.put(&mut binding, "subjects", &[json!(choices.some(&subjects)), json!([])]);
    choices.keep(
        &mut binding,
        "roleRef",
        &[
            json!({ "kind": "Role", "name": "x" }),
            json!({ "kind": "Role", "name": "x", "apiGroup": "rbac.authorization.k8s.io" }),
        ],
    );
    binding
}

pub(super) fn autoscaler(choices: &Choices) -> Value {
    let target = |choices: &Choices| {
        choices.of(&[
            json!({ "type": "Utilization", "averageUtilization": 50 }),
            json!({ "type": "AverageValue", "averageValue": "1000m" }),
            json!({ "type": "AverageValue", "averageValue": "1" }),
        ])
    };
    let metric =
        json!([{ "type": "Resource", "resource": { "name": "cpu", "target": target(choices) } }]);
    let kind = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "x" });
    let mut spec =
        json!({ "scaleTargetRef": kind, "maxReplicas": choices.of(&[json!(3), json!(5)]) });
    choices.put(&mut spec, "minReplicas", &[json!(1), json!(2)]);
    choices.put(&mut spec, "metrics", &[metric, json!([])]);
    choices.put(
        &mut spec,
        "behavior",
        &[
            json!({}),
            json!({ "scaleDown": { "stabilizationWindowSeconds": 0 } }),
            json!({ "scaleUp": { "policies": [{ "type": "Pods", "value": 4, "periodSeconds": 15 }] } }),
        ],
    );
    json!({ "metadata": metadata(choices), "spec": spec })
}

pub(super) fn claim(choices: &Choices) -> Value {
    let mut spec = json!({});
    choices.keep(&mut spec, "accessModes", &[json!(["ReadWriteOnce"])]);
    choices.keep(
        &mut spec,
        "resources",
        &[
            json!({ "requests": { "storage": "1Gi" } }),
            json!({ "requests": { "storage": "1024Mi" } }),
        ],
    );
    choices.keep(&mut spec, "storageClassName", &[json!("x"), json!(""), Value::Null]);
    choices.keep(&mut spec, "volumeMode", &[json!("Filesystem"), Value::Null]);
    json!({ "metadata": metadata(choices), "spec": spec })
}
