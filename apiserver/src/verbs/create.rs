//! POST: creates an object.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::admit::policies::Operation;
use super::decode::{self, Body, BodyOrigin};
use super::subresources::{certificates, pods};
use super::suspend::convert;
use super::{ObjectResponse, VerbCall, addresses, admit, apiservices, delete, fields};
use crate::core::ServerCore;
use crate::kinds::{
    Generation, Kind, admission, custom, defaults, meta, pods as pod_kinds, services, validate,
    workloads,
};
use crate::names;
use crate::served::Cause;
use crate::status::{ApiError, FailureSubject};
use crate::storage;

/// Beginning of a block in PEM.
const PEM: &[u8] = b"-----BEGIN ";
/// Attempts to find a free generated name.
const ATTEMPTS: usize = 8;

/// Creates an object from a body.
pub(crate) fn create(
    core: &ServerCore,
    call: &VerbCall,
    body: impl Into<Body>,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    let object = decode::object(call, body.into(), BodyOrigin::Sent, warnings)
        .map_err(|fault| fault.of_body(call))?;
    warnings.extend(validate::pod::armor_warnings(&call.kind, &object));
    create_decoded(core, call, object, false)
}

/// Creates a decoded object; an `applied` object brings managed fields.
pub(crate) fn create_decoded(
    core: &ServerCore,
    call: &VerbCall,
    mut object: Value,
    applied: bool,
) -> Result<ObjectResponse, ApiError> {
    admit::match_namespace(call, &mut object)?;
    if !applied {
        meta::drop_empty(&mut object);
    }
    decode::forget_empty_data(&call.kind, &mut object);
    admit::namespace(core, call, Some(&object))?;
    admit::definition(core, call, &object)?;
    admit::grants::check(core, call, None, &object)?;
    // Read before the field is removed below; refused only after validation.
    let version = meta::text(&object, "resourceVersion").to_owned();
    let generates =
        meta::text(&object, "name").is_empty() && !meta::text(&object, "generateName").is_empty();
    let sent = object.get("status").cloned();
    if call.kind.has_status() {
        reset_status(call, &mut object);
    }
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"]
    {
        meta::set(&mut object, field, Value::Null);
    }
    if !applied {
        fields::track(core, call, None, &mut object);
    }
    mutate(core, call, &mut object, sent)?;
    let generates = generates && meta::text(&object, "name").is_empty();
    let has_prefix = !meta::text(&object, "generateName").is_empty();
    for number in 0..ATTEMPTS {
        // Each attempt starts from the same object, with a new uid and a new name.
        let mut attempt = object.clone();
        prepare(core, call, &mut attempt, generates.then_some(number));
        match store(core, call, attempt, &version, applied) {
            Err(error) if generates && error.reason() == "AlreadyExists" => {}
            Err(error) if has_prefix && error.reason() == "AlreadyExists" => {
                return Err(error.not_generated());
            }
            other => return other,
        }
    }
    let name = meta::text(&object, "generateName").to_owned();
    Err(ApiError::no_unique_name(FailureSubject::resource(&call.kind.served, &name)))
}

/// Lets the plugins of the server and then the mutating webhooks change a new object. Webhooks see
/// the status that the client has `sent`, although that status is not stored.
fn mutate(
    core: &ServerCore,
    call: &VerbCall,
    object: &mut Value,
    sent: Option<Value>,
) -> Result<(), ApiError> {
    admit::defaults(core, call, object)?;
    // No copy of the object without a webhook that could see the object.
    if !admit::webhooks::may_mutate(core, call) {
        return Ok(());
    }
    let mut shown = object.clone();
    if let (Value::Object(fields), Some(status)) = (&mut shown, sent) {
        fields.insert("status".to_owned(), status);
    }
    let Some(changed) = admit::webhooks::mutate(core, call, Operation::Create(&shown))? else {
        return Ok(());
    };
    *object = changed;
    meta::drop_owners(object);
    admit::match_namespace(call, object)?;
    if call.kind.has_status() {
        reset_status(call, object);
    }
    // Additions of webhooks may need defaults and break limits.
    admit::defaults(core, call, object)
}

/// Sets the fields that the server owns; `generated` is the number of the attempt to find a name.
fn prepare(core: &ServerCore, call: &VerbCall, object: &mut Value, generated: Option<usize>) {
    let kind = &call.kind;
    // Both drawn once per attempt: a suspended verb must make the same object again.
    let number = generated.unwrap_or(0);
    let drawn = call.session.draw(number, || format!("{} {}", core.rng.uid(), core.rng.suffix()));
    let (uid, suffix) = drawn.split_once(' ').unwrap_or((&drawn, ""));
    meta::set(object, "uid", uid.into());
    meta::set(object, "creationTimestamp", call.now(core).into());
    if generated.is_some() {
        // With five characters of suffix a name stays within 63.
        let base: String = meta::text(object, "generateName").chars().take(58).collect();
        meta::set(object, "name", format!("{base}{suffix}").into());
    }
    if !matches!(kind.facts.generation, Generation::Unmanaged | Generation::Late) {
        meta::set(object, "generation", json!(1));
    }
    if kind.has_status() && kind.custom.is_none() {
        start_status(call, object);
    }
    if kind.is("", "namespaces") {
        if generated.is_some() {
            // Valid before it becomes a label.
            defaults::label_namespace(object, "".into());
        }
        let finalizers = &mut defaults::child(object, "spec")["finalizers"];
        let mut held = finalizers.as_array().cloned().unwrap_or_default();
        if !held.contains(&json!("kubernetes")) {
            held.push(json!("kubernetes"));
        }
        *finalizers = Value::Array(held);
    }
    if let Some(finalizer) = protection(kind) {
        let mut held = meta::finalizers(object);
        if !held.iter().any(|name| name == finalizer) {
            held.push(finalizer.to_owned());
        }
        meta::set(object, "finalizers", json!(held));
    }
    if kind.is("", "persistentvolumes") {
        defaults::child(object, "status")["lastPhaseTransitionTime"] = core.clock.rfc3339().into();
    }
    if kind.is("", "limitranges") && meta::text(object, "name").is_empty() {
        meta::set(object, "name", core.rng.uid().into());
    }
    if let Some(gated) = object.pointer_mut("/status/conditions/0").filter(|_| kind.is("", "pods"))
    {
        gated["lastTransitionTime"] = call.now(core).into();
    }
    if kind.is("resource.k8s.io", "resourceslices") {
        let devices = object["spec"].get_mut("devices").and_then(Value::as_array_mut);
        for device in devices.into_iter().flatten() {
            for taint in defaults::items(device, "taints") {
                defaults::default(taint, "timeAdded", call.now(core).into());
            }
        }
    }
    admission::enter(kind, object);
    apiservices::enter(call, object, &call.now(core));
    certificates::enter(call, object);
}

/// Returns the finalizer of kinds that are not deleted while others use them.
fn protection(kind: &Kind) -> Option<&'static str> {
    match (kind.served.group.as_str(), kind.name()) {
        ("", "PersistentVolumeClaim") => Some("kubernetes.io/pvc-protection"),
        ("", "PersistentVolume") => Some("kubernetes.io/pv-protection"),
        ("storage.k8s.io", "VolumeAttributesClass") => Some("kubernetes.io/vac-protection"),
        _ => None,
    }
}

/// Removes the status that a client sent with a new object. Nodes keep theirs: they register
/// themselves.
fn reset_status(call: &VerbCall, object: &mut Value) {
    if call.kind.is("", "nodes") {
        return;
    }
    if let Value::Object(fields) = object {
        fields.remove("status");
    }
    if call.kind.custom.is_none() {
        decode::canonicalize(&call.kind, object);
    }
}

/// Sets the initial status of a new object's kind.
fn start_status(call: &VerbCall, object: &mut Value) {
    defaults::apply(&call.kind, object);
    if call.kind.is("", "pods") {
        pod_kinds::start(object);
    }
    decode::canonicalize(&call.kind, object);
    if call.kind.is("apiextensions.k8s.io", "customresourcedefinitions") {
        object["status"] = crate::crds::initial_status(object);
    }
}

/// Checks and stores a new object.
fn store(
    core: &ServerCore,
    call: &VerbCall,
    mut object: Value,
    version: &str,
    applied: bool,
) -> Result<ObjectResponse, ApiError> {
    let kind = &call.kind;
    let name = meta::text(&object, "name").to_owned();
    // Kept until the Service is stored, because another Service could choose the same free address.
    let mut reservation = addresses::assign(core, call, None, &mut object)?;
    let mut causes = check(call, &object);
    if causes.is_empty() {
        causes.extend(admit::parameters::check(core, call, None, &object));
    }
    if !causes.is_empty() {
        return Err(ApiError::invalid(kind.invalid(&name), causes));
    }
    // Admission sees the values that only refusals show as none.
    decode::forget_refused(kind, &mut object);
    if kind.is("", "namespaces") {
        defaults::label_namespace(&mut object, name.as_str().into());
    }
    let mut warnings = admit::judge(core, call, Operation::Create(&object))?;
    warnings.extend(hostname_warning(kind, &name));
    warnings.extend(certificate_warning(kind, &object));
    warnings.extend(services::warnings(kind, &object));
    warnings.extend(validate::pod::warnings(kind, None, &object));
    warnings.extend(meta::finalizer_warnings(kind, None, &object));
    if kind.is("apiextensions.k8s.io", "customresourcedefinitions") {
        warnings.extend(format_warnings(&object, None));
    }
    decode::persist(kind, &mut object);
    if version.parse::<u64>().is_ok_and(|version| version > 0) {
        let text = "resourceVersion should not be set on objects to be created";
        return Err(ApiError::unclassified(text).warned(warnings));
    }
    let key = storage::key(&call.namespace, &name);
    let about = FailureSubject::resource(&kind.served, &name);
    if let Some(held) = core.store.get(&kind.storage, &key) {
        let taken = ApiError::already_exists(about, meta::terminating(&held.value));
        return Err(taken.warned(warnings));
    }
    // After the policies, which may take long: no other request waits for them.
    let counting = admit::quota::lock(core, call);
    admit::quota::check(core, call, None, &object)?;
    // After all checks: a dry run fails like the real write.
    if call.options.dry_run {
        // Nothing stores the object, so nothing gives the object another version.
        if version == "0" {
            meta::set(&mut object, "resourceVersion", version.into());
        }
        return Ok(ObjectResponse::created(object).warned(warnings));
    }
    let owners = object["metadata"]["managedFields"].clone();
    let mut object = convert::stored(core, call, object)?;
    // Only changes lose the owners of fields that the stored version lacks.
    meta::set(&mut object, "managedFields", owners);
    admit::size::fit(kind, &key, &mut object, applied)?;
    let back = convert::back_again(core, call, &object)?;
    if let Some(reservation) = &mut reservation {
        reservation.announce(&object);
    }
    let stored = core.store.put(&kind.storage, &key, None, object);
    let stored = stored.map_err(|_| ApiError::already_exists(about, false))?;
    // Released as soon as the Service is stored: others may choose then.
    if let Some(reservation) = reservation {
        reservation.keep();
    }
    admit::quota::record(core, call, None, &stored.value);
    drop(counting);
    let answer =
        ObjectResponse::created(convert::answer(call, back, &stored.value)).warned(warnings);
    // Within the write: a definition is served once the POST is answered.
    delete::observe(core, kind, None, Some(&stored));
    Ok(answer)
}

/// Returns the warnings about formats of a definition's schemas that are not checked; only of new
/// formats.
pub(crate) fn format_warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(crate::crd_schema::unknown_formats).unwrap_or_default();
    let found = crate::crd_schema::unknown_formats(new).into_iter();
    found
        .filter(|one| !known.contains(one))
        .map(|one| format!("unrecognized format {one:?}"))
        .collect()
}

/// Returns the warning about a Pod whose name is no good name of a host.
fn hostname_warning(kind: &Kind, name: &str) -> Option<String> {
    let faults = names::label(name);
    (kind.is("", "pods") && !faults.is_empty()).then(|| {
        let faults = faults.join(" ");
        format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [{faults}]"
        )
    })
}

/// Returns the warning about a Secret for TLS whose certificate or key is not even PEM.
pub(crate) fn certificate_warning(kind: &Kind, secret: &Value) -> Option<String> {
    if !kind.is("", "secrets") || secret["type"] != "kubernetes.io/tls" {
        return None;
    }
    let lacks_pem = |key: &str| {
        let text = secret["data"][key].as_str().unwrap_or_default();
        let bytes = STANDARD.decode(text).unwrap_or_default();
        !bytes.windows(PEM.len()).any(|part| part == PEM)
    };
    let fault = [("tls.crt", "certificate"), ("tls.key", "key")];
    let (_, part) = fault.into_iter().find(|(key, _)| lacks_pem(key))?;
    Some(format!("tls: failed to find any PEM data in {part} input"))
}

/// Returns all faults of a new object.
fn check(call: &VerbCall, object: &Value) -> Vec<Cause> {
    let mut causes = meta::check_new(&call.kind, object);
    if let Some(definition) = &call.kind.custom {
        let found = definition.schema.validate_after(&causes, object, None).causes;
        causes.extend(found);
        causes.extend(custom::check_scale(&call.kind, object));
    }
    if call.kind.is("apiextensions.k8s.io", "customresourcedefinitions") {
        causes.extend(crate::crd_schema::check_crd(object, None));
    }
    causes.extend(super::actions::check_size(&call.kind, object));
    causes.extend(super::actions::check_namespace(&call.kind, object));
    causes.extend(workloads::check(&call.kind, object));
    causes.extend(validate::check(&call.kind, object));
    causes.extend(validate::check_new(&call.kind, object));
    causes.extend(pods::check_new(call, object));
    if causes.is_empty() {
        causes.extend(meta::check_path(&call.kind, object));
    }
    validate::order(&call.kind, false, &mut causes);
    causes
}
