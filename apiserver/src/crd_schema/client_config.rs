//! Checks of the settings of webhooks: of `clientConfig`, and of the versions of reviews.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::go;
use crate::names;
use crate::served::Cause;
use crate::status::{invalid_value, required};

/// Versions of reviews that the server knows.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// End of the texts about a URL.
const FORM: &str = "; desired format: https://host[/path]";

/// Appends the faults of the versions of reviews that a webhook knows; `missing` is the detail of
/// the fault that there are none.
pub(crate) fn check_versions(versions: &Value, at: &str, missing: &str, causes: &mut Vec<Cause>) {
    let list = versions.as_array().into_iter().flatten().filter_map(Value::as_str);
    let list: Vec<&str> = list.collect();
    if list.is_empty() {
        return causes.push(required(at, missing));
    }
    let mut seen = BTreeSet::new();
    for (index, version) in list.iter().enumerate() {
        let at = format!("{at}[{index}]");
        if !seen.insert(version) {
            causes.push(invalid_value(&at, &(*version).into(), "duplicate version"));
        } else if !is_dns_1035(version) {
            let detail = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
            causes.push(invalid_value(&at, &(*version).into(), detail));
        }
    }
    if !list.iter().any(|version| VERSIONS.contains(version)) {
        let detail = format!("must include at least one of {}", VERSIONS.join(", "));
        causes.push(invalid_value(at, versions, &detail));
    }
}

/// Whether a text begins with a lower-case letter and consists of those, digits and inner hyphens.
fn is_dns_1035(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.ends_with(fits)
        && text.chars().all(|c| fits(c) || c == '-')
}

/// Appends the faults of the address of a webhook.
pub(crate) fn check(config: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (url, service) = (config["url"].as_str(), &config["service"]);
    match (url, service.is_object()) {
        (Some(url), false) => address(url, &format!("{at}.url"), causes),
        (None, true) => check_service(service, &format!("{at}.service"), causes),
        _ => causes.push(required(at, "exactly one of url or service is required")),
    }
}

/// Appends the faults of a URL.
fn address(url: &str, at: &str, causes: &mut Vec<Cause>) {
    let mut invalid = |value: &str, detail: &str| {
        causes.push(invalid_value(at, &value.into(), detail));
    };
    if url.starts_with(':') {
        let why = format!("parse {}: missing protocol scheme", go::quote(url));
        return causes.push(required(at, &format!("url must be a valid URL: {why}{FORM}")));
    }
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
    if scheme != "https" {
        invalid(scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() {
        invalid("", &format!("host must be specified{FORM}"));
    }
    let others = [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ];
    for (value, detail) in others {
        if !value.is_empty() {
            invalid(value, detail);
        }
    }
}

/// Appends the faults of a reference to a Service.
fn check_service(service: &Value, at: &str, causes: &mut Vec<Cause>) {
    // Upstream confuses the two: the fault of each is reported at the other.
    for (field, reported) in [("namespace", "name"), ("name", "namespace")] {
        if service[field].as_str().unwrap_or_default().is_empty() {
            causes.push(required(&format!("{at}.{reported}"), ""));
        }
    }
    if let Some(port) = service["port"].as_i64().filter(|port| !(1..=65535).contains(port)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        causes.push(invalid_value(&format!("{at}.port"), &port.into(), detail));
    }
    let path = service["path"].as_str().unwrap_or_default();
    let at = format!("{at}.path");
    let mut invalid = |detail: &str| causes.push(invalid_value(&at, &path.into(), detail));
    match path {
        "" | "/" => return,
        "//" => return invalid("segment[0] may not be empty"),
        _ => {}
    }
    if !path.starts_with('/') {
        invalid("must start with a '/'");
    }
    // Upstream drops the first character of any kind.
    let mut rest = path.chars();
    rest.next();
    let steps = rest.as_str();
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (index, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            invalid(&format!("segment[{index}] may not be empty"));
            continue;
        }
        for why in names::subdomain(step) {
            invalid(&format!("segment[{index}]: {why}"));
        }
    }
}
