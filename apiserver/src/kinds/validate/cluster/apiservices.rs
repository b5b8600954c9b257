//! Checks of `APIServices`.

use serde_json::{Value, json};

use super::text;
use crate::kinds::validate::fields::named;
use crate::names;
use crate::served::Cause;
use crate::status::{invalid_value, required};

/// Text about a label that does not begin with a letter, or has other letters.
const OLDER_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
/// Largest priority of a group.
const MOST_GROUP: i64 = 20_000;
/// Largest priority of a version.
const MOST_VERSION: i64 = 1_000;

/// Appends the faults of an object.
pub(super) fn check(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    let wanted = format!("{version}.{group}");
    for field in ["generateName", "name"] {
        let name = &object["metadata"][field];
        let text = name.as_str().unwrap_or_default();
        if !text.is_empty() && names::path(text).is_empty() && text != wanted {
            let why = format!("must be `spec.version+\".\"+spec.group`: {wanted:?}");
            causes.push(invalid_value(&format!("metadata.{field}"), name, &why));
        }
    }
    if group.is_empty() && version != "v1" {
        let why = "only v1 may have an empty group and it better be legacy kube";
        causes.push(required("spec.group", why));
    }
    if !group.is_empty() {
        named(names::subdomain(group), &group.into(), "spec.group", causes);
    }
    if !is_older_label(version) {
        causes.push(invalid_value("spec.version", &version.into(), OLDER_LABEL));
    }
    for (field, most) in [("groupPriorityMinimum", MOST_GROUP), ("versionPriority", MOST_VERSION)] {
        let held = spec[field].as_i64().unwrap_or_default();
        if held <= 0 || held > most {
            let why = format!("must be positive and less than {most}");
            causes.push(invalid_value(&format!("spec.{field}"), &held.into(), &why));
        }
    }
    if spec["service"].is_object() { remote(spec, causes) } else { local(spec, causes) }
}

/// Whether a text is a label of RFC 1035, which begins with a letter.
fn is_older_label(text: &str) -> bool {
    names::label(text).is_empty() && text.starts_with(|letter: char| letter.is_ascii_lowercase())
}

/// Whether an object has a bundle of certificates.
fn has_bundle(spec: &Value) -> bool {
    !text(spec, "caBundle").is_empty()
}

/// Appends the faults of an object without another server.
fn local(spec: &Value, causes: &mut Vec<Cause>) {
    if has_bundle(spec) {
        let length = text(spec, "caBundle").trim_end_matches('=').len() * 3 / 4;
        let why = "local APIServices may not have a caBundle";
        causes.push(invalid_value("spec.caBundle", &json!(format!("{length} bytes")), why));
    }
    if spec["insecureSkipTLSVerify"] == true {
        let why = "local APIServices may not have insecureSkipTLSVerify";
        causes.push(invalid_value("spec.insecureSkipTLSVerify", &true.into(), why));
    }
}

/// Appends the faults of an object with the Service of another server.
fn remote(spec: &Value, causes: &mut Vec<Cause>) {
    let service = &spec["service"];
    for field in ["namespace", "name"] {
        if text(service, field).is_empty() {
            causes.push(required(&format!("spec.service.{field}"), ""));
        }
    }
    let port = &service["port"];
    if !port.as_i64().is_some_and(|port| (1..=65_535).contains(&port)) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        causes.push(invalid_value("spec.service.port", port, why));
    }
    if spec["insecureSkipTLSVerify"] == true && has_bundle(spec) {
        let why = "may not be true if caBundle is present";
        causes.push(invalid_value("spec.insecureSkipTLSVerify", &true.into(), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_service_is_named_after_its_version_and_group() {
        let faults = |metadata: Value| {
            let mut causes = Vec::new();
            let spec = json!({"group": "x.io", "version": "v1", "groupPriorityMinimum": 1,
                "versionPriority": 1});
            check(&json!({"metadata": metadata, "spec": spec}), &mut causes);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        assert_eq!(faults(json!({"name": "v1.x.io"})), [""; 0]);
        assert_eq!(faults(json!({"name": "v1.y.io"})), ["metadata.name"]);
        assert_eq!(faults(json!({"name": "a/b"})), [""; 0], "told as a path already");
        assert_eq!(faults(json!({})), [""; 0], "told as missing already");
        let generated = json!({"generateName": "v1.x", "name": "v1.x.io"});
        assert_eq!(faults(generated), ["metadata.generateName"]);
    }
}
