//! Changes of Pods through subresources: ephemeral containers, and resources of running containers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::kinds::Kind;
use crate::kinds::pods::{qos, qos_of};
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required};
use crate::typed::{internal, line_diff};
use crate::verbs::VerbCall;

/// Annotation of Pods that mirror a file of their node.
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Lists of containers whose resources can be changed.
const LISTS: [&str; 2] = ["containers", "initContainers"];
/// Fields of a container that a change of resources may write.
const RESIZED: [&str; 2] = ["resources", "resizePolicy"];
/// Resources that may change while a container runs.
const MUTABLE: [&str; 2] = ["cpu", "memory"];

/// Returns the items of a list of a spec.
fn list<'a>(spec: &'a Value, name: &str) -> &'a [Value] {
    spec[name].as_array().map_or(&[], Vec::as_slice)
}

/// Whether both specs have containers of the same names in the same order.
fn same_containers(old: &Value, new: &Value) -> bool {
    LISTS.iter().all(|name| {
        let names = |spec| list(spec, name).iter().map(|one| &one["name"]).collect::<Vec<_>>();
        names(old) == names(new)
    })
}

/// Sets a field, or removes it without a value.
fn put(object: &mut Value, field: &str, value: Option<&Value>) {
    let Value::Object(fields) = object else { return };
    match value {
        Some(value) => drop(fields.insert(field.to_owned(), value.clone())),
        None => drop(fields.remove(field)),
    }
}

/// Returns the spec of a Pod after a write to a subresource, which changes only a part of the spec.
pub(crate) fn confined(call: &VerbCall, old: &Value, new: &Value) -> Value {
    let mut spec = old.clone();
    if call.subresource == "ephemeralcontainers" {
        put(&mut spec, "ephemeralContainers", new.get("ephemeralContainers"));
        return spec;
    }
    // Validation refuses other containers and so has to see them.
    if !same_containers(old, new) {
        return new.clone();
    }
    for name in LISTS {
        let held = spec.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        for (held, sent) in held.zip(list(new, name)) {
            for field in RESIZED {
                put(held, field, sent.get(field));
            }
        }
    }
    put(&mut spec, "resources", new.get("resources"));
    spec
}

/// Returns the fault of a Pod whose kind of Pod has no such subresource.
fn refused(old: &Value, text: &str) -> Option<Vec<Cause>> {
    let mirrors = !old["metadata"]["annotations"][MIRROR].is_null();
    mirrors.then(|| vec![forbidden_field("[]", text)])
}

/// Returns the fault of a new Pod that has ephemeral containers already.
pub(crate) fn check_new(call: &VerbCall, pod: &Value) -> Option<Cause> {
    let field = "ephemeralContainers";
    let has = call.kind.is("", "pods") && !list(&pod["spec"], field).is_empty();
    has.then(|| forbidden_field(&format!("spec.{field}"), "cannot be set on create"))
}

/// Returns the faults of a change through a subresource.
pub(crate) fn check_change(call: &VerbCall, old: &Value, new: &Value) -> Vec<Cause> {
    match call.subresource.as_str() {
        "ephemeralcontainers" => check_ephemeral(&call.kind, old, new),
        "resize" => check_resize(&call.kind, old, new),
        _ => Vec::new(),
    }
}

/// Returns the faults of a change of ephemeral containers: they are only added.
fn check_ephemeral(kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
    if let Some(causes) = refused(old, "static pods do not support ephemeral containers") {
        return causes;
    }
    let name = "ephemeralContainers";
    let (before, after) = (list(&old["spec"], name), list(&new["spec"], name));
    let field = format!("spec.{name}");
    let mut causes = check_spec(&new["spec"]);
    let mut kept: BTreeMap<&str, &Value> = BTreeMap::new();
    for one in after {
        kept.entry(one["name"].as_str().unwrap_or_default()).or_insert(one);
    }
    for held in before {
        // Patches do not keep the order.
        let why = match kept.get(held["name"].as_str().unwrap_or_default()).copied() {
            None => "removed\n".to_owned(),
            Some(one) if !kind.types.same("spec.ephemeralContainers[]", held, one) => {
                let [before, after] =
                    [held, one].map(|one| internal::lines("core.EphemeralContainer", one));
                format!("changed\n{}", line_diff::unified(&before, &after))
            }
            Some(_) => continue,
        };
        let text = format!("existing ephemeral containers {} may not be {why}", held["name"]);
        causes.push(forbidden_field(&field, &text));
    }
    causes
}

/// Returns the faults of a change of resources.
fn check_resize(kind: &Kind, old: &Value, new: &Value) -> Vec<Cause> {
    if let Some(causes) = refused(old, "static pods cannot be resized") {
        return causes;
    }
    if old["spec"]["os"]["name"] == "windows" {
        return vec![forbidden_field("[]", "windows pods cannot be resized")];
    }
    let (before, after) = (&old["spec"], &new["spec"]);
    let mut causes = Vec::new();
    if qos_of(old) != qos(after) {
        let why = "Pod QOS Class may not change as a result of resizing";
        causes.push(invalid_value("spec", &new["status"]["qosClass"], why));
    }
    if !supports_resize(old) {
        causes.push(forbidden_field("spec", "Pod running on node without support for resize"));
    }
    let order = check_order(before, after);
    if !order.is_empty() {
        causes.extend(order);
        return causes;
    }
    for name in LISTS {
        for (index, (held, sent)) in list(before, name).iter().zip(list(after, name)).enumerate() {
            let at = format!("spec.{name}[{index}]");
            check_resources(&at, &held["resources"], &sent["resources"], &mut causes);
            if only_mutable(kind, held, sent) {
                continue;
            }
            let (at, of) = match name {
                "containers" => ("spec", "resources"),
                _ => (at.as_str(), "resources for init or sidecar containers"),
            };
            causes.push(forbidden_field(at, &format!("only cpu and memory {of} are mutable")));
        }
    }
    causes
}

/// Whether the node of a Pod reports the resources of the first running container.
fn supports_resize(pod: &Value) -> bool {
    let running = list(&pod["status"], "containerStatuses")
        .iter()
        .find(|status| status["state"]["running"].is_object());
    running.is_none_or(|status| status["resources"].is_object())
}

/// Returns the faults of added, removed, renamed and reordered containers.
fn check_order(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for name in LISTS {
        let (before, after) = (list(old, name), list(new, name));
        if before.len() != after.len() {
            let text = format!("{name} may not be added or removed on resize");
            causes.push(forbidden_field(&format!("spec.{name}"), &text));
            continue;
        }
        for (index, (held, sent)) in before.iter().zip(after).enumerate() {
            if held["name"] != sent["name"] {
                let text = format!("{name} may not be renamed or reordered on resize");
                causes.push(forbidden_field(&format!("spec.{name}[{index}].name"), &text));
            }
        }
    }
    causes
}

/// Appends the faults of requests and limits that a change removes.
fn check_resources(at: &str, old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    for (part, text) in [
        ("requests", "resource requests cannot be removed"),
        ("limits", "resource limits cannot be removed"),
    ] {
        let mut names = old[part].as_object().into_iter().flatten();
        if names.any(|(name, _)| new[part][name].is_null()) {
            causes.push(forbidden_field(&format!("{at}.resources.{part}"), text));
        }
    }
}

/// Whether two states of a container differ in nothing but CPU and memory.
fn only_mutable(kind: &Kind, old: &Value, new: &Value) -> bool {
    let rest = |container: &Value| {
        let mut container = container.clone();
        for part in ["limits", "requests"] {
            let amounts = container["resources"].get_mut(part).and_then(Value::as_object_mut);
            if let Some(amounts) = amounts {
                amounts.retain(|name, _| !MUTABLE.contains(&name.as_str()));
            }
        }
        container
    };
    kind.types.same("spec.containers[]", &rest(old), &rest(new))
}

/// Returns the faults of a Pod's ephemeral containers, as part of the spec.
fn check_spec(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let others = LISTS.iter().flat_map(|name| list(spec, name));
    let others: BTreeSet<&str> = others.filter_map(|one| one["name"].as_str()).collect();
    let volumes = list(spec, "volumes").iter().filter_map(|volume| volume["name"].as_str());
    let volumes: BTreeSet<&str> = volumes.collect();
    let mut names = others.clone();
    for (index, container) in list(spec, "ephemeralContainers").iter().enumerate() {
        let at = format!("spec.ephemeralContainers[{index}]");
        let name = &container["name"];
        for field in ["name", "image"] {
            if container[field].as_str().unwrap_or_default().is_empty() {
                causes.push(required(&format!("{at}.{field}"), ""));
            }
        }
        if let Some(text) = name.as_str().filter(|text| !text.is_empty()) {
            let faults = crate::names::label(text).into_iter();
            let at = format!("{at}.name");
            causes.extend(faults.map(|why| invalid_value(&at, name, &why)));
        }
        if name.as_str().is_some_and(|text| !names.insert(text)) {
            let message = format!("Duplicate value: {name}");
            causes.push(cause("FieldValueDuplicate", &format!("{at}.name"), message));
        }
        let target = &container["targetContainerName"];
        let named = target.as_str().filter(|text| !text.is_empty());
        if named.is_some_and(|text| !others.contains(text)) {
            let message = format!("Not found: {target}");
            causes.push(cause("FieldValueNotFound", &format!("{at}.targetContainerName"), message));
        }
        for (number, mount) in list(container, "volumeMounts").iter().enumerate() {
            let volume = &mount["name"];
            if !volumes.contains(volume.as_str().unwrap_or_default()) {
                let at = format!("{at}.volumeMounts[{number}].name");
                let message = format!("Not found: {volume}");
                causes.push(cause("FieldValueNotFound", &at, message));
            }
        }
        check_fields(&at, container, &mut causes);
    }
    causes
}

/// Appends the faults of fields that no ephemeral container has.
fn check_fields(at: &str, container: &Value, causes: &mut Vec<Cause>) {
    const UNKNOWN: [&str; 8] = [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ];
    let why = "cannot be set for an Ephemeral Container";
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    for field in UNKNOWN {
        if is_set(&container[field]) {
            causes.push(forbidden_field(&format!("{at}.{field}"), why));
        }
    }
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        for field in ["subPath", "subPathExpr"] {
            if mount[field].as_str().is_some_and(|text| !text.is_empty()) {
                let at = format!("{at}.volumeMounts[{index}].{field}");
                causes.push(forbidden_field(&at, why));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::builtin;
    use serde_json::json;

    fn kind() -> Kind {
        builtin::kinds().into_iter().find(|kind| kind.name() == "Pod").unwrap()
    }

    fn pod(cpu: &str, gpu: &str) -> Value {
        json!({"spec": {"containers": [{"name": "c", "resources": {
            "requests": {"cpu": cpu, "gpu": gpu}}}]}})
    }

    #[test]
    fn only_cpu_and_memory_change_and_no_request_goes() {
        assert_eq!(check_resize(&kind(), &pod("1", "1"), &pod("2", "1")), []);
        assert_eq!(check_resize(&kind(), &pod("1", "1"), &pod("2", "1000m")), []);
        let causes = check_resize(&kind(), &pod("1", "1"), &pod("1", "2"));
        assert!(causes[0].message.contains("only cpu and memory"), "{causes:?}");
        let mut less = pod("1", "1");
        less["spec"]["containers"][0]["resources"]["requests"] = json!({"cpu": "1"});
        let causes = check_resize(&kind(), &pod("1", "1"), &less);
        assert_eq!(causes[0].field, "spec.containers[0].resources.requests");
    }

    #[test]
    fn ephemeral_containers_are_only_added() {
        let with =
            |image: &str| json!({"spec": {"ephemeralContainers": [{"name": "e", "image": image}]}});
        assert_eq!(check_ephemeral(&kind(), &json!({}), &with("i")), []);
        let texts: Vec<String> = [with("j"), json!({})]
            .iter()
            .map(|new| check_ephemeral(&kind(), &with("i"), new)[0].message.clone())
            .collect();
        assert!(texts[0].contains("\"e\" may not be changed"), "{texts:?}");
        assert!(texts[1].contains("\"e\" may not be removed"), "{texts:?}");
    }
}
