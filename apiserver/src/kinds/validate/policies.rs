//! Checks of webhook configurations and admission policies.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_cel::admission::{check_mutating_policy, check_policy};
use windlass_cel::rules::Violation;

use super::fields::is_empty;
use crate::kinds::meta::text;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required};

/// Appends the faults of a configuration, a policy or a binding.
pub(super) fn check(kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    match kind {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            webhooks(object, causes);
        }
        "ValidatingAdmissionPolicy" => {
            let found = check_policy(text(object, "name"), spec);
            causes.extend(found.iter().map(broken));
        }
        "MutatingAdmissionPolicy" => {
            causes.extend(check_mutating_policy(spec).iter().map(broken));
        }
        _ => binding(spec, causes),
    }
}

/// Returns the cause of a fault that the engine of expressions has found.
fn broken(found: &Violation) -> Cause {
    cause(found.reason.name(), &found.path.to_string(), found.body())
}

/// Appends the faults of a policy's binding.
fn binding(spec: &Value, causes: &mut Vec<Cause>) {
    let params = &spec["paramRef"];
    if params.is_object() {
        match (is_empty(&params["name"]), params["selector"].is_null()) {
            (true, true) => {
                let detail = "one of name or selector must be specified";
                causes.push(required("spec.paramRef", detail));
            }
            (false, false) => {
                let detail = "name and selector are mutually exclusive";
                causes.push(forbidden_field("spec.paramRef.name", detail));
                causes.push(forbidden_field("spec.paramRef.selector", detail));
            }
            _ => {}
        }
    }
    let actions = &spec["validationActions"];
    let mut seen = BTreeSet::new();
    for (index, action) in actions.as_array().into_iter().flatten().enumerate() {
        if !seen.insert(action.as_str().unwrap_or_default()) {
            let at = format!("spec.validationActions[{index}]");
            causes.push(cause("FieldValueDuplicate", &at, format!("Duplicate value: {action}")));
        }
    }
    let has = |wanted: &str| {
        actions.as_array().is_some_and(|actions| actions.iter().any(|action| action == wanted))
    };
    if has("Deny") && has("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure \
                      information in the API response and headers serves no purpose)";
        causes.push(invalid_value("spec.validationActions", actions, detail));
    }
}

/// Appends the faults of webhooks.
fn webhooks(object: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, hook) in object["webhooks"].as_array().into_iter().flatten().enumerate() {
        let at = format!("webhooks[{index}]");
        let name = hook["name"].as_str().unwrap_or_default();
        if name.split('.').filter(|segment| !segment.is_empty()).count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            causes.push(invalid_value(&format!("{at}.name"), &name.into(), detail));
        }
        if !seen.insert(name) {
            let message = format!("Duplicate value: {name:?}");
            causes.push(cause("FieldValueDuplicate", &format!("{at}.name"), message));
        }
        let versions = &hook["admissionReviewVersions"];
        let is_known = |version: &Value| version == "v1" || version == "v1beta1";
        if versions.as_array().is_some_and(|all| !all.is_empty() && !all.iter().any(is_known)) {
            let at = format!("{at}.admissionReviewVersions");
            let detail = "must include at least one of v1, v1beta1";
            causes.push(invalid_value(&at, versions, detail));
        }
        if let Some(seconds) = hook["timeoutSeconds"].as_i64().filter(|s| !(1..=30).contains(s)) {
            let detail = "the timeout value must be between 1 and 30 seconds";
            causes.push(invalid_value(&format!("{at}.timeoutSeconds"), &seconds.into(), detail));
        }
        client(&hook["clientConfig"], &format!("{at}.clientConfig"), causes);
        for (number, rule) in hook["rules"].as_array().into_iter().flatten().enumerate() {
            stars(rule, &format!("{at}.rules[{number}]"), causes);
        }
    }
}

/// Appends the faults of lists that name everything and something.
fn stars(rule: &Value, at: &str, causes: &mut Vec<Cause>) {
    let parts = [
        ("operations", "operations"),
        ("apiGroups", "API groups"),
        ("apiVersions", "API versions"),
        ("resources", "resources without subresources"),
    ];
    for (field, words) in parts {
        let list = rule[field].as_array().map_or(&[][..], Vec::as_slice);
        if list.len() > 1 && list.iter().any(|item| item == "*") {
            let detail = format!("if '*' is present, must not specify other {words}");
            causes.push(invalid_value(&format!("{at}.{field}"), &rule[field], &detail));
        }
    }
}

/// Appends the faults of the address of a webhook.
fn client(config: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (url, service) = (config["url"].as_str(), &config["service"]);
    match (url, service.is_object()) {
        (Some(url), false) => address(url, &format!("{at}.url"), causes),
        (None, true) => {
            for field in ["name", "namespace"] {
                if is_empty(&service[field]) {
                    causes.push(required(&format!("{at}.service.{field}"), ""));
                }
            }
        }
        _ => causes.push(required(at, "exactly one of url or service is required")),
    }
}

/// Appends the faults of a URL.
fn address(url: &str, at: &str, causes: &mut Vec<Cause>) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let detail = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
        causes.push(invalid_value(at, &scheme.into(), detail));
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    if let Some((user, _)) = rest.split_once('@') {
        let detail = "user information is not permitted in the URL";
        causes.push(invalid_value(at, &user.into(), detail));
    }
    if !query.is_empty() {
        let detail = "query parameters are not permitted in the URL";
        causes.push(invalid_value(at, &query.into(), detail));
    }
}
