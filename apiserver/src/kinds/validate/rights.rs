//! Checks of roles and bindings.

use serde_json::Value;

use super::fields::{self, FieldCheck, is_empty};
use crate::names;
use crate::served::Cause;
use crate::status::{invalid_value, required, unsupported};

/// Appends the faults of a role or binding.
pub(super) fn check(kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    let items = |list: &str| object[list].as_array().cloned().unwrap_or_default();
    for (index, rule) in items("rules").iter().enumerate() {
        role_rule(kind == "Role", rule, &format!("rules[{index}]"), causes);
    }
    let selectors = object["aggregationRule"]["clusterRoleSelectors"].as_array();
    for (index, selector) in selectors.into_iter().flatten().enumerate() {
        let at = format!("aggregationRule.clusterRoleSelectors[{index}]");
        fields::judge(&FieldCheck::Selector, selector, &at, causes);
        if !fields::is_selector(selector) {
            causes.push(invalid_value(&at, &Value::Null, "invalid label selector."));
        }
    }
    for (index, subject) in items("subjects").iter().enumerate() {
        check_subject(kind, subject, &format!("subjects[{index}]"), causes);
    }
}

/// Appends the faults of a rule.
fn role_rule(namespaced: bool, rule: &Value, at: &str, causes: &mut Vec<Cause>) {
    let paths = &rule["nonResourceURLs"];
    let has_resources = !is_empty(&rule["apiGroups"])
        || !is_empty(&rule["resources"])
        || !is_empty(&rule["resourceNames"]);
    if !is_empty(paths) {
        let at = format!("{at}.nonResourceURLs");
        if namespaced {
            let detail = "namespaced rules cannot apply to non-resource URLs";
            causes.push(invalid_value(&at, paths, detail));
        }
        if has_resources {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            causes.push(invalid_value(&at, paths, detail));
        }
        return;
    }
    if is_empty(&rule["apiGroups"]) {
        let detail = "resource rules must supply at least one api group";
        causes.push(required(&format!("{at}.apiGroups"), detail));
    }
    if is_empty(&rule["resources"]) {
        let detail = "resource rules must supply at least one resource";
        causes.push(required(&format!("{at}.resources"), detail));
    }
}

/// Appends the faults of a subject.
fn check_subject(kind: &str, subject: &Value, at: &str, causes: &mut Vec<Cause>) {
    let text = |field: &str| subject[field].as_str().unwrap_or_default();
    let (group, name) = (text("apiGroup"), text("name"));
    let known = match text("kind") {
        "ServiceAccount" => "",
        "User" | "Group" => "rbac.authorization.k8s.io",
        _ => return,
    };
    if group != known {
        causes.push(unsupported(&format!("{at}.apiGroup"), group, &[known]));
    }
    if text("kind") != "ServiceAccount" {
        return;
    }
    if !name.is_empty() {
        let faults = names::subdomain(name);
        let at = format!("{at}.name");
        causes.extend(faults.iter().map(|why| invalid_value(&at, &name.into(), why)));
    }
    // Without a namespace an account is in that of the binding.
    if text("namespace").is_empty() && kind == "ClusterRoleBinding" {
        causes.push(required(&format!("{at}.namespace"), ""));
    }
}
