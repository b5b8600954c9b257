//! Checks of the containers of a pod spec.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    claims, duplicate, handlers, identities, integer, items, mounts, named, resources, security,
    text, volumes,
};
use crate::kinds::validate::content;
use crate::kinds::validate::fields::is_empty;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Policies for containers that have ended.
const RESTARTS: [&str; 3] = ["Always", "Never", "OnFailure"];
/// Probes of containers.
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// The parts of a pod spec to which containers refer.
struct Pod<'a> {
    /// The valid volumes.
    volumes: &'a BTreeMap<&'a str, &'a Value>,
    /// Names of the claims for devices.
    claims: BTreeSet<&'a str>,
    /// Time for an orderly end, in seconds.
    grace: Option<i64>,
    /// Restart policy: `Always`, `OnFailure` or `Never`.
    restart: &'a str,
}

/// Appends the faults of the containers of a pod spec; `volumes` has the valid volumes by name.
pub(super) fn check(
    spec: &Value,
    at: &str,
    volumes: &BTreeMap<&str, &Value>,
    causes: &mut Vec<Cause>,
) {
    let pod = Pod {
        volumes,
        claims: claims::names_of(spec),
        grace: spec["terminationGracePeriodSeconds"].as_i64(),
        restart: text(spec, "restartPolicy"),
    };
    let mut names = BTreeSet::new();
    let at_containers = format!("{at}.containers");
    if is_empty(&spec["containers"]) {
        causes.push(required(&at_containers, ""));
    }
    let mut ports = BTreeSet::new();
    for (index, container) in items(&spec["containers"]) {
        let at = format!("{at_containers}[{index}]");
        common(container, &at, &pod, causes);
        unique(container, &at, &mut names, causes);
        lively(container, &at, pod.grace, causes);
        restarts(container, &at, causes);
        taken(container, &at, &mut ports, causes);
    }
    let at_first = format!("{at}.initContainers[0]");
    for (index, container) in items(&spec["initContainers"]) {
        let at = format!("{at}.initContainers[{index}]");
        common(container, &at, &pod, causes);
        restarts(container, &at, causes);
        unique(container, &at, &mut names, causes);
        // Init containers run in sequence, so each has all ports; the fault names the first.
        taken(container, &at_first, &mut BTreeSet::new(), causes);
        if container["restartPolicy"] == "Always" {
            lively(container, &at, pod.grace, causes);
            continue;
        }
        for field in ["lifecycle"].into_iter().chain(PROBES) {
            if container[field].is_object() {
                let why = "may not be set for init containers without restartPolicy=Always";
                causes.push(forbidden_field(&format!("{at}.{field}"), why));
            }
        }
    }
}

/// Appends the fault of a name that another container has.
fn unique<'a>(
    container: &'a Value,
    at: &str,
    names: &mut BTreeSet<&'a str>,
    causes: &mut Vec<Cause>,
) {
    let name = text(container, "name");
    if !names.insert(name) {
        causes.push(duplicate(&format!("{at}.name"), name));
    }
}

/// Appends the faults that containers of all kinds have.
fn common(container: &Value, at: &str, pod: &Pod<'_>, causes: &mut Vec<Cause>) {
    let (at_name, name) = (format!("{at}.name"), text(container, "name"));
    if name.is_empty() {
        causes.push(required(&at_name, ""));
    } else {
        named(names::label(name), name, &at_name, causes);
    }
    if text(container, "image").is_empty() {
        causes.push(required(&format!("{at}.image"), ""));
    }
    let policy = text(container, "terminationMessagePolicy");
    let known = ["File", "FallbackToLogsOnError"];
    if !policy.is_empty() && !known.contains(&policy) {
        causes.push(unsupported(&format!("{at}.terminationMessagePolicy"), policy, &known));
    }
    ports(&container["ports"], &format!("{at}.ports"), causes);
    variables(&container["env"], &format!("{at}.env"), causes);
    sources(&container["envFrom"], &format!("{at}.envFrom"), causes);
    mounts::check(container, at, pod.volumes, causes);
    resize(&container["resizePolicy"], &format!("{at}.resizePolicy"), pod.restart, causes);
    let at_resources = format!("{at}.resources");
    resources::check(&container["resources"], &at_resources, causes);
    let claims = &container["resources"]["claims"];
    claims::of_container(claims, &format!("{at_resources}.claims"), &pod.claims, causes);
    let context = &container["securityContext"];
    let at = format!("{at}.securityContext");
    security::profiles(context, &at, causes);
    identities(context, &at, causes);
    volumes::escalation(context, &at, causes);
}

/// Appends the faults of probes and of handlers of a container's start and end.
fn lively(container: &Value, at: &str, grace: Option<i64>, causes: &mut Vec<Cause>) {
    for event in ["postStart", "preStop"] {
        let handler = &container["lifecycle"][event];
        if handler.is_object() {
            handlers::check(handler, grace, &format!("{at}.lifecycle.{event}"), causes);
        }
    }
    for probe in PROBES.iter().filter(|probe| container[**probe].is_object()) {
        handlers::probe(probe, &container[*probe], grace, &format!("{at}.{probe}"), causes);
    }
}

/// Appends the faults of what a change of resources means for a container; the paths lack the
/// position.
fn resize(list: &Value, at: &str, restart: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, policy) in items(list) {
        let name = text(policy, "resourceName");
        if !seen.insert(name) {
            causes.push(duplicate(&format!("{at}[{index}]"), name));
        }
        let action = text(policy, "restartPolicy");
        for (held, known) in
            [(name, ["cpu", "memory"]), (action, ["NotRequired", "RestartContainer"])]
        {
            if held.is_empty() {
                causes.push(required(at, ""));
            } else if !known.contains(&held) {
                causes.push(unsupported(at, held, &known));
            }
        }
        if restart == "Never" && action != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            causes.push(invalid_value(at, &action.into(), why));
        }
    }
}

/// Appends the fault of the policy for a container that has ended.
fn restarts(container: &Value, at: &str, causes: &mut Vec<Cause>) {
    let at_policy = format!("{at}.restartPolicy");
    match container["restartPolicy"].as_str() {
        Some(policy) if !RESTARTS.contains(&policy) => {
            causes.push(unsupported(&at_policy, policy, &RESTARTS));
        }
        None if !is_empty(&container["restartPolicyRules"]) => {
            let why = "must specify restartPolicy when restart rules are used";
            causes.push(required(&at_policy, why));
        }
        _ => {}
    }
    restart_rules(&container["restartPolicyRules"], at, causes);
}

/// Appends the faults of rules about the exit codes of a container.
fn restart_rules(rules: &Value, at: &str, causes: &mut Vec<Cause>) {
    /// Most rules of a container.
    const MOST: usize = 20;
    /// Most exit codes of a rule.
    const MOST_CODES: usize = 255;
    let at = format!("{at}.restartPolicyRules");
    let count = rules.as_array().map_or(0, Vec::len);
    if count > MOST {
        causes.push(too_many(&at, count, MOST));
    }
    for (index, rule) in items(rules) {
        let at = format!("{at}[{index}]");
        let action = text(rule, "action");
        // The second action is a feature that is on by default.
        let known = ["Restart", "RestartAllContainers"];
        if !known.contains(&action) {
            causes.push(unsupported(&format!("{at}.action"), action, &known));
        }
        let (codes, at) = (&rule["exitCodes"], format!("{at}.exitCodes"));
        if !codes.is_object() {
            causes.push(required(&at, "must be specified"));
            continue;
        }
        let operator = text(codes, "operator");
        if !["In", "NotIn"].contains(&operator) {
            causes.push(unsupported(&format!("{at}.operator"), operator, &["In", "NotIn"]));
        }
        let count = codes["values"].as_array().map_or(0, Vec::len);
        if count > MOST_CODES {
            causes.push(too_many(&format!("{at}.values"), count, MOST_CODES));
        }
    }
}

/// Returns the fault of a list with too many items.
fn too_many(at: &str, held: usize, most: usize) -> Cause {
    let message = format!("Too many: {held}: must have at most {most} items");
    cause("FieldValueTooMany", at, message)
}

/// Appends the faults of the ports of a container.
fn ports(ports: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, port) in items(ports) {
        let at = format!("{at}[{index}]");
        let (at_name, name) = (format!("{at}.name"), text(port, "name"));
        let faults = handlers::port_name(name);
        if !name.is_empty() && faults.is_empty() && !seen.insert(name) {
            causes.push(duplicate(&at_name, name));
        }
        if !name.is_empty() {
            named(faults, name, &at_name, causes);
        }
        let number = integer(port, "containerPort");
        if number == 0 {
            causes.push(required(&format!("{at}.containerPort"), ""));
        } else {
            handlers::port_number(number, &format!("{at}.containerPort"), causes);
        }
        let host = integer(port, "hostPort");
        if host != 0 {
            handlers::port_number(host, &format!("{at}.hostPort"), causes);
        }
        let protocol = text(port, "protocol");
        let known = ["SCTP", "TCP", "UDP"];
        if !protocol.is_empty() && !known.contains(&protocol) {
            causes.push(unsupported(&format!("{at}.protocol"), protocol, &known));
        }
    }
}

/// Appends the faults of ports of the node that another container has.
fn taken(container: &Value, at: &str, seen: &mut BTreeSet<String>, causes: &mut Vec<Cause>) {
    for (index, port) in items(&container["ports"]) {
        let host = integer(port, "hostPort");
        let shown = format!("{}/{}/{host}", text(port, "protocol"), text(port, "hostIP"));
        if host != 0 && !seen.insert(shown.clone()) {
            causes.push(duplicate(&format!("{at}.ports[{index}].hostPort"), &shown));
        }
    }
}

/// Appends the faults of the variables of a container.
fn variables(variables: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (index, variable) in items(variables) {
        let at = format!("{at}[{index}]");
        let name = text(variable, "name");
        if name.is_empty() {
            causes.push(required(&format!("{at}.name"), ""));
        }
        named(variable_name(name), name, &format!("{at}.name"), causes);
        let source = &variable["valueFrom"];
        if source.is_object() {
            value_source(source, text(variable, "value"), &format!("{at}.valueFrom"), causes);
        }
    }
}

/// Returns the faults of a variable's name.
fn variable_name(name: &str) -> Vec<String> {
    let is_plain = |letter: char| (' '..='~').contains(&letter) && letter != '=';
    let why = "a valid environment variable name must consist only of printable ASCII characters \
               other than '='";
    if name.chars().all(is_plain) { Vec::new() } else { vec![why.to_owned()] }
}

/// Appends the faults of the source of a variable that has a value, too.
fn value_source(source: &Value, value: &str, at: &str, causes: &mut Vec<Cause>) {
    let reference = &source["fieldRef"];
    if reference.is_object() {
        volumes::variable(reference, &format!("{at}.fieldRef"), causes);
    }
    let reference = &source["resourceFieldRef"];
    if reference.is_object() {
        claims::resource_field(reference, &format!("{at}.resourceFieldRef"), false, causes);
    }
    for field in ["configMapKeyRef", "secretKeyRef"] {
        let reference = &source[field];
        if !reference.is_object() {
            continue;
        }
        let (at, name) = (format!("{at}.{field}"), text(reference, "name"));
        named(names::subdomain(name), name, &format!("{at}.name"), causes);
        let (at, key) = (format!("{at}.key"), text(reference, "key"));
        if key.is_empty() {
            causes.push(required(&at, ""));
        } else {
            named(content::key_faults(key), key, &at, causes);
        }
    }
    let all = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let why = match all.iter().filter(|field| source[**field].is_object()).count() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` \
             or `fileKeyRef`"
        }
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    causes.push(invalid_value(at, &"".into(), why));
}

/// Appends the faults of objects whose keys become variables.
fn sources(sources: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (index, source) in items(sources) {
        let at_item = format!("{at}[{index}]");
        let prefix = text(source, "prefix");
        named(variable_name(prefix), prefix, &format!("{at_item}.prefix"), causes);
        let all = ["configMapRef", "secretRef"];
        let held: Vec<&str> = all.into_iter().filter(|field| source[*field].is_object()).collect();
        for field in &held {
            let (at, name) = (format!("{at_item}.{field}.name"), text(&source[*field], "name"));
            if name.is_empty() {
                causes.push(required(&at, ""));
            } else {
                named(names::subdomain(name), name, &at, causes);
            }
        }
        // Both faults are of the list as a whole, upstream too.
        let why = match held.len() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        causes.push(invalid_value(at, &"".into(), why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(spec: &Value) -> Vec<String> {
        let mut causes = Vec::new();
        let volume = json!({"emptyDir": {}});
        check(spec, "spec", &BTreeMap::from([("v", &volume)]), &mut causes);
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    fn container(field: &str, value: Value) -> Value {
        json!({"containers": [{"name": "c", "image": "i", field: value}]})
    }

    #[test]
    fn names_are_unique_among_containers_of_both_lists() {
        let spec = json!({
            "containers": [{"name": "c", "image": "i"}],
            "initContainers": [{"name": "c", "image": "i", "livenessProbe": {}}],
        });
        assert_eq!(
            faults(&spec),
            [
                "spec.initContainers[0].name: Duplicate value: \"c\"",
                "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init \
                 containers without restartPolicy=Always",
            ]
        );
    }

    #[test]
    fn a_variable_has_one_source() {
        let with =
            |source: Value| faults(&container("env", json!([{"name": "A", "valueFrom": source}])));
        assert_eq!(with(json!({"secretKeyRef": {"name": "s", "key": "k"}})), [""; 0]);
        assert!(with(json!({}))[0].contains("must specify one of"));
        let at = "spec.containers[0].env[0].valueFrom.configMapKeyRef.key: Required value";
        assert_eq!(with(json!({"configMapKeyRef": {"name": "s"}})), [at]);
    }

    #[test]
    fn ports_have_names_with_a_letter() {
        let port = json!([{"containerPort": 80, "name": "80"}, {"containerPort": 70000}]);
        assert_eq!(
            faults(&container("ports", port)),
            [
                "spec.containers[0].ports[0].name: Invalid value: \"80\": must contain at least one \
                 letter (a-z)",
                "spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 \
                 and 65535, inclusive",
            ]
        );
    }
}
