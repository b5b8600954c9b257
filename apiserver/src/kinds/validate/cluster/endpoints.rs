//! Checks of Endpoints and slices of endpoints.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use super::{addresses, duplicate, items, text, too_many};
use crate::kinds::validate::fields::{self, FieldCheck, is_empty, named};
use crate::names;
use crate::served::Cause;
use crate::status::{invalid_value, required};

/// Most endpoints of a slice.
const MOST_ENDPOINTS: usize = 1000;
/// Most addresses of an endpoint.
const MOST_ADDRESSES: usize = 100;
/// Most ports of a slice.
const MOST_PORTS: usize = 20_000;
/// Most zones or nodes that an endpoint is meant for.
const MOST_HINTS: usize = 8;
/// Most labels of an endpoint's place.
const MOST_LABELS: usize = 16;

/// Appends the faults of the subsets of Endpoints.
pub(super) fn subsets(subsets: &Value, causes: &mut Vec<Cause>) {
    for (index, subset) in items(subsets) {
        let at = format!("subsets[{index}]");
        let lists = ["addresses", "notReadyAddresses"];
        if lists.iter().all(|list| is_empty(&subset[*list])) {
            causes.push(required(&at, "must specify `addresses` or `notReadyAddresses`"));
        }
        for list in lists {
            for (number, one) in items(&subset[list]) {
                address(one, &format!("{at}.{list}[{number}]"), causes);
            }
        }
        let count = subset["ports"].as_array().map_or(0, Vec::len);
        for (number, port) in items(&subset["ports"]) {
            let at = format!("{at}.ports[{number}]");
            if count > 1 && text(port, "name").is_empty() {
                causes.push(required(&format!("{at}.name"), ""));
            }
            fields::judge(&FieldCheck::Label, &port["name"], &format!("{at}.name"), causes);
            fields::judge(&FieldCheck::Port, &port["port"], &format!("{at}.port"), causes);
            let known = FieldCheck::OneOf(vec!["SCTP", "TCP", "UDP"]);
            fields::judge(&known, &port["protocol"], &format!("{at}.protocol"), causes);
            qualified(&port["appProtocol"], &format!("{at}.appProtocol"), causes);
        }
    }
}

/// Appends the faults of a protocol above TCP or UDP; an empty text is there, too.
fn qualified(value: &Value, at: &str, causes: &mut Vec<Cause>) {
    if let Some(held) = value.as_str() {
        named(names::qualified(held), value, at, causes);
    }
}

/// Appends the faults of an address of Endpoints.
fn address(one: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (at_ip, ip) = (format!("{at}.ip"), Value::from(text(one, "ip")));
    named(addresses::ip_faults(text(one, "ip")), &ip, &at_ip, causes);
    fields::judge(&FieldCheck::Label, &one["hostname"], &format!("{at}.hostname"), causes);
    if let Some(node) = one["nodeName"].as_str() {
        named(names::subdomain(node), &one["nodeName"], &format!("{at}.nodeName"), causes);
    }
    named(addresses::endpoint_faults(text(one, "ip")), &ip, &at_ip, causes);
}

/// Appends the faults of a slice.
pub(super) fn slice(object: &Value, causes: &mut Vec<Cause>) {
    let count = object["endpoints"].as_array().map_or(0, Vec::len);
    if count > MOST_ENDPOINTS {
        causes.push(too_many("endpoints", count, MOST_ENDPOINTS));
    } else {
        for (index, one) in items(&object["endpoints"]) {
            let at = format!("endpoints[{index}]");
            endpoint(one, text(object, "addressType"), &at, causes);
        }
    }
    let count = object["ports"].as_array().map_or(0, Vec::len);
    if count > MOST_PORTS {
        causes.push(too_many("ports", count, MOST_PORTS));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, port) in items(&object["ports"]) {
        let at = format!("ports[{index}]");
        if !seen.insert(text(port, "name")) {
            causes.push(duplicate(&format!("{at}.name"), &text(port, "name").into()));
        }
        qualified(&port["appProtocol"], &format!("{at}.appProtocol"), causes);
    }
}

/// Appends the faults of an endpoint with addresses of a type.
fn endpoint(one: &Value, kind: &str, at: &str, causes: &mut Vec<Cause>) {
    let at_addresses = format!("{at}.addresses");
    match one["addresses"].as_array().map_or(0, Vec::len) {
        0 => causes.push(required(&at_addresses, "must contain at least 1 address")),
        count if count > MOST_ADDRESSES => {
            causes.push(too_many(&at_addresses, count, MOST_ADDRESSES));
        }
        _ => {}
    }
    for (index, address) in items(&one["addresses"]) {
        endpoint_address(address, kind, &at_addresses, index, causes);
    }
    if let Some(node) = one["nodeName"].as_str() {
        named(names::subdomain(node), &one["nodeName"], &format!("{at}.nodeName"), causes);
    }
    let at_labels = format!("{at}.deprecatedTopology");
    let labels = one["deprecatedTopology"].as_object().map_or(0, serde_json::Map::len);
    if labels > MOST_LABELS {
        causes.push(too_many(&at_labels, labels, MOST_LABELS));
    }
    fields::judge(&FieldCheck::Labels, &one["deprecatedTopology"], &at_labels, causes);
    if let Some(name) = one["hostname"].as_str() {
        named(names::label(name), &one["hostname"], &format!("{at}.hostname"), causes);
    }
    type NameFaults = fn(&str) -> Vec<String>;
    let of_zones: (&str, NameFaults) = ("forZones", names::label_value);
    for (field, faults) in [of_zones, ("forNodes", names::subdomain)] {
        if !hints(&one["hints"][field], &format!("{at}.hints.{field}"), faults, causes) {
            return;
        }
    }
}

/// Appends the faults of an address at a place of a list.
fn endpoint_address(value: &Value, kind: &str, list: &str, index: usize, causes: &mut Vec<Cause>) {
    let (at, text) = (format!("{list}[{index}]"), value.as_str().unwrap_or_default());
    let faults = match kind {
        "IPv4" => addresses::ip_faults(text),
        "IPv6" => addresses::strict_faults(text),
        "FQDN" => {
            domain(value, &at, causes);
            return;
        }
        _ => return,
    };
    if !faults.is_empty() {
        return named(faults, value, &at, causes);
    }
    // The fault names the list and not the address, upstream too.
    let is_fourth = text.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4());
    if is_fourth != (kind == "IPv4") {
        causes.push(invalid_value(list, value, &format!("must be an {kind} address")));
    }
    named(addresses::endpoint_faults(text), value, &at, causes);
}

/// Appends the faults of a full name of a host.
fn domain(value: &Value, at: &str, causes: &mut Vec<Cause>) {
    let text = value.as_str().unwrap_or_default();
    if text.is_empty() {
        causes.push(required(at, ""));
        return;
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let faults = names::subdomain(name);
    if !faults.is_empty() {
        named(faults, &name.into(), at, causes);
    } else if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        causes.push(invalid_value(at, &name.into(), why));
    }
}

/// Appends the faults of the names of zones or nodes; false if there are too many.
fn hints(list: &Value, at: &str, faults: fn(&str) -> Vec<String>, causes: &mut Vec<Cause>) -> bool {
    let count = list.as_array().map_or(0, Vec::len);
    if count > MOST_HINTS {
        causes.push(too_many(at, count, MOST_HINTS));
        return false;
    }
    let mut seen = BTreeSet::new();
    for (index, one) in items(list) {
        let (at, name) = (format!("{at}[{index}].name"), text(one, "name"));
        if !seen.insert(name) {
            causes.push(duplicate(&at, &name.into()));
        }
        named(faults(name), &name.into(), &at, causes);
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(check: fn(&Value, &mut Vec<Cause>), value: Value) -> Vec<String> {
        let mut causes = Vec::new();
        check(&value, &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn subsets_have_addresses_and_several_ports_have_names() {
        let with = |ports: Value| json!([{"addresses": [{"ip": "1.2.3.4"}], "ports": ports}]);
        assert_eq!(faults(subsets, with(json!([{"port": 80}]))), [""; 0]);
        let at = ["subsets[0].ports[0].name", "subsets[0].ports[1].name"];
        assert_eq!(faults(subsets, with(json!([{"port": 80}, {"port": 81}]))), at);
        assert_eq!(faults(subsets, json!([{}])), ["subsets[0]"]);
        let loop_back = json!([{"notReadyAddresses": [{"ip": "::1"}]}]);
        assert_eq!(faults(subsets, loop_back), ["subsets[0].notReadyAddresses[0].ip"]);
    }

    #[test]
    fn addresses_of_a_slice_are_of_its_type() {
        let with = |kind: &str, address: &str| {
            let endpoints = json!([{"addresses": [address]}]);
            faults(slice, json!({"addressType": kind, "endpoints": endpoints}))
        };
        assert_eq!(with("IPv4", "1.2.3.4"), [""; 0]);
        assert_eq!(with("IPv6", "2001:db8::1"), [""; 0]);
        assert_eq!(with("FQDN", "a.b"), [""; 0]);
        assert_eq!(with("IPv6", "1.2.3.4"), ["endpoints[0].addresses"]);
        assert_eq!(with("IPv4", "127.0.0.1"), ["endpoints[0].addresses[0]"]);
        assert_eq!(with("FQDN", "a"), ["endpoints[0].addresses[0]"]);
    }

    #[test]
    fn names_of_ports_and_zones_are_there_once() {
        let ports = json!({"ports": [{"name": ""}, {"name": ""}]});
        assert_eq!(faults(slice, ports), ["ports[1].name"]);
        let hints = json!({"forZones": [{"name": "a"}, {"name": "a"}]});
        let endpoints = json!([{"addresses": ["1.2.3.4"], "hints": hints}]);
        let slice_of = json!({"addressType": "IPv4", "endpoints": endpoints});
        assert_eq!(faults(slice, slice_of), ["endpoints[0].hints.forZones[1].name"]);
    }
}
