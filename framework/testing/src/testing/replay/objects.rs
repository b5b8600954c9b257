//! The objects of a recording's end on an embedded server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use windlass_apiserver::ApiServer;

use super::Recording;
use super::caches::ReplayedCache;
use super::format::RecordedEntry;
use crate::testing::target::RequestTarget;

/// Group, plural, namespace and name of an object.
type ObjectId = (String, String, String, String);

impl Recording {
    /// Returns the cached objects at the end, by their places. Caches of metadata alone have no
    /// objects to store.
    fn objects(&self) -> BTreeMap<ObjectId, Value> {
        let mut caches: Vec<ReplayedCache> =
            self.lines.caches.iter().map(ReplayedCache::new).collect();
        for (_, entry) in &self.lines.entries {
            match entry {
                RecordedEntry::List { cache, state } => {
                    caches.get_mut(*cache).into_iter().for_each(|it| it.relist(state));
                }
                RecordedEntry::Event { cache, event, object } => {
                    caches.get_mut(*cache).into_iter().for_each(|it| it.event(event, object));
                }
                _ => {}
            }
        }
        let mut objects = BTreeMap::new();
        for cache in caches.iter().filter(|cache| !cache.is_metadata) {
            let Some(target) = RequestTarget::of(&cache.path) else { continue };
            for object in cache.objects() {
                let text =
                    |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
                let (group, plural) = (target.group.clone(), target.plural.clone());
                let place = (group, plural, text("namespace"), text("name"));
                objects.insert(place, object.clone());
            }
        }
        objects
    }

    /// Stores the objects as they were, with their uids, and the namespaces that they need.
    /// References to owners that the recording does not have are left out: a garbage collector
    /// would delete such objects.
    ///
    /// # Errors
    /// A sentence about an object whose kind is not served.
    pub(in crate::testing) fn place(&self, server: &ApiServer) -> Result<(), String> {
        let objects = self.objects();
        let uids: BTreeSet<&str> =
            objects.values().filter_map(|object| object["metadata"]["uid"].as_str()).collect();
        for ((group, plural, namespace, name), object) in &objects {
            if !namespace.is_empty() && server.get_object("", "namespaces", "", namespace).is_none()
            {
                let body = json!({ "apiVersion": "v1", "kind": "Namespace",
                    "metadata": { "name": namespace } });
                let made = server.create_object("", "namespaces", "", body);
                made.map_err(|error| format!("cannot create namespace {namespace}: {error:?}"))?;
            }
            let object = without_absent_owners(object, &uids);
            if server.commit(group, plural, namespace, name, Some(object)).is_none() {
                let dot = if group.is_empty() { "" } else { "." };
                return Err(format!(
                    "cannot store {plural}{dot}{group} {namespace}/{name}: the kind is not served; install \
                     its definition before the recording is restored"
                ));
            }
        }
        Ok(())
    }
}

/// Returns an object without references to owners that are not among `uids`.
fn without_absent_owners(object: &Value, uids: &BTreeSet<&str>) -> Value {
    let mut object = object.clone();
    let owners = object["metadata"].get_mut("ownerReferences").and_then(Value::as_array_mut);
    if let Some(owners) = owners {
        owners.retain(|owner| owner["uid"].as_str().is_some_and(|uid| uids.contains(uid)));
    }
    object
}
