//! Checks of Services. Addresses and their families are checked where they are allocated.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::fields::is_empty;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required};

/// Appends the faults of a Service's type and ports.
pub(super) fn check(spec: &Value, causes: &mut Vec<Cause>) {
    let kind = spec["type"].as_str().unwrap_or_default();
    match kind {
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !is_empty(&spec[field]) {
                    let at = format!("spec.{field}");
                    causes.push(forbidden_field(&at, "may not be set for ExternalName services"));
                }
            }
            if is_empty(&spec["externalName"]) {
                causes.push(required("spec.externalName", ""));
            }
        }
        "NodePort" | "LoadBalancer" if spec["clusterIPs"] == json!(["None"]) => {
            let why = format!("may not be set to 'None' for {kind} services");
            causes.push(invalid_value("spec.clusterIPs[0]", &json!("None"), &why));
        }
        _ => {}
    }
    affinity(spec, causes);
    ports(spec, causes);
    traffic(spec, causes);
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
        _ => {}
    }
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
        check(&spec, &mut causes);
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
    }
}
