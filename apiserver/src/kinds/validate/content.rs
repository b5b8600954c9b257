//! Checks of kinds of the core group, and of events.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::fields::is_empty;
use super::services;
use crate::go;
use crate::kinds::Kind;
use crate::names;
use crate::served::Cause;
use crate::status::{invalid_value, required};

/// Key of the credentials of registries in a Secret.
const DOCKER: &str = ".dockerconfigjson";

/// Appends the faults of an object.
pub(super) fn check(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    match kind.name() {
        "ConfigMap" => keys(object, causes),
        "Secret" => {
            keys(object, causes);
            secret(object, causes);
        }
        "Service" => services::check(&object["spec"], causes),
        "PersistentVolumeClaim"
            if is_empty(&object["spec"]["resources"]["requests"]["storage"]) =>
        {
            causes.push(required("spec.resources[storage]", ""));
        }
        "Event" if kind.served.group.is_empty() => event(object, causes),
        "Event" => new_event(object, causes),
        _ => {}
    }
}

/// Appends the fault of a certificate request that is no such request in PEM.
pub(super) fn request(request: &Value, causes: &mut Vec<Cause>) {
    let bytes = request.as_str().map(|text| STANDARD.decode(text).unwrap_or_default());
    let begin = b"-----BEGIN CERTIFICATE REQUEST-----";
    if !bytes.is_some_and(|bytes| bytes.windows(begin.len()).any(|part| part == begin)) {
        let detail = "PEM block type must be CERTIFICATE REQUEST";
        causes.push(invalid_value("spec.request", request, detail));
    }
}

/// Appends the fault of a slice of devices that does not say of which nodes they are.
pub(super) fn slice(spec: &Value, causes: &mut Vec<Cause>) {
    let names = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];
    let set: Vec<&str> = names.into_iter().filter(|name| !spec[*name].is_null()).collect();
    let detail = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is \
                  required";
    if set.is_empty() {
        causes.push(required("spec", detail));
    } else if set.len() > 1 {
        let shown = format!("{{{}}}", set.join(", "));
        let detail = format!("{detail}, but multiple fields are set");
        causes.push(invalid_value("spec", &shown.into(), &detail));
    }
}

/// Returns the faults of a key of data.
pub(super) fn key_faults(key: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if key.len() > 253 {
        faults.push("must be no more than 253 characters".to_owned());
    }
    if !key.bytes().all(is_letter) || key.is_empty() {
        let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
                   (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
                   '[-._a-zA-Z0-9]+')";
        faults.push(why.to_owned());
    }
    let why = match key {
        "." => "must not be '.'",
        ".." => "must not be '..'",
        other if other.starts_with("..") => "must not start with '..'",
        _ => return faults,
    };
    faults.push(why.to_owned());
    faults
}

/// Appends the faults of the keys of data.
fn keys(object: &Value, causes: &mut Vec<Cause>) {
    for part in ["data", "binaryData"] {
        for key in object[part].as_object().into_iter().flatten().map(|(key, _)| key) {
            let at = format!("{part}[{key}]");
            let faults = key_faults(key).into_iter();
            causes.extend(faults.map(|why| invalid_value(&at, &key.as_str().into(), &why)));
        }
    }
    for key in object["binaryData"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if object["data"].get(key).is_some() {
            let detail = "duplicate of key present in binaryData";
            causes.push(invalid_value(&format!("data[{key}]"), &key.as_str().into(), detail));
        }
    }
}

/// Appends the faults of a Secret whose type needs certain keys.
fn secret(object: &Value, causes: &mut Vec<Cause>) {
    let has = |key: &str| object["data"].get(key).is_some();
    let needed: &[&str] = match object["type"].as_str().unwrap_or_default() {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/dockerconfigjson" => &[DOCKER],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            &["username", "password"]
        }
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            if is_empty(&object["metadata"]["annotations"][key]) {
                causes.push(required(&format!("metadata.annotations[{key}]"), ""));
            }
            return;
        }
        _ => return,
    };
    let missing = needed.iter().filter(|key| !has(key));
    causes.extend(missing.map(|key| required(&format!("data[{key}]"), "")));
    if needed == [DOCKER] && has(DOCKER) {
        let text = object["data"][DOCKER].as_str().unwrap_or_default();
        let bytes = STANDARD.decode(text).unwrap_or_default();
        if let Err(error) = serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes) {
            let why = go::json_error(&error, &bytes);
            let at = format!("data[{DOCKER}]");
            causes.push(invalid_value(&at, &"<secret contents redacted>".into(), &why));
        }
    }
}

/// Appends the fault of the namespace of an event's subject.
fn subject_namespace(object: &Value, subject: &Value, causes: &mut Vec<Cause>) {
    let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let named = subject["namespace"].as_str().unwrap_or_default();
    // Events about cluster-wide objects are in the default namespace. Those of the newer form are not
    // compared with the namespace that they name.
    let is_new = !is_empty(&object["eventTime"]);
    let fits = match named.is_empty() {
        true => own == "default" || is_new && own == "kube-system",
        false => is_new || named == own,
    };
    if !fits {
        let detail = "does not match event.namespace";
        causes.push(invalid_value("involvedObject.namespace", &named.into(), detail));
    }
}

/// Appends the faults of an event of the core group.
fn event(object: &Value, causes: &mut Vec<Cause>) {
    subject_namespace(object, &object["involvedObject"], causes);
    if is_empty(&object["eventTime"]) {
        return;
    }
    reporter(object, "reportingComponent", causes);
    for field in ["reportingInstance", "action", "reason"] {
        if is_empty(&object[field]) {
            causes.push(required(field, ""));
        }
    }
}

/// Appends the faults of the reporter of an event.
fn reporter(object: &Value, field: &str, causes: &mut Vec<Cause>) {
    let name = object[field].as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(required(field, ""));
    }
    let faults = names::qualified(name);
    causes.extend(faults.iter().map(|why| invalid_value(field, &name.into(), why)));
}

/// Appends the faults of an event of the group events.k8s.io.
fn new_event(object: &Value, causes: &mut Vec<Cause>) {
    subject_namespace(object, &object["regarding"], causes);
    if is_empty(&object["eventTime"]) {
        causes.push(required("eventTime", ""));
    }
    let kind = object["type"].as_str().unwrap_or_default();
    if !is_empty(&object["eventTime"]) {
        reporter(object, "reportingController", causes);
        for field in ["reportingInstance", "action", "reason"] {
            if is_empty(&object[field]) {
                causes.push(required(field, ""));
            }
        }
    }
    for (field, shown, most) in [
        ("reportingInstance", "reportingInstance", 128),
        ("action", "action", 128),
        ("reason", "reason", 128),
        ("note", "message", 1024),
    ] {
        if object[field].as_str().is_some_and(|text| text.len() > most) {
            let detail = format!("can have at most {most} characters");
            causes.push(invalid_value(shown, &"".into(), &detail));
        }
    }
    if kind != "Normal" && kind != "Warning" {
        causes.push(invalid_value("type", &"".into(), &format!("has invalid value: {kind}")));
    }
    let series = &object["series"];
    if series.is_object() {
        if series["count"].as_i64().unwrap_or_default() < 2 {
            causes.push(invalid_value("series.count", &"".into(), "should be at least 2"));
        }
        if is_empty(&series["lastObservedTime"]) {
            causes.push(required("series.lastObservedTime", ""));
        }
    }
    if !is_empty(&object["deprecatedCount"]) {
        causes.push(invalid_value("count", &"".into(), "needs to be unset"));
    }
}
