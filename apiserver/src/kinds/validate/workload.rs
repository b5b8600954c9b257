//! Checks of workloads that depend on several fields, and the way to those of related kinds.

use serde_json::{Value, json};

use super::{autoscaling, fields, jobs, networking, pod, volumes};
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Appends the faults of an object.
pub(super) fn check(kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    match kind {
        "Deployment" => deployment(spec, causes),
        "StatefulSet" => stateful(spec, causes),
        "DaemonSet" => daemon(spec, causes),
        "Job" => jobs::job(object, causes),
        "CronJob" => jobs::cron_job(object, causes),
        "HorizontalPodAutoscaler" => autoscaling::autoscaler(spec, causes),
        "PodDisruptionBudget" => autoscaling::budget(spec, causes),
        "Ingress" => networking::ingress(object, causes),
        "IngressClass" => networking::class(spec, causes),
        "NetworkPolicy" => networking::policy(spec, causes),
        _ => {}
    }
}

/// Appends the faults of a Deployment's strategy.
fn deployment(spec: &Value, causes: &mut Vec<Cause>) {
    let strategy = &spec["strategy"];
    let rolling = &strategy["rollingUpdate"];
    let kind = strategy["type"].as_str().unwrap_or("RollingUpdate");
    let at = "spec.strategy.rollingUpdate";
    match kind {
        "Recreate" if rolling.is_object() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            causes.push(forbidden_field(at, detail));
        }
        "RollingUpdate" => {
            let unavailable = format!("{at}.maxUnavailable");
            fields::amount(&rolling["maxUnavailable"], &unavailable, causes);
            // More than all Pods may be added, but not be taken away.
            let mut surge = Vec::new();
            fields::amount(&rolling["maxSurge"], &format!("{at}.maxSurge"), &mut surge);
            causes.extend(surge.into_iter().filter(|cause| !cause.message.ends_with("100%")));
            let is_none = |field: &str| is_nothing(&rolling[field]);
            if is_none("maxUnavailable") && is_none("maxSurge") {
                let detail = "may not be 0 when `maxSurge` is 0";
                causes.push(invalid_value(&unavailable, &rolling["maxUnavailable"], detail));
            }
        }
        "Recreate" => {}
        other => {
            let rolling = if rolling.is_object() {
                // Amounts behind no pointer in the server's own type: absent amounts are 0.
                let amount = |field: &str| match &rolling[field] {
                    Value::Null => json!(0),
                    held => held.clone(),
                };
                let shown = json!({
                    "MaxUnavailable": amount("maxUnavailable"), "MaxSurge": amount("maxSurge"),
                });
                go_order(&shown, &["MaxUnavailable", "MaxSurge"])
            } else {
                "null".to_owned()
            };
            let message = format!(
                "Unsupported value: {{\"Type\":{},\"RollingUpdate\":{rolling}}}: supported values: \
                 \"Recreate\", \"RollingUpdate\"",
                Value::from(other)
            );
            causes.push(cause("FieldValueNotSupported", "spec.strategy", message));
        }
    }
    let ready = spec["minReadySeconds"].as_i64().unwrap_or_default();
    if let Some(seconds) = spec["progressDeadlineSeconds"].as_i64().filter(|s| *s <= ready) {
        let detail = "must be greater than minReadySeconds";
        causes.push(invalid_value("spec.progressDeadlineSeconds", &seconds.into(), detail));
    }
}

/// Prints an object with fields in the order of a Go structure.
pub(super) fn go_order(object: &Value, fields: &[&str]) -> String {
    let parts: Vec<String> =
        fields.iter().map(|field| format!("{field:?}:{}", object[*field])).collect();
    format!("{{{}}}", parts.join(","))
}

/// Whether an amount is no Pod at all; a text that is no percentage counts as none.
fn is_nothing(amount: &Value) -> bool {
    match amount {
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => {
            text.strip_suffix('%').is_none_or(|share| share.bytes().all(|digit| digit == b'0'))
        }
        _ => false,
    }
}

/// Appends the faults of a `StatefulSet`'s strategy, numbers and claims.
fn stateful(spec: &Value, causes: &mut Vec<Cause>) {
    let policy = spec["podManagementPolicy"].as_str().unwrap_or("OrderedReady");
    if !["OrderedReady", "Parallel"].contains(&policy) {
        let why = "must be 'OrderedReady' or 'Parallel'";
        causes.push(invalid_value("spec.podManagementPolicy", &policy.into(), why));
    }
    let service = &spec["serviceName"];
    if !fields::is_empty(service) {
        let faults = names::label(service.as_str().unwrap_or_default());
        fields::named(faults, service, "spec.serviceName", causes);
    }
    let strategy = &spec["updateStrategy"];
    let rolling = &strategy["rollingUpdate"];
    match strategy["type"].as_str().unwrap_or_default() {
        "" => causes.push(required("spec.updateStrategy", "")),
        "OnDelete" if rolling.is_object() => {
            let shown = json!({"Partition": rolling["partition"], "MaxUnavailable": null});
            let shown = go_order(&shown, &["Partition", "MaxUnavailable"]);
            let message =
                format!("Invalid value: {shown}: only allowed for updateStrategy 'RollingUpdate'");
            let at = "spec.updateStrategy.rollingUpdate";
            causes.push(cause("FieldValueInvalid", at, message));
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            let partition = &rolling["partition"];
            if partition.as_i64().is_some_and(|number| number < 0) {
                let at = "spec.updateStrategy.rollingUpdate.partition";
                let why = "must be greater than or equal to 0";
                causes.push(invalid_value(at, partition, why));
            }
        }
        other => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            let shown = json!({"Type": other, "RollingUpdate": rolling});
            let shown = go_order(&shown, &["Type", "RollingUpdate"]);
            let message = format!("Invalid value: {shown}: {why}");
            causes.push(cause("FieldValueInvalid", "spec.updateStrategy", message));
        }
    }
    let start = &spec["ordinals"]["start"];
    if start.as_i64().is_some_and(|start| start < 0) {
        let why = "must be greater than or equal to 0";
        causes.push(invalid_value("spec.ordinals.start", start, why));
    }
    let policy = &spec["persistentVolumeClaimRetentionPolicy"];
    for field in ["whenDeleted", "whenScaled"] {
        let held = policy[field].as_str().unwrap_or_default();
        if policy.is_object() && !["Retain", "Delete"].contains(&held) {
            let at = format!("spec.persistentVolumeClaimRetentionPolicy.{field}");
            causes.push(unsupported(&at, held, &["Retain", "Delete"]));
        }
    }
    let claims = spec["volumeClaimTemplates"].as_array().into_iter().flatten();
    for (index, claim) in claims.enumerate() {
        let at = format!("spec.volumeClaimTemplates[{index}].spec");
        volumes::claim(&claim["spec"], &at, causes);
    }
}

/// Appends the faults of the template of a `ReplicationController`.
pub(super) fn replication(spec: &Value, causes: &mut Vec<Cause>) {
    let (selector, template) = (&spec["selector"], &spec["template"]);
    if !template.is_object() {
        return;
    }
    let labels = &template["metadata"]["labels"];
    let mut wanted = selector.as_object().into_iter().flatten();
    if !wanted.all(|(key, value)| labels[key] == *value) {
        let why = "`selector` does not match template `labels`";
        causes.push(invalid_value("spec.template.metadata.labels", labels, why));
    }
    pod::template(template, "spec.template", causes);
    if let Some(policy) = template["spec"]["restartPolicy"].as_str().filter(|one| *one != "Always")
    {
        causes.push(unsupported("spec.template.spec.restartPolicy", policy, &["Always"]));
    }
}

/// Appends the faults of a `DaemonSet`'s strategy.
fn daemon(spec: &Value, causes: &mut Vec<Cause>) {
    let strategy = &spec["updateStrategy"];
    let rolling = &strategy["rollingUpdate"];
    match strategy["type"].as_str().unwrap_or_default() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let at = "spec.updateStrategy.rollingUpdate";
            let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
            fields::amount(unavailable, &format!("{at}.maxUnavailable"), causes);
            fields::amount(surge, &format!("{at}.maxSurge"), causes);
            let has_surge = !surge.is_null() && !is_nothing(surge);
            if has_surge && !is_nothing(unavailable) {
                let why = "may not be set when maxUnavailable is non-zero";
                causes.push(invalid_value(&format!("{at}.maxSurge"), surge, why));
            } else if !has_surge && is_nothing(unavailable) {
                let why = "cannot be 0 when maxSurge is 0";
                causes.push(required(&format!("{at}.maxUnavailable"), why));
            }
        }
        other => {
            let shown = json!({"Type": other, "RollingUpdate": rolling});
            let shown = go_order(&shown, &["Type", "RollingUpdate"]);
            let message = format!(
                "Unsupported value: {shown}: supported values: \"RollingUpdate\", \"OnDelete\""
            );
            causes.push(cause("FieldValueNotSupported", "spec.updateStrategy", message));
        }
    }
}
