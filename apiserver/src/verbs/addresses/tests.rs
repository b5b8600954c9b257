use serde_json::{Value, json};

use crate::http::test_support::*;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    if spec["ports"].is_null() {
        spec["ports"] = json!([{"port": 80}]);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn fault(reply: &Reply) -> String {
    assert_eq!(reply.code, 422, "{}", reply.text);
    let text = reply.message();
    text.split_once(" is invalid: ").unwrap().1.to_owned()
}

#[tokio::test(start_paused = true)]
async fn an_address_outside_of_the_range_or_in_use_is_refused() {
    let (_server, mut client) = start().await;
    let foreign = "the provided network does not match the current range";
    let taken = "provided IP is already allocated";
    for (address, why) in [
        ("10.99.0.1", foreign),
        ("10.0.0.0", foreign),
        ("10.0.0.255", foreign),
        ("10.0.0.1", taken),
    ] {
        let reply = client.post(SERVICES, service("s", json!({"clusterIP": address}))).await;
        let wanted = format!(
            "spec.clusterIPs: Invalid value: [{address:?}]: failed to allocate IP {address}: {why}"
        );
        assert_eq!(fault(&reply), wanted);
    }
    let dry = format!("{SERVICES}?dryRun=All");
    let reply = client.post(&dry, service("s", json!({"clusterIP": "10.99.0.1"}))).await;
    assert!(fault(&reply).ends_with("The range of valid IPs is 10.0.0.0/24"), "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn malformed_and_contradicting_addresses_are_refused() {
    let (_server, mut client) = start().await;
    let cases = [
        (
            json!({"clusterIP": "x"}),
            "spec.clusterIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            json!({"clusterIP": "10.0.0.010"}),
            "spec.clusterIPs[0]: Invalid value: \"10.0.0.010\": must not have leading 0s",
        ),
        (
            json!({"clusterIP": "fd00::1"}),
            "spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: IPv6 is not configured on this cluster",
        ),
        (
            json!({"clusterIPs": ["10.0.0.50"]}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.50\"]: must be empty when `clusterIP` is not specified",
        ),
        (
            json!({"clusterIP": "10.0.0.51", "clusterIPs": ["10.0.0.50"]}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.50\"]: first value must match `clusterIP`",
        ),
        (
            json!({"clusterIP": "10.0.0.51", "clusterIPs": ["10.0.0.51", "10.0.0.52"]}),
            "spec.clusterIPs: Invalid value: [\"10.0.0.51\",\"10.0.0.52\"]: may specify no more than one IP for each IP family",
        ),
        (
            json!({"clusterIP": "None", "type": "NodePort"}),
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services",
        ),
        (
            json!({"type": "ExternalName", "externalName": "a.b", "clusterIP": "10.0.0.60"}),
            "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
        ),
    ];
    for (spec, wanted) in cases {
        let reply = client.post(SERVICES, service("s", spec)).await;
        assert_eq!(fault(&reply), wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_port_outside_of_the_range_or_in_use_is_refused() {
    let (_server, mut client) = start().await;
    let asking = |port: i64| json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
    for port in [80, 29_999, 32_768, 70_000] {
        let reply = client.post(SERVICES, service("a", asking(port))).await;
        let wanted = format!(
            "spec.ports[0].nodePort: Invalid value: {port}: provided port is not in the valid range. The range of valid ports is 30000-32767"
        );
        assert_eq!(fault(&reply), wanted);
    }
    assert_eq!(client.post(SERVICES, service("a", asking(30_080))).await.code, 201);
    let reply = client.post(SERVICES, service("b", asking(30_080))).await;
    let taken = "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated";
    assert_eq!(fault(&reply), taken);
    client.post(SERVICES, service("b", json!({}))).await;
    let reply = client.merge(&format!("{SERVICES}/b"), json!({"spec": asking(30_080)})).await;
    assert_eq!(fault(&reply), taken);
    let reply =
        client.post(SERVICES, service("c", json!({"ports": [{"port": 80, "nodePort": 30_090}]})));
    assert_eq!(
        fault(&reply.await),
        "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"
    );
}

#[tokio::test(start_paused = true)]
async fn ports_of_one_number_share_a_node_port_and_equal_ports_are_refused() {
    let (_server, mut client) = start().await;
    let dns = json!({"type": "NodePort", "ports": [
        {"port": 53, "name": "a", "protocol": "TCP"}, {"port": 53, "name": "b", "protocol": "UDP"}]});
    let made = client.post(SERVICES, service("dns", dns)).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let ports = &made.value["spec"]["ports"];
    assert!(ports[0]["nodePort"].is_number());
    assert_eq!(ports[0]["nodePort"], ports[1]["nodePort"]);
    let equal = json!({"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]});
    let reply = client.post(SERVICES, service("s", equal)).await;
    let wanted = r#"spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}"#;
    assert_eq!(fault(&reply), wanted);
}

#[tokio::test(start_paused = true)]
async fn an_address_stays_until_the_service_becomes_a_name() {
    let (_server, mut client) = start().await;
    let url = format!("{SERVICES}/s");
    client.post(SERVICES, service("s", json!({"clusterIP": "10.0.0.70"}))).await;
    for address in ["10.0.0.71", "None"] {
        let reply = client.merge(&url, json!({"spec": {"clusterIP": address}})).await;
        let wanted =
            format!("spec.clusterIPs[0]: Invalid value: [{address:?}]: may not change once set");
        assert_eq!(fault(&reply), wanted);
    }
    let unset = json!({"spec": {"clusterIP": null, "clusterIPs": null}});
    assert_eq!(client.merge(&url, unset).await.value["spec"]["clusterIP"], "10.0.0.70");
    let port = client.merge(&url, json!({"spec": {"type": "NodePort"}})).await;
    assert!(port.value["spec"]["ports"][0]["nodePort"].is_number(), "{}", port.text);
    let back = client.merge(&url, json!({"spec": {"type": "ClusterIP"}})).await;
    assert_eq!(
        back.value["spec"]["ports"],
        json!([{"port": 80, "targetPort": 80, "protocol": "TCP"}]),
        "{}",
        back.text
    );
    assert_eq!(back.value["spec"].get("externalTrafficPolicy"), None);
    let name = json!({"spec": {"type": "ExternalName", "externalName": "a.b"}});
    let named = client.merge(&url, name).await;
    assert_eq!(
        named.value["spec"],
        json!({"type": "ExternalName", "externalName": "a.b", "sessionAffinity": "None",
            "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}]}),
        "{}",
        named.text
    );
    let taken =
        json!({"spec": {"type": "ClusterIP", "externalName": null, "clusterIP": "10.0.0.1"}});
    assert!(fault(&client.merge(&url, taken).await).ends_with("provided IP is already allocated"));
    let again = json!({"spec": {"type": "ClusterIP", "externalName": null}});
    let again = client.merge(&url, again).await;
    assert_eq!(again.value["spec"]["ipFamilies"], json!(["IPv4"]), "{}", again.text);
    assert!(again.value["spec"]["clusterIP"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_put_without_node_ports_keeps_those_of_the_names() {
    let (_server, mut client) = start().await;
    let spec = |port: i64| json!({"type": "NodePort", "ports": [{"port": port}]});
    let made = client.post(SERVICES, service("s", spec(80))).await;
    let put = client.put(&format!("{SERVICES}/s"), service("s", spec(81))).await;
    let node = |reply: &Reply| reply.value["spec"]["ports"][0]["nodePort"].clone();
    assert_eq!(node(&put), node(&made), "{}", put.text);
    let local = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"});
    let made = client.post(SERVICES, service("lb", local)).await;
    let spec = &made.value["spec"];
    assert!(spec["healthCheckNodePort"].as_i64().is_some_and(|port| port >= 30_000));
    assert_ne!(spec["healthCheckNodePort"], spec["ports"][0]["nodePort"]);
    let none = json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false});
    let made = client.post(SERVICES, service("bare", none)).await;
    assert_eq!(made.value["spec"]["ports"][0].get("nodePort"), None, "{}", made.text);
}

#[tokio::test(start_paused = true)]
async fn affinity_by_address_has_a_default_time() {
    let (_server, mut client) = start().await;
    let made = client.post(SERVICES, service("s", json!({"sessionAffinity": "ClientIP"}))).await;
    assert_eq!(
        made.value["spec"]["sessionAffinityConfig"],
        json!({"clientIP": {"timeoutSeconds": 10_800}})
    );
}
