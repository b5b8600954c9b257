//! Work of a manager around the controllers: definitions, other clusters, metrics, the debug page.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass::api::{Api, Patch};
use windlass::clock::Clock;
use windlass::controller::Cluster;
use windlass::controller::ControllerBuilder;
use windlass::leader::{LeaderElection, Leadership};
use windlass::manager::Exit;
use windlass::metrics::names;
use windlass::prelude::*;
use windlass::resource::ObjectKey;
use windlass::testing::TestCluster;
use windlass_tests::widget::{self, Widget};

const DEFINITION: &str = "widgets.test.windlass.dev";
const VERSION: &str = "windlass.dev/version";

/// Starts a separate server: the switches of a server are not needed here, but on a shared server
/// all tests see the same definitions. Time is virtual from here on.
async fn own_server() -> TestCluster {
    let cluster = TestCluster::builder().embedded().start().await;
    tokio::time::pause();
    cluster
}

async fn until(clock: &Clock, condition: &str, mut met: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !met().await {
            clock.sleep(Duration::from_millis(25)).await;
        }
    };
    assert!(clock.timeout(Duration::from_secs(60), wait).await.is_some(), "never: {condition}");
}

#[tokio::test]
async fn the_leader_installs_definitions_under_its_lease_and_a_follower_is_ready_without_them() {
    let cluster = own_server().await;
    let (client, clock) = (cluster.client(), cluster.client().environment().clock.clone());
    let leases: Api<Lease> = client.namespace(cluster.namespace());
    let held: Lease = serde_json::from_value(json!({
        "metadata": { "name": "widgets" },
        "spec": { "holderIdentity": "somebody", "leaseDurationSeconds": 3600 },
    }))
    .unwrap();
    leases.create(&held).await.unwrap();
    let election = LeaderElection::new("widgets").namespace(cluster.namespace());
    let operator = widget::operator(client.clone()).leader_election_with(election);
    let running = cluster.spawn(operator);
    until(&clock, "it is ready", async || running.readiness().is_ready()).await;
    clock.sleep(Duration::from_secs(60)).await;
    let definitions: Api<CustomResourceDefinition> = client.all();
    assert!(definitions.get_opt(DEFINITION).await.unwrap().is_none(), "a follower wrote");

    let free = Patch::Merge(json!({ "spec": { "holderIdentity": "" } }));
    leases.patch("widgets", free).await.unwrap();
    until(&clock, "it leads", async || running.leadership() == Some(Leadership::Leading)).await;
    let widgets = client.namespace::<Widget>(cluster.namespace());
    until(&clock, "the kind is served", async || widgets.list().await.is_ok()).await;
    widgets.create(&widget::widget("a", "hello")).await.unwrap();
    let children: Api<ConfigMap> = client.namespace(cluster.namespace());
    let made = async || children.get_opt("a").await.unwrap().is_some();
    until(&clock, "its controller works", made).await;
    assert_eq!(running.stop().await, Exit::Drained);
}

#[tokio::test]
async fn a_first_start_works_at_once_although_it_must_lead_and_install_before() {
    let cluster = own_server().await;
    let clock = cluster.client().environment().clock.clone();
    let began = clock.now();
    let operator = widget::operator(cluster.client()).leader_election("widgets");
    let running = cluster.spawn(operator);
    let widgets = cluster.client().namespace::<Widget>(cluster.namespace());
    until(&clock, "the kind is served", async || widgets.list().await.is_ok()).await;
    widgets.create(&widget::widget("a", "hello")).await.unwrap();
    running.settled().await;
    let took = clock.now() - began;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn a_definition_is_written_only_when_it_differs_and_never_over_a_newer_programs() {
    let cluster = own_server().await;
    let client = cluster.client();
    let definitions: Api<CustomResourceDefinition> = client.all();
    let start = async || {
        let running = cluster.spawn(widget::operator(client.clone()));
        running.settled().await;
        running.stop().await;
        definitions.get(DEFINITION).await.unwrap()
    };
    let first = start().await;
    assert!(first.metadata.annotations.as_ref().unwrap().contains_key(VERSION));
    assert_eq!(start().await.resource_version(), first.resource_version(), "nothing to write");

    let change = json!({ "spec": { "names": { "shortNames": ["wdg"] } } });
    definitions.patch(DEFINITION, Patch::Merge(change.clone())).await.unwrap();
    let ours = start().await;
    assert_ne!(ours.resource_version(), first.resource_version(), "it differed");

    let newer = json!({ "metadata": { "annotations": { VERSION: "999.0.0" } } });
    definitions.patch(DEFINITION, Patch::Merge(change)).await.unwrap();
    let theirs = definitions.patch(DEFINITION, Patch::Merge(newer)).await.unwrap();
    assert_eq!(start().await.resource_version(), theirs.resource_version(), "a newer one's");
}

/// Records the number of widgets in the cache at each reconcile.
struct Counting {
    seen: Arc<Mutex<Vec<usize>>>,
    /// Duration of each reconcile.
    takes: Duration,
}

impl Reconciler for Counting {
    type Object = Widget;

    async fn reconcile(&self, _: &Widget, cx: &Context<Self>) -> Result {
        cx.clock().sleep(self.takes).await;
        self.seen.lock().unwrap().push(cx.store().list().len());
        Ok(Action::done())
    }
}

#[tokio::test]
async fn mechanism_69_workers_start_when_the_caches_are_filled_and_end_their_work_at_a_stop() {
    let cluster = own_server().await;
    cluster.install::<Widget>().await;
    let widgets = cluster.client().namespace::<Widget>(cluster.namespace());
    for n in 0..20 {
        widgets.create(&widget::widget(&n.to_string(), "-")).await.unwrap();
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let counting = Counting { seen: Arc::clone(&seen), takes: Duration::from_secs(1) };
    let builder = ControllerBuilder::<Counting>::new().workers(4);
    let manager = Manager::new(cluster.client()).controller_with(counting, builder);
    let running = cluster.spawn(manager);
    let clock = cluster.client().environment().clock.clone();
    until(&clock, "four are done", async || seen.lock().unwrap().len() >= 4).await;
    clock.sleep(Duration::from_millis(500)).await;
    assert_eq!(running.stop_anyway().await, Exit::Drained);
    let seen = seen.lock().unwrap().clone();
    assert!(seen.iter().all(|count| *count == 20), "the first saw all: {seen:?}");
    assert_eq!(seen.len(), 8, "running parts were ended, the rest not begun");
}

#[tokio::test]
async fn mechanism_70_controllers_of_one_kind_share_one_watch_and_one_cache() {
    let cluster = own_server().await;
    cluster.install::<Widget>().await;
    let widgets = cluster.client().namespace::<Widget>(cluster.namespace());
    widgets.create(&widget::widget("a", "-")).await.unwrap();
    let seen: [Arc<Mutex<Vec<usize>>>; 3] = Default::default();
    let mut manager = Manager::new(cluster.client());
    for (n, seen) in seen.iter().enumerate() {
        let counting = Counting { seen: Arc::clone(seen), takes: Duration::ZERO };
        let builder = ControllerBuilder::<Counting>::new().name(format!("controller-{n}"));
        manager = manager.controller_with(counting, builder);
    }
    let running = cluster.spawn(manager);
    running.settled().await;
    assert!(seen.iter().all(|seen| *seen.lock().unwrap() == [1]), "each was notified: {seen:?}");
    let metrics = cluster.client().environment().metrics.clone();
    let resource = [DEFINITION];
    assert_eq!(metrics.counted(&names::INFORMER_WATCHES, &resource), 1);
    assert_eq!(running.informers().status().len(), 1);
}

/// Copies a ConfigMap of another cluster to the place of a widget of that name.
#[derive(Debug, Controller)]
#[controller(for = Widget, owns(ConfigMap))]
struct Mirror {
    east: Cluster,
}

impl Reconciler for Mirror {
    type Object = Widget;

    async fn reconcile(&self, widget: &Widget, cx: &Context<Self>) -> Result {
        let there = widget.key().in_cluster(self.east.id());
        let Some(original) = self.east.store::<ConfigMap>().get(&there) else {
            return Ok(Action::done());
        };
        let mut copy = ConfigMap::default();
        copy.metadata.name = Some(widget.name().to_owned());
        copy.data.clone_from(&original.get()?.data);
        cx.apply_owned(copy).await?;
        // A write to the other cluster asks for the lease of this cluster.
        let mirrored = json!({ "metadata": { "annotations": { "mirrored": "yes" } } });
        let maps = self.east.client().namespace::<ConfigMap>(there.namespace().unwrap_or_default());
        maps.patch(widget.name(), Patch::Merge(mirrored)).await?;
        Ok(Action::done())
    }
}

fn text_map(name: &str, text: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map.data = Some([("text".to_owned(), text.to_owned())].into());
    map
}

#[tokio::test]
async fn a_controller_mirrors_objects_of_another_cluster_and_readiness_and_metrics_name_it() {
    let there = TestCluster::builder().embedded().start().await;
    let here = own_server().await;
    here.install::<Widget>().await;
    let namespace = here.namespace();
    let originals: Api<ConfigMap> = there.client().namespace(there.namespace());
    originals.create(&text_map("a", "one")).await.unwrap();
    // Both servers give the namespaces of tests the same names.
    assert_eq!(namespace, there.namespace());

    let east = Cluster::new("east", there.client());
    let mirror = Mirror { east: east.clone() };
    let manager = Manager::new(here.client())
        .leader_election_with(LeaderElection::new("mirror").namespace(namespace))
        .cluster(&east)
        .controller_configured(mirror, |builder| {
            builder.watches_in::<ConfigMap>(&east, |map| vec![map.key().clone()])
        });
    let running = here.spawn(manager);
    let widgets = here.client().namespace::<Widget>(namespace);
    widgets.create(&widget::widget("a", "-")).await.unwrap();
    let copies: Api<ConfigMap> = here.client().namespace(namespace);
    let clock = here.client().environment().clock.clone();
    let shows = async |text: &str| {
        let copy = copies.get_opt("a").await.unwrap().and_then(|copy| copy.data);
        copy.is_some_and(|data| data["text"] == text)
    };
    until(&clock, "the copy is there", async || shows("one").await).await;
    originals.patch("a", Patch::Merge(json!({ "data": { "text": "two" } }))).await.unwrap();
    until(&clock, "the copy follows", async || shows("two").await).await;
    let marked = originals.get("a").await.unwrap().metadata.annotations.unwrap_or_default();
    assert_eq!(marked.get("mirrored").map(String::as_str), Some("yes"));

    let checks = running.readiness().checks;
    let names: Vec<_> = checks.iter().map(|check| check.name.as_str()).collect();
    assert!(names.contains(&"cache configmaps"), "{names:?}");
    assert!(names.contains(&"cache east/configmaps"), "{names:?}");
    let metrics = here.client().environment().metrics.encode();
    assert!(metrics.contains(r#"windlass_informer_objects{name="east/ConfigMap""#), "{metrics}");
    let page = running.dump(100);
    assert_eq!(page["informers"]["east"][0]["name"], "east/configmaps");

    assert_eq!(running.stop().await, Exit::Drained);
    let error = east.client().namespace::<ConfigMap>(namespace).delete("a").await.unwrap_err();
    assert_eq!(error.kind(), windlass::ErrorKind::NotLeader, "no process leads: {error}");
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_not_settled_while_its_cache_of_another_cluster_lags() {
    let there = TestCluster::builder().embedded().start().await;
    let here = TestCluster::builder().embedded().start().await;
    here.install::<Widget>().await;
    let originals: Api<ConfigMap> = there.client().namespace(there.namespace());
    let copies: Api<ConfigMap> = here.client().namespace(here.namespace());
    let east = Cluster::new("east", there.client());
    let manager = Manager::new(here.client())
        .cluster(&east)
        .controller_configured(Mirror { east: east.clone() }, |builder| {
            builder.watches_in::<ConfigMap>(&east, |map| vec![map.key().clone()])
        });
    let running = here.spawn(manager);
    let widgets = here.client().namespace::<Widget>(here.namespace());
    widgets.create(&widget::widget("a", "-")).await.unwrap();
    running.settled().await;
    there.server().faults().pause_watches("configmaps");
    originals.create(&text_map("a", "one")).await.unwrap();
    let error = running.try_settled(Duration::from_secs(5)).await.unwrap_err();
    let key = format!("{}/a has not arrived", there.namespace());
    assert!(error.to_string().contains(&key), "{error}");
    there.server().faults().resume_watches("configmaps");
    running.settled().await;
    assert_eq!(copies.get("a").await.unwrap().data.unwrap()["text"], "one");
    assert_eq!(running.stop().await, Exit::Drained);
}

async fn fetch(addr: SocketAddr, path: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Families with their types and labels, as dashboards made for controller-runtime expect them.
const FAMILIES: &[(&str, &str, &[&str])] = &[
    ("controller_runtime_reconcile_total", "counter", &["controller", "result"]),
    ("controller_runtime_reconcile_errors_total", "counter", &["controller"]),
    ("controller_runtime_terminal_reconcile_errors_total", "counter", &["controller"]),
    ("controller_runtime_reconcile_panics_total", "counter", &["controller"]),
    ("controller_runtime_reconcile_timeouts_total", "counter", &["controller"]),
    ("controller_runtime_reconcile_time_seconds", "histogram", &["controller"]),
    ("controller_runtime_max_concurrent_reconciles", "gauge", &["controller"]),
    ("controller_runtime_active_workers", "gauge", &["controller"]),
    ("workqueue_depth", "gauge", &["controller", "name", "priority"]),
    ("workqueue_adds_total", "counter", &["controller", "name"]),
    ("workqueue_retries_total", "counter", &["controller", "name"]),
    ("workqueue_queue_duration_seconds", "histogram", &["controller", "name"]),
    ("workqueue_work_duration_seconds", "histogram", &["controller", "name"]),
    ("workqueue_unfinished_work_seconds", "gauge", &["controller", "name"]),
    ("workqueue_longest_running_processor_seconds", "gauge", &["controller", "name"]),
    ("rest_client_requests_total", "counter", &["code", "host", "method"]),
    ("rest_client_request_duration_seconds", "histogram", &["host", "verb"]),
    ("rest_client_request_size_bytes", "histogram", &["host", "verb"]),
    ("rest_client_response_size_bytes", "histogram", &["host", "verb"]),
    ("leader_election_master_status", "gauge", &["name"]),
    ("process_cpu_seconds_total", "counter", &[]),
    ("process_resident_memory_bytes", "gauge", &[]),
];

/// Series that the panels of kubebuilder's dashboards of runtime and resources ask for, with the
/// labels that each panel groups by.
const PANELS: &[(&str, &[&str])] = &[
    ("controller_runtime_reconcile_total", &[]),
    ("controller_runtime_reconcile_errors_total", &[]),
    ("controller_runtime_reconcile_time_seconds_bucket", &["le", "controller"]),
    ("controller_runtime_active_workers", &["controller"]),
    ("workqueue_adds_total", &["name"]),
    ("workqueue_retries_total", &["name"]),
    ("workqueue_depth", &["name"]),
    ("workqueue_queue_duration_seconds_bucket", &["name", "le"]),
    ("workqueue_work_duration_seconds_bucket", &["name", "le"]),
    ("workqueue_unfinished_work_seconds", &["name"]),
    ("rest_client_requests_total", &["code", "method"]),
    ("process_cpu_seconds_total", &[]),
    ("process_resident_memory_bytes", &[]),
];

/// Returns the label names of each series of that name.
fn labels_of(text: &str, series: &str) -> Vec<BTreeSet<String>> {
    let label = |pair: &str| pair.split_once('=').map(|(name, _)| name.to_owned());
    let lines = text.lines().filter_map(|line| line.strip_prefix(series));
    lines
        .filter_map(|rest| match rest.strip_prefix('{') {
            Some(rest) => {
                let (labels, _) = rest.split_once('}')?;
                Some(labels.split("\",").filter_map(label).collect())
            }
            None => rest.starts_with(' ').then(BTreeSet::new),
        })
        .collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_running_operator_shows_every_metric_under_its_name_type_and_labels() {
    let cluster = TestCluster::start().await;
    cluster.install::<Widget>().await;
    let manager = widget::operator(cluster.client())
        .leader_election_with(LeaderElection::new("widgets").namespace(cluster.namespace()))
        .metrics("127.0.0.1:0".parse().unwrap());
    let running = cluster.spawn(manager);
    let widgets = cluster.client().namespace::<Widget>(cluster.namespace());
    widgets.create(&widget::widget("a", "hello")).await.unwrap();
    running.settled().await;
    let text = fetch(running.metrics_addr().await.unwrap(), "/metrics").await;
    for (name, shape, labels) in FAMILIES {
        let family = name.strip_suffix("_total").unwrap_or(name);
        assert!(
            text.contains(&format!("# TYPE {family} {shape}\n")),
            "{name} is no {shape}:\n{text}"
        );
        let series = match *shape {
            "histogram" => format!("{name}_count"),
            _ => (*name).to_owned(),
        };
        let found = labels_of(&text, &series);
        assert!(!found.is_empty(), "no series of {name}:\n{text}");
        assert!(found.iter().all(|one| *one == set(labels)), "{name}: {found:?}");
    }
    for result in ["success", "error", "requeue", "requeue_after"] {
        let line = format!("reconcile_total{{controller=\"widget\",result=\"{result}\"}}");
        assert!(text.contains(&line), "{result} is there before it happens");
    }
    assert!(text.contains("leader_election_master_status{name=\"widgets\"} 1"), "{text}");
}

#[tokio::test]
async fn the_queries_of_kubebuilders_panels_find_their_series_and_labels() {
    let cluster = TestCluster::start().await;
    cluster.install::<Widget>().await;
    let running = cluster.spawn(widget::operator(cluster.client()));
    let widgets = cluster.client().namespace::<Widget>(cluster.namespace());
    widgets.create(&widget::widget("a", "hello")).await.unwrap();
    running.settled().await;
    let manager = running.client().environment().metrics.encode();
    for (series, by) in PANELS.iter().filter(|(series, _)| !series.starts_with("process_")) {
        let found = labels_of(&manager, series);
        assert!(found.iter().any(|labels| labels.is_superset(&set(by))), "{series} by {by:?}");
    }
}

#[tokio::test]
async fn the_debug_page_of_a_running_operator_shows_keys_caches_and_leadership() {
    let cluster = TestCluster::start().await;
    cluster.install::<Widget>().await;
    let manager = widget::operator(cluster.client())
        .leader_election_with(LeaderElection::new("widgets").namespace(cluster.namespace()))
        .metrics("127.0.0.1:0".parse().unwrap());
    let running = cluster.spawn(manager);
    let widgets = cluster.client().namespace::<Widget>(cluster.namespace());
    widgets.create(&widget::widget("good", "hello")).await.unwrap();
    widgets.create(&widget::widget("bad", "fail")).await.unwrap();
    let clock = cluster.client().environment().clock.clone();
    let mut page = Value::Null;
    until(&clock, "the failing key backs off", async || {
        page = running.dump(10);
        page["controllers"][0]["queue"]["backingOff"] == 1
            && page["controllers"][0]["reconciles"].as_u64() >= Some(2)
    })
    .await;
    let served = fetch(running.metrics_addr().await.unwrap(), "/debug").await;
    let served: Value = serde_json::from_str(&served).unwrap();
    assert_eq!(served["controllers"][0]["name"], "widget");
    // The other object may just be in work, and then comes first.
    let bad = format!("{}/bad", cluster.namespace());
    let keys = page["controllers"][0]["keys"].as_array().unwrap();
    let key = keys.iter().find(|key| key["key"] == bad).unwrap();
    assert_eq!(key["state"], "backing off");
    assert!(key["dueInSeconds"].is_number() && key["failures"].as_u64() >= Some(1), "{key}");
    assert_eq!(key["reasons"], json!(["retry"]));
    let last = &page["controllers"][0]["lastErrors"][0];
    assert_eq!(last["key"], key["key"]);
    assert!(last["error"].as_str().unwrap().contains("asked to"), "{last}");
    assert_eq!(page["leadership"]["state"], "leading");
    assert_eq!(page["leadership"]["holder"], page["leadership"]["identity"]);
    let caches = page["informers"]["local"].as_array().unwrap();
    let cache = caches.iter().find(|one| one["name"] == DEFINITION).unwrap();
    assert_eq!((cache["objects"].as_u64(), cache["synced"].as_bool()), (Some(2), Some(true)));
    assert!(cache["bytes"].as_u64() > Some(100), "{cache}");
}

#[test]
fn keys_of_another_cluster_are_not_those_of_this_one() {
    let key = ObjectKey::new(Some("default"), "a");
    let east = Cluster::new("east", windlass::client::Client::offline());
    assert_ne!(key.clone().in_cluster(east.id()), key);
}
