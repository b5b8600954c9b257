//! Checks of webhook configurations and admission policies.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_cel::admission::{check_mutating_policy, check_policy};
use windlass_cel::rules::Violation;

use super::fields::{self, FieldCheck, is_empty};
use super::webhooks;
use crate::kinds::meta::text;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Appends the faults of a configuration, a policy or a binding.
pub(super) fn check(kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    match kind {
        "ValidatingWebhookConfiguration" => webhooks::check(object, false, causes),
        "MutatingWebhookConfiguration" => webhooks::check(object, true, causes),
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
pub(super) fn broken(found: &Violation) -> Cause {
    cause(found.reason.name(), &found.path.to_string(), found.body())
}

/// Appends the faults of the resources that a binding is about.
fn resources(matched: &Value, causes: &mut Vec<Cause>) {
    let at = "spec.matchResources";
    let policy = matched["matchPolicy"].as_str();
    let known = ["Equivalent", "Exact"];
    if let Some(policy) = policy.filter(|policy| !known.contains(policy)) {
        causes.push(unsupported(&format!("{at}.matchPolicy"), policy, &known));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        fields::judge(&FieldCheck::Selector, &matched[field], &format!("{at}.{field}"), causes);
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in matched[list].as_array().into_iter().flatten().enumerate() {
            let at = format!("{at}.{list}[{index}]");
            let mut seen = BTreeSet::new();
            for (number, one) in rule["resourceNames"].as_array().into_iter().flatten().enumerate()
            {
                let (at, name) =
                    (format!("{at}.resourceNames[{number}]"), one.as_str().unwrap_or_default());
                fields::named(names::path(name), one, &at, causes);
                if !seen.insert(name) {
                    let message = format!("Duplicate value: {one}");
                    causes.push(cause("FieldValueDuplicate", &at, message));
                }
            }
            webhooks::check_rule(rule, &at, causes);
        }
    }
}

/// Appends the faults of a policy's binding.
fn binding(spec: &Value, causes: &mut Vec<Cause>) {
    if spec["matchResources"].is_object() {
        resources(&spec["matchResources"], causes);
    }
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
