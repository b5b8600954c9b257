//! Checks of autoscalers and of disruption budgets.

use serde_json::{Value, json};

use super::fields::is_empty;
use super::workload::go_order;
use crate::kinds::quantity::Quantity;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Types of metrics, with the fields that describe them.
const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

/// Appends the faults of an autoscaler.
pub(super) fn autoscaler(spec: &Value, causes: &mut Vec<Cause>) {
    let least = &spec["minReplicas"];
    if least.as_i64().is_some_and(|number| number < 1) {
        let why = "must be greater than or equal to 1";
        causes.push(invalid_value("spec.minReplicas", least, why));
    }
    let most = spec["maxReplicas"].as_i64().unwrap_or_default();
    if most == 0 {
        causes.push(required("spec.maxReplicas", "must be set and greater than 0"));
    } else if most < 1 {
        let why = "must be greater than or equal to 1";
        causes.push(invalid_value("spec.maxReplicas", &most.into(), why));
    }
    if most < least.as_i64().unwrap_or(1) {
        let detail = "must be greater than or equal to `minReplicas`";
        causes.push(invalid_value("spec.maxReplicas", &most.into(), detail));
    }
    target_of(&spec["scaleTargetRef"], causes);
    metrics(spec, causes);
    for direction in ["scaleUp", "scaleDown"] {
        let rules = &spec["behavior"][direction];
        if rules.is_object() {
            scaling(rules, &format!("spec.behavior.{direction}"), causes);
        }
    }
}

/// Appends the faults of the scaled object's reference, whose absent parts the table judges.
fn target_of(target: &Value, causes: &mut Vec<Cause>) {
    for field in ["kind", "name"] {
        segment(&target[field], &format!("spec.scaleTargetRef.{field}"), causes);
    }
    let version = target["apiVersion"].as_str().unwrap_or_default();
    let at = "spec.scaleTargetRef.apiVersion";
    if version.is_empty() && target["kind"] != "ReplicationController" {
        let detail = "apiVersion must specify API group";
        causes.push(invalid_value(at, &version.into(), detail));
    }
    if version.matches('/').count() > 1 {
        let why = format!("unexpected GroupVersion string: {version}");
        causes.push(invalid_value(at, &version.into(), &why));
    }
}

/// Appends the faults of a text that is a segment of a path.
fn segment(value: &Value, at: &str, causes: &mut Vec<Cause>) {
    let text = value.as_str().unwrap_or_default();
    causes.extend(names::path(text).iter().map(|why| invalid_value(at, value, why)));
}

/// Appends the faults of the metrics.
fn metrics(spec: &Value, causes: &mut Vec<Cause>) {
    let list = spec["metrics"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, metric) in list.iter().enumerate() {
        one_metric(metric, &format!("spec.metrics[{index}]"), causes);
    }
    let is_outer = |metric: &Value| metric["type"] == "Object" || metric["type"] == "External";
    if spec["minReplicas"] == 0 && !list.iter().any(is_outer) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.push(forbidden_field("spec.metrics", why));
    }
}

/// Appends the faults of a metric.
fn one_metric(metric: &Value, at: &str, causes: &mut Vec<Cause>) {
    let kind = metric["type"].as_str().unwrap_or_default();
    let at_type = format!("{at}.type");
    if kind.is_empty() {
        causes.push(required(&at_type, "must specify a metric source type"));
    }
    let known = SOURCES.map(|(known, _)| known);
    if !known.contains(&kind) {
        // Reported twice, as upstream.
        causes.extend([unsupported(&at_type, kind, &known), unsupported(&at_type, kind, &known)]);
    }
    for field in ["object", "external", "pods", "resource", "containerResource"] {
        let source = &metric[field];
        if source.is_object() {
            one_source(field, source, &format!("{at}.{field}"), causes);
        }
    }
    let Some((_, wanted)) = SOURCES.iter().find(|(known, _)| *known == kind) else { return };
    if !metric[*wanted].is_object() {
        let why = "must populate information for the given metric source";
        causes.push(required(&format!("{at}.{wanted}"), why));
    }
    for (_, other) in SOURCES.iter().filter(|(known, _)| *known != kind) {
        if metric[*other].is_object() {
            let why = "must populate the given metric source only";
            causes.push(forbidden_field(&format!("{at}.{other}"), why));
        }
    }
}

/// Appends the faults of the description of a metric.
fn one_source(field: &str, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    match field {
        "object" => {
            for part in ["kind", "name"] {
                let at = format!("{at}.describedObject.{part}");
                if is_empty(&source["describedObject"][part]) {
                    causes.push(required(&at, ""));
                }
                segment(&source["describedObject"][part], &at, causes);
            }
            identifier(&source["metric"], &format!("{at}.metric"), causes);
            target(&source["target"], &format!("{at}.target"), causes);
            let why = "must set either a target value or averageValue";
            any_value(&source["target"], at, why, causes);
        }
        "external" => {
            identifier(&source["metric"], &format!("{at}.metric"), causes);
            target(&source["target"], &format!("{at}.target"), causes);
            let why = "must set either a target value for metric or a per-pod target";
            any_value(&source["target"], at, why, causes);
            let (value, average) = (&source["target"]["value"], &source["target"]["averageValue"]);
            if !value.is_null() && !average.is_null() {
                let why = "may not set both a target value for metric and a per-pod target";
                causes.push(forbidden_field(&format!("{at}.target.value"), why));
            }
        }
        "pods" => {
            identifier(&source["metric"], &format!("{at}.metric"), causes);
            target(&source["target"], &format!("{at}.target"), causes);
            if source["target"]["averageValue"].is_null() {
                let why = "must specify a positive target averageValue";
                causes.push(required(&format!("{at}.target.averageValue"), why));
            }
        }
        _ => resource(field, source, at, causes),
    }
}

/// Appends the faults of a metric of a resource.
fn resource(field: &str, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    if is_empty(&source["name"]) {
        causes.push(required(&format!("{at}.name"), "must specify a resource name"));
    }
    if field == "containerResource" && is_empty(&source["container"]) {
        causes.push(required(&format!("{at}.container"), "must specify a container"));
    }
    let wanted = &source["target"];
    target(wanted, &format!("{at}.target"), causes);
    let (share, average) = (&wanted["averageUtilization"], &wanted["averageValue"]);
    let at = format!("{at}.target.averageUtilization");
    if share.is_null() && average.is_null() {
        causes.push(required(&at, "must set either a target raw value or a target utilization"));
    }
    if !share.is_null() && !average.is_null() {
        let why = "may not set both a target raw value and a target utilization";
        let at = at.replace("averageUtilization", "averageValue");
        causes.push(forbidden_field(&at, why));
    }
}

/// Appends the fault of a target without a value for all and without a value for each Pod.
fn any_value(target: &Value, at: &str, why: &str, causes: &mut Vec<Cause>) {
    if target["value"].is_null() && target["averageValue"].is_null() {
        causes.push(required(&format!("{at}.target.averageValue"), why));
    }
}

/// Appends the faults of the name of a metric.
fn identifier(metric: &Value, at: &str, causes: &mut Vec<Cause>) {
    let at = format!("{at}.name");
    if is_empty(&metric["name"]) {
        causes.push(required(&at, "must specify a metric name"));
    } else {
        segment(&metric["name"], &at, causes);
    }
}

/// Appends the faults of a target's type and values.
fn target(target: &Value, at: &str, causes: &mut Vec<Cause>) {
    let kind = target["type"].as_str().unwrap_or_default();
    let at_type = format!("{at}.type");
    if kind.is_empty() {
        causes.push(required(&at_type, "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        let why = "must be either Utilization, Value, or AverageValue";
        causes.push(invalid_value(&at_type, &kind.into(), why));
    }
    for field in ["value", "averageValue"] {
        let held = Quantity::parse(&target[field]);
        if held.is_some_and(|held| held.is_negative() || held.is_zero()) {
            causes.push(invalid_value(
                &format!("{at}.{field}"),
                &target[field],
                "must be positive",
            ));
        }
    }
    let share = &target["averageUtilization"];
    if share.as_i64().is_some_and(|share| share < 1) {
        let at = format!("{at}.averageUtilization");
        causes.push(invalid_value(&at, share, "must be greater than 0"));
    }
}

/// Appends the faults of the rules for a direction.
fn scaling(rules: &Value, at: &str, causes: &mut Vec<Cause>) {
    /// Longest window, in seconds.
    const WINDOW: i64 = 3600;
    /// Longest period, in seconds.
    const PERIOD: i64 = 1800;
    let window = &rules["stabilizationWindowSeconds"];
    let at_window = format!("{at}.stabilizationWindowSeconds");
    match window.as_i64() {
        Some(seconds) if seconds < 0 => {
            let why = "must be greater than or equal to zero";
            causes.push(invalid_value(&at_window, window, why));
        }
        Some(seconds) if seconds > WINDOW => {
            let why = format!("must be less than or equal to {WINDOW}");
            causes.push(invalid_value(&at_window, window, &why));
        }
        _ => {}
    }
    let known = ["Disabled", "Max", "Min"];
    if let Some(policy) = rules["selectPolicy"].as_str().filter(|policy| !known.contains(policy)) {
        causes.push(unsupported(&format!("{at}.selectPolicy"), policy, &known));
    }
    let policies = rules["policies"].as_array().map_or(&[][..], Vec::as_slice);
    if policies.is_empty() {
        causes.push(required(&format!("{at}.policies"), "must specify at least one Policy"));
    }
    for (index, policy) in policies.iter().enumerate() {
        let at = format!("{at}.policies[{index}]");
        let kind = policy["type"].as_str().unwrap_or_default();
        if !["Percent", "Pods"].contains(&kind) {
            causes.push(unsupported(&format!("{at}.type"), kind, &["Percent", "Pods"]));
        }
        for field in ["value", "periodSeconds"] {
            let number = policy[field].as_i64().unwrap_or_default();
            if number <= 0 {
                let why = "must be greater than zero";
                causes.push(invalid_value(&format!("{at}.{field}"), &number.into(), why));
            } else if field == "periodSeconds" && number > PERIOD {
                let why = format!("must be less than or equal to {PERIOD}");
                causes.push(invalid_value(&format!("{at}.{field}"), &number.into(), &why));
            }
        }
    }
}

/// Appends the faults of a budget.
pub(super) fn budget(spec: &Value, causes: &mut Vec<Cause>) {
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !least.is_null() && !most.is_null() {
        let shown = json!({
            "MinAvailable": least, "Selector": spec["selector"], "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec["unhealthyPodEvictionPolicy"],
        });
        let fields = ["MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy"];
        let shown = go_order(&shown, &fields);
        let why = "minAvailable and maxUnavailable cannot be both set";
        causes.push(cause("FieldValueInvalid", "spec", format!("Invalid value: {shown}: {why}")));
    }
}
