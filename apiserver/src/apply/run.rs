//! A server-side apply, from the request to the merged object.

use serde_json::Value;

use super::managed::{self, Managed, Owner};
use super::updater::{ApplyFailure, Clash, Updater};
use super::{ApplyError, ApplyRequest, Conflict};
use super::{ignored, keep_times, kubectl, path, scale, set, validate};

/// Owner of the fields that an object held before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Executes an apply.
pub(super) fn apply(request: &ApplyRequest<'_>) -> Result<Value, ApplyError> {
    check_intent(request)?;
    let schema = request.schema;
    let mut managed = request
        .live
        .map_or_else(|| Ok(Managed::default()), Managed::decode)
        .map_err(|e| ApplyError::internal(format!("failed to decode managed fields: {e}")))?;
    let live = request.live.map_or_else(|| schema.empty_object(), managed::without);
    let canonical = schema.is_builtin().then(|| schema.canonical(live.clone()));
    let typed_live = canonical.as_ref().unwrap_or(&live);
    let updater = Updater::new(schema, request.subresource);
    let scaled = scale::enter(request, &mut managed);
    // Before the types are checked: a stored object that does not have the type fails here first.
    adopt(request, &updater, typed_live, &mut managed)?;
    if let Some(scaled) = &scaled {
        scaled.restrict(&mut managed);
    }
    check_types(request, &updater, typed_live)?;
    let mut merged = run(request, &updater, typed_live, &mut managed)?;
    // The objects are compared without managed fields, whose times would always differ, and before
    // the types drop an empty map, which is a change for its manager.
    let changed = request.live.is_none() || !path::equal(typed_live, &merged);
    schema.canonicalize(&mut merged);
    let owner = owner_of(request);
    if changed && managed.owners.contains_key(&owner) {
        managed.times.insert(owner.clone(), request.now.to_owned());
    }
    if let Some(scaled) = scaled {
        scaled.leave(&mut managed, &owner);
    }
    ignored::restore(&mut merged, typed_live, &updater.ignored);
    // Unchanged objects keep the form in which they are stored.
    let mut result = if changed { merged } else { live };
    if request.manager == kubectl::MANAGER {
        kubectl::renew_last_applied(request.intent, &mut result);
    }
    managed.encode(&mut result);
    Ok(match request.live {
        Some(live) => keep_times(live, result),
        None => result,
    })
}

/// Checks that intent and live object have the type.
fn check_types(
    request: &ApplyRequest<'_>,
    updater: &Updater<'_>,
    live: &Value,
) -> Result<(), ApplyError> {
    validate::validate(updater.table, updater.root, request.intent, false).map_err(|e| {
        let name = describe(request, request.intent);
        ApplyError::internal(format!("failed to create typed patch object ({name}): {e}"))
    })?;
    validate::validate(updater.table, updater.root, live, true).map_err(|e| {
        let name = describe(request, live);
        ApplyError::internal(format!("failed to create typed live object ({name}): {e}"))
    })
}

/// Gives all fields of an untracked object to [`BEFORE_FIRST_APPLY`].
fn adopt(
    request: &ApplyRequest<'_>,
    updater: &Updater<'_>,
    live: &Value,
    managed: &mut Managed,
) -> Result<(), ApplyError> {
    if !managed.owners.is_empty() {
        return Ok(());
    }
    let subresource = request.subresource.unwrap_or_default();
    let owner = Owner::new(BEFORE_FIRST_APPLY, false, request.api_version, subresource);
    let empty = request.schema.empty_object();
    updater.update((&empty, live), managed, &owner, request.api_version, request.now).map_err(|e| {
        ApplyError::internal(format!("failed to create manager for existing fields: {e}"))
    })
}

/// Returns the owner that the request applies as.
fn owner_of(request: &ApplyRequest<'_>) -> Owner {
    let subresource = request.subresource.unwrap_or_default();
    Owner::new(request.manager, true, request.api_version, subresource)
}

/// Merges, and resolves the clashes of kubectl with the previous client-side apply.
fn run(
    request: &ApplyRequest<'_>,
    updater: &Updater<'_>,
    live: &Value,
    managed: &mut Managed,
) -> Result<Value, ApplyError> {
    let owner = owner_of(request);
    // On a copy: a failed attempt must leave the owners as they are.
    let attempt = |force: bool| {
        let mut managed = managed.clone();
        updater
            .apply((live, request.intent), &mut managed, &owner, request.api_version, force)
            .map(|merged| (merged, managed))
    };
    let outcome = match attempt(request.force) {
        Err(ApplyFailure::Clashes(clashes)) if request.manager == kubectl::MANAGER => {
            let left = kubectl::without_client_side(request, updater, live, clashes);
            // All clashes were with kubectl's own client-side applies: those fields move to the new
            // owner.
            if left.is_empty() { attempt(true) } else { Err(ApplyFailure::Clashes(left)) }
        }
        other => other,
    };
    match outcome {
        Ok((merged, after)) => {
            *managed = after;
            Ok(merged)
        }
        Err(ApplyFailure::Clashes(clashes)) => Err(ApplyError::Conflicts(report(request, clashes))),
        Err(ApplyFailure::Other(text)) => Err(ApplyError::internal(text)),
    }
}

/// Returns the conflicts by manager, Apply before Update, each in the order of the fields.
fn report(request: &ApplyRequest<'_>, mut clashes: Vec<Clash>) -> Vec<Conflict> {
    clashes.sort_by(|a, b| {
        let order = a.owner.manager.cmp(&b.owner.manager);
        order.then(b.owner.apply.cmp(&a.owner.apply)).then_with(|| a.owner.cmp(&b.owner))
    });
    let mut conflicts = Vec::new();
    for clash in clashes {
        let owner = scale::shown(request, clash.owner);
        let message = format!("conflict with {}", owner.print());
        clash.fields.each(&mut |path| {
            conflicts.push(Conflict { message: message.clone(), field: set::print(path) });
        });
    }
    conflicts
}

/// Checks version, kind, managedFields and uid of the intent.
fn check_intent(request: &ApplyRequest<'_>) -> Result<(), ApplyError> {
    let intent = request.intent;
    let text = |name: &str| intent.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = match request.live.and_then(|live| live.get("kind")).and_then(Value::as_str) {
        Some(kind) => Some(kind),
        None => request.schema.kind(),
    };
    if text("apiVersion") != request.api_version || kind.is_some_and(|kind| kind != text("kind")) {
        let gvk = group_version_kind(text("apiVersion"), text("kind"));
        return Err(ApplyError::bad_request(format!("invalid object type: {gvk}")));
    }
    let meta = intent.get("metadata");
    if meta.and_then(|meta| meta.get("managedFields")).is_some_and(|list| !list.is_null()) {
        return Err(ApplyError::bad_request("metadata.managedFields must be nil".to_owned()));
    }
    let uid = meta.and_then(|meta| meta.get("uid")).and_then(Value::as_str).unwrap_or_default();
    if request.live.is_none() && !uid.is_empty() {
        return Err(ApplyError::Invalid {
            code: 409,
            reason: "Conflict",
            message: format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object \
                 was found"
            ),
        });
    }
    Ok(())
}

/// Returns `group/version, Kind=K`; the core group is empty.
fn group_version_kind(api_version: &str, kind: &str) -> String {
    match api_version.contains('/') {
        true => format!("{api_version}, Kind={kind}"),
        false => format!("/{api_version}, Kind={kind}"),
    }
}

/// Returns `NAMESPACE/NAME; GROUP/VERSION, Kind=KIND`.
fn describe(request: &ApplyRequest<'_>, object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let gvk = group_version_kind(request.api_version, text("/kind"));
    format!("{}/{}; {gvk}", text("/metadata/namespace"), text("/metadata/name"))
}
