//! Checks of webhook configurations, in the order of kube-apiserver.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_cel::admission::check_match_conditions;
use windlass_cel::rules::FieldPath;

use super::fields::{self, FieldCheck};
use super::policies::broken;
use crate::crd_schema::client_config;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, invalid_value, required, unsupported};

/// Classes of side effects that new webhooks may have.
const EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];

/// Appends the faults of a configuration's webhooks.
pub(super) fn check(object: &Value, is_mutating: bool, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, hook) in object["webhooks"].as_array().into_iter().flatten().enumerate() {
        let at = format!("webhooks[{index}]");
        let name = hook["name"].as_str().unwrap_or_default();
        check_name(name, &format!("{at}.name"), causes);
        for (number, rule) in hook["rules"].as_array().into_iter().flatten().enumerate() {
            check_rule(rule, &format!("{at}.rules[{number}]"), causes);
        }
        choices(hook, is_mutating, &at, causes);
        client_config::check(&hook["clientConfig"], &format!("{at}.clientConfig"), causes);
        let path = FieldPath::root().child("webhooks").index(index).child("matchConditions");
        let found = check_match_conditions(&hook["matchConditions"], &path);
        causes.extend(found.iter().map(broken));
        let versions = &hook["admissionReviewVersions"];
        let detail = "must specify one of v1, v1beta1";
        let at_versions = format!("{at}.admissionReviewVersions");
        client_config::check_versions(versions, &at_versions, detail, causes);
        if !name.is_empty() && !seen.insert(name) {
            let message = format!("Duplicate value: {name:?}");
            causes.push(cause("FieldValueDuplicate", &format!("{at}.name"), message));
        }
    }
}

/// Appends the faults of a webhook's name.
fn check_name(name: &str, at: &str, causes: &mut Vec<Cause>) {
    if name.is_empty() {
        return causes.push(required(at, ""));
    }
    let faults = names::subdomain(name);
    if !faults.is_empty() {
        causes.push(invalid_value(at, &name.into(), &faults.join(",")));
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        causes.push(invalid_value(at, &name.into(), detail));
    }
}

/// Appends the faults of fields with few values, of the timeout and of the selectors.
fn choices(hook: &Value, is_mutating: bool, at: &str, causes: &mut Vec<Cause>) {
    let mut one_of = |field: &str, known: &[&str]| {
        if let Some(value) = hook[field].as_str().filter(|value| !known.contains(value)) {
            causes.push(unsupported(&format!("{at}.{field}"), value, known));
        }
    };
    one_of("failurePolicy", &["Fail", "Ignore"]);
    one_of("matchPolicy", &["Equivalent", "Exact"]);
    one_of("sideEffects", &EFFECTS);
    if hook["sideEffects"].is_null() {
        let detail = format!("must specify one of {}", EFFECTS.join(", "));
        causes.push(required(&format!("{at}.sideEffects"), &detail));
    }
    if let Some(seconds) = hook["timeoutSeconds"].as_i64().filter(|s| !(1..=30).contains(s)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        causes.push(invalid_value(&format!("{at}.timeoutSeconds"), &seconds.into(), detail));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        fields::judge(&FieldCheck::Selector, &hook[field], &format!("{at}.{field}"), causes);
    }
    let known = ["IfNeeded", "Never"];
    let policy = hook["reinvocationPolicy"].as_str().filter(|_| is_mutating);
    if let Some(policy) = policy.filter(|policy| !known.contains(policy)) {
        causes.push(unsupported(&format!("{at}.reinvocationPolicy"), policy, &known));
    }
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Appends the faults of a rule.
pub(super) fn check_rule(rule: &Value, at: &str, causes: &mut Vec<Cause>) {
    let parts = [
        ("operations", "operations"),
        ("apiGroups", "API groups"),
        ("apiVersions", "API versions"),
    ];
    for (field, words) in parts {
        let list = texts(&rule[field]);
        let at = format!("{at}.{field}");
        if list.is_empty() {
            causes.push(required(&at, ""));
        }
        if list.len() > 1 && list.contains(&"*") {
            let detail = format!("if '*' is present, must not specify other {words}");
            causes.push(invalid_value(&at, &rule[field], &detail));
        }
        for (index, item) in list.iter().enumerate() {
            let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
            if field == "operations" && !known.contains(item) {
                causes.push(unsupported(&format!("{at}[{index}]"), item, &known));
            }
            if field == "apiVersions" && item.is_empty() {
                causes.push(required(&format!("{at}[{index}]"), ""));
            }
        }
    }
    resources(&rule["resources"], &format!("{at}.resources"), causes);
    let known = ["*", "Cluster", "Namespaced"];
    if let Some(scope) = rule["scope"].as_str().filter(|scope| !known.contains(scope)) {
        causes.push(unsupported(&format!("{at}.scope"), scope, &known));
    }
}

/// Appends the faults of a rule's resources: those that another one of the rule includes.
fn resources(resources: &Value, at: &str, causes: &mut Vec<Cause>) {
    let list = texts(resources);
    if list.is_empty() {
        causes.push(required(at, ""));
    }
    let (mut whole, mut everywhere) = (BTreeSet::new(), BTreeSet::new());
    let mut is_plain = false;
    for (index, item) in list.iter().enumerate() {
        let at = format!("{at}[{index}]");
        if item.is_empty() {
            causes.push(required(&at, ""));
            continue;
        }
        let Some((resource, sub)) = item.split_once('/') else {
            is_plain = *item != "*";
            continue;
        };
        if whole.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {item}");
            causes.push(invalid_value(&at, &(*item).into(), &detail));
        }
        if everywhere.contains(sub) {
            let detail = format!("if '*/{sub}' is present, must not specify {item}");
            causes.push(invalid_value(&at, &(*item).into(), &detail));
        }
        if sub == "*" {
            whole.insert(resource);
        }
        if resource == "*" {
            everywhere.insert(sub);
        }
    }
    if list.len() > 1 && list.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        causes.push(invalid_value(at, resources, detail));
    }
    if list.contains(&"*") && is_plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        causes.push(invalid_value(at, resources, detail));
    }
}
