//! Defaults of Services, without addresses, and the warnings about them.

use serde_json::{Value, json};

use super::Kind;
use super::defaults::{child, default, default_pointer, items};
use super::validate::ip_warning;

/// Fills in the defaults.
pub(crate) fn defaults(object: &mut Value) {
    let spec = child(object, "spec");
    default(spec, "sessionAffinity", json!("None"));
    default(spec, "type", json!("ClusterIP"));
    if spec["sessionAffinity"] == "ClientIP" {
        let client = child(child(spec, "sessionAffinityConfig"), "clientIP");
        default(client, "timeoutSeconds", json!(10800));
    } else if spec["sessionAffinity"] == "None" {
        spec.as_object_mut().and_then(|fields| fields.remove("sessionAffinityConfig"));
    }
    for port in items(spec, "ports") {
        default(port, "protocol", json!("TCP"));
        // The target port is that of the Service unless given.
        let number = json!(port["port"].as_i64().unwrap_or_default());
        if port["targetPort"] == 0 || port["targetPort"] == "" {
            port["targetPort"] = Value::Null;
        }
        default(port, "targetPort", number);
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    let is_external = kind == "NodePort" || kind == "LoadBalancer";
    if is_external || kind == "ClusterIP" && has_external_addresses(spec) {
        default(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if kind != "ExternalName" {
        default_pointer(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
    let balancer = child(child(object, "status"), "loadBalancer");
    if kind == "LoadBalancer" {
        for point in items(balancer, "ingress") {
            if point["ip"].as_str().is_some_and(|address| !address.is_empty()) {
                default_pointer(point, "ipMode", json!("VIP"));
            }
        }
    }
}

/// Whether a Service has addresses that others route to it.
fn has_external_addresses(spec: &Value) -> bool {
    spec["externalIPs"].as_array().is_some_and(|list| !list.is_empty())
}

/// Returns the warnings about a Service that is written; none for other kinds.
pub(crate) fn warnings(kind: &Kind, object: &Value) -> Vec<String> {
    if !kind.is("", "services") {
        return Vec::new();
    }
    let spec = &object["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default();
    let is_name = text("type") == "ExternalName";
    let is_headless = text("type") == "ClusterIP" && text("clusterIP") == "None";
    let has_external = has_external_addresses(spec);
    let hints = "service.kubernetes.io/topology-aware-hints";
    let found = [
        (
            object["metadata"]["annotations"][hints].is_string(),
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead",
        ),
        (
            is_headless && !text("loadBalancerIP").is_empty(),
            "spec.loadBalancerIP is ignored for headless services",
        ),
        (is_headless && has_external, "spec.externalIPs is ignored for headless services"),
        (
            is_headless && text("sessionAffinity") != "None",
            "spec.SessionAffinity is ignored for headless services",
        ),
        (
            has_external && !is_headless && !is_name,
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        ),
        (is_name && has_external, "spec.externalIPs is ignored when spec.type is \"ExternalName\""),
        (
            !is_name && !text("externalName").is_empty(),
            "spec.externalName is ignored when spec.type is not \"ExternalName\"",
        ),
        (
            text("trafficDistribution") == "PreferClose",
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
        ),
    ];
    let mut found: Vec<String> =
        found.iter().filter(|(holds, _)| *holds).map(|(_, text)| (*text).to_owned()).collect();
    for field in ["clusterIPs", "externalIPs"] {
        for (index, address) in spec[field].as_array().into_iter().flatten().enumerate() {
            let address = address.as_str().unwrap_or_default();
            found.extend(ip_warning(&format!("spec.{field}[{index}]"), address));
        }
    }
    found.extend(ip_warning("spec.loadBalancerIP", text("loadBalancerIP")));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_affinity_of_clients_lasts_three_hours_and_none_has_no_settings() {
        let mut object = json!({"spec": {"sessionAffinity": "ClientIP"}});
        defaults(&mut object);
        assert_eq!(object["spec"]["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"], 10800);
        object["spec"]["sessionAffinity"] = json!("None");
        defaults(&mut object);
        assert_eq!(object["spec"]["sessionAffinityConfig"], Value::Null);
    }

    #[test]
    fn external_addresses_bring_a_policy_for_their_traffic() {
        let mut object = json!({"spec": {"externalIPs": ["1.2.3.4"]}});
        defaults(&mut object);
        assert_eq!(object["spec"]["externalTrafficPolicy"], "Cluster");
    }
}
