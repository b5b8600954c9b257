//! Checks of the resources that containers request.

use serde_json::Value;

use super::named;
use crate::kinds::quantity::Quantity;
use crate::kinds::validate::amounts;
use crate::names;
use crate::served::Cause;
use crate::status::{forbidden_field, invalid_value, required, unsupported};

/// Resources of containers without a domain.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Resources of Pods as a whole.
const OF_POD: [&str; 3] = ["cpu", "hugepages-", "memory"];

/// Appends the faults of the resources of a container.
pub(in crate::kinds::validate) fn check(resources: &Value, at: &str, causes: &mut Vec<Cause>) {
    requirements(resources, at, resource, causes);
}

/// Appends the faults of requests and limits, whose names `judge` checks.
fn requirements(
    resources: &Value,
    at: &str,
    judge: fn(&str, &str, &mut Vec<Cause>),
    causes: &mut Vec<Cause>,
) {
    let (mut has_huge, mut has_basic) = (false, false);
    for part in ["limits", "requests"] {
        for (name, amount) in resources[part].as_object().into_iter().flatten() {
            let at = format!("{at}.{part}[{name}]");
            judge(name, &at, causes);
            quantity(name, amount, &at, causes);
            pages(name, amount, &at, causes);
            has_huge |= name.starts_with("hugepages-");
            has_basic |= ["cpu", "memory"].contains(&name.as_str());
        }
    }
    if has_huge && !has_basic {
        causes.push(forbidden_field(at, "HugePages require cpu or memory"));
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

/// Appends the fault of an amount that is not made of whole pages.
fn pages(name: &str, amount: &Value, at: &str, causes: &mut Vec<Cause>) {
    let Some(size) = name.strip_prefix("hugepages-") else { return };
    let (Some(held), Some(page)) = (Quantity::parse(amount), Quantity::parse(&size.into())) else {
        return;
    };
    if page.is_zero() || !held.is_multiple_of(page) {
        let why = format!("{held} is not positive integer multiple of {name}");
        causes.push(invalid_value(at, &held.to_string().into(), &why));
    }
}

/// Appends the faults of the resources of a Pod as a whole.
pub(super) fn of_pod(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let resources = &spec["resources"];
    if !resources.is_object() {
        return;
    }
    let at = format!("{at}.resources");
    if spec["os"]["name"] == "windows" {
        causes.push(forbidden_field(&at, "may not be set for a windows pod"));
        return;
    }
    if !resources["claims"].is_null() {
        let why = "claims may not be set for Resources at pod-level";
        causes.push(forbidden_field(&format!("{at}.claims"), why));
    }
    requirements(resources, &at, resource_of_pod, causes);
    for (name, amount) in resources["requests"].as_object().into_iter().flatten() {
        let containers = super::items(&spec["containers"]);
        let requests = containers
            .filter_map(|(_, one)| Quantity::parse(&one["resources"]["requests"][name.as_str()]));
        let Some(sum) = requests.reduce(|sum, more| sum + more) else { continue };
        if let Some(held) = Quantity::parse(amount).filter(|held| sum > *held) {
            let why =
                format!("must be greater than or equal to aggregate container requests of {sum}");
            let at = format!("{at}.requests[{name}]");
            causes.push(invalid_value(&at, &held.to_string().into(), &why));
        }
    }
    for (index, one) in super::items(&spec["containers"]) {
        for (name, amount) in one["resources"]["limits"].as_object().into_iter().flatten() {
            let pair =
                Quantity::parse(amount).zip(Quantity::parse(&resources["limits"][name.as_str()]));
            if let Some((held, most)) = pair.filter(|(held, most)| held > most) {
                let at = format!("{at}.containers[{index}][{name}].limits");
                let why = format!("must be less than or equal to pod limits of {most}");
                causes.push(invalid_value(&at, &held.to_string().into(), &why));
            }
        }
    }
}

/// Appends the faults of the name of a resource of a Pod as a whole.
fn resource_of_pod(name: &str, at: &str, causes: &mut Vec<Cause>) {
    let before = causes.len();
    any_resource(name, at, causes);
    let is_known = ["cpu", "memory"].contains(&name) || name.starts_with("hugepages-");
    if causes.len() == before && !is_known {
        causes.push(unsupported(at, name, &OF_POD));
    }
}

/// Appends the faults of the name of a resource of any kind.
pub(in crate::kinds::validate) fn any_resource(name: &str, at: &str, causes: &mut Vec<Cause>) {
    let faults = names::qualified(name);
    let is_named = faults.is_empty();
    named(faults, name, at, causes);
    if is_named && !name.contains('/') && !amounts::is_known(name) {
        let why = "must be a standard resource type or fully qualified";
        causes.push(invalid_value(at, &name.into(), why));
    }
}

/// Whether all containers of a node together may be promised more of a resource than there is.
pub(in crate::kinds::validate) fn may_exceed(name: &str) -> bool {
    is_native(name) && !name.starts_with("hugepages-")
}

/// Whether a resource is native to Kubernetes.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Appends the faults of the name of a resource of a container.
pub(in crate::kinds::validate) fn resource(name: &str, at: &str, causes: &mut Vec<Cause>) {
    any_resource(name, at, causes);
    let mut refuse = |why: &str| causes.push(invalid_value(at, &name.into(), why));
    if name.contains('/') {
        let is_short = names::qualified(&format!("requests.{name}")).is_empty();
        if !is_native(name) && (name.starts_with("requests.") || !is_short) {
            refuse("doesn't follow extended resource name standard");
        }
        return;
    }
    if !STANDARD.contains(&name) && !name.starts_with("hugepages-") {
        refuse("must be a standard resource for containers");
    }
}

/// Appends the faults of an amount.
pub(in crate::kinds::validate) fn quantity(
    name: &str,
    amount: &Value,
    at: &str,
    causes: &mut Vec<Cause>,
) {
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
