//! The configurations of processes at URLs that were killed, or that share a URL.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};

use super::at_url::Laptop;
use super::own::World;
use super::*;

async fn start(world: &World, url: &str) -> Laptop {
    let webhooks = Webhooks::new().validating(Rules).mutating(Defaults);
    Laptop::start_with(world, webhooks, url).await
}

/// Returns the names of the validating configurations, which are those of the mutating ones.
async fn stored(world: &World) -> BTreeSet<String> {
    let validating = world.client.all::<ValidatingWebhookConfiguration>().list().await.unwrap();
    let mutating = world.client.all::<MutatingWebhookConfiguration>().list().await.unwrap();
    let names = validating.items.into_iter().filter_map(|it| it.metadata.name);
    let names: BTreeSet<_> = names.filter(|name| name.contains("-by-url-")).collect();
    let others = mutating.items.into_iter().filter_map(|it| it.metadata.name);
    assert_eq!(names, others.filter(|name| name.contains("-by-url-")).collect());
    names
}

#[tokio::test(start_paused = true)]
async fn configurations_of_a_process_that_was_killed_are_removed_by_any_process_of_the_operator() {
    let world = World::start().await;
    let killed = start(&world, "https://laptop.example:1001").await;
    let left = stored(&world).await;
    let running = start(&world, "https://laptop.example:1002").await;
    for _ in 0..10 {
        pass(97).await;
        assert_eq!(stored(&world).await.len(), 2, "both are at work");
    }
    killed.kill().await;
    pass(240).await;
    assert_eq!(stored(&world).await.len(), 2);
    pass(200).await;
    assert_eq!(stored(&world).await.len(), 1);
    assert!(stored(&world).await.is_disjoint(&left));
    running.stop().await;

    let killed = start(&world, "https://laptop.example:1003").await;
    killed.kill().await;
    start(&world, "https://laptop.example:1004").await.stop().await;
    assert_eq!(stored(&world).await.len(), 1, "it may be at work");
    pass(301).await;
    start(&world, "https://laptop.example:1005").await.stop().await;
    assert!(stored(&world).await.is_empty(), "the next one finds it at its start");
}

#[tokio::test(start_paused = true)]
async fn of_two_processes_at_one_url_the_configurations_are_those_of_the_later_until_it_stops() {
    let world = World::start().await;
    // Two machines: `localhost` is another one for each.
    let url = "https://localhost:9443";
    let (first, second) = (start(&world, url).await, start(&world, url).await);
    let name = "shop-webhooks-by-url-localhost-9443";
    let configuration = async || {
        let stored = world.client.all::<ValidatingWebhookConfiguration>();
        stored.get(name).await.unwrap()
    };
    let webhooks = configuration().await.webhooks;
    let mut versions = BTreeSet::new();
    for _ in 0..60 {
        pass(10).await;
        let stored = configuration().await;
        assert_eq!(stored.webhooks, webhooks);
        versions.insert(stored.metadata.resource_version);
    }
    assert!(versions.len() <= 12, "they do not write in turn: {}", versions.len());
    first.stop().await;
    assert_eq!(configuration().await.webhooks, webhooks, "the second needs them");
    let third = start(&world, url).await;
    third.stop().await;
    pass(16).await;
    assert_eq!(configuration().await.webhooks, webhooks, "the second has them again");
    second.stop().await;
    assert!(stored(&world).await.is_empty());
}
