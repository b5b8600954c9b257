//! Checks of security contexts of Pods and containers, of a Pod's operating system, names and
//! namespaces.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{duplicate, items, text};
use crate::kinds::validate::fields::is_empty;
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Appends the faults of profiles and options of a security context.
pub(super) fn profiles(context: &Value, at: &str, causes: &mut Vec<Cause>) {
    let types = ["Localhost", "RuntimeDefault", "Unconfined"];
    let seccomp = &context["seccompProfile"];
    if seccomp.is_object() {
        let shown =
            json!({"Type": seccomp["type"], "LocalhostProfile": seccomp["localhostProfile"]});
        let shown = format!(
            "{{\"Type\":{},\"LocalhostProfile\":{}}}",
            shown["Type"], shown["LocalhostProfile"]
        );
        profile(seccomp, &format!("{at}.seccompProfile"), ("seccomp", &shown), &types, causes);
    }
    let armor = &context["appArmorProfile"];
    if armor.is_object() {
        let shown = armor["localhostProfile"].to_string();
        profile(armor, &format!("{at}.appArmorProfile"), ("AppArmor", &shown), &types, causes);
    }
    let mount = context["procMount"].as_str().filter(|mount| !mount.is_empty());
    if let Some(mount) = mount.filter(|mount| !["Default", "Unmasked"].contains(mount)) {
        causes.push(unsupported(&format!("{at}.procMount"), mount, &["Default", "Unmasked"]));
    }
    if context["windowsOptions"]["runAsUserName"] == "" {
        let at = format!("{at}.windowsOptions.runAsUserName");
        let why = "runAsUserName cannot be an empty string";
        causes.push(invalid_value(&at, &"".into(), why));
    }
}

/// Appends the faults of a profile, which names a file only if the type is that of a file.
fn profile(
    profile: &Value,
    at: &str,
    (kind, shown): (&str, &str),
    types: &[&str],
    causes: &mut Vec<Cause>,
) {
    let (held, file) = (text(profile, "type"), &profile["localhostProfile"]);
    let at_file = format!("{at}.localhostProfile");
    if held.is_empty() {
        let field = if kind == "AppArmor" { "appArmorProfile" } else { "seccompProfile" };
        let why = format!("type is required when {field} is set");
        causes.push(required(&format!("{at}.type"), &why));
        return;
    }
    if !types.contains(&held) {
        causes.push(unsupported(&format!("{at}.type"), held, types));
        return;
    }
    if held == "Localhost" && is_empty(file) {
        let why = format!("must be set when {kind} type is Localhost");
        causes.push(required(&at_file, &why));
    } else if held != "Localhost" && !file.is_null() {
        let why = format!("can only be set when {kind} type is Localhost");
        causes.push(cause("FieldValueInvalid", &at_file, format!("Invalid value: {shown}: {why}")));
    }
}

/// Appends the faults of the security context of a Pod, and of the fields that share namespaces
/// with the node.
pub(super) fn pod(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let context = &spec["securityContext"];
    let at_context = format!("{at}.securityContext");
    profiles(context, &at_context, causes);
    sysctls(&context["sysctls"], &format!("{at_context}.sysctls"), causes);
    for (field, known) in [
        ("fsGroupChangePolicy", &["Always", "OnRootMismatch"][..]),
        ("supplementalGroupsPolicy", &["Merge", "Strict"][..]),
        ("seLinuxChangePolicy", &["Recursive"][..]),
    ] {
        let held = context[field].as_str().filter(|held| !known.contains(held));
        if let Some(held) = held {
            causes.push(unsupported(&format!("{at_context}.{field}"), held, known));
        }
    }
    if spec["shareProcessNamespace"] == true && spec["hostPID"] == true {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        let at = format!("{at_context}.shareProcessNamespace");
        causes.push(invalid_value(&at, &true.into(), why));
    }
    if spec["hostUsers"] == false {
        for field in ["hostNetwork", "hostPID", "hostIPC"] {
            if spec[field] == true {
                let why = "when `hostUsers` is false";
                causes.push(forbidden_field(&format!("{at}.{field}"), why));
            }
        }
    }
    system(spec, at, causes);
}

/// Appends the faults of settings of the kernel.
fn sysctls(list: &Value, at: &str, causes: &mut Vec<Cause>) {
    /// Longest name.
    const LONGEST: usize = 253;
    let mut seen = BTreeSet::new();
    for (index, one) in items(list) {
        let (at, name) = (format!("{at}[{index}].name"), text(one, "name"));
        let is_good = name.len() <= LONGEST && name.split(['.', '/']).all(is_part);
        if name.is_empty() {
            causes.push(required(&at, ""));
        } else if !is_good {
            let why = "must have at most 253 characters and match regex \
                       ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            causes.push(invalid_value(&at, &name.into(), why));
        } else if !seen.insert(name) {
            causes.push(duplicate(&at, name));
        }
    }
}

/// Whether a text is a part of the name of a setting.
fn is_part(text: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(is_end)
        && bytes.last().is_some_and(is_end)
        && bytes.iter().all(|byte| is_end(byte) || b"-_".contains(byte))
}

/// Appends the faults of a Pod's operating system, and of options of another system.
fn system(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let name = text(&spec["os"], "name");
    let context = &spec["securityContext"];
    match name {
        "" => {}
        "linux" => {
            if context["windowsOptions"].is_object() {
                let at = format!("{at}.securityContext.windowsOptions");
                let why = "windows options cannot be set for a linux pod";
                causes.push(forbidden_field(&at, why));
            }
        }
        "windows" => {
            for field in [
                "appArmorProfile",
                "seLinuxOptions",
                "fsGroup",
                "fsGroupChangePolicy",
                "seccompProfile",
                "runAsUser",
                "runAsGroup",
                "supplementalGroups",
            ] {
                if !context[field].is_null() {
                    let at = format!("{at}.securityContext.{field}");
                    causes.push(forbidden_field(&at, "cannot be set for a windows pod"));
                }
            }
        }
        other => causes.push(unsupported(&format!("{at}.os"), other, &["linux", "windows"])),
    }
}

/// Appends the faults of a Pod's settings for the names of hosts.
pub(super) fn names_of_hosts(config: &Value, at: &str, causes: &mut Vec<Cause>) {
    /// Most servers.
    const SERVERS: usize = 3;
    /// Most domains that are searched.
    const SEARCHES: usize = 32;
    let servers = config["nameservers"].as_array().map_or(&[][..], Vec::as_slice);
    if servers.len() > SERVERS {
        let why = format!("must not have more than {SERVERS} nameservers");
        causes.push(invalid_value(&format!("{at}.nameservers"), &config["nameservers"], &why));
    }
    for (index, server) in servers.iter().enumerate() {
        if server.as_str().unwrap_or_default().parse::<std::net::IpAddr>().is_err() {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            causes.push(invalid_value(&format!("{at}.nameservers[{index}]"), server, why));
        }
    }
    let searches = config["searches"].as_array().map_or(&[][..], Vec::as_slice);
    if searches.len() > SEARCHES {
        let why = format!("must not have more than {SEARCHES} search paths");
        causes.push(invalid_value(&format!("{at}.searches"), &config["searches"], &why));
    }
    for (index, search) in searches.iter().enumerate() {
        let domain = search.as_str().unwrap_or_default();
        let domain =
            if domain == "." { domain } else { domain.strip_suffix('.').unwrap_or(domain) };
        if domain != "." && !is_search(domain) {
            let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
                       '_', '-' or '.', and must start and end with an alphanumeric character (e.g. \
                       'example.com', regex used for validation is \
                       '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
            causes.push(invalid_value(&format!("{at}.searches[{index}]"), search, why));
        }
    }
    for (index, option) in items(&config["options"]) {
        if text(option, "name").is_empty() {
            causes.push(required(&format!("{at}.options[{index}]"), "must not be empty"));
        }
    }
}

/// Whether a domain can be searched: the parts may have underscores.
fn is_search(domain: &str) -> bool {
    domain.split('.').all(|part| is_part(part.strip_prefix('_').unwrap_or(part)))
        && names::subdomain(&domain.replace('_', "a")).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(spec: Value) -> Vec<String> {
        let mut causes = Vec::new();
        pod(&spec, "spec", &mut causes);
        causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn profiles_name_a_file_if_and_only_if_they_are_files() {
        let with = |profile: Value| faults(json!({"securityContext": {"seccompProfile": profile}}));
        assert_eq!(with(json!({"type": "RuntimeDefault"})), [""; 0]);
        let at = "spec.securityContext.seccompProfile";
        assert_eq!(
            with(json!({"type": "Localhost"})),
            [format!(
                "{at}.localhostProfile: Required value: must be set when seccomp type is Localhost"
            )]
        );
        assert_eq!(
            with(json!({"type": "RuntimeDefault", "localhostProfile": "x"})),
            [format!(
                "{at}.localhostProfile: Invalid value: {{\"Type\":\"RuntimeDefault\",\"LocalhostProfile\":\"x\"}}: \
             can only be set when seccomp type is Localhost"
            )]
        );
    }

    #[test]
    fn settings_of_the_kernel_are_named_once() {
        let with = |names: &[&str]| {
            let list: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            faults(json!({"securityContext": {"sysctls": list}})).len()
        };
        assert_eq!(with(&["net.ipv4.ip_forward", "kernel/shm_rmid"]), 0);
        assert_eq!(with(&["net.x", "net.x"]), 1);
        assert_eq!(with(&["x y"]), 1);
    }
}
