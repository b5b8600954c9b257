//! Comparison of a child with the intent, by the fields that the controller has applied.
//!
//! An apply of an intent changes nothing when the controller owns exactly the fields that the
//! intent names, and the child has the values of the intent there. Both are read from the child and
//! from the controller's entry in the child's `managedFields`, without a schema: the entry says
//! where a list is compared by keys (`k:`), as a set (`v:`) or as a whole, and which keys tell the
//! items apart.
//!
//! The comparison may find a difference where there is none, which costs a request; it must not
//! overlook any. So every unknown form counts as a difference.

// DESIGN.md, 168: A child is compared with its intent by the fields that were applied
// DESIGN.md, 191: An apply that lost an empty object of the intent is sent once more
// DESIGN.md, 215: An empty object of the intent says that it exists

mod lists;
mod spelling;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

use self::lists::{ItemNaming, OwnedItems};
use self::spelling::{is_builtin, is_default, is_merged, is_same_amount, is_zero};
use super::change_log::step;
use windlass_cache::store::FieldTree;
use windlass_core::resource::{Resource, ResourceInfo};

/// Members of an intent's metadata without an owner.
const UNOWNED: [&str; 4] = ["name", "namespace", "uid", "resourceVersion"];

/// Members of an intent in which nothing is lost: the API server leaves empty maps and lists of any
/// object's metadata out, and takes the status from its subresource.
const NEVER_LOST: [&str; 2] = ["metadata", "status"];

/// Returns the fields that `manager` has applied to an object as the API server returned it.
pub(crate) fn applied_in<K: Resource>(object: &K, manager: &str) -> Option<FieldTree> {
    let mut entries = object.metadata().managed_fields.iter().flatten();
    let entry = entries.find(|entry| {
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    })?;
    let fields = entry.fields_v1.as_ref()?.0.clone();
    Some(FieldTree { api_version: entry.api_version.clone()?, fields })
}

/// Returns the path of a difference between an intent and a child; `None` when an apply of the
/// intent would change nothing.
pub(crate) fn difference(
    info: &ResourceInfo,
    intent: &Value,
    live: &Value,
    applied: &FieldTree,
) -> Option<String> {
    if applied.api_version != info.api_version() {
        return Some(".apiVersion".to_owned());
    }
    let mut intent = intent.clone();
    if let Value::Object(members) = &mut intent {
        members.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
        if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
            metadata.retain(|name, _| !UNOWNED.contains(&name.as_str()));
            if metadata.is_empty() {
                members.remove("metadata");
            }
        }
    }
    let comparison = DriftComparison { is_builtin: is_builtin(&info.group) };
    let outcome = comparison.node(FieldPosition::default(), &intent, Some(live), &applied.fields);
    outcome.err()
}

/// Whether an apply has lost an empty object or list of the intent: where the controller had
/// applied something before, the API server removes that, together with parents that become empty.
/// A repetition of the apply restores the lost part.
pub(crate) fn has_lost(
    info: &ResourceInfo,
    intent: &Value,
    live: &Value,
    applied: &FieldTree,
) -> bool {
    let (Value::Object(members), Some(below)) = (intent, children(&applied.fields)) else {
        return false;
    };
    let is_builtin = is_builtin(&info.group);
    members.iter().filter(|(name, _)| !NEVER_LOST.contains(&name.as_str())).any(|(name, value)| {
        let fields = below.get(&format!("f:{name}"));
        is_lost(is_builtin, (name, value), live.get(name), fields)
    })
}

/// Whether a part of the intent is lost. Empty lists whose items have owners of their own are in no
/// entry, and neither are objects with nothing but such lists: `fields` is `None` for them.
fn is_lost(
    is_builtin: bool,
    (name, intent): (&str, &Value),
    live: Option<&Value>,
    fields: Option<&Value>,
) -> bool {
    let live = live.filter(|live| !live.is_null());
    match (intent, live) {
        (Value::Object(members), None) if is_builtin => {
            members.is_empty() && !is_zero(name, intent)
        }
        (intent, None) => !is_builtin && is_hollow(intent),
        (Value::Object(intent), Some(Value::Object(live))) => {
            let below = fields.map(children);
            // A value that is owned as a whole is stored as sent.
            let is_whole = below.is_some_and(|below| below.is_none());
            let fields = |name: &str| below.flatten()?.get(&format!("f:{name}"));
            let mut members = intent.iter();
            !is_whole
                && members.any(|(name, value)| {
                    is_lost(is_builtin, (name, value), live.get(name), fields(name))
                })
        }
        (Value::Array(intent), Some(Value::Array(live))) => {
            let Some(items) = fields.and_then(children).and_then(OwnedItems::of) else {
                return false;
            };
            let (places, named) = (items.places(live).unwrap_or_default(), items.named(intent));
            intent.iter().any(|item| {
                let found = items.wanted(item, &named);
                let found = found.and_then(|(key, fields)| Some((places.get(key)?, fields)));
                found.is_some_and(|(place, fields)| {
                    is_lost(is_builtin, (name, item), live.get(*place), Some(fields))
                })
            })
        }
        _ => false,
    }
}

/// Whether a value contains nothing but empty objects and lists.
fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().all(is_hollow),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Returns a hash of the applied fields and of their values in a child: while the hash stays the
/// same, the fields that the controller applied are unchanged.
pub(crate) fn owned_content(applied: &FieldTree, live: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    applied.api_version.hash(&mut hasher);
    hash_node(&applied.fields, Some(live), &mut hasher);
    hasher.finish()
}

/// Hashes the fields of a node, and the values that they name.
fn hash_node(fields: &Value, live: Option<&Value>, hasher: &mut DefaultHasher) {
    let Some(below) = children(fields) else {
        fields.hash(hasher);
        return live.hash(hasher);
    };
    for (key, fields) in below {
        key.hash(hasher);
        if let Some(name) = key.strip_prefix("f:") {
            hash_node(fields, live.and_then(|live| live.get(name)), hasher);
        }
    }
    let Some(Value::Array(live)) = live else { return };
    let Some(items) = OwnedItems::of(below) else { return live.hash(hasher) };
    // In the order of the child: another order is a change.
    for item in live {
        if let Some((key, fields)) = items.find(item) {
            key.hash(hasher);
            hash_node(fields, Some(item), hasher);
        }
    }
}

/// Returns the fields below a node; `None` for a leaf.
fn children(fields: &Value) -> Option<&Map<String, Value>> {
    let below = fields.as_object()?;
    let is_leaf = below.keys().all(|key| key == ".");
    (!is_leaf).then_some(below)
}

/// The names of a field and of the field above it; items of a list have the names of the list.
#[derive(Clone, Copy, Default)]
struct FieldPosition<'a> {
    above: &'a str,
    name: &'a str,
}

impl<'a> FieldPosition<'a> {
    fn below(self, name: &'a str) -> Self {
        Self { above: self.name, name }
    }
}

/// A comparison of a child.
struct DriftComparison {
    /// Whether the kind is built into Kubernetes: the API server rewrites values of such kinds to a
    /// canonical spelling.
    is_builtin: bool,
}

impl DriftComparison {
    /// Compares a part of the intent with that of the child. The error is the path of a difference.
    fn node(
        &self,
        at: FieldPosition<'_>,
        intent: &Value,
        live: Option<&Value>,
        fields: &Value,
    ) -> Result<(), String> {
        let difference = || Err(String::new());
        match (children(fields), intent, live) {
            (None, ..) if !fields.is_object() => difference(),
            // The object exists, and the members are the API server's or others'.
            (None, Value::Object(intent), Some(Value::Object(_)))
                if self.is_builtin && intent.is_empty() && is_merged(at.name) =>
            {
                Ok(())
            }
            (None, intent, Some(live)) if self.is_same(at, intent, live) => Ok(()),
            (None, intent, None) if self.is_builtin && is_zero(at.name, intent) => Ok(()),
            (Some(below), Value::Object(intent), Some(Value::Object(live))) => {
                self.members(at, intent, live, below)
            }
            (Some(below), Value::Array(intent), Some(Value::Array(live))) => {
                self.items(at, intent, live, below)
            }
            _ => difference(),
        }
    }

    /// Compares the members of an object.
    fn members(
        &self,
        at: FieldPosition<'_>,
        intent: &Map<String, Value>,
        live: &Map<String, Value>,
        fields: &Map<String, Value>,
    ) -> Result<(), String> {
        let mut owned = 0;
        for (key, below) in fields.iter().filter(|(key, _)| *key != ".") {
            let Some(name) = key.strip_prefix("f:") else { return Err(String::new()) };
            // A field that left the intent: an apply removes it.
            let Some(value) = intent.get(name) else { return Err(step(name)) };
            let outcome = self.node(at.below(name), value, live.get(name), below);
            outcome.map_err(|below| format!("{}{below}", step(name)))?;
            owned += 1;
        }
        if owned == intent.len() {
            return Ok(());
        }
        // A field that is new in the intent, or that another manager has taken.
        let name = intent.keys().find(|name| !fields.contains_key(&format!("f:{name}")));
        Err(name.map(|name| step(name)).unwrap_or_default())
    }

    /// Compares the items of a list that has several owners.
    fn items(
        &self,
        at: FieldPosition<'_>,
        intent: &[Value],
        live: &[Value],
        fields: &Map<String, Value>,
    ) -> Result<(), String> {
        let difference = || String::new();
        let items = OwnedItems::of(fields).ok_or_else(difference)?;
        let places = items.places(live).ok_or_else(difference)?;
        let named = items.named(intent);
        let mut last = None;
        for item in intent {
            let (key, below) = items.wanted(item, &named).ok_or_else(|| items.step(item))?;
            let place = places.get(key).copied();
            // In the order of the intent: an apply moves items. Equal items are refused by the API
            // server.
            let is_behind = place.is_some_and(|place| last.is_none_or(|last| last < place));
            let found = place.and_then(|place| live.get(place)).filter(|_| is_behind);
            let found = found.ok_or_else(|| items.step(item))?;
            last = place;
            if items.kind() == ItemNaming::Keys {
                // An item that is owned by fields alone was taken and given back.
                let is_owned = children(below).is_none() || below.get(".").is_some();
                let outcome = if is_owned {
                    self.node(at, item, Some(found), below)
                } else {
                    Err(String::new())
                };
                outcome.map_err(|below| format!("{}{below}", items.step(item)))?;
            }
        }
        // An item that left the intent.
        if intent.len() == items.len() { Ok(()) } else { Err(String::new()) }
    }

    /// Compares a value that is owned as a whole.
    fn is_same(&self, at: FieldPosition<'_>, intent: &Value, live: &Value) -> bool {
        match (intent, live) {
            (Value::Object(intent), Value::Object(live)) => {
                let is_there = |(name, value): (&String, &Value)| match live.get(name) {
                    Some(live) => self.is_same(at.below(name), value, live),
                    // Other zero values may differ from none: a toleration of 0 seconds ends at
                    // once, and a toleration without seconds never.
                    None => {
                        self.is_builtin && matches!(value, Value::Array(items) if items.is_empty())
                    }
                };
                let is_wanted = |(name, value): (&String, &Value)| {
                    intent.contains_key(name) || self.is_builtin && is_default(at.name, name, value)
                };
                intent.iter().all(is_there) && live.iter().all(is_wanted)
            }
            (Value::Array(intent), Value::Array(live)) => {
                let mut pairs = intent.iter().zip(live);
                intent.len() == live.len()
                    && pairs.all(|(intent, live)| self.is_same(at, intent, live))
            }
            (Value::String(intent), Value::String(live)) => {
                intent == live
                    || self.is_builtin && is_same_amount((at.above, at.name), intent, live)
            }
            (intent, live) => intent == live,
        }
    }
}
