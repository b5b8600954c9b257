//! Checks of annotations of Pods that became fields, and of those that others read.

use serde_json::Value;

use super::{items, text, volumes};
use crate::served::Cause;
use crate::status::invalid_value;

/// Annotation of Pods that mirror a file of their node.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Annotation with the cost of a Pod's deletion.
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// Annotation with the seccomp profile of a Pod.
const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// Beginning of annotations with the seccomp profile of a container.
const SECCOMP_OF: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// Beginning of annotations with the `AppArmor` profile of a container.
pub(super) const APP_ARMOR_OF: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Appends the faults of the annotations of a Pod or template with a spec.
pub(super) fn check(annotations: &Value, spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut refuse = |at: String, value: &Value, why: &str| {
        causes.push(invalid_value(&at, value, why));
    };
    let mirror = &annotations[MIRROR];
    if mirror.is_string() && text(spec, "nodeName").is_empty() {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        refuse(format!("{at}[{MIRROR}]"), mirror, why);
    }
    let cost = &annotations[COST];
    if cost.as_str().is_some_and(|cost| !is_cost(cost)) {
        refuse(format!("{at}[{COST}]"), cost, "must be a 32bit integer");
    }
    for (key, profile) in annotations.as_object().into_iter().flatten() {
        let held = profile.as_str().unwrap_or_default();
        if key == SECCOMP || key.starts_with(SECCOMP_OF) {
            let at = format!("{at}.{key}");
            match held.strip_prefix("localhost/") {
                Some(path) => volumes::descending(path, &at, causes),
                None if ["runtime/default", "docker/default", "unconfined"].contains(&held) => {}
                None => causes.push(invalid_value(&at, profile, "must be a valid seccomp profile")),
            }
        }
        let Some(container) = key.strip_prefix(APP_ARMOR_OF) else { continue };
        let at = format!("{at}[{key}]");
        let mut lists = ["containers", "initContainers", "ephemeralContainers"].iter();
        if !lists.any(|list| items(&spec[*list]).any(|(_, one)| text(one, "name") == container)) {
            causes.push(invalid_value(&at, &container.into(), "container not found"));
        }
        let known = ["", "runtime/default", "unconfined"];
        if !known.contains(&held) && !held.starts_with("localhost/") {
            let why = format!("invalid AppArmor profile name: {profile}");
            causes.push(invalid_value(&at, profile, &why));
        }
    }
}

/// Whether a text is a number of 32 bits as the server reads it: without a plus or needless zeros.
fn is_cost(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_short = digits == "0" || !digits.starts_with(['0', '+']);
    is_short && text != "-0" && text.parse::<i32>().is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn profiles_are_known_and_of_a_container() {
        let faults = |key: &str, value: &str| {
            let mut causes = Vec::new();
            let spec = json!({"containers": [{"name": "c"}]});
            check(&json!({ key: value }), &spec, "a", &mut causes);
            causes.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        assert_eq!(faults(SECCOMP, "runtime/default"), [""; 0]);
        assert_eq!(faults(SECCOMP, "localhost/a"), [""; 0]);
        assert_eq!(faults(SECCOMP, "x"), [format!("a.{SECCOMP}")]);
        let key = format!("{APP_ARMOR_OF}c");
        assert_eq!(faults(&key, "unconfined"), [""; 0]);
        assert_eq!(faults(&key, "x"), [format!("a[{key}]")]);
        let other = format!("{APP_ARMOR_OF}d");
        assert_eq!(faults(&other, "unconfined"), [format!("a[{other}]")]);
        assert_eq!(faults(COST, "-1"), [""; 0]);
        assert_eq!(faults(COST, "01"), [format!("a[{COST}]")]);
        assert_eq!(faults(MIRROR, "x"), [format!("a[{MIRROR}]")]);
    }
}
