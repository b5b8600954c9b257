//! Objects with finalizers that a user deletes and creates again.

// DESIGN.md, 270: An object with finalizers is replaced by its deletion and a creation that follows

use serde_json::{Value, json};
use windlass_apiserver::ApiServer;
use windlass_apiserver::faults::{ObservedChange, ObservedRequest};

use super::recording::{self, RecordedChange};
use crate::testing::EPOCH;

/// Objects that are created again once they are gone.
#[derive(Debug, Default)]
pub(super) struct Recreation {
    /// Resource, namespace and name.
    awaited: Vec<(String, String, String)>,
}

/// A place of an object on the server.
struct ObjectPlace {
    group: String,
    plural: String,
    namespace: String,
    name: String,
}

impl ObjectPlace {
    fn of(change: &ObservedChange<'_>, seen: &RecordedChange) -> Self {
        let object = change.after.or(change.before).unwrap_or(&Value::Null);
        let (plural, group) = change.resource.split_once('.').unwrap_or((change.resource, ""));
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let of_version = version.split_once('/').map(|(group, _)| group).unwrap_or_default();
        let group = if group.is_empty() { of_version } else { group };
        let (namespace, name) = seen.name.clone();
        Self { group: group.to_owned(), plural: plural.to_owned(), namespace, name }
    }

    /// Stores an object once the present write is over: the store is locked while it is observed.
    fn store(
        self,
        server: &ApiServer,
        change: impl FnOnce(Option<Value>) -> Option<Value> + Send + 'static,
    ) {
        let server = server.clone();
        tokio::spawn(async move {
            let Self { group, plural, namespace, name } = &self;
            if let Some(object) = change(server.get_object(group, plural, namespace, name)) {
                server.commit(group, plural, namespace, name, Some(object));
            }
        });
    }
}

impl Recreation {
    /// Deletes the object of a change, as its user would.
    pub(super) fn begin(
        &mut self,
        server: &ApiServer,
        change: &ObservedChange<'_>,
        seen: &RecordedChange,
    ) {
        let seconds = EPOCH + i64::try_from(seen.at.as_secs()).unwrap_or_default();
        let now = jiff::Timestamp::from_second(seconds).unwrap_or_default().to_string();
        let (namespace, name) = seen.name.clone();
        self.awaited.push((seen.plural().to_owned(), namespace, name));
        ObjectPlace::of(change, seen).store(server, move |stored| {
            let mut object = stored?;
            let metadata = &mut object["metadata"];
            // Else it is gone, or its user was faster.
            if metadata["finalizers"].is_null() || !metadata["deletionTimestamp"].is_null() {
                return None;
            }
            metadata["deletionTimestamp"] = json!(now);
            metadata["deletionGracePeriodSeconds"] = json!(0);
            Some(object)
        });
    }

    /// Notes a request of a user: what a user deletes is not created again.
    pub(super) fn asked_by_user(&mut self, request: &ObservedRequest<'_>) {
        if request.verb == "delete" {
            self.awaited.retain(|(plural, namespace, name)| {
                (plural.as_str(), namespace.as_str(), name.as_str())
                    != (request.resource, request.namespace, request.name)
            });
        }
    }

    /// Creates an object again that is gone; returns whether it does.
    pub(super) fn changed(
        &mut self,
        server: &ApiServer,
        change: &ObservedChange<'_>,
        seen: &RecordedChange,
        (number, made): (usize, Value),
    ) -> bool {
        let (None, Some(before)) = (change.after, change.before) else { return false };
        let (namespace, name) = &seen.name;
        let is_same = |awaited: &(String, String, String)| {
            (awaited.0.as_str(), &awaited.1, &awaited.2)
                == (recording::plural(change.resource), namespace, name)
        };
        let Some(place) = self.awaited.iter().position(is_same) else { return false };
        self.awaited.remove(place);
        let object = anew(before.clone(), number, &made);
        // Another client was faster when there is one.
        ObjectPlace::of(change, seen)
            .store(server, move |stored| stored.is_none().then_some(object));
        true
    }
}

/// Returns an object as its user creates it again, and as it was `made` before.
fn anew(mut object: Value, number: usize, made: &Value) -> Value {
    let metadata = &mut object["metadata"];
    metadata["generation"] = json!(1);
    if let Some(fields) = metadata.as_object_mut() {
        for field in [
            "managedFields",
            "resourceVersion",
            "finalizers",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ] {
            fields.remove(field);
        }
    }
    recording::begin_anew(&mut object, made, &format!("00000000-0000-4000-9000-{number:012}"));
    object
}
