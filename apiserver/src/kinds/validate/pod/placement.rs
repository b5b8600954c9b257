//! Checks of the fields for the placement of a Pod: tolerations, affinities, and the spread of
//! Pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{duplicate, integer, items, named, text};
use crate::kinds::validate::fields::{self, FieldCheck, is_empty};
use crate::names;
use crate::served::Cause;
use crate::status::{forbidden_field, invalid_value, required, unsupported};

/// Effects of taints, in the order in which the server names them.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Appends the faults of a list of tolerations.
pub(in crate::kinds::validate) fn tolerations(list: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (index, toleration) in items(list) {
        one(toleration, &format!("{at}[{index}]"), causes);
    }
}

/// Appends the faults of a toleration.
fn one(toleration: &Value, at: &str, causes: &mut Vec<Cause>) {
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|field| text(toleration, field));
    let at_operator = format!("{at}.operator");
    if !key.is_empty() {
        named(names::qualified(key), key, &format!("{at}.key"), causes);
    } else if operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and \
                   all keys\"";
        causes.push(invalid_value(&at_operator, &operator.into(), why));
    }
    if toleration["tolerationSeconds"].is_number() && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        causes.push(invalid_value(&format!("{at}.effect"), &effect.into(), why));
    }
    match operator {
        "" | "Equal" => {
            let faults = names::label_value(value);
            if !faults.is_empty() {
                causes.push(invalid_value(&at_operator, &value.into(), &faults.join(";")));
            }
        }
        "Exists" if !value.is_empty() => {
            let why = "value must be empty when `operator` is 'Exists'";
            causes.push(invalid_value(&at_operator, &value.into(), why));
        }
        "Exists" => {}
        // Known to the server, and behind a feature that is off.
        "Lt" | "Gt" => {
            let known = ["Equal", "Exists", "Lt", "Gt"];
            causes.push(unsupported(&at_operator, operator, &known));
        }
        other => causes.push(unsupported(&at_operator, other, &["Equal", "Exists"])),
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect) {
        causes.push(unsupported(&format!("{at}.effect"), effect, &EFFECTS));
    }
}

/// Appends the faults of a selection of nodes.
pub(in crate::kinds::validate) fn node_selector(
    selector: &Value,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    let at = format!("{at}.nodeSelectorTerms");
    if is_empty(&selector["nodeSelectorTerms"]) {
        causes.push(required(&at, "must have at least one node selector term"));
    }
    for (index, term) in items(&selector["nodeSelectorTerms"]) {
        node_term(term, &format!("{at}[{index}]"), causes);
    }
}

/// Appends the faults of a term about nodes.
fn node_term(term: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (index, one) in items(&term["matchExpressions"]) {
        node_requirement(one, &format!("{at}.matchExpressions[{index}]"), causes);
    }
    for (index, one) in items(&term["matchFields"]) {
        let at = format!("{at}.matchFields[{index}]");
        let (key, operator) = (text(one, "key"), text(one, "operator"));
        if !["In", "NotIn"].contains(&operator) {
            let why = "not a valid selector operator";
            causes.push(invalid_value(&format!("{at}.operator"), &operator.into(), why));
        } else if one["values"].as_array().map_or(0, Vec::len) != 1 {
            let why =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            causes.push(required(&format!("{at}.values"), why));
        }
        if key != "metadata.name" {
            let why = "not a valid field selector key";
            causes.push(invalid_value(&format!("{at}.key"), &key.into(), why));
        }
    }
}

/// Appends the faults of a requirement about the labels of a node.
fn node_requirement(one: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (key, operator) = (text(one, "key"), text(one, "operator"));
    let count = one["values"].as_array().map_or(0, Vec::len);
    let at_values = format!("{at}.values");
    match operator {
        "In" | "NotIn" if count == 0 => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.push(required(&at_values, why));
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.push(forbidden_field(&at_values, why));
        }
        "Gt" | "Lt" if count != 1 => {
            let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            causes.push(required(&at_values, why));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => {
            let why = "not a valid selector operator";
            causes.push(invalid_value(&format!("{at}.operator"), &other.into(), why));
        }
    }
    named(names::qualified(key), key, &format!("{at}.key"), causes);
}

/// Appends the faults of affinities to nodes and to other Pods.
pub(super) fn affinity(affinity: &Value, at: &str, causes: &mut Vec<Cause>) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let (nodes, at_nodes) = (&affinity["nodeAffinity"], format!("{at}.nodeAffinity"));
    if nodes[REQUIRED].is_object() {
        node_selector(&nodes[REQUIRED], &format!("{at_nodes}.{REQUIRED}"), causes);
    }
    for (index, one) in items(&nodes[PREFERRED]) {
        let at = format!("{at_nodes}.{PREFERRED}[{index}]");
        weight(one, &at, causes);
        node_term(&one["preference"], &format!("{at}.preference"), causes);
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        let (pods, at) = (&affinity[field], format!("{at}.{field}"));
        for (index, one) in items(&pods[REQUIRED]) {
            pod_term(one, &format!("{at}.{REQUIRED}[{index}]"), causes);
        }
        for (index, one) in items(&pods[PREFERRED]) {
            let at = format!("{at}.{PREFERRED}[{index}]");
            weight(one, &at, causes);
            pod_term(&one["podAffinityTerm"], &format!("{at}.podAffinityTerm"), causes);
        }
    }
}

/// Appends the fault of the weight of a preference.
fn weight(one: &Value, at: &str, causes: &mut Vec<Cause>) {
    let weight = integer(one, "weight");
    if !(1..=100).contains(&weight) {
        let at = format!("{at}.weight");
        causes.push(invalid_value(&at, &weight.into(), "must be in the range 1-100"));
    }
}

/// Appends the faults of a term about Pods.
fn pod_term(term: &Value, at: &str, causes: &mut Vec<Cause>) {
    for field in ["labelSelector", "namespaceSelector"] {
        if term[field].is_object() {
            fields::judge(&FieldCheck::Selector, &term[field], &format!("{at}.{field}"), causes);
        }
    }
    for (_, namespace) in items(&term["namespaces"]) {
        let name = namespace.as_str().unwrap_or_default();
        // The path lacks the list's position and has the singular, upstream too.
        named(names::label(name), name, &format!("{at}.namespace"), causes);
    }
    let (at, key) = (format!("{at}.topologyKey"), text(term, "topologyKey"));
    if key.is_empty() {
        causes.push(required(&at, "can not be empty"));
    }
    named(names::qualified(key), key, &at, causes);
}

/// Appends the faults of how Pods are spread that the table does not know.
pub(super) fn spread(list: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, one) in items(list) {
        let at = format!("{at}.topologySpreadConstraints[{index}]");
        let (key, action) = (text(one, "topologyKey"), text(one, "whenUnsatisfiable"));
        let domains = &one["minDomains"];
        if let Some(number) = domains.as_i64() {
            let at = format!("{at}.minDomains");
            if number <= 0 {
                causes.push(invalid_value(&at, domains, "must be greater than zero"));
            }
            if action != "DoNotSchedule" {
                let why = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                );
                causes.push(invalid_value(&at, domains, &why));
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            let held = one[field].as_str().filter(|held| !["Honor", "Ignore"].contains(held));
            if let Some(held) = held {
                causes.push(unsupported(&format!("{at}.{field}"), held, &["Honor", "Ignore"]));
            }
        }
        if one["labelSelector"].is_object() {
            let at = format!("{at}.labelSelector");
            fields::judge(&FieldCheck::Selector, &one["labelSelector"], &at, causes);
        } else if !is_empty(&one["matchLabelKeys"]) {
            let why = "must not be specified when labelSelector is not set";
            causes.push(forbidden_field(&format!("{at}.matchLabelKeys"), why));
        }
        // The fault stands at the first occurrence, as upstream.
        if !seen.insert((key, action)) {
            let at = at.replace(&format!("[{index}]"), &format!("[{}]", index.saturating_sub(1)));
            let at = format!("{at}.{{topologyKey, whenUnsatisfiable}}");
            causes.push(duplicate(&at, &format!("{{{key}, {action}}}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(toleration: Value) -> Vec<String> {
        let mut causes = Vec::new();
        tolerations(&json!([toleration]), "t", &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn a_toleration_of_all_taints_says_so() {
        assert_eq!(fields(json!({"operator": "Exists"})), [""; 0]);
        assert_eq!(fields(json!({})), ["t[0].operator"]);
        assert_eq!(fields(json!({"operator": "Exists", "value": "v"})), ["t[0].operator"]);
    }

    #[test]
    fn only_evictions_have_a_delay() {
        let with = |effect: &str| json!({"key": "k", "effect": effect, "tolerationSeconds": 5});
        assert_eq!(fields(with("NoExecute")), [""; 0]);
        assert_eq!(fields(with("NoSchedule")), ["t[0].effect"]);
        assert_eq!(fields(with("X")), ["t[0].effect", "t[0].effect"]);
    }
}
