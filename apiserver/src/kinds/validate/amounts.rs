//! Checks of kinds that bound amounts: quotas, limits and volumes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::fields::is_empty;
use super::{pod, volumes};
use crate::kinds::quantity::Quantity;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required};

/// Resources of Pods' containers, with the names that quotas have for them.
const COMPUTE: [&str; 9] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];
/// Resources that count objects.
const COUNTS: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
/// Scopes of quotas.
const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

/// Appends the faults of an object of the core group.
pub(super) fn check(kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    match kind {
        "ResourceQuota" => quota(&object["spec"], causes),
        "LimitRange" => limits(&object["spec"], causes),
        "PersistentVolume" => {
            volume(&object["spec"], causes);
            volumes::volume(&object["spec"], causes);
            volumes::options(object, causes);
        }
        "PersistentVolumeClaim" => volumes::claim(&object["spec"], "spec", causes),
        _ => {}
    }
}

/// Whether a resource is for huge pages.
fn is_huge(name: &str) -> bool {
    name.strip_prefix("requests.").unwrap_or(name).starts_with("hugepages-")
}

/// Whether a resource without a domain is known.
pub(super) fn is_known(name: &str) -> bool {
    COMPUTE.contains(&name)
        || COUNTS.contains(&name)
        || is_huge(name)
        || matches!(name, "storage" | "requests.storage")
}

/// Whether a resource counts objects.
pub(super) fn is_counted(name: &str) -> bool {
    COUNTS.contains(&name)
}

/// Appends the faults of a quota.
fn quota(spec: &Value, causes: &mut Vec<Cause>) {
    for (name, amount) in spec["hard"].as_object().into_iter().flatten() {
        let at = format!("spec.hard[{name}]");
        let shown = Value::from(name.as_str());
        let faults = names::qualified(name);
        causes.extend(faults.iter().map(|why| invalid_value(&at, &shown, why)));
        let known = COMPUTE.contains(&name.as_str())
            || COUNTS.contains(&name.as_str())
            || is_huge(name)
            || name == "requests.storage";
        if faults.is_empty() && !name.contains('/') && !known {
            if name != "storage" {
                let why = "must be a standard resource type or fully qualified";
                causes.push(invalid_value(&at, &shown, why));
            }
            causes.push(invalid_value(&at, &shown, "must be a standard resource for quota"));
        }
        let Some(held) = Quantity::parse(amount) else { continue };
        let shown = Value::from(held.to_string());
        if held.is_negative() {
            causes.push(invalid_value(&at, &shown, "must be greater than or equal to 0"));
        }
        if COUNTS.contains(&name.as_str()) && !held.is_whole() {
            causes.push(invalid_value(&at, &shown, "must be an integer"));
        }
    }
    scopes(spec, causes);
    selector(&spec["scopeSelector"], causes);
}

/// Appends the faults of the scopes of a quota.
fn scopes(spec: &Value, causes: &mut Vec<Cause>) {
    let list = &spec["scopes"];
    let names: BTreeSet<&str> =
        list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let hard = spec["hard"].as_object();
    for scope in &names {
        if !SCOPES.contains(scope) {
            causes.push(invalid_value("spec.scopes", list, "unsupported scope"));
        }
        for resource in hard.into_iter().flatten().map(|(name, _)| name.as_str()) {
            let known = COMPUTE.contains(&resource) || COUNTS.contains(&resource);
            let of_pods = COMPUTE.contains(&resource) && !resource.contains("ephemeral");
            let fits = match *scope {
                "BestEffort" => resource == "pods",
                "VolumeAttributesClass" => resource == "persistentvolumeclaims",
                _ => resource == "pods" || of_pods,
            };
            if known && SCOPES.contains(scope) && !fits {
                let why = "unsupported scope applied to resource";
                causes.push(invalid_value("spec.scopes", list, why));
            }
        }
    }
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|scope| names.contains(scope)) {
            causes.push(invalid_value("spec.scopes", list, "conflicting scopes"));
        }
    }
}

/// Appends the faults of a selector of scopes.
fn selector(selector: &Value, causes: &mut Vec<Cause>) {
    for term in selector["matchExpressions"].as_array().into_iter().flatten() {
        // The paths of these faults lack the position, upstream too.
        let at = "spec.scopeSelector.matchExpressions";
        let scope = term["scopeName"].as_str().unwrap_or_default();
        let operator = term["operator"].as_str().unwrap_or_default();
        if !SCOPES.contains(&scope) {
            let at = format!("{at}.scopeName");
            causes.push(invalid_value(&at, &scope.into(), "unsupported scope"));
        }
        let is_flag = !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if is_flag && SCOPES.contains(&scope) && operator != "Exists" {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            causes.push(invalid_value(&format!("{at}.operator"), &operator.into(), why));
        }
        let has_values = !is_empty(&term["values"]);
        match operator {
            "In" | "NotIn" if !has_values => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                causes.push(required(&format!("{at}.values"), why));
            }
            "Exists" | "DoesNotExist" if has_values => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                causes.push(invalid_value(&format!("{at}.values"), &term["values"], why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let why = "not a valid selector operator";
                causes.push(invalid_value(&format!("{at}.operator"), &other.into(), why));
            }
        }
    }
}

/// Appends the faults of a `LimitRange`.
fn limits(spec: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, limit) in spec["limits"].as_array().into_iter().flatten().enumerate() {
        let at = format!("spec.limits[{index}]");
        let kind = limit["type"].as_str().unwrap_or_default();
        let faults = names::qualified(kind);
        let type_at = format!("{at}.type");
        causes.extend(faults.iter().map(|why| invalid_value(&type_at, &kind.into(), why)));
        let known = matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim");
        if faults.is_empty() && !kind.contains('/') && !known {
            let why = "must be a standard limit type or fully qualified";
            causes.push(invalid_value(&type_at, &kind.into(), why));
        }
        if !seen.insert(kind) {
            let message = format!("Duplicate value: {kind:?}");
            causes.push(cause("FieldValueDuplicate", &type_at, message));
        }
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if !is_empty(&limit[field]) {
                    let why = "may not be specified when `type` is 'Pod'";
                    causes.push(forbidden_field(&format!("{at}.{field}"), why));
                }
            }
        }
        if kind == "PersistentVolumeClaim"
            && limit["min"]["storage"].is_null()
            && limit["max"]["storage"].is_null()
        {
            let why =
                "either minimum or maximum storage value is required, but neither was provided";
            causes.push(required(&format!("{at}.limits"), why));
        }
        for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
            if kind == "Pod" && field.starts_with("default") {
                continue;
            }
            for (name, _) in limit[field].as_object().into_iter().flatten() {
                let at = format!("{at}.{field}[{name}]");
                match kind {
                    "Pod" | "Container" => pod::resource(name, &at, causes),
                    _ => pod::any_resource(name, &at, causes),
                }
            }
        }
        order(limit, &at, causes);
    }
}

/// Appends the faults of amounts of a limit that contradict each other.
fn order(limit: &Value, at: &str, causes: &mut Vec<Cause>) {
    let fields = ["min", "defaultRequest", "default", "max", "maxLimitRequestRatio"];
    let mut amounts: BTreeMap<&str, [Option<Quantity>; 5]> = BTreeMap::new();
    for (place, field) in fields.iter().enumerate() {
        for (name, amount) in limit[*field].as_object().into_iter().flatten() {
            amounts.entry(name).or_default()[place] = Quantity::parse(amount);
        }
    }
    for (name, [min, request, default, max, ratio]) in amounts {
        let mut more = |field: &str,
                        shown: usize,
                        pair: (Option<Quantity>, Option<Quantity>),
                        texts: [&str; 2]| {
            let (Some(low), Some(high)) = pair else { return };
            if low > high {
                let why =
                    format!("{} value {low} is greater than {} value {high}", texts[0], texts[1]);
                let shown = if shown == 0 { low } else { high }.to_string();
                causes.push(invalid_value(&format!("{at}.{field}[{name}]"), &shown.into(), &why));
            }
        };
        more("min", 0, (min, max), ["min", "max"]);
        more("defaultRequest", 1, (min, request), ["min", "default request"]);
        more("defaultRequest", 0, (request, max), ["default request", "max"]);
        more("defaultRequest", 0, (request, default), ["default request", "default limit"]);
        more("default", 0, (min, default), ["min", "default"]);
        more("default", 1, (default, max), ["default", "max"]);
        if let Some(ratio) = ratio.filter(|ratio| *ratio < Quantity::whole(1)) {
            let at = format!("{at}.maxLimitRequestRatio[{name}]");
            let why = format!("ratio {ratio} is less than 1");
            causes.push(invalid_value(&at, &ratio.to_string().into(), &why));
        }
        if let (Some(ratio), Some(min), Some(max)) = (ratio, min, max) {
            let most = max.share_of(min);
            if ratio.share_of(Quantity::whole(1)) > most {
                let at = format!("{at}.maxLimitRequestRatio[{name}]");
                let why = format!("ratio {ratio} is greater than max/min = {most:.6}");
                causes.push(invalid_value(&at, &ratio.to_string().into(), &why));
            }
        }
        if let Some((wanted, default)) =
            request.zip(default).filter(|(one, other)| one != other && !pod::may_exceed(name))
        {
            let at = format!("{at}.defaultRequest[{name}]");
            let why = format!(
                "default value {default} must equal to defaultRequest value {wanted} in {name}"
            );
            causes.push(invalid_value(&at, &wanted.to_string().into(), &why));
        }
    }
}

/// Fields of a volume that are no source.
const NO_SOURCE: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// Appends the faults of a volume.
fn volume(spec: &Value, causes: &mut Vec<Cause>) {
    if is_empty(&spec["accessModes"]) {
        causes.push(required("spec.accessModes", ""));
    }
    if is_empty(&spec["capacity"]) {
        causes.push(required("spec.capacity", ""));
    }
    if spec["capacity"]["storage"].is_null()
        || spec["capacity"].as_object().is_some_and(|c| c.len() > 1)
    {
        let shown = &spec["capacity"];
        let message = format!("Unsupported value: {shown}: supported values: \"storage\"");
        causes.push(cause("FieldValueNotSupported", "spec.capacity", message));
    }
    for (name, amount) in spec["capacity"].as_object().into_iter().flatten() {
        let at = format!("spec.capacity[{name}]");
        if Quantity::parse(amount).is_some_and(|held| held.is_negative() || held.is_zero()) {
            causes.push(invalid_value(&at, amount, "must be greater than zero"));
        }
    }
    let has_source = spec.as_object().is_some_and(|fields| {
        fields.iter().any(|(name, value)| !NO_SOURCE.contains(&name.as_str()) && value.is_object())
    });
    if !has_source {
        causes.push(required("spec", "must specify a volume type"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(kind: &str, spec: Value) -> Vec<String> {
        let mut causes = Vec::new();
        check(kind, &json!({"spec": spec}), &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn a_quota_names_known_resources_and_scopes_that_fit() {
        let fine = json!({"hard": {"pods": "1", "a.io/x": "2", "count/secrets": "1"}});
        assert_eq!(fields("ResourceQuota", fine), Vec::<String>::new());
        assert_eq!(fields("ResourceQuota", json!({"hard": {"nope": "1"}})).len(), 2);
        assert_eq!(fields("ResourceQuota", json!({"hard": {"pods": "1.5"}})), ["spec.hard[pods]"]);
        let spec = json!({"hard": {"secrets": "1"}, "scopes": ["BestEffort"]});
        assert_eq!(fields("ResourceQuota", spec), ["spec.scopes"]);
    }

    #[test]
    fn amounts_of_a_limit_are_in_order() {
        let limit = json!({"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}});
        let found = fields("LimitRange", json!({"limits": [limit]}));
        assert_eq!(found, ["spec.limits[0].min[cpu]"]);
    }
}
