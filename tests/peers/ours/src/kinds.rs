//! The kinds, and the fields that a reconcile reads of them.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use measure::WidgetStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::resource::{Resource, ResourceExt};
use windlass::store::Index;
use windlass::{CustomResource, Projection};

/// A custom resource of about 1 KB.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "peers.example.dev", version = "v1", namespaced)]
pub struct Widget {
    metadata: ObjectMeta,
    spec: WidgetSpec,
    status: Option<WidgetStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WidgetSpec {
    host: String,
    paths: Vec<String>,
    replicas: i32,
    size: String,
}

/// Fields of a Pod that a typical operator reads: six fields beside the metadata, and a single
/// annotation.
#[derive(Projection, Clone, Debug)]
#[projection(of = Pod, skip(annotations))]
pub struct PodView {
    metadata: ObjectMeta,
    // measure::STAMP
    #[projection(annotation = "peers.example.dev/stamp")]
    stamp: Option<String>,
    #[projection(path = "spec.nodeName")]
    node: Option<String>,
    #[projection(path = "spec.serviceAccountName")]
    account: Option<String>,
    #[projection(path = "spec.restartPolicy")]
    restart_policy: Option<String>,
    #[projection(path = "status.phase")]
    phase: Option<String>,
    #[projection(path = "status.podIP")]
    address: Option<String>,
    #[projection(path = "status.startTime")]
    start: Option<String>,
}

/// Fields of a Widget for an operator that reads a field of the spec and a field of the status.
#[derive(Projection, Clone, Debug)]
#[projection(of = Widget, skip(annotations))]
pub struct WidgetView {
    metadata: ObjectMeta,
    // measure::STAMP
    #[projection(annotation = "peers.example.dev/stamp")]
    stamp: Option<String>,
    #[projection(path = "spec.host")]
    host: Option<String>,
    #[projection(path = "status.readyReplicas")]
    ready: Option<i32>,
}

/// A kind in the form that a driver uses.
pub trait Read: Resource {
    /// Objects by the app that they belong to.
    const APP: Index<Self, String> = Index::on_path("app", &["metadata", "labels", "app"]);
    /// The second index that an operator of such a kind would have.
    const OTHER: Index<Self, String>;

    /// Time at which this version was written, if its annotation says so.
    fn stamp(&self) -> Option<u64> {
        self.annotation(measure::STAMP)?.parse().ok()
    }
}

impl Read for Pod {
    const OTHER: Index<Self, String> = Index::on_path("node", &["spec", "nodeName"]);
}

impl Read for PodView {
    const OTHER: Index<Self, String> = Index::on_path("node", &["spec", "nodeName"]);

    fn stamp(&self) -> Option<u64> {
        self.stamp.as_ref()?.parse().ok()
    }
}

impl Read for Widget {
    const OTHER: Index<Self, String> = Index::on_path("host", &["spec", "host"]);
}

impl Read for WidgetView {
    const OTHER: Index<Self, String> = Index::on_path("host", &["spec", "host"]);

    fn stamp(&self) -> Option<u64> {
        self.stamp.as_ref()?.parse().ok()
    }
}
