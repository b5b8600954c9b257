//! An operator on an embedded API server: a kind in two versions, objects, and a lease.

use std::io;
use std::sync::Mutex;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::ApiServer;

use super::*;
use crate::CustomResource;
use crate::controller::{Action, Context, ControllerBuilder, Result};
use windlass_client::api::{Api, Patch};
use windlass_client::client::{BoxIo, ClientConfig, Connect};
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;
use windlass_core::metrics::Metrics;
use windlass_core::resource::{DynamicObject, ResourceInfo};
use windlass_core::rng::Rng;

const EPOCH: i64 = 1_767_225_600;
pub(super) const DEFINITION: &str = "trips.example.dev";
pub(super) const SECOND: Duration = Duration::from_secs(1);

/// A kind in its second version.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v2", namespaced)]
pub(super) struct Trip {
    metadata: ObjectMeta,
    spec: TripSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct TripSpec {
    to: String,
}

/// Returns its definition, with these versions.
pub(super) fn definition(versions: &[&str]) -> CustomResourceDefinition {
    let mut definition = Trip::crd().unwrap();
    let one = definition.spec.versions.remove(0);
    definition.spec.versions = versions
        .iter()
        .map(|version| {
            let mut one = one.clone();
            one.name = (*version).to_owned();
            one.storage = version == versions.first().unwrap();
            one
        })
        .collect();
    definition
}

#[derive(Debug)]
struct Pipe(ApiServer);

impl Connect for Pipe {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(Box::new(self.0.connect()?) as BoxIo) })
    }
}

/// An API server with a namespace, a first version of the kind, three objects of it, and a lease
/// that another process holds.
pub(super) struct World {
    pub(super) server: ApiServer,
    pub(super) client: Client,
}

impl World {
    pub(super) async fn start() -> Self {
        let server = ApiServer::builder().seed(1).epoch(EPOCH).start();
        let clock = Clock::simulated(Timestamp::from_second(EPOCH).unwrap());
        let environment = Environment { clock, rng: Rng::seeded(1), metrics: Metrics::new() };
        let config = ClientConfig::new("http://in-process.windlass").unwrap();
        let connector = Arc::new(Pipe(server.clone()));
        let client = Client::builder().config(config).connector(connector).environment(environment);
        let client = client.build().unwrap().of_new_server(&Arc::default());
        let namespace: Namespace = object(json!({ "metadata": { "name": "shop" } }));
        client.all().create(&namespace).await.unwrap();
        client.all().create(&definition(&["v1"])).await.unwrap();
        let info = ResourceInfo { version: "v1".into(), ..ResourceInfo::of::<Trip>() };
        let trips = client.dynamic(info, Some("shop"));
        for name in ["a", "b", "c"] {
            let trip: DynamicObject = object(json!({
                "apiVersion": "example.dev/v1", "kind": "Trip",
                "metadata": { "name": name }, "spec": { "to": "Riga" },
            }));
            while trips.create(&trip).await.is_err() {
                tokio::time::sleep(SECOND / 10).await;
            }
        }
        Self { server, client }
    }

    /// Returns an operator that reconciles the second version, with that definition.
    pub(super) fn operator(&self, story: &Story, definition: CustomResourceDefinition) -> Manager {
        let recorded = story.clone();
        let beside = Runnable::new("beside", move |cx| {
            let recorded = recorded.clone();
            async move {
                recorded.record("leads", cx.informers().informer::<Trip>().store().len());
                cx.stopped().await;
                Ok(())
            }
        });
        let mut manager = Manager::new(self.client.clone())
            .controller_with(Trips(story.clone()), ControllerBuilder::new())
            .runnable(beside.with_leadership())
            .without_health()
            .without_metrics()
            .without_signals();
        manager.definitions.push(Ok(definition));
        manager
    }

    pub(super) fn leases(&self) -> Api<Lease> {
        self.client.namespace("shop")
    }

    pub(super) async fn hold_the_lease(&self) {
        let held: Lease = object(json!({
            "metadata": { "name": "trips" },
            "spec": { "holderIdentity": "somebody", "leaseDurationSeconds": 3600 },
        }));
        self.leases().create(&held).await.unwrap();
    }

    pub(super) async fn free_the_lease(&self) {
        self.give_the_lease_to("").await;
    }

    /// Gives the lease to `holder`, in place of its present holder.
    pub(super) async fn give_the_lease_to(&self, holder: &str) {
        let given = json!({ "spec": { "holderIdentity": holder, "leaseDurationSeconds": 3600 } });
        self.leases().patch("trips", Patch::Merge(given)).await.unwrap();
    }
}

pub(super) fn object<T: for<'a> Deserialize<'a>>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Log of events, with the number of objects that the cache showed.
#[derive(Clone, Debug, Default)]
pub(super) struct Story(Arc<Mutex<Vec<(&'static str, usize)>>>);

impl Story {
    pub(super) fn record(&self, what: &'static str, objects: usize) {
        self.0.lock().unwrap().push((what, objects));
    }

    pub(super) fn recorded(&self) -> Vec<(&'static str, usize)> {
        self.0.lock().unwrap().clone()
    }
}

pub(super) struct Trips(pub(super) Story);

impl Reconciler for Trips {
    type Object = Trip;

    async fn reconcile(&self, _: &Trip, cx: &Context<Self>) -> Result {
        self.0.record("reconciles", cx.store().len());
        Ok(Action::done())
    }
}

pub(super) async fn until(what: &str, met: impl Fn() -> bool) -> Duration {
    let began = tokio::time::Instant::now();
    while !met() {
        assert!(began.elapsed() < 120 * SECOND, "never: {what}");
        tokio::time::sleep(SECOND / 100).await;
    }
    began.elapsed()
}

pub(super) fn absent(running: &Running) -> bool {
    running.informers().status().iter().any(|cache| cache.is_absent)
}

pub(super) fn elected() -> LeaderElection {
    LeaderElection::new("trips").namespace("shop")
}
