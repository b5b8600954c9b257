//! Validation of workloads with a selector and a template, and of the ports of Services.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Kind, validate};
use crate::selectors;
use crate::served::Cause;
use crate::status::{forbidden_field, invalid_value, required, unsupported};

/// Returns the faults of a workload or Service; none for other kinds.
pub(crate) fn check(kind: &Kind, object: &Value) -> Vec<Cause> {
    match (kind.served.group.as_str(), kind.name()) {
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => {
            workload(kind, object)
        }
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
    validate::selector(selector, "spec.selector", &mut causes);
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
        causes.push(validate::invalid_selector("spec.selector", selector, &why));
    }
    let is_selector = validate::is_selector(selector);
    let is_stateful = kind.name() == "StatefulSet";
    if !is_selector && kind.name() != "DaemonSet" {
        let why = if is_stateful { "" } else { "invalid label selector" };
        causes.push(validate::invalid_selector("spec.selector", selector, why));
    } else if is_selector && (selector.is_null() || !selectors::selects(selector, template)) {
        let labels = &template["metadata"]["labels"];
        let why = "`selector` does not match template `labels`";
        causes.push(invalid_value("spec.template.metadata.labels", labels, why));
    }
    // With a bad selector only a DaemonSet's template is looked at.
    if is_selector || kind.name() == "DaemonSet" {
        let with_claims = is_stateful.then(|| stateful_template(spec));
        let judged = with_claims.as_ref().unwrap_or(template);
        validate::pod::template(judged, "spec.template", &mut causes);
        if is_stateful {
            // Upstream checks the labels of this kind once more.
            validate::pod::labels(template, "spec.template", &mut causes);
        }
    }
    if is_selector || matches!(kind.name(), "DaemonSet" | "StatefulSet") {
        endless(kind, &template["spec"], &mut causes);
    }
    causes
}

/// Returns the template of a `StatefulSet` as its Pods get it: with volumes of the claims, which replace
/// those of the same name, and with names that the controller sets.
fn stateful_template(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    let Some(Value::Object(pod)) = template.get_mut("spec") else { return template };
    for field in ["hostname", "subdomain"] {
        pod.remove(field);
    }
    let claims = spec["volumeClaimTemplates"].as_array().map_or(&[][..], Vec::as_slice);
    let name = |claim: &Value| claim["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = claims.iter().map(name).collect();
    if names.is_empty() {
        return template;
    }
    let made = names
        .iter()
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    let own = pod.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
    let kept =
        own.into_iter().filter(|one| one["name"].as_str().is_none_or(|name| !names.contains(name)));
    let volumes: Vec<Value> = made.chain(kept).collect();
    pod.insert("volumes".to_owned(), volumes.into());
    template
}

/// Appends the faults of a template whose Pods would end.
fn endless(kind: &Kind, pod: &Value, causes: &mut Vec<Cause>) {
    if let Some(policy) = pod["restartPolicy"].as_str().filter(|held| *held != "Always") {
        causes.push(unsupported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
    if !pod["activeDeadlineSeconds"].is_null() {
        // Deployments are called ReplicaSets in this text, upstream too.
        let name = if kind.name() == "Deployment" { "ReplicaSet" } else { kind.name() };
        let why = format!("activeDeadlineSeconds in {name} is not Supported");
        causes.push(forbidden_field("spec.template.spec.activeDeadlineSeconds", &why));
    }
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
