//! Predicates that take long while further changes come.

use std::sync::mpsc;

use super::*;
use crate::controller::Predicate;
use windlass_cache::informer::Change;

/// Blocks the thread until the test opens the gate, as user code may.
#[derive(Clone)]
struct Gate {
    opened: Arc<Mutex<mpsc::Receiver<()>>>,
    reached: Arc<AtomicU32>,
}

impl Gate {
    fn new() -> (mpsc::Sender<()>, Self) {
        let (open, opened) = mpsc::channel();
        (open, Self { opened: Arc::new(Mutex::new(opened)), reached: Arc::default() })
    }

    fn pass(&self) {
        if self.reached.fetch_add(1, Ordering::SeqCst) == 0 {
            let _ = self.opened.lock().recv();
        }
    }
}

/// Waits on the system's clock, because a thread is blocked.
async fn until(what: &str, met: impl Fn() -> bool) {
    let began = tokio::time::Instant::now();
    while !met() {
        assert!(began.elapsed() < Duration::from_secs(20), "never: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// More changes wait than are kept apart: their sum does not show the states in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn g_k2_a_slow_predicate_loses_no_change_however_many_wait() {
    let (world, notes, (open, gate)) = (World::start().await, Noting::default(), Gate::new());
    let at = gate.clone();
    let comes_to_x = Predicate::<Site>::new(move |change| {
        let Change::Updated { old, new } = change else { return false };
        at.pass();
        let host = |site: &windlass_cache::store::Cached<Site>| {
            site.get().expect("decodes").spec.host.clone()
        };
        host(old) != "x" && host(new) == "x"
    });
    let handle = ControllerBuilder::<Noting>::new().when(comes_to_x).build(notes.clone());
    let informers = InformerRegistry::new(world.client.clone(), vec![]);
    handle.attach(&informers).expect("the sources can be attached");
    let stop = CancellationToken::new();
    let caches = tokio::spawn({
        let (informers, stop) = (informers.clone(), stop.clone());
        async move { informers.run(stop).await }
    });
    informers.synced().await;
    let (client, drain) = (world.client.clone(), Duration::from_secs(5));
    let run = ControllerRun { client, informers: informers.clone(), stop: stop.clone(), drain };
    let work = tokio::spawn(async move { handle.run(run).await });

    let cached = informers.informer::<Site>().store();
    let shown = async |site: Site| {
        let is_shown = || {
            let shown = cached.get(&site.key());
            shown
                .is_some_and(|shown| shown.metadata().resource_version() == site.resource_version())
        };
        until("the cache shows it", is_shown).await;
    };
    shown(world.create("home", "a").await).await;
    let label = |n: u32| json!({ "metadata": { "labels": { "n": n.to_string() } } });
    world.patch("home", label(0)).await;
    until("the predicate is asked", || gate.reached.load(Ordering::SeqCst) == 1).await;
    // The first waiting change is kept apart.
    shown(world.patch("home", label(100)).await).await;
    for host in ["x", "a"] {
        shown(world.patch("home", json!({ "spec": { "host": host } })).await).await;
    }
    for n in 1..10 {
        shown(world.patch("home", label(n)).await).await;
    }
    open.send(()).expect("it waits");
    until("the change to x is reconciled", || !notes.0.lock().is_empty()).await;
    assert_eq!(notes.noted()[0], "home: changed");
    stop.cancel();
    assert!(work.await.expect("no panic"));
    caches.await.expect("no panic");
}
