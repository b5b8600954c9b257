//! Server-side apply and field ownership.
//!
//! [`apply`] merges a configuration into an object and [`track_update`] records the managers of
//! changes, both in `metadata.managedFields`. The semantics are those of structured-merge-diff v6
//! and of the managed fields of apimachinery.
//!
//! Both are pure functions: admission, defaulting, validation and storage are the caller's task.
//! The caller must also give an updated object the old values of the fields that the endpoint does
//! not write (an apply ignores such fields anyway).

mod compare;
mod fields;
mod ignored;
mod items;
mod kubectl;
mod managed;
mod merge;
mod path;
mod reconcile;
mod remove;
mod run;
mod scale;
mod set;
#[cfg(test)]
mod tests;
mod updater;
mod validate;

use serde_json::Value;

use crate::typed::TypeSchema;
use managed::{Managed, Owner};
use updater::Updater;

pub(crate) use managed::are_equal_but_times;
pub(crate) use scale::{ReplicasChange as ScaleChange, track as track_scale};
pub(crate) use validate::plain as go_plain;

/// A server-side apply.
#[derive(Clone, Copy, Debug)]
pub struct ApplyRequest<'a> {
    /// Types of the object.
    pub schema: &'a TypeSchema,
    /// The stored object; `None` before a creation.
    pub live: Option<&'a Value>,
    /// The applied configuration. For `/scale` in the form of the object itself, with the replicas.
    pub intent: &'a Value,
    /// Name of the field manager.
    pub manager: &'a str,
    /// Whether to take over fields of other managers instead of reporting conflicts.
    pub force: bool,
    /// Version of the request, such as `apps/v1`, which the intent must have.
    pub api_version: &'a str,
    /// Subresource of the request: `status` or `scale`.
    pub subresource: Option<&'a str>,
    /// Time of the change, RFC 3339 in seconds.
    pub now: &'a str,
}

/// A field of another manager that an apply would change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// Text of the Status cause, such as `conflict with "corpus" using v1`.
    pub message: String,
    /// Path of the field, such as `.data.k`.
    pub field: String,
}

/// Failure of an apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// 409: fields of other managers would change. Sorted by manager, then field.
    Conflicts(Vec<Conflict>),
    /// The request is invalid.
    Invalid {
        /// HTTP status.
        code: u16,
        /// Reason of the Status; empty for an unclassified failure, which has none.
        reason: &'static str,
        /// Message of the Status.
        message: String,
    },
}

impl ApplyError {
    /// Returns the HTTP status.
    pub fn code(&self) -> u16 {
        match self {
            ApplyError::Conflicts(_) => 409,
            ApplyError::Invalid { code, .. } => *code,
        }
    }

    /// Returns the Status reason; empty if there is none.
    pub fn reason(&self) -> &'static str {
        match self {
            ApplyError::Conflicts(_) => "Conflict",
            ApplyError::Invalid { reason, .. } => reason,
        }
    }

    /// Returns the Status message, for conflicts in kube-apiserver's words.
    pub fn message(&self) -> String {
        match self {
            ApplyError::Invalid { message, .. } => message.clone(),
            ApplyError::Conflicts(conflicts) => conflict_message(conflicts),
        }
    }

    /// Returns a 400.
    fn bad_request(message: String) -> ApplyError {
        ApplyError::Invalid { code: 400, reason: "BadRequest", message }
    }

    /// Returns a 500 without a reason, in which upstream's apply reports wrong types.
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

/// Returns the message of conflicts, which are sorted by manager.
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

/// Merges a configuration into an object, and updates its managedFields.
///
/// An apply that changes nothing returns the live object unchanged, unless the owners change.
///
/// # Errors
///
/// [`ApplyError::Conflicts`] without `force`; 400 for another version or kind and for
/// managedFields in the intent; 409 for a uid when there is no object; 500, as kube-apiserver
/// does, for an intent (or stored object) that does not have the type.
pub fn apply(request: &ApplyRequest<'_>) -> Result<Value, ApplyError> {
    run::apply(request)
}

/// Returns an object with the fields of a mutating policy merged in; no manager comes to own them.
///
/// # Errors
///
/// The text of kube-apiserver for fields that do not have the type, and for lists and maps that are
/// replaced as a whole: fields that a policy does not name would be lost.
pub(crate) fn configure(
    schema: &TypeSchema,
    live: &Value,
    fields: &Value,
) -> Result<Value, String> {
    let (table, root) = (schema.table(), schema.root());
    merge::nulls(table, root, fields, "")
        .and_then(|()| validate::validate(table, root, fields, false))
        .map_err(|why| format!("failed to convert patch object to typed object: {why}"))?;
    let mut found = Vec::new();
    merge::atomics(table, root, fields, "", &mut found);
    if !found.is_empty() {
        let places = found.join(", ");
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {places}"
        ));
    }
    validate::validate(table, root, live, true)
        .map_err(|why| format!("failed to convert original object to typed object: {why}"))?;
    merge::merge(table, root, live, fields).map_err(|why| format!("failed to merge patch: {why}"))
}

/// Sets the fields that an endpoint does not write to their values in `old`: status on the main
/// endpoint, spec on `/status`, and for many kinds metadata there.
///
/// For updates and patches, before [`track_update`]; [`apply`] does the same.
pub fn keep_ignored(schema: &TypeSchema, subresource: Option<&str>, old: &Value, new: &mut Value) {
    ignored::restore(new, old, &ignored::fields(schema, subresource));
}

/// Returns `new` with managedFields that record the changes since `old`.
///
/// `old` is `None` on creation. An object without owners stays untracked until the first apply.
/// managedFields in `new` count, unless the write goes to a subresource: `[]` and `[{}]` reset
/// them; absent, null or bad ones keep those of `old`. Objects that do not have the type keep the
/// old list.
///
/// To be called after defaulting, with the values that the client sent: fields that the server
/// fills in afterwards (a cluster IP, a creation's initial status, finalizers of admission) belong
/// to no manager.
pub fn track_update(
    schema: &TypeSchema,
    old: Option<&Value>,
    new: &Value,
    manager: &str,
    api_version: &str,
    subresource: Option<&str>,
    now: &str,
) -> Value {
    let mut result = managed::without(new);
    let mut managed = given_owners(old, new, subresource.is_some());
    // Untracked until the first apply.
    if old.is_some() && managed.owners.is_empty() {
        return result;
    }
    let before = match old {
        Some(old) => schema.canonical(managed::without(old)),
        None => schema.empty_object(),
    };
    let canonical = schema.is_builtin().then(|| schema.canonical(result.clone()));
    let after = canonical.as_ref().unwrap_or(&result);
    let updater = Updater::new(schema, subresource);
    let valid = validate::validate(updater.table, updater.root, &before, true)
        .and_then(|()| validate::validate(updater.table, updater.root, after, true));
    let owner = Owner::new(manager, false, api_version, subresource.unwrap_or_default());
    let updated = valid
        .and_then(|()| updater.update((&before, after), &mut managed, &owner, api_version, now));
    // A write is never refused because of managed fields: objects without the type keep the old
    // list.
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

/// Whether an object has the types of the kind, so that fields can have owners.
pub(crate) fn is_typed(schema: &TypeSchema, object: &Value) -> bool {
    let object = schema.canonical(managed::without(object));
    validate::validate(schema.table(), schema.root(), &object, true).is_ok()
}

/// Returns the owners before a write.
fn given_owners(old: Option<&Value>, new: &Value, subresource: bool) -> Managed {
    let of_old = || old.map(|old| Managed::decode(old).unwrap_or_default()).unwrap_or_default();
    // A write to a subresource can neither reset nor replace the list of owners.
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

/// Returns `new`, with the old times of managedFields if nothing else changed since `old`.
///
/// This is the last step before an update is stored, after defaulting: a write that changes nothing
/// must not be stored for time stamps alone. [`apply`] and [`track_update`] have done this for the
/// objects of their calls.
#[must_use]
pub fn keep_times(old: &Value, mut new: Value) -> Value {
    let times =
        |object: &Value| object.pointer("/metadata/managedFields").is_some_and(Value::is_array);
    if times(old) && times(&new) && managed::are_equal_but_times(old, &new) {
        let list = old["metadata"]["managedFields"].clone();
        new["metadata"]["managedFields"] = list;
    }
    new
}
