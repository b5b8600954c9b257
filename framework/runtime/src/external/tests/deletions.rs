//! Deletions: waits, crashes, errors.

use super::*;

/// Creates a volume by an operator that is then stopped.
async fn made(world: &World) {
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    running.stop();
    running.join().await.unwrap();
    // Beyond the time for which a created resource may stay unseen.
    pass(60).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_stays_until_its_resource_is_missing() {
    let world = World::start().await;
    made(&world).await;
    world.cloud.with(|cloud| cloud.lingers = 3);
    let running = world.run(world.driver());
    world.volumes().delete("home").await.unwrap();
    world.until_said("home", "is being deleted").await;
    assert_eq!(world.ready("home").await.1, "Terminating");
    assert_eq!(world.cloud.disks().0, 1);
    until("it is gone", async || world.volumes().get_opt("home").await.unwrap().is_none()).await;
    assert_eq!(world.cloud.disks().0, 0);
    assert_eq!(
        world.client.environment().metrics.counted(&names::RECONCILE_ERRORS, &["volume"]),
        0
    );
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_a_deletion_leaks_nothing() {
    for fault in [Fault::Hang, Fault::HangAfter] {
        let world = World::start().await;
        made(&world).await;
        world.cloud.fault("delete", fault);
        let running = world.run(world.driver());
        world.volumes().delete("home").await.unwrap();
        until("its deletion", async || world.cloud.calls("delete") > 0).await;
        drop(running);
        assert!(world.get("home").await.has_finalizer(FINALIZER));
        let running = world.run(world.driver());
        until("it is gone", async || world.volumes().get_opt("home").await.unwrap().is_none())
            .await;
        assert_eq!(world.cloud.disks(), (0, 1), "{fault:?}");
        drop(running);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_deletion_keeps_the_object() {
    let world = World::start().await;
    made(&world).await;
    for fault in [Fault::Fail, Fault::FailAfter] {
        world.cloud.fault("delete", fault);
    }
    let running = world.run(world.driver());
    world.delete("home").await;
    assert_eq!((world.cloud.disks().0, world.counted("delete", "error")), (0, 2));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_its_provider_does_not_show_yet_is_deleted_all_the_same() {
    let world = World::start().await;
    world.cloud.with(|cloud| cloud.hides = 3);
    let running = world.run(world.driver());
    world.create("home").await;
    until("its creation", async || world.cloud.disks().0 == 1).await;
    world.delete("home").await;
    assert_eq!(world.cloud.disks(), (0, 1));
    drop(running);
}
