//! Scopes of quotas: which of the objects of a kind a quota counts.

use serde_json::Value;

use crate::kinds::{Kind, pods};

/// Whether a quota counts an object: all scopes of the spec must match.
///
/// Only Pods and claims have scopes: a quota with scopes counts no other object.
pub(super) fn cover(kind: &Kind, spec: &Value, object: &Value) -> bool {
    let names = spec["scopes"].as_array().into_iter().flatten();
    let terms = spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
    names.map(|name| (name, &Value::Null)).chain(terms.map(|term| (&term["scopeName"], term))).all(
        |(name, term)| {
            let name = name.as_str().unwrap_or_default();
            match (kind.is("", "pods"), kind.is("", "persistentvolumeclaims")) {
                (true, _) => matches_pod(name, term, object),
                (_, true) => {
                    name == "VolumeAttributesClass" && {
                        let class = &object["spec"]["volumeAttributesClassName"];
                        let current = &object["status"]["currentVolumeAttributesClassName"];
                        selects(term, &[class, current])
                    }
                }
                _ => false,
            }
        },
    )
}

/// Whether a Pod is in a scope.
fn matches_pod(scope: &str, term: &Value, pod: &Value) -> bool {
    let spec = &pod["spec"];
    let ends = || spec["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
    let is_best_effort = || pods::qos_of(pod) == "BestEffort";
    match scope {
        "Terminating" => ends(),
        "NotTerminating" => !ends(),
        "BestEffort" => is_best_effort(),
        "NotBestEffort" => !is_best_effort(),
        "PriorityClass" => selects(term, &[&spec["priorityClassName"]]),
        "CrossNamespacePodAffinity" => crosses_namespaces(&spec["affinity"]),
        _ => false,
    }
}

/// Whether a term selects any of the values of an object; a scope without a term asks for any
/// value.
fn selects(term: &Value, values: &[&Value]) -> bool {
    let held: Vec<&str> =
        values.iter().filter_map(|value| value.as_str()).filter(|text| !text.is_empty()).collect();
    let listed = |value: &str| {
        term["values"].as_array().into_iter().flatten().any(|one| one.as_str() == Some(value))
    };
    match term["operator"].as_str().unwrap_or("Exists") {
        "In" => held.iter().any(|value| listed(value)),
        "NotIn" => held.is_empty() || held.iter().any(|value| !listed(value)),
        "DoesNotExist" => held.is_empty(),
        _ => !held.is_empty(),
    }
}

/// Whether a term of an affinity to Pods names or selects namespaces.
fn crosses_namespaces(affinity: &Value) -> bool {
    let names_others = |term: &Value| {
        let listed = term["namespaces"].as_array().is_some_and(|list| !list.is_empty());
        listed || !term["namespaceSelector"].is_null()
    };
    let list = |of: &'static str, name: &str| affinity[of][name].as_array().into_iter().flatten();
    ["podAffinity", "podAntiAffinity"].into_iter().any(|of| {
        list(of, "requiredDuringSchedulingIgnoredDuringExecution").any(names_others)
            || list(of, "preferredDuringSchedulingIgnoredDuringExecution")
                .any(|weighted| names_others(&weighted["podAffinityTerm"]))
    })
}
