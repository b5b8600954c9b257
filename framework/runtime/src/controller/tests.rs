//! Controllers against the embedded API server, on the paused clock.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_apiserver::ApiServer;

use super::*;
use crate::CustomResource;
use crate::events::Normal;
use windlass_cache::informer::{CacheOptions, InformerRegistry};
use windlass_cache::store::{Index, Representation};
use windlass_client::api::Patch;
use windlass_client::client::test_support::Captured;
use windlass_client::client::{BoxIo, Client, ClientConfig, Connect};
use windlass_core::clock::Clock;
use windlass_core::conditions::{Conditions, met, unmet};
use windlass_core::environment::Environment;
use windlass_core::metrics::{Metrics, names};
use windlass_core::rbac::Owns;
use windlass_core::resource::{ObjectKey, ResourceExt, ResourceInfo};
use windlass_core::rng::Rng;

mod context;
mod reconcile;
mod run;
mod source;
mod state;
mod worker;

const EPOCH: i64 = 1_767_225_600;
const FINALIZER: &str = "example.dev/dns";

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
#[index(by_config = spec.config)]
struct Site {
    metadata: ObjectMeta,
    spec: SiteSpec,
    status: Option<SiteStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct SiteSpec {
    host: String,
    config: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct SiteStatus {
    #[serde(default)]
    conditions: Conditions,
    seen: Option<i64>,
}

/// Applies a config map with each site's host, and acts as the host says.
#[derive(Clone, Default)]
struct Sites {
    log: Arc<Mutex<Vec<String>>>,
    failing_cleanups: Arc<AtomicU32>,
    finalizer_seen: Arc<Mutex<Vec<bool>>>,
}

impl Sites {
    fn runs(&self, name: &str) -> usize {
        self.log.lock().iter().filter(|entry| *entry == name).count()
    }
}

impl Reconciler for Sites {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result<Action> {
        self.log.lock().push(site.name().to_owned());
        self.finalizer_seen.lock().push(site.has_finalizer(FINALIZER));
        assert_ne!(site.spec.host, "panics", "on purpose");
        if site.spec.host == "prunes" {
            cx.delete_owned::<ConfigMap>(site.name()).await?;
            let shown = cx.store_of::<ConfigMap>().get(&site.key()).is_some();
            self.log.lock().push(format!("shown {shown}"));
            return Ok(Action::done());
        }
        if site.spec.host == "elsewhere" {
            let mut child = child(site.name(), &site.spec.host);
            child.metadata.namespace = Some("elsewhere".into());
            cx.apply_owned(child).await?;
        }
        let apply = cx.apply_owned(child(site.name(), &site.spec.host));
        let apply = if site.spec.host == "adopts" { apply.adopt() } else { apply };
        apply.await?;
        if site.spec.host == "unready" {
            cx.set_condition(unmet("Ready", "NotYet", &site.spec.host)).await?;
        } else {
            cx.set_condition(met("Ready", "Serving", &site.spec.host)).await?;
        }
        cx.patch_status(json!({ "seen": site.generation() })).await?;
        cx.event(Normal, "Applied", format_args!("host {}", site.spec.host));
        Ok(Action::done())
    }
}

impl Finalize for Sites {
    async fn cleanup(&self, site: &Site, _: &Context<Self>) -> Result<()> {
        self.log.lock().push(format!("cleanup {}", site.name()));
        let left = &self.failing_cleanups;
        match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) {
            Ok(_) => Err("the outside system is away".into()),
            Err(_) => Ok(()),
        }
    }
}

impl Owns<ConfigMap> for Sites {}

fn child(name: &str, host: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        data: Some([("host".to_owned(), host.to_owned())].into()),
        ..ConfigMap::default()
    }
}

#[derive(Debug)]
struct Pipe(Mutex<Option<ApiServer>>);

impl Connect for Pipe {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        let server = self.0.lock().clone();
        Box::pin(async move {
            let server = server.ok_or_else(|| io::Error::other("no server"))?;
            Ok(Box::new(server.connect()?) as BoxIo)
        })
    }
}

/// Creates a definition, and waits until its kind is served.
async fn define(client: &Client, definition: &CustomResourceDefinition) {
    let api = client.all::<CustomResourceDefinition>();
    api.create(definition).await.expect("a definition");
    loop {
        let now = api.get(definition.name()).await.expect("it exists");
        let conditions = now.status.and_then(|status| status.conditions).unwrap_or_default();
        if conditions.iter().any(|c| c.type_ == "Established" && c.status == "True") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An API server with namespace `shop` and the kind `Site`.
struct World {
    server: ApiServer,
    client: Client,
}

impl World {
    async fn start() -> Self {
        let definition = Site::crd().expect("a schema");
        Self::with(definition).await
    }

    async fn with(definition: CustomResourceDefinition) -> Self {
        let server = ApiServer::builder().seed(1).epoch(EPOCH).start();
        let clock = Clock::simulated(Timestamp::from_second(EPOCH).expect("in range"));
        let environment = Environment { clock, rng: Rng::seeded(1), metrics: Metrics::new() };
        let connector = Arc::new(Pipe(Mutex::new(Some(server.clone()))));
        let config = ClientConfig::new("http://in-process.windlass").expect("an address");
        let client = Client::builder().config(config).connector(connector).environment(environment);
        let world = Self { server, client: client.build().expect("a client") };
        let namespace = serde_json::from_value(json!({ "metadata": { "name": "shop" } }));
        let namespace: k8s_openapi::api::core::v1::Namespace = namespace.expect("a namespace");
        world.client.all().create(&namespace).await.expect("a namespace");
        define(&world.client, &definition).await;
        world
    }

    async fn run(&self, handle: Arc<dyn ErasedController>) -> Running {
        let running = self.start_only(handle).await;
        running.settled().await;
        running
    }

    /// Starts the controller without waiting for it to settle.
    async fn start_only(&self, handle: Arc<dyn ErasedController>) -> Running {
        self.start_with(handle, InformerRegistry::new(self.client.clone(), vec![])).await
    }

    async fn start_with(
        &self,
        handle: Arc<dyn ErasedController>,
        informers: InformerRegistry,
    ) -> Running {
        handle.attach(&informers).expect("the sources can be attached");
        let stop = CancellationToken::new();
        tokio::spawn({
            let (informers, stop) = (informers.clone(), stop.clone());
            async move { informers.run(stop).await }
        });
        informers.synced().await;
        let run = ControllerRun {
            client: self.client.clone(),
            informers: informers.clone(),
            stop: stop.clone(),
            drain: Duration::from_secs(25),
        };
        let work = tokio::spawn({
            let handle = Arc::clone(&handle);
            async move { handle.run(run).await }
        });
        let watched = Watched(Arc::clone(&handle));
        Running { handle, stop, work, watched, informers }
    }

    async fn create(&self, name: &str, host: &str) -> Site {
        let spec = SiteSpec { host: host.into(), config: None };
        self.sites().create(&Site::new(name, spec)).await.expect("created")
    }

    async fn patch(&self, name: &str, patch: Value) -> Site {
        self.sites().patch(name, Patch::Merge(patch)).await.expect("patched")
    }

    fn sites(&self) -> windlass_client::api::Api<Site> {
        self.client.namespace("shop")
    }

    fn maps(&self) -> windlass_client::api::Api<ConfigMap> {
        self.client.namespace("shop")
    }

    fn counted(&self, definition: &windlass_core::metrics::MetricDefinition) -> u64 {
        self.client.environment().metrics.counted(definition, &["site"])
    }

    /// Returns the writes to the server since the last call, without Events.
    fn writes(&self) -> Vec<String> {
        let requests = self.server.requests();
        self.server.clear_requests();
        let writes =
            requests.into_iter().filter(|r| !["get", "list", "watch"].contains(&r.verb.as_str()));
        let writes = writes.filter(|request| request.resource != "events");
        writes.map(|r| format!("{} {}/{}", r.verb, r.resource, r.subresource)).collect()
    }
}

struct Running {
    handle: Arc<dyn ErasedController>,
    stop: CancellationToken,
    work: JoinHandle<bool>,
    watched: Watched,
    informers: InformerRegistry,
}

/// Fails the test whose controller reconciles endlessly, however the test ends.
struct Watched(Arc<dyn ErasedController>);

impl Watched {
    fn is_at_rest(&self) -> bool {
        let state = self.0.state();
        state.queued + state.working + state.backing_off + state.delayed == 0
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.is_at_rest() {
            let endless = self.0.busy_report().endless;
            assert!(endless.is_empty(), "it reconciles without end: {endless:?}");
        }
    }
}

impl Running {
    /// Waits until the controller is idle. On the paused clock a sleep ends only when nothing else
    /// can run.
    async fn settled(&self) {
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let state = self.handle.state();
            if state.queued + state.working + state.backing_off == 0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                return;
            }
        }
        panic!("not settled: {:?}", self.handle.state());
    }

    async fn stop(self) -> bool {
        drop(self.watched);
        self.stop.cancel();
        self.work.await.expect("no panic")
    }
}

fn plain(sites: &Sites) -> Arc<dyn ErasedController> {
    ControllerBuilder::<Sites>::new().owns::<ConfigMap>().build(sites.clone())
}

fn finalizing(sites: &Sites) -> Arc<dyn ErasedController> {
    ControllerBuilder::<Sites>::new().owns::<ConfigMap>().finalizer(FINALIZER).build(sites.clone())
}

/// Notes the reasons of each reconcile, and acts as the host says.
#[derive(Clone, Default)]
struct Noting(Arc<Mutex<Vec<String>>>);

impl Noting {
    /// Returns the notes since the last call: `home: changed, requeue`.
    fn noted(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Reconciler for Noting {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result<Action> {
        self.0.lock().push(format!("{}: {}", site.name(), cx.reasons()));
        match site.spec.host.as_str() {
            "fails" => return Err("on purpose".into()),
            "requeues" => return Ok(Action::requeue_after(Duration::from_secs(60))),
            "asks" => cx.requeue(ObjectKey::new(Some("shop"), "home")),
            "has a child" => drop(cx.apply_owned(child(site.name(), "x")).await?),
            _ => {}
        }
        Ok(Action::done())
    }
}

impl Finalize for Noting {
    async fn cleanup(&self, site: &Site, cx: &Context<Self>) -> Result<()> {
        self.0.lock().push(format!("{}: {}, cleaned up", site.name(), cx.reasons()));
        Ok(())
    }
}

impl Owns<ConfigMap> for Noting {}
