//! Cells of kinds that hold or bound the resources of others: volumes, templates of Pods, quotas.

use serde_json::{Value, json};

use super::human::labels;

/// Returns the short forms of access modes, separated by commas.
pub(super) fn modes(list: &Value) -> String {
    let short = |mode: &Value| match mode.as_str() {
        Some("ReadWriteOnce") => "RWO",
        Some("ReadOnlyMany") => "ROX",
        Some("ReadWriteMany") => "RWX",
        Some("ReadWriteOncePod") => "RWOP",
        _ => "",
    };
    let modes: Vec<&str> = list.as_array().into_iter().flatten().map(short).collect();
    modes.join(",")
}

/// Returns the cells of a volume between name and age.
pub(super) fn volume(o: &Value) -> Vec<Value> {
    let (spec, status) = (&o["spec"], &o["status"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let terminating = o["metadata"]["deletionTimestamp"].is_string();
    let phase = if terminating { "Terminating".to_owned() } else { text(&status["phase"]) };
    let claim = &spec["claimRef"];
    let claim = match claim.is_object() {
        true => format!("{}/{}", text(&claim["namespace"]), text(&claim["name"])),
        false => String::new(),
    };
    let class = text(&spec["volumeAttributesClassName"]);
    vec![
        json!(text(&spec["capacity"]["storage"])),
        json!(modes(&spec["accessModes"])),
        json!(text(&spec["persistentVolumeReclaimPolicy"])),
        json!(phase),
        json!(claim),
        json!(self::class(o)),
        json!(if class.is_empty() { "<unset>".to_owned() } else { class }),
        json!(text(&status["reason"])),
    ]
}

/// Returns the storage class of a volume or claim: that of the older annotation counts first.
pub(super) fn class(o: &Value) -> &str {
    let older = &o["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    older.as_str().or(o["spec"]["storageClassName"].as_str()).unwrap_or_default()
}

/// Returns the cells of a template of Pods, without the name.
pub(super) fn template(o: &Value) -> Vec<Value> {
    let template = &o["template"];
    let containers = template["spec"]["containers"].as_array();
    let each = |field: &str| {
        let all = containers.into_iter().flatten().filter_map(|one| one[field].as_str());
        all.collect::<Vec<_>>().join(",")
    };
    vec![json!(each("name")), json!(each("image")), json!(labels(&template["metadata"]["labels"]))]
}

/// Returns the cells of a quota between name and age: use and bound of requests, and of limits.
pub(super) fn quota(o: &Value) -> Vec<Value> {
    let status = &o["status"];
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, hard) in status["hard"].as_object().into_iter().flatten() {
        let text = |value: &Value| value.as_str().unwrap_or("0").to_owned();
        let shown = format!("{name}: {}/{}", text(&status["used"][name]), text(hard));
        if name.starts_with("limits") { limits.push(shown) } else { requests.push(shown) }
    }
    vec![json!(requests.join(", ")), json!(limits.join(", "))]
}
