//! Reads of caches that are not filled, and of kinds that are not served.

use super::*;
use windlass_apiserver::faults::{Fault, FaultAction as Do};

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_served_later_wakes_the_readers_of_its_first_objects() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    world.reads("home", "late=one").await;
    running.settled().await;
    assert_eq!(reader.noted(), ["home [changed] late=one:none"]);
    world.client.all().create(&Late::crd().expect("a schema")).await.expect("created");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let late = Late::new("one", SiteSpec::default());
    world.client.namespace::<Late>("shop").create(&late).await.expect("created");
    tokio::time::sleep(Duration::from_secs(600)).await;
    running.settled().await;
    assert_eq!(reader.noted(), ["home [reads Late shop/one] late=one:there"]);
}

#[tokio::test(start_paused = true)]
async fn a_read_of_a_cache_that_cannot_be_filled_fails_with_the_reason_after_10_s() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    world.maps().create(&child("app", "x")).await.expect("created");
    let refused = Fault::new(Do::Answer(403)).resource("configmaps").always();
    let refused = world.server.faults().add(refused);
    world.create("home", "map=app").await;
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(reader.noted().is_empty(), "it waits");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let error = running.handle.dump(10)["lastErrors"][0]["error"].to_string();
    assert!(error.contains("not filled after 10s") && error.contains("403"), "{error}");
    assert_eq!(caches(&running).len(), 2, "the cache is tried on between two attempts");
    refused.remove();
    tokio::time::sleep(Duration::from_secs(600)).await;
    running.settled().await;
    assert_eq!(reader.noted().last().map(|last| last.ends_with("map=app:x")), Some(true));
}

#[tokio::test(start_paused = true)]
async fn a_missing_grant_of_a_read_stalls_its_reader_until_the_cache_may_be_filled() {
    let (world, reader) = (World::start().await, Reader::default());
    let builder = ControllerBuilder::<Reader>::new().outcome_condition("Ready");
    let running = world.run(builder.build(reader.clone())).await;
    world.maps().create(&child("app", "x")).await.expect("created");
    let shown = async || {
        let status = world.sites().get("home").await.expect("it is there").status;
        let ready = status.and_then(|status| status.conditions.get("Ready").cloned());
        ready.map(|it| (it.reason, it.message)).unwrap_or_default()
    };
    // Another cause than a missing grant passes by itself.
    let broken =
        world.server.faults().add(Fault::new(Do::Answer(500)).resource("configmaps").always());
    world.create("home", "map=app").await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(shown().await.0, "ReconcileFailed");
    broken.remove();
    let refused = Fault::new(Do::Answer(403)).resource("configmaps").always();
    let refused = world.server.faults().add(refused);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (reason, text) = shown().await;
    assert_eq!(reason, "RequestRefused", "{text}");
    assert!(text.contains("grant the verb") && text.contains("configmaps"), "{text}");
    refused.remove();
    tokio::time::sleep(Duration::from_secs(600)).await;
    running.settled().await;
    assert_eq!(shown().await.0, "Reconciled");
}
