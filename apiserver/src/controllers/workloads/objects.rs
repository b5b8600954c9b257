//! Reads and writes of the stand-ins, through the verbs of clients.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::core::ServerCore;
use crate::kinds::meta;
use crate::status::ApiError;
use crate::storage::{self, StoredObject};
use crate::verbs::options::{DeleteOptions, Propagation};
use crate::verbs::update::{self, NextState};
use crate::verbs::{VerbCall, create, delete};

/// Longest message of an event, in characters.
const LONGEST_MESSAGE: usize = 1024;

/// Group and plural.
pub(super) type Resource = (&'static str, &'static str);

pub(super) const BUDGETS: Resource = ("policy", "poddisruptionbudgets");
pub(super) const CLAIMS: Resource = ("", "persistentvolumeclaims");
pub(super) const CRONJOBS: Resource = ("batch", "cronjobs");
pub(super) const DAEMONSETS: Resource = ("apps", "daemonsets");
pub(super) const DEPLOYMENTS: Resource = ("apps", "deployments");
pub(super) const ENDPOINTS: Resource = ("", "endpoints");
const EVENTS: Resource = ("", "events");
pub(super) const JOBS: Resource = ("batch", "jobs");
pub(super) const NODES: Resource = ("", "nodes");
pub(super) const PODS: Resource = ("", "pods");
pub(super) const REPLICASETS: Resource = ("apps", "replicasets");
pub(super) const REVISIONS: Resource = ("apps", "controllerrevisions");
pub(super) const SERVICES: Resource = ("", "services");
pub(super) const SLICES: Resource = ("discovery.k8s.io", "endpointslices");
pub(super) const STATEFULSETS: Resource = ("apps", "statefulsets");
pub(super) const VOLUMES: Resource = ("", "persistentvolumes");

/// Returns a call about an object.
pub(super) fn call(
    core: &ServerCore,
    resource: Resource,
    namespace: &str,
    name: &str,
) -> Result<VerbCall, ApiError> {
    let kind = core.kind(resource.0, resource.1).ok_or_else(ApiError::no_resource)?;
    super::super::call(core, &kind, namespace, name).ok_or_else(ApiError::no_resource)
}

/// Returns the objects of a namespace, or of all namespaces if the name is empty, in order of
/// names.
pub(super) fn list(
    core: &ServerCore,
    resource: Resource,
    namespace: &str,
) -> Vec<Arc<StoredObject>> {
    let Some(kind) = core.kind(resource.0, resource.1) else { return Vec::new() };
    let (snapshot, _) = core.store.snapshot(&kind.storage);
    storage::in_namespace(&snapshot, namespace).map(|(_, stored)| stored.clone()).collect()
}

/// Returns an object.
pub(super) fn get(
    core: &ServerCore,
    resource: Resource,
    namespace: &str,
    name: &str,
) -> Option<Arc<StoredObject>> {
    let kind = core.kind(resource.0, resource.1)?;
    core.store.get(&kind.storage, &storage::key(namespace, name))
}

/// Creates an object.
pub(super) fn create(
    core: &ServerCore,
    resource: Resource,
    namespace: &str,
    object: Value,
) -> Result<Value, ApiError> {
    let call = call(core, resource, namespace, "")?;
    create::create(core, &call, object, &mut Vec::new()).map(|answer| answer.value)
}

/// Creates an object, unless the name is taken.
pub(super) fn create_if_absent(
    core: &ServerCore,
    resource: Resource,
    namespace: &str,
    object: Value,
) -> Result<(), ApiError> {
    match create(core, resource, namespace, object) {
        Err(error) if error.reason() != "AlreadyExists" => Err(error),
        _ => Ok(()),
    }
}

/// Deletes an object, if still the given object; `grace` is the grace period of a Pod.
pub(super) fn remove(
    core: &ServerCore,
    resource: Resource,
    object: &Value,
    grace: Option<i64>,
) -> Result<(), ApiError> {
    let (namespace, name) = (meta::text(object, "namespace"), meta::text(object, "name"));
    let call = call(core, resource, namespace, name)?;
    let uid = Some(meta::text(object, "uid").to_owned());
    // The default of Jobs would leave their Pods behind.
    let propagation = Some(Propagation::Background);
    let options = DeleteOptions { uid, grace, propagation, ..DeleteOptions::default() };
    match delete::delete(core, &call, &options, &mut Vec::new()) {
        Err(error) if !["NotFound", "Conflict"].contains(&error.reason()) => Err(error),
        _ => Ok(()),
    }
}

/// Changes an object, if still the given object. A change to the stored state itself writes
/// nothing.
pub(super) fn change(
    core: &ServerCore,
    resource: Resource,
    object: &Value,
    subresource: &str,
    make: impl Fn(&mut Value),
) -> Result<(), ApiError> {
    let (namespace, name) = (meta::text(object, "namespace"), meta::text(object, "name"));
    let uid = meta::text(object, "uid");
    let mut call = call(core, resource, namespace, name)?;
    subresource.clone_into(&mut call.subresource);
    let changed = update::change(core, &call, |stored| {
        let stored = stored.filter(|stored| meta::text(stored, "uid") == uid);
        let mut next = stored.cloned().ok_or_else(|| call.not_found())?;
        make(&mut next);
        Ok(NextState::Update(next))
    });
    match changed {
        Err(error) if error.reason() != "NotFound" => Err(error),
        _ => Ok(()),
    }
}

/// Writes the status of an object.
pub(super) fn set_status(
    core: &ServerCore,
    resource: Resource,
    object: &Value,
    status: &Value,
) -> Result<(), ApiError> {
    if object["status"] == *status {
        return Ok(());
    }
    change(core, resource, object, "status", |next| next["status"] = status.clone())
}

/// Returns the reference to the controller of an object.
pub(super) fn controller_of(object: &Value) -> Option<&Value> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)
}

/// Returns the objects of a resource that an object controls.
pub(super) fn owned(core: &ServerCore, resource: Resource, owner: &Value) -> Vec<Value> {
    let uid = &owner["metadata"]["uid"];
    let all = list(core, resource, meta::text(owner, "namespace")).into_iter();
    all.filter(|stored| controller_of(&stored.value).is_some_and(|owner| owner["uid"] == *uid))
        .map(|stored| stored.value.clone())
        .collect()
}

/// Returns the reference by which an object controls another.
pub(super) fn owner(api_version: &str, kind: &str, object: &Value) -> Value {
    json!([{
        "apiVersion": api_version, "kind": kind, "name": object["metadata"]["name"],
        "uid": object["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }])
}

/// An event about an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObjectEvent<'a> {
    /// Controller that reports the event.
    pub(super) from: &'a str,
    /// `apiVersion` of the object.
    pub(super) api_version: &'a str,
    /// Kind of the object.
    pub(super) kind: &'a str,
    /// `Normal` or `Warning`.
    pub(super) level: &'a str,
    /// Reason, such as `SuccessfulCreate`.
    pub(super) reason: &'a str,
}

/// Writes an event. A failure changes nothing: events are for people.
pub(super) fn record_event(
    core: &ServerCore,
    about: &Value,
    event: ObjectEvent<'_>,
    message: &str,
) {
    let suffix: String = core.rng.bytes()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    write_event(core, about, event, message, &suffix);
}

/// Writes an event that may happen again and again: repetitions are counted, with the last message,
/// in a single event. Messages differ: they name an object that has a new name each time.
pub(super) fn record_repeated_event(
    core: &ServerCore,
    about: &Value,
    event: ObjectEvent<'_>,
    message: &str,
) {
    let suffix = hash(&json!([about["metadata"]["uid"], event.reason]));
    let (namespace, name) = (meta::text(about, "namespace"), meta::text(about, "name"));
    let Some(stored) = get(core, EVENTS, namespace, &format!("{name}.{suffix}")) else {
        return write_event(core, about, event, message, &suffix);
    };
    let changed = change(core, EVENTS, &stored.value, "", |next| {
        next["count"] = json!(next["count"].as_i64().unwrap_or(0).saturating_add(1));
        next["lastTimestamp"] = json!(core.clock.rfc3339());
        next["message"] = json!(shortened(message));
    });
    if let Err(error) = changed {
        tracing::debug!(namespace, name, %error, "an event could not be counted");
    }
}

/// Returns the beginning of a message, as long as upstream's, because a webhook may explain a
/// refusal at any length.
fn shortened(message: &str) -> String {
    message.chars().take(LONGEST_MESSAGE).collect()
}

/// Writes an event whose name ends with a suffix.
fn write_event(
    core: &ServerCore,
    about: &Value,
    event: ObjectEvent<'_>,
    message: &str,
    suffix: &str,
) {
    let metadata = &about["metadata"];
    let (namespace, name) = (meta::text(about, "namespace"), meta::text(about, "name"));
    let now = core.clock.rfc3339();
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{name}.{suffix}")},
        "involvedObject": {
            "apiVersion": event.api_version, "kind": event.kind, "name": name,
            "namespace": namespace, "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        },
        "type": event.level, "reason": event.reason, "message": shortened(message), "count": 1,
        "firstTimestamp": now, "lastTimestamp": now,
        "source": {"component": event.from}, "reportingComponent": event.from,
    });
    if let Err(error) = create(core, EVENTS, namespace, event) {
        tracing::debug!(namespace, name, %error, "an event could not be written");
    }
}

/// Returns a number of the spec, or a default.
pub(super) fn number(object: &Value, field: &str, default: i64) -> i64 {
    object["spec"][field].as_i64().unwrap_or(default)
}

/// Returns the list of a field, empty if there is none.
pub(super) fn items<'a>(object: &'a Value, field: &str) -> &'a [Value] {
    object[field].as_array().map_or(&[], Vec::as_slice)
}

/// Returns the condition of a type.
pub(super) fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    items(&object["status"], "conditions").iter().find(|one| one["type"] == name)
}

/// Sets a number that is left out if 0.
pub(super) fn set_count(status: &mut Value, field: &str, count: usize) {
    if count > 0 {
        status[field] = json!(count);
    } else if let Some(fields) = status.as_object_mut() {
        fields.remove(field);
    }
}

/// Returns the hash of a value, in the letters of names of revisions.
pub(super) fn hash(value: &Value) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    // FNV-1a. The numbers of kube-controller-manager follow from the layout of Go's types.
    let digest = value
        .to_string()
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let letter = |digit: u8| char::from(LETTERS[usize::from(digit) % LETTERS.len()]);
    digest.to_string().bytes().map(letter).collect()
}
