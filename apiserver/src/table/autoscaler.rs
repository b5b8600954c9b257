//! Cells of `HorizontalPodAutoscaler`s, in both versions.

use serde_json::{Value, json};

use super::builtin::{list, or};

/// Metrics that a cell names; the others are counted.
const SHOWN: usize = 2;

/// Returns the cells between name and age.
pub(super) fn cells(o: &Value) -> Vec<Value> {
    let (spec, status) = (&o["spec"], &o["status"]);
    let target = &spec["scaleTargetRef"];
    let least =
        spec["minReplicas"].as_i64().map_or("<unset>".to_owned(), |least| least.to_string());
    vec![
        json!(format!("{}/{}", or(&target["kind"], ""), or(&target["name"], ""))),
        json!(targets(spec, status)),
        json!(least),
        json!(spec["maxReplicas"].as_i64().unwrap_or_default()),
        json!(status["currentReplicas"].as_i64().unwrap_or_default()),
    ]
}

/// Returns the present and wanted values of the metrics: `cpu: 7%/50%`.
fn targets(spec: &Value, status: &Value) -> String {
    let mut all = Vec::new();
    // The older version names a target for the CPU alone.
    if let Some(percent) = spec["targetCPUUtilizationPercentage"].as_i64() {
        let now = percentage(&status["currentCPUUtilizationPercentage"]);
        all.push(format!("cpu: {now}/{percent}%"));
    }
    let current = list(&status["currentMetrics"]);
    for (index, metric) in list(&spec["metrics"]).iter().enumerate() {
        all.extend(shown(metric, current.get(index).unwrap_or(&Value::Null)));
    }
    if all.is_empty() {
        return "<none>".to_owned();
    }
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    let text = all.join(", ");
    if more == 0 { text } else { format!("{text} + {more} more...") }
}

/// Returns the present and wanted value of a metric.
fn shown(metric: &Value, state: &Value) -> Option<String> {
    let (field, named) = match metric["type"].as_str()? {
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "External" => ("external", false),
        _ => return None,
    };
    let (target, now) = (&metric[field]["target"], &state[field]["current"]);
    let name = if named { format!("{}: ", or(&metric[field]["name"], "")) } else { String::new() };
    if let Some(average) = target["averageValue"].as_str() {
        let suffix = if matches!(field, "object" | "external") { " (avg)" } else { "" };
        return Some(format!("{name}{}/{average}{suffix}", or(&now["averageValue"], "<unknown>")));
    }
    if named {
        let wanted = target["averageUtilization"].as_i64();
        let wanted = wanted.map_or("<auto>".to_owned(), |percent| format!("{percent}%"));
        return Some(format!("{name}{}/{wanted}", percentage(&now["averageUtilization"])));
    }
    Some(format!("{}/{}", or(&now["value"], "<unknown>"), or(&target["value"], "")))
}

/// Returns a percentage, or a text for an unknown value.
fn percentage(value: &Value) -> String {
    value.as_i64().map_or("<unknown>".to_owned(), |percent| format!("{percent}%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_show_what_is_and_what_is_wanted() {
        let cpu = json!({"name": "cpu", "target": {"averageUtilization": 50}});
        let external = json!({"target": {"averageValue": "30"}});
        let object = json!({"target": {"value": "2k"}});
        let cpu = json!({"type": "Resource", "resource": cpu});
        let spec = json!({"metrics": [cpu, {"type": "External", "external": external},
            {"type": "Object", "object": object}]});
        let now = json!({"currentMetrics": [{"resource": {"current": {"averageUtilization": 7}}}]});
        assert_eq!(targets(&spec, &now), "cpu: 7%/50%, <unknown>/30 (avg) + 1 more...");
        let older = json!({"targetCPUUtilizationPercentage": 50});
        assert_eq!(targets(&older, &Value::Null), "cpu: <unknown>/50%");
    }
}
