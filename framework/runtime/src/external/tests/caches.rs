//! Caches that show less than the API server has.

use windlass_cache::informer::CacheOptions;
use windlass_cache::store::Transform;

use super::*;

/// Runs an operator whose cache of volumes has these options.
fn run_with(world: &World, options: CacheOptions) -> Running {
    let controller = ExternalController::new(world.driver().poll_every(60 * SECOND));
    let manager = world.manager().cache::<Volume>(options);
    manager.controller_configured(controller, |builder| builder.outcome_condition("Ready")).start()
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_shows_no_own_writes_hides_no_finalizer() {
    let world = World::start().await;
    let running = run_with(&world, CacheOptions::default().labels("tier=front"));
    let metadata = json!({ "name": "home", "labels": { "tier": "front" } });
    let volume = json!({ "metadata": metadata, "spec": { "size": 5 } });
    world.volumes().create(&serde_json::from_value(volume).unwrap()).await.unwrap();
    until("it is ready", async || {
        let (status, _, message) = world.ready("home").await;
        assert!(!message.contains("does not carry the finalizer"), "{message}");
        status == "True"
    })
    .await;
    assert_eq!(world.cloud.disks(), (1, 1));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_cache_without_annotations_makes_no_second_resource_and_loses_none() {
    let world = World::start().await;
    let stripped = Transform::drop_paths(&[&["metadata", "annotations"]]);
    let running = run_with(&world, CacheOptions::default().transform(stripped));
    world.create("home").await;
    world.create_with("kept", json!({ EXTERNAL_POLICY: "no-delete" })).await;
    for name in ["home", "kept"] {
        world.until_ready(name).await;
    }
    pass(700).await;
    assert_eq!(world.cloud.disks(), (2, 2), "polls create nothing");
    world.delete("kept").await;
    assert_eq!(world.cloud.disks().0, 2, "its policy is not passed over");
    world.delete("home").await;
    assert_eq!(world.cloud.disks().0, 1);
    drop(running);
}
