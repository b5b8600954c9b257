//! Checks of kinds of the core group, and of events.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::fields::is_empty;
use super::services;
use crate::go;
use crate::kinds::Kind;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Key of the credentials of registries in a Secret.
const DOCKER: &str = ".dockerconfigjson";

/// Key of the credentials of registries in an older form.
const OLD_DOCKER: &str = ".dockercfg";

/// Appends the faults of an object.
pub(super) fn check(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    match kind.name() {
        "ConfigMap" => keys(object, causes),
        "Secret" => {
            keys(object, causes);
            secret(object, causes);
        }
        "Service" => services::check(object, causes),
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

/// Usages of a certificate.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Appends the faults of the signer, the usages and the time of a certificate request.
pub(super) fn signing(spec: &Value, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, usage) in spec["usages"].as_array().into_iter().flatten().enumerate() {
        let (at, name) = (format!("spec.usages[{index}]"), usage.as_str().unwrap_or_default());
        if !USAGES.contains(&name) {
            causes.push(unsupported(&at, name, &USAGES));
        }
        if !seen.insert(name) {
            causes.push(cause("FieldValueDuplicate", &at, format!("Duplicate value: {usage}")));
        }
    }
    let (at, signer) = ("spec.signerName", spec["signerName"].as_str().unwrap_or_default());
    if signer == "kubernetes.io/legacy-unknown" {
        let why = "the legacy signerName is not allowed via this API version";
        causes.push(invalid_value(at, &signer.into(), why));
    } else if !signer.is_empty() {
        signer_name(signer, at, causes);
    }
    let time = &spec["expirationSeconds"];
    if time.as_i64().is_some_and(|seconds| seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        causes.push(invalid_value("spec.expirationSeconds", time, why));
    }
}

/// Appends the faults of the name of a signer: a domain, a slash and a name.
pub(super) fn signer_name(signer: &str, at: &str, causes: &mut Vec<Cause>) {
    let (domain, path) = match signer.split_once('/') {
        Some((domain, path)) if !path.contains('/') => (domain, path),
        _ => {
            let why =
                "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            causes.push(invalid_value(at, &signer.into(), why));
            return;
        }
    };
    type NameFaults = fn(&str) -> Vec<String>;
    let of_domain: (&str, NameFaults) = (domain, names::label);
    for (part, faults) in [of_domain, (path, names::subdomain)] {
        // Upstream names the first bad label only.
        let bad = part.split('.').find(|label| !faults(label).is_empty());
        for why in bad.map(faults).unwrap_or_default() {
            let label = bad.unwrap_or_default();
            let why = format!("validating label {label:?}: {why}");
            causes.push(invalid_value(at, &part.into(), &why));
        }
    }
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        causes.push(invalid_value(at, &domain.into(), why));
    }
}

/// Appends the faults of a path with a domain before it, such as `acme.io/foo`.
pub(super) fn prefixed_path(text: &str, at: &str, causes: &mut Vec<Cause>) {
    let (domain, path) = text.split_once('/').unwrap_or_default();
    if domain.is_empty() || path.is_empty() {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        causes.push(invalid_value(at, &text.into(), why));
        return;
    }
    let faults = names::subdomain(domain);
    causes.extend(faults.iter().map(|why| invalid_value(at, &domain.into(), why)));
}

/// Appends the faults of a class of priorities.
pub(super) fn priority_class(object: &Value, causes: &mut Vec<Cause>) {
    /// Largest value of classes that are not the server's own.
    const MOST: i64 = 1_000_000_000;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let is_system = ["system-cluster-critical", "system-node-critical"].contains(&name);
    if name.starts_with("system-") && !is_system {
        let why = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: \
             {name} is not a known system priority class"
        );
        causes.push(forbidden_field("metadata.name", &why));
    } else if !is_system && object["value"].as_i64().is_some_and(|value| value > MOST) {
        let why = format!("maximum allowed value of a user defined priority is {MOST}");
        causes.push(forbidden_field("value", &why));
    }
    let known = ["PreemptLowerPriority", "Never"];
    match object["preemptionPolicy"].as_str() {
        Some("") => causes.push(required("preemptionPolicy", "")),
        Some(policy) if !known.contains(&policy) => {
            causes.push(unsupported("preemptionPolicy", policy, &known));
        }
        _ => {}
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
        "kubernetes.io/dockercfg" => &[OLD_DOCKER],
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
    if let Some(key) = needed.first().filter(|key| [DOCKER, OLD_DOCKER].contains(key) && has(key)) {
        let text = object["data"][*key].as_str().unwrap_or_default();
        let bytes = STANDARD.decode(text).unwrap_or_default();
        if let Err(error) = serde_json::from_slice::<serde_json::Map<String, Value>>(&bytes) {
            let why = go::json_error(&error, &bytes);
            let at = format!("data[{key}]");
            causes.push(invalid_value(&at, &"<secret contents redacted>".into(), &why));
        }
    }
}

/// Appends the fault of the namespace of an event's subject.
fn subject_namespace(object: &Value, subject: &Value, causes: &mut Vec<Cause>) {
    let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let named = subject["namespace"].as_str().unwrap_or_default();
    // Events about cluster-wide objects are in the default namespace. Those of the newer form are
    // not compared with the namespace that they name.
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
    for (field, shown) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
    ] {
        if !is_empty(&object[field]) {
            causes.push(invalid_value(shown, &"".into(), "needs to be unset"));
        }
    }
    let source = &object["deprecatedSource"];
    if !is_empty(&source["component"]) || !is_empty(&source["host"]) {
        causes.push(invalid_value("source", &"".into(), "needs to be unset"));
    }
}
