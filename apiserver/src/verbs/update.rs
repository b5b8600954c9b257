//! Changes of existing objects: PUT, and the common part of patches.
//!
//! A change is computed from the present object, and stored only if that object is still the
//! present one; otherwise the change is computed again. A write that changes nothing is not stored.

mod generation;

use std::sync::Arc;

use serde_json::Value;

use super::admit::policies::Operation;
use super::decode::{self, Body, BodyOrigin};
use super::subresources::{certificates, pods};
use super::suspend::convert;
use super::{ObjectResponse, VerbCall, addresses, admit, create, delete, fields};
use crate::auth::{self, Attributes};
use crate::core::ServerCore;
use crate::kinds::pods::keep_class;
use crate::kinds::{Kind, custom, meta, services, validate, workloads};
use crate::served::Cause;
use crate::status::{ApiError, invalid_value};
use crate::storage::StoredObject;

/// Attempts under concurrent writes before a change gives up.
const ATTEMPTS: usize = 64;

/// The next state of an object, computed from the present state.
pub(crate) enum NextState {
    /// Store this state; managed fields are tracked for the call's manager.
    Update(Value),
    /// Store this state, which includes managed fields.
    Apply(Value),
}

/// Executes a PUT.
pub(crate) fn replace(
    core: &ServerCore,
    call: &VerbCall,
    body: Body,
    warnings: &mut Vec<String>,
) -> Result<ObjectResponse, ApiError> {
    let sent = SentVersion::of(&body.value);
    let decoded = decode::object(call, body, BodyOrigin::Sent, warnings);
    let mut object = decoded.map_err(|fault| {
        let error = fault.of_body(call);
        // The kind of a custom resource is validated, which comes after the check of the version.
        let held = core.store.get(&call.kind.storage, &call.key());
        match (held, &sent) {
            (Some(held), Ok(sent)) if error.code() == 422 => {
                sent.check(call, &held.value).err().unwrap_or(error)
            }
            _ => error,
        }
    })?;
    admit::match_namespace(call, &mut object)?;
    admit::match_name(call, &object)?;
    change(core, call, |held| match held {
        Some(held) => {
            precondition(call, held, &object)?;
            // After the search: junk is no fault of a missing object.
            sent.clone()?.check(call, held)?;
            Ok(NextState::Update(object.clone()))
        }
        None if call.kind.facts.create_on_update && call.subresource.is_empty() => {
            precondition(call, &Value::Null, &object)?;
            SentVersion::of(&object)?;
            let mut fresh = object.clone();
            if meta::text(&fresh, "resourceVersion") != "0" {
                meta::set(&mut fresh, "resourceVersion", Value::Null);
            }
            Ok(NextState::Update(fresh))
        }
        None => Err(call.not_found()),
    })
}

/// Checks the uid that a body names against that of the object.
pub(super) fn precondition(call: &VerbCall, held: &Value, object: &Value) -> Result<(), ApiError> {
    let (wanted, uid) = (meta::text(object, "uid"), meta::text(held, "uid"));
    if wanted.is_empty() || wanted == uid {
        return Ok(());
    }
    // A dry run asks the store without its prefix.
    let prefix = if call.options.dry_run { "" } else { "/registry" };
    let key = format!("{prefix}/{}/{}", call.kind.registry(), call.key());
    Err(ApiError::conflict(
        call.about(),
        &format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
        ),
    ))
}

/// The resourceVersion that a body names, if any.
#[derive(Clone, Debug)]
pub(crate) struct SentVersion(Option<u64>);

impl SentVersion {
    /// Reads the version; junk is an unclassified failure.
    pub(crate) fn of(object: &Value) -> Result<Self, ApiError> {
        let text = meta::text(object, "resourceVersion");
        if text.is_empty() || text == "0" {
            return Ok(Self(None));
        }
        let parsed = text.parse().map(|version| Self(Some(version)));
        parsed.map_err(|_| {
            ApiError::unclassified(format!("strconv.ParseUint: parsing {text:?}: invalid syntax"))
        })
    }

    /// Whether the body names a version.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Checks that the version is current; without one the kind must allow unconditional updates.
    pub(crate) fn check(&self, call: &VerbCall, held: &Value) -> Result<(), ApiError> {
        match self.0 {
            Some(version) if version.to_string() == meta::text(held, "resourceVersion") => Ok(()),
            Some(_) => Err(ApiError::modified(call.about())),
            None if call.kind.facts.unconditional => Ok(()),
            None => {
                let cause = invalid_value(
                    "metadata.resourceVersion",
                    &0.into(),
                    "must be specified for an update",
                );
                Err(ApiError::invalid(call.about(), vec![cause]))
            }
        }
    }
}

/// Computes the next state with `make` and stores it.
pub(crate) fn change(
    core: &ServerCore,
    call: &VerbCall,
    mut make: impl FnMut(Option<&Value>) -> Result<NextState, ApiError>,
) -> Result<ObjectResponse, ApiError> {
    for _ in 0..ATTEMPTS {
        let held = core.store.get(&call.kind.storage, &call.key());
        let Some(held) = held else {
            let (object, applied) = match make(None)? {
                NextState::Update(object) => (object, false),
                NextState::Apply(object) => (object, true),
            };
            // Checked only here: the rights for the request cover the change and not a creation.
            may_create(core, call)?;
            match create::create_decoded(core, call, object, applied) {
                // Another client created the object in between: the change now starts from that
                // object.
                Err(error) if error.reason() == "AlreadyExists" => continue,
                other => return other,
            }
        };
        let shown = convert::shown(core, call, &held.value)?;
        let next = make(Some(&shown))?;
        if let Some(answer) = attempt(core, call, &held, &shown, next)? {
            return Ok(answer);
        }
    }
    Err(ApiError::modified(call.about()))
}

/// Checks that the user may create the object, for a change that creates it.
fn may_create(core: &ServerCore, call: &VerbCall) -> Result<(), ApiError> {
    let served = &call.kind.served;
    let wanted = Attributes {
        verb: "create".to_owned(),
        group: served.group.clone(),
        version: served.version.clone(),
        resource: served.plural.clone(),
        namespace: call.namespace.clone(),
        name: call.name.clone(),
        ..Attributes::default()
    };
    let allowed = core.authorizer().authorize(&call.user, &wanted);
    allowed.map_err(|why| auth::refusal(&call.user, &wanted, &why))
}

/// Tries to store a change once; `None` if a concurrent write came first.
fn attempt(
    core: &ServerCore,
    call: &VerbCall,
    held: &Arc<StoredObject>,
    shown: &Value,
    next: NextState,
) -> Result<Option<ObjectResponse>, ApiError> {
    // Existing objects may be changed in a terminating namespace, but not in a missing namespace.
    admit::namespace(core, call, None)?;
    let kind = &call.kind;
    let applied = matches!(next, NextState::Apply(_));
    let mut object = prepared(core, call, shown, next)?;
    admit::grants::check(core, call, Some(shown), &object)?;
    // Kept until the Service is stored, because another Service could choose the same free address.
    let mut reservation = addresses::assign(core, call, Some(shown), &mut object)?;
    let (mut causes, mut warnings) = check(call, shown, &object);
    decode::forget_empty_data(kind, &mut object);
    if causes.is_empty() {
        causes.extend(admit::parameters::check(core, call, Some(shown), &object));
    }
    if !causes.is_empty() {
        return Err(ApiError::invalid(kind.invalid(&call.name), causes));
    }
    // Admission sees the values that only refusals show as none.
    decode::forget_refused(kind, &mut object);
    certificates::may_sign(core, call, shown, &object)?;
    // The store sets the next version; the old version makes an unchanged object comparable, and is
    // visible to admission.
    meta::copy(shown, &mut object, "resourceVersion");
    warnings.extend(admit::judge(core, call, Operation::Update(shown, &object))?);
    warnings.extend(create::certificate_warning(kind, &object));
    if kind.is("apiextensions.k8s.io", "customresourcedefinitions") && call.subresource.is_empty() {
        warnings.extend(create::format_warnings(&object, Some(shown)));
    }
    if call.subresource.is_empty() {
        warnings.extend(services::warnings(kind, &object));
        warnings.extend(meta::finalizer_warnings(kind, Some(shown), &object));
    }
    if matches!(call.subresource.as_str(), "" | "scale") {
        warnings.extend(validate::pod::warnings(kind, Some(shown), &object));
    }
    decode::persist(kind, &mut object);
    // Not stored: a write without a change must wake no watch and use up no version. An object of
    // an older storage version is stored anew, which migrates its version. An apply that stores
    // empty collections is a change each time, and so is the write that drops such collections.
    let has_empty = [&object, &held.value].into_iter().any(|one| !meta::empty(one).is_empty());
    let is_migrated = held.value["apiVersion"] == *kind.stored_as;
    // DESIGN.md, 321: The first write to a claim changes it
    let lacks_phase = held.is_first && kind.is("", "persistentvolumeclaims");
    if is_migrated
        && !lacks_phase
        && fields::unchanged(shown, &object)
        && (kind.custom.is_none() || !has_empty)
    {
        return Ok(Some(ObjectResponse::ok(shown.clone()).warned(warnings)));
    }
    // The change removed the last reason to wait: the object is deleted instead of stored.
    if finished(kind, &object) {
        let removed = remove(core, call, held);
        return Ok(removed.then(|| ObjectResponse::ok(object).warned(warnings)));
    }
    admit::quota::check(core, call, Some(shown), &object)?;
    if call.options.dry_run {
        return Ok(Some(ObjectResponse::ok(object).warned(warnings)));
    }
    let mut object = convert::stored(core, call, object)?;
    admit::size::fit(kind, &call.key(), &mut object, applied)?;
    let back = convert::back_again(core, call, &object)?;
    if let Some(reservation) = &mut reservation {
        reservation.announce(&object);
    }
    let stored = core.store.put(&kind.storage, &call.key(), Some(held), object);
    let Ok(stored) = stored else { return Ok(None) };
    if let Some(reservation) = reservation {
        reservation.keep();
    }
    admit::quota::record(core, call, Some(shown), &stored.value);
    let answer = ObjectResponse::ok(convert::answer(call, back, &stored.value)).warned(warnings);
    delete::observe(core, kind, Some(held), Some(&stored));
    Ok(Some(answer))
}

/// Returns the next state with the fields that the server owns.
fn prepared(
    core: &ServerCore,
    call: &VerbCall,
    shown: &Value,
    next: NextState,
) -> Result<Value, ApiError> {
    let kind = &call.kind;
    let (mut object, applied) = match next {
        NextState::Update(object) => (object, false),
        NextState::Apply(object) => (object, true),
    };
    // Upstream lets managers own all that they send to these endpoints, although little is written.
    let owns_all = matches!(call.subresource.as_str(), "ephemeralcontainers" | "resize")
        || call.subresource.is_empty() && call.kind.is("", "namespaces");
    // As sent by the client: the endpoint may drop the parts that do not have the type.
    let is_odd = !applied && kind.custom.is_some() && !fields::are_typed(call, &object);
    if owns_all && !applied {
        fields::track(core, call, Some(shown), &mut object);
    }
    // Before tracking: a manager must not come to own fields that the endpoint did not write.
    confine(core, call, shown, &mut object);
    if !owns_all && !applied {
        fields::track(core, call, Some(shown), &mut object);
    }
    if is_odd {
        meta::set(&mut object, "managedFields", Value::Null);
    }
    let operation = Operation::Update(shown, &object);
    if let Some(changed) = admit::webhooks::mutate(core, call, operation)? {
        object = changed;
        meta::drop_owners(&mut object);
        admit::match_namespace(call, &mut object)?;
        // The endpoint writes no more than before, also after changes by webhooks.
        confine(core, call, shown, &mut object);
    }
    meta::restore(shown, &mut object);
    generation::decide(call, shown, &mut object);
    Ok(object)
}

/// Removes an object that no finalizer holds any more; false if a concurrent write came first.
fn remove(core: &ServerCore, call: &VerbCall, held: &Arc<StoredObject>) -> bool {
    if call.options.dry_run {
        return true;
    }
    let removed = core.store.remove(&call.kind.storage, &call.key(), held).is_ok();
    if removed {
        delete::observe(core, &call.kind, Some(held), None);
    }
    removed
}

/// Whether the object is terminating and has nothing left to wait for.
pub(crate) fn finished(kind: &Kind, object: &Value) -> bool {
    let grace = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let held_back = kind.is("", "namespaces")
        && object["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    meta::terminating(object) && grace == 0 && meta::finalizers(object).is_empty() && !held_back
}

/// Resets the fields that the endpoint may not change.
fn confine(core: &ServerCore, call: &VerbCall, shown: &Value, object: &mut Value) {
    let kind = &call.kind;
    let part = |field: &str| shown.get(field).cloned();
    match call.subresource.as_str() {
        "status" | "approval" | "ephemeralcontainers" | "resize" => {
            let (field, value) = written(core, call, shown, object);
            let metadata = object["metadata"].clone();
            *object = shown.clone();
            put_part(object, field, value);
            if kind.is("", "pods") {
                keep_class(shown, object);
            }
            meta::set(object, "managedFields", metadata["managedFields"].clone());
            for field in with_status(call) {
                meta::set(object, field, metadata[field].clone());
            }
        }
        "finalize" => {
            let finalizers = object["spec"]["finalizers"].clone();
            object["spec"] = shown["spec"].clone();
            put_part(object, "status", part("status"));
            put_part(
                &mut object["spec"],
                "finalizers",
                Some(finalizers).filter(|list| !list.is_null()),
            );
        }
        _ if kind.has_status() => put_part(object, "status", part("status")),
        _ => {}
    }
    let frozen = kind.is("certificates.k8s.io", "certificatesigningrequests");
    if frozen || kind.is("", "namespaces") && call.subresource != "finalize" {
        put_part(object, "spec", part("spec"));
    }
}

/// Returns the fields of the metadata that a write of the status changes, too.
fn with_status(call: &VerbCall) -> impl Iterator<Item = &'static str> {
    // The first five are kept in most newer groups; the last never change, which checks say.
    const FIELDS: [&str; 8] = [
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "deletionTimestamp",
        "generateName",
        "deletionGracePeriodSeconds",
        "uid",
    ];
    let served = &call.kind.served;
    let first = match served.group.as_str() {
        _ if call.subresource != "status" || served.custom => FIELDS.len(),
        "" | "apps" | "batch" | "autoscaling" | "policy" => 0,
        "networking.k8s.io" if call.kind.name() == "Ingress" => 0,
        _ => 5,
    };
    let kept = match call.kind.name() {
        "Deployment" => "labels",
        // Old kubelets would break garbage collection.
        "Pod" => "ownerReferences",
        _ => "",
    };
    FIELDS.into_iter().skip(first).filter(move |field| *field != kept)
}

/// Returns the part of an object that a subresource writes, with the new value.
fn written(
    core: &ServerCore,
    call: &VerbCall,
    shown: &Value,
    object: &Value,
) -> (&'static str, Option<Value>) {
    if matches!(call.subresource.as_str(), "ephemeralcontainers" | "resize") {
        return ("spec", Some(pods::confined(call, &shown["spec"], &object["spec"])));
    }
    let status = certificates::confined(call, shown, object, &call.now(core));
    ("status", status.or_else(|| object.get("status").cloned()))
}

/// Sets or removes a top-level field.
fn put_part(object: &mut Value, field: &str, value: Option<Value>) {
    let Value::Object(fields) = object else { return };
    match value {
        Some(value) => drop(fields.insert(field.to_owned(), value)),
        None => drop(fields.remove(field)),
    }
}

/// Returns all faults of a change, and warnings of those that are tolerated.
fn check(call: &VerbCall, old: &Value, new: &Value) -> (Vec<Cause>, Vec<String>) {
    let is_status = call.subresource == "status";
    let meta::MetadataFaults { first: mut causes, as_new, last } =
        meta::check_change(&call.kind, is_status, old, new);
    let mut of_calls = super::actions::check_change(call, old, new);
    // Upstream judges fields of these kinds that never change before the metadata as of a new
    // object.
    if call.kind.is("", "configmaps") || call.kind.is("", "secrets") {
        causes.append(&mut of_calls);
    }
    causes.extend(as_new);
    let mut warnings = Vec::new();
    if let Some(definition) = &call.kind.custom {
        let result = definition.schema.validate_after(&causes, new, Some(old));
        causes.extend(result.causes);
        warnings = result.tolerated;
        causes.extend(custom::check_scale(&call.kind, new));
    }
    if call.kind.is("apiextensions.k8s.io", "customresourcedefinitions")
        && call.subresource.is_empty()
    {
        causes.extend(crate::crd_schema::check_crd(new, Some(old)));
    }
    if call.kind.is("", "services") && call.subresource.is_empty() {
        causes.extend(addresses::check(old, new));
    }
    let mut changes = match call.subresource.as_str() {
        "" => validate::change(&call.kind, old, new),
        _ => Vec::new(),
    };
    // Only for these kinds upstream begins with the change.
    if call.kind.is("storage.k8s.io", "volumeattributesclasses")
        || call.kind.is("networking.k8s.io", "ingressclasses")
    {
        causes.append(&mut changes);
    }
    if call.subresource != "status" {
        let mut found = workloads::check(&call.kind, new);
        if validate::judges_changes(&call.kind) {
            found.extend(validate::check(&call.kind, new));
            // Endpoints that were there before are not judged again.
            let is_kept = call.kind.types.same("endpoints", &old["endpoints"], &new["endpoints"]);
            if is_kept && call.kind.is("discovery.k8s.io", "endpointslices") {
                found.retain(|cause| !cause.field.starts_with("endpoints"));
            }
            if call.kind.is("events.k8s.io", "events") {
                let is_kept = old["series"] == new["series"];
                found.retain(|cause| !is_of_new_event(cause, is_kept));
            }
        }
        if call.kind.is("batch", "jobs") || call.kind.is("", "persistentvolumes") {
            // Upstream checks the spec of these like that of a new object, and once more like an
            // update's.
            causes.extend(found.iter().cloned());
        }
        causes.extend(found);
    }
    causes.extend(last);
    causes.extend(changes);
    causes.extend(of_calls);
    causes.extend(super::actions::check_size(&call.kind, new));
    if call.subresource == "finalize" {
        causes.extend(super::actions::check_finalizers(new));
    }
    if call.subresource == "status" {
        causes.extend(validate::check_status(&call.kind, old, new));
        causes.iter_mut().for_each(|cause| below_status(call, cause));
    }
    validate::order(&call.kind, true, &mut causes);
    (causes, warnings)
}

/// Whether a fault of an event is one of new events alone: an older event, of the core group, may
/// be changed.
fn is_of_new_event(cause: &Cause, is_series_kept: bool) -> bool {
    match cause.field.as_str() {
        "eventTime" => cause.reason == "FieldValueRequired",
        "type" => cause.message.contains("has invalid value"),
        "firstTimestamp" | "lastTimestamp" | "count" | "source" => {
            cause.message.ends_with("needs to be unset")
        }
        field => is_series_kept && field.starts_with("series"),
    }
}

/// Rewords a fault of a custom resource's status, which is validated separately: the texts do not
/// name the status, the field does.
fn below_status(call: &VerbCall, cause: &mut Cause) {
    if let Some(inner) = cause.field.strip_prefix("status.").filter(|_| call.kind.served.custom) {
        let whole = format!("{} in body", cause.field);
        cause.message = cause.message.replace(&whole, &format!("{inner} in body"));
    }
}
