//! Checks of workloads, autoscalers, budgets and ingresses that depend on several fields.

use std::net::IpAddr;

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::fields::{self, is_empty};
use super::pod;
use crate::selectors;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required};

/// Appends the faults of an object.
pub(super) fn check(kind: &str, object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    match kind {
        "Deployment" => deployment(spec, causes),
        "Job" => {
            selection(object, causes);
            pod::template(&spec["template"], "spec.template", causes);
            restarts(&spec["template"]["spec"], "spec.template.spec", causes);
        }
        "CronJob" => cron_job(spec, causes),
        "HorizontalPodAutoscaler" => autoscaler(spec, causes),
        "PodDisruptionBudget" => budget(spec, causes),
        "Ingress" => ingress(spec, causes),
        "NetworkPolicy" => policy(spec, causes),
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
            let is_none = |field: &str| rolling[field] == 0 || rolling[field] == "0%";
            if is_none("maxUnavailable") && is_none("maxSurge") {
                let detail = "may not be 0 when `maxSurge` is 0";
                causes.push(invalid_value(&unavailable, &rolling["maxUnavailable"], detail));
            }
        }
        "Recreate" => {}
        other => {
            let rolling = if rolling.is_object() {
                // Amounts behind no pointer in the server's own type: absent ones are 0.
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

/// Prints an object with its fields in the order of a Go structure.
fn go_order(object: &Value, fields: &[&str]) -> String {
    let parts: Vec<String> =
        fields.iter().map(|field| format!("{field:?}:{}", object[*field])).collect();
    format!("{{{}}}", parts.join(","))
}

/// Appends the fault of a Job's restart policy.
fn restarts(pod: &Value, at: &str, causes: &mut Vec<Cause>) {
    if pod["restartPolicy"] == "Always" || is_empty(&pod["restartPolicy"]) {
        let detail = "valid values: \"OnFailure\", \"Never\"";
        causes.push(required(&format!("{at}.restartPolicy"), detail));
    }
}

/// Appends the faults of the selector of a Job, which is made of its uid unless it is given by hand.
fn selection(job: &Value, causes: &mut Vec<Cause>) {
    let spec = &job["spec"];
    let selector = &spec["selector"];
    if selector.is_null() {
        causes.push(required("spec.selector", ""));
    }
    let (uid, name) = (&job["metadata"]["uid"], &job["metadata"]["name"]);
    let own = json!({"metadata": {"labels": {
        "controller-uid": uid, "batch.kubernetes.io/controller-uid": uid,
        "job-name": name, "batch.kubernetes.io/job-name": name,
    }}});
    let is_given = selector.is_null() || spec["manualSelector"] == true;
    if !is_given && !selectors::selects(selector, &own) {
        causes.push(invalid_value("spec.selector", selector, "`selector` not auto-generated"));
    }
    let is_selected = !selector.is_null() && selectors::selects(selector, &spec["template"]);
    if fields::is_selector(selector) && !is_selected {
        let labels = &spec["template"]["metadata"]["labels"];
        let why = "`selector` does not match template `labels`";
        causes.push(invalid_value("spec.template.metadata.labels", labels, why));
    }
}

/// Appends the faults of a `CronJob`.
fn cron_job(spec: &Value, causes: &mut Vec<Cause>) {
    let template = &spec["jobTemplate"]["spec"]["template"];
    pod::template(template, "spec.jobTemplate.spec.template", causes);
    restarts(&template["spec"], "spec.jobTemplate.spec.template.spec", causes);
    let zone = spec["timeZone"].as_str();
    // Without a table of zones on this machine no zone can be told from another.
    let knows_zones = !jiff::tz::db().is_definitively_empty();
    if let Some(zone) = zone.filter(|zone| knows_zones && TimeZone::get(zone).is_err()) {
        let detail = format!("unknown time zone {zone}");
        causes.push(invalid_value("spec.timeZone", &zone.into(), &detail));
    }
    let schedule = spec["schedule"].as_str().unwrap_or_default();
    if schedule.contains("TZ") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        causes.push(invalid_value("spec.schedule", &schedule.into(), detail));
        return;
    }
    let words: Vec<&str> = schedule.split_whitespace().collect();
    if !schedule.is_empty() && !schedule.starts_with('@') && words.len() != 5 {
        let found = words.join(" ");
        let detail = format!("expected exactly 5 fields, found {}: [{found}]", words.len());
        causes.push(invalid_value("spec.schedule", &schedule.into(), &detail));
    }
}

/// Appends the faults of an autoscaler.
fn autoscaler(spec: &Value, causes: &mut Vec<Cause>) {
    let most = spec["maxReplicas"].as_i64().unwrap_or_default();
    if most < 1 {
        causes.push(required("spec.maxReplicas", "must be set and greater than 0"));
    }
    if most < spec["minReplicas"].as_i64().unwrap_or(1) {
        let detail = "must be greater than or equal to `minReplicas`";
        causes.push(invalid_value("spec.maxReplicas", &most.into(), detail));
    }
    let target = &spec["scaleTargetRef"];
    let version = target["apiVersion"].as_str().unwrap_or_default();
    if version.is_empty() && target["kind"] != "ReplicationController" {
        let detail = "apiVersion must specify API group";
        causes.push(invalid_value("spec.scaleTargetRef.apiVersion", &version.into(), detail));
    }
    let directions = ["scaleUp", "scaleDown"].into_iter().filter(|_| spec["behavior"].is_object());
    for direction in directions {
        // Missing ones have got defaults: this list was empty, and the types have dropped it.
        if is_empty(&spec["behavior"][direction]["policies"]) {
            let at = format!("spec.behavior.{direction}.policies");
            causes.push(required(&at, "must specify at least one Policy"));
        }
    }
}

/// Appends the faults of a budget.
fn budget(spec: &Value, causes: &mut Vec<Cause>) {
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

/// Appends the faults of an Ingress.
fn ingress(spec: &Value, causes: &mut Vec<Cause>) {
    if is_empty(&spec["defaultBackend"]) && is_empty(&spec["rules"]) {
        let detail = "either `defaultBackend` or `rules` must be specified";
        causes.push(invalid_value("spec", &Value::Null, detail));
    }
    if spec["defaultBackend"].is_object() {
        backend(&spec["defaultBackend"], "spec.defaultBackend", causes);
    }
    for (index, rule) in spec["rules"].as_array().into_iter().flatten().enumerate() {
        for (number, path) in rule["http"]["paths"].as_array().into_iter().flatten().enumerate() {
            let at = format!("spec.rules[{index}].http.paths[{number}]");
            let text = path["path"].as_str().unwrap_or_default();
            if !is_empty(&path["pathType"]) && !text.is_empty() && !text.starts_with('/') {
                let at = format!("{at}.path");
                causes.push(invalid_value(&at, &text.into(), "must be an absolute path"));
            }
            backend(&path["backend"], &format!("{at}.backend"), causes);
        }
    }
}

/// Appends the faults of an Ingress's backend.
fn backend(backend: &Value, at: &str, causes: &mut Vec<Cause>) {
    let service = &backend["service"];
    if !service.is_object() && !backend["resource"].is_object() {
        let detail = "resource or service backend is required";
        causes.push(invalid_value(at, &"".into(), detail));
    } else if service.is_object()
        && is_empty(&service["port"]["number"])
        && is_empty(&service["port"]["name"])
    {
        causes.push(required(at, "port name or number is required"));
    }
}

/// Appends the faults of the peers of a `NetworkPolicy`.
fn policy(spec: &Value, causes: &mut Vec<Cause>) {
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in spec[direction].as_array().into_iter().flatten().enumerate() {
            for (number, peer) in rule[peers].as_array().into_iter().flatten().enumerate() {
                let at = format!("spec.{direction}[{index}].{peers}[{number}]");
                if is_empty(peer) {
                    causes.push(required(&at, "must specify a peer"));
                }
                if peer["ipBlock"].is_object() {
                    block(&peer["ipBlock"], &format!("{at}.ipBlock"), causes);
                }
            }
        }
    }
}

/// Appends the faults of a block of addresses, whose exceptions are in it.
fn block(block: &Value, at: &str, causes: &mut Vec<Cause>) {
    let text = block["cidr"].as_str().unwrap_or_default();
    let at_cidr = format!("{at}.cidr");
    if text.is_empty() {
        causes.push(required(&at_cidr, ""));
        return;
    }
    let Some(whole) = network(text) else {
        causes.push(invalid_value(&at_cidr, &text.into(), NO_NETWORK));
        return;
    };
    for (index, item) in block["except"].as_array().into_iter().flatten().enumerate() {
        let at = format!("{at}.except[{index}]");
        let part = item.as_str().unwrap_or_default();
        match network(part) {
            None => causes.push(invalid_value(&at, item, NO_NETWORK)),
            Some(part) if !whole.holds(part) => {
                let detail = format!("must be a strict subset of `cidr` {text}");
                causes.push(invalid_value(&at, item, &detail));
            }
            Some(_) => {}
        }
    }
}

/// Text about what is no block of addresses.
const NO_NETWORK: &str = "must be a valid CIDR value, (e.g. ADDRESS/24 or 2001:db8::/64)";

/// A block of addresses: the family's bits, the address and the length of the prefix.
#[derive(Clone, Copy)]
struct Network(u32, u128, u32);

impl Network {
    /// Whether another block is a smaller part of this one.
    fn holds(self, other: Network) -> bool {
        let cut = |address: u128| address.checked_shr(self.0 - self.2).unwrap_or(0);
        self.0 == other.0 && self.2 < other.2 && cut(self.1) == cut(other.1)
    }
}

/// Reads a block of addresses.
fn network(text: &str) -> Option<Network> {
    let (address, length) = text.split_once('/')?;
    let length = length.parse().ok()?;
    let (bits, address) = match address.parse().ok()? {
        IpAddr::V4(address) => (32, u128::from(u32::from(address))),
        IpAddr::V6(address) => (128, u128::from(address)),
    };
    (length <= bits).then_some(Network(bits, address, length))
}
