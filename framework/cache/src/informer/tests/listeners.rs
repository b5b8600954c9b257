//! Tests of listeners: delivery, order, resync and removal.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Waker};

use super::*;
use crate::informer::CacheOptions;
use crate::informer::listener::{Listener, ListenerIdentity, MergePolicy};
use windlass_core::metrics::names;
use windlass_core::resource::ResourceInfo;

/// Mechanism 31: the store first, then the listeners, in order; a first list is delivered as
/// additions.
#[tokio::test(start_paused = true)]
async fn mechanism_31_the_store_shows_a_change_before_listeners_receive_it() {
    let server = Server::new();
    server.put("a", data("1"));
    let registry = registry(&server, &environment(), &[]);
    let informer = registry.informer::<ConfigMap>();
    let (told, store) = (Told::default(), informer.store());
    let listener = told.clone();
    let listening = informer.on_change(move |change| {
        let shown = store.get(change.key());
        let is_shown = match change {
            Change::Added { new, .. } | Change::Updated { new, .. } => {
                shown.is_some_and(|shown| shown.is_same(new))
            }
            Change::Deleted { .. } => shown.is_none(),
        };
        assert!(is_shown, "{change:?}");
        listener.hear(change);
    });
    let stop = CancellationToken::new();
    let task = run(&registry, &stop);
    listening.synced().await.unwrap();
    assert_eq!(told.take(), ["*a=1"]);
    let told_is = |expected: &'static [&str]| {
        let told = told.clone();
        eventually("it is told", move || *told.0.lock() == expected)
    };
    server.put("a", data("2"));
    told_is(&["~a=1>a=2"]).await;
    server.delete("a");
    told_is(&["~a=1>a=2", "-a=2"]).await;
    assert_eq!(informer.status().listeners.len(), 1);
    stop.cancel();
    task.await.unwrap();
}

/// Row 61 of the upstream tests.
#[tokio::test(start_paused = true)]
async fn mechanism_31_an_update_carries_the_exact_predecessor_and_a_resync_says_so() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    rig.caught_up().await;
    let before = rig.get("a").unwrap();
    let seen: Arc<Mutex<Vec<(bool, bool)>>> = Arc::default();
    let heard = Arc::clone(&seen);
    let listen = rig.informer.listen().resync(Duration::from_secs(1));
    let listening = listen.on_change(move |change| {
        if let Change::Updated { old, .. } = change {
            heard.lock().push((old.is_same(&before), change.is_resync()));
        }
    });
    listening.synced().await.unwrap();
    rig.server.put("a", data("2"));
    rig.caught_up().await;
    assert_eq!(std::mem::take(&mut *seen.lock()), [(true, false)]);
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(*seen.lock(), [(false, true)]);
}

/// Row 64 of the upstream tests, and mechanism 33's loop: from the reflector to the listener.
#[tokio::test(start_paused = true)]
async fn mechanism_33_a_relist_delivers_missing_known_and_new_objects_once_each() {
    let rig = Rig::synced(Server::new()).await;
    for name in ["gone", "kept", "other"] {
        rig.server.put(name, data("1"));
    }
    rig.caught_up().await;
    rig.server.break_watches();
    rig.server.lose("gone");
    rig.server.put("other", data("2"));
    rig.server.put("new", data("1"));
    rig.server.compact();
    let told = rig.caught_up().await;
    assert_eq!(told, ["+new=1", "~other=1>other=2", "?gone=1"]);
    rig.stop.cancel();
    rig.task.await.unwrap();
    rig.server.put("late", data("1"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(rig.told.take().is_empty(), "after the stop nothing is told");
}

/// Row 94: 1 s is the shortest period; row 93: each listener receives only the listener's own
/// resync.
#[tokio::test(start_paused = true)]
async fn mechanism_59_each_listener_is_resynced_by_its_own_period_without_drift() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    rig.caught_up().await;
    let started = Instant::now();
    let times = |period: Duration| {
        let times: Arc<Mutex<Vec<u128>>> = Arc::default();
        let heard = Arc::clone(&times);
        let listening = rig.informer.listen().resync(period).on_change(move |change| {
            if change.is_resync() {
                heard.lock().push(started.elapsed().as_millis().div_euclid(10));
            }
        });
        (times, listening)
    };
    let (shortest, _a) = times(Duration::from_millis(1));
    let (two, _b) = times(Duration::from_secs(2));
    let (three, _c) = times(Duration::from_secs(3));
    tokio::time::sleep(Duration::from_millis(9_500)).await;
    assert_eq!(*shortest.lock(), (1..=9).map(|n| n * 100).collect::<Vec<_>>());
    assert_eq!(*two.lock(), [200, 400, 600, 800]);
    assert_eq!(*three.lock(), [300, 600, 900]);
    assert!(rig.told.take().is_empty(), "who asked for none is told none");
}

/// B11 (a slow listener), on threads: a listener that is blocked.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn b11_mechanism_59_a_listener_that_stands_still_costs_an_entry_a_key_and_delays_nobody() {
    let rig = Rig::synced(Server::new()).await;
    let (open, gate) = mpsc::channel::<()>();
    let (gate, told) = (Mutex::new(gate), Told::default());
    let heard = told.clone();
    let slow = rig.informer.listen().name("slow").on_change(move |change| {
        // Fails once the gate is open.
        let _ = gate.lock().recv();
        heard.hear(change);
    });
    slow.synced().await.unwrap();
    for n in 0..2_000 {
        let version = rig.server.put(&format!("o{}", n % 10), data(&n.to_string())).to_string();
        if n % 50 == 0 {
            eventually("it is read", || rig.status().resource_version == version).await;
        }
    }
    rig.server.delete("o0");
    let is_told = || rig.told.0.lock().iter().any(|line| line == "-o0=1990");
    eventually("the other is told the end", is_told).await;
    let waiting = |status: InformerStatus| {
        status.listeners.into_iter().find(|who| who.name == "slow").map(|who| who.waiting)
    };
    assert!(waiting(rig.status()) <= Some(10), "{:?}", rig.status());
    assert!(told.0.lock().is_empty());
    drop(open);
    eventually("the slow one has caught up", || {
        rig.registry.views().iter().all(|view| view.is_delivered)
    })
    .await;
    let lines = told.take();
    // At most the items taken out before the listener blocked, and then a line for each key.
    assert!(lines.len() <= 20, "{lines:?}");
    assert!(lines.iter().any(|line| line == "-o0=1990"), "{lines:?}");
    for n in 1..10 {
        let end = format!("o{n}={}", 1990 + n);
        assert!(lines.iter().any(|line| line.ends_with(&end)), "{end} in {lines:?}");
    }
}

/// A call that blocks stops a thread of the runtime, and with it the task in the thread's slot for
/// the newest task; the slot is empty for a task that has yielded.
#[tokio::test(start_paused = true)]
async fn mechanism_59_a_woken_listener_yields_before_its_first_call() {
    let environment = environment();
    let identity = ListenerIdentity {
        name: "listener".to_owned(),
        info: ResourceInfo::of::<ConfigMap>(),
        metrics: environment.metrics,
        clock: environment.clock,
    };
    let listener = Listener::queued(identity, MergePolicy::Latest, None, Box::new(|_| ()));
    let mut task = pin!(Arc::clone(&listener).task(CancellationToken::new()));
    let mut poll = || task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    assert!(!poll() && !poll(), "the listener waits for items");
    listener.mark_synced();
    assert!(!poll() && !listener.is_synced(), "the task that was woken yields");
    assert!(!poll() && listener.is_synced(), "the item is delivered at the next poll");
}

/// Row 103: while a call is running, the listener's removal waits for that call.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn mechanism_61_a_removal_returns_when_no_call_is_running_any_more() {
    let rig = Rig::synced(Server::new()).await;
    let (open, gate) = mpsc::channel::<()>();
    let (gate, running) = (Mutex::new(gate), Arc::new(AtomicUsize::new(0)));
    let runs = Arc::clone(&running);
    let slow = rig.informer.on_change(move |_| {
        runs.fetch_add(1, Ordering::SeqCst);
        let _ = gate.lock().recv();
        runs.fetch_add(1, Ordering::SeqCst);
    });
    slow.synced().await.unwrap();
    rig.server.put("a", data("1"));
    rig.server.put("b", data("1"));
    eventually("it is called", || running.load(Ordering::SeqCst) == 1).await;
    let opener = async {
        tokio::task::yield_now().await;
        assert_eq!(running.load(Ordering::SeqCst), 1);
        drop(open);
    };
    let removal = async {
        slow.remove().await;
        running.load(Ordering::SeqCst)
    };
    let (at_removal, ()) = tokio::join!(biased; removal, opener);
    assert_eq!(at_removal, 2, "the call that ran has ended");
    rig.server.put("c", data("1"));
    let told = || rig.told.0.lock().len() == 3;
    eventually("the other is told", told).await;
    assert_eq!(running.load(Ordering::SeqCst), 2, "and none came");
}

/// Row 100: the same function twice is two registrations; row 103: removal stops at once.
#[tokio::test(start_paused = true)]
async fn mechanism_61_a_removed_listener_receives_nothing_more_and_the_others_do() {
    let rig = Rig::synced(Server::new()).await;
    let (told, count) = (Told::default(), Arc::new(AtomicUsize::new(0)));
    let (one, two) = (told.listen(&rig.informer), told.listen(&rig.informer));
    one.synced().await.unwrap();
    rig.server.put("a", data("1"));
    rig.caught_up().await;
    assert_eq!(told.take(), ["+a=1", "+a=1"]);
    one.remove().await;
    one.remove().await;
    rig.server.put("a", data("2"));
    rig.caught_up().await;
    assert_eq!(told.take(), ["~a=1>a=2"]);
    drop(two);
    rig.server.put("a", data("3"));
    rig.caught_up().await;
    assert!(told.take().is_empty(), "dropping it removes it");
    let counted = Arc::clone(&count);
    let kept = rig.informer.on_change(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    kept.synced().await.unwrap();
    kept.keep();
    rig.server.put("a", data("4"));
    rig.caught_up().await;
    assert_eq!(count.load(Ordering::Relaxed), 2, "a kept one stays: the replay and the change");
    assert!(one.has_synced(), "what was told stays told");
}

/// Row 101: after additions and removals in any order, no listener is left.
#[tokio::test(start_paused = true)]
async fn mechanism_61_listeners_that_come_and_go_leave_nothing_behind() {
    let rig = Rig::synced(Server::new()).await;
    for round in 0..50 {
        let told = Told::default();
        let first = told.listen(&rig.informer);
        let second = told.listen(&rig.informer);
        rig.server.put(&format!("o{}", round % 7), data(&round.to_string()));
        if round % 2 == 0 {
            first.synced().await.unwrap();
        }
        if round % 3 == 0 {
            second.remove().await;
        }
    }
    rig.caught_up().await;
    assert_eq!(rig.status().listeners.len(), 1, "only the rig's own");
}

/// Row 95: added while the informer starts, the listener loses nothing.
#[tokio::test(start_paused = true)]
async fn mechanism_61_a_listener_added_while_the_first_list_comes_misses_nothing() {
    let server = Server::new();
    for n in 0..300 {
        server.put(&format!("o{n:03}"), data("1"));
    }
    let rig = Rig::start(server);
    let mut registrations = Vec::new();
    let all: Vec<Told> = (0..40).map(|_| Told::default()).collect();
    for told in &all {
        registrations.push(told.listen(&rig.informer));
        tokio::task::yield_now().await;
    }
    for (told, registration) in all.iter().zip(&registrations) {
        registration.synced().await.unwrap();
        let lines = told.take();
        assert_eq!(lines.len(), 300, "each object once");
        assert!(lines.iter().all(|line| line.starts_with('*')));
    }
}

/// Row 96, and mechanism 60: objects that a relist shows unchanged are not delivered; a resync only
/// to listeners that are due.
#[tokio::test(start_paused = true)]
async fn mechanism_60_unchanged_objects_go_only_to_listeners_due_for_a_resync() {
    let rig = Rig::synced(Server::new()).await;
    rig.server.put("a", data("1"));
    rig.server.put("b", data("1"));
    rig.caught_up().await;
    let due = Told::default();
    let listener = due.clone();
    let listen = rig.informer.listen().resync(Duration::from_secs(10));
    let listening = listen.on_change(move |change| listener.hear(change));
    listening.synced().await.unwrap();
    assert_eq!(due.take(), ["*a=1", "*b=1"]);
    rig.server.compact();
    rig.server.break_watches();
    eventually("it is listed again", || rig.server.lists() == 2).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(rig.told.take().is_empty() && due.take().is_empty());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(due.take(), ["~a=1>a=1", "~b=1>b=1"]);
    assert!(rig.told.take().is_empty());
}

/// Row 104, and a defect of client-go: there `HasSynced` never comes true after a panic.
#[tokio::test(start_paused = true)]
async fn a_listener_that_panics_in_its_first_list_is_synced_all_the_same() {
    let server = Server::new();
    server.put("a", data("1"));
    server.put("b", data("1"));
    let rig = Rig::synced(server).await;
    let panicking = rig.informer.listen().name("broken").on_change(|_| panic!("a defect"));
    panicking.synced().await.unwrap();
    assert!(panicking.has_synced());
    let panics = &names::INFORMER_LISTENER_PANICS;
    assert_eq!(rig.environment.metrics.counted(panics, &["configmaps"]), 2);
    assert_eq!(rig.status().listeners[1].name, "broken");
}

/// Row 102: a listener that is added after the end receives nothing, and waits for nothing.
#[tokio::test(start_paused = true)]
async fn a_listener_of_a_stopped_informer_receives_nothing_and_is_removed_at_once() {
    let rig = Rig::synced(Server::new()).await;
    rig.stop.cancel();
    rig.task.await.unwrap();
    let late = rig.informer.on_change(|_| panic!("nothing is told"));
    assert_eq!(late.synced().await.unwrap_err().kind(), windlass_core::ErrorKind::Cancelled);
    late.remove().await;
    rig.listening.remove().await;
    assert!(rig.listening.has_synced(), "what was told stays told");
}

/// A mapper sees the states in between, so that all objects that they map to are affected.
#[tokio::test(start_paused = true)]
async fn a_mapper_is_shown_every_state_that_the_cache_held() {
    let rig = Rig::synced(Server::new()).await;
    let states: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&states);
    let listening = rig.informer.listen().on_steps(move |steps, _| {
        let held = crate::informer::states(steps).into_iter();
        heard.lock().extend(held.map(|state| state.version().to_owned()));
    });
    listening.synced().await.unwrap();
    let versions: Vec<String> =
        (0..3).map(|n| rig.server.put("a", data(&n.to_string())).to_string()).collect();
    rig.caught_up().await;
    let mut seen = states.lock().clone();
    seen.dedup();
    assert_eq!(seen, versions);
}

#[tokio::test(start_paused = true)]
async fn the_default_resync_period_is_that_of_the_kinds_options() {
    let server = Server::new();
    server.put("a", data("1"));
    let registry = registry(&server, &environment(), &[]);
    let options = CacheOptions::default().resync(Duration::from_secs(5));
    registry.set_options(ResourceInfo::of::<ConfigMap>(), options).unwrap();
    let informer = registry.informer::<ConfigMap>();
    let told = Told::default();
    let listening = told.listen(&informer);
    let stop = CancellationToken::new();
    let task = run(&registry, &stop);
    listening.synced().await.unwrap();
    told.take();
    tokio::time::sleep(Duration::from_millis(10_500)).await;
    assert_eq!(told.take(), ["~a=1>a=1", "~a=1>a=1"]);
    stop.cancel();
    task.await.unwrap();
}

/// B11 (slow listeners): two listeners block, and the runtime's threads stay free for other tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn b11_listeners_that_block_keep_no_thread_of_the_runtime() {
    let rig = Rig::synced(Server::new()).await;
    let blocking = || {
        let (open, gate) = mpsc::channel::<()>();
        let (gate, told) = (Mutex::new(gate), Told::default());
        let (heard, is_first) = (told.clone(), AtomicUsize::new(0));
        let listening = rig.informer.on_change(move |change| {
            // The first call shows that the listener blocks; the others wait for the gate.
            let wait = match is_first.fetch_add(1, Ordering::Relaxed) {
                0 => Duration::from_millis(30),
                _ => Duration::from_secs(600),
            };
            let _ = gate.lock().recv_timeout(wait);
            heard.hear(change);
        });
        (open, told, listening)
    };
    let slow = [blocking(), blocking()];
    for (_, _, listening) in &slow {
        listening.synced().await.unwrap();
    }
    rig.server.put("a", data("1"));
    for (_, told, _) in &slow {
        eventually("its first call ends", || told.0.lock().len() == 1).await;
    }
    rig.server.put("a", data("2"));
    eventually("the quick one is told", || rig.told.0.lock().len() == 2).await;
    let all_wait = || rig.status().listeners.iter().all(|listener| listener.waiting == 0);
    eventually("both calls have begun", all_wait).await;
    rig.server.put("b", data("1"));
    eventually("the quick one is told again", || rig.told.0.lock().len() == 3).await;
    for (open, told, listening) in slow {
        drop(open);
        eventually("the gate opens", || told.0.lock().len() == 3).await;
        assert_eq!(told.take(), ["+a=1", "~a=1>a=2", "+b=1"]);
        listening.remove().await;
    }
}

/// Row 103, of a call on a separate thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mechanism_61_a_removal_waits_for_a_call_that_blocks() {
    let rig = Rig::synced(Server::new()).await;
    let (open, gate) = mpsc::channel::<()>();
    let (gate, steps) = (Mutex::new(gate), Arc::new(AtomicUsize::new(0)));
    let made = Arc::clone(&steps);
    let slow = rig.informer.on_change(move |_| {
        // The first call shows that the listener blocks.
        let is_first = made.fetch_add(1, Ordering::SeqCst) == 0;
        let wait = Duration::from_millis(if is_first { 30 } else { 600_000 });
        let _ = gate.lock().recv_timeout(wait);
        made.fetch_add(1, Ordering::SeqCst);
    });
    slow.synced().await.unwrap();
    for (value, reached) in [("1", 2), ("2", 3)] {
        rig.server.put("a", data(value));
        eventually("it is called", || steps.load(Ordering::SeqCst) == reached).await;
    }
    let opener = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(steps.load(Ordering::SeqCst), 3);
        drop(open);
    };
    let removal = async {
        slow.remove().await;
        steps.load(Ordering::SeqCst)
    };
    let (at_removal, ()) = tokio::join!(biased; removal, opener);
    assert_eq!(at_removal, 4, "the call that ran has ended");
}

#[test]
fn mechanism_61_a_removal_does_not_wait_for_a_thread_that_is_not_to_be_had() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let rig = Rig::synced(Server::new()).await;
        let (_open, gate) = mpsc::channel::<()>();
        let (gate, calls) = (Mutex::new(gate), Arc::new(AtomicUsize::new(0)));
        let called = Arc::clone(&calls);
        let listen = rig.informer.listen().name("slow");
        let slow = listen.on_change(move |_| {
            called.fetch_add(1, Ordering::SeqCst);
            let _ = gate.lock().recv_timeout(Duration::from_millis(30));
        });
        slow.synced().await.unwrap();
        rig.server.put("a", data("1"));
        eventually("it is seen to block", || calls.load(Ordering::SeqCst) == 1).await;
        let (busy, end) = mpsc::channel::<()>();
        let busy_thread = tokio::task::spawn_blocking(move || end.recv().is_err());
        let version = rig.server.put("a", data("2")).to_string();
        let no_item_waits = || rig.status().listeners.iter().all(|who| who.waiting == 0);
        let is_taken = || rig.status().resource_version == version && no_item_waits();
        eventually("its call waits for the thread", is_taken).await;
        let limit = Duration::from_secs(5);
        tokio::time::timeout(limit, slow.remove()).await.expect("it is removed");
        drop(busy);
        busy_thread.await.unwrap();
        // The blocking thread has no earlier work.
        tokio::task::spawn_blocking(|| ()).await.unwrap();
        assert_eq!(calls.load(Ordering::SeqCst), 1, "no call came");
    });
}

/// B11 (slow listeners): no call is slow, but all of them together are.
#[tokio::test]
async fn b11_many_calls_that_are_not_quick_keep_no_thread_of_the_runtime() {
    let server = Server::new();
    for n in 0..12 {
        server.put(&format!("o{n}"), data("1"));
    }
    let rig = Rig::synced(server).await;
    let (_open, gate) = mpsc::channel::<()>();
    let (gate, threads) = (Mutex::new(gate), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&threads);
    let listening = rig.informer.on_change(move |_| {
        let _ = gate.lock().recv_timeout(Duration::from_millis(5));
        seen.lock().push(std::thread::current().id());
    });
    listening.synced().await.unwrap();
    let threads = threads.lock();
    assert_eq!(threads.len(), 12);
    assert_eq!(threads[0], std::thread::current().id());
    assert_ne!(threads[11], threads[0], "the last ones are called apart");
}
