//! Changes of Services: values that stay, values that go with the type, and refused changes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::ports;
use crate::kinds::defaults;
use crate::served::Cause;
use crate::status::{forbidden_field, invalid_value};

/// Whether a Service has an address of the cluster.
fn has_address(spec: &Value) -> bool {
    spec["type"] != "ExternalName"
}

/// Whether a Service can be reached from outside of the cluster.
fn is_external(spec: &Value) -> bool {
    let addresses = spec["externalIPs"].as_array().is_some_and(|all| !all.is_empty());
    ports::has(spec) || (spec["type"] == "ClusterIP" && addresses)
}

fn is_unset(value: &Value) -> bool {
    value.as_str().is_none_or(str::is_empty)
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

fn remove(spec: &mut Value, field: &str) {
    if let Some(fields) = spec.as_object_mut() {
        fields.remove(field);
    }
}

/// Brings `clusterIP` and `clusterIPs` into line, and fills in values that the client left out and
/// the Service has.
pub(super) fn carry_over(before: Option<&Value>, spec: &mut Value) {
    let Some(before) = before else {
        if !is_unset(&spec["clusterIP"]) && is_empty(&spec["clusterIPs"]) {
            spec["clusterIPs"] = json!([spec["clusterIP"]]);
        }
        return;
    };
    let has_changed = before["clusterIP"] != spec["clusterIP"]
        && !(is_unset(&before["clusterIP"]) && is_unset(&spec["clusterIP"]));
    if !is_empty(&before["clusterIPs"]) && is_empty(&spec["clusterIPs"]) && !has_changed {
        spec["clusterIPs"] = before["clusterIPs"].clone();
    }
    let is_same_list = before["clusterIPs"] == spec["clusterIPs"] || is_empty(&spec["clusterIPs"]);
    if has_changed && is_same_list {
        // Clients of a single address know the older field only.
        if is_unset(&spec["clusterIP"]) {
            remove(spec, "clusterIPs");
        } else {
            spec["clusterIPs"] = json!([spec["clusterIP"]]);
        }
    }
    if has_address(before) && has_address(spec) {
        if is_unset(&spec["clusterIP"]) {
            spec["clusterIP"] = before["clusterIP"].clone();
        }
        if is_empty(&spec["clusterIPs"]) && !is_empty(&before["clusterIPs"]) {
            spec["clusterIPs"] = before["clusterIPs"].clone();
        }
    }
    if ports::has(before) && ports::has(spec) {
        carry_over_ports(before, spec);
    }
    let asks = spec["healthCheckNodePort"].as_i64().is_some_and(|port| port != 0);
    if ports::needs_health(before) && ports::needs_health(spec) && !asks {
        spec["healthCheckNodePort"] = before["healthCheckNodePort"].clone();
    }
}

/// Fills in the node ports of ports that keep their names.
fn carry_over_ports(before: &Value, spec: &mut Value) {
    let all = |spec: &Value| spec["ports"].as_array().cloned().unwrap_or_default();
    let name = |port: &Value| port["name"].as_str().unwrap_or_default().to_owned();
    let node = |port: &Value| port["nodePort"].as_i64().unwrap_or(0);
    let now: BTreeSet<i64> = all(spec).iter().map(node).filter(|port| *port != 0).collect();
    let held: BTreeMap<String, i64> =
        all(before).iter().map(|port| (name(port), node(port))).collect();
    for port in defaults::items(spec, "ports").filter(|port| node(port) == 0) {
        let free = held.get(&name(port)).filter(|held| **held != 0 && !now.contains(held));
        if let Some(held) = free {
            port["nodePort"] = json!(held);
        }
    }
}

/// Removes values that the new type has no use for, unless the client has changed them: then
/// validation refuses them.
pub(super) fn drop_needless(before: &Value, spec: &mut Value) {
    let same = |spec: &Value, field: &str| before[field] == spec[field];
    if has_address(before) && !has_address(spec) {
        if same(spec, "clusterIP") && same(spec, "clusterIPs") {
            remove(spec, "clusterIP");
            remove(spec, "clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            if same(spec, field) {
                remove(spec, field);
            }
        }
    }
    if ports::has(before) && !ports::has(spec) {
        let nodes = |spec: &Value| {
            let all = spec["ports"].as_array().into_iter().flatten();
            all.map(|port| port["nodePort"].as_i64().unwrap_or(0)).collect::<BTreeSet<i64>>()
        };
        if nodes(before) == nodes(spec) {
            defaults::items(spec, "ports").for_each(|port| remove(port, "nodePort"));
        }
    }
    if ports::needs_health(before)
        && !ports::needs_health(spec)
        && same(spec, "healthCheckNodePort")
    {
        remove(spec, "healthCheckNodePort");
    }
    if before["type"] == "LoadBalancer" && spec["type"] != "LoadBalancer" {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if same(spec, field) {
                remove(spec, field);
            }
        }
    }
    if is_external(before) && !is_external(spec) && same(spec, "externalTrafficPolicy") {
        remove(spec, "externalTrafficPolicy");
    }
}

/// Returns the faults of a change of a Service: addresses stay unless the Service is or becomes a
/// name in DNS.
pub(crate) fn check(old: &Value, new: &Value) -> Vec<Cause> {
    let (old, new) = (&old["spec"], &new["spec"]);
    let mut causes = balanced(old, new);
    causes.extend(addresses(old, new));
    causes
}

/// Returns the faults of a change of what a load balancer keeps.
fn balanced(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let class = &new["loadBalancerClass"];
    let stays = [old, new].iter().all(|spec| spec["type"] == "LoadBalancer");
    if stays && old["loadBalancerClass"] != *class {
        causes.push(invalid_value("spec.loadBalancerClass", class, "may not change once set"));
    }
    let port = |spec: &Value| spec["healthCheckNodePort"].as_i64().unwrap_or(0);
    let needs = [old, new].iter().all(|spec| ports::needs_health(spec));
    if needs && port(old) != 0 && port(old) != port(new) {
        causes.push(forbidden_field("spec.healthCheckNodePort", "field is immutable"));
    }
    causes
}

/// Returns the faults of changed addresses.
fn addresses(old: &Value, new: &Value) -> Vec<Cause> {
    let lists = [&old["clusterIPs"], &new["clusterIPs"]];
    if !has_address(old) || !has_address(new) || lists.iter().all(|list| list[0] == "None") {
        return Vec::new();
    }
    let [held, wanted] = lists.map(|list| list.as_array().map_or(&[][..], Vec::as_slice));
    let changed = held.iter().zip(wanted).enumerate().filter(|(_, (held, now))| held != now);
    // In lists of different lengths only the first addresses are compared.
    let compared = if held.len() == wanted.len() { held.len() } else { 1 };
    changed
        .take_while(|(index, _)| *index < compared)
        .map(|(index, _)| {
            let at = format!("spec.clusterIPs[{index}]");
            invalid_value(&at, &new["clusterIPs"], "may not change once set")
        })
        .collect()
}
