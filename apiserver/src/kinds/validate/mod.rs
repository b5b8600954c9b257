//! Validation of built-in kinds: rules for single fields from a table, and checks in code for rules
//! about several fields.
//!
//! Both follow the answers of kube-apiserver that `tests/conformance` has recorded. They do not
//! cover all validation of kube-apiserver.

// DESIGN.md, 239: Faults of built-in kinds come from a table, those of several fields from a
// function for each kind

mod amounts;
mod autoscaling;
mod cluster;
mod content;
mod fields;
mod jobs;
mod networking;
mod order;
pub(crate) mod pod;
mod policies;
mod rights;
mod services;
mod status;
mod statuses;
mod table;
mod volumes;
mod webhooks;
mod workload;

use serde_json::Value;

pub(in crate::kinds) use cluster::ip_warning;
pub(crate) use fields::invalid_selector;
pub(in crate::kinds) use fields::{is_selector, selector};
pub(crate) use order::order;

use super::{Kind, autoscalers};
use crate::served::Cause;

/// Returns the faults of the status of a changed object of a built-in kind.
pub(crate) fn check_status(kind: &Kind, old: &Value, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if kind.custom.is_none() {
        statuses::check(kind, old, object, &mut causes);
        status::check(kind.name(), &object["status"], &mut causes);
        if kind.is("", "services") {
            services::status(object, &mut causes);
        }
        if kind.is("", "nodes") {
            cluster::node_status(&object["status"], &mut causes);
        }
    }
    causes
}

/// Returns the faults that only new objects of a built-in kind have.
pub(crate) fn check_new(kind: &Kind, object: &Value) -> Vec<Cause> {
    if !kind.is("apps", "controllerrevisions") {
        return Vec::new();
    }
    let why = match &object["data"] {
        Value::Null => "data is mandatory",
        Value::Object(_) => return Vec::new(),
        _ => "data must be a valid JSON object",
    };
    vec![crate::status::required("data", why)]
}

/// Returns the faults of a change of an object of a built-in kind: of fields that keep their value.
pub(crate) fn change(kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
    if kind.custom.is_some() { Vec::new() } else { cluster::change(kind, old, new) }
}

/// Whether a change of an object of a kind is checked by the rules for new objects, too.
pub(crate) fn judges_changes(kind: &Kind) -> bool {
    let name = (kind.served.group.as_str(), kind.name());
    !matches!(
        name,
        ("networking.k8s.io", "ServiceCIDR")
            | ("resource.k8s.io", "ResourceClaim")
            | ("scheduling.k8s.io", "PriorityClass")
    )
}

/// Returns the faults of an object of a built-in kind.
pub(crate) fn check(kind: &Kind, object: &Value) -> Vec<Cause> {
    if kind.custom.is_some() {
        return Vec::new();
    }
    let newer = autoscalers::is_older(kind).then(|| autoscalers::to_newer(object.clone()));
    let object = newer.as_ref().unwrap_or(object);
    let group = kind.served.group.as_str();
    let mut causes = table::check(group, kind.name(), object);
    cluster::check(group, kind.name(), object, &mut causes);
    match group {
        "" | "events.k8s.io" => {
            content::check(kind, object, &mut causes);
            amounts::check(kind.name(), object, &mut causes);
            match kind.name() {
                "Pod" => {
                    pod::annotations(object, "metadata", &mut causes);
                    pod::check(&object["spec"], "spec", true, &mut causes);
                }
                "PodTemplate" => pod::template(&object["template"], "template", &mut causes),
                "ReplicationController" => workload::replication(&object["spec"], &mut causes),
                _ => {}
            }
        }
        "apps" | "batch" | "autoscaling" | "policy" | "networking.k8s.io" => {
            workload::check(kind.name(), object, &mut causes);
        }
        "scheduling.k8s.io" => content::priority_class(object, &mut causes),
        "rbac.authorization.k8s.io" => rights::check(kind.name(), object, &mut causes),
        "certificates.k8s.io" => {
            content::request(&object["spec"]["request"], &mut causes);
            content::signing(&object["spec"], &mut causes);
        }
        "admissionregistration.k8s.io" => policies::check(kind.name(), object, &mut causes),
        _ => {}
    }
    causes
}
