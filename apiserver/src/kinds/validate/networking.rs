//! Checks of Ingresses, their classes, and `NetworkPolicy`s.

use std::net::IpAddr;

use serde_json::Value;

use super::fields::{self, FieldCheck, is_empty, named};
use super::{cluster, content, pod};
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Annotation with the class of an Ingress, from before there was a field.
const CLASS: &str = "kubernetes.io/ingress.class";
/// Parts that a path of an Ingress does not have.
const FORBIDDEN: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
/// Ends that a path of an Ingress does not have.
const FORBIDDEN_ENDS: [&str; 2] = ["/..", "/."];

/// Appends the faults of an Ingress.
pub(super) fn ingress(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    for (index, entry) in spec["tls"].as_array().into_iter().flatten().enumerate() {
        let at = format!("spec.tls[{index}]");
        for (number, host) in entry["hosts"].as_array().into_iter().flatten().enumerate() {
            named(host_faults(host), host, &format!("{at}.hosts[{number}]"), causes);
        }
        let secret = entry["secretName"].as_str().unwrap_or_default();
        if !secret.is_empty() {
            let at = format!("{at}.secretName");
            named(names::subdomain(secret), &entry["secretName"], &at, causes);
        }
    }
    if is_empty(&spec["defaultBackend"]) && is_empty(&spec["rules"]) {
        let detail = "either `defaultBackend` or `rules` must be specified";
        let shown = match &spec["rules"] {
            Value::Array(rules) => rules.clone().into(),
            _ => Value::Null,
        };
        causes.push(invalid_value("spec", &shown, detail));
    }
    if spec["defaultBackend"].is_object() {
        backend(&spec["defaultBackend"], "spec.defaultBackend", causes);
    }
    for (index, rule) in spec["rules"].as_array().into_iter().flatten().enumerate() {
        ingress_rule(rule, &format!("spec.rules[{index}]"), causes);
    }
    let class = &spec["ingressClassName"];
    if let Some(name) = class.as_str() {
        named(names::subdomain(name), class, "spec.ingressClassName", causes);
        let older = object["metadata"]["annotations"][CLASS].as_str();
        if let Some(older) = older.filter(|older| *older != name) {
            let why = "must match `ingressClassName` when both are specified";
            causes.push(invalid_value(&format!("annotations.{CLASS}"), &older.into(), why));
        }
    }
}

/// Returns the faults of the name of a host, which may begin with a wildcard.
fn host_faults(host: &Value) -> Vec<String> {
    let host = host.as_str().unwrap_or_default();
    if !host.contains('*') {
        return names::subdomain(host);
    }
    let is_good = host.strip_prefix("*.").is_some_and(|rest| names::subdomain(rest).is_empty());
    let why = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, \
               which must consist of lower case alphanumeric characters, '-' or '.' and end with an \
               alphanumeric character (e.g. '*.example.com', regex used for validation is \
               '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    if is_good { Vec::new() } else { vec![why.to_owned()] }
}

/// Appends the faults of a rule of an Ingress.
fn ingress_rule(rule: &Value, at: &str, causes: &mut Vec<Cause>) {
    let host = rule["host"].as_str().unwrap_or_default();
    if !host.is_empty() {
        let at = format!("{at}.host");
        if host.parse::<IpAddr>().is_ok() {
            causes.push(invalid_value(&at, &host.into(), "must be a DNS name, not an IP address"));
        } else {
            named(host_faults(&rule["host"]), &rule["host"], &at, causes);
        }
    }
    let http = &rule["http"];
    if !http.is_object() {
        return;
    }
    if is_empty(&http["paths"]) {
        causes.push(required(&format!("{at}.http.paths"), ""));
    }
    for (number, path) in http["paths"].as_array().into_iter().flatten().enumerate() {
        let at = format!("{at}.http.paths[{number}]");
        ingress_path(path, &at, causes);
        backend(&path["backend"], &format!("{at}.backend"), causes);
    }
}

/// Appends the faults of a path of an Ingress.
fn ingress_path(path: &Value, at: &str, causes: &mut Vec<Cause>) {
    let at_type = format!("{at}.pathType");
    let at = format!("{at}.path");
    let text = path["path"].as_str().unwrap_or_default();
    let Some(kind) = path["pathType"].as_str() else {
        causes.push(required(&at_type, "pathType must be specified"));
        return;
    };
    let mut refuse = |why: &str| causes.push(invalid_value(&at, &text.into(), why));
    match kind {
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                refuse("must be an absolute path");
            }
            if !text.is_empty() {
                for part in FORBIDDEN.iter().filter(|part| text.contains(**part)) {
                    refuse(&format!("must not contain '{part}'"));
                }
                for end in FORBIDDEN_ENDS.iter().filter(|end| text.ends_with(**end)) {
                    refuse(&format!("cannot end with '{end}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                refuse("must be an absolute path");
            }
        }
        other => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"];
            causes.push(unsupported(&at_type, other, &known));
        }
    }
}

/// Appends the faults of an Ingress's backend.
fn backend(backend: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (service, resource) = (&backend["service"], &backend["resource"]);
    match (service.is_object(), resource.is_object()) {
        (true, true) => {
            let why = "cannot set both resource and service backends";
            causes.push(invalid_value(at, &"".into(), why));
        }
        (false, true) => reference(resource, &format!("{at}.resource"), causes),
        (true, false) => service_backend(service, at, causes),
        (false, false) => {
            let why = "resource or service backend is required";
            causes.push(invalid_value(at, &"".into(), why));
        }
    }
}

/// Appends the faults of the Service behind an Ingress.
fn service_backend(service: &Value, at: &str, causes: &mut Vec<Cause>) {
    let name = service["name"].as_str().unwrap_or_default();
    let at_name = format!("{at}.service.name");
    if name.is_empty() {
        causes.push(required(&at_name, ""));
    } else {
        named(names::label(name), &service["name"], &at_name, causes);
    }
    let (number, name) = (&service["port"]["number"], &service["port"]["name"]);
    match (is_empty(number), is_empty(name)) {
        (false, false) => {
            let why = "cannot set both port name & port number";
            causes.push(invalid_value(at, &"".into(), why));
        }
        (true, true) => causes.push(required(at, "port name or number is required")),
        (false, true) => {
            let at = format!("{at}.service.port.number");
            fields::judge(&FieldCheck::Port, number, &at, causes);
        }
        (true, false) => {
            let faults = pod::port_name(name.as_str().unwrap_or_default());
            named(faults, name, &format!("{at}.service.port.name"), causes);
        }
    }
}

/// Appends the faults of a reference to an object by group, kind and name.
fn reference(target: &Value, at: &str, causes: &mut Vec<Cause>) {
    let group = target["apiGroup"].as_str().unwrap_or_default();
    if !group.is_empty() {
        let at = format!("{at}.apiGroup");
        named(names::subdomain(group), &target["apiGroup"], &at, causes);
    }
    for field in ["kind", "name"] {
        let (at, value) = (format!("{at}.{field}"), &target[field]);
        if is_empty(value) {
            causes.push(required(&at, ""));
        } else {
            named(names::path(value.as_str().unwrap_or_default()), value, &at, causes);
        }
    }
}

/// Appends the faults of an `IngressClass`.
pub(super) fn class(spec: &Value, causes: &mut Vec<Cause>) {
    /// Longest name of a controller, in bytes.
    const LONGEST: usize = 250;
    let controller = spec["controller"].as_str().unwrap_or_default();
    if controller.len() > LONGEST {
        let message = format!("Too long: may not be more than {LONGEST} bytes");
        causes.push(cause("FieldValueTooLong", "spec.controller", message));
    }
    if !controller.is_empty() {
        content::prefixed_path(controller, "spec.controller", causes);
    }
    let (parameters, at) = (&spec["parameters"], "spec.parameters");
    if !parameters.is_object() {
        return;
    }
    reference(parameters, at, causes);
    let namespace = parameters["namespace"].as_str();
    let at_namespace = format!("{at}.namespace");
    match parameters["scope"].as_str().unwrap_or("Cluster") {
        "Namespace" => match namespace {
            None | Some("") => {
                causes.push(required(&at_namespace, "`parameters.scope` is set to 'Namespace'"));
            }
            Some(name) => {
                named(names::label(name), &parameters["namespace"], &at_namespace, causes);
            }
        },
        "Cluster" if namespace.is_some() => {
            let why = "`parameters.scope` is set to 'Cluster'";
            causes.push(forbidden_field(&at_namespace, why));
        }
        "Cluster" => {}
        other => {
            let at = format!("{at}.scope");
            causes.push(unsupported(&at, other, &["Cluster", "Namespace"]));
        }
    }
}

/// Returns the warning about an Ingress with an annotation that a field has replaced.
pub(super) fn warning(object: &Value) -> Option<String> {
    object["metadata"]["annotations"][CLASS].is_string().then(|| {
        format!("annotation {CLASS:?} is deprecated, please use 'spec.ingressClassName' instead")
    })
}

/// Appends the faults of a `NetworkPolicy`.
pub(super) fn policy(spec: &Value, causes: &mut Vec<Cause>) {
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in spec[direction].as_array().into_iter().flatten().enumerate() {
            let at = format!("spec.{direction}[{index}]");
            for (number, port) in rule["ports"].as_array().into_iter().flatten().enumerate() {
                policy_port(port, &format!("{at}.ports[{number}]"), causes);
            }
            for (number, one) in rule[peers].as_array().into_iter().flatten().enumerate() {
                peer(one, &format!("{at}.{peers}[{number}]"), causes);
            }
        }
    }
    if spec["policyTypes"].as_array().is_some_and(|list| list.len() > 2) {
        let why = "may not specify more than two policyTypes";
        causes.push(invalid_value("spec.policyTypes", &spec["policyTypes"], why));
    }
}

/// Appends the faults of a port, or of a range of ports.
fn policy_port(port: &Value, at: &str, causes: &mut Vec<Cause>) {
    let known = ["TCP", "UDP", "SCTP"];
    let protocol = port["protocol"].as_str();
    if let Some(protocol) = protocol.filter(|protocol| !known.contains(protocol)) {
        causes.push(unsupported(&format!("{at}.protocol"), protocol, &known));
    }
    let (held, end) = (&port["port"], &port["endPort"]);
    let at_end = format!("{at}.endPort");
    match held {
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or_default();
            fields::judge(&FieldCheck::Port, held, &format!("{at}.port"), causes);
            if end.as_i64().is_some_and(|end| end < number) {
                let why = "must be greater than or equal to `port`";
                causes.push(invalid_value(&at_end, held, why));
            } else if end.is_i64() {
                fields::judge(&FieldCheck::Port, end, &at_end, causes);
            }
        }
        Value::String(name) => {
            if end.is_i64() {
                let why = "may not be specified when `port` is non-numeric";
                causes.push(invalid_value(&at_end, end, why));
            }
            named(pod::port_name(name), held, &format!("{at}.port"), causes);
        }
        _ if end.is_i64() => {
            let why = "may not be specified when `port` is not specified";
            causes.push(invalid_value(&at_end, end, why));
        }
        _ => {}
    }
}

/// Appends the faults of a peer.
fn peer(peer: &Value, at: &str, causes: &mut Vec<Cause>) {
    let selectors = ["podSelector", "namespaceSelector"];
    let mut count = 0;
    for field in selectors.into_iter().filter(|field| peer[*field].is_object()) {
        count += 1;
        fields::judge(&FieldCheck::Selector, &peer[field], &format!("{at}.{field}"), causes);
    }
    let has_block = peer["ipBlock"].is_object();
    if has_block {
        block(&peer["ipBlock"], &format!("{at}.ipBlock"), causes);
    }
    if !has_block && count == 0 {
        causes.push(required(at, "must specify a peer"));
    } else if has_block && count > 0 {
        causes.push(forbidden_field(at, "may not specify both ipBlock and another peer"));
    }
}

/// Appends the faults of a block of addresses, including the exceptions.
fn block(block: &Value, at: &str, causes: &mut Vec<Cause>) {
    let text = block["cidr"].as_str().unwrap_or_default();
    let at_cidr = format!("{at}.cidr");
    if text.is_empty() {
        causes.push(required(&at_cidr, ""));
        return;
    }
    let Some(whole) = blocked(&block["cidr"], &at_cidr, causes) else { return };
    for (index, item) in block["except"].as_array().into_iter().flatten().enumerate() {
        let at = format!("{at}.except[{index}]");
        let Some(part) = blocked(item, &at, causes) else { continue };
        if !whole.holds(part) {
            causes.push(invalid_value(&at, item, "must be a strict subset of `cidr`"));
        }
    }
}

/// Reads a block of addresses, and appends its faults.
pub(super) fn blocked(value: &Value, at: &str, causes: &mut Vec<Cause>) -> Option<Network> {
    let text = value.as_str().unwrap_or_default();
    named(cluster::block_faults(text), value, at, causes);
    network(text)
}

/// A block of addresses: the family's bits, the address and the length of the prefix.
#[derive(Clone, Copy)]
pub(super) struct Network(u32, u128, u32);

impl Network {
    /// Returns the leading bits of an address.
    fn cut(self, address: u128) -> u128 {
        address.checked_shr(self.0 - self.2).unwrap_or(0)
    }

    /// Whether another block is a smaller part of this one.
    fn holds(self, other: Network) -> bool {
        self.0 == other.0 && self.2 < other.2 && self.cut(self.1) == self.cut(other.1)
    }
}

/// Reads a block of addresses.
fn network(text: &str) -> Option<Network> {
    let (address, length) = text.split_once('/')?;
    let length = length.parse().ok()?;
    let (bits, address) = match address.parse().ok()? {
        IpAddr::V4(address) => (32, u128::from(u32::from(address))),
        IpAddr::V6(address) => (128, u128::from(address)),
    };
    (length <= bits).then_some(Network(bits, address, length))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hosts_of_ingresses_may_begin_with_a_wildcard() {
        assert_eq!(host_faults(&json!("*.a.b")), [""; 0]);
        assert_eq!(host_faults(&json!("a.b")), [""; 0]);
        for bad in ["*", "*.*.b", "a.*.b", "A.b"] {
            assert_eq!(host_faults(&json!(bad)).len(), 1, "{bad}");
        }
    }

    #[test]
    fn paths_of_ingresses_lead_nowhere_else() {
        let faults = |kind: &str, path: &str| {
            let mut causes = Vec::new();
            ingress_path(&json!({"pathType": kind, "path": path}), "p", &mut causes);
            causes.into_iter().map(|cause| cause.message).collect::<Vec<_>>()
        };
        assert_eq!(faults("Prefix", "/a"), [""; 0]);
        assert_eq!(faults("ImplementationSpecific", ""), [""; 0]);
        assert_eq!(faults("Exact", ""), ["Invalid value: \"\": must be an absolute path"]);
        assert_eq!(faults("Prefix", "/a//b"), ["Invalid value: \"/a//b\": must not contain '//'"]);
    }

    #[test]
    fn blocks_of_addresses_end_where_their_prefix_does() {
        let faults = |block: Value| {
            let mut causes = Vec::new();
            super::block(&block, "b", &mut causes);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        assert_eq!(faults(json!({"cidr": "1.2.0.0/16", "except": ["1.2.3.0/24"]})), [""; 0]);
        assert_eq!(faults(json!({"cidr": "::/0"})), [""; 0]);
        assert_eq!(faults(json!({"cidr": "1.2.3.4/16"})), ["b.cidr"]);
        assert_eq!(
            faults(json!({"cidr": "1.2.0.0/16", "except": ["1.3.0.0/24"]})),
            ["b.except[0]"]
        );
    }
}
