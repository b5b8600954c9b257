//! autoscaling/v1 `HorizontalPodAutoscaler`s: a view of those of autoscaling/v2, which are stored.
//!
//! The older version knows a target for the CPU alone. The older version shows all other metrics,
//! the behaviour and parts of the status as annotations, from which they come back on a write.

use serde_json::{Map, Value, json};

use super::defaults::child;
use super::{Kind, meta};

/// Prefix of the annotations.
const PREFIX: &str = "autoscaling.alpha.kubernetes.io/";

/// Forms of a metric's type: the field, the name of the metric in the older version, the field of
/// the selector there, and the fields of value, average value and average utilization.
struct MetricForm {
    field: &'static str,
    kind: &'static str,
    named: bool,
    selector: &'static str,
    parts: [&'static str; 3],
}

const FORMS: [MetricForm; 5] = [
    MetricForm {
        field: "object",
        kind: "Object",
        named: true,
        selector: "selector",
        parts: ["Value", "averageValue", ""],
    },
    MetricForm {
        field: "pods",
        kind: "Pods",
        named: true,
        selector: "selector",
        parts: ["", "AverageValue", ""],
    },
    MetricForm {
        field: "resource",
        kind: "Resource",
        named: false,
        selector: "",
        parts: ["", "AverageValue", "AverageUtilization"],
    },
    MetricForm {
        field: "containerResource",
        kind: "ContainerResource",
        named: false,
        selector: "",
        parts: ["", "AverageValue", "AverageUtilization"],
    },
    MetricForm {
        field: "external",
        kind: "External",
        named: true,
        selector: "metricSelector",
        parts: ["Value", "AverageValue", ""],
    },
];

/// Names of the parts in the newer version, in the order of [`MetricForm::parts`].
const PARTS: [&str; 3] = ["value", "averageValue", "averageUtilization"];

/// Fields of annotations in the order of Go's structures, which differ in none of these.
const ORDER: [&str; 30] = [
    "type",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "object",
    "pods",
    "resource",
    "containerResource",
    "external",
    "target",
    "kind",
    "name",
    "apiVersion",
    "metricName",
    "metricSelector",
    "targetAverageUtilization",
    "currentAverageUtilization",
    "targetValue",
    "currentValue",
    "targetAverageValue",
    "currentAverageValue",
    "container",
    "selector",
    "ScaleUp",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Type",
    "Value",
];

/// Prints a value with fields in the order of [`ORDER`].
fn ordered(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let place = |key: &str| ORDER.iter().position(|known| *known == key);
            let mut all: Vec<(&String, &Value)> = fields.iter().collect();
            all.sort_by_key(|(key, _)| (place(key).unwrap_or(ORDER.len()), (*key).clone()));
            let all = all
                .into_iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), ordered(value)));
            format!("{{{}}}", all.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(ordered).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

/// Whether the kind is the older version.
pub(super) fn is_older(kind: &Kind) -> bool {
    kind.is("autoscaling", "horizontalpodautoscalers") && kind.served.version == "v1"
}

/// Converts a stored object to the older version.
pub(super) fn to_older(mut object: Value) -> Value {
    let spec = child(&mut object, "spec");
    let metrics = take_list(spec, "metrics");
    let mut behavior = renamed(take(spec, "behavior"), char::to_ascii_uppercase);
    for rules in behavior.as_object_mut().into_iter().flat_map(Map::values_mut) {
        for field in ["StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance"] {
            // Absent fields are shown as null.
            if rules.is_object() && rules.get(field).is_none() {
                rules[field] = Value::Null;
            }
        }
    }
    let is_cpu = |metric: &Value| cpu(metric, "target").is_some();
    if let Some(percent) = metrics.iter().find_map(|metric| cpu(metric, "target")) {
        spec["targetCPUUtilizationPercentage"] = percent.clone();
    }
    let others: Vec<Value> = metrics
        .iter()
        .filter(|metric| !is_cpu(metric))
        .map(|metric| older(metric, "target"))
        .collect();
    let status = child(&mut object, "status");
    let current = take_list(status, "currentMetrics");
    let conditions = take_list(status, "conditions");
    if let Some(percent) = current.iter().find_map(|metric| cpu(metric, "current")) {
        status["currentCPUUtilizationPercentage"] = percent.clone();
    }
    if status["currentReplicas"].is_null() {
        status["currentReplicas"] = json!(0);
    }
    let current: Vec<Value> = current.iter().map(|metric| older(metric, "current")).collect();
    for (name, value) in [
        ("metrics", Value::Array(others)),
        ("behavior", behavior),
        ("current-metrics", Value::Array(current)),
        ("conditions", Value::Array(conditions)),
    ] {
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            let annotations = child(child(&mut object, "metadata"), "annotations");
            annotations[format!("{PREFIX}{name}")] = json!(ordered(&value));
        }
    }
    object
}

/// Converts an object of the older version to the stored version.
pub(super) fn to_newer(mut object: Value) -> Value {
    let mut kept = |name: &str| annotation(&mut object, name);
    let (others, behavior) = (kept("metrics"), kept("behavior"));
    let (current, conditions) = (kept("current-metrics"), kept("conditions"));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let spec = child(&mut object, "spec");
    let percent = take(spec, "targetCPUUtilizationPercentage");
    let others: Vec<Value> = list(&others).iter().map(|metric| newer(metric, "target")).collect();
    let mut metrics = Vec::new();
    // Without any metric the CPU gets one.
    if !percent.is_null() || others.is_empty() {
        let percent = if percent.is_null() { json!(80) } else { percent };
        let target = json!({"type": "Utilization", "averageUtilization": percent});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    metrics.extend(others);
    spec["metrics"] = Value::Array(metrics);
    if behavior.is_object() {
        spec["behavior"] = renamed(behavior, char::to_ascii_lowercase);
    }
    let status = child(&mut object, "status");
    let percent = take(status, "currentCPUUtilizationPercentage");
    let mut current: Vec<Value> =
        list(&current).iter().map(|metric| newer(metric, "current")).collect();
    if current.is_empty() && !percent.is_null() {
        let now = json!({"averageUtilization": percent});
        current.push(json!({"type": "Resource", "resource": {"name": "cpu", "current": now}}));
    }
    status["currentMetrics"] = if current.is_empty() { Value::Null } else { Value::Array(current) };
    if status["currentReplicas"] == 0 {
        take(status, "currentReplicas");
    }
    if conditions.is_array() {
        status["conditions"] = conditions;
    }
    object
}

/// Returns the utilization of the CPU of all Pods that a metric is about.
fn cpu<'a>(metric: &'a Value, part: &str) -> Option<&'a Value> {
    let of_cpu = metric["type"] == "Resource" && metric["resource"]["name"] == "cpu";
    let percent = &metric["resource"][part]["averageUtilization"];
    Some(percent).filter(|percent| of_cpu && !percent.is_null())
}

/// Returns a behaviour with the first letters of all fields changed: the annotation has the names
/// of Go's fields. Absent fields are null there.
fn renamed(value: Value, first: fn(&char) -> char) -> Value {
    match value {
        Value::Object(fields) => {
            let named = |(name, value): (String, Value)| {
                let mut letters = name.chars();
                let name: String = letters.next().iter().map(first).chain(letters).collect();
                (!value.is_null()).then(|| (name, renamed(value, first)))
            };
            Value::Object(fields.into_iter().filter_map(named).collect())
        }
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| renamed(item, first)).collect())
        }
        other => other,
    }
}

/// Removes a field and returns the value; null if there is none.
fn take(object: &mut Value, field: &str) -> Value {
    object.as_object_mut().and_then(|fields| fields.remove(field)).unwrap_or_default()
}

/// Removes a list and returns the items.
fn take_list(object: &mut Value, field: &str) -> Vec<Value> {
    match take(object, field) {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

/// Removes an annotation and returns the value that the text describes.
fn annotation(object: &mut Value, name: &str) -> Value {
    let Some(Value::Object(annotations)) = meta::of(object).get_mut("annotations") else {
        return Value::Null;
    };
    let text = annotations.remove(&format!("{PREFIX}{name}"));
    if annotations.is_empty() {
        meta::set(object, "annotations", Value::Null);
    }
    // A text that a client has broken counts as none.
    text.as_ref()
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// Returns the name of a part in the older version: `targetValue`, `currentAverageValue`.
fn older_name(part: &str, name: &str) -> String {
    if name.starts_with(|letter: char| letter.is_ascii_uppercase()) {
        format!("{part}{name}")
    } else {
        name.to_owned()
    }
}

/// Converts a metric, or the state of one, to the older version.
fn older(metric: &Value, part: &str) -> Value {
    let mut out = json!({"type": metric["type"]});
    for form in FORMS.iter().filter(|form| metric[form.field].is_object()) {
        let source = &metric[form.field];
        let mut fields = Map::new();
        let mut put = |name: &str, value: &Value| {
            if !name.is_empty() && !value.is_null() {
                fields.insert(name.to_owned(), value.clone());
            }
        };
        if form.named {
            put("metricName", &source["metric"]["name"]);
            put(form.selector, &source["metric"]["selector"]);
            put("target", &source["describedObject"]);
        } else {
            put("name", &source["name"]);
            put("container", &source["container"]);
        }
        for (newer, older) in PARTS.iter().zip(form.parts) {
            put(&older_name(part, older), &source[part][newer]);
        }
        out[form.field] = Value::Object(fields);
    }
    out
}

/// Converts a metric, or the state of one, from the older version.
fn newer(metric: &Value, part: &str) -> Value {
    let mut out = json!({"type": metric["type"]});
    for form in
        FORMS.iter().filter(|form| metric["type"] == form.kind && metric[form.field].is_object())
    {
        let source = &metric[form.field];
        let mut fields = Map::new();
        let mut values = Map::new();
        for (newer, older) in PARTS.iter().zip(form.parts) {
            let value = source.get(older_name(part, older)).filter(|_| !older.is_empty());
            if let Some(value) = value {
                values.insert((*newer).to_owned(), value.clone());
            }
        }
        if part == "target" {
            let kind = match (
                values.contains_key("averageUtilization"),
                values.contains_key("averageValue"),
            ) {
                (true, _) => "Utilization",
                (false, true) => "AverageValue",
                (false, false) => "Value",
            };
            values.insert("type".to_owned(), json!(kind));
        }
        fields.insert(part.to_owned(), Value::Object(values));
        if form.named {
            let mut named = json!({"name": source["metricName"]});
            if source[form.selector].is_object() {
                named["selector"] = source[form.selector].clone();
            }
            fields.insert("metric".to_owned(), named);
        }
        for (field, from) in
            [("describedObject", "target"), ("name", "name"), ("container", "container")]
        {
            if let Some(value) = source.get(from) {
                fields.insert(field.to_owned(), value.clone());
            }
        }
        out[form.field] = Value::Object(fields);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_version_keeps_what_it_does_not_know_as_annotations() {
        let target = json!({"type": "Utilization", "averageUtilization": 50});
        let pods = json!({"metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}},
            "target": {"type": "AverageValue", "averageValue": "3"}});
        let about = json!({"kind": "Service", "name": "s"});
        let object = json!({"metric": {"name": "m"}, "describedObject": about,
            "target": {"type": "Value", "value": "3"}});
        let current =
            json!({"name": "cpu", "current": {"averageUtilization": 7, "averageValue": "2"}});
        let newer = json!({"metadata": {"name": "a"}, "spec": {
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}},
                {"type": "Pods", "pods": pods}, {"type": "Object", "object": object}],
            "behavior": {"scaleUp": {"selectPolicy": "Max"}}},
            "status": {"desiredReplicas": 2, "conditions": [{"type": "ScalingActive"}],
                "currentMetrics": [{"type": "Resource", "resource": current}]}});
        let older = to_older(newer.clone());
        assert_eq!(older["spec"]["targetCPUUtilizationPercentage"], 50);
        assert_eq!(older["status"]["currentCPUUtilizationPercentage"], 7);
        let metrics =
            older["metadata"]["annotations"][format!("{PREFIX}metrics")].as_str().unwrap();
        let metrics: Value = serde_json::from_str(metrics).unwrap();
        assert_eq!(metrics[0]["pods"]["targetAverageValue"], "3");
        assert_eq!(metrics[1]["object"]["targetValue"], "3");
        assert_eq!(to_newer(older), newer);
    }

    #[test]
    fn the_stored_version_always_has_a_metric() {
        let newer = to_newer(json!({"metadata": {}, "spec": {"maxReplicas": 3}}));
        assert_eq!(newer["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 80);
        let mut broken = json!({"metadata": {}, "spec": {"targetCPUUtilizationPercentage": 5}});
        broken["metadata"]["annotations"] = json!({format!("{PREFIX}metrics"): "{"});
        let newer = to_newer(broken);
        assert_eq!(newer["spec"]["metrics"].as_array().map(Vec::len), Some(1));
        assert!(newer["metadata"].get("annotations").is_none());
    }
}
