//! Server-side apply and field ownership.
//!
//! [`apply`] merges a configuration into an object and [`track_update`] records who changed what,
//! both in `metadata.managedFields`. The semantics are those of structured-merge-diff v6 and of the
//! managed fields of apimachinery. They are pure functions: admission, defaulting, validation,
//! storage, and cutting away what an endpoint ignores (`status` on the main one) are the caller's.

mod compare;
mod fields;
mod items;
mod managed;
mod merge;
mod path;
mod reconcile;
mod remove;
mod set;
#[cfg(test)]
mod tests;
mod updater;
mod validate;

use serde_json::Value;

use crate::typed::TypeSchema;
use managed::{Managed, Owner};
use updater::{Clash, Failure, Updater};

pub(crate) use validate::plain as go_plain;

/// Owner of what an object held before its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager whose first apply takes over from client-side apply.
const KUBECTL: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One server-side apply.
#[derive(Clone, Copy, Debug)]
pub struct ApplyRequest<'a> {
    /// The type of the object.
    pub schema: &'a TypeSchema,
    /// The stored object; `None`: it will be created.
    pub live: Option<&'a Value>,
    /// The applied configuration, without what the endpoint ignores.
    pub intent: &'a Value,
    /// The field manager.
    pub manager: &'a str,
    /// Take over fields of others instead of reporting conflicts.
    pub force: bool,
    /// `apps/v1`: the version of the request, which the intent must have.
    pub api_version: &'a str,
    /// `status` or `scale` when the request goes there.
    pub subresource: Option<&'a str>,
    /// Time of the change, RFC 3339 in seconds.
    pub now: &'a str,
}

/// A field of another manager that an apply would change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// Text of the Status cause: `conflict with "corpus" using v1`.
    pub message: String,
    /// The field: `.data.k`.
    pub field: String,
}

/// Why an apply failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// 409: fields of others would change. Sorted by manager, then field.
    Conflicts(Vec<Conflict>),
    /// The request is wrong.
    Invalid {
        /// HTTP status.
        code: u16,
        /// Reason of the Status; empty for an unclassified error, which has none.
        reason: &'static str,
        /// Message of the Status.
        message: String,
    },
}

impl ApplyError {
    /// The HTTP status.
    pub fn code(&self) -> u16 {
        match self {
            ApplyError::Conflicts(_) => 409,
            ApplyError::Invalid { code, .. } => *code,
        }
    }

    /// The Status reason; empty when it has none.
    pub fn reason(&self) -> &'static str {
        match self {
            ApplyError::Conflicts(_) => "Conflict",
            ApplyError::Invalid { reason, .. } => reason,
        }
    }

    /// The Status message, for conflicts as kube-apiserver words it.
    pub fn message(&self) -> String {
        match self {
            ApplyError::Invalid { message, .. } => message.clone(),
            ApplyError::Conflicts(conflicts) => conflict_message(conflicts),
        }
    }

    fn bad_request(message: String) -> ApplyError {
        ApplyError::Invalid { code: 400, reason: "BadRequest", message }
    }

    fn internal(message: String) -> ApplyError {
        ApplyError::Invalid { code: 500, reason: "", message }
    }
}

impl std::fmt::Display for ApplyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message())
    }
}

impl std::error::Error for ApplyError {}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: {}: {}", one.message, one.field);
    }
    let mut lines = Vec::new();
    let mut last = "";
    for conflict in conflicts {
        if conflict.message != last {
            last = &conflict.message;
            lines.push(format!("{}:", last.replacen("conflict", "conflicts", 1)));
        }
        lines.push(format!("- {}", conflict.field));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// Merges a configuration into an object, with its managedFields.
///
/// An apply that changes nothing answers the live object as it is, unless its owners change.
///
/// # Errors
///
/// [`ApplyError::Conflicts`] without `force`; 400 for another version or kind and for
/// managedFields in the intent; 409 for a uid when there is no object; 500, as kube-apiserver
/// does, for an intent (or stored object) that does not have the type.
pub fn apply(request: &ApplyRequest<'_>) -> Result<Value, ApplyError> {
    check_intent(request)?;
    let schema = request.schema;
    let mut live = request.live.cloned().unwrap_or_else(|| schema.empty_object());
    let mut managed = Managed::decode(&live)
        .map_err(|e| ApplyError::internal(format!("failed to decode managed fields: {e}")))?;
    managed::take(&mut live);
    let mut typed_live = live.clone();
    schema.canonicalize(&mut typed_live);
    let updater = Updater { table: schema.table(), root: schema.root() };
    adopt(request, updater, &typed_live, &mut managed)?;
    validate::validate(updater.table, updater.root, request.intent, false).map_err(|e| {
        let name = describe(request, request.intent);
        ApplyError::internal(format!("failed to create typed patch object ({name}): {e}"))
    })?;
    validate::validate(updater.table, updater.root, &typed_live, true).map_err(|e| {
        let name = describe(request, &live);
        ApplyError::internal(format!("failed to create typed live object ({name}): {e}"))
    })?;
    let mut merged = run(request, updater, &typed_live, &mut managed)?;
    schema.canonicalize(&mut merged);
    let changed = request.live.is_none() || !path::equal(&typed_live, &merged);
    let owner = owner_of(request);
    if changed && managed.owners.contains_key(&owner) {
        managed.times.insert(owner, request.now.to_owned());
    }
    let mut result = if changed { merged } else { live };
    if request.manager == KUBECTL {
        renew_last_applied(request.intent, &mut result);
    }
    managed.encode(&mut result);
    Ok(match request.live {
        Some(live) => keep_times(live, result),
        None => result,
    })
}

/// Everything that an untracked object holds is owned from before its first apply.
fn adopt(
    request: &ApplyRequest<'_>,
    updater: Updater<'_>,
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

fn owner_of(request: &ApplyRequest<'_>) -> Owner {
    let subresource = request.subresource.unwrap_or_default();
    Owner::new(request.manager, true, request.api_version, subresource)
}

fn run(
    request: &ApplyRequest<'_>,
    updater: Updater<'_>,
    live: &Value,
    managed: &mut Managed,
) -> Result<Value, ApplyError> {
    let owner = owner_of(request);
    let attempt = |force: bool| {
        let mut managed = managed.clone();
        updater
            .apply((live, request.intent), &mut managed, &owner, request.api_version, force)
            .map(|merged| (merged, managed))
    };
    let outcome = match attempt(request.force) {
        Err(Failure::Clashes(clashes)) if request.manager == KUBECTL => {
            let left = without_client_side(request, updater, live, clashes);
            if left.is_empty() { attempt(true) } else { Err(Failure::Clashes(left)) }
        }
        other => other,
    };
    match outcome {
        Ok((merged, after)) => {
            *managed = after;
            Ok(merged)
        }
        Err(Failure::Clashes(clashes)) => Err(ApplyError::Conflicts(report(&clashes))),
        Err(Failure::Other(text)) => Err(ApplyError::internal(text)),
    }
}

fn report(clashes: &[Clash]) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for clash in clashes {
        let message = format!("conflict with {}", clash.owner.print());
        clash.fields.each(&mut |path| {
            conflicts.push(Conflict { message: message.clone(), field: set::print(path) });
        });
    }
    conflicts.sort();
    conflicts
}

/// The clashes about fields that kubectl did not apply itself, client side, with their present
/// value.
fn without_client_side(
    request: &ApplyRequest<'_>,
    updater: Updater<'_>,
    live: &Value,
    clashes: Vec<Clash>,
) -> Vec<Clash> {
    let Some(last) = last_applied(request, updater, live) else { return clashes };
    let Ok(difference) = compare::compare(updater.table, updater.root, &last, live) else {
        return clashes;
    };
    let allowed = fields::of(updater.table, updater.root, &last)
        .difference(&difference.modified)
        .difference(&difference.added)
        .difference(&difference.removed);
    let mut all = set::PathSet::default();
    for clash in &clashes {
        all = all.union(&clash.fields);
    }
    if all.difference(&allowed).is_empty() {
        return Vec::new();
    }
    clashes
        .into_iter()
        .map(|clash| Clash { fields: clash.fields.difference(&allowed), ..clash })
        .filter(|clash| !clash.fields.is_empty())
        .collect()
}

fn last_applied(request: &ApplyRequest<'_>, updater: Updater<'_>, live: &Value) -> Option<Value> {
    let text = live.get("metadata")?.get("annotations")?.get(LAST_APPLIED)?.as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(request.api_version) {
        return None;
    }
    validate::validate(updater.table, updater.root, &last, false).ok()?;
    Some(last)
}

/// Keeps kubectl's own annotation in step when the object has one.
fn renew_last_applied(intent: &Value, object: &mut Value) {
    let mut intent = intent.clone();
    let annotations = intent.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.remove(LAST_APPLIED);
        if annotations.is_empty() {
            if let Some(meta) = intent.get_mut("metadata").and_then(Value::as_object_mut) {
                meta.remove("annotations");
            }
        }
    }
    let slot = object
        .pointer_mut("/metadata/annotations")
        .and_then(|annotations| annotations.get_mut(LAST_APPLIED));
    if let Some(Value::String(text)) = slot {
        if !text.is_empty() {
            *text = format!("{intent}\n");
        }
    }
}

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

/// `group/version, Kind=K`; the core group is empty.
fn group_version_kind(api_version: &str, kind: &str) -> String {
    match api_version.contains('/') {
        true => format!("{api_version}, Kind={kind}"),
        false => format!("/{api_version}, Kind={kind}"),
    }
}

/// `NAMESPACE/NAME; GROUP/VERSION, Kind=KIND`.
fn describe(request: &ApplyRequest<'_>, object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let gvk = group_version_kind(request.api_version, text("/kind"));
    format!("{}/{}; {gvk}", text("/metadata/namespace"), text("/metadata/name"))
}

/// `new` with managedFields that say who changed it from `old`.
///
/// `old` is `None` on creation. An object that nobody owns stays untracked until its first apply.
/// managedFields in `new` count, unless the write goes to a subresource: `[]` and `[{}]` reset
/// them; absent, null or bad ones keep those of `old`. The caller has already given `new` the old
/// values of whatever the endpoint ignores. Objects that do not have the type keep the old list.
pub fn track_update(
    schema: &TypeSchema,
    old: Option<&Value>,
    new: &Value,
    manager: &str,
    api_version: &str,
    subresource: Option<&str>,
    now: &str,
) -> Value {
    let mut result = new.clone();
    let mut managed = given_owners(old, new, subresource.is_some());
    managed::take(&mut result);
    if old.is_some() && managed.owners.is_empty() {
        return result;
    }
    let empty = schema.empty_object();
    let mut before = old.unwrap_or(&empty).clone();
    managed::take(&mut before);
    let mut after = result.clone();
    schema.canonicalize(&mut before);
    schema.canonicalize(&mut after);
    let updater = Updater { table: schema.table(), root: schema.root() };
    let valid = validate::validate(updater.table, updater.root, &before, true)
        .and_then(|()| validate::validate(updater.table, updater.root, &after, true));
    let owner = Owner::new(manager, false, api_version, subresource.unwrap_or_default());
    let updated = valid
        .and_then(|()| updater.update((&before, &after), &mut managed, &owner, api_version, now));
    if updated.is_err() {
        managed = old.map(|old| Managed::decode(old).unwrap_or_default()).unwrap_or_default();
    } else {
        managed.cap_updaters();
    }
    managed.encode(&mut result);
    match old {
        Some(old) => keep_times(old, result),
        None => result,
    }
}

/// The owners that a write starts from.
fn given_owners(old: Option<&Value>, new: &Value, subresource: bool) -> Managed {
    let of_old = || old.map(|old| Managed::decode(old).unwrap_or_default()).unwrap_or_default();
    if subresource {
        return of_old();
    }
    if managed::is_reset(new) {
        return Managed::default();
    }
    match Managed::decode(new) {
        Ok(managed) if !managed.owners.is_empty() => managed,
        _ => of_old(),
    }
}

/// `new`, with the old times of its managedFields when nothing else changed since `old`.
///
/// The last step before storing an update, after defaulting: a write that changes nothing must
/// not be stored for its time stamps. [`apply`] and [`track_update`] have done it for what they
/// were given.
#[must_use]
pub fn keep_times(old: &Value, mut new: Value) -> Value {
    let entries = |object: &Value| {
        let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
        list.map(|list| {
            let mut list = list.clone();
            for entry in list.iter_mut().filter_map(Value::as_object_mut) {
                entry.remove("time");
            }
            list
        })
    };
    let (Some(before), Some(after)) = (entries(old), entries(&new)) else { return new };
    if before != after {
        return new;
    }
    let mut old_rest = old.clone();
    let old_list = managed::take(&mut old_rest);
    let new_list = managed::take(&mut new);
    let list = if old_rest == new { old_list } else { new_list };
    if let (Some(list), Some(meta)) = (list, new.get_mut("metadata").and_then(Value::as_object_mut))
    {
        meta.insert("managedFields".to_owned(), list);
    }
    new
}
