//! Validation of workloads for the most common mistakes: selectors, template labels, containers.
//!
//! The rest of the built-in validation is not implemented: tests that need it run against a real
//! server.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Kind, validate};
use crate::names;
use crate::selectors;
use crate::served::Cause;
use crate::status::{cause, invalid_value, required, unsupported};

/// Returns the faults of a workload or Service; none for other kinds.
pub(crate) fn check(kind: &Kind, object: &Value) -> Vec<Cause> {
    match (kind.served.group.as_str(), kind.name()) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => {
            workload(kind, object)
        }
        ("batch", "Job") => containers(&object["spec"]["template"]["spec"], "spec.template.spec"),
        ("", "Pod") => containers(&object["spec"], "spec"),
        ("", "Service") => service(&object["spec"]),
        _ => Vec::new(),
    }
}

/// Returns the faults of a workload with a selector and a template.
fn workload(kind: &Kind, object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    if let Some(replicas) = spec["replicas"].as_i64().filter(|replicas| *replicas < 0) {
        let why = "must be greater than or equal to 0";
        causes.push(invalid_value("spec.replicas", &replicas.into(), why));
    }
    let selector = &spec["selector"];
    let parts = ["matchLabels", "matchExpressions"].map(|part| &selector[part]);
    let empty = parts.iter().all(|part| match part {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => true,
    });
    let template = &spec["template"];
    if selector.is_null() {
        if kind.name() != "DaemonSet" {
            causes.push(required("spec.selector", ""));
        }
    } else if empty {
        // ReplicaSets are called deployments in this text, upstream too.
        let name = match kind.name() {
            "ReplicaSet" => "deployment".to_owned(),
            other => other.to_lowercase(),
        };
        let why = format!("empty selector is invalid for {name}");
        causes.push(invalid_value("spec.selector", selector, &why));
    }
    if !validate::is_selector(selector) {
        causes.push(invalid_value("spec.selector", selector, "invalid label selector"));
    } else if selector.is_null() || !selectors::selects(selector, template) {
        let labels = &template["metadata"]["labels"];
        let why = "`selector` does not match template `labels`";
        causes.push(invalid_value("spec.template.metadata.labels", labels, why));
    }
    causes.extend(containers(&template["spec"], "spec.template.spec"));
    if let Some(policy) =
        template["spec"]["restartPolicy"].as_str().filter(|held| *held != "Always")
    {
        causes.push(unsupported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    causes
}

/// Returns the faults of the containers of a pod spec.
fn containers(spec: &Value, path: &str) -> Vec<Cause> {
    let Some(list) = spec["containers"].as_array().filter(|list| !list.is_empty()) else {
        return vec![required(&format!("{path}.containers"), "")];
    };
    let mut causes = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, container) in list.iter().enumerate() {
        let text = |field: &str| container[field].as_str().unwrap_or_default();
        let field = |name: &str| format!("{path}.containers[{index}].{name}");
        let name = text("name");
        if name.is_empty() {
            causes.push(required(&field("name"), ""));
        } else if !seen.insert(name) {
            let message = format!("Duplicate value: {name:?}");
            causes.push(cause("FieldValueDuplicate", &field("name"), message));
        } else {
            let faults = names::label(name).into_iter();
            causes.extend(faults.map(|why| invalid_value(&field("name"), &name.into(), &why)));
        }
        if text("image").is_empty() {
            causes.push(required(&field("image"), ""));
        }
    }
    causes
}

/// Returns the faults of a Service's ports.
fn service(spec: &Value) -> Vec<Cause> {
    let ports = spec["ports"].as_array().map_or(0, Vec::len);
    let needless = spec["clusterIP"] == "None" || spec["type"] == "ExternalName";
    let mut causes = Vec::new();
    if ports == 0 && !needless {
        causes.push(required("spec.ports", ""));
    }
    if ports > 1 {
        for (index, port) in spec["ports"].as_array().into_iter().flatten().enumerate() {
            if port["name"].as_str().unwrap_or_default().is_empty() {
                causes.push(required(&format!("spec.ports[{index}].name"), ""));
            }
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::builtin;
    use serde_json::json;

    fn faults(object: Value) -> Vec<String> {
        let kind = builtin::kinds().into_iter().find(|kind| kind.name() == "Deployment").unwrap();
        let causes = check(&kind, &object);
        causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn a_deployment_needs_a_selector_that_fits_and_a_container() {
        assert_eq!(
            faults(json!({"spec": {}})),
            [
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
                "spec.template.spec.containers: Required value",
            ]
        );
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let fine = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
        assert_eq!(faults(fine), Vec::<String>::new());
    }
}
