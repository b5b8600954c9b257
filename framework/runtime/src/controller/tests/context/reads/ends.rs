//! Ends of reads: of an object, of a term, of the last reader of a kind.

use super::*;

const OWN: [&str; 1] = ["sites.example.dev"];

#[tokio::test(start_paused = true)]
async fn a_cache_starts_with_its_first_reader_and_stops_with_its_last() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    assert_eq!(caches(&running), OWN);
    world.reads("a", "map=app").await;
    world.reads("b", "team=red").await;
    running.settled().await;
    assert_eq!(caches(&running), ["configmaps", OWN[0]]);
    world.reads("a", "-").await;
    running.settled().await;
    assert_eq!(caches(&running), ["configmaps", OWN[0]], "one reader is left");
    world.reads("b", "-").await;
    running.settled().await;
    assert_eq!(caches(&running), OWN);
    assert_eq!(world.server.faults().open_watches("configmaps"), 0);
    world.reads("a", "map=app").await;
    running.settled().await;
    reader.noted();
    world.maps().create(&child("app", "x")).await.expect("created");
    running.settled().await;
    assert_eq!(reader.noted(), ["a [reads ConfigMap shop/app] map=app:x"], "it has started again");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_drops_its_reads() {
    for finalizer in [false, true] {
        let (world, reader) = (World::start().await, Reader::default());
        let mut builder = ControllerBuilder::<Reader>::new();
        if finalizer {
            builder = builder.finalizer(FINALIZER);
        }
        let running = world.run(builder.build(reader.clone())).await;
        world.reads("home", "map=app").await;
        running.settled().await;
        assert_eq!(caches(&running).len(), 2);
        world.sites().delete("home").await.expect("deleted");
        running.settled().await;
        assert_eq!(caches(&running), OWN, "finalizer: {finalizer}");
        assert_eq!(running.handle.dump(1)["reads"], json!({ "readers": 0, "reads": 0 }));
    }
}

#[tokio::test(start_paused = true)]
async fn reads_end_with_a_term_and_the_next_one_registers_them_again() {
    let (world, reader) = (World::start().await, Reader::default());
    let (handle, all) = (reader.controller(), CancellationToken::new());
    let informers = InformerRegistry::new(world.client.clone(), vec![]);
    handle.attach(&informers).expect("the sources can be attached");
    let caches = tokio::spawn({
        let (informers, all) = (informers.clone(), all.clone());
        async move { informers.run(all).await }
    });
    world.create("home", "map=app").await;
    for term in 1..=2 {
        let stop = CancellationToken::new();
        let run = ControllerRun {
            client: world.client.clone(),
            informers: informers.clone(),
            stop: stop.clone(),
            drain: Duration::from_secs(25),
        };
        let work = tokio::spawn({
            let handle = Arc::clone(&handle);
            async move { handle.run(run).await }
        });
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(reader.noted(), ["home [started] map=app:none"], "term {term}");
        assert_eq!(informers.status().len(), 2);
        stop.cancel();
        assert!(work.await.expect("no panic"));
        assert_eq!(informers.status().len(), 1, "no reader keeps the cache between two terms");
    }
    all.cancel();
    caches.await.expect("no panic");
}
