//! The kind of the planted operators, and the steps of their workloads.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::api::{Api, Patch};
use windlass::prelude::*;
use windlass::testing::World;

/// A number of members.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "explore.windlass.dev", version = "v1", namespaced)]
pub(crate) struct Fleet {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: FleetSpec,
    pub(crate) status: Option<FleetStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub(crate) struct FleetSpec {
    /// Number of members.
    pub(crate) size: i32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
pub(crate) struct FleetStatus {
    /// Step that was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<String>,
    /// Name of the member that was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) member: Option<String>,
    /// Sentence about the time that the last step took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) took: Option<String>,
    /// Number of checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checks: Option<i64>,
    /// Time of the last check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checked: Option<String>,
}

impl Fleet {
    /// Returns the step that was reached.
    pub(crate) fn phase(&self) -> &str {
        self.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }
}

pub(crate) fn fleets(world: &World) -> Api<Fleet> {
    world.client().namespace("default")
}

/// Creates a fleet.
pub(crate) async fn create(world: &World, name: &str, size: i32) {
    fleets(world).create(&Fleet::new(name, FleetSpec { size })).await.unwrap();
}

/// Changes the size of a fleet.
pub(crate) async fn resize(world: &World, name: &str, size: i32) {
    let patch = Patch::Merge(json!({ "spec": { "size": size } }));
    fleets(world).patch(name, patch).await.unwrap();
}

/// Returns the ConfigMaps of a fleet.
pub(crate) fn maps(world: &World, fleet: &str) -> Vec<ConfigMap> {
    let all = world.objects::<ConfigMap>().into_iter();
    all.filter(|map| label(map).is_some_and(|value| value == fleet)).collect()
}

/// Returns the name of an object's fleet.
pub(crate) fn label(object: &impl ResourceExt) -> Option<String> {
    object.metadata().labels.as_ref()?.get("fleet").cloned()
}

/// Returns the metadata of a fleet's object.
pub(crate) fn metadata(fleet: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(BTreeMap::from([("fleet".to_owned(), fleet.to_owned())])),
        ..ObjectMeta::default()
    }
}

/// Creates an object, unless the object exists.
pub(crate) async fn ensure<K>(api: &Api<K>, object: &K) -> Result<(), windlass::Error>
where
    K: windlass::resource::FullObject,
{
    match api.create(object).await {
        Err(error) if error.code() == Some(409) => Ok(()),
        outcome => outcome.map(drop),
    }
}

/// Deletes an object, if the object exists.
pub(crate) async fn remove<K>(api: &Api<K>, name: &str) -> Result<(), windlass::Error>
where
    K: windlass::resource::Resource,
{
    match api.delete(name).await {
        Err(error) if error.code() == Some(404) => Ok(()),
        outcome => outcome.map(drop),
    }
}
