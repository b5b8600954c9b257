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

/// Deletes a volume that was made `age` seconds ago and stays visible for some observations, and
/// until the restart if there is one; returns the time until the object is gone, and the messages
/// of its waits.
async fn deleted(age: u64, restarts: bool) -> (Duration, Vec<String>) {
    let world = World::start().await;
    world.cloud.with(|cloud| cloud.lingers = 3);
    let mut running = Some(world.run(world.driver()));
    world.create("home").await;
    world.until_ready("home").await;
    pass(age).await;
    let began = tokio::time::Instant::now();
    world.volumes().delete("home").await.unwrap();
    world.until_said("home", "is being deleted").await;
    if restarts {
        drop(running.take());
        world.cloud.with(|cloud| cloud.disks.clear());
        running = Some(world.run(world.driver()));
    }
    let mut said = Vec::new();
    until("it is gone", async || match world.volumes().get_opt("home").await.unwrap() {
        None => true,
        Some(home) => {
            let conditions = home.status.unwrap_or_default().conditions;
            said.extend(conditions.get("Ready").map(|ready| ready.message.clone()));
            false
        }
    })
    .await;
    assert_eq!(world.cloud.disks().0, 0);
    drop(running);
    (began.elapsed(), said)
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_was_deleted_holds_its_object_only_until_it_is_missing() {
    let (waited, said) = deleted(0, false).await;
    assert!(waited < 20 * SECOND, "{waited:?}");
    assert!(!said.iter().any(|text| text.contains("not seen yet")), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_does_not_make_a_deleted_resource_one_that_may_still_appear() {
    for age in [0, 120] {
        let (waited, said) = deleted(age, true).await;
        assert!(waited < 20 * SECOND, "{age} {waited:?}");
        assert!(!said.iter().any(|text| text.contains("not seen yet")), "{age} {said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_waits_for_the_provider_to_show_the_resource_says_which_and_why() {
    let world = World::start().await;
    world.cloud.with(|cloud| cloud.hides = 4);
    let running = world.run(world.driver());
    world.create("home").await;
    until("its creation", async || world.cloud.disks().0 == 1).await;
    world.volumes().delete("home").await.unwrap();
    world
        .until_said("home", "\"disk-1\" is not seen yet: it was created, and may still appear")
        .await;
    assert_eq!(world.ready("home").await.1, "Terminating");
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
