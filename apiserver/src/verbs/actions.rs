//! Behaviour of single kinds: binding and evicting Pods, limits of ConfigMaps, immutable fields.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::admit::policies::Operation;
use super::decode::{self, Body, BodyOrigin};
use super::subresources::{accounts, certificates, eviction, pods};
use super::{ObjectResponse, VerbCall, admit};
use crate::core::ServerCore;
use crate::kinds::{Kind, builtin, meta, validate};
use crate::served::Cause;
use crate::status::{self, ApiError, FailureSubject, cause, forbidden_field, invalid_value};
use crate::typed::internal;

const MEBIBYTE: usize = 1024 * 1024;
/// Fields of a Job that never change.
const JOB: &[&str] = &[
    "spec.selector",
    "spec.completionMode",
    "spec.podFailurePolicy",
    "spec.backoffLimitPerIndex",
    "spec.managedBy",
    "spec.successPolicy",
];

/// The server's own types of such fields, by the path.
const TYPES: [(&str, &str); 3] = [
    ("spec.podFailurePolicy", "batch.PodFailurePolicy"),
    ("spec.successPolicy", "batch.SuccessPolicy"),
    ("spec.template", "core.PodTemplateSpec"),
];

/// Executes a POST to a subresource of an object.
pub(crate) fn act(
    core: &ServerCore,
    call: &VerbCall,
    body: &Body,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    match (call.kind.served.plural.as_str(), call.subresource.as_str()) {
        ("pods", "binding") => {
            let object = decoded(call, body, warnings)?;
            check_name(call, &object, "Binding")?;
            bound(core, call, &object)
        }
        ("pods", "eviction") => {
            let object = decoded(call, body, warnings)?;
            check_name(call, &object, "Eviction")?;
            let warnings = admit::observe(core, call, Operation::Create(&shown(call, &object)))?;
            Ok(eviction::evict(core, call, &object)?.warned(warnings))
        }
        ("serviceaccounts", "token") => accounts::request(core, call, body.clone(), warnings),
        _ => Err(ApiError::method()),
    }
}

/// Reads the body of an action as an object of the subresource's kind, in the namespace of the URL.
fn decoded(call: &VerbCall, body: &Body, warnings: &mut Vec<String>) -> Result<Value, ApiError> {
    static KINDS: LazyLock<[Arc<Kind>; 2]> = LazyLock::new(|| {
        [("v1", "Binding"), ("policy/v1", "Eviction")].map(|(version, kind)| {
            let mut kind = builtin::body_kind(version, kind);
            kind.served.namespaced = true;
            Arc::new(kind)
        })
    });
    let kind = &KINDS[usize::from(call.subresource == "eviction")];
    let of_body = VerbCall { kind: kind.clone(), ..call.clone() };
    let mut body = body.clone();
    // The former version, which upstream still reads.
    if body.value["kind"] == "Eviction" && body.value["apiVersion"] == "policy/v1beta1" {
        body.value["apiVersion"] = "policy/v1".into();
    }
    let decoded = decode::object(&of_body, body, BodyOrigin::Sent, warnings);
    let mut object = decoded.map_err(|fault| fault.of_body(&of_body))?;
    admit::match_namespace(call, &mut object)?;
    Ok(object)
}

/// Assigns the Pod of a call to the node that a Binding names.
fn bound(core: &ServerCore, call: &VerbCall, object: &Value) -> Result<ObjectResponse, ApiError> {
    let warnings = admit::observe(core, call, Operation::Create(&shown(call, object)))?;
    check_target(&object["target"])?;
    Ok(bind(core, call, object)?.warned(warnings))
}

/// Returns the body of an action for admission: with its type, and in the namespace of the URL.
pub(super) fn shown(call: &VerbCall, body: &Value) -> Value {
    let mut shown = body.clone();
    if let Some(sub) = call.kind.subresource(&call.subresource) {
        let version = if sub.group.is_empty() {
            call.kind.served.api_version()
        } else {
            format!("{}/{}", sub.group, sub.version)
        };
        shown["apiVersion"] = version.into();
        shown["kind"] = sub.kind.clone().into();
    }
    meta::set(&mut shown, "name", call.name.clone().into());
    meta::set(&mut shown, "namespace", call.namespace.clone().into());
    shown
}

/// Binds the Pod that a Binding names, sent to the path of Bindings.
pub(crate) fn binding(
    core: &ServerCore,
    call: &VerbCall,
    body: &Body,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    let pods = core.kind("", "pods").ok_or_else(ApiError::no_resource)?;
    let call = VerbCall { kind: pods, subresource: "binding".to_owned(), ..call.clone() };
    let object = decoded(&call, body, warnings)?;
    let call = VerbCall { name: meta::text(&object, "name").to_owned(), ..call };
    bound(core, &call, &object)
}

/// Checks the target of a binding. Upstream answers 500, because these faults are no API errors.
fn check_target(target: &Value) -> Result<(), ApiError> {
    let text = |field: &str| target[field].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let mut faults = Vec::new();
    if !matches!(kind, "" | "Node") {
        faults.push(format!(
            "target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\""
        ));
    }
    if name.is_empty() {
        faults.push("target.name: Required value".to_owned());
    }
    match faults.as_slice() {
        [] => Ok(()),
        [one] => Err(ApiError::unclassified(one.clone())),
        all => Err(ApiError::unclassified(format!("[{}]", all.join(", ")))),
    }
}

/// Checks that the body of an action names the Pod of the URL.
fn check_name(call: &VerbCall, body: &Value, kind: &str) -> Result<(), ApiError> {
    if body["metadata"]["name"] == call.name.as_str() {
        return Ok(());
    }
    Err(ApiError::bad_request(format!("name in URL does not match name in {kind} object")))
}

/// Assigns a Pod to a node.
fn bind(core: &ServerCore, call: &VerbCall, binding: &Value) -> Result<ObjectResponse, ApiError> {
    let node = binding["target"]["name"].as_str().unwrap_or_default().to_owned();
    let now = core.clock.rfc3339();
    // A concurrent write makes `put` fail: the Pod is then looked at again.
    loop {
        let held = call.find(core)?;
        let bound = held.value["spec"]["nodeName"].as_str().unwrap_or_default();
        if !bound.is_empty() {
            let why = format!("pod {} is already assigned to node {bound:?}", call.name);
            let about = FailureSubject { group: "", kind: "pods/binding", name: &call.name };
            return Err(ApiError::conflict(about, &why));
        }
        let mut pod = held.value.clone();
        crate::kinds::defaults::child(&mut pod, "spec")["nodeName"] = json!(node);
        eviction::set_condition(
            &mut pod,
            json!({
                "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
            }),
        );
        if call.options.dry_run
            || core.store.put(&call.kind.storage, &call.key(), Some(&held), pod).is_ok()
        {
            return Ok(ObjectResponse::created(status::accepted()));
        }
    }
}

/// Returns a fault if a ConfigMap or Secret holds more than a mebibyte.
pub(crate) fn check_size(kind: &Kind, object: &Value) -> Option<Cause> {
    let field = match (kind.served.group.as_str(), kind.name()) {
        ("", "ConfigMap") => "[]",
        ("", "Secret") => "data",
        _ => return None,
    };
    let size = |field: &str| -> usize {
        let entries = object[field].as_object();
        entries.into_iter().flatten().map(|(_, value)| value.as_str().map_or(0, str::len)).sum()
    };
    // Binary data is base64: four characters are three bytes.
    let bytes = if field == "data" {
        size("data") / 4 * 3
    } else {
        size("data") + size("binaryData") / 4 * 3
    };
    let message = "Too long: may not be more than 1048576 bytes";
    (bytes > MEBIBYTE).then(|| cause("FieldValueTooLong", field, message))
}

/// Returns faults of a Namespace's finalizers: they must be standard or qualified, as those of
/// metadata.
pub(crate) fn check_namespace(kind: &Kind, object: &Value) -> Vec<Cause> {
    if !kind.is("", "namespaces") {
        return Vec::new();
    }
    let list = object["spec"]["finalizers"].as_array();
    let names = list.into_iter().flatten().filter_map(Value::as_str);
    let odd = names.filter(|name| *name != "kubernetes" && !name.contains('/'));
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    odd.map(|name| invalid_value("spec.finalizers", &name.into(), why)).collect()
}

/// Returns the faults of the finalizers that a Namespace gets from its sub-resource.
pub(crate) fn check_finalizers(namespace: &Value) -> Vec<Cause> {
    let list = namespace["spec"]["finalizers"].as_array().into_iter().flatten().enumerate();
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    let odd = list.filter(|(_, name)| {
        let text = name.as_str().unwrap_or_default();
        text != "kubernetes" && !text.contains('/')
    });
    odd.map(|(index, name)| invalid_value(&format!("spec.finalizers[{index}]"), name, why))
        .collect()
}

/// Returns faults of changes to fields that are immutable for the kind.
pub(crate) fn check_change(call: &VerbCall, old: &Value, new: &Value) -> Vec<Cause> {
    let immutable = |path: &str| {
        let pointer = format!("/{}", path.replace('.', "/"));
        let (before, after) = (old.pointer(&pointer), new.pointer(&pointer));
        let [before, value] = [before, after].map(|held| held.cloned().unwrap_or_default());
        let why = "field is immutable";
        (!call.kind.types.same(path, &before, &value)).then(|| {
            match TYPES.iter().find(|(known, _)| *known == path) {
                _ if path == "spec.selector" => validate::invalid_selector(path, &value, why),
                Some((_, kind)) if !value.is_null() => {
                    let shown = internal::compact(kind, &value);
                    cause("FieldValueInvalid", path, format!("Invalid value: {shown}: {why}"))
                }
                _ => invalid_value(path, &value, why),
            }
        })
    };
    let kind = &call.kind;
    let paths: &[&str] = match (kind.served.group.as_str(), kind.name()) {
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") => &["spec.selector"],
        ("batch", "Job") => {
            let is_indexed = new["spec"]["completionMode"] == "Indexed";
            // A Job that has not begun may still be given other nodes and resources.
            let status = &old["status"];
            let is_fixed = old["spec"]["suspend"] != true
                || !status["startTime"].is_null() && status["active"].as_i64().unwrap_or(0) > 0;
            let paths: [(bool, &[&str]); 3] =
                [(true, JOB), (!is_indexed, &["spec.completions"]), (is_fixed, &["spec.template"])];
            let paths = paths.iter().filter(|(holds, _)| *holds).flat_map(|(_, paths)| *paths);
            let causes = paths.filter_map(|path| immutable(path));
            let template = suspended(kind, &old["spec"]["template"], &new["spec"]["template"]);
            return causes.chain(template.filter(|_| !is_fixed)).collect();
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            return immutable("roleRef")
                .map(|_| {
                    let text = |field: &str| new["roleRef"][field].clone();
                    // The names of Go's internal type.
                    let shown = json!({
                        "APIGroup": text("apiGroup"), "Kind": text("kind"), "Name": text("name"),
                    });
                    invalid_value("roleRef", &shown, "cannot change roleRef")
                })
                .into_iter()
                .collect();
        }
        ("", "Pod") if call.subresource.is_empty() => return validate::pod::change(kind, old, new),
        ("", "Pod") => return pods::check_change(call, old, new),
        ("scheduling.k8s.io", "PriorityClass") if old["value"] != new["value"] => {
            return vec![forbidden_field("value", "may not be changed in an update.")];
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            return certificates::check_change(call, old, new);
        }
        ("", "Secret") => {
            let mut causes: Vec<Cause> = immutable("type").into_iter().collect();
            causes.extend(frozen(old, new, &["data"]));
            return causes;
        }
        ("", "ConfigMap") => {
            return frozen(old, new, &["data", "binaryData"]);
        }
        _ => &[],
    };
    paths.iter().filter_map(|path| immutable(path)).collect()
}

/// Returns the fault of a change of the template of a Job that has not begun: only the choice of
/// nodes and the resources of containers may change.
fn suspended(kind: &Kind, old: &Value, new: &Value) -> Option<Cause> {
    let (mut before, after) = (old["spec"].clone(), &new["spec"]);
    let put = |spec: &mut Value, field: &str, value: Option<&Value>| {
        let Value::Object(fields) = spec else { return };
        match value.filter(|value| !value.is_null()) {
            Some(value) => drop(fields.insert(field.to_owned(), value.clone())),
            None => drop(fields.remove(field)),
        }
    };
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        put(&mut before, field, after.get(field));
    }
    let is_sent = after["affinity"].is_object();
    if is_sent && !before["affinity"].is_object() {
        before["affinity"] = json!({});
    }
    if let Some(affinity) = before.get_mut("affinity") {
        put(affinity, "nodeAffinity", after["affinity"].get("nodeAffinity"));
        // Without a choice of nodes nothing may be left that the change would remove.
        if !is_sent && affinity.as_object().is_none_or(serde_json::Map::is_empty) {
            put(&mut before, "affinity", None);
        }
    }
    for list in ["containers", "initContainers"] {
        let sent = after[list].as_array().map_or(&[][..], Vec::as_slice);
        let held = before.get_mut(list).and_then(Value::as_array_mut);
        for (held, sent) in
            held.filter(|held| held.len() == sent.len()).into_iter().flatten().zip(sent)
        {
            if held["name"] == sent["name"] {
                put(held, "resources", sent.get("resources"));
            }
        }
    }
    (!kind.types.same("spec.template.spec", &before, after)).then(|| {
        let shown = internal::compact("core.PodSpec", after);
        let message = format!("Invalid value: {shown}: field is immutable");
        cause("FieldValueInvalid", "spec.template.spec", message)
    })
}

/// Returns the faults of changes of fields that an object has made immutable.
fn frozen(old: &Value, new: &Value, fields: &[&str]) -> Vec<Cause> {
    if old["immutable"] != true {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let changed = fields.iter().filter(|field| old[**field] != new[**field]);
    let mark = (new["immutable"] != true).then_some(&"immutable");
    mark.into_iter().chain(changed).map(|field| forbidden_field(field, why)).collect()
}
