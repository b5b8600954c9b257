//! Checks of Services. Addresses and their families are checked where they are allocated.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::fields::{is_empty, named};
use super::{cluster, networking};
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Annotation with the blocks of addresses of clients, from before there was a field.
const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// Appends the faults of a Service's type and ports.
pub(super) fn check(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    match kind {
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !is_empty(&spec[field]) {
                    let at = format!("spec.{field}");
                    causes.push(forbidden_field(&at, "may not be set for ExternalName services"));
                }
            }
            let name = spec["externalName"].as_str().unwrap_or_default();
            if name.is_empty() {
                causes.push(required("spec.externalName", ""));
            } else {
                // The dot at the end of a full name is allowed.
                let faults = names::subdomain(name.strip_suffix('.').unwrap_or(name));
                let held = &spec["externalName"];
                causes
                    .extend(faults.iter().map(|why| invalid_value("spec.externalName", held, why)));
            }
        }
        "NodePort" | "LoadBalancer" if spec["clusterIPs"] == json!(["None"]) => {
            let why = format!("may not be set to 'None' for {kind} services");
            causes.push(invalid_value("spec.clusterIPs[0]", &json!("None"), &why));
        }
        _ => {}
    }
    affinity(spec, causes);
    external(spec, causes);
    ports(spec, causes);
    balancing(spec, causes);
    if is_empty(&spec["loadBalancerSourceRanges"]) {
        ranges(object, causes);
    }
    traffic(spec, causes);
    distribution(spec, causes);
}

/// Appends the faults of addresses that others route to the Service.
fn external(spec: &Value, causes: &mut Vec<Cause>) {
    for (index, value) in spec["externalIPs"].as_array().into_iter().flatten().enumerate() {
        let at = format!("spec.externalIPs[{index}]");
        let text = value.as_str().unwrap_or_default();
        let faults = cluster::ip_faults(text);
        if faults.is_empty() {
            named(cluster::endpoint_faults(text), value, &at, causes);
        }
        named(faults, value, &at, causes);
    }
}

/// Appends the faults of the annotation with the blocks of addresses of clients.
fn ranges(object: &Value, causes: &mut Vec<Cause>) {
    let Some(list) = object["metadata"]["annotations"][RANGES].as_str() else { return };
    let at = format!("metadata.annotations[{RANGES}]");
    if object["spec"]["type"] != "LoadBalancer" {
        causes.push(forbidden_field(&at, "may only be used when `type` is 'LoadBalancer'"));
    }
    for block in list.trim().split(',').map(str::trim).filter(|_| !list.trim().is_empty()) {
        networking::blocked(&block.into(), &at, causes);
    }
}

/// Appends the faults of the fields that only load balancers have.
fn balancing(spec: &Value, causes: &mut Vec<Cause>) {
    const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
    let is_balanced = spec["type"] == "LoadBalancer";
    // The server's own type has no other name for this field.
    let at = "spec.LoadBalancerSourceRanges";
    let ranges = spec["loadBalancerSourceRanges"].as_array().map_or(&[][..], Vec::as_slice);
    if !is_balanced && !ranges.is_empty() {
        causes.push(forbidden_field(at, ONLY));
    }
    for (index, range) in ranges.iter().enumerate() {
        // Blanks around are allowed, as they were in the annotation.
        let range = range.as_str().unwrap_or_default().trim();
        networking::blocked(&range.into(), &format!("{at}[{index}]"), causes);
    }
    let allocate = &spec["allocateLoadBalancerNodePorts"];
    if !is_balanced && allocate.is_boolean() {
        causes.push(forbidden_field("spec.allocateLoadBalancerNodePorts", ONLY));
    }
    let at = "spec.loadBalancerClass";
    match spec["loadBalancerClass"].as_str() {
        Some(_) if !is_balanced => causes.push(forbidden_field(at, ONLY)),
        Some(class) => {
            let held = &spec["loadBalancerClass"];
            causes.extend(names::qualified(class).iter().map(|why| invalid_value(at, held, why)));
        }
        None => {}
    }
}

/// Appends the faults of the ways in which traffic is spread.
fn distribution(spec: &Value, causes: &mut Vec<Cause>) {
    let is_checked = spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local";
    let port = &spec["healthCheckNodePort"];
    if !is_empty(port) && !is_checked {
        let why =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        causes.push(invalid_value("spec.healthCheckNodePort", port, why));
    }
    let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    let held = spec["trafficDistribution"].as_str();
    if let Some(held) = held.filter(|held| !known.contains(held)) {
        causes.push(unsupported("spec.trafficDistribution", held, &known));
    }
}

/// Appends the fault of a time for which clients keep their endpoint.
fn affinity(spec: &Value, causes: &mut Vec<Cause>) {
    const LONGEST: i64 = 86_400;
    let seconds = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    if spec["sessionAffinity"] == "ClientIP"
        && seconds.as_i64().is_some_and(|seconds| !(1..=LONGEST).contains(&seconds))
    {
        let at = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        let why = format!("must be greater than 0 and less than {LONGEST}");
        causes.push(invalid_value(at, seconds, &why));
    }
}

/// Appends the fault of a policy for traffic from outside of the cluster.
fn traffic(spec: &Value, causes: &mut Vec<Cause>) {
    let policy = spec["externalTrafficPolicy"].as_str().unwrap_or_default();
    let has_addresses = spec["externalIPs"].as_array().is_some_and(|all| !all.is_empty());
    let is_external = match spec["type"].as_str() {
        Some("LoadBalancer" | "NodePort") => true,
        Some("ClusterIP") => has_addresses,
        _ => false,
    };
    let at = "spec.externalTrafficPolicy";
    match policy {
        "" if is_external => causes.push(required(at, "")),
        "" => {}
        _ if !is_external => {
            let why = "may only be set for externally-accessible services";
            causes.push(invalid_value(at, &policy.into(), why));
        }
        "Cluster" | "Local" => {}
        _ => causes.push(unsupported(at, policy, &["Cluster", "Local"])),
    }
}

/// Appends the faults of the addresses that a load balancer has got.
pub(super) fn status(object: &Value, causes: &mut Vec<Cause>) {
    let at = "status.loadBalancer.ingress";
    let given =
        object["status"]["loadBalancer"]["ingress"].as_array().map_or(&[][..], Vec::as_slice);
    if object["spec"]["type"] != "LoadBalancer" {
        if !given.is_empty() {
            let why = "may only be used when `spec.type` is 'LoadBalancer'";
            causes.push(forbidden_field(at, why));
        }
        return;
    }
    for (index, point) in given.iter().enumerate() {
        given_address(&format!("{at}[{index}]"), point, causes);
    }
}

/// Appends the faults of an address.
fn given_address(at: &str, point: &Value, causes: &mut Vec<Cause>) {
    let text = |field: &str| point[field].as_str().unwrap_or_default();
    let at = |field: &str| format!("{at}.{field}");
    let (address, host) = (text("ip"), text("hostname"));
    if !address.is_empty() {
        named(cluster::ip_faults(address), &address.into(), &at("ip"), causes);
    }
    match (point["ipMode"].as_str(), address) {
        (None, "") => {}
        (None, _) => causes.push(required(&at("ipMode"), "must be specified when `ip` is set")),
        (Some(_), "") => {
            let why = "may not be specified when `ip` is not set";
            causes.push(forbidden_field(&at("ipMode"), why));
        }
        (Some("VIP" | "Proxy"), _) => {}
        (Some(other), _) => causes.push(unsupported(&at("ipMode"), other, &["Proxy", "VIP"])),
    }
    if !host.is_empty() {
        let faults = names::subdomain(host);
        causes.extend(faults.iter().map(|why| invalid_value(&at("hostname"), &host.into(), why)));
        if is_address(host) {
            let why = "must be a DNS name, not an IP address";
            causes.push(invalid_value(&at("hostname"), &host.into(), why));
        }
    }
}

/// Whether a text is an address of IPv4 or IPv6.
fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// Appends the faults of ports that others have, or that the type does not allow.
fn ports(spec: &Value, causes: &mut Vec<Cause>) {
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let duplicate = |at: &str, value: String| {
        cause("FieldValueDuplicate", at, format!("Duplicate value: {value}"))
    };
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let name = port["name"].as_str().unwrap_or_default();
        if !name.is_empty() && !names.insert(name) {
            causes.push(duplicate(&format!("spec.ports[{index}].name"), format!("{name:?}")));
        }
    }
    let node = |port: &Value| port["nodePort"].as_i64().filter(|node| *node != 0);
    for (index, _) in ports.iter().enumerate().filter(|(_, port)| node(port).is_some()) {
        if spec["type"] == "ClusterIP" {
            let at = format!("spec.ports[{index}].nodePort");
            causes.push(forbidden_field(&at, "may not be used when `type` is 'ClusterIP'"));
        }
    }
    let mut nodes = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let protocol = port["protocol"].as_str().unwrap_or_default();
        if let Some(node) = node(port).filter(|node| !nodes.insert((protocol, *node))) {
            causes.push(duplicate(&format!("spec.ports[{index}].nodePort"), node.to_string()));
        }
    }
    let mut numbers = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let protocol = port["protocol"].as_str().unwrap_or_default();
        let number = port["port"].as_i64().unwrap_or(0);
        if !numbers.insert((protocol, number)) {
            // The text of upstream's Go value, of which only these two fields are set.
            let value = format!(
                r#"{{"Name":"","Protocol":{protocol:?},"AppProtocol":null,"Port":{number},"TargetPort":0,"NodePort":0}}"#
            );
            causes.push(duplicate(&format!("spec.ports[{index}]"), value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(spec: Value) -> Vec<String> {
        let mut causes = Vec::new();
        check(&json!({ "spec": spec }), &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn affinities_last_at_most_a_day_and_only_external_traffic_has_a_policy() {
        let affine = |seconds: i64| {
            json!({"type": "ClusterIP", "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}}})
        };
        assert_eq!(faults(affine(86_400)), [""; 0]);
        let at = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        assert_eq!(faults(affine(0)), [at]);
        assert_eq!(faults(affine(86_401)), [at]);
        let policy = json!({"type": "ClusterIP", "externalTrafficPolicy": "Local"});
        assert_eq!(faults(policy), ["spec.externalTrafficPolicy"]);
        let outside = json!({"type": "ClusterIP", "externalTrafficPolicy": "Local", "externalIPs": ["1.2.3.4"]});
        assert_eq!(faults(outside), [""; 0]);
        let other = json!({"type": "NodePort", "externalTrafficPolicy": "Global"});
        assert_eq!(faults(other), ["spec.externalTrafficPolicy"]);
    }

    #[test]
    fn external_addresses_can_be_reached_and_some_fields_are_those_of_load_balancers() {
        for address in ["127.0.0.1", "0.0.0.0", "169.254.1.1", "224.0.0.1", "::1", "fe80::1", "x"] {
            let spec = json!({"type": "ClusterIP", "externalIPs": [address],
                "externalTrafficPolicy": "Cluster"});
            assert_eq!(faults(spec), ["spec.externalIPs[0]"], "{address}");
        }
        for (field, value) in [
            ("loadBalancerClass", json!("a/b")),
            ("allocateLoadBalancerNodePorts", json!(false)),
            ("healthCheckNodePort", json!(30_000)),
            ("trafficDistribution", json!("X")),
        ] {
            assert_eq!(
                faults(json!({"type": "ClusterIP", field: value})),
                [format!("spec.{field}")]
            );
        }
        let balanced = json!({"type": "LoadBalancer", "loadBalancerClass": "a/b",
            "externalTrafficPolicy": "Local", "healthCheckNodePort": 30_000,
            "allocateLoadBalancerNodePorts": true, "loadBalancerSourceRanges": ["1.2.3.0/24"]});
        assert_eq!(faults(balanced), [""; 0]);
    }

    #[test]
    fn only_load_balancers_have_addresses_and_their_modes_go_with_the_addresses() {
        let faults = |kind: &str, point: Value| {
            let mut causes = Vec::new();
            let balancer = json!({"ingress": [point]});
            let service = json!({"spec": {"type": kind}, "status": {"loadBalancer": balancer}});
            status(&service, &mut causes);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        let at = |field: &str| [format!("status.loadBalancer.ingress[0].{field}")];
        assert_eq!(faults("ClusterIP", json!({})), ["status.loadBalancer.ingress"]);
        assert_eq!(faults("LoadBalancer", json!({})), [""; 0]);
        assert_eq!(faults("LoadBalancer", json!({"ip": "1.2.3.4", "ipMode": "VIP"})), [""; 0]);
        assert_eq!(faults("LoadBalancer", json!({"ip": "1.2.3.4", "ipMode": "X"})), at("ipMode"));
        assert_eq!(faults("LoadBalancer", json!({"ip": "1.2.3.4"})), at("ipMode"));
        assert_eq!(faults("LoadBalancer", json!({"ipMode": "VIP"})), at("ipMode"));
        assert_eq!(faults("LoadBalancer", json!({"ip": "x", "ipMode": "VIP"})), at("ip"));
        assert_eq!(faults("LoadBalancer", json!({"hostname": "1.2.3.4"})), at("hostname"));
    }
}
