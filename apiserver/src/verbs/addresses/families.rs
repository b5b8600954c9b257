//! Families of the addresses of Services: the cluster has IPv4 only.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};

use crate::served::Cause;
use crate::status::{cause, invalid_value, required, unsupported};

/// Returns the texts of a list.
fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.map(|item| item.as_str().unwrap_or_default().to_owned()).collect()
}

/// Sets the policy and the families of a Service; returns the faults.
pub(super) fn fill(before: Option<&Value>, spec: &mut Value) -> Vec<Cause> {
    let same = |field: &str| before.is_some_and(|before| before[field] == spec[field]);
    // Such a Service neither gains nor loses a family by an update.
    let is_kept = spec["ipFamilyPolicy"] == "PreferDualStack"
        && ["ipFamilyPolicy", "ipFamilies", "clusterIPs"].into_iter().all(same);
    if is_kept {
        return Vec::new();
    }
    let is_bare = spec["clusterIP"] == "None"
        && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    if spec["ipFamilyPolicy"].as_str().is_none_or(str::is_empty) {
        let held = before.map(|before| before["ipFamilyPolicy"].clone()).filter(Value::is_string);
        // For a headless Service without a selector the endpoints decide the families.
        let default = if is_bare { "RequireDualStack" } else { "SingleStack" };
        spec["ipFamilyPolicy"] = held.unwrap_or_else(|| json!(default));
    }
    let causes = check(spec);
    if !causes.is_empty() {
        return causes;
    }
    let policy = spec["ipFamilyPolicy"].as_str().unwrap_or_default().to_owned();
    let mut families = texts(&spec["ipFamilies"]);
    let mut causes = Vec::new();
    if let Some(before) = before {
        let had = texts(&before["ipFamilies"]);
        if policy == "SingleStack" {
            if had == families {
                families.truncate(1);
            }
        } else if families.len() == 1 && had.len() == 2 && families[0] == had[0] {
            let why = "must be 'SingleStack' to release the secondary IP family";
            causes.push(invalid_value("spec.ipFamilyPolicy", &json!(policy), why));
        }
    }
    causes.extend(infer(&policy, spec, &mut families));
    if causes.is_empty() {
        causes = complete(&policy, is_bare, &mut families);
    }
    spec["ipFamilies"] = json!(families);
    causes
}

/// Adds the families of the addresses; returns the faults of a Service with more than the policy
/// allows.
fn infer(policy: &str, spec: &Value, families: &mut Vec<String>) -> Vec<Cause> {
    let addresses = texts(&spec["clusterIPs"]);
    let mut causes = Vec::new();
    let counts = [(addresses.len(), "cluster IPs"), (families.len(), "IP families")];
    for (count, of) in counts {
        if policy == "SingleStack" && count == 2 {
            let why = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {of} are specified"
            );
            causes.push(invalid_value("spec.ipFamilyPolicy", &json!(policy), &why));
        }
    }
    for (index, address) in addresses.iter().enumerate() {
        if address == "None" {
            break;
        }
        if index < families.len() {
            continue;
        }
        if address.parse::<Ipv4Addr>().is_ok() {
            families.push("IPv4".to_owned());
        } else {
            let at = format!("spec.clusterIPs[{index}]");
            let why = "IPv6 is not configured on this cluster";
            causes.push(invalid_value(&at, &spec["clusterIPs"], why));
        }
    }
    causes
}

/// Adds the families that the policy demands; returns the faults of those that the cluster has not.
fn complete(policy: &str, is_bare: bool, families: &mut Vec<String>) -> Vec<Cause> {
    let mut causes = Vec::new();
    if families.is_empty() {
        families.push("IPv4".to_owned());
    }
    if is_bare {
        if families.len() < 2 && policy != "SingleStack" {
            let other = if families[0] == "IPv4" { "IPv6" } else { "IPv4" };
            families.push(other.to_owned());
        }
        return causes;
    }
    if policy == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        causes.push(invalid_value("spec.ipFamilyPolicy", &json!(policy), why));
    }
    for (index, family) in families.iter().enumerate().filter(|(_, family)| *family == "IPv6") {
        let at = format!("spec.ipFamilies[{index}]");
        causes.push(invalid_value(&at, &json!(family), "not configured on this cluster"));
    }
    causes
}

/// Returns the faults of addresses, families and policy by themselves.
fn check(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (address, list) = (spec["clusterIP"].as_str().unwrap_or_default(), &spec["clusterIPs"]);
    let addresses = texts(list);
    let at = "spec.clusterIPs";
    match addresses.first() {
        Some(first) if address.is_empty() && !first.is_empty() => {
            let why = "must be empty when `clusterIP` is not specified";
            causes.push(invalid_value(at, list, why));
        }
        None if !address.is_empty() => causes.push(required(at, "")),
        Some(first) if first != address => {
            causes.push(invalid_value(at, list, "first value must match `clusterIP`"));
        }
        _ => {}
    }
    let families = texts(&spec["ipFamilies"]);
    for (index, family) in families.iter().enumerate() {
        let at = format!("spec.ipFamilies[{index}]");
        if !["IPv4", "IPv6"].contains(&family.as_str()) {
            causes.push(unsupported(&at, family, &["IPv4", "IPv6"]));
        }
        if families[..index].contains(family) {
            causes.push(cause("FieldValueDuplicate", &at, format!("Duplicate value: {family:?}")));
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    let policy = spec["ipFamilyPolicy"].as_str().unwrap_or_default();
    if !policies.contains(&policy) {
        causes.push(unsupported("spec.ipFamilyPolicy", policy, &policies));
    }
    causes.extend(check_addresses(list, &addresses, &families));
    causes
}

/// Returns the faults of the addresses of a Service.
fn check_addresses(list: &Value, addresses: &[String], families: &[String]) -> Vec<Cause> {
    let at = "spec.clusterIPs";
    let mut causes = Vec::new();
    for (index, address) in addresses.iter().enumerate() {
        if index == 0 && address == "None" {
            if addresses.len() > 1 {
                causes.push(invalid_value(at, list, "'None' must be the first and only value"));
            }
        } else if let Some(why) = malformed(address) {
            causes.push(invalid_value(&format!("{at}[{index}]"), &json!(address), why));
        }
    }
    let is_well_formed = causes.is_empty();
    if addresses.len() > 2 {
        causes.push(invalid_value(at, list, "may only hold up to 2 values"));
    }
    if !is_well_formed || addresses.first().is_some_and(|first| first == "None") {
        return causes;
    }
    let old = addresses.iter().filter(|address| address.parse::<Ipv4Addr>().is_ok()).count();
    if addresses.len() > 1 && (old == 0 || old == addresses.len()) {
        let why = "may specify no more than one IP for each IP family";
        causes.push(invalid_value(at, list, why));
    }
    for (index, (address, family)) in addresses.iter().zip(families).enumerate() {
        let is_old = address.parse::<Ipv4Addr>().is_ok();
        if (family == "IPv4" && !is_old) || (family == "IPv6" && is_old) {
            let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            causes.push(invalid_value(&format!("{at}[{index}]"), &json!(address), &why));
        }
    }
    causes
}

/// Returns the fault of a text that is no address.
fn malformed(address: &str) -> Option<&'static str> {
    if address.parse::<IpAddr>().is_ok() {
        return None;
    }
    let parts: Vec<&str> = address.split('.').collect();
    let stripped: Vec<&str> = parts
        .iter()
        .map(|part| Some(part.trim_start_matches('0')).filter(|rest| !rest.is_empty()))
        .map(|rest| rest.unwrap_or("0"))
        .collect();
    // Go once read such parts as decimal numbers, other programs as octal numbers.
    if stripped.join(".").parse::<Ipv4Addr>().is_ok() {
        return Some("must not have leading 0s");
    }
    Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
}
