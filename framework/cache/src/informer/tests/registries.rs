//! Tests of registries: creation, sharing and end of informers.

use k8s_openapi::api::core::v1::Secret;

use super::*;
use crate::informer::CacheOptions;
use crate::reflector::test_support::{ScriptedResponse, bookmark};
use windlass_core::metrics::names;
use windlass_core::resource::{DynamicObject, ResourceInfo};

fn maps() -> ResourceInfo {
    ResourceInfo::of::<ConfigMap>()
}

type Made = Arc<Mutex<Vec<(String, Arc<Server>)>>>;

/// One server per selection, by label selector.
struct Servers {
    registry: InformerRegistry,
    made: Made,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Servers {
    fn start(environment: &Environment) -> Self {
        let mut servers = Self::idle(environment);
        servers.task = run(&servers.registry, &servers.stop);
        servers
    }

    /// Creates a registry that is not running yet.
    fn idle(environment: &Environment) -> Self {
        let made: Made = Arc::default();
        let making = Arc::clone(&made);
        let sources = Box::new(move |wanted: Selection<'_>| {
            let labels = wanted.labels().unwrap_or("all");
            let name = format!("{} {labels}", wanted.info.plural);
            let server = Server::new();
            making.lock().push((name, Arc::clone(&server)));
            server as Arc<dyn ListWatch>
        });
        let registry = InformerRegistry::over(sources, environment.clone(), Vec::new());
        let stop = CancellationToken::new();
        Self { registry, made, stop, task: tokio::spawn(async {}) }
    }

    fn names(&self) -> Vec<String> {
        self.made.lock().iter().map(|(name, _)| name.clone()).collect()
    }

    fn server(&self, at: usize) -> Arc<Server> {
        Arc::clone(&self.made.lock()[at].1)
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("no panic");
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_58_one_informer_per_kind_scope_and_options_whoever_asks() {
    let servers = Servers::start(&environment());
    let registry = &servers.registry;
    let all = registry.informer::<ConfigMap>();
    let again = registry.informer_of::<DynamicObject>(maps());
    let web = registry.informer_with::<ConfigMap>(CacheOptions::default().labels("app=web"));
    let same = registry.informer_with::<ConfigMap>(CacheOptions::default().labels("app=web"));
    let plain = registry.informer_with::<ConfigMap>(CacheOptions::default());
    assert_eq!(servers.names(), ["configmaps all", "configmaps app=web"]);
    servers.registry.synced_within(Duration::from_secs(5)).await.unwrap();
    let names: Vec<_> = registry.status().into_iter().map(|status| status.name).collect();
    assert_eq!(names, ["configmaps", "configmaps (app=web)"]);
    servers.server(1).put("b", data("1"));
    eventually("it comes", || same.store().len() == 1).await;
    assert_eq!((web.store().len(), all.store().len(), plain.store().len()), (1, 0, 0));
    drop(again);
    servers.end().await;
}

/// The registry runs kinds that are asked for later, too.
#[tokio::test(start_paused = true)]
async fn mechanism_58_kinds_asked_for_later_start_and_a_shutdown_waits_for_all_tasks() {
    let servers = Servers::start(&environment());
    let one = servers.registry.informer::<ConfigMap>();
    one.synced().await.unwrap();
    let two = servers.registry.informer::<Secret>();
    two.synced().await.unwrap();
    assert_eq!(servers.names().len(), 2);
    servers.registry.shutdown().await;
    servers.registry.shutdown().await;
    assert!(servers.task.is_finished() || servers.registry.status().iter().all(|s| !s.synced));
    assert_eq!(one.synced().await.unwrap_err().kind(), windlass_core::ErrorKind::Cancelled);
    servers.server(0).put("late", data("1"));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(one.store().is_empty(), "nothing is read any more");
    let never = servers.registry.informer_with::<Secret>(CacheOptions::default().labels("a=b"));
    assert!(never.synced().await.is_err(), "and nothing starts any more");
    servers.end().await;
}

/// Row 98.
#[tokio::test(start_paused = true)]
async fn of_two_runs_one_runs_and_a_registry_that_never_ran_shuts_down() {
    let servers = Servers::start(&environment());
    let informer = servers.registry.informer::<ConfigMap>();
    informer.synced().await.unwrap();
    servers.registry.run(CancellationToken::new()).await;
    assert_eq!(servers.server(0).requests().len(), 1);
    servers.end().await;

    let idle = registry(&Server::new(), &environment(), &[]);
    let informer = idle.informer::<ConfigMap>();
    idle.shutdown().await;
    assert!(informer.synced().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_last_user_of_an_informer_stops_its_watch_and_frees_its_memory() {
    let environment = environment();
    let servers = Servers::start(&environment);
    let informer = servers.registry.informer::<ConfigMap>();
    informer.synced().await.unwrap();
    let server = servers.server(0);
    server.put("a", data("1"));
    eventually("it comes", || informer.store().len() == 1).await;
    let (held, listening) = (informer.store(), informer.on_change(|_| {}));
    let memory = Arc::downgrade(&informer.informer_ref.core().store);
    drop(informer);
    server.put("b", data("1"));
    eventually("a store keeps it going", || held.len() == 2).await;
    drop(held);
    server.put("c", data("1"));
    let objects = || servers.registry.status().iter().map(|status| status.objects).sum::<usize>();
    eventually("and so does a listener", || objects() == 3).await;
    drop(listening);
    assert!(servers.registry.status().is_empty());
    eventually("its memory goes", || memory.strong_count() == 0).await;
    let labels = ["ConfigMap", "", "v1", "configmaps"];
    assert_eq!(environment.metrics.level(&names::INFORMER_OBJECTS, &labels), None);
    let requests = server.requests().len();
    tokio::time::sleep(Duration::from_secs(1200)).await;
    assert_eq!(server.requests().len(), requests, "its watch has ended");
    let again = servers.registry.informer::<ConfigMap>();
    again.synced().await.unwrap();
    assert_eq!(servers.names().len(), 2, "who comes later gets a new one");
    servers.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pinned_informer_stays_and_one_that_never_ran_goes_at_once() {
    let servers = Servers::start(&environment());
    drop(servers.registry.pinned::<ConfigMap>());
    drop(servers.registry.pinned::<ConfigMap>());
    drop(servers.registry.informer::<Secret>());
    servers.registry.synced().await;
    let names: Vec<_> = servers.registry.status().into_iter().map(|status| status.name).collect();
    assert_eq!(names, ["configmaps"]);
    servers.end().await;
}

#[tokio::test(start_paused = true)]
async fn options_are_set_once_before_the_kind_is_used() {
    let registry = registry(&Server::new(), &environment(), &[]);
    let web = || CacheOptions::default().labels("app=web");
    registry.set_options(maps(), web()).unwrap();
    registry.set_options(maps(), web()).unwrap();
    let error = registry.set_options(maps(), web().optional()).unwrap_err();
    assert_eq!(error.kind(), windlass_core::ErrorKind::Usage);
    assert!(error.to_string().contains("configmaps: it was given other options"), "{error}");
    let informer = registry.informer::<ConfigMap>();
    assert_eq!(informer.status().name, "configmaps (app=web)");
    let _used = registry.informer::<Secret>();
    let secrets = ResourceInfo::of::<Secret>();
    registry.set_options(secrets.clone(), CacheOptions::default()).unwrap();
    let error = registry.set_options(secrets, web()).unwrap_err();
    assert!(error.to_string().contains("secrets: it is in use already"), "{error}");
}

/// Mechanism 24's names, row 106: a waiter learns the names of the caches for which the waiter
/// waits.
#[tokio::test(start_paused = true)]
async fn waiting_for_the_set_names_each_cache_that_is_missing_and_why() {
    let servers = Servers::start(&environment());
    let (maps, secrets) =
        (servers.registry.informer::<ConfigMap>(), servers.registry.informer::<Secret>());
    servers.server(1).script(|_, _| Some(ScriptedResponse::Status(403, "Forbidden")));
    let error = servers.registry.synced_within(Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.kind(), windlass_core::ErrorKind::Timeout);
    let text = error.to_string();
    assert!(text.contains("cache secrets: degraded") && !text.contains("configmaps"), "{text}");
    assert!(maps.status().synced && !secrets.status().synced);
    servers.server(1).recover();
    servers.registry.synced_within(Duration::from_secs(60)).await.unwrap();
    assert!(servers.registry.missing().is_empty());
    let stopped = maps.on_change(|_| {});
    stopped.synced().await.unwrap();
    servers.end().await;
}

/// `missing` returns the texts that the log shows of an operator that does not start: each cache
/// with the reason, and each listener. On threads, because a listener is blocked.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn missing_parts_are_reported_by_name_and_with_the_reason() {
    let mut servers = Servers::idle(&environment());
    let registry = servers.registry.clone();
    let (maps, secrets) = (registry.informer::<ConfigMap>(), registry.informer::<Secret>());
    let idle = ["cache configmaps: not started", "cache secrets: not started"];
    assert_eq!(registry.missing(), idle);
    servers.server(0).put("a", data("1"));
    servers.server(0).put("b", data("2"));
    servers.server(1).script(|_, _| Some(ScriptedResponse::Status(403, "Forbidden")));
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let slow = maps.listen().name("slow").on_change(move |_| {
        // Fails once the gate is open.
        let _ = gate.lock().recv();
    });
    let prompt = maps.listen().name("prompt").on_change(|_| {});
    servers.task = run(&registry, &servers.stop);
    eventually("one is filled", || maps.status().synced && prompt.has_synced()).await;
    eventually("the other is refused", || secrets.status().state.contains("degraded")).await;
    let missing = registry.missing();
    let [listener, cache] = missing.as_slice() else { panic!("{missing:#?}") };
    let waits = "listener slow of cache configmaps: has not received the first list yet, ";
    assert!(listener.starts_with(waits), "{listener}");
    assert!(cache.starts_with("cache secrets: degraded, retrying: "), "{cache}");
    drop(open);
    slow.synced().await.unwrap();
    assert_eq!(registry.missing().len(), 1, "{:?}", registry.missing());
    servers.end().await;
    assert_eq!(registry.missing(), ["cache configmaps: stopped", "cache secrets: stopped"]);
}

/// B12 (one kind fails, others are well): an optional cache is not waited for; a required cache is
/// not ready, and goes on trying.
#[tokio::test(start_paused = true)]
async fn b12_an_optional_kind_that_fails_keeps_nobody_waiting_and_a_required_one_does() {
    let servers = Servers::start(&environment());
    let registry = &servers.registry;
    registry.set_options(maps(), CacheOptions::default().optional()).unwrap();
    let optional = registry.informer::<ConfigMap>();
    servers.server(0).script(|_, _| Some(ScriptedResponse::Status(500, "InternalError")));
    let required = registry.informer::<Secret>();
    registry.synced_within(Duration::from_secs(1)).await.unwrap();
    let status = optional.status();
    assert!(status.is_optional && !status.synced, "{status:?}");
    assert!(required.status().synced);
    assert!(status.state.contains("retrying"), "{}", status.state);
    servers.server(0).recover();
    eventually("it comes later", || optional.status().synced).await;
    servers.end().await;
}

/// B12: a cache that is optional for one controller is waited for by another controller that needs
/// the cache.
#[tokio::test(start_paused = true)]
async fn b12_a_cache_that_some_can_do_without_is_waited_for_by_others() {
    let servers = Servers::start(&environment());
    let registry = &servers.registry;
    registry.prefer_optional(maps());
    let informer = registry.informer::<ConfigMap>();
    servers.server(0).script(|_, _| Some(ScriptedResponse::Status(500, "InternalError")));
    let dispensable = informer.on_change(|_| {}).dispensable();
    let required = informer.on_change(|_| {});
    let limit = Duration::from_secs(1);
    tokio::time::timeout(limit, dispensable.filled()).await.expect("it does not wait");
    assert!(tokio::time::timeout(limit, required.filled()).await.is_err(), "it waits");
    servers.server(0).recover();
    required.filled().await;
    assert!(informer.status().synced);
    servers.end().await;
}

/// Several clusters side by side.
#[tokio::test(start_paused = true)]
async fn registries_of_several_clusters_run_apart() {
    let (one, two) = (Servers::start(&environment()), Servers::start(&environment()));
    let (here, there) =
        (one.registry.informer::<ConfigMap>(), two.registry.informer::<ConfigMap>());
    one.server(0).put("a", data("1"));
    two.server(0).script(|_, _| Some(ScriptedResponse::Never));
    eventually("one is read", || here.store().len() == 1).await;
    assert!(!there.status().synced);
    one.end().await;
    two.server(0).recover();
    eventually("the other goes on", || there.status().synced).await;
    two.end().await;
}

#[tokio::test(start_paused = true)]
async fn keys_carry_the_cluster_that_the_registry_was_given() {
    use windlass_core::resource::ClusterId;
    let server = Server::new();
    server.put("a", data("1"));
    let source = Arc::clone(&server);
    let sources = Box::new(move |_: Selection<'_>| Arc::clone(&source) as Arc<dyn ListWatch>);
    let cluster = ClusterId(3);
    let registry = InformerRegistry::over_cluster(cluster, sources, environment(), Vec::new());
    let (informer, stop) = (registry.informer::<ConfigMap>(), CancellationToken::new());
    let task = run(&registry, &stop);
    informer.synced().await.unwrap();
    let (here, there) = (ObjectKey::new(Some("n"), "a"), ObjectKey::new(Some("n"), "a"));
    let store = informer.store();
    assert!(store.get(&here).is_none());
    let there = there.in_cluster(cluster);
    assert_eq!(store.get(&there).map(|found| found.key().cluster()), Some(cluster));
    assert_eq!(store.select(Some("n"), &windlass_core::resource::Selector::everything()).len(), 1);
    server.compact();
    server.break_watches();
    eventually("it is listed again", || server.lists() == 2).await;
    server.delete("a");
    eventually("it goes", || store.is_empty()).await;
    stop.cancel();
    task.await.unwrap();
}

/// B15 (a watch that lags): the age of the view is visible.
#[tokio::test(start_paused = true)]
async fn b15_the_age_of_the_newest_version_is_measured() {
    let rig = Rig::idle(Server::new());
    assert_eq!(rig.status().age, None);
    let task = run(&rig.registry, &rig.stop);
    rig.informer.synced().await.unwrap();
    let labels = ["ConfigMap", "", "v1", "configmaps"];
    let age =
        || rig.environment.metrics.level(&names::INFORMER_AGE, &labels).expect("it is measured");
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert!(rig.status().age >= Some(Duration::from_secs(90)));
    assert!((85.0..=90.5).contains(&age()), "{}", age());
    rig.server.bookmark();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(age() < 0.1 && rig.status().age < Some(Duration::from_secs(1)), "{}", age());
    rig.stop.cancel();
    task.await.unwrap();
}

/// B15 (a watch that lags): a silent server and versions that stand still can be distinguished.
#[tokio::test(start_paused = true)]
async fn b15_the_time_since_the_last_data_of_the_server_is_measured() {
    let server = Server::new();
    server.script(|_, _| Some(ScriptedResponse::Never));
    let rig = Rig::start(server);
    let labels = ["ConfigMap", "", "v1", "configmaps"];
    let level = |def| rig.environment.metrics.level(def, &labels).expect("it is measured");
    tokio::time::sleep(Duration::from_secs(25)).await;
    assert_eq!(rig.status().silence, None);
    assert!((20.0..=25.5).contains(&level(&names::INFORMER_SILENCE)), "it was never heard of");
    rig.server.recover();
    rig.informer.synced().await.unwrap();
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert!(rig.status().silence >= Some(Duration::from_secs(90)));
    assert!((85.0..=90.5).contains(&level(&names::INFORMER_SILENCE)));
    // A frame of a version that is known.
    rig.server.send(&bookmark(5, false));
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(rig.status().silence < Some(Duration::from_secs(7)));
    assert!(level(&names::INFORMER_SILENCE) < 7.0, "{}", level(&names::INFORMER_SILENCE));
    assert!(level(&names::INFORMER_AGE) >= 90.0, "{}", level(&names::INFORMER_AGE));
    drop(rig.informer);
    drop(rig.listening);
    let metrics = &rig.environment.metrics;
    eventually("its series go", || metrics.level(&names::INFORMER_SILENCE, &labels).is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_reads_its_own_cache_by_an_unheld_store_does_not_keep_it_going() {
    let servers = Servers::start(&environment());
    let listen = |is_held: bool| {
        let informer = servers.registry.informer::<ConfigMap>();
        let store = if is_held { informer.store() } else { informer.store().non_owning() };
        let memory = Arc::downgrade(&informer.informer_ref.core().store);
        (informer.on_change(move |_| _ = store.len()), memory)
    };
    let caches = || servers.registry.status().len();
    // A dropped registration drops the listener, and everything that the listener holds.
    for is_held in [true, false] {
        let (listening, memory) = listen(is_held);
        listening.synced().await.unwrap();
        drop(listening);
        eventually("the cache goes", || caches() == 0 && memory.strong_count() == 0).await;
    }
    // A kept registration stays for as long as others use the cache.
    let user = servers.registry.informer::<ConfigMap>();
    let (listening, memory) = listen(false);
    listening.synced().await.unwrap();
    listening.keep();
    assert_eq!(caches(), 1);
    drop(user);
    eventually("the cache goes", || caches() == 0 && memory.strong_count() == 0).await;
    // As documented of `keep`: a held store counts as such a user.
    let (listening, memory) = listen(true);
    listening.synced().await.unwrap();
    listening.keep();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(caches(), 1);
    servers.end().await;
    eventually("the registry's end breaks the circle", || memory.strong_count() == 0).await;
}

/// No code of users runs under a lock.
#[tokio::test(start_paused = true)]
async fn sources_that_ask_their_registry_wait_for_nothing() {
    type Asked = Arc<Mutex<(Option<InformerRegistry>, Option<Informer<ConfigMap>>)>>;
    let (asked, server) = (Asked::default(), Server::new());
    let place = Arc::clone(&asked);
    let sources = move |_: Selection<'_>| {
        let registry = place.lock().0.take();
        if let Some(registry) = registry {
            assert!(registry.status().is_empty());
            // Runs before the caller that asked for the source continues.
            let first = registry.informer::<ConfigMap>();
            place.lock().1 = Some(first);
        }
        Arc::clone(&server) as Arc<dyn ListWatch>
    };
    let registry = InformerRegistry::over(Box::new(sources), environment(), Vec::new());
    asked.lock().0 = Some(registry.clone());
    let (sender, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let second = registry.informer::<ConfigMap>();
        let caches = registry.status().len();
        let _ = sender.send((second, caches));
    });
    let limit = Duration::from_secs(10);
    let (second, caches) = answer.recv_timeout(limit).expect("nobody waits for a lock");
    let first = asked.lock().1.take().expect("it asked");
    assert!(Arc::ptr_eq(first.informer_ref.core(), second.informer_ref.core()));
    assert_eq!(caches, 1);
}
