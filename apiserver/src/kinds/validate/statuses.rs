//! Checks of a status that is written: of its conditions, its phase, and of values that stay.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::{cluster, fields};
use crate::kinds::Kind;
use crate::kinds::quantity::Quantity;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, duplicate, invalid_value, required, unsupported};

/// Kinds whose conditions have the common form.
const COMMON: [(&str, &str); 2] = [
    ("policy", "PodDisruptionBudget"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
];
/// States of the resize of a claim.
const RESIZES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// Appends the faults of the status of a changed object.
pub(super) fn check(kind: &Kind, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let group = kind.served.group.as_str();
    let status = &new["status"];
    if COMMON.contains(&(group, kind.name())) {
        conditions(&status["conditions"], causes);
    }
    match (group, kind.name()) {
        ("", "Namespace") => phase(new, causes),
        ("", "Pod") => pod(&old["status"], new, causes),
        ("", "PersistentVolumeClaim") => claim(status, causes),
        ("apps", "Deployment" | "ReplicaSet") => {
            least(status, &["terminatingReplicas"], causes);
        }
        ("batch", "Job") => job(&old["status"], new, causes),
        ("networking.k8s.io", "Ingress") => ingress(status, causes),
        ("flowcontrol.apiserver.k8s.io", _) => types(&status["conditions"], causes),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            certificate(&old["status"], status, causes);
        }
        ("storage.k8s.io", "VolumeAttachment") => {
            for error in ["attachError", "detachError"] {
                if status[error]["errorCode"].as_i64().is_some_and(|code| code < 0) {
                    let why = "must be between 0 and 2147483647, inclusive";
                    let at = format!("status.{error}.errorCode");
                    causes.push(invalid_value(&at, &status[error]["errorCode"], why));
                }
            }
        }
        _ => {}
    }
}

/// Appends the faults of numbers that are not negative.
fn least(status: &Value, fields: &[&str], causes: &mut Vec<Cause>) {
    for field in fields {
        if status[*field].as_i64().is_some_and(|number| number < 0) {
            let why = "must be greater than or equal to 0";
            causes.push(invalid_value(&format!("status.{field}"), &status[*field], why));
        }
    }
}

/// Appends the faults of conditions of the common form.
fn conditions(conditions: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, one) in conditions.as_array().into_iter().flatten().enumerate() {
        let text = |field: &str| one[field].as_str().unwrap_or_default();
        let at = |field: &str| format!("status.conditions[{index}].{field}");
        if !seen.insert(text("type")) {
            causes.push(duplicate(&at("type"), &text("type").into()));
        }
        fields::named(names::qualified(text("type")), &text("type").into(), &at("type"), causes);
        if !["True", "False", "Unknown"].contains(&text("status")) {
            causes.push(unsupported(&at("status"), text("status"), &["False", "True", "Unknown"]));
        }
        if one["observedGeneration"].as_i64().is_some_and(|number| number < 0) {
            let why = "must be greater than or equal to zero";
            causes.push(invalid_value(&at("observedGeneration"), &one["observedGeneration"], why));
        }
        if text("lastTransitionTime").is_empty() {
            causes.push(required(&at("lastTransitionTime"), ""));
        }
        match text("reason") {
            "" => causes.push(required(&at("reason"), "")),
            reason if !is_reason(reason) => {
                let why = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
                causes.push(invalid_value(&at("reason"), &reason.into(), why));
            }
            _ => {}
        }
    }
}

/// Whether a text is a reason of a condition.
fn is_reason(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_,:".contains(&byte);
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.ends_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_')
        && text.bytes().all(inner)
}

/// Appends the faults of the types of conditions that have no other rules.
fn types(conditions: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, one) in conditions.as_array().into_iter().flatten().enumerate() {
        let (held, at) = (&one["type"], format!("status.conditions[{index}].type"));
        let text = held.as_str().unwrap_or_default();
        if !seen.insert(text) {
            causes.push(duplicate(&at, &text.into()));
        }
        if text.is_empty() {
            causes.push(required(&at, ""));
        }
    }
}

/// Appends the fault of the phase of a Namespace, which follows from its deletion.
fn phase(new: &Value, causes: &mut Vec<Cause>) {
    let dies = crate::kinds::meta::terminating(new);
    let (wanted, state) = if dies { ("Terminating", "not empty") } else { ("Active", "empty") };
    let held = new["status"]["phase"].as_str().unwrap_or_default();
    if held != wanted {
        let why = format!("may only be '{wanted}' if `deletionTimestamp` is {state}");
        causes.push(invalid_value("status.Phase", &held.into(), &why));
    }
}

/// Appends the faults of the addresses of a Pod or of its node: one for each family. Addresses that
/// were there before are not judged again.
fn addresses(field: &str, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let at = format!("status.{field}");
    let texts = |status: &Value| -> Vec<String> {
        let items = status[field].as_array().into_iter().flatten();
        items.map(|item| item["ip"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let (before, now) = (texts(old), texts(new));
    for (index, text) in now.iter().enumerate().filter(|(_, text)| !before.contains(text)) {
        let faults = cluster::ip_faults(text);
        fields::named(faults, &text.as_str().into(), &format!("{at}[{index}]"), causes);
    }
    if now.len() < 2 {
        return;
    }
    let parsed: Vec<Option<IpAddr>> = now.iter().map(|text| text.parse().ok()).collect();
    let unread = parsed.iter().position(Option::is_none);
    if let Some(index) = unread {
        let why = format!(
            "Internal error: failed to check for dual stack with error:invalid IP[{index}]: {}",
            now[index]
        );
        causes.push(cause("InternalError", &at, why));
    }
    let families: BTreeSet<bool> = parsed.iter().flatten().map(IpAddr::is_ipv4).collect();
    if unread.is_some() || families.len() < 2 || now.len() > 2 {
        let shown: Vec<Value> = now.iter().map(|text| json!({ "IP": text })).collect();
        let why = "may specify no more than one IP for each IP family";
        causes.push(invalid_value(&at, &shown.into(), why));
    }
}

/// Appends the faults of the status of a Pod: the class of a Pod never changes.
fn pod(old: &Value, object: &Value, causes: &mut Vec<Cause>) {
    let new = &object["status"];
    for (index, one) in new["conditions"].as_array().into_iter().flatten().enumerate() {
        if one["observedGeneration"].as_i64().is_some_and(|number| number < 0) {
            let at = format!("status.conditions[{index}].observedGeneration");
            let why = "must be a non-negative integer";
            causes.push(invalid_value(&at, &one["observedGeneration"], why));
        }
    }
    let node = new["nominatedNodeName"].as_str().unwrap_or_default();
    if !node.is_empty() && old["nominatedNodeName"] != node {
        fields::named(names::subdomain(node), &node.into(), "status.nominatedNodeName", causes);
    }
    if old["qosClass"] != new["qosClass"] {
        causes.push(invalid_value("status.qosClass", &new["qosClass"], "field is immutable"));
    }
    addresses("podIPs", old, new, causes);
    let host = new["hostIP"].as_str().unwrap_or_default();
    let first = new["hostIPs"][0]["ip"].as_str();
    if let Some(first) = first.filter(|first| *first != host) {
        let why = "must be equal to `hostIP`";
        causes.push(invalid_value("status.hostIPs[0].ip", &first.into(), why));
    }
    addresses("hostIPs", old, new, causes);
    if new["observedGeneration"].as_i64().is_some_and(|number| number < 0) {
        let why = "must be a non-negative integer";
        causes.push(invalid_value("status.observedGeneration", &new["observedGeneration"], why));
    }
    let claims = object["spec"]["resourceClaims"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, one) in new["resourceClaimStatuses"].as_array().into_iter().flatten().enumerate() {
        if !claims.iter().any(|claim| claim["name"] == one["name"]) {
            let at = format!("status.resourceClaimStatuses[{index}].name");
            let why = "must match the name of an entry in `spec.resourceClaims`";
            causes.push(invalid_value(&at, &one["name"], why));
        }
    }
}

/// Appends the faults of the amounts and states of the resize of a claim.
fn claim(status: &Value, causes: &mut Vec<Cause>) {
    let known = |name: &str| name == "storage" || name.contains('/');
    for (name, amount) in status["allocatedResources"].as_object().into_iter().flatten() {
        let at = "status.allocatedResources";
        fields::named(names::qualified(name), &name.as_str().into(), at, causes);
        if !known(name) {
            causes.push(unsupported(at, name, &["storage"]));
            continue;
        }
        if Quantity::parse(amount).is_some_and(Quantity::is_negative) {
            let held = amount.as_str().unwrap_or_default();
            let text = format!("Invalid value: {held}: must be a valid resource quantity");
            causes.push(cause("FieldValueInvalid", &format!("{at}[{name}]"), text));
        }
    }
    for (name, state) in status["allocatedResourceStatuses"].as_object().into_iter().flatten() {
        let at = "status.allocatedResourceStatuses";
        fields::named(names::qualified(name), &name.as_str().into(), at, causes);
        if !known(name) {
            causes.push(unsupported(at, name, &["storage"]));
        }
        if !RESIZES.contains(&state.as_str().unwrap_or_default()) {
            causes.push(unsupported(at, name, &RESIZES));
        }
    }
}

/// Appends the faults of the status of a Job: counters do not go back.
fn job(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let status = &new["status"];
    least(status, &["active", "succeeded", "failed", "ready", "terminating"], causes);
    for field in ["succeeded", "failed"] {
        let count = |status: &Value| status[field].as_i64().unwrap_or(0);
        if count(status) < count(old) {
            let why = format!("cannot decrease the {field} counter");
            causes.push(invalid_value(&format!("status.{field}"), &json!(count(status)), &why));
        }
    }
    let indexes = status["completedIndexes"].as_str().unwrap_or_default();
    if !indexes.is_empty() && new["spec"]["completionMode"] != "Indexed" {
        let why = "cannot set non-empty completedIndexes when non-indexed completion mode";
        causes.push(invalid_value("status.completedIndexes", &indexes.into(), why));
    }
    if status["failedIndexes"].is_string() && new["spec"]["backoffLimitPerIndex"].is_null() {
        let why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        causes.push(invalid_value("status.failedIndexes", &status["failedIndexes"], why));
    }
    for field in ["succeeded", "failed"] {
        let mut seen = BTreeSet::new();
        let list = status["uncountedTerminatedPods"][field].as_array().into_iter().flatten();
        for (index, uid) in list.enumerate() {
            let at = format!("status.uncountedTerminatedPods.{field}[{index}]");
            let text = uid.as_str().unwrap_or_default();
            if text.is_empty() {
                causes.push(invalid_value(&at, uid, "must not be empty"));
            } else if !seen.insert(text) {
                causes.push(duplicate(&at, uid));
            }
        }
    }
}

/// Appends the faults of the addresses of an Ingress.
fn ingress(status: &Value, causes: &mut Vec<Cause>) {
    let points = status["loadBalancer"]["ingress"].as_array().into_iter().flatten();
    for (index, point) in points.enumerate() {
        let at = |field: &str| format!("status.loadBalancer.ingress[{index}].{field}");
        let text = |field: &str| point[field].as_str().unwrap_or_default();
        let (address, host) = (text("ip"), text("hostname"));
        if !address.is_empty() {
            fields::named(cluster::ip_faults(address), &address.into(), &at("ip"), causes);
        }
        if !host.is_empty() {
            fields::named(names::subdomain(host), &host.into(), &at("hostname"), causes);
            if host.parse::<std::net::IpAddr>().is_ok() {
                let why = "must be a DNS name, not an IP address";
                causes.push(invalid_value(&at("hostname"), &host.into(), why));
            }
        }
    }
}

/// Appends the fault of a new certificate that is no PEM.
fn certificate(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    use base64::Engine;
    let held = &new["certificate"];
    if held.is_null() || held == &old["certificate"] {
        return;
    }
    let text = held.as_str().unwrap_or_default();
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
    let head = b"-----BEGIN CERTIFICATE-----";
    if !bytes.windows(head.len()).any(|part| part == head) {
        let why = "must contain at least one CERTIFICATE PEM block";
        causes.push(invalid_value("status.certificate", &json!("<certificate data>"), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_says_when_why_and_whether() {
        let mut causes = Vec::new();
        conditions(&json!([{"type": "A", "status": "x", "reason": "9"}]), &mut causes);
        let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(
            fields,
            ["status", "lastTransitionTime", "reason"].map(|f| format!("status.conditions[0].{f}"))
        );
    }

    #[test]
    fn the_phase_of_a_namespace_follows_from_its_deletion() {
        let mut causes = Vec::new();
        phase(&json!({"metadata": {}, "status": {"phase": "Active"}}), &mut causes);
        assert_eq!(causes, []);
        phase(&json!({"metadata": {}, "status": {"phase": "Terminating"}}), &mut causes);
        assert_eq!(causes[0].field, "status.Phase");
    }

    #[test]
    fn counters_of_jobs_do_not_go_back() {
        let mut causes = Vec::new();
        job(&json!({"failed": 3}), &json!({"status": {"failed": 2}}), &mut causes);
        assert_eq!(causes[0].field, "status.failed");
    }
}
