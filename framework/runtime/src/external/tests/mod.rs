//! External resources against the embedded API server and a provider in memory, on the paused
//! clock.

mod caches;
mod cloud;
mod crashes;
mod deletions;
mod drivers;
mod ended_imports;
mod imports;
mod loops;
mod parts;
mod plans;
mod policies;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::ApiServer;

use self::cloud::{Cloud, FINALIZER, Fault, Volumes};
use super::{
    CREATE_FAILED, CREATE_PENDING, CREATE_SUCCEEDED, EXTERNAL_NAME, EXTERNAL_POLICY,
    ExternalController, ExternalPolicy, Externals,
};
use crate::CustomResource;
use crate::manager::{Manager, Running};
use windlass_client::api::{Api, Patch};
use windlass_client::client::{BoxIo, Client, ClientConfig, Connect};
use windlass_core::clock::Clock;
use windlass_core::conditions::Conditions;
use windlass_core::environment::Environment;
use windlass_core::metrics::{Metrics, names};
use windlass_core::resource::ResourceExt;
use windlass_core::rng::Rng;

const EPOCH: i64 = 1_767_225_600;
const SECOND: Duration = Duration::from_secs(1);

/// A kind whose objects stand for volumes of a provider.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Volume {
    metadata: ObjectMeta,
    spec: VolumeSpec,
    status: Option<VolumeStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct VolumeSpec {
    size: i64,
    zone: Option<String>,
    /// Left out of the JSON where it is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sealed: bool,
    #[serde(default)]
    parts: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct VolumeStatus {
    #[serde(default)]
    conditions: Conditions,
    id: Option<String>,
    difference: Option<String>,
}

#[derive(Debug)]
struct Pipe(ApiServer);

impl Connect for Pipe {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(Box::new(self.0.connect()?) as BoxIo) })
    }
}

/// An API server with the kind, and a provider.
struct World {
    server: ApiServer,
    client: Client,
    cloud: Cloud,
}

impl World {
    async fn start() -> Self {
        let server = ApiServer::builder().seed(1).epoch(EPOCH).start();
        let clock = Clock::simulated(Timestamp::from_second(EPOCH).unwrap());
        let environment = Environment { clock, rng: Rng::seeded(1), metrics: Metrics::new() };
        let config = ClientConfig::new("http://in-process.windlass").unwrap();
        let connector = Arc::new(Pipe(server.clone()));
        let client = Client::builder().config(config).connector(connector).environment(environment);
        let world = Self { server, client: client.build().unwrap(), cloud: Cloud::default() };
        let namespace = serde_json::from_value(json!({ "metadata": { "name": "shop" } }));
        world.client.all::<Namespace>().create(&namespace.unwrap()).await.unwrap();
        world.client.all().create(&Volume::crd().unwrap()).await.unwrap();
        until("the kind is served", async || world.volumes().list().await.is_ok()).await;
        world
    }

    fn volumes(&self) -> Api<Volume> {
        self.client.namespace("shop")
    }

    /// Returns a driver whose provider finds volumes by their tokens.
    fn driver(&self) -> Externals<Volumes> {
        let cloud = self.cloud.clone();
        Externals::new(Volumes { cloud, searches: true })
    }

    /// Returns a driver whose provider cannot search.
    fn blind(&self) -> Externals<Volumes> {
        let cloud = self.cloud.clone();
        Externals::new(Volumes { cloud, searches: false })
    }

    fn manager(&self) -> Manager {
        let manager = Manager::new(self.client.clone());
        manager.without_leader_election().without_health().without_metrics().without_signals()
    }

    fn run(&self, externals: Externals<Volumes>) -> Running {
        let controller = ExternalController::new(externals);
        self.manager()
            .controller_configured(controller, |builder| builder.outcome_condition("Ready"))
            .start()
    }

    async fn create(&self, name: &str) -> Volume {
        self.create_with(name, json!({})).await
    }

    /// Creates a volume of size 5 with these annotations.
    async fn create_with(&self, name: &str, annotations: Value) -> Volume {
        let metadata = json!({ "name": name, "annotations": annotations });
        let volume = json!({ "metadata": metadata, "spec": { "size": 5 } });
        self.volumes().create(&serde_json::from_value(volume).unwrap()).await.unwrap()
    }

    async fn get(&self, name: &str) -> Volume {
        self.volumes().get(name).await.unwrap()
    }

    async fn patch(&self, name: &str, patch: Value) {
        self.volumes().patch(name, Patch::Merge(patch)).await.unwrap();
    }

    async fn annotate(&self, name: &str, annotations: Value) {
        self.patch(name, json!({ "metadata": { "annotations": annotations } })).await;
    }

    async fn annotation(&self, name: &str, key: &str) -> Option<String> {
        self.get(name).await.annotation(key).map(str::to_owned)
    }

    /// Returns status, reason and message of the condition of the controller.
    async fn ready(&self, name: &str) -> (String, String, String) {
        let status = self.get(name).await.status.unwrap_or_default();
        let found = status.conditions.get("Ready").cloned();
        found.map(|it| (it.status, it.reason, it.message)).unwrap_or_default()
    }

    async fn until_ready(&self, name: &str) {
        until("it is ready", async || self.ready(name).await.0 == "True").await;
    }

    /// Waits until the message of the condition contains this text.
    async fn until_said(&self, name: &str, part: &str) {
        until(part, async || self.ready(name).await.2.contains(part)).await;
    }

    async fn delete(&self, name: &str) {
        self.volumes().delete(name).await.unwrap();
        until("it is gone", async || self.volumes().get_opt(name).await.unwrap().is_none()).await;
    }

    fn counted(&self, verb: &str, result: &str) -> u64 {
        let metrics = &self.client.environment().metrics;
        metrics.counted(&names::EXTERNAL_CALLS, &["volume", verb, result])
    }

    /// Returns the Events of a reason, in order: times of occurrence, kind and note.
    async fn notes(&self, reason: &str) -> Vec<String> {
        let events = self.client.namespace::<Event>("shop").list().await.unwrap().items;
        let found = events.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
        let mut notes: Vec<String> = found
            .map(|event| {
                let count = event.series.map_or(1, |series| series.count);
                format!("{count} {} {}", event.type_.unwrap(), event.note.unwrap())
            })
            .collect();
        notes.sort();
        notes
    }

    async fn has_event(&self, reason: &str) -> bool {
        let events = self.client.namespace::<Event>("shop").list().await.unwrap();
        events.items.iter().any(|event| event.reason.as_deref() == Some(reason))
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn until(what: &str, mut met: impl AsyncFnMut() -> bool) {
    for _ in 0..20_000 {
        if met().await {
            return;
        }
        tokio::time::sleep(SECOND / 20).await;
    }
    panic!("never: {what}");
}
