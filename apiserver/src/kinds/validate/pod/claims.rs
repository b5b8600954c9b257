//! Checks of claims for devices: of a Pod, and of the containers that use them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{duplicate, items, named, text};
use crate::names;
use crate::served::Cause;
use crate::status::{cause, invalid_value, required};
use crate::typed::internal;

/// Appends the faults of the claims of a Pod.
pub(super) fn of_pod(claims: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, claim) in items(claims) {
        let (at, name) = (format!("{at}[{index}]"), text(claim, "name"));
        if name.is_empty() {
            causes.push(required(&format!("{at}.name"), ""));
        } else if !seen.insert(name) {
            causes.push(duplicate(&format!("{at}.name"), name));
        } else {
            named(names::label(name), name, &format!("{at}.name"), causes);
        }
        let fields = ["resourceClaimName", "resourceClaimTemplateName"];
        let held: Vec<&str> =
            fields.into_iter().filter(|field| claim[*field].is_string()).collect();
        let why = match held.len() {
            0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            1 => "",
            _ => {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            }
        };
        if !why.is_empty() {
            let shown = internal::compact("core.PodResourceClaim", claim);
            let message = format!("Invalid value: {shown}: {why}");
            causes.push(cause("FieldValueInvalid", &at, message));
        }
        for field in held {
            let name = text(claim, field);
            named(names::subdomain(name), name, &format!("{at}.{field}"), causes);
        }
    }
}

/// Returns the names of the claims of a Pod.
pub(super) fn names_of(spec: &Value) -> BTreeSet<&str> {
    let names = items(&spec["resourceClaims"]).map(|(_, claim)| text(claim, "name"));
    names.filter(|name| !name.is_empty()).collect()
}

/// Appends the faults of the claims that a container uses, of those of the Pod.
pub(super) fn of_container(
    claims: &Value,
    at: &str,
    known: &BTreeSet<&str>,
    causes: &mut Vec<Cause>,
) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (index, claim) in items(claims) {
        let (at, name, request) =
            (format!("{at}[{index}]"), text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            causes.push(required(&at, ""));
            continue;
        }
        if seen.contains(name) {
            causes.push(duplicate(&at, name));
        } else {
            let key =
                if request.is_empty() { name.to_owned() } else { format!("{name}/{request}") };
            if !request.is_empty() {
                named(names::label(request), request, &format!("{at}.request"), causes);
            }
            if seen.contains(&key) {
                causes.push(duplicate(&at, &key));
            } else if request.is_empty() {
                let parts = seen.iter().filter_map(|key| key.split_once('/'));
                let same = parts.filter(|(other, _)| *other == name).count();
                causes.extend((0..same).map(|_| duplicate(&at, name)));
            }
            seen.insert(key);
        }
        if !known.contains(name) {
            let rest = match known.len() {
                0 => " which is empty".to_owned(),
                _ => format!(": {}", known.iter().copied().collect::<Vec<_>>().join(", ")),
            };
            let shown = Value::from(name);
            let why = format!(
                "Not found: {shown}: must be one of the names in pod.spec.resourceClaims{rest}"
            );
            causes.push(cause("FieldValueNotFound", &at, why));
        }
    }
}

/// Appends the faults of a reference to the resources of a container; files name the container.
pub(super) fn resource_field(source: &Value, at: &str, is_file: bool, causes: &mut Vec<Cause>) {
    const KNOWN: [&str; 6] = [
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let resource = text(source, "resource");
    let is_huge =
        ["limits.hugepages-", "requests.hugepages-"].iter().any(|huge| resource.starts_with(huge));
    if is_file && text(source, "containerName").is_empty() {
        causes.push(required(&format!("{at}.containerName"), ""));
    } else if resource.is_empty() {
        causes.push(required(&format!("{at}.resource"), ""));
    } else if !KNOWN.contains(&resource) && !is_huge {
        causes.push(crate::status::unsupported(&format!("{at}.resource"), resource, &KNOWN));
    }
    let divisor = text(source, "divisor");
    let units = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];
    let (known, what): (&[&str], &str) = match resource.split_once('.') {
        Some((_, "cpu")) => (&["1m", "1"], "cpu"),
        Some((_, "memory")) => (&units, "memory"),
        Some((_, "ephemeral-storage")) => (&units, "local ephemeral storage"),
        _ if is_huge => (&units, "hugepages"),
        _ => return,
    };
    if !["", "0"].contains(&divisor) && !known.contains(&divisor) {
        let listed = match what {
            "cpu" => "1m and 1".to_owned(),
            _ => units.join(", "),
        };
        let why = format!("only divisor's values {listed} are supported with the {what} resource");
        causes.push(invalid_value(&format!("{at}.divisor"), &resource.into(), &why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_names_an_object_or_a_template() {
        let faults = |claim: Value| {
            let mut causes = Vec::new();
            of_pod(&json!([claim]), "c", &mut causes);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        assert_eq!(faults(json!({"name": "x", "resourceClaimName": "a"})), [""; 0]);
        assert_eq!(faults(json!({"name": "x"})), ["c[0]"]);
        let both = json!({"name": "x", "resourceClaimName": "a", "resourceClaimTemplateName": "b"});
        assert_eq!(faults(both), ["c[0]"]);
    }

    #[test]
    fn containers_use_the_claims_of_the_pod_once() {
        let faults = |claims: Value, known: &[&str]| {
            let mut causes = Vec::new();
            let known = known.iter().copied().collect();
            of_container(&claims, "c", &known, &mut causes);
            causes.into_iter().map(|cause| cause.message).collect::<Vec<_>>()
        };
        assert_eq!(faults(json!([{"name": "x"}]), &["x"]), [""; 0]);
        let parts = json!([{"name": "x", "request": "a"}, {"name": "x", "request": "b"}]);
        assert_eq!(faults(parts, &["x"]), [""; 0]);
        let overlap = json!([{"name": "x", "request": "a"}, {"name": "x"}]);
        assert_eq!(faults(overlap, &["x"]), ["Duplicate value: \"x\""]);
        let why = "Not found: \"x\": must be one of the names in pod.spec.resourceClaims";
        assert_eq!(faults(json!([{"name": "x"}]), &[]), [format!("{why} which is empty")]);
        assert_eq!(faults(json!([{"name": "x"}]), &["y", "z"]), [format!("{why}: y, z")]);
    }

    #[test]
    fn resources_are_divided_by_known_units() {
        let faults = |resource: &str, divisor: &str| {
            let mut causes = Vec::new();
            let source = json!({"resource": resource, "divisor": divisor});
            resource_field(&source, "r", false, &mut causes);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        assert_eq!(faults("limits.cpu", "1m"), [""; 0]);
        assert_eq!(faults("limits.cpu", "1k"), ["r.divisor"]);
        assert_eq!(faults("requests.memory", "1Mi"), [""; 0]);
        assert_eq!(faults("requests.hugepages-2Mi", "1m"), ["r.divisor"]);
        assert_eq!(faults("foo", "0"), ["r.resource"]);
    }
}
