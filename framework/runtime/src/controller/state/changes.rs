//! Changes of an object since the last successful reconcile.
//!
//! A reconciler compares the actual with the desired state, and needs no history for that. Some
//! work is expensive enough to be skipped when nothing relevant changed: a controller that enables
//! the comparison
//! ([`ControllerBuilder::track_changes`](crate::controller::ControllerBuilder::track_changes))
//! keeps the last reconciled state of each object, within a bound.
//!
//! Not included: durable memory. After a restart, after a change of leaders, and for objects that
//! did not fit, nothing is known, and everything has to be treated as changed.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use windlass_cache::store::{Cached, Invalid};
use windlass_core::resource::{ObjectKey, Resource};

/// Approximate cost of an entry beside the object's bytes.
const ENTRY: usize = 256;
/// Metadata that the API server updates at each write; no user's change.
const SERVER_FIELDS: [&str; 3] = ["resourceVersion", "generation", "managedFields"];

/// An object at the last successful reconcile, and now.
pub struct Changes<K> {
    old: Cached<K>,
    new: Cached<K>,
    /// Both states without the metadata of `SERVER_FIELDS`.
    values: Box<(Value, Value)>,
}

impl<K> fmt::Debug for Changes<K> {
    /// Shows the changed paths and no values: the object may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("paths", &self.paths()).finish_non_exhaustive()
    }
}

impl<K: Resource> Changes<K> {
    /// Compares two states of an object.
    pub(crate) fn between(old: Cached<K>, new: Cached<K>) -> Self {
        let values = Box::new((content(&old.raw()), content(&new.raw())));
        Self { old, new, values }
    }

    /// Returns the object at the last successful reconcile.
    ///
    /// # Errors
    /// Never in practice: the object was decoded then.
    pub fn old(&self) -> Result<Arc<K>, Invalid> {
        self.old.get()
    }

    /// Returns the object in its present state.
    ///
    /// # Errors
    /// Never in practice: the object is the one that is being reconciled.
    pub fn now(&self) -> Result<Arc<K>, Invalid> {
        self.new.get()
    }
}

impl<K> Changes<K> {
    /// Whether nothing changed, as after a resync, or when a child caused the reconcile.
    pub fn is_empty(&self) -> bool {
        self.values.0 == self.values.1
    }

    /// Whether anything changed at or below `path`, such as `spec.replicas`. Names are separated by
    /// dots; a name that contains dots is quoted: `metadata.labels."app.kubernetes.io/name"`. Lists
    /// are compared as a whole: a path that leads into a list is touched when anything in the list
    /// changed. The empty path is the object.
    pub fn touches(&self, path: &str) -> bool {
        let names = if path.is_empty() { Vec::new() } else { names(path) };
        differs_at(Some(&self.values.0), Some(&self.values.1), &names)
    }

    /// Returns the changed paths in order, each as deep as possible: `spec.replicas`,
    /// `metadata.labels."app.kubernetes.io/name"`. A changed list counts as one path. The API
    /// server's own metadata (`resourceVersion`, `generation`) is left out; the status and this
    /// controller's writes are not.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        differing("", &self.values.0, &self.values.1, &mut paths);
        paths
    }
}

/// Returns the object without the metadata of `SERVER_FIELDS`.
fn content(raw: &[u8]) -> Value {
    let mut value: Value = serde_json::from_slice(raw).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !SERVER_FIELDS.contains(&name.as_str()));
    }
    value
}

/// Whether the values differ at that path, or at a value on the way that has no names.
fn differs_at(old: Option<&Value>, new: Option<&Value>, names: &[String]) -> bool {
    let Some((name, rest)) = names.split_first() else { return old != new };
    // An absent value has no members; a list or a text has no names, so such a value is compared as
    // a whole.
    let inside = |value: Option<&Value>| match value {
        None | Some(Value::Null) => Some(None),
        Some(Value::Object(members)) => Some(members.get(name).cloned()),
        Some(_) => None,
    };
    match (inside(old), inside(new)) {
        (Some(old), Some(new)) => differs_at(old.as_ref(), new.as_ref(), rest),
        _ => old != new,
    }
}

/// Collects the paths at which two values differ.
fn differing(path: &str, old: &Value, new: &Value, paths: &mut Vec<String>) {
    if old == new {
        return;
    }
    let (Value::Object(before), Value::Object(after)) = (old, new) else {
        paths.push(path.to_owned());
        return;
    };
    let mut members: BTreeMap<&String, (&Value, &Value)> =
        before.iter().map(|(name, value)| (name, (value, &Value::Null))).collect();
    for (name, value) in after {
        members.entry(name).or_insert((&Value::Null, value)).1 = value;
    }
    for (name, (old, new)) in members {
        differing(&joined(path, name), old, new, paths);
    }
}

/// Appends a name to a path, quoted if it contains dots.
fn joined(path: &str, name: &str) -> String {
    let mut joined = path.to_owned();
    if !joined.is_empty() {
        joined.push('.');
    }
    if name.contains('.') {
        // Writing to a string does not fail.
        let _ = write!(joined, "\"{name}\"");
    } else {
        joined.push_str(name);
    }
    joined
}

/// Splits a path into names.
fn names(path: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut is_quoted = false;
    for letter in path.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => names.push(String::new()),
            _ => names.last_mut().into_iter().for_each(|name| name.push(letter)),
        }
    }
    names
}

/// The last reconciled state of objects, within a number of bytes: the state that was reconciled
/// longest ago is evicted first.
pub(crate) struct LastReconciled<K> {
    limit: usize,
    inner: Mutex<Inner<K>>,
}

/// The kept states, their order of eviction, and their size.
struct Inner<K> {
    objects: BTreeMap<ObjectKey, ReconciledObject<K>>,
    ages: BTreeMap<u64, ObjectKey>,
    next: u64,
    bytes: usize,
}

/// The last reconciled state of an object, and the place in the order of eviction.
struct ReconciledObject<K> {
    age: u64,
    bytes: usize,
    object: Cached<K>,
}

impl<K: Resource> LastReconciled<K> {
    pub(crate) fn new(limit: usize) -> Self {
        let (objects, ages) = (BTreeMap::new(), BTreeMap::new());
        Self { limit, inner: Mutex::new(Inner { objects, ages, next: 0, bytes: 0 }) }
    }

    /// Returns the state of `now` at the last successful reconcile.
    pub(crate) fn before(&self, now: &Cached<K>) -> Option<Cached<K>> {
        let inner = self.inner.lock();
        let entry = inner.objects.get(now.key())?;
        // Another uid is another object of the same name: none of its changes are known.
        (entry.object.metadata().uid() == now.metadata().uid()).then(|| entry.object.clone())
    }

    /// Keeps this state as the last reconciled state.
    pub(crate) fn reconciled(&self, object: &Cached<K>) {
        let bytes = object.raw().len() + ENTRY;
        let mut inner = self.inner.lock();
        // Also if the new state does not fit: the old state is no longer the last reconciled state.
        inner.remove(object.key());
        // Such an object would evict all others and still not fit.
        if bytes > self.limit {
            return;
        }
        while inner.bytes + bytes > self.limit {
            let Some((_, oldest)) = inner.ages.pop_first() else { break };
            inner.remove(&oldest);
        }
        inner.next += 1;
        let age = inner.next;
        inner.ages.insert(age, object.key().clone());
        inner.bytes += bytes;
        inner
            .objects
            .insert(object.key().clone(), ReconciledObject { age, bytes, object: object.clone() });
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.inner.lock().remove(key);
    }
}

impl<K> Inner<K> {
    fn remove(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.objects.remove(key) {
            self.ages.remove(&entry.age);
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(old: Value, new: Value) -> Vec<String> {
        let mut paths = Vec::new();
        differing("", &old, &new, &mut paths);
        paths
    }

    #[test]
    fn each_changed_path_is_named_as_deep_as_it_goes() {
        let old = json!({ "spec": { "a": 1, "b": { "c": 2 }, "l": [1] }, "gone": true });
        let new = json!({ "spec": { "a": 1, "b": { "c": 3, "d": 4 }, "l": [2] } });
        assert_eq!(paths(old, new), ["gone", "spec.b.c", "spec.b.d", "spec.l"]);
        let (old, new) = (json!({ "l": { "a.b/c": "x" } }), json!({ "l": {} }));
        assert_eq!(paths(old, new), ["l.\"a.b/c\""]);
    }

    #[test]
    fn a_path_is_read_as_it_is_written() {
        assert_eq!(names("spec.replicas"), ["spec", "replicas"]);
        assert_eq!(names("metadata.labels.\"a.b/c\""), ["metadata", "labels", "a.b/c"]);
    }

    #[test]
    fn a_path_into_a_list_is_touched_when_the_list_changed() {
        let old = json!({ "spec": { "list": [{ "host": "a" }], "text": "x", "same": 1 } });
        let new = json!({ "spec": { "list": [{ "host": "b" }], "text": "y", "same": 1 } });
        let differ = |path: &str| {
            let names = if path.is_empty() { Vec::new() } else { names(path) };
            differs_at(Some(&old), Some(&new), &names)
        };
        for path in ["", "spec", "spec.list", "spec.list.0.host", "spec.list.host", "spec.text.x"] {
            assert!(differ(path), "{path}");
        }
        for path in ["spec.same", "spec.same.x", "spec.none", "none.at.all"] {
            assert!(!differ(path), "{path}");
        }
    }

    #[test]
    fn fields_that_the_api_server_maintains_are_no_change() {
        let of = |version: u32| {
            let text = format!(r#"{{"metadata":{{"name":"a","resourceVersion":"{version}"}}}}"#);
            content(text.as_bytes())
        };
        assert_eq!(of(1), of(2));
    }
}
