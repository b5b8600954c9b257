//! The fault catalogue's rows on watch and cache: ids are those of the book.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::informer::core::PanicGuard;
use crate::reflector::OpenFuture;
use crate::reflector::test_support::{ScriptedResponse, bookmark, frame, status};
use k8s_openapi::api::core::v1::Secret;
use windlass_core::metrics::names;
use windlass_core::resource::ResourceInfo;

/// B1: a watch that is closed at once, for ever.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_closed_at_once_for_ever_costs_a_request_in_four_seconds_at_most() {
    let server = Server::new();
    server.put("a", data("1"));
    server.script(|_, read| {
        (!matches!(read, Read::Page { .. })).then(|| ScriptedResponse::Body(Vec::new()))
    });
    let rig = Rig::synced(server).await;
    assert_eq!(rig.told.take(), ["*a=1"], "a list in pages still gives a view");
    let started = Instant::now();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let early = rig.server.requests().len();
    tokio::time::sleep(Duration::from_secs(1200)).await;
    let late = rig.server.requests().len() - early;
    assert!(late as f64 / 1200.0 <= 0.25, "{late} requests in 20 minutes");
    assert!(late >= 20, "and it goes on trying: {late}");
    assert!(early <= 30, "{early} requests in the first minute");
    assert!(rig.status().state.contains("closed at once"), "{}", rig.status().state);
    rig.server.recover();
    rig.server.put("b", data("2"));
    rig.caught_up().await;
    assert!(started.elapsed() < Duration::from_secs(1300));
    assert_eq!(rig.server.lists(), 3, "two broken streams and one list: {:?}", rig.server.lists());
}

/// B2: 410 in the middle of a watch; and the restart of a server that forgets the history.
#[tokio::test(start_paused = true)]
async fn a_server_that_restarts_loses_no_event() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("changed", data("1"));
    rig.server.put("gone", data("1"));
    rig.server.put("kept", data("1"));
    rig.caught_up().await;
    let kept = rig.get("kept").unwrap();
    rig.server.break_watches();
    rig.server.put("changed", data("2"));
    rig.server.put("new", data("1"));
    rig.server.delete("gone");
    rig.server.compact();
    let told = rig.caught_up().await;
    assert_eq!(told, ["~changed=1>changed=2", "+new=1", "?gone=1"]);
    assert!(kept.is_same(&rig.get("kept").unwrap()), "what did not change is not even copied");
    assert_eq!(rig.server.lists(), 2);
    let copied =
        rig.environment.metrics.counted(&names::INFORMER_DROPPED, &["configmaps", "not_newer"]);
    assert_eq!(copied, 0, "nor read into memory to be dropped");
}

/// B9: deletions during a gap, of which kube-rs never notifies the owner (experiment E2).
#[tokio::test(start_paused = true)]
async fn b9_a_child_that_vanishes_while_its_watch_is_broken_is_delivered_as_deleted() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("child", data("1"));
    rig.caught_up().await;
    rig.server.lose("child");
    rig.server.compact();
    rig.server.break_watches();
    let took = eventually("the deletion is told", || rig.get("child").is_none()).await;
    assert_eq!(rig.told.take(), ["?child=1"]);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// B10: deleted and created again under the same name.
#[tokio::test(start_paused = true)]
async fn b10_an_object_replaced_during_a_gap_is_delivered_as_deleted_then_added() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    rig.caught_up().await;
    rig.server.break_watches();
    rig.server.delete("a");
    rig.server.put("a", data("2"));
    assert_eq!(rig.caught_up().await, ["-a=1", "+a=2"]);
    rig.server.lose("a");
    rig.server.put("a", data("3"));
    assert_eq!(rig.caught_up().await, ["?a=2", "+a=3"]);
}

/// An object that does not decode stops no other (C1, G-C9); in experiment E1 no object was
/// reconciled.
#[tokio::test(start_paused = true)]
async fn c1_one_undecodable_object_in_a_list_or_a_watch_stops_no_other_and_is_visible() {
    for streaming in [true, false] {
        let server = Server::new();
        server.put("a", data("1"));
        server.put("bad", json!({"k": {"not": "text"}}));
        server.put("c", data("3"));
        server.script(move |_, read| {
            (!streaming && matches!(read, Read::StreamingList { .. }))
                .then_some(ScriptedResponse::Status(422, "Invalid"))
        });
        let rig = Rig::synced(server).await;
        assert_eq!(rig.told.take(), ["*a=1", "*bad=invalid", "*c=3"]);
        rig.server.put("worse", json!(["no", "map"]));
        rig.server.put("d", data("4"));
        assert_eq!(rig.caught_up().await, ["+worse=invalid", "+d=4"]);
        assert_eq!((rig.status().objects, rig.status().invalid), (5, 2));
        let metrics = rig.environment.metrics.encode();
        let gauge = metrics.lines().find(|l| l.starts_with("windlass_informer_invalid_objects{"));
        // The last batch was measured before its listener had read the batch.
        assert!(gauge.is_some_and(|line| !line.ends_with(" 0.0")), "{gauge:?}");
        let error = rig.get("worse").unwrap().get().unwrap_err();
        assert!(error.to_string().contains(".data"), "{error}");
        rig.server.put("bad", data("2"));
        assert_eq!(rig.caught_up().await, ["~bad=invalid>bad=2"]);
        rig.server.delete("worse");
        assert_eq!(rig.caught_up().await, ["-worse=invalid"]);
        assert_eq!(rig.status().invalid, 0);
    }
}

/// Frames without a readable name are dropped, and the next list repairs the cache.
#[tokio::test(start_paused = true)]
async fn frames_that_stop_decoding_leave_no_ghost() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    rig.server.put("b", data("1"));
    rig.caught_up().await;
    rig.server.put("a", json!({"k": 1}));
    rig.server.delete("a");
    rig.caught_up().await;
    assert!(rig.get("a").is_none());
    // Not even the name can be read: only the list shows the change.
    rig.server.lose("b");
    rig.server.send(&frame("DELETED", r#"{"metadata":"oops"}"#));
    eventually("the ghost is found", || rig.get("b").is_none()).await;
    let dropped = &names::INFORMER_DROPPED;
    assert_eq!(rig.environment.metrics.counted(dropped, &["configmaps", "unreadable"]), 1);
    rig.server.send("this is not JSON\n");
    eventually("the state is read again", || rig.server.lists() == 3).await;
    rig.server.put("c", data("1"));
    eventually("and it goes on", || rig.get("c").is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_with_an_unreadable_item_shows_the_others_and_deletes_nothing() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    rig.caught_up().await;
    rig.server.script(|_, read| match read {
        Read::StreamingList { .. } => Some(ScriptedResponse::Hang(vec![
            frame("ADDED", r#"{"metadata":{"name":7}}"#),
            frame(
                "ADDED",
                r#"{"metadata":{"name":"b","namespace":"n","uid":"u","resourceVersion":"50"}}"#,
            ),
            bookmark(60, true),
        ])),
        _ => None,
    });
    rig.server.compact();
    rig.server.lose("a");
    rig.server.compact();
    rig.server.break_watches();
    eventually("the list is applied", || rig.status().resource_version == "60").await;
    assert!(rig.get("a").is_some() && rig.get("b").is_some());
    rig.server.recover();
    tokio::time::sleep(Duration::from_secs(302)).await;
    assert!(rig.get("a").is_none(), "a whole list within five minutes finds it gone");
}

/// A13: a huge object is kept out, the stream goes on, the object's deletion still counts.
#[tokio::test(start_paused = true)]
async fn an_object_beyond_the_frame_limit_keeps_its_old_state_and_delays_nobody() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("huge", data("small"));
    rig.caught_up().await;
    rig.server.put("huge", data(&"x".repeat(17 * 1024 * 1024)));
    rig.server.put("a", data("1"));
    assert_eq!(rig.caught_up().await, ["+a=1"]);
    rig.server.compact();
    rig.server.break_watches();
    eventually("the list is made again", || rig.server.lists() == 2).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(rig.get("huge").is_some(), "a list that shows it too large does not delete it");
    rig.server.delete("huge");
    assert_eq!(rig.caught_up().await, ["-huge=small"]);
}

/// A missing kind delays no other (B12: one kind fails, others are well; B13: a kind that does not
/// exist; G-C9); in experiment E3 the healthy kind waited for a minute.
#[tokio::test(start_paused = true)]
async fn b12_a_kind_that_answers_404_delays_no_other_and_is_found_within_5_s() {
    let (there, absent) = (Server::new(), Server::of(ResourceInfo::of::<Secret>()));
    absent.script(|_, _| Some(ScriptedResponse::Status(404, "NotFound")));
    let servers = (Arc::clone(&there), Arc::clone(&absent));
    let sources = Box::new(move |wanted: Selection<'_>| {
        let server = if wanted.info.kind == "Secret" { &servers.1 } else { &servers.0 };
        Arc::clone(server) as Arc<dyn ListWatch>
    });
    let registry = InformerRegistry::over(sources, environment(), Vec::new());
    let secrets = registry.informer::<Secret>();
    let maps = registry.informer::<ConfigMap>();
    let stop = CancellationToken::new();
    let task = run(&registry, &stop);
    let before = Instant::now();
    let synced = tokio::time::timeout(Duration::from_secs(1), registry.synced()).await;
    assert!(synced.is_ok(), "an absent kind is waited for by nobody");
    for i in 0..20 {
        let version = there.put("a", data(&i.to_string())).to_string();
        let took = eventually("the event comes", || maps.status().resource_version == version);
        assert!(took.await < Duration::from_millis(50));
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    let tries = absent.requests().len() as f64 / before.elapsed().as_secs_f64();
    assert!((0.2..=0.5).contains(&tries), "{tries} tries a second");
    let status = secrets.status();
    assert!(!status.synced && status.state.starts_with("absent"), "{status:?}");
    absent.recover();
    absent.put("s", data("1"));
    let took = eventually("the kind is found", || secrets.status().synced).await;
    assert!(took <= Duration::from_millis(5100), "{took:?}");
    assert_eq!(secrets.store().len(), 1);
    stop.cancel();
    task.await.unwrap();
}

/// B13: a kind that ceases to exist: the CRD is deleted under a running watch.
#[tokio::test(start_paused = true)]
async fn the_objects_of_a_kind_that_disappears_are_delivered_as_deleted_once() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    rig.caught_up().await;
    rig.server.script(|_, _| Some(ScriptedResponse::Status(404, "NotFound")));
    rig.server.close_watches();
    eventually("the object is gone", || rig.get("a").is_none()).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.told.take(), ["?a=1"]);
    rig.server.recover();
    eventually("it is back", || rig.get("a").is_some()).await;
    assert_eq!(rig.told.take(), ["+a=1"]);
}

/// B8: versions that go back.
#[tokio::test(start_paused = true)]
async fn versions_that_go_backwards_begin_a_new_epoch_and_everything_is_delivered_again() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("same", data("old"));
    for i in 0..30 {
        rig.server.put("a", data(&i.to_string()));
    }
    rig.server.put("lost", data("1"));
    rig.caught_up().await;
    let mut mine = (*rig.get("a").unwrap().get().unwrap()).clone();
    mine.metadata.resource_version = Some("999".to_owned());
    rig.informer.wrote(&mine).unwrap();
    rig.server.lose("lost");
    rig.server.restore(10);
    // The same uid and version as before, and another state.
    rig.server.put("same", data("new"));
    rig.server.put("a", data("restored"));
    rig.server.compact();
    rig.server.break_watches();
    rig.server.script(|_, read| match read {
        Read::Watch { resource_version, .. } if resource_version.as_str() > "30" => {
            let gone = serde_json::to_string(&status(410, "Expired")).unwrap();
            Some(ScriptedResponse::Body(vec![frame("ERROR", &gone)]))
        }
        _ => None,
    });
    eventually("the older state is accepted", || {
        rig.get("a").is_some_and(|a| a.metadata().resource_version() == "12")
    })
    .await;
    assert_eq!(rig.told.take(), ["~a=29>a=restored", "~same=old>same=new", "?lost=1"]);
    rig.server.put("a", data("later"));
    assert_eq!(rig.caught_up().await, ["~a=restored>a=later"]);
}

/// B6: repeated frames change nothing and are counted.
#[tokio::test(start_paused = true)]
async fn older_and_repeated_frames_are_dropped_and_counted() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    rig.server.put("a", data("2"));
    rig.caught_up().await;
    for version in ["11", "12"] {
        let object = json!({"metadata": {"name": "a", "namespace": "n", "uid": "uid11",
            "resourceVersion": version}, "data": {"k": "old"}});
        rig.server.send(&frame("MODIFIED", &object.to_string()));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    rig.server.put("b", data("1"));
    assert_eq!(rig.caught_up().await, ["+b=1"]);
    let dropped = &names::INFORMER_DROPPED;
    assert_eq!(rig.environment.metrics.counted(dropped, &["configmaps", "not_newer"]), 2);
}

/// A4: the connection breaks inside a frame.
#[tokio::test(start_paused = true)]
async fn a_truncated_frame_is_not_delivered_and_comes_again_whole() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.send(r#"{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"n""#);
    rig.server.close_watches();
    rig.server.put("a", data("1"));
    assert_eq!(rig.caught_up().await, ["+a=1"]);
    assert_eq!(rig.server.lists(), 1);
}

/// A watch that falls silent (A5: a half-open connection), or that trickles (A6).
#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_is_replaced() {
    let rig = Rig::synced(Server::new()).await;
    let took = eventually("the silent watch is ended", || rig.server.requests().len() == 2).await;
    let (shortest, longest) = (Duration::from_secs(330), Duration::from_secs(640));
    assert!((shortest..longest).contains(&took), "{took:?}");
    rig.server.send("{\"type\":");
    let took = eventually("the half frame is given up", || rig.server.requests().len() == 3).await;
    assert!(took < Duration::from_secs(32), "{took:?}");
    rig.server.put("a", data("1"));
    rig.caught_up().await;
    assert_eq!(rig.server.lists(), 1, "the version is still good");
}

/// A6: a frame that trickles is given up; a stream whose reads always end inside a frame is not.
#[tokio::test(start_paused = true)]
async fn a6_a_busy_watch_whose_pieces_all_end_inside_a_frame_is_kept() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    rig.caught_up().await;
    let mark = bookmark(rig.server.version(), false);
    let (first, second) = mark.split_at(mark.len() / 2);
    rig.server.send(first);
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        rig.server.send(&format!("{second}{first}"));
    }
    assert_eq!(rig.server.requests().len(), 1);
}

/// A source that panics on request.
#[derive(Debug)]
struct Fragile(Arc<Server>, AtomicBool);

impl ListWatch for Fragile {
    fn open(&self, read: Read) -> OpenFuture<'_> {
        assert!(!self.1.load(Ordering::Relaxed), "a defect of the source");
        self.0.open(read)
    }
}

/// A defect of a source costs a list, not the cache.
#[tokio::test(start_paused = true)]
async fn a_source_that_panics_is_seen_in_the_status_and_read_again() {
    let fragile = Arc::new(Fragile(Server::new(), AtomicBool::new(false)));
    let source = Arc::clone(&fragile);
    let sources = Box::new(move |_: Selection<'_>| Arc::clone(&source) as Arc<dyn ListWatch>);
    let registry = InformerRegistry::over(sources, environment(), Vec::new());
    let (informer, stop) = (registry.informer::<ConfigMap>(), CancellationToken::new());
    let task = run(&registry, &stop);
    informer.synced().await.unwrap();
    fragile.1.store(true, Ordering::Relaxed);
    fragile.0.break_watches();
    let is_told = || informer.status().state.contains("reading panicked; see the log");
    eventually("the status says so", is_told).await;
    fragile.0.put("a", data("1"));
    fragile.1.store(false, Ordering::Relaxed);
    eventually("it goes on", || informer.store().len() == 1).await;
    assert_eq!(fragile.0.lists(), 2, "nothing is taken for known after a panic");
    assert!(informer.status().synced, "{:?}", informer.status());
    stop.cancel();
    task.await.unwrap();
}

/// A cache that is no longer updated must not look healthy.
#[tokio::test(start_paused = true)]
async fn an_informer_whose_reading_task_panicked_is_not_synced() {
    let rig = Rig::synced(Server::new()).await;
    assert!(rig.status().synced);
    let guard = PanicGuard::of(rig.informer.informer_ref.core(), 0);
    let task = tokio::spawn(async move {
        let _guard = guard;
        panic!("a defect of windlass");
    });
    task.await.unwrap_err();
    let status = rig.status();
    assert!(
        !status.synced && status.state.contains("the task of the informer panicked"),
        "{status:?}"
    );
}

/// A runtime that ends drops tasks in any order: a reflector's task may be dropped before the
/// informer's, which stops the reflector.
#[tokio::test(start_paused = true)]
async fn an_informer_whose_reading_task_is_dropped_speaks_of_no_panic() {
    let rig = Rig::synced(Server::new()).await;
    let guard = PanicGuard::of(rig.informer.informer_ref.core(), 0);
    let task = tokio::spawn(async move {
        let _guard = guard;
        std::future::pending::<()>().await;
    });
    tokio::task::yield_now().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    let status = rig.status();
    assert!(status.synced && !status.state.contains("panic"), "{status:?}");
}
