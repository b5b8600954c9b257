//! Caches that are not filled, and the parts that begin without them.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use windlass_apiserver::faults::{Fault, FaultAction as Strike};

use super::world::{SECOND, Story, Trip, World, definition, elected, object, until};
use super::*;
use crate::controller::{Action, Context, ControllerBuilder, Result};
use windlass_client::client::test_support::Captured;
use windlass_core::resource::ResourceExt;

/// Reconciles a kind that may not be listed, or owns such a kind.
struct Maps(Story);

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
        // Each namespace has another, with the API server's certificate.
        if map.name() == "m" {
            self.0.record("maps", cx.store().len());
        }
        Ok(Action::done())
    }
}

fn count(story: &Story, what: &str) -> usize {
    story.recorded().iter().filter(|(recorded, _)| *recorded == what).count()
}

fn cache_fails(running: &Running, name: &str) -> bool {
    let checks = running.readiness().checks;
    checks.iter().any(|check| !check.ok && check.name == format!("cache {name}"))
}

async fn world_with_a_map() -> World {
    let world = World::start().await;
    let map: ConfigMap = object(json!({ "metadata": { "name": "m", "namespace": "shop" } }));
    world.client.namespace("shop").create(&map).await.unwrap();
    world
}

#[tokio::test(start_paused = true)]
async fn b12_a_list_that_is_forbidden_holds_up_the_controllers_that_use_it_alone() {
    for is_elected in [false, true] {
        let (logged, _guard) = Captured::at(tracing::Level::WARN);
        let (world, story) = (world_with_a_map().await, Story::default());
        world.server.faults().add(Fault::new(Strike::Answer(403)).resource("configmaps").always());
        let mut operator = world
            .operator(&story, definition(&["v1", "v2"]))
            .controller_with(Maps(story.clone()), ControllerBuilder::new().name("maps"));
        if is_elected {
            operator = operator.leader_election_with(elected());
        }
        let running = operator.start();
        let took = until("the other works", || count(&story, "reconciles") == 3).await;
        assert!(took < 15 * SECOND, "{took:?}");
        tokio::time::sleep(300 * SECOND).await;
        assert!(cache_fails(&running, "configmaps"), "{:?}", running.readiness());
        assert_eq!(
            (count(&story, "maps"), count(&story, "leads")),
            (0, 0),
            "{:?}",
            story.recorded()
        );
        let recorded = logged.with("the controller waits for its caches");
        assert!(recorded.len() == 1 && recorded[0].contains("configmaps"), "{}", logged.text());
        world.server.faults().clear();
        until("it works, too", || count(&story, "maps") == 1).await;
        until("what runs beside it does", || count(&story, "leads") == 1).await;
        assert!(running.readiness().is_ready(), "{:?}", running.readiness());
        running.stop();
        assert_eq!(running.join().await.unwrap(), Exit::Drained);
    }
}

/// A candidate with filled caches asks for the lease first.
#[tokio::test(start_paused = true)]
async fn b12_a_replica_whose_caches_stay_empty_asks_for_the_lease_after_30_s() {
    let (world, story) = (world_with_a_map().await, Story::default());
    world.server.faults().add(Fault::new(Strike::Answer(403)).resource("configmaps").always());
    let mut operator = world
        .operator(&story, definition(&["v1", "v2"]))
        .controller_with(Maps(story.clone()), ControllerBuilder::new().name("maps"));
    // No definition to install: the caches come before the lease.
    operator.definitions.clear();
    install::install_all(&world.client, &[definition(&["v1", "v2"])], false).await.unwrap();
    // Nor a lease to create: a process that creates a lease waits.
    let released = json!({
        "metadata": { "name": "trips" },
        "spec": { "leaseDurationSeconds": 1, "acquireTime": "2026-01-01T00:00:00.000000Z" },
    });
    let leases = world.client.namespace::<Lease>("shop");
    leases.create(&serde_json::from_value(released).unwrap()).await.unwrap();
    let running = operator.leader_election_with(elected()).start();
    let took = until("the other works", || count(&story, "reconciles") == 3).await;
    assert!((30 * SECOND..40 * SECOND).contains(&took), "{took:?}");
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}

/// The cache of the children is separate; and the controller stops while waiting.
#[tokio::test(start_paused = true)]
async fn b12_a_controller_waits_for_the_kinds_that_it_owns_and_of_other_clusters() {
    let (_logged, _guard) = Captured::at(tracing::Level::WARN);
    let (world, story) = (world_with_a_map().await, Story::default());
    let east = Cluster::new("east", world.client.clone());
    let forbidden = Fault::new(Strike::Answer(403)).resource("secrets").always();
    let forbidden = world.server.faults().add(forbidden);
    let none = |_: &windlass_cache::store::Cached<Secret>| Vec::new();
    let owner = ControllerBuilder::new().name("maps").owns::<Secret>();
    let watcher = ControllerBuilder::new().name("far").watches_in::<Secret>(&east, none);
    let running = world
        .operator(&story, definition(&["v1", "v2"]))
        .controller_with(Maps(story.clone()), owner)
        .controller_with(Maps(story.clone()), watcher)
        .cluster(&east)
        .start();
    until("the other works", || count(&story, "reconciles") == 3).await;
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(count(&story, "maps"), 0);
    assert!(cache_fails(&running, "secrets") && cache_fails(&running, "east/secrets"));
    forbidden.remove();
    until("both work", || count(&story, "maps") == 2).await;
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}

/// Follows a kind without acting on changes.
struct Following;

impl Reconciler for Following {
    type Object = Trip;

    async fn reconcile(&self, _: &Trip, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

/// The readers of such a cache are not known, also when a controller waits for that cache by
/// itself.
#[tokio::test(start_paused = true)]
async fn every_controller_waits_for_a_cache_that_the_program_added_itself() {
    for is_elected in [false, true] {
        let (world, story) = (world_with_a_map().await, Story::default());
        nobody_starts(&world, &story, is_elected).await;
        if is_elected {
            assert!(world.leases().get_opt("trips").await.unwrap().is_none(), "nor has the lease");
        }
    }
}

async fn nobody_starts(world: &World, story: &Story, is_elected: bool) {
    let east = Cluster::new("east", world.client.clone());
    let builder = ControllerBuilder::<Following>::new().name("following");
    let builder = builder.watches_in::<ConfigMap>(&east, |_| Vec::new());
    let mut operator = world.operator(story, definition(&["v1", "v2"])).cluster(&east);
    operator = operator.controller_with(Following, builder);
    if is_elected {
        // A candidate without definitions to install.
        operator.definitions.clear();
        install::install_all(&world.client, &[definition(&["v1", "v2"])], false).await.unwrap();
        operator = operator.leader_election_with(elected());
    }
    let forbidden = Fault::new(Strike::Answer(403)).resource("configmaps").always();
    world.server.faults().add(forbidden);
    let read = east.store::<ConfigMap>();
    let running = operator.start();
    tokio::time::sleep(60 * SECOND).await;
    assert_eq!(story.recorded(), []);
    running.stop();
    let asked = tokio::time::Instant::now();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
    assert!(asked.elapsed() < Duration::from_secs(1));
    assert!(read.is_empty());
}
