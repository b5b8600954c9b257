//! Checks of the resources that containers request.

use serde_json::Value;

use super::named;
use crate::kinds::quantity::Quantity;
use crate::kinds::validate::amounts;
use crate::names;
use crate::served::Cause;
use crate::status::{invalid_value, required};

/// Resources of containers without a domain.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Appends the faults of the resources of a container.
pub(super) fn check(resources: &Value, at: &str, causes: &mut Vec<Cause>) {
    for part in ["limits", "requests"] {
        for (name, amount) in resources[part].as_object().into_iter().flatten() {
            let at = format!("{at}.{part}[{name}]");
            resource(name, &at, causes);
            quantity(name, amount, &at, causes);
        }
    }
    let limits = &resources["limits"];
    for (name, request) in resources["requests"].as_object().into_iter().flatten() {
        let limit = limits.get(name);
        if limit.is_none() && !may_exceed(name) {
            let why = "Limit must be set for non overcommitable resources";
            causes.push(required(&format!("{at}.limits"), why));
        }
        let held = Quantity::parse(request).zip(limit.and_then(Quantity::parse));
        let Some((held, limit)) = held else { continue };
        let why = if held != limit && !may_exceed(name) {
            format!("must be equal to {name} limit of {limit}")
        } else if held > limit {
            format!("must be less than or equal to {name} limit of {limit}")
        } else {
            continue;
        };
        causes.push(invalid_value(&format!("{at}.requests"), &held.to_string().into(), &why));
    }
}

/// Whether all containers of a node together may be promised more of a resource than there is.
fn may_exceed(name: &str) -> bool {
    is_native(name) && !name.starts_with("hugepages-")
}

/// Whether a resource is native to Kubernetes.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Appends the faults of the name of a resource.
fn resource(name: &str, at: &str, causes: &mut Vec<Cause>) {
    let faults = names::qualified(name);
    let is_named = faults.is_empty();
    named(faults, name, at, causes);
    let mut refuse = |why: &str| causes.push(invalid_value(at, &name.into(), why));
    if name.contains('/') {
        let is_short = names::qualified(&format!("requests.{name}")).is_empty();
        if !is_native(name) && (name.starts_with("requests.") || !is_short) {
            refuse("doesn't follow extended resource name standard");
        }
        return;
    }
    if is_named && !amounts::is_known(name) {
        refuse("must be a standard resource type or fully qualified");
    }
    if !STANDARD.contains(&name) && !name.starts_with("hugepages-") {
        refuse("must be a standard resource for containers");
    }
}

/// Appends the faults of an amount.
fn quantity(name: &str, amount: &Value, at: &str, causes: &mut Vec<Cause>) {
    let Some(held) = Quantity::parse(amount) else { return };
    // Shown as a text, also where an apply sent a number.
    let amount = match amount {
        Value::Number(number) => &Value::String(number.to_string()),
        other => other,
    };
    if held.is_negative() {
        causes.push(invalid_value(at, amount, "must be greater than or equal to 0"));
    }
    let is_counted = amounts::is_counted(name) || !is_native(name);
    if is_counted && !held.is_whole() {
        causes.push(invalid_value(at, amount, "must be an integer"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(resources: Value) -> Vec<String> {
        let mut causes = Vec::new();
        check(&resources, "r", &mut causes);
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn requests_do_not_exceed_limits() {
        assert_eq!(faults(json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}})), [""; 0]);
        let why = "Invalid value: \"2\": must be less than or equal to cpu limit of 1";
        let found = faults(json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}));
        assert_eq!(found, [format!("r.requests: {why}")]);
    }

    #[test]
    fn resources_have_known_names_or_a_domain() {
        assert_eq!(faults(json!({"limits": {"example.com/gpu": "1"}})), [""; 0]);
        assert_eq!(faults(json!({"limits": {"nope": "1"}})).len(), 2);
        assert_eq!(faults(json!({"limits": {"pods": "1"}})).len(), 1);
        let found = faults(json!({"requests": {"example.com/gpu": "1500m"}}));
        assert!(found[0].ends_with("must be an integer"));
        assert!(found[1].ends_with("Limit must be set for non overcommitable resources"));
    }
}
