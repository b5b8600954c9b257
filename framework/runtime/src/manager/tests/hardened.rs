//! Limits that printed manifests put on an operator, and the freedoms that remain.

use serde_json::{Value, json};

use super::*;

fn printed(manager: Manager, options: &ManifestOptions) -> Vec<Value> {
    serde_saphyr::from_multiple(&manager.manifests(options).unwrap()).unwrap()
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents.iter().find(|one| one["kind"] == kind).unwrap()
}

fn manager() -> Manager {
    operator(&Slow::new(Duration::ZERO)).name("ops").health("[::]:8081".parse().unwrap())
}

#[tokio::test]
async fn the_operators_namespace_takes_restricted_pods_only_unless_others_share_it() {
    let labels = |namespace: &str| {
        let options = ManifestOptions::default().namespace(namespace);
        of_kind(&printed(manager(), &options), "Namespace")["metadata"]["labels"].clone()
    };
    assert_eq!(labels("sites")["pod-security.kubernetes.io/enforce"], "restricted");
    assert_eq!(labels("sites")["pod-security.kubernetes.io/warn"], "restricted");
    for shared in ["default", "kube-system", "kube-public"] {
        let labels = labels(shared);
        assert_eq!(labels, json!({ "app.kubernetes.io/name": "ops" }), "{shared}");
    }
}

#[tokio::test]
async fn every_field_that_restricted_pods_need_is_there() {
    let documents = printed(manager(), &ManifestOptions::default());
    let pod = &of_kind(&documents, "Deployment")["spec"]["template"]["spec"];
    assert_eq!(
        pod["securityContext"],
        json!({
            "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532,
            "seccompProfile": { "type": "RuntimeDefault" },
        })
    );
    assert_eq!(
        pod["containers"][0]["securityContext"],
        json!({
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "privileged": false,
            "readOnlyRootFilesystem": true,
            "runAsNonRoot": true,
            "seccompProfile": { "type": "RuntimeDefault" },
        })
    );
}

#[tokio::test]
async fn the_network_policy_lets_through_probes_dns_and_api_servers_and_nothing_else() {
    let documents = printed(manager(), &ManifestOptions::default().namespace("sites"));
    let policy = of_kind(&documents, "NetworkPolicy");
    assert_eq!(policy["metadata"]["namespace"], "sites");
    let pod = &of_kind(&documents, "Deployment")["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&policy["spec"]["podSelector"]["matchLabels"], pod);
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
    // No `from`: kubelets ask from addresses of nodes, which no selector names.
    assert_eq!(
        policy["spec"]["ingress"],
        json!([{ "ports": [{ "port": "health", "protocol": "TCP" }] }])
    );
    let ports = |rule: usize| {
        let ports = policy["spec"]["egress"][rule]["ports"].as_array().unwrap();
        let port = |one: &Value| format!("{}/{}", one["port"], one["protocol"].as_str().unwrap());
        ports.iter().map(port).collect::<Vec<_>>()
    };
    assert_eq!(ports(0), ["53/UDP", "53/TCP", "5353/UDP", "5353/TCP"]);
    assert_eq!(ports(1), ["443/TCP", "6443/TCP", "8443/TCP", "16443/TCP"]);
    assert_eq!(policy["spec"]["egress"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn metrics_that_leave_the_pod_are_let_through_to_pods_of_the_cluster() {
    let ingress = |manager: Manager| {
        let documents = printed(manager, &ManifestOptions::default());
        let container = &of_kind(&documents, "Deployment")["spec"]["template"]["spec"];
        let ports = container["containers"][0]["ports"].clone();
        (of_kind(&documents, "NetworkPolicy")["spec"]["ingress"].clone(), ports)
    };
    let from_pods = |port: &str| {
        json!({
            "from": [{ "namespaceSelector": {} }],
            "ports": [{ "port": port, "protocol": "TCP" }],
        })
    };
    let probes = json!({ "ports": [{ "port": "health", "protocol": "TCP" }] });
    let (rules, ports) = ingress(manager().metrics("[::]:8080".parse().unwrap()));
    assert_eq!(rules, json!([probes, from_pods("metrics")]));
    assert_eq!(ports[1], json!({ "name": "metrics", "containerPort": 8080 }));
    // A port for both is open to kubelets, so that port is open to every client.
    let (rules, ports) = ingress(manager().metrics("[::]:8081".parse().unwrap()));
    assert_eq!((rules, ports.as_array().unwrap().len()), (json!([probes]), 1));
    let (rules, ports) = ingress(manager().without_health().without_metrics());
    assert_eq!((rules, ports), (json!([]), Value::Null));
    let off = manager().without_health().metrics("0.0.0.0:9090".parse().unwrap());
    assert_eq!(ingress(off).0, json!([from_pods("metrics")]));
}
