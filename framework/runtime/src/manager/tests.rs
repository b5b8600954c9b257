mod definitions;
mod granted;
mod hardened;
mod installing;
mod leading;
mod migrating;
mod refusals;
mod runnables;
mod serving;
mod terms;
mod unfilled;
mod world;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::endpoints::OperatorStatus;
use super::endpoints::http::{
    ConnectionState, Endpoints, bind, is_one, reader_permits, serve, serve_connection,
};
use super::recording::Recorder;
use super::*;
use crate::controller::{ControllerRun, ControllerState};
use windlass_cache::informer::InformerRegistry;
use windlass_client::client::test_support::Captured;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::names;

fn nowhere() -> Client {
    Client::offline()
}

/// A controller that takes `needs` to end after the request to stop.
#[derive(Debug)]
struct Slow {
    needs: Duration,
    started: AtomicUsize,
    fails: bool,
}

impl Slow {
    fn new(needs: Duration) -> Arc<Self> {
        Arc::new(Self { needs, started: AtomicUsize::new(0), fails: false })
    }
}

impl ErasedController for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn rules(&self) -> Vec<Rule> {
        vec![
            Rule::of_resource("deployments.apps", &["watch", "list"]),
            Rule::of_resource("deployments.apps", &["patch", "list"]),
            Rule::of_resource("deployments.apps/status", &["get"]),
        ]
    }

    fn attach(&self, _: &InformerRegistry) -> Result<(), Error> {
        Ok(())
    }

    fn run(&self, run: ControllerRun) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async move {
            self.started.fetch_add(1, Ordering::Relaxed);
            if self.fails {
                return true;
            }
            run.stop.cancelled().await;
            tokio::time::timeout(run.drain, tokio::time::sleep(self.needs)).await.is_ok()
        })
    }

    fn state(&self) -> ControllerState {
        ControllerState::default()
    }
}

fn operator(controller: &Arc<Slow>) -> Manager {
    let controller: Arc<dyn ErasedController> = controller.clone();
    Manager::new(nowhere())
        .erased_controller(controller)
        .without_health()
        .without_metrics()
        .without_signals()
}

async fn until_started(controller: &Slow) {
    while controller.started.load(Ordering::Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn s1_a_stop_waits_for_running_reconciles() {
    let controller = Slow::new(Duration::from_secs(20));
    let running = operator(&controller).start();
    until_started(&controller).await;
    assert!(running.readiness().is_ready());
    let asked = tokio::time::Instant::now();
    running.stop();
    assert!(!running.readiness().is_ready(), "readiness falls at once");
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
    assert!(asked.elapsed() >= Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn s1_s2_reconciles_beyond_the_drain_time_are_cut_and_the_exit_says_so() {
    let controller = Slow::new(Duration::from_secs(3_600));
    let running = operator(&controller).drain(Duration::from_secs(5)).start();
    until_started(&controller).await;
    let asked = tokio::time::Instant::now();
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Cut);
    assert!(asked.elapsed() <= Duration::from_secs(7), "{:?}", asked.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_ends_by_itself_ends_the_operator_with_its_name() {
    let controller =
        Arc::new(Slow { needs: Duration::ZERO, started: AtomicUsize::new(0), fails: true });
    let error = operator(&controller).run().await.unwrap_err();
    assert!(error.to_string().contains("\"slow\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_unsafe_election_is_refused_before_anything_runs() {
    let controller = Slow::new(Duration::ZERO);
    let settings = LeaderElection::new("ops").lease_duration(Duration::from_secs(11));
    let error = operator(&controller).leader_election_with(settings).run().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(controller.started.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn probes_and_metrics_are_served_on_a_free_port_when_asked() {
    let controller = Slow::new(Duration::ZERO);
    let local = "127.0.0.1:0".parse().unwrap();
    let running = operator(&controller).health(local).metrics(local).start();
    let (health, metrics) =
        (running.health_addr().await.unwrap(), running.metrics_addr().await.unwrap());
    assert_ne!(health, metrics);
    assert!(fetch(health, "/healthz").await.contains("200 OK"));
    assert!(fetch(metrics, "/metrics").await.contains("# EOF"));
    assert!(fetch(metrics, "/healthz").await.contains("404"));
    running.stop();
    running.join().await.unwrap();
    assert!(tokio::net::TcpStream::connect(health).await.is_err(), "still listening");
}

async fn fetch(addr: SocketAddr, path: &str) -> String {
    talk(tokio::net::TcpStream::connect(addr).await.unwrap(), &get(path)).await
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
}

async fn talk(mut stream: impl windlass_client::client::Io, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn endpoints() -> Endpoints {
    let client = nowhere();
    let status = OperatorStatus {
        name: "ops".to_owned(),
        names: Arc::default(),
        began: client.environment().clock.now(),
        client: client.clone(),
        stop: CancellationToken::new(),
        informers: InformerRegistry::new(client.clone(), Vec::new()),
        clusters: Vec::new(),
        controllers: vec![Slow::new(Duration::ZERO)],
        runnables: Vec::new(),
        lease: None,
        elector: None,
        recorder: Recorder::start("ops", &client, Vec::new(), RecordingOptions::default()),
        installs: Default::default(),
        kept_definitions: Default::default(),
        starting: parking_lot::Mutex::new(None),
        gate: parking_lot::Mutex::new(None),
    };
    client.environment().metrics.count(&names::RECONCILE, &["slow", "success"], 3);
    Endpoints {
        status: Arc::new(status),
        clock: client.environment().clock.clone(),
        probes: true,
        metrics: Some(client.environment().metrics.clone()),
        debug: true,
    }
}

async fn ask(endpoints: &Endpoints, request: &str) -> String {
    ask_from(true, endpoints, request).await
}

/// Asks over the loopback interface, or from elsewhere.
async fn ask_from(is_local: bool, endpoints: &Endpoints, request: &str) -> String {
    let (here, there) = tokio::io::duplex(4096);
    let state = ConnectionState::new(is_local, &reader_permits());
    let server = tokio::spawn(serve_connection(there, endpoints.clone(), state));
    let answer = talk(here, request).await;
    server.await.unwrap();
    answer
}

#[tokio::test(start_paused = true)]
async fn readiness_names_the_missing_parts_and_their_reasons() {
    let endpoints = endpoints();
    assert!(ask(&endpoints, &get("/readyz")).await.ends_with("\r\n\r\nok"));
    *endpoints.status.starting.lock() = Some("installing definitions".to_owned());
    let answer = ask(&endpoints, &get("/readyz")).await;
    assert!(answer.contains("503"), "{answer}");
    assert!(answer.contains("[-]start failed: installing definitions"), "{answer}");
    let answer = ask(&endpoints, &get("/readyz?exclude=start")).await;
    assert!(answer.ends_with("ok"), "{answer}");
    let answer = ask(&endpoints, &get("/readyz/start?verbose")).await;
    assert!(answer.contains("503"), "{answer}");
    assert!(ask(&endpoints, &get("/readyz/nothing")).await.contains("404"));
}

#[tokio::test(start_paused = true)]
async fn liveness_does_not_depend_on_readiness() {
    let endpoints = endpoints();
    endpoints.status.stop.cancel();
    assert!(ask(&endpoints, &get("/readyz")).await.contains("[-]shutdown failed: stopping"));
    assert!(ask(&endpoints, &get("/healthz?verbose")).await.contains("[+]ping ok"));
}

#[tokio::test]
async fn a_probe_is_answered_at_once_though_idle_connections_fill_the_server() {
    let listener = bind("127.0.0.1:0".parse().unwrap(), "probes").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let server = tokio::spawn(serve(listener, endpoints()));
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(tokio::net::TcpStream::connect(addr).await.unwrap());
    }
    let probe = tokio::net::TcpStream::connect(addr).await.unwrap();
    assert!(talk(probe, &get("/healthz")).await.ends_with("ok"));
    let mut one = idle.swap_remove(50).into_std().unwrap();
    let still_open = std::io::Read::read(&mut one, &mut [0]).unwrap_err();
    assert_eq!(still_open.kind(), std::io::ErrorKind::WouldBlock, "it waited for no deadline");
    server.abort();
}

#[tokio::test(start_paused = true)]
async fn metrics_carry_the_operators_and_the_processes_series_in_one_document() {
    let answer = ask(&endpoints(), &get("/metrics")).await;
    assert!(answer.contains("application/openmetrics-text"), "{answer}");
    let series = r#"controller_runtime_reconcile_total{controller="slow",result="success"} 3"#;
    assert!(answer.contains(series), "{answer}");
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    assert_eq!(answer.matches("# EOF").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_debug_page_is_json_with_bounds_and_only_where_it_is_allowed() {
    let mut endpoints = endpoints();
    let answer = ask(&endpoints, &get("/debug?limit=5")).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("application/json"), "{head}");
    let page: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(page["operator"], "ops");
    assert_eq!(page["controllers"][0]["name"], "slow");
    assert_eq!(page["leadership"], serde_json::Value::Null);
    assert_eq!(page["informers"]["local"], serde_json::json!([]));
    assert!(ask(&endpoints, &get("/debug?limit=many")).await.contains("400"));
    endpoints.debug = false;
    assert!(ask(&endpoints, &get("/debug")).await.contains("404"));
}

#[tokio::test]
async fn the_debug_page_is_served_beside_metrics_on_loopback_and_beyond_only_when_asked() {
    for (address, everywhere, served) in
        [("127.0.0.1:0", false, "200"), ("0.0.0.0:0", false, "404"), ("0.0.0.0:0", true, "200")]
    {
        let controller = Slow::new(Duration::ZERO);
        let mut manager = operator(&controller).metrics(address.parse().unwrap());
        manager = manager.health("127.0.0.1:0".parse().unwrap());
        let running = if everywhere { manager.debug_everywhere() } else { manager }.start();
        let port = running.metrics_addr().await.unwrap().port();
        let answer = fetch((Ipv4Addr::LOCALHOST, port).into(), "/debug").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {served}")), "{address}: {answer}");
        let health = running.health_addr().await.unwrap();
        assert!(fetch(health, "/debug").await.contains("404"), "the probes' port has none");
    }
}

#[test]
fn a_port_of_every_interface_is_one_port_however_it_is_written() {
    let is_one = |a: &str, b: &str| is_one(a.parse().unwrap(), b.parse().unwrap());
    assert!(is_one("[::]:8081", "0.0.0.0:8081") && is_one("127.0.0.1:80", "127.0.0.1:80"));
    assert!(!is_one("[::]:8081", "0.0.0.0:8080") && !is_one("[::]:80", "127.0.0.1:80"));
}

/// IPv6 as well, on machines that have it: `tests/tests/zz_machine.rs`, which is ignored on others.
#[tokio::test]
async fn every_interface_means_ipv4_too() {
    let manager = operator(&Slow::new(Duration::ZERO)).health("[::]:0".parse().unwrap());
    let running = manager.metrics("127.0.0.1:0".parse().unwrap()).start();
    let port = running.health_addr().await.unwrap().port();
    let answer = fetch((Ipv4Addr::LOCALHOST, port).into(), "/healthz").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_probe_client_that_never_finishes_its_headers_is_cut_off() {
    let endpoints = endpoints();
    let started = tokio::time::Instant::now();
    ask(&endpoints, "GET /healthz HTTP/1.1\r\nhost:").await;
    assert!(started.elapsed() <= Duration::from_secs(6), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn probes_answer_only_reads() {
    let request =
        "POST /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert!(ask(&endpoints(), request).await.contains("405"));
}

#[tokio::test(start_paused = true)]
#[cfg_attr(not(target_os = "linux"), ignore = "reads /proc, which Linux has")]
async fn d8_an_operator_reports_its_memory_budget_and_warns_when_it_is_nearly_used_up() {
    let (logged, _guard) = Captured::at(tracing::Level::WARN);
    for (budget, warnings) in [(0, 0), (1 << 50, 0), (1 << 20, 1)] {
        let controller = Slow::new(Duration::ZERO);
        let manager = operator(&controller).name("ops").memory_budget(budget);
        let metrics = manager.client.environment().metrics.clone();
        let running = manager.start();
        until_started(&controller).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let level = metrics.level(&names::MEMORY_BUDGET, &["ops"]);
        assert_eq!(level, (budget > 0).then_some(budget as f64));
        assert_eq!(logged.with("memory is nearly used up").len(), warnings, "{budget}");
        running.stop();
        running.join().await.unwrap();
    }
}

#[tokio::test]
async fn manifests_hold_the_grants_once_and_only_the_own_lease() {
    let controller = Slow::new(Duration::ZERO);
    let options = ManifestOptions::default().namespace("sites").image("registry.test/ops:1");
    let text = operator(&controller).leader_election("ops").manifests(&options).unwrap();
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
    let kinds: Vec<&str> =
        documents.iter().filter_map(|document| document["kind"].as_str()).collect();
    assert_eq!(
        kinds,
        [
            "Namespace",
            "ServiceAccount",
            "ClusterRole",
            "ClusterRoleBinding",
            "Role",
            "RoleBinding",
            "NetworkPolicy",
            "Deployment"
        ]
    );
    let rules = documents[2]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 2);
    assert_eq!(rules[0]["verbs"], serde_json::json!(["list", "patch", "watch"]));
    assert_eq!(documents[4]["rules"][1]["resourceNames"], serde_json::json!(["ops"]));
    assert_eq!(documents[0]["metadata"]["name"], "sites");
}

#[tokio::test]
async fn the_rights_on_a_lease_elsewhere_are_given_where_the_election_looks_for_it() {
    let controller = Slow::new(Duration::ZERO);
    let options = ManifestOptions::default().namespace("sites");
    let election = LeaderElection::new("ops").namespace("locks");
    let manager = operator(&controller).leader_election_with(election);
    let text = manager.manifests(&options).unwrap();
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
    let named = |kind: &str| {
        let is_it = |one: &&serde_json::Value| {
            one["kind"] == kind && one["metadata"]["name"] == "ops-leader-election"
        };
        documents.iter().find(is_it).unwrap().clone()
    };
    assert_eq!(named("Role")["metadata"]["namespace"], "locks");
    let binding = named("RoleBinding");
    assert_eq!(binding["metadata"]["namespace"], "locks");
    assert_eq!(binding["subjects"][0]["namespace"], "sites", "the account stays where it is");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_gets_no_answer_about_its_lease_is_not_ready() {
    let controller = Slow::new(Duration::ZERO);
    let running = operator(&controller).leader_election("ops").start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let readiness = running.readiness();
    let check = readiness.checks.iter().find(|check| check.name == "leaderElection").unwrap();
    assert!(!check.ok);
    assert!(check.detail.starts_with("cannot lead: ") && check.detail.contains("offline"));
    running.stop();
    running.join().await.unwrap();
}

#[tokio::test]
async fn d7_the_deployment_gives_the_drain_its_time_and_is_restricted() {
    let controller = Slow::new(Duration::ZERO);
    let manager = operator(&controller).drain(Duration::from_secs(40)).name("ops");
    let text = manager.manifests(&ManifestOptions::default()).unwrap();
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
    let pod = &documents.last().unwrap()["spec"]["template"]["spec"];
    assert_eq!(pod["terminationGracePeriodSeconds"], 55);
    let security = &pod["containers"][0]["securityContext"];
    assert_eq!(security["readOnlyRootFilesystem"], true);
    assert_eq!(security["capabilities"]["drop"], serde_json::json!(["ALL"]));
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
}

#[test]
fn bounds_are_printed_as_people_write_them() {
    let mut value = serde_json::json!({ "maximum": 50.0, "items": [{ "minimum": 0.5 }, 7] });
    windlass_core::crd::compat::plain_numbers(&mut value);
    let expected = serde_json::json!({ "maximum": 50, "items": [{ "minimum": 0.5 }, 7] });
    assert_eq!(value, expected);
    assert_eq!(value.to_string(), r#"{"items":[{"minimum":0.5},7],"maximum":50}"#);
}

#[tokio::test]
async fn an_operator_of_some_namespaces_is_granted_nothing_elsewhere() {
    let controller = Slow::new(Duration::ZERO);
    let manager = operator(&controller).namespaces(["a", "b"]).name("ops");
    let text = manager.manifests(&ManifestOptions::default()).unwrap();
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
    let reach = |document: &serde_json::Value| {
        document["kind"].as_str().is_some_and(|kind| kind.starts_with("Cluster"))
    };
    assert!(!documents.iter().any(reach), "{text}");
    for kind in ["Role", "RoleBinding"] {
        let of_kind = documents.iter().filter(|document| document["kind"] == kind);
        let places = of_kind.filter_map(|document| document["metadata"]["namespace"].as_str());
        assert_eq!(places.collect::<Vec<_>>(), ["a", "b"], "{kind}");
    }
    let environment =
        &documents.last().unwrap()["spec"]["template"]["spec"]["containers"][0]["env"];
    assert!(environment.to_string().contains(r#""value":"a,b""#), "{environment}");
}

#[tokio::test]
async fn an_operator_of_its_own_namespace_reads_it_from_the_pod() {
    let controller = Slow::new(Duration::ZERO);
    let options = ManifestOptions::default().namespace("sites").namespaced(true);
    let text = operator(&controller).name("ops").manifests(&options).unwrap();
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&text).unwrap();
    let kinds: Vec<&str> =
        documents.iter().filter_map(|document| document["kind"].as_str()).collect();
    assert_eq!(
        kinds,
        ["Namespace", "ServiceAccount", "Role", "RoleBinding", "NetworkPolicy", "Deployment"]
    );
    assert_eq!(documents[2]["metadata"]["namespace"], "sites");
    let environment =
        &documents.last().unwrap()["spec"]["template"]["spec"]["containers"][0]["env"];
    let watched = environment.as_array().unwrap().last().unwrap();
    assert_eq!(watched["name"], "WATCH_NAMESPACE");
    assert_eq!(watched["valueFrom"]["fieldRef"]["fieldPath"], "metadata.namespace");
}

#[tokio::test]
async fn roles_of_namespaces_are_refused_for_cluster_scoped_kinds() {
    use k8s_openapi::api::core::v1::{ConfigMap, Node};
    struct Nodes;
    impl Reconciler for Nodes {
        type Object = ConfigMap;
        async fn reconcile(
            &self,
            _: &ConfigMap,
            _: &crate::controller::Context<Self>,
        ) -> crate::controller::Result {
            Ok(crate::controller::Action::done())
        }
    }
    let builder = ControllerBuilder::new().watches::<Node>(|_| Vec::new());
    let manager = Manager::new(nowhere()).controller_with(Nodes, builder).namespaces(["a"]);
    let error = manager.manifests(&ManifestOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let text = error.to_string();
    assert!(text.contains("\"configmap\" needs to get, list, watch nodes"), "{text}");
}
