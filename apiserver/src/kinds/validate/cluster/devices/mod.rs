//! Checks of claims for devices, and of classes and slices of devices.

mod slices;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_cel::devices::{SelectorError, check_selector};

use super::{duplicate, items, storage, text, too_long, too_many};
use crate::kinds::validate::fields::{is_empty, named};
use crate::kinds::validate::pod;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Most requests of a claim, and most requests to which a part refers.
const MOST_REQUESTS: usize = 32;
/// Most alternatives of a request.
const MOST_ALTERNATIVES: usize = 8;
/// Most constraints, settings, or selectors.
const MOST_PARTS: usize = 32;
/// Longest expression of a selector, and longest settings of a driver, in bytes.
const LONGEST: usize = 10 * 1024;
/// Longest name of an attribute behind the domain, in bytes.
const LONGEST_ID: usize = 32;
/// Effects of the taints of devices.
const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// Requests of a claim by name, with the names of their alternatives.
type Requests<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Appends the faults of an object of the group.
pub(super) fn check(kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    match kind {
        "ResourceClaim" => claim(&spec["devices"], "spec.devices", causes),
        "ResourceClaimTemplate" => {
            pod::labels(spec, "spec.metadata", causes);
            claim(&spec["spec"]["devices"], "spec.spec.devices", causes);
        }
        "DeviceClass" => class(spec, causes),
        "ResourceSlice" => slices::check(spec, causes),
        _ => {}
    }
}

/// Appends the faults of a class.
fn class(spec: &Value, causes: &mut Vec<Cause>) {
    selectors(&spec["selectors"], "spec.selectors", causes);
    if fits(&spec["config"], "spec.config", MOST_PARTS, causes) {
        for (index, config) in items(&spec["config"]) {
            configuration(config, &format!("spec.config[{index}]"), causes);
        }
    }
    let name = &spec["extendedResourceName"];
    let is_name = |name: &str| {
        let is_plain = !name.contains('/') || name.contains("kubernetes.io/");
        let prefixed = format!("requests.{name}");
        !is_plain && !name.starts_with("requests.") && names::qualified(&prefixed).is_empty()
    };
    if name.as_str().is_some_and(|name| !is_name(name)) {
        let why = "must be a valid extended resource name";
        causes.push(invalid_value("spec.extendedResourceName", name, why));
    }
}

/// Appends the fault of a list with too many items; false if there are.
fn fits(list: &Value, at: &str, most: usize, causes: &mut Vec<Cause>) -> bool {
    let count = list.as_array().map_or(0, Vec::len);
    if count > most {
        causes.push(too_many(at, count, most));
    }
    count <= most
}

/// Appends the faults of items whose keys are there twice.
fn once<'a>(
    list: &'a Value,
    at: &str,
    key: impl Fn(&'a Value) -> &'a str,
    causes: &mut Vec<Cause>,
) {
    let mut seen = BTreeSet::new();
    for (index, item) in items(list) {
        let key = key(item);
        if !seen.insert(key) {
            causes.push(duplicate(&format!("{at}[{index}]"), &key.into()));
        }
    }
}

/// Appends the faults of a claim.
fn claim(devices: &Value, at: &str, causes: &mut Vec<Cause>) {
    let requests: Requests<'_> = items(&devices["requests"])
        .map(|(_, one)| {
            let parts = items(&one["firstAvailable"]).map(|(_, part)| text(part, "name"));
            (text(one, "name"), parts.collect())
        })
        .collect();
    let at_requests = format!("{at}.requests");
    if fits(&devices["requests"], &at_requests, MOST_REQUESTS, causes) {
        for (index, one) in items(&devices["requests"]) {
            request(one, &format!("{at_requests}[{index}]"), causes);
        }
        once(&devices["requests"], &at_requests, |one| text(one, "name"), causes);
    }
    let at_constraints = format!("{at}.constraints");
    if fits(&devices["constraints"], &at_constraints, MOST_PARTS, causes) {
        for (index, one) in items(&devices["constraints"]) {
            constraint(one, &format!("{at_constraints}[{index}]"), &requests, causes);
        }
    }
    let at_config = format!("{at}.config");
    if fits(&devices["config"], &at_config, MOST_PARTS, causes) {
        for (index, one) in items(&devices["config"]) {
            let at = format!("{at_config}[{index}]");
            references(&one["requests"], &format!("{at}.requests"), &requests, causes);
            configuration(one, &at, causes);
        }
    }
}

/// Appends the faults of a request.
fn request(one: &Value, at: &str, causes: &mut Vec<Cause>) {
    let name = Value::from(text(one, "name"));
    named(names::label(text(one, "name")), &name, &format!("{at}.name"), causes);
    let (exact, first) = (one["exactly"].is_object(), !is_empty(&one["firstAvailable"]));
    let why = "exactly one of `exactly` or `firstAvailable` is required";
    match (exact, first) {
        (false, false) => causes.push(required(at, why)),
        (true, true) => {
            let why = format!("{why}, but multiple fields are set");
            causes.push(invalid_value(at, &Value::Null, &why));
        }
        (true, false) => part(&one["exactly"], &format!("{at}.exactly"), causes),
        (false, true) => {
            let (list, at) = (&one["firstAvailable"], format!("{at}.firstAvailable"));
            if !fits(list, &at, MOST_ALTERNATIVES, causes) {
                return;
            }
            for (index, one) in items(list) {
                let at = format!("{at}[{index}]");
                let name = text(one, "name");
                named(names::label(name), &name.into(), &format!("{at}.name"), causes);
                part(one, &at, causes);
            }
            once(list, &at, |one| text(one, "name"), causes);
        }
    }
}

/// Appends the faults of a request's class, selectors, number and tolerations.
fn part(one: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (class, at_class) = (text(one, "deviceClassName"), format!("{at}.deviceClassName"));
    if class.is_empty() {
        causes.push(required(&at_class, ""));
    } else {
        named(names::subdomain(class), &class.into(), &at_class, causes);
    }
    selectors(&one["selectors"], &format!("{at}.selectors"), causes);
    let (count, at_count) = (one["count"].as_i64().unwrap_or_default(), format!("{at}.count"));
    match text(one, "allocationMode") {
        "All" if count != 0 => {
            let why = "must not be specified when allocationMode is 'All'";
            causes.push(invalid_value(&at_count, &count.into(), why));
        }
        "All" => {}
        "ExactCount" if count <= 0 => {
            causes.push(invalid_value(&at_count, &count.into(), "must be greater than zero"));
        }
        "ExactCount" => {}
        other => {
            let at = format!("{at}.allocationMode");
            causes.push(unsupported(&at, other, &["All", "ExactCount"]));
        }
    }
    for (index, one) in items(&one["tolerations"]) {
        toleration(one, &format!("{at}.tolerations[{index}]"), causes);
    }
}

/// Appends the faults of a toleration.
fn toleration(one: &Value, at: &str, causes: &mut Vec<Cause>) {
    let [key, value, effect] = ["key", "value", "effect"].map(|field| text(one, field));
    if !key.is_empty() {
        named(names::qualified(key), &key.into(), &format!("{at}.key"), causes);
    }
    let at_value = format!("{at}.value");
    match text(one, "operator") {
        "Exists" if !value.is_empty() => {
            let why = "must be empty for operator `Exists`";
            causes.push(invalid_value(&at_value, &value.into(), why));
        }
        "Exists" => {}
        "Equal" => named(names::label_value(value), &value.into(), &at_value, causes),
        "" => causes.push(required(&format!("{at}.operator"), "")),
        other => {
            causes.push(unsupported(&format!("{at}.operator"), other, &["Equal", "Exists"]));
        }
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect) {
        causes.push(unsupported(&format!("{at}.effect"), effect, &EFFECTS));
    }
}

/// Appends the faults of selectors.
fn selectors(list: &Value, at: &str, causes: &mut Vec<Cause>) {
    if !fits(list, at, MOST_PARTS, causes) {
        return;
    }
    for (index, one) in items(list) {
        let at = format!("{at}[{index}].cel");
        if one["cel"].is_object() {
            expression(text(&one["cel"], "expression"), &format!("{at}.expression"), causes);
        } else {
            causes.push(required(&at, ""));
        }
    }
}

/// Appends the fault of the expression of a selector.
fn expression(text: &str, at: &str, causes: &mut Vec<Cause>) {
    if text.len() > LONGEST {
        causes.push(too_long(at, LONGEST));
        return;
    }
    match check_selector(text) {
        Some(SelectorError::Invalid(why)) => causes.push(invalid_value(at, &text.into(), &why)),
        Some(SelectorError::Internal(why)) => {
            causes.push(cause("InternalError", at, format!("Internal error: {why}")));
        }
        Some(SelectorError::TooCostly) => {
            causes.push(forbidden_field(at, "too complex, exceeds cost limit"));
        }
        None => {}
    }
}

/// Appends the faults of a constraint.
fn constraint(one: &Value, at: &str, requests: &Requests<'_>, causes: &mut Vec<Cause>) {
    references(&one["requests"], &format!("{at}.requests"), requests, causes);
    let fields = ["matchAttribute", "distinctAttribute"];
    match fields.iter().find(|field| one[**field].is_string()) {
        Some(field) => full_name(text(one, field), &format!("{at}.{field}"), causes),
        None => {
            let why = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but \
                       multiple fields are set";
            causes.push(required(at, why));
        }
    }
}

/// Appends the faults of names of requests.
fn references(list: &Value, at: &str, requests: &Requests<'_>, causes: &mut Vec<Cause>) {
    if !fits(list, at, MOST_REQUESTS, causes) {
        return;
    }
    let why = "must be the name of a request in the claim or the name of a request and a subrequest \
               separated by '/'";
    for (index, one) in items(list) {
        let (at, name) = (format!("{at}[{index}]"), one.as_str().unwrap_or_default());
        let parts: Vec<&str> = name.split('/').collect();
        let is_known = match parts.as_slice() {
            [request] => requests.contains_key(request),
            [request, part] => requests.get(request).is_some_and(|parts| parts.contains(part)),
            _ => {
                causes.push(invalid_value(&at, one, why));
                continue;
            }
        };
        for part in parts {
            named(names::label(part), &part.into(), &at, causes);
        }
        if !is_known {
            causes.push(invalid_value(&at, one, why));
        }
    }
    once(list, at, |one| one.as_str().unwrap_or_default(), causes);
}

/// Appends the faults of the settings of a driver.
fn configuration(config: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (opaque, at) = (&config["opaque"], format!("{at}.opaque"));
    if !opaque.is_object() {
        causes.push(required(&at, ""));
        return;
    }
    storage::driver_name(text(opaque, "driver"), &format!("{at}.driver"), causes);
    let (parameters, at) = (&opaque["parameters"], format!("{at}.parameters"));
    if parameters.is_null() {
        causes.push(required(&at, ""));
    } else if parameters.to_string().len() > LONGEST {
        causes.push(too_long(&at, LONGEST));
    } else if !parameters.is_object() {
        let message = "Invalid value: \"<value omitted>\": must be a valid JSON object";
        causes.push(cause("FieldValueInvalid", &at, message));
    }
}

/// Appends the faults of a name with a domain.
fn full_name(name: &str, at: &str, causes: &mut Vec<Cause>) {
    qualified_name(name, at, causes);
    if !name.contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        causes.push(invalid_value(at, &name.into(), why));
    }
}

/// Appends the faults of a name with or without a domain; several slashes are not judged.
fn qualified_name(name: &str, at: &str, causes: &mut Vec<Cause>) {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [id] => identifier(id, at, causes),
        [domain, id] => {
            if domain.is_empty() {
                causes.push(invalid_value(at, &"".into(), "the domain must not be empty"));
            } else {
                storage::driver_name(domain, at, causes);
            }
            if id.is_empty() {
                causes.push(invalid_value(at, &"".into(), "the name must not be empty"));
            } else {
                identifier(id, at, causes);
            }
        }
        _ => {}
    }
}

/// Appends the faults of an identifier of C.
fn identifier(id: &str, at: &str, causes: &mut Vec<Cause>) {
    if id.len() > LONGEST_ID {
        causes.push(too_long(at, LONGEST_ID));
    }
    let is_first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    let is_letter = |letter: char| is_first(letter) || letter.is_ascii_digit();
    if !id.starts_with(is_first) || !id.chars().all(is_letter) {
        let why = "a valid C identifier must start with alphabetic character or '_', followed by a \
                   string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or \
                   'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
        causes.push(invalid_value(at, &id.into(), why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(kind: &str, spec: Value) -> Vec<String> {
        let mut causes = Vec::new();
        check(kind, &json!({ "spec": spec }), &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    fn exact() -> Value {
        json!({"deviceClassName": "a", "allocationMode": "ExactCount", "count": 1})
    }

    #[test]
    fn a_request_is_exact_or_a_list_of_alternatives() {
        let with =
            |request: Value| faults("ResourceClaim", json!({"devices": {"requests": [request]}}));
        assert_eq!(with(json!({"name": "r", "exactly": exact()})), [""; 0]);
        assert_eq!(with(json!({"name": "r"})), ["spec.devices.requests[0]"]);
        let mut none = exact();
        none["count"] = json!(0);
        let at = "spec.devices.requests[0].exactly.count";
        assert_eq!(with(json!({"name": "r", "exactly": none})), [at]);
    }

    #[test]
    fn constraints_refer_to_requests_of_the_claim() {
        let with = |name: &str| {
            let constraint = json!({"requests": [name], "matchAttribute": "a.b/c"});
            let requests = json!([{"name": "r", "exactly": exact()}]);
            let devices = json!({"requests": requests, "constraints": [constraint]});
            faults("ResourceClaimTemplate", json!({"spec": {"devices": devices}}))
        };
        assert_eq!(with("r"), [""; 0]);
        assert_eq!(with("x"), ["spec.spec.devices.constraints[0].requests[0]"]);
    }

    #[test]
    fn settings_of_a_driver_are_an_object() {
        let with = |parameters: Value| {
            let opaque = json!({"driver": "a.b", "parameters": parameters});
            faults("DeviceClass", json!({"config": [{ "opaque": opaque }]}))
        };
        assert_eq!(with(json!({})), [""; 0]);
        assert_eq!(with(json!([])), ["spec.config[0].opaque.parameters"]);
        assert_eq!(with(Value::Null), ["spec.config[0].opaque.parameters"]);
    }
}
