//! Certificate requests: the requester, the right to approve, and which part each endpoint writes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::auth::Attributes;
use crate::core::ServerCore;
use crate::kinds::defaults::child;
use crate::served::Cause;
use crate::status::{ApiError, cause, forbidden_field, invalid_value, required, unsupported};
use crate::verbs::VerbCall;

const GROUP: &str = "certificates.k8s.io";
/// Types of the conditions that decide about a request.
const VERDICTS: [&str; 2] = ["Approved", "Denied"];
/// Types of conditions that are never withdrawn.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

/// Whether a call is about certificate requests.
fn is_request(call: &VerbCall) -> bool {
    call.kind.is(GROUP, "certificatesigningrequests")
}

/// Writes the user of a new request into the request, in place of the client's values.
pub(crate) fn enter(call: &VerbCall, object: &mut Value) {
    if !is_request(call) {
        return;
    }
    let user = &call.user;
    let spec = child(object, "spec");
    let extra = json!(user.extra);
    for (field, value, is_set) in [
        ("username", json!(user.name), !user.name.is_empty()),
        ("uid", json!(user.uid), !user.uid.is_empty()),
        ("groups", json!(user.groups), !user.groups.is_empty()),
        ("extra", extra, !user.extra.is_empty()),
    ] {
        match spec.as_object_mut() {
            Some(fields) if is_set => drop(fields.insert(field.to_owned(), value)),
            Some(fields) => drop(fields.remove(field)),
            None => {}
        }
    }
}

/// Checks the right to approve requests for the signer of the stored request.
pub(crate) fn may_approve(core: &ServerCore, call: &VerbCall) -> Result<(), ApiError> {
    if !is_request(call) || call.subresource != "approval" {
        return Ok(());
    }
    let held = call.find(core)?;
    let signer = held.value["spec"]["signerName"].as_str().unwrap_or_default();
    let why = format!("user not permitted to approve requests with signerName {signer:?}");
    let allowed = may_act(core, call, "approve", signer);
    if allowed { Ok(()) } else { Err(ApiError::forbidden(call.about(), &why)) }
}

/// Checks the right to sign for the signer of the stored request, which writes of the certificate
/// and of conditions need.
pub(crate) fn may_sign(
    core: &ServerCore,
    call: &VerbCall,
    old: &Value,
    new: &Value,
) -> Result<(), ApiError> {
    let same = |field: &str| old["status"][field] == new["status"][field];
    if !is_request(call)
        || call.subresource != "status"
        || same("certificate") && same("conditions")
    {
        return Ok(());
    }
    let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
    let why = format!("user not permitted to sign requests with signerName {signer:?}");
    let allowed = may_act(core, call, "sign", signer);
    if allowed { Ok(()) } else { Err(ApiError::forbidden(call.about(), &why)) }
}

/// Whether the user has a right on a signer, or on all signers of the signer's domain.
fn may_act(core: &ServerCore, call: &VerbCall, verb: &str, signer: &str) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    [signer.to_owned(), format!("{domain}/*")].into_iter().any(|name| {
        let wanted = Attributes {
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..Attributes::default()
        };
        core.authorizer().authorize(&call.user, &wanted).is_ok()
    })
}

/// Returns the conditions of a request.
fn conditions(object: &Value) -> &[Value] {
    object["status"]["conditions"].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the conditions of a type.
fn of_type<'a>(object: &'a Value, kind: &str) -> Vec<&'a Value> {
    conditions(object).iter().filter(|one| one["type"] == kind).collect()
}

/// Returns the status after a write to a subresource: approval writes the conditions alone, and
/// `/status` leaves the verdicts as they are.
pub(crate) fn confined(call: &VerbCall, old: &Value, new: &Value, now: &str) -> Option<Value> {
    if !is_request(call) || !matches!(call.subresource.as_str(), "approval" | "status") {
        return None;
    }
    let mut list = conditions(new).to_vec();
    if call.subresource == "status" {
        for kind in VERDICTS {
            let held = of_type(old, kind);
            let slots = list.iter_mut().filter(|one| one["type"] == kind);
            if held.len() == of_type(new, kind).len() {
                slots.zip(held).for_each(|(slot, held)| *slot = held.clone());
            }
        }
    }
    // The first of each type and status counts, as upstream looks them up.
    let mut times: BTreeMap<(&str, &str), &Value> = BTreeMap::new();
    for held in conditions(old) {
        times.entry(state(held)).or_insert(&held["lastTransitionTime"]);
    }
    for condition in &mut list {
        let held = times.get(&state(condition)).copied().cloned();
        date(condition, held, now);
    }
    let mut status =
        if call.subresource == "approval" { &old["status"] } else { &new["status"] }.clone();
    if !status.is_object() {
        status = json!({});
    }
    match status.as_object_mut() {
        Some(fields) if list.is_empty() => drop(fields.remove("conditions")),
        Some(fields) => drop(fields.insert("conditions".to_owned(), Value::Array(list))),
        None => {}
    }
    Some(status)
}

/// Returns type and status of a condition.
fn state(condition: &Value) -> (&str, &str) {
    let text = |field: &str| condition[field].as_str().unwrap_or_default();
    (text("type"), text("status"))
}

/// Fills in the times of a condition; a status that has not changed keeps the time `held` of the
/// change.
fn date(condition: &mut Value, held: Option<Value>, now: &str) {
    if !condition.is_object() {
        return;
    }
    if condition["lastUpdateTime"].is_null() {
        condition["lastUpdateTime"] = json!(now);
    }
    if condition["lastTransitionTime"].is_null() {
        condition["lastTransitionTime"] = held.filter(|at| !at.is_null()).unwrap_or(json!(now));
    }
}

/// Returns the faults of a change of a request.
pub(crate) fn check_change(call: &VerbCall, old: &Value, new: &Value) -> Vec<Cause> {
    let field = "status.conditions";
    let mut causes = check_conditions(old, new);
    for kind in FINAL {
        if of_type(new, kind).len() < of_type(old, kind).len() {
            let text = format!("updates may not remove a condition of type {kind:?}");
            causes.push(forbidden_field(field, &text));
        }
    }
    for kind in VERDICTS {
        let (held, sent) = (of_type(old, kind), of_type(new, kind));
        if call.subresource != "approval" && sent.len() > held.len() {
            let text = format!("updates may not add a condition of type {kind:?}");
            causes.push(forbidden_field(field, &text));
        }
    }
    let (held, sent) = (&old["status"]["certificate"], &new["status"]["certificate"]);
    if call.subresource == "status" && held != sent && !held.is_null() {
        let text = "updates may not modify existing certificate content";
        causes.push(forbidden_field("status.certificate", text));
    }
    causes
}

/// Returns the faults of the conditions themselves.
fn check_conditions(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let decided = VERDICTS.iter().all(|kind| !of_type(old, kind).is_empty());
    for (index, condition) in conditions(new).iter().enumerate() {
        let at = format!("status.conditions[{index}]");
        let kind = &condition["type"];
        let name = kind.as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(required(&format!("{at}.type"), ""));
        }
        let values: &[&str] =
            if FINAL.contains(&name) { &["True"] } else { &["False", "True", "Unknown"] };
        let status = condition["status"].as_str().unwrap_or_default();
        if status.is_empty() {
            causes.push(required(&format!("{at}.status"), ""));
        } else if !values.contains(&status) {
            causes.push(unsupported(&format!("{at}.status"), status, values));
        }
        let other = VERDICTS.iter().any(|one| *one != name && seen.contains(one));
        if VERDICTS.contains(&name) && other && !decided {
            let why = "Approved and Denied conditions are mutually exclusive";
            causes.push(invalid_value("status.conditions", kind, why));
        }
        if !seen.insert(name) {
            let message = format!("Duplicate value: {kind}");
            causes.push(cause("FieldValueDuplicate", &format!("{at}.type"), message));
        }
    }
    causes
}
