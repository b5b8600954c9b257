//! Server-side apply and field ownership.
//!
//! [`apply`] merges a configuration into an object and [`track_update`] records who changed what,
//! both in `metadata.managedFields`. The semantics are those of structured-merge-diff v6 and of the
//! managed fields of apimachinery. They are pure functions: admission, defaulting, validation and
//! storage are the caller's, who must also give an updated object the old values of what its
//! endpoint does not write (an apply ignores such fields by itself).

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

pub(crate) use validate::plain as go_plain;

/// One server-side apply.
#[derive(Clone, Copy, Debug)]
pub struct ApplyRequest<'a> {
    /// The type of the object.
    pub schema: &'a TypeSchema,
    /// The stored object; `None`: it will be created.
    pub live: Option<&'a Value>,
    /// The applied configuration. Of `/scale`: as one of the object itself, with its replicas.
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
    run::apply(request)
}

/// Gives `new` the values that the fields which an endpoint does not write have in `old`: status
/// on the main endpoint, spec on `/status`, and for many kinds metadata there.
///
/// For updates and patches, before [`track_update`]; [`apply`] does it by itself.
pub fn keep_ignored(schema: &TypeSchema, subresource: Option<&str>, old: &Value, new: &mut Value) {
    ignored::restore(new, old, &ignored::fields(schema, subresource));
}

/// `new` with managedFields that say who changed it from `old`.
///
/// `old` is `None` on creation. An object that nobody owns stays untracked until its first apply.
/// managedFields in `new` count, unless the write goes to a subresource: `[]` and `[{}]` reset
/// them; absent, null or bad ones keep those of `old`. Objects that do not have the type keep the
/// old list. To be called after defaulting, with the values that the client sent: what the server
/// itself fills in afterwards (a cluster IP, a creation's initial status, finalizers of admission)
/// belongs to nobody.
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
    let updater = Updater::new(schema, subresource);
    let valid = validate::validate(updater.table, updater.root, &before, true)
        .and_then(|()| validate::validate(updater.table, updater.root, &after, true));
    let owner = Owner::new(manager, false, api_version, subresource.unwrap_or_default());
    let scaled = subresource == Some(scale::NAME) && old.is_some();
    let updated = valid.and_then(|()| {
        if scaled {
            scale::update(&updater, (&before, &after), &mut managed, &owner, api_version)
        } else {
            updater.update((&before, &after), &mut managed, &owner, api_version, now)
        }
    });
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
