//! Checks of pod specs, in Pods and in the templates of workloads.

// DESIGN.md, 170: Pods and templates share one check, at the path where the spec stands

mod annotations;
mod change;
mod claims;
mod containers;
mod handlers;
mod mounts;
mod placement;
mod resources;
mod security;
mod volumes;
mod warnings;

use std::collections::BTreeSet;

use serde_json::Value;

pub(crate) use change::change;
pub(super) use handlers::port_name;
pub(super) use placement::{node_selector, tolerations};
pub(super) use resources::{
    any_resource, check as requirements, may_exceed, quantity as amount, resource,
};
pub(super) use volumes::{SOURCES, source as volume_source};
pub(crate) use warnings::{armor_warnings, warnings};

use super::{fields, table};
use crate::kinds::meta;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required};

/// Largest id of a user or group.
const MOST_ID: i64 = i32::MAX as i64;

/// Appends the faults of a Pod's template at a path.
pub(crate) fn template(template: &Value, at: &str, causes: &mut Vec<Cause>) {
    labels(template, at, causes);
    annotations(template, at, causes);
    let spec = &template["spec"];
    check(spec, &format!("{at}.spec"), false, causes);
    if !fields::is_empty(&spec["ephemeralContainers"]) {
        let why = "ephemeral containers not allowed in pod template";
        causes.push(forbidden_field(&format!("{at}.spec.ephemeralContainers"), why));
    }
}

/// Appends the faults of the annotations of a Pod that became fields.
pub(super) fn annotations(object: &Value, at: &str, causes: &mut Vec<Cause>) {
    let at = format!("{at}.annotations");
    annotations::check(&object["metadata"]["annotations"], &object["spec"], &at, causes);
}

/// Appends the faults of the labels and annotations of a template; their paths lack the metadata.
pub(crate) fn labels(template: &Value, at: &str, causes: &mut Vec<Cause>) {
    let found = meta::check_common(template).into_iter();
    causes.extend(found.map(|mut cause| {
        if let Some(field) = cause.field.strip_prefix("metadata.") {
            cause.field = format!("{at}.{field}");
        }
        cause
    }));
}

/// Appends the faults of a pod spec at a path. Templates are checked less strictly than Pods.
pub(super) fn check(spec: &Value, at: &str, is_pod: bool, causes: &mut Vec<Cause>) {
    let volumes = volumes::check(&spec["volumes"], &format!("{at}.volumes"), causes);
    claims::of_pod(&spec["resourceClaims"], &format!("{at}.resourceClaims"), causes);
    containers::check(spec, at, &volumes, causes);
    resources::of_pod(spec, at, causes);
    host_ports(spec, at, is_pod, causes);
    table::pod(spec, at, causes);
    identities(&spec["securityContext"], &format!("{at}.securityContext"), causes);
    security::pod(spec, at, causes);
    security::names_of_hosts(&spec["dnsConfig"], &format!("{at}.dnsConfig"), causes);
    names_of_servers(spec, at, causes);
    placement::affinity(&spec["affinity"], &format!("{at}.affinity"), causes);
    placement::spread(&spec["topologySpreadConstraints"], at, causes);
    gates(&spec["schedulingGates"], &format!("{at}.schedulingGates"), causes);
    tolerations(&spec["tolerations"], &format!("{at}.tolerations"), causes);
    early(spec, at, causes);
    if is_pod {
        only_pods(spec, at, causes);
    }
}

/// Appends the faults of a Pod that is on a node before all gates are gone.
fn early(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    if !fields::is_empty(&spec["schedulingGates"]) && !fields::is_empty(&spec["nodeName"]) {
        let why = "cannot be set until all schedulingGates have been cleared";
        causes.push(forbidden_field(&format!("{at}.nodeName"), why));
    }
}

/// Appends the faults that only Pods have: templates of older versions were stored with them.
fn only_pods(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    if fields::is_empty(&spec["serviceAccountName"]) {
        for (index, volume) in items(&spec["volumes"]) {
            for (number, source) in items(&volume["projected"]["sources"]) {
                if source["serviceAccountToken"].is_object() {
                    let at = format!(
                        "{at}.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                    );
                    let why = "must not be specified when serviceAccountName is not set";
                    causes.push(forbidden_field(&at, why));
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for (index, container) in items(&spec[list]) {
            padded(container, &format!("{at}.{list}[{index}]"), causes);
        }
    }
}

/// Appends the fault of an image with white space around the name.
fn padded(container: &Value, at: &str, causes: &mut Vec<Cause>) {
    let image = text(container, "image");
    if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        causes.push(invalid_value(&format!("{at}.image"), &image.into(), why));
    }
}

/// Appends the faults of ports of Pods in the network of their node.
fn host_ports(spec: &Value, at: &str, is_pod: bool, causes: &mut Vec<Cause>) {
    if spec["hostNetwork"] != true {
        return;
    }
    for (index, container) in items(&spec["containers"]) {
        for (number, port) in items(&container["ports"]) {
            let (host, own) = (integer(port, "hostPort"), integer(port, "containerPort"));
            if (is_pod || host != 0) && host != own {
                let at = format!("{at}.containers[{index}].ports[{number}].hostPort");
                let why = "must match `containerPort` when `hostNetwork` is true";
                causes.push(invalid_value(&at, &host.into(), why));
            }
        }
    }
}

/// Appends the faults of ids of users and groups in a security context of a Pod or container.
fn identities(context: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut judge = |value: &Value, at: String| {
        if value.as_i64().is_some_and(|id| !(0..=MOST_ID).contains(&id)) {
            let why = format!("must be between 0 and {MOST_ID}, inclusive");
            causes.push(invalid_value(&at, value, &why));
        }
    };
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        judge(&context[field], format!("{at}.{field}"));
    }
    for (index, group) in items(&context["supplementalGroups"]) {
        judge(group, format!("{at}.supplementalGroups[{index}]"));
    }
}

/// Appends the fault of a Pod that asks for no name servers and names none.
fn names_of_servers(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let config = &spec["dnsConfig"];
    if spec["dnsPolicy"] != "None" {
        return;
    }
    if config.is_null() {
        let why = "must provide `dnsConfig` when `dnsPolicy` is None";
        causes.push(required(&format!("{at}.dnsConfig"), why));
    } else if fields::is_empty(&config["nameservers"]) {
        let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        causes.push(required(&format!("{at}.dnsConfig.nameservers"), why));
    }
}

/// Appends the faults of gates that keep a Pod from being scheduled.
fn gates(gates: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, gate) in items(gates) {
        let (at, name) = (format!("{at}[{index}]"), text(gate, "name"));
        named(names::qualified(name), name, &at, causes);
        if !seen.insert(name) {
            causes.push(duplicate(&at, name));
        }
    }
}

/// Iterates over a list with the positions of the items; an absent list has no items.
fn items(list: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list.as_array().into_iter().flatten().enumerate()
}

/// Returns a text; an absent text is empty.
fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_default()
}

/// Returns a number; an absent number is 0.
fn integer(object: &Value, field: &str) -> i64 {
    object[field].as_i64().unwrap_or_default()
}

/// Appends the faults of a text.
fn named(faults: Vec<String>, text: &str, at: &str, causes: &mut Vec<Cause>) {
    causes.extend(faults.iter().map(|why| invalid_value(at, &text.into(), why)));
}

/// Returns the fault of a text that is there twice.
fn duplicate(at: &str, text: &str) -> Cause {
    cause("FieldValueDuplicate", at, format!("Duplicate value: {}", Value::from(text)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(spec: &Value, is_pod: bool) -> Vec<String> {
        let mut causes = Vec::new();
        check(spec, "spec", is_pod, &mut causes);
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn pods_are_checked_more_strictly_than_templates() {
        let spec = json!({"containers": [{"name": "c", "image": " i"}]});
        assert_eq!(faults(&spec, false), [""; 0]);
        let why = "Invalid value: \" i\": must not have leading or trailing whitespace";
        assert_eq!(faults(&spec, true), [format!("spec.containers[0].image: {why}")]);
    }

    #[test]
    fn a_template_names_the_place_of_its_faults() {
        let mut causes = Vec::new();
        let made = json!({"metadata": {"labels": {"a": "x y"}}, "spec": {
            "containers": [{"name": "c", "image": "i"}], "tolerations": [{"operator": "Equal"}]}});
        template(&made, "spec.template", &mut causes);
        let found: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(found, ["spec.template.labels", "spec.template.spec.tolerations[0].operator"]);
    }

    #[test]
    fn gates_have_names_and_are_there_once() {
        let gates = json!([{"name": "g"}, {"name": "g"}, {"name": "a b"}]);
        let spec = json!({"containers": [{"name": "c", "image": "i"}], "schedulingGates": gates});
        let found = faults(&spec, true);
        assert_eq!(found[0], "spec.schedulingGates[1]: Duplicate value: \"g\"");
        assert!(found[1].starts_with("spec.schedulingGates[2]: Invalid value: \"a b\": name part"));
    }
}
