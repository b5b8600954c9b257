//! All events in a namespace, seen past the network that cuts.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::api::{Api, WatchEvent};
use windlass::resource::ResourceExt;

use super::worker::{MADE_BY, OP};

/// The states that a namespace's objects went through.
#[derive(Default)]
pub(super) struct History {
    /// Uids of the objects that a write made, by the write's id.
    pub(super) made: BTreeMap<String, Vec<String>>,
    /// Number of states of objects that a write led to, by the write's id; creations included.
    pub(super) states: BTreeMap<String, usize>,
    /// Uids of deleted objects.
    pub(super) deleted: Vec<String>,
}

impl History {
    /// Follows the namespace from `version` until the object `end` is created.
    pub(super) async fn until(api: Api<ConfigMap>, mut version: String, end: &str) -> Self {
        let mut history = Self::default();
        loop {
            let mut watch = api.watch().resource_version(&version).await.unwrap();
            while let Some(Ok(event)) = watch.next().await {
                match event {
                    WatchEvent::Added(object) if object.name() == end => return history,
                    WatchEvent::Added(object) => {
                        version = object.resource_version().to_owned();
                        let op = object.label(MADE_BY).unwrap_or_default().to_owned();
                        history.made.entry(op).or_default().push(object.uid().to_owned());
                        history.state(&object);
                    }
                    WatchEvent::Modified(object) => {
                        version = object.resource_version().to_owned();
                        history.state(&object);
                    }
                    WatchEvent::Deleted(object) => {
                        version = object.resource_version().to_owned();
                        history.deleted.push(object.uid().to_owned());
                    }
                    WatchEvent::Bookmark { resource_version, .. } => version = resource_version,
                }
            }
        }
    }

    fn state(&mut self, object: &ConfigMap) {
        let op = object.annotation(OP).unwrap_or_default().to_owned();
        *self.states.entry(op).or_default() += 1;
    }
}
