//! Rollouts against the embedded API server, on the paused clock. The children are ConfigMaps; the
//! test makes them ready.

mod canaries;
mod dry_runs;
mod history;
mod refusals;
mod steps;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::ApiServer;

use super::*;
use crate::controller::{ControllerBuilder, Result};
use crate::manager::{Manager, Running};
use crate::{Controller, CustomResource};
use windlass_client::api::{Api, Patch};
use windlass_client::client::{BoxIo, Client, ClientConfig, Connect};
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;
use windlass_core::metrics::{Metrics, names};
use windlass_core::resource::{Resource, ResourceExt};
use windlass_core::rng::Rng;

const EPOCH: i64 = 1_767_225_600;
const SECOND: Duration = Duration::from_secs(1);

/// A kind with several children.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Fleet {
    metadata: ObjectMeta,
    spec: FleetSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct FleetSpec {
    image: String,
    count: usize,
    #[serde(default)]
    partition: usize,
    #[serde(default)]
    motto: String,
}

/// Rolls a fleet out, and notes each status.
#[derive(Clone, Default)]
struct Fleets {
    seen: Arc<Mutex<Vec<RolloutStatus>>>,
    canary: Option<Canary>,
    deadline: Option<Duration>,
    history: Option<usize>,
    max_unavailable: usize,
}

impl Owns<ConfigMap> for Fleets {}
impl Owns<ControllerRevision> for Fleets {}

impl Controller for Fleets {
    fn builder() -> ControllerBuilder<Self> {
        ControllerBuilder::new().owns::<ConfigMap>().owns::<ControllerRevision>()
    }
}

fn is_ready(map: &ConfigMap) -> bool {
    let data = map.data.as_ref();
    data.and_then(|data| data.get("ready")) == data.and_then(|data| data.get("image"))
}

impl Reconciler for Fleets {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        let names: Vec<String> =
            (0..fleet.spec.count).map(|n| format!("{}-{n}", fleet.name())).collect();
        let mut rollout = Rollout::new(cx, "maps", fleet.spec.image.clone())
            .max_unavailable(self.max_unavailable)
            .partition(fleet.spec.partition)
            .history(self.history.unwrap_or(10));
        if let Some(canary) = self.canary {
            rollout = rollout.canary(canary);
        }
        if let Some(deadline) = self.deadline {
            rollout = rollout.deadline(deadline);
        }
        let child = |_: &str, image: &String| {
            let mut map = ConfigMap::default();
            let data = [("image", image), ("motto", &fleet.spec.motto)];
            map.data = Some(data.map(|(key, value)| (key.to_owned(), value.clone())).into());
            if image.as_str() == "refused" {
                // Answered with 422: no key of a ConfigMap has a blank.
                map.data.get_or_insert_default().insert("no key".to_owned(), String::new());
            }
            map
        };
        let status = rollout.apply(&names, child, is_ready).await?;
        let action = status.action();
        self.seen.lock().push(status);
        action
    }
}

#[derive(Debug)]
struct Pipe(ApiServer);

impl Connect for Pipe {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(Box::new(self.0.connect()?) as BoxIo) })
    }
}

/// An API server with a fleet `a` in the namespace `shop`.
struct World {
    server: ApiServer,
    client: Client,
    fleets: Fleets,
    running: Option<Running>,
}

impl World {
    /// Starts the operator with a fleet of so many children, at image 1.
    async fn start(fleets: Fleets, count: usize) -> Self {
        let server = ApiServer::builder().seed(1).epoch(EPOCH).start();
        let clock = Clock::simulated(Timestamp::from_second(EPOCH).unwrap());
        let environment = Environment { clock, rng: Rng::seeded(1), metrics: Metrics::new() };
        let config = ClientConfig::new("http://in-process.windlass").unwrap();
        let connector = Arc::new(Pipe(server.clone()));
        let client = Client::builder().config(config).connector(connector).environment(environment);
        let mut world = Self { server, client: client.build().unwrap(), fleets, running: None };
        let namespace = serde_json::from_value(json!({ "metadata": { "name": "shop" } }));
        world.client.all::<Namespace>().create(&namespace.unwrap()).await.unwrap();
        world.client.all().create(&Fleet::crd().unwrap()).await.unwrap();
        while world.api::<Fleet>().list().await.is_err() {
            tokio::time::sleep(SECOND).await;
        }
        let spec = FleetSpec { image: "1".to_owned(), count, ..FleetSpec::default() };
        world.api().create(&Fleet::new("a", spec)).await.unwrap();
        world.restart().await;
        world
    }

    /// Starts the operator anew, without what it remembers.
    async fn restart(&mut self) {
        self.stop().await;
        let manager = Manager::new(self.client.clone()).without_leader_election().without_health();
        let manager = manager.without_metrics().without_signals().controller(self.fleets.clone());
        self.running = Some(manager.start());
        self.rest().await;
    }

    async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
            running.join().await.unwrap();
        }
    }

    /// Returns the reason of the stall with which reconciles end, none of which has failed.
    fn stalled(&self) -> String {
        let metrics = &self.client.environment().metrics;
        assert_eq!(metrics.counted(&names::RECONCILE_ERRORS, &["fleet"]), 0, "no failure");
        let wait = self.status().action().expect("no failure").wait.expect("a wait");
        assert!(wait.is_stalled && wait.text.contains("was not ready within 60 s"), "{wait:?}");
        wait.reason.into_owned()
    }

    /// Lets the operator do what it does now.
    async fn rest(&self) {
        tokio::time::sleep(2 * SECOND).await;
    }

    fn api<K: Resource>(&self) -> Api<K> {
        self.client.namespace("shop")
    }

    async fn patch(&self, patch: Value) {
        self.api::<Fleet>().patch("a", Patch::Merge(patch)).await.unwrap();
        self.rest().await;
    }

    async fn set_image(&self, image: &str) {
        self.patch(json!({ "spec": { "image": image } })).await;
    }

    /// Makes a child ready in its image.
    async fn make_ready(&self, place: usize) {
        let name = format!("a-{place}");
        let map = self.api::<ConfigMap>().get(&name).await.unwrap();
        let ready = json!({ "data": { "ready": map.data.unwrap()["image"] } });
        self.api::<ConfigMap>().patch(&name, Patch::Merge(ready)).await.unwrap();
        self.rest().await;
    }

    async fn make_all_ready(&self) {
        for map in self.children().await {
            self.make_ready(map.name()[2..].parse().unwrap()).await;
        }
    }

    async fn children(&self) -> Vec<ConfigMap> {
        let maps = self.api::<ConfigMap>().list().await.unwrap().items;
        maps.into_iter().filter(|map| map.label(ROLLOUT).is_some()).collect()
    }

    /// Makes the children ready one after the other until nothing changes.
    async fn roll_out(&self) {
        for _ in 0..20 {
            self.make_all_ready().await;
            if self.status().phase != RolloutPhase::Progressing {
                return;
            }
        }
        panic!("it does not end: {:?}", self.status());
    }

    /// The images of the children in order; those that are not ready have a `?`.
    async fn images(&self) -> String {
        let maps = self.api::<ConfigMap>().list().await.unwrap().items;
        let one = |map: &ConfigMap| {
            let image = map.data.as_ref().unwrap()["image"].clone();
            if is_ready(map) { image } else { format!("{image}?") }
        };
        let maps: Vec<String> =
            maps.iter().filter(|map| map.label(ROLLOUT).is_some()).map(one).collect();
        maps.join(" ")
    }

    fn status(&self) -> RolloutStatus {
        self.fleets.seen.lock().last().unwrap().clone()
    }

    /// Returns the writes since the last call, without Events.
    fn writes(&self) -> Vec<String> {
        let requests = self.server.requests();
        self.server.clear_requests();
        let is_write = |verb: &str| !["get", "list", "watch"].contains(&verb);
        let writes =
            requests.into_iter().filter(|it| is_write(&it.verb) && it.resource != "events");
        writes.map(|it| format!("{} {}", it.verb, it.resource)).collect()
    }
}
