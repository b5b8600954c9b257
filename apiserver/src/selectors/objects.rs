//! `LabelSelector` objects, as workloads and disruption budgets hold them.

use serde_json::Value;

use super::LabelSelector;

/// Whether a `LabelSelector` object selects an object's labels.
pub(crate) fn selects(selector: &Value, object: &Value) -> bool {
    let mut parts: Vec<String> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push(format!("{key}={}", value.as_str().unwrap_or_default()));
    }
    for term in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = term["key"].as_str().unwrap_or_default();
        let values: Vec<&str> =
            term["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let values = values.join(",");
        parts.push(match term["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    LabelSelector::parse(&parts.join(",")).is_ok_and(|selector| selector.matches(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_of_labels_and_expressions_select() {
        let pod = json!({"metadata": {"labels": {"app": "a"}}});
        assert!(selects(&json!({"matchLabels": {"app": "a"}}), &pod));
        assert!(selects(&json!({}), &pod));
        let other =
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]});
        assert!(!selects(&other, &pod));
    }
}
