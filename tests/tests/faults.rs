//! Faults that an operator must survive, each named after the behaviour, on the embedded server
//! with a paused clock: minutes of waiting cost milliseconds.

use std::sync::atomic::Ordering;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service};
use k8s_openapi::api::events::v1::Event;
use tokio::time::{Instant, sleep};
use windlass::api::{Api, Patch};
use windlass::informer::{CacheOptions, DecodeCheckTime};
use windlass::manager::{Exit, Manager};
use windlass::prelude::*;
use windlass::testing::{RunningOperator, TestCluster};
use windlass::{ErrorKind, metrics::names};
use windlass_apiserver::faults::{Fault, FaultAction as Do};
use windlass_tests::widget::{Absent, Absents, Counts, Widget, counted, operator, widget};

/// A cluster whose faults can be switched.
async fn cluster() -> TestCluster {
    let cluster = TestCluster::builder().embedded().start().await;
    cluster.install::<Widget>().await;
    cluster
}

fn widgets(cluster: &TestCluster) -> Api<Widget> {
    cluster.client().namespace(cluster.namespace())
}

fn children(cluster: &TestCluster) -> Api<ConfigMap> {
    cluster.client().namespace(cluster.namespace())
}

async fn text_of_child(cluster: &TestCluster, name: &str) -> Option<String> {
    let child = children(cluster).get_opt(name).await.expect("the server answers")?;
    child.data?.remove("text")
}

/// Waits until `met` holds; fails after two minutes of virtual time.
async fn eventually(condition: &str, mut met: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !met().await {
        assert!(start.elapsed() < Duration::from_secs(120), "not within two minutes: {condition}");
        sleep(Duration::from_millis(50)).await;
    }
}

fn invalid(running: &RunningOperator, plural: &str) -> usize {
    running
        .informers()
        .status()
        .iter()
        .filter(|status| status.info.plural == plural)
        .map(|status| status.invalid)
        .sum()
}

#[tokio::test(start_paused = true)]
async fn c1_an_undecodable_object_in_a_list_stops_no_other_and_is_visible() {
    let cluster = cluster().await;
    for name in ["a", "bad", "z"] {
        widgets(&cluster).create(&widget(name, "x")).await.unwrap();
    }
    let garble =
        Fault::new(Do::Garble("bad".to_owned())).resource("widgets").on("list|watch").always();
    let _handle = cluster.server().faults().add(garble);
    let running = cluster.spawn(operator(cluster.client()));
    for name in ["a", "z"] {
        eventually("the sound objects are reconciled", async || {
            text_of_child(&cluster, name).await.is_some()
        })
        .await;
    }
    eventually("the bad one is counted", async || invalid(&running, "widgets") == 1).await;
    assert_eq!(text_of_child(&cluster, "bad").await, None);
}

#[tokio::test(start_paused = true)]
async fn c1_an_undecodable_object_in_a_watch_stops_no_other_and_heals() {
    let cluster = cluster().await;
    let running = cluster.spawn(operator(cluster.client()));
    running.settled().await;
    let garble =
        Fault::new(Do::Garble("bad".to_owned())).resource("widgets").on("list|watch").always();
    let handle = cluster.server().faults().add(garble);
    cluster.server().faults().close_watches("widgets");
    widgets(&cluster).create(&widget("bad", "x")).await.unwrap();
    widgets(&cluster).create(&widget("sound", "x")).await.unwrap();
    eventually("the sound one is reconciled", async || {
        text_of_child(&cluster, "sound").await.is_some()
    })
    .await;
    eventually("the bad one is counted", async || invalid(&running, "widgets") == 1).await;
    handle.remove();
    cluster.server().faults().close_watches("widgets");
    widgets(&cluster)
        .patch("bad", Patch::Merge(serde_json::json!({ "spec": { "text": "y" } })))
        .await
        .unwrap();
    eventually("it heals", async || text_of_child(&cluster, "bad").await.as_deref() == Some("y"))
        .await;
    assert_eq!(invalid(&running, "widgets"), 0);
}

#[tokio::test(start_paused = true)]
async fn b9_a_child_that_vanishes_while_its_watch_is_broken_still_triggers_its_owner() {
    let cluster = cluster().await;
    let running = cluster.spawn(operator(cluster.client()));
    widgets(&cluster).create(&widget("a", "x")).await.unwrap();
    running.settled().await;
    let first = children(&cluster).get("a").await.unwrap().uid().to_owned();
    let broken = Fault::new(Do::Answer(500)).resource("configmaps").on("list|watch").always();
    let handle = cluster.server().faults().add(broken);
    cluster.server().faults().close_watches("configmaps");
    children(&cluster).delete("a").await.unwrap();
    // The history is lost too, so that only a list can show that the child is gone.
    cluster.server().restart().await;
    sleep(Duration::from_secs(30)).await;
    handle.remove();
    eventually("the child is there again", async || text_of_child(&cluster, "a").await.is_some())
        .await;
    assert_ne!(children(&cluster).get("a").await.unwrap().uid(), first);
}

#[tokio::test(start_paused = true)]
async fn b12_a_kind_that_answers_404_delays_no_other_kind() {
    let cluster = cluster().await;
    let manager = operator(cluster.client()).controller(Absents);
    let _running = cluster.spawn(manager);
    let mut worst = Duration::ZERO;
    for i in 0..20 {
        let name = format!("w{i}");
        widgets(&cluster).create(&widget(&name, "x")).await.unwrap();
        let start = Instant::now();
        eventually("the widget is reconciled", async || {
            text_of_child(&cluster, &name).await.is_some()
        })
        .await;
        if i > 0 {
            worst = worst.max(start.elapsed());
        }
        sleep(Duration::from_secs(10)).await;
    }
    assert!(worst <= Duration::from_millis(500), "the healthy kind waited {worst:?}");
}

#[tokio::test(start_paused = true)]
async fn b12_an_optional_kind_that_is_not_there_leaves_the_operator_ready() {
    for is_optional in [false, true] {
        let cluster = cluster().await;
        let mut manager = operator(cluster.client()).controller(Absents);
        if is_optional {
            manager = manager.cache::<Absent>(CacheOptions::default().optional());
        }
        let running = cluster.spawn(manager);
        widgets(&cluster).create(&widget("a", "x")).await.unwrap();
        eventually("the operator works", async || text_of_child(&cluster, "a").await.is_some())
            .await;
        let readiness = running.readiness();
        assert_eq!(readiness.is_ready(), is_optional, "{readiness:?}");
        let check = readiness.checks.iter().find(|check| check.name.contains("absents"));
        assert!(check.is_some_and(|check| check.detail.contains("absent")), "{readiness:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn c1_an_undecodable_object_of_a_watched_kind_gets_one_event() {
    let cluster = cluster().await;
    let garble =
        Fault::new(Do::Garble("bad".to_owned())).resource("services").on("list|watch").always();
    let _handle = cluster.server().faults().add(garble);
    let services: Api<Service> = cluster.client().namespace(cluster.namespace());
    let bad =
        serde_json::json!({ "metadata": { "name": "bad" }, "spec": { "ports": [{ "port": 80 }] } });
    services.create(&serde_json::from_value(bad).unwrap()).await.unwrap();
    let eager = CacheOptions::default().validate(DecodeCheckTime::Eager);
    let running = cluster.spawn(operator(cluster.client()).cache::<Service>(eager));
    let _cache = running.informers().informer::<Service>();
    eventually("it is counted", async || invalid(&running, "services") == 1).await;
    let events = cluster.client().namespace::<Event>(cluster.namespace());
    let reported = async || {
        let events = events.list().await.expect("the server answers").items;
        let about = |event: &Event| {
            let object = event.regarding.as_ref();
            object.and_then(|object| object.name.as_deref()) == Some("bad")
                && event.reason.as_deref() == Some("Undecodable")
        };
        events.iter().filter(|event| about(event)).count()
    };
    eventually("it gets an event", async || reported().await == 1).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(reported().await, 1);
    services.delete("bad").await.unwrap();
    eventually("its deletion works", async || invalid(&running, "services") == 0).await;
}

/// The error names the cause, and the request is not repeated without end.
#[tokio::test(start_paused = true)]
async fn b14_a_write_into_a_terminating_namespace_is_refused_once_with_its_cause() {
    let cluster = cluster().await;
    let client = cluster.client();
    let doomed = serde_json::json!({ "metadata": { "name": "doomed" } });
    let namespace: Namespace = serde_json::from_value(doomed).unwrap();
    client.all().create(&namespace).await.unwrap();
    let api: Api<ConfigMap> = client.namespace("doomed");
    let map = |name: &str, finalizers: &[&str]| -> ConfigMap {
        let metadata = serde_json::json!({ "name": name, "finalizers": finalizers });
        serde_json::from_value(serde_json::json!({ "metadata": metadata })).unwrap()
    };
    api.create(&map("holds", &["example.dev/hold"])).await.unwrap();
    client.all::<Namespace>().delete("doomed").await.unwrap();
    cluster.server().clear_requests();
    let start = Instant::now();
    let error = api.create(&map("late", &[])).await.unwrap_err();
    assert!(error.namespace_terminating(), "{error:?}");
    assert_eq!(cluster.server().requests().len(), 1, "no second try");
    assert!(start.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn c3_a_reconciler_that_panics_takes_nothing_else_down() {
    let cluster = cluster().await;
    let client = cluster.client();
    let metrics = client.environment().metrics.clone();
    let running = cluster.spawn(operator(client));
    eventually("the kind is served", async || widgets(&cluster).list().await.is_ok()).await;
    widgets(&cluster).create(&widget("bomb", "panic")).await.unwrap();
    for name in ["a", "b", "c"] {
        widgets(&cluster).create(&widget(name, "x")).await.unwrap();
        eventually("others are reconciled", async || text_of_child(&cluster, name).await.is_some())
            .await;
    }
    let controller = running.states()[0].0.clone();
    assert!(metrics.counted(&names::RECONCILE_PANICS, &[&controller]) >= 1);
    widgets(&cluster)
        .patch("bomb", Patch::Merge(serde_json::json!({ "spec": { "text": "calm" } })))
        .await
        .unwrap();
    eventually("it is retried", async || {
        text_of_child(&cluster, "bomb").await.as_deref() == Some("calm")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a5_a_server_that_accepts_and_never_answers_hits_a_deadline() {
    let cluster = cluster().await;
    let _handle = cluster
        .server()
        .faults()
        .add(Fault::new(Do::Hang).resource("configmaps").on("get").always());
    let start = Instant::now();
    let error = children(&cluster).get("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
    assert!(start.elapsed() <= Duration::from_secs(31), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a2_a_create_with_generate_name_answered_504_after_being_executed_is_never_sent_twice() {
    let cluster = cluster().await;
    let fault = Fault::new(Do::ExecuteThenAnswer(504)).resource("configmaps").on("create").always();
    let handle = cluster.server().faults().add(fault);
    let mut object = ConfigMap::default();
    object.metadata.generate_name = Some("job-".to_owned());
    let error = children(&cluster).create(&object).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous, "{error:?}");
    assert_eq!(handle.hits(), 1);
    let created = children(&cluster).list().await.unwrap().items;
    assert_eq!(created.iter().filter(|object| object.name().starts_with("job-")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn frames_that_stop_decoding_leave_no_ghost_object() {
    let cluster = cluster().await;
    let running = cluster.spawn(operator(cluster.client()));
    widgets(&cluster).create(&widget("ghost", "x")).await.unwrap();
    running.settled().await;
    let garble =
        Fault::new(Do::Garble("ghost".to_owned())).resource("widgets").on("list|watch").always();
    let _handle = cluster.server().faults().add(garble);
    cluster.server().faults().close_watches("widgets");
    widgets(&cluster)
        .patch("ghost", Patch::Merge(serde_json::json!({ "spec": { "text": "y" } })))
        .await
        .unwrap();
    eventually("it is seen as invalid", async || invalid(&running, "widgets") == 1).await;
    widgets(&cluster).delete("ghost").await.unwrap();
    let objects = || {
        running.informers().status().iter().find(|s| s.info.plural == "widgets").map(|s| s.objects)
    };
    eventually("it leaves the cache", async || objects() == Some(0)).await;
}

#[tokio::test(start_paused = true)]
async fn b1_a_watch_that_is_closed_at_once_for_ever_leads_to_a_quarter_request_a_second() {
    let cluster = cluster().await;
    let closed = Fault::new(Do::CloseWatch).resource("widgets").on("watch").always();
    let _handle = cluster.server().faults().add(closed);
    let _running = cluster.spawn(operator(cluster.client()));
    sleep(Duration::from_secs(60)).await;
    cluster.server().clear_requests();
    let span = Duration::from_secs(600);
    sleep(span).await;
    let requests = cluster.server().requests();
    let asked = requests
        .iter()
        .filter(|r| r.resource == "widgets" && (r.verb == "list" || r.verb == "watch"))
        .count();
    assert!(asked > 0, "it still tries");
    assert!(asked as f64 <= 0.25 * span.as_secs_f64(), "{asked} requests in {span:?}");
}

#[tokio::test(start_paused = true)]
async fn a1_a_retry_after_of_a_day_is_capped() {
    let cluster = cluster().await;
    let fault = Fault::new(Do::Answer(429))
        .then(Do::RetryAfter("86400".to_owned()))
        .resource("configmaps")
        .on("get")
        .always();
    let handle = cluster.server().faults().add(fault);
    let start = Instant::now();
    let error = children(&cluster).get("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooManyRequests, "{error:?}");
    assert!(start.elapsed() <= Duration::from_secs(60), "{:?}", start.elapsed());
    assert!(handle.hits() <= 2, "{} requests", handle.hits());
}

#[tokio::test(start_paused = true)]
async fn d2_k5_two_operators_with_one_lease_never_write_at_the_same_time() {
    let cluster = cluster().await;
    let start = |user: &str| {
        let manager: Manager =
            operator(cluster.client_as(user, &["system:masters"])).leader_election("widgets");
        cluster.spawn(manager)
    };
    let one = start("one");
    eventually("the first leads", async || {
        one.leadership().is_some_and(|l| matches!(l, windlass::leader::Leadership::Leading))
    })
    .await;
    let two = start("two");
    let mut names = (0..).map(|i| format!("w{i}"));
    let mut work = async |count: usize| {
        for name in names.by_ref().take(count) {
            widgets(&cluster).create(&widget(&name, "x")).await.unwrap();
            sleep(Duration::from_secs(1)).await;
        }
    };
    work(5).await;
    // The leader's connection to the lease is cut: renewals hang. The leader must stop writing
    // before the other replica starts.
    let fault = Fault::new(Do::Hang).user("one").resource("leases").always();
    let handle = cluster.server().faults().add(fault);
    work(60).await;
    eventually("the second leads", async || {
        two.leadership().is_some_and(|l| matches!(l, windlass::leader::Leadership::Leading))
    })
    .await;
    handle.remove();
    work(20).await;
    let writers = writers(&cluster);
    let changes = writers.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(
        (writers.first().map(String::as_str), writers.last().map(String::as_str)),
        (Some("one"), Some("two"))
    );
    assert_eq!(changes, 1, "writes alternate: {writers:?}");
}

/// Returns the writers of ConfigMaps, in order.
fn writers(cluster: &TestCluster) -> Vec<String> {
    let requests = cluster.server().requests();
    let writes = requests
        .into_iter()
        .filter(|r| r.resource == "configmaps" && r.verb == "patch" && r.code < 300);
    writes.map(|request| request.user).collect()
}

#[tokio::test(start_paused = true)]
async fn d7_a_stop_during_a_reconcile_drains() {
    let cluster = cluster().await;
    let counts = Counts::default();
    let running = cluster.spawn(counted(cluster.client(), counts.clone()));
    eventually("the kind is served", async || widgets(&cluster).list().await.is_ok()).await;
    widgets(&cluster).create(&widget("a", "slow")).await.unwrap();
    eventually("the reconcile began", async || counts.begun.load(Ordering::Relaxed) == 1).await;
    let exit = running.stop().await;
    assert_eq!(exit, Exit::Drained);
    assert_eq!(counts.ended.load(Ordering::Relaxed), 1);
    assert_eq!(text_of_child(&cluster, "a").await.as_deref(), Some("slow"));
}

#[tokio::test(start_paused = true)]
async fn a10_an_api_server_that_restarts_loses_no_event() {
    let cluster = cluster().await;
    let running = cluster.spawn(operator(cluster.client()));
    eventually("the kind is served", async || widgets(&cluster).list().await.is_ok()).await;
    for round in 0..5 {
        for i in 0..5 {
            widgets(&cluster).create(&widget(&format!("w{round}-{i}"), "x")).await.unwrap();
            if i == 2 {
                cluster.server().restart().await;
            }
        }
        if round > 0 {
            widgets(&cluster).delete(&format!("w{}-0", round - 1)).await.unwrap();
        }
    }
    running.settled().await;
    let owned = children(&cluster).list().await.unwrap().items;
    let mut names: Vec<String> = owned
        .iter()
        .filter(|c| c.metadata.owner_references.iter().flatten().next().is_some())
        .map(|c| c.name().to_owned())
        .collect();
    names.sort();
    let expected: Vec<String> = (0..5)
        .flat_map(|r| (0..5).map(move |i| format!("w{r}-{i}")))
        .filter(|n| !n.ends_with("-0") || n == "w4-0")
        .collect();
    assert_eq!(names, expected);
}

#[tokio::test(start_paused = true)]
async fn k6_writes_stop_when_inputs_stop_changing() {
    let cluster = cluster().await;
    let first = cluster.spawn(operator(cluster.client()));
    for name in ["a", "b"] {
        widgets(&cluster).create(&widget(name, "x")).await.unwrap();
    }
    first.settled().await;
    assert_eq!(first.stop().await, Exit::Drained);
    for round in 1..=3 {
        // A new process reconciles every object, as a resync does.
        let counts = Counts::default();
        let running = cluster.spawn(counted(cluster.client(), counts.clone()));
        // The roles of the operator are stored; its own writes would follow.
        let before = cluster.server().revision();
        running.settled().await;
        // Every watch starts anew with a list.
        cluster.server().restart().await;
        sleep(Duration::from_secs(60)).await;
        running.settled().await;
        assert!(counts.ended.load(Ordering::Relaxed) >= 2, "nothing was reconciled in {round}");
        assert_eq!(cluster.server().revision(), before, "something was written in {round}");
        assert_eq!(running.stop().await, Exit::Drained);
    }
}

/// The cache of children stands still while that of parents goes on.
#[tokio::test(start_paused = true)]
async fn c7_a_cache_of_children_behind_that_of_parents_repeats_and_loses_no_write() {
    let cluster = cluster().await;
    let running = cluster.spawn(operator(cluster.client()));
    eventually("the kind is served", async || widgets(&cluster).list().await.is_ok()).await;
    running.settled().await;
    cluster.server().faults().pause_watches("configmaps");
    cluster.server().clear_requests();
    widgets(&cluster).create(&widget("a", "one")).await.unwrap();
    for text in ["one", "two", "two", "three"] {
        let spec = serde_json::json!({ "spec": { "text": text } });
        let touched = serde_json::json!({ "metadata": { "labels": { "seen": text } } });
        for patch in [spec, touched] {
            widgets(&cluster).patch("a", Patch::Merge(patch)).await.unwrap();
        }
        eventually("the child follows", async || {
            text_of_child(&cluster, "a").await.as_deref() == Some(text)
        })
        .await;
        sleep(Duration::from_millis(200)).await;
    }
    cluster.server().faults().resume_watches("configmaps");
    running.settled().await;
    let writes = writers(&cluster).len();
    assert_eq!(writes, 3, "one apply for each text, whatever the cache of children shows");
}

/// A crash between the child and the condition of the parent.
#[tokio::test(start_paused = true)]
async fn d1_a_process_killed_between_two_writes_leaves_work_that_the_next_completes() {
    let cluster = cluster().await;
    let hang = Fault::new(Do::Hang).resource("widgets").subresource("status").always();
    let handle = cluster.server().faults().add(hang);
    let first = cluster.spawn(operator(cluster.client()));
    eventually("the kind is served", async || widgets(&cluster).list().await.is_ok()).await;
    widgets(&cluster).create(&widget("a", "x")).await.unwrap();
    eventually("the second write is under way", async || handle.hits() > 0).await;
    assert_eq!(text_of_child(&cluster, "a").await.as_deref(), Some("x"));
    // Dropped without a stop, as in a crash.
    drop(first);
    handle.remove();
    let child = children(&cluster).get("a").await.unwrap();
    let second = cluster.spawn(operator(cluster.client()));
    second.settled().await;
    let status = widgets(&cluster).get("a").await.unwrap().status.expect("it was written");
    assert!(status.conditions.is_met("Ready"));
    let left = children(&cluster).get("a").await.unwrap();
    assert_eq!(left.metadata.uid, child.metadata.uid, "what was done is not done anew");
    assert_eq!(left.metadata.resource_version, child.metadata.resource_version);
}

#[tokio::test(start_paused = true)]
async fn d8_changes_that_outrun_reconciles_hold_one_entry_for_each_object() {
    let cluster = cluster().await;
    let running = cluster.spawn(operator(cluster.client()));
    eventually("the kind is served", async || widgets(&cluster).list().await.is_ok()).await;
    let names: Vec<String> = (0..8).map(|i| format!("w{i}")).collect();
    for name in &names {
        widgets(&cluster).create(&widget(name, "slow")).await.unwrap();
    }
    let mut most = 0;
    for round in 0..50 {
        let patch = serde_json::json!({ "metadata": { "labels": { "round": round.to_string() } } });
        for name in &names {
            widgets(&cluster).patch(name, Patch::Merge(patch.clone())).await.unwrap();
        }
        sleep(Duration::from_millis(20)).await;
        let state = running.states()[0].1.clone();
        most = most.max(state.queued + state.delayed + state.backing_off);
        assert!(state.working <= names.len(), "{state:?}");
    }
    assert!((1..=names.len()).contains(&most), "{most} entries");
}
