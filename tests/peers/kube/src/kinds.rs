//! The kinds, and the fields that a reconcile reads of them.

use k8s_openapi::api::core::v1::Pod;
use kube::{CustomResource, Resource, ResourceExt};
use measure::WidgetStatus;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A custom resource of about 1 KB.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "peers.example.dev",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus"
)]
pub struct WidgetSpec {
    host: String,
    paths: Vec<String>,
    replicas: i32,
    size: String,
}

/// A kind in the form that the driver uses.
pub trait Read:
    Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync + 'static
{
    /// The object's resourceVersion.
    fn version(&self) -> &str {
        self.meta().resource_version.as_deref().unwrap_or_default()
    }

    /// Time at which this version was written, if its annotation says so.
    fn stamp(&self) -> Option<u64> {
        self.annotations().get(measure::STAMP)?.parse().ok()
    }

    /// Does the object belong to the app?
    fn is_of(&self, app: &str) -> bool {
        self.labels().get("app").is_some_and(|value| value == app)
    }
}

impl Read for Pod {}
impl Read for Widget {}
