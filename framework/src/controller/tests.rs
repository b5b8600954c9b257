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
use crate::api::Patch;
use crate::client::tests::capture::Captured;
use crate::client::{BoxIo, Client, ClientConfig, Connect};
use crate::clock::Clock;
use crate::conditions::{Conditions, met, unmet};
use crate::entropy::Entropy;
use crate::events::Normal;
use crate::informer::{CacheOptions, InformerRegistry};
use crate::metrics::{Metrics, names};
use crate::rbac::Owns;
use crate::resource::{ResourceExt, ResourceInfo};
use crate::seams::Seams;
use crate::store::{Index, Representation};

mod namespaces;

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

/// Makes each site's host a config map, and minds what the host says.
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
        assert_ne!(site.spec.host, "panics", "as told");
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
        cx.apply_owned(child(site.name(), &site.spec.host)).await?;
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
        let seams = Seams { clock, entropy: Entropy::seeded(1), metrics: Metrics::new() };
        let connector = Arc::new(Pipe(Mutex::new(Some(server.clone()))));
        let config = ClientConfig::new("http://in-process.windlass").expect("an address");
        let client = Client::builder().config(config).connector(connector).seams(seams);
        let world = Self { server, client: client.build().expect("a client") };
        let namespace = serde_json::from_value(json!({ "metadata": { "name": "shop" } }));
        let namespace: k8s_openapi::api::core::v1::Namespace = namespace.expect("a namespace");
        world.client.all().create(&namespace).await.expect("a namespace");
        world.client.all().create(&definition).await.expect("a definition");
        let api = world.client.all::<CustomResourceDefinition>();
        loop {
            let now = api.get(definition.name()).await.expect("it exists");
            let conditions = now.status.and_then(|status| status.conditions).unwrap_or_default();
            if conditions.iter().any(|c| c.type_ == "Established" && c.status == "True") {
                return world;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn run(&self, handle: Arc<dyn ErasedController>) -> Running {
        let running = self.start_only(handle).await;
        running.settled().await;
        running
    }

    /// Running, and not waited for.
    async fn start_only(&self, handle: Arc<dyn ErasedController>) -> Running {
        let informers = InformerRegistry::new(self.client.clone(), vec![]);
        handle.attach(&informers).expect("it can be wired so");
        let stop = CancellationToken::new();
        tokio::spawn({
            let (informers, stop) = (informers.clone(), stop.clone());
            async move { informers.run(stop).await }
        });
        informers.synced().await;
        let run = ControllerRun {
            client: self.client.clone(),
            informers,
            stop: stop.clone(),
            drain: Duration::from_secs(25),
        };
        let work = tokio::spawn({
            let handle = Arc::clone(&handle);
            async move { handle.run(run).await }
        });
        Running { handle, stop, work }
    }

    async fn create(&self, name: &str, host: &str) -> Site {
        let spec = SiteSpec { host: host.into(), config: None };
        self.sites().create(&Site::new(name, spec)).await.expect("created")
    }

    async fn patch(&self, name: &str, patch: Value) -> Site {
        self.sites().patch(name, Patch::Merge(patch)).await.expect("patched")
    }

    fn sites(&self) -> crate::api::Api<Site> {
        self.client.namespace("shop")
    }

    fn maps(&self) -> crate::api::Api<ConfigMap> {
        self.client.namespace("shop")
    }

    fn counted(&self, def: &crate::metrics::Def) -> u64 {
        self.client.seams().metrics.counted(def, &["site"])
    }

    /// Writes that the server was asked for since the last call, Events left out.
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
}

impl Running {
    /// On the paused clock a sleep ends only when nothing else can run.
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
        self.stop.cancel();
        self.work.await.expect("no panic")
    }
}

fn plain(sites: &Sites) -> Arc<dyn ErasedController> {
    Wiring::<Sites>::new().owns::<ConfigMap>().build(sites.clone())
}

fn finalizing(sites: &Sites) -> Arc<dyn ErasedController> {
    Wiring::<Sites>::new().owns::<ConfigMap>().finalizer(FINALIZER).build(sites.clone())
}

#[tokio::test(start_paused = true)]
async fn an_object_gets_its_child_its_condition_and_an_event() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    let site = world.create("home", "a.example").await;
    running.settled().await;
    let map = world.maps().get("home").await.expect("the child");
    let owner = &map.metadata.owner_references.as_ref().expect("an owner")[0];
    assert_eq!((owner.uid.as_str(), owner.controller), (site.uid(), Some(true)));
    assert_eq!(map.data.expect("data")["host"], "a.example");
    let status = world.sites().get("home").await.expect("it is there").status.expect("a status");
    assert!(status.conditions.is_met("Ready"));
    assert_eq!(status.conditions[0].observed_generation, Some(1));
    assert_eq!(status.seen, Some(1));
    let events = world.client.namespace::<Event>("shop").list().await.expect("events").items;
    let notes: Vec<_> = events.iter().filter_map(|event| event.note.as_deref()).collect();
    assert_eq!(notes, ["host a.example"]);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_vanishes_or_is_changed_is_put_right() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a.example").await;
    running.settled().await;
    world.maps().delete("home").await.expect("deleted");
    running.settled().await;
    assert!(world.maps().get_opt("home").await.expect("an answer").is_some(), "it is back");
    let patch = Patch::Merge(json!({ "data": { "host": "b.example" } }));
    world.maps().patch("home", patch).await.expect("patched");
    running.settled().await;
    let map = world.maps().get("home").await.expect("the child");
    assert_eq!(map.data.expect("data")["host"], "a.example");
}

#[tokio::test(start_paused = true)]
async fn when_nothing_would_change_nothing_is_written() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a.example").await;
    running.settled().await;
    let runs = sites.runs("home");
    assert!(runs <= 2, "own writes wake nobody: {:?}", sites.log.lock());
    world.writes();
    world.patch("home", json!({ "metadata": { "labels": { "touched": "yes" } } })).await;
    running.settled().await;
    assert_eq!(sites.runs("home"), runs + 1);
    assert_eq!(world.writes(), ["patch sites/"], "only the test's own write");
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_every_object_is_reconciled_and_nothing_is_changed() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a.example").await;
    running.settled().await;
    assert!(running.stop().await);
    let before = world.maps().get("home").await.expect("the child");
    let again = Sites::default();
    let running = world.run(plain(&again)).await;
    assert_eq!(again.runs("home"), 1);
    let after = world.maps().get("home").await.expect("the child");
    assert_eq!(before.resource_version(), after.resource_version());
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_changes_hands_concerns_both_owners() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("one", "a").await;
    let two = world.create("two", "b").await;
    running.settled().await;
    let orphan = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
    world.maps().patch("one", orphan).await.expect("patched");
    let mut stray = child("stray", "c");
    let info = <Site as crate::resource::Resource>::static_info().expect("static");
    stray.metadata.owner_references = Some(vec![two.controller_reference(&info).expect("a uid")]);
    running.settled().await;
    let (ones, twos) = (sites.runs("one"), sites.runs("two"));
    world.maps().create(&stray).await.expect("created");
    running.settled().await;
    assert_eq!((sites.runs("one"), sites.runs("two")), (ones, twos + 1));
    let one = world.sites().get("one").await.expect("it is there");
    let owner = one.controller_reference(&info).expect("a uid");
    let patch = Patch::Merge(json!({ "metadata": { "ownerReferences": [owner] } }));
    world.maps().patch("stray", patch).await.expect("patched");
    running.settled().await;
    assert_eq!((sites.runs("one"), sites.runs("two")), (ones + 1, twos + 2));
}

#[tokio::test(start_paused = true)]
async fn the_child_of_another_controller_is_left_alone() {
    let (world, sites) = (World::start().await, Sites::default());
    let other = world.maps().create(&child("other", "x")).await.expect("created");
    let info = crate::resource::ResourceInfo::of::<ConfigMap>();
    let mut foreign = child("home", "theirs");
    foreign.metadata.owner_references =
        Some(vec![other.controller_reference(&info).expect("a uid")]);
    world.maps().create(&foreign).await.expect("created");
    let running = world.run(plain(&sites)).await;
    world.create("home", "ours").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let map = world.maps().get("home").await.expect("it is there");
    assert_eq!(map.data.expect("data")["host"], "theirs");
    assert!(world.counted(&names::RECONCILE_ERRORS) > 0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_child_is_deleted_and_not_read_from_the_cache_any_more() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    world.patch("home", json!({ "spec": { "host": "prunes" } })).await;
    running.settled().await;
    assert!(world.maps().get_opt("home").await.expect("an answer").is_none());
    assert!(sites.runs("shown false") > 0);
    assert_eq!(sites.runs("shown true"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_nobody_owns_is_not_deleted_as_a_child() {
    let (world, sites) = (World::start().await, Sites::default());
    world.maps().create(&child("home", "x")).await.expect("created");
    let running = world.run(plain(&sites)).await;
    world.create("home", "prunes").await;
    running.settled().await;
    assert_eq!(sites.runs("shown true"), sites.runs("home"), "reconciled without an error");
    assert!(world.maps().get_opt("home").await.expect("an answer").is_some());
}

/// Cluster-scoped, with a config map in each namespace it names.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", cluster)]
struct Tenant {
    metadata: ObjectMeta,
    spec: TenantSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct TenantSpec {
    namespaces: Vec<String>,
}

#[derive(Clone, Default)]
struct Tenants(Arc<Mutex<Vec<String>>>);

impl Owns<ConfigMap> for Tenants {}

impl Reconciler for Tenants {
    type Object = Tenant;

    async fn reconcile(&self, tenant: &Tenant, cx: &Context<Self>) -> Result<Action> {
        for namespace in &tenant.spec.namespaces {
            let mut child = child(tenant.name(), "x");
            child.metadata.namespace = Some(namespace.clone());
            cx.apply_owned(child).await?;
        }
        if tenant.metadata.labels.is_some() {
            let answer = cx.delete_owned::<ConfigMap>(tenant.name()).await;
            self.0.lock().push(answer.err().map(|error| error.to_string()).unwrap_or_default());
        }
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn the_child_of_a_cluster_scoped_object_is_found_in_its_namespace() {
    let world = World::with(Tenant::crd().expect("a schema")).await;
    let tenants = Tenants::default();
    let running =
        world.run(Wiring::<Tenants>::new().owns::<ConfigMap>().build(tenants.clone())).await;
    let api = world.client.all::<Tenant>();
    let spec = TenantSpec { namespaces: vec!["shop".into(), "default".into()] };
    api.create(&Tenant::new("acme", spec)).await.expect("created");
    running.settled().await;
    let prune = Patch::Merge(json!({ "metadata": { "labels": { "prune": "yes" } } }));
    api.patch("acme", prune).await.expect("patched");
    running.settled().await;
    let told = tenants.0.lock().pop().expect("it was tried");
    assert!(told.contains("default/acme") && told.contains("shop/acme"), "{told}");
    assert!(world.maps().get_opt("acme").await.expect("an answer").is_some());
    let none = Patch::Merge(json!({ "spec": { "namespaces": [] } }));
    api.patch("acme", none).await.expect("patched");
    running.settled().await;
    world.client.namespace::<ConfigMap>("default").delete("acme").await.expect("deleted");
    running.settled().await;
    assert_eq!(tenants.0.lock().pop().expect("it was tried"), "");
    assert!(world.maps().get_opt("acme").await.expect("an answer").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_child_in_another_namespace_is_refused_before_anything_is_sent() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.writes();
    world.create("home", "elsewhere").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(running.handle.state().backing_off <= 1 && sites.runs("home") > 1);
    assert_eq!(world.writes().len(), 1, "the creation");
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_panics_takes_no_other_object_down() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("bad", "panics").await;
    world.create("good", "a.example").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(world.maps().get_opt("good").await.expect("an answer").is_some());
    assert!(world.counted(&names::RECONCILE_PANICS) > 3);
    world.patch("bad", json!({ "spec": { "host": "fine" } })).await;
    running.settled().await;
    assert!(world.maps().get_opt("bad").await.expect("an answer").is_some());
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_is_there_before_the_first_reconcile_and_others_keep_theirs() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(finalizing(&sites)).await;
    let mut site = Site::new("home", SiteSpec { host: "a".into(), config: None });
    site.metadata.finalizers = Some(vec!["other.dev/x".into()]);
    world.sites().create(&site).await.expect("created");
    running.settled().await;
    assert!(sites.finalizer_seen.lock().iter().all(|seen| *seen));
    let site = world.sites().get("home").await.expect("it is there");
    assert_eq!(site.metadata.finalizers, Some(vec!["other.dev/x".into(), FINALIZER.into()]));
    assert!(sites.runs("home") <= 2, "{:?}", sites.log.lock());
}

#[tokio::test(start_paused = true)]
async fn a_removed_finalizer_tells_which_version_it_was_removed_from() {
    let world = World::start().await;
    let mut site = Site::new("home", SiteSpec { host: "a".into(), config: None });
    site.metadata.finalizers = Some(vec![FINALIZER.into()]);
    let stale = world.sites().create(&site).await.expect("created");
    let theirs = world.patch("home", json!({ "metadata": { "labels": { "by": "them" } } })).await;
    let remove = || async {
        let left = crate::finalizer::remove_from(&world.sites(), &stale, FINALIZER).await;
        left.expect("removed").expect("still there")
    };
    assert_eq!(
        remove().await.from.as_deref(),
        Some(theirs.resource_version()),
        "not the stale one"
    );
    assert_eq!(remove().await.from, None, "nothing was written");
}

#[tokio::test(start_paused = true)]
async fn a_failing_clean_up_keeps_the_object_and_a_successful_one_lets_it_go() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(finalizing(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    sites.failing_cleanups.store(1_000, Ordering::SeqCst);
    world.sites().delete("home").await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let site = world.sites().get("home").await.expect("still there");
    assert!(site.is_terminating() && site.has_finalizer(FINALIZER));
    assert!(sites.runs("cleanup home") > 1, "it is tried again");
    let runs = sites.runs("home");
    sites.failing_cleanups.store(0, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(world.sites().get_opt("home").await.expect("an answer").is_none());
    assert_eq!(sites.runs("home"), runs, "a terminating object is not reconciled");
    running.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_removes_only_our_finalizer() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(finalizing(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    let both = json!({ "metadata": { "finalizers": [FINALIZER, "other.dev/x"] } });
    world.patch("home", both).await;
    running.settled().await;
    world.sites().delete("home").await.expect("deleted");
    running.settled().await;
    let site = world.sites().get("home").await.expect("still there");
    assert_eq!(site.metadata.finalizers, Some(vec!["other.dev/x".into()]));
    let runs = sites.runs("cleanup home");
    world.patch("home", json!({ "metadata": { "finalizers": null } })).await;
    running.settled().await;
    assert!(world.sites().get_opt("home").await.expect("an answer").is_none());
    assert_eq!(sites.runs("cleanup home"), runs);
}

#[tokio::test(start_paused = true)]
async fn a_condition_keeps_its_transition_time_until_its_status_changes() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    let ready = |site: Site| site.status.expect("a status").conditions[0].clone();
    let first = ready(world.sites().get("home").await.expect("it is there"));
    tokio::time::sleep(Duration::from_secs(100)).await;
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    running.settled().await;
    let second = ready(world.sites().get("home").await.expect("it is there"));
    assert_eq!((second.message.as_str(), second.observed_generation), ("b", Some(2)));
    assert_eq!(second.last_transition_time, first.last_transition_time);
    world.patch("home", json!({ "spec": { "host": "unready" } })).await;
    running.settled().await;
    let third = ready(world.sites().get("home").await.expect("it is there"));
    assert!(third.status == "False" && third.last_transition_time > first.last_transition_time);
}

#[tokio::test(start_paused = true)]
async fn conditions_of_others_survive_ours() {
    let (world, sites) = (World::start().await, Sites::default());
    world.create("home", "a").await;
    let theirs: Conditions = [met("Theirs", "Because", "")].into_iter().collect();
    let patch = Patch::Merge(json!({ "status": { "conditions": theirs } }));
    world.sites().patch("home", patch).status().await.expect("patched");
    let running = world.run(plain(&sites)).await;
    let status = world.sites().get("home").await.expect("it is there").status.expect("a status");
    assert!(status.conditions.is_met("Theirs") && status.conditions.is_met("Ready"));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_named_by_an_index_is_reconciled_when_what_it_names_changes() {
    let (world, sites) = (World::start().await, Sites::default());
    let wiring = Wiring::<Sites>::new().owns::<ConfigMap>();
    let wiring = wiring.watches_by::<ConfigMap, _>(Site::BY_CONFIG);
    let running = world.run(wiring.build(sites.clone())).await;
    let spec = SiteSpec { host: "a".into(), config: Some("settings".into()) };
    world.sites().create(&Site::new("home", spec)).await.expect("created");
    world.create("other", "b").await;
    running.settled().await;
    let (home, other) = (sites.runs("home"), sites.runs("other"));
    world.maps().create(&child("settings", "x")).await.expect("created");
    running.settled().await;
    assert_eq!((sites.runs("home"), sites.runs("other")), (home + 1, other));
}

/// Its lookups would find nothing, and a reconciler would believe it.
#[tokio::test(start_paused = true)]
async fn a_controller_with_an_index_that_cannot_be_built_does_not_start() {
    let world = World::start().await;
    let by_config: Index<Site, String> = Index::on_path("config", &["spec", "config"]);
    let wirings = [
        Wiring::<Sites>::new().index(by_config),
        Wiring::<Sites>::new().watches_by::<ConfigMap, _>(by_config),
    ];
    for wiring in wirings {
        let informers = InformerRegistry::new(world.client.clone(), vec![]);
        let options = CacheOptions::default().representation(Representation::Metadata);
        informers.set_options(ResourceInfo::of::<Site>(), options).expect("it is not in use");
        let refused = wiring.build(Sites::default()).attach(&informers).unwrap_err();
        assert_eq!(refused.kind(), crate::ErrorKind::Usage);
        let text = refused.to_string();
        assert!(text.contains("controller site") && text.contains("spec.config"), "{text}");
    }
}

/// The same kind as `Site`, with a schema that takes more than `Site` decodes.
mod loose {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced)]
    pub(super) struct Site {
        metadata: ObjectMeta,
        spec: Spec,
        status: Option<SiteStatus>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    struct Spec {
        host: Option<String>,
        config: Option<String>,
    }

    impl Site {
        pub(super) fn without_host(name: &str) -> Self {
            Self::new(name, Spec { host: None, config: None })
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_stops_no_other_and_is_told_once() {
    let (logged, _guard) = Captured::at(tracing::Level::WARN);
    let world = World::with(loose::Site::crd().expect("a schema")).await;
    let sites = Sites::default();
    let bad = loose::Site::without_host("bad");
    let bad = world.client.namespace("shop").create(&bad).await.expect("created");
    let running = world.run(plain(&sites)).await;
    world.create("good", "a.example").await;
    running.settled().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(world.maps().get_opt("good").await.expect("an answer").is_some());
    assert_eq!(world.counted(&names::RECONCILE_TERMINAL_ERRORS), 1, "it is not tried again");
    let info = <Site as crate::resource::Resource>::static_info().expect("static");
    let mut owned = child("owned", "x");
    owned.metadata.owner_references = Some(vec![bad.controller_reference(&info).expect("a uid")]);
    world.maps().create(&owned).await.expect("created");
    running.settled().await;
    assert_eq!(world.counted(&names::RECONCILE_TERMINAL_ERRORS), 2, "its child woke it");
    let events = world.client.namespace::<Event>("shop").list().await.expect("events").items;
    let told: Vec<_> =
        events.iter().filter(|event| event.reason.as_deref() == Some("Undecodable")).collect();
    assert_eq!(told.len(), 1);
    assert!(told[0].series.is_none(), "the same version is told once");
    let lines = logged.with("decode");
    assert_eq!(lines.len(), 1, "one line, by the cache: {}", logged.text());
    assert!(logged.with("the reconcile failed").is_empty(), "{}", logged.text());
    assert!(told[0].note.as_deref().is_some_and(|note| note.contains("host")), "{told:?}");
    world.patch("bad", json!({ "spec": { "host": "b.example" } })).await;
    running.settled().await;
    assert!(world.maps().get_opt("bad").await.expect("an answer").is_some(), "it recovers");
    world.sites().delete("bad").await.expect("deleted");
    running.settled().await;
}

#[test]
fn the_wiring_tells_the_permissions_it_needs() {
    let controller = Wiring::<Sites>::new()
        .owns::<ConfigMap>()
        .finalizer(FINALIZER)
        .can::<crate::rbac::verbs::Get, k8s_openapi::api::core::v1::Pod>()
        .name("sites")
        .build(Sites::default());
    assert_eq!(controller.name(), "sites");
    let printed: Vec<_> = controller
        .rules()
        .iter()
        .map(|rule| {
            let verbs: Vec<_> = rule.verbs.iter().copied().collect();
            format!("{}/{}: {}", rule.group, rule.resource, verbs.join(","))
        })
        .collect();
    assert_eq!(
        printed,
        [
            "/configmaps: create,delete,get,list,patch,watch",
            "/pods: get",
            "events.k8s.io/events: create,patch",
            "example.dev/sites: get,list,patch,watch",
            "example.dev/sites/finalizers: update",
            "example.dev/sites/status: get,patch,update",
        ]
    );
}
