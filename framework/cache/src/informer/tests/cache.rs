//! The views of listeners and readers while the server is healthy.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::informer::CacheOptions;
use crate::reflector::ReflectorOptions;
use windlass_core::metrics::names;
use windlass_core::resource::{DynamicObject, ResourceInfo};

/// G-C7: `synced` is true only after a first view was applied and handed to the listeners.
#[tokio::test(start_paused = true)]
async fn synced_comes_after_every_listener_received_the_first_list() {
    let server = Server::new();
    server.put("b", data("1"));
    server.put("a", data("2"));
    let rig = Rig::idle(server);
    assert!(!rig.status().synced);
    let task = run(&rig.registry, &rig.stop);
    rig.listening.synced().await.unwrap();
    assert_eq!(rig.told.take(), ["*a=2", "*b=1"]);
    let status = rig.status();
    assert!(status.synced && status.state == "watching", "{status:?}");
    assert_eq!((status.objects, status.resource_version.as_str()), (2, "12"));
    rig.stop.cancel();
    task.await.unwrap();
}

/// G-C6: each listener is notified at least once after any change.
#[tokio::test(start_paused = true)]
async fn changes_are_delivered_in_order_with_the_state_before() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    assert_eq!(rig.caught_up().await, ["+a=1"]);
    rig.server.put("a", data("2"));
    assert_eq!(rig.caught_up().await, ["~a=1>a=2"]);
    rig.server.delete("a");
    assert_eq!(rig.caught_up().await, ["-a=2"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_listener_receives_the_content_and_then_every_change() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    rig.caught_up().await;
    let late = Told::default();
    let listening = late.listen(&rig.informer);
    listening.synced().await.unwrap();
    rig.server.put("a", data("2"));
    rig.server.put("b", data("3"));
    rig.caught_up().await;
    assert_eq!(late.take(), ["*a=1", "~a=1>a=2", "+b=3"]);
}

/// G-C9: a bad object, listener or kind delays and stops no other.
#[tokio::test(start_paused = true)]
async fn a_listener_that_panics_stops_neither_itself_nor_the_others() {
    let rig = Rig::synced(Server::new()).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let _panicking = rig.informer.on_change(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        panic!("a defect of the listener");
    });
    let after = Told::default();
    let _listening = after.listen(&rig.informer);
    rig.server.put("a", data("1"));
    rig.server.put("b", data("1"));
    rig.caught_up().await;
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(after.take(), ["+a=1", "+b=1"]);
    let panics = &names::INFORMER_LISTENER_PANICS;
    assert_eq!(rig.environment.metrics.counted(panics, &["configmaps"]), 2);
}

#[tokio::test(start_paused = true)]
async fn one_kind_has_one_informer_however_it_is_asked_for() {
    let rig = Rig::synced(Server::new()).await;
    let dynamic = rig.registry.informer_of::<DynamicObject>(ResourceInfo::of::<ConfigMap>());
    rig.server.put("a", data("1"));
    rig.caught_up().await;
    let object = dynamic.store().list()[0].get().unwrap();
    assert_eq!(object.kind, "ConfigMap");
    assert_eq!(rig.server.requests().len(), 1, "one streaming list serves both");
}

#[tokio::test(start_paused = true)]
async fn an_informer_asked_for_while_running_starts() {
    let server = Server::new();
    server.put("a", data("1"));
    let environment = environment();
    let registry = registry(&server, &environment, &[]);
    let stop = CancellationToken::new();
    let task = run(&registry, &stop);
    tokio::task::yield_now().await;
    let informer = registry.informer::<ConfigMap>();
    informer.synced().await.unwrap();
    registry.synced().await;
    assert_eq!(informer.store().len(), 1);
    stop.cancel();
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_every_task_at_once_and_notifies_the_waiters() {
    let server = Server::new();
    server.script(|_, _| Some(crate::reflector::test_support::ScriptedResponse::Never));
    let rig = Rig::start(server);
    let waiter = rig.informer.clone();
    let waiting = tokio::spawn(async move { waiter.synced().await });
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = Instant::now();
    rig.stop.cancel();
    rig.task.await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(waiting.await.unwrap().unwrap_err().kind(), windlass_core::ErrorKind::Cancelled);
    rig.registry.synced().await;
    let late = rig
        .registry
        .informer_of::<DynamicObject>(ResourceInfo::of::<k8s_openapi::api::core::v1::Secret>());
    assert!(late.synced().await.is_err(), "what is asked for after the end never runs");
}

/// G-C8: the next reconcile of an object sees the writes of the last reconcile.
#[tokio::test(start_paused = true)]
async fn an_own_write_is_read_before_the_watch_shows_it_and_delivered_only_by_the_watch() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    rig.caught_up().await;
    let mut mine = (*rig.get("a").unwrap().get().unwrap()).clone();
    mine.metadata.resource_version = Some("900".to_owned());
    mine.data.get_or_insert_default().insert("k".to_owned(), "mine".to_owned());
    rig.informer.wrote(&mine).unwrap();
    let read = rig.get("a").unwrap().get().unwrap();
    assert_eq!(read.data.as_ref().unwrap()["k"], "mine");
    assert!(rig.told.take().is_empty());
    let key = ObjectKey::new(Some("n"), "a");
    assert!(!rig.informer.store().is_stale(&key));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(rig.informer.store().is_stale(&key));
    assert_eq!(rig.get("a").unwrap().metadata().resource_version(), "11");
    let uid = rig.get("a").unwrap().metadata().uid().to_owned();
    rig.informer.deleted(&key, &uid);
    assert!(rig.get("a").is_none());
    mine.metadata.resource_version = None;
    assert_eq!(rig.informer.wrote(&mine).unwrap_err().kind(), windlass_core::ErrorKind::Usage);
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_read_apart_and_a_list_of_one_deletes_nothing_of_another() {
    let (one, two) = (Server::new(), Server::new());
    one.put_in("one", "a", data("1"));
    two.put_in("two", "b", data("2"));
    let by_namespace = [("one", Arc::clone(&one)), ("two", Arc::clone(&two))];
    let sources = Box::new(move |wanted: Selection<'_>| {
        let found = by_namespace.iter().find(|(known, _)| Some(*known) == wanted.namespace);
        Arc::clone(&found.expect("both namespaces are read").1) as Arc<dyn ListWatch>
    });
    let names = vec!["two".to_owned(), "one".to_owned(), "two".to_owned()];
    let registry = InformerRegistry::over(sources, environment(), names);
    let informer = registry.informer::<ConfigMap>();
    let told = Told::default();
    let listening = told.listen(&informer);
    let stop = CancellationToken::new();
    let task = run(&registry, &stop);
    registry.synced().await;
    listening.synced().await.unwrap();
    assert_eq!(informer.store().len(), 2);
    told.take();
    one.compact();
    one.put_in("one", "a", data("3"));
    one.compact();
    one.close_watches();
    eventually("the first namespace is listed again", || one.lists() == 2).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(told.take(), ["~a=1>a=3"]);
    assert_eq!(two.requests().len(), 1);
    two.script(|_, _| {
        Some(crate::reflector::test_support::ScriptedResponse::Status(403, "Forbidden"))
    });
    two.close_watches();
    eventually("the trouble of one is told", || {
        informer.status().state.starts_with("two: degraded")
    })
    .await;
    stop.cancel();
    task.await.unwrap();
}

/// While a watch is silent, the cache cannot know whether a write was overtaken. The record of a
/// write outlives the longest silence, regardless of the limit of that silence (G-C8: own writes
/// are seen).
#[tokio::test(start_paused = true)]
async fn g_c8_a_write_that_a_silent_watch_has_not_shown_is_stale_until_the_watch_is_given_up() {
    for minutes in [5, 60] {
        let server = Server::new();
        server.put("a", data("1"));
        let registry = registry(&server, &environment(), &[]);
        let timeout = Duration::from_secs(60 * minutes);
        let reading = ReflectorOptions::new().min_watch_timeout(timeout);
        let informer =
            registry.informer_with::<ConfigMap>(CacheOptions::default().reading(reading));
        let stop = CancellationToken::new();
        let task = run(&registry, &stop);
        informer.synced().await.unwrap();
        let key = ObjectKey::new(Some("n"), "a");
        let mut mine = (*informer.store().get(&key).unwrap().get().unwrap()).clone();
        mine.metadata.resource_version = Some("900".to_owned());
        informer.wrote(&mine).unwrap();
        // As long as a silent watch is waited for, and the list that may follow the watch.
        tokio::time::sleep(timeout * 2 + Duration::from_secs(90)).await;
        mine.metadata.name = Some("b".to_owned());
        informer.wrote(&mine).unwrap();
        assert!(informer.store().is_stale(&key), "{minutes}");
        assert_eq!(informer.store().stats().own_writes, 2);
        // The record is not kept for ever either.
        tokio::time::sleep(timeout * 3).await;
        informer.wrote(&mine).unwrap();
        assert_eq!(informer.store().stats().own_writes, 1);
        stop.cancel();
        task.await.unwrap();
    }
}
