//! Checks of probes, of the handlers of a container's start and end, and of the ports they use.

use serde_json::Value;

use super::{integer, items, named, text};
use crate::kinds::validate::fields::is_empty;
use crate::served::Cause;
use crate::status::{forbidden_field, invalid_value, required, unsupported};

/// Handlers, in the order in which the server looks at them.
const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
/// Longest name of a port.
const LONGEST: usize = 15;

/// Appends the faults of a probe of a kind, such as `livenessProbe`.
pub(super) fn probe(
    kind: &str,
    probe: &Value,
    grace_of_pod: Option<i64>,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    check(probe, grace_of_pod, at, causes);
    for field in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        if integer(probe, field) < 0 {
            let why = "must be greater than or equal to 0";
            causes.push(invalid_value(&format!("{at}.{field}"), &probe[field], why));
        }
    }
    let grace = &probe["terminationGracePeriodSeconds"];
    let at_grace = format!("{at}.terminationGracePeriodSeconds");
    if grace.as_i64().is_some_and(|seconds| seconds <= 0) {
        causes.push(invalid_value(&at_grace, grace, "must be greater than 0"));
    }
    if kind == "readinessProbe" {
        if !grace.is_null() {
            causes.push(invalid_value(&at_grace, grace, "must not be set for readinessProbes"));
        }
    } else if probe["successThreshold"].as_i64().is_some_and(|count| count != 1) {
        let count = &probe["successThreshold"];
        causes.push(invalid_value(&format!("{at}.successThreshold"), count, "must be 1"));
    }
}

/// Appends the faults of a handler, of which there is exactly one; `grace` is the time for an orderly
/// end of the Pod.
pub(super) fn check(handler: &Value, grace: Option<i64>, at: &str, causes: &mut Vec<Cause>) {
    let mut held = HANDLERS.into_iter().filter(|name| handler[*name].is_object());
    let Some(first) = held.next() else {
        causes.push(required(at, "must specify a handler type"));
        return;
    };
    one(first, &handler[first], &format!("{at}.{first}"), causes);
    let seconds = integer(&handler[first], "seconds");
    if let Some(grace) = grace.filter(|grace| first == "sleep" && !(0..=*grace).contains(&seconds))
    {
        let why =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        causes.push(invalid_value(&format!("{at}.sleep"), &seconds.into(), &why));
    }
    for more in held {
        let why = "may not specify more than 1 handler type";
        causes.push(forbidden_field(&format!("{at}.{more}"), why));
    }
}

/// Appends the faults of a handler.
fn one(name: &str, handler: &Value, at: &str, causes: &mut Vec<Cause>) {
    match name {
        "exec" if is_empty(&handler["command"]) => {
            causes.push(required(&format!("{at}.command"), ""));
        }
        "httpGet" => {
            port(&handler["port"], &format!("{at}.port"), causes);
            let scheme = text(handler, "scheme");
            if !scheme.is_empty() && !["HTTP", "HTTPS"].contains(&scheme) {
                causes.push(unsupported(&format!("{at}.scheme"), scheme, &["HTTP", "HTTPS"]));
            }
            for (_, header) in items(&handler["httpHeaders"]) {
                let name = text(header, "name");
                let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                if name.is_empty() || !name.bytes().all(is_letter) {
                    let why = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. \
                               'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
                    causes.push(invalid_value(&format!("{at}.httpHeaders"), &name.into(), why));
                }
            }
        }
        "tcpSocket" | "grpc" => port(&handler["port"], &format!("{at}.port"), causes),
        _ => {}
    }
}

/// Appends the faults of a port's number or name.
fn port(value: &Value, at: &str, causes: &mut Vec<Cause>) {
    match value.as_str() {
        Some(name) => named(port_name(name), name, at, causes),
        None => port_number(value.as_i64().unwrap_or_default(), at, causes),
    }
}

/// Appends the fault of a port's number.
pub(super) fn port_number(number: i64, at: &str, causes: &mut Vec<Cause>) {
    if !(1..=65535).contains(&number) {
        causes.push(invalid_value(at, &number.into(), "must be between 1 and 65535, inclusive"));
    }
}

/// Returns the faults of a port's name.
pub(in crate::kinds::validate) fn port_name(name: &str) -> Vec<String> {
    let is_letter = |letter: char| letter.is_ascii_lowercase();
    let is_inside = |letter: char| is_letter(letter) || letter.is_ascii_digit() || letter == '-';
    let mut faults = Vec::new();
    if name.len() > LONGEST {
        faults.push(format!("must be no more than {LONGEST} characters"));
    }
    let rules = [
        (
            !name.is_empty() && name.chars().all(is_inside),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (name.contains(is_letter), "must contain at least one letter (a-z)"),
        (!name.contains("--"), "must not contain consecutive hyphens"),
        (!name.starts_with('-') && !name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    faults.extend(rules.iter().filter(|(holds, _)| !holds).map(|(_, why)| (*why).to_owned()));
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(kind: &str, value: Value) -> Vec<String> {
        let mut causes = Vec::new();
        probe(kind, &value, Some(30), "p", &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn a_probe_has_one_handler_with_a_port() {
        assert_eq!(fields("livenessProbe", json!({"tcpSocket": {"port": "web"}})), [""; 0]);
        assert_eq!(fields("livenessProbe", json!({})), ["p"]);
        assert_eq!(fields("livenessProbe", json!({"grpc": {}})), ["p.grpc.port"]);
        let two = json!({"exec": {}, "tcpSocket": {"port": 1}});
        assert_eq!(fields("startupProbe", two), ["p.exec.command", "p.tcpSocket"]);
    }

    #[test]
    fn only_readiness_takes_several_successes_and_no_grace() {
        let twice = json!({"exec": {"command": ["a"]}, "successThreshold": 2});
        assert_eq!(fields("readinessProbe", twice.clone()), [""; 0]);
        assert_eq!(fields("livenessProbe", twice), ["p.successThreshold"]);
        let grace = json!({"exec": {"command": ["a"]}, "terminationGracePeriodSeconds": 1});
        assert_eq!(fields("livenessProbe", grace.clone()), [""; 0]);
        assert_eq!(fields("readinessProbe", grace), ["p.terminationGracePeriodSeconds"]);
    }
}
