//! Restrictions: observe only, no deletion, no update, imports.

use super::*;
use crate::controller::OwnsConditions;
use windlass_core::conditions::ReadyCondition;

impl OwnsConditions<ReadyCondition> for ExternalController<Volumes> {}

/// Changes of resources that were called.
fn changes(world: &World) -> [usize; 3] {
    ["create", "update", "delete"].map(|verb| world.cloud.calls(verb))
}

#[tokio::test(start_paused = true)]
async fn an_object_that_only_observes_changes_nothing() {
    let world = World::start().await;
    world.cloud.make("theirs", 7);
    let running = world.run(world.driver());
    let annotations = json!({ EXTERNAL_POLICY: "observe-only", EXTERNAL_NAME: "theirs" });
    world.create_with("home", annotations).await;
    world.until_ready("home").await;
    let status = world.get("home").await.status.unwrap();
    assert_eq!(status.difference.as_deref(), Some("size 7 instead of 5"));
    let said = "external resource \"theirs\" differs, and the policy permits no update: size 7 instead of 5";
    world.until_said("home", said).await;
    assert_eq!(world.ready("home").await.0, "True", "it is asked to observe only");
    assert_eq!(world.get("home").await.spec.zone, None);
    world.delete("home").await;
    assert_eq!((changes(&world), world.cloud.disks().0), ([0, 0, 0], 1));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_difference_is_one_event_and_leaves_the_condition_with_its_end() {
    let world = World::start().await;
    world.cloud.make("theirs", 7);
    let driver = world.driver().poll_every(Duration::from_secs(60));
    let running = world.run(driver);
    let annotations = json!({ EXTERNAL_POLICY: "no-update", EXTERNAL_NAME: "theirs" });
    world.create_with("home", annotations).await;
    world.until_said("home", "size 7 instead of 5").await;
    let version = world.get("home").await.metadata.resource_version;
    // Longer than the memory of the recorder for equal Events.
    pass(1200).await;
    let events = async || world.notes("ExternalDiffers").await;
    let said = "external resource \"theirs\" differs, and the policy permits no update: size";
    assert_eq!(events().await, [format!("1 Normal {said} 7 instead of 5")]);
    assert_eq!(world.get("home").await.metadata.resource_version, version, "nothing is written");

    world.cloud.with(|cloud| cloud.disks.get_mut("theirs").unwrap().size = 8);
    world.until_said("home", "size 8 instead of 5").await;
    pass(900).await;
    let both = [7, 8].map(|size| format!("1 Normal {said} {size} instead of 5"));
    assert_eq!(events().await, both);

    world.cloud.with(|cloud| cloud.disks.get_mut("theirs").unwrap().size = 5);
    until("the text is gone", async || world.ready("home").await.2.is_empty()).await;
    assert_eq!((world.ready("home").await.0.as_str(), changes(&world)), ("True", [0, 0, 0]));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_difference_is_the_message_of_a_declared_root_that_stays_true() {
    let world = World::start().await;
    world.cloud.make("theirs", 7);
    let controller = ExternalController::new(world.driver().policy(ExternalPolicy::OBSERVE_ONLY));
    let manager = world.manager();
    let running =
        manager.controller_configured(controller, |it| it.conditions::<ReadyCondition>()).start();
    world.create_with("home", json!({ EXTERNAL_NAME: "theirs" })).await;
    world.until_said("home", "permits no update: size 7 instead of 5").await;
    let (status, reason, _) = world.ready("home").await;
    assert_eq!((&*status, &*reason), ("True", "Reconciled"));
    world.patch("home", json!({ "spec": { "size": 7 } })).await;
    until("the text is gone", async || world.ready("home").await.2.is_empty()).await;
    assert_eq!(world.ready("home").await.0, "True");
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_only_observes_waits_for_a_name_and_for_its_resource() {
    let world = World::start().await;
    let running = world.run(world.driver().policy(ExternalPolicy::OBSERVE_ONLY));
    world.create("home").await;
    world.until_said("home", "the policy permits no creation").await;
    world.annotate("home", json!({ EXTERNAL_NAME: "theirs" })).await;
    world.until_said("home", "there is no external resource \"theirs\"").await;
    world.cloud.make("theirs", 5);
    world.until_ready("home").await;
    assert_eq!(changes(&world), [0, 0, 0]);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_not_to_be_deleted_outlives_its_object() {
    let world = World::start().await;
    let running = world.run(world.driver());
    world.create_with("home", json!({ EXTERNAL_POLICY: "no-delete" })).await;
    world.until_ready("home").await;
    world.delete("home").await;
    assert_eq!((changes(&world), world.cloud.disks().0), ([1, 0, 0], 1));
    until("its event", async || world.has_event("ExternalKept").await).await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn the_annotation_of_an_object_permits_nothing_that_its_controller_forbids() {
    let world = World::start().await;
    let running = world.run(world.driver().policy(ExternalPolicy::NO_DELETE));
    world.create_with("home", json!({ EXTERNAL_POLICY: "no-update" })).await;
    world.until_ready("home").await;
    world.patch("home", json!({ "spec": { "size": 9 } })).await;
    until("the difference", async || {
        let status = world.get("home").await.status.unwrap();
        status.difference.as_deref() == Some("size 5 instead of 9")
    })
    .await;
    world.delete("home").await;
    assert_eq!((changes(&world), world.cloud.disks().0), ([1, 0, 0], 1));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_misspelt_policy_stops_the_object() {
    let world = World::start().await;
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    world.annotate("home", json!({ EXTERNAL_POLICY: "no-deletes" })).await;
    world.until_said("home", "unknown policy \"no-deletes\"").await;
    world.volumes().delete("home").await.unwrap();
    pass(3600).await;
    assert_eq!(world.cloud.disks().0, 1, "it is not deleted by mistake");
    world.annotate("home", json!({ EXTERNAL_POLICY: null })).await;
    until("it is gone", async || world.volumes().get_opt("home").await.unwrap().is_none()).await;
    assert_eq!(world.cloud.disks().0, 0);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn an_imported_resource_is_managed_and_not_created_again() {
    let world = World::start().await;
    world.cloud.make("theirs", 7);
    let running = world.run(world.driver());
    world.create_with("home", json!({ EXTERNAL_NAME: "theirs" })).await;
    world.until_ready("home").await;
    assert_eq!(world.cloud.with(|cloud| cloud.disks["theirs"].size), 5);
    // A resource that somebody else made is not made again: the name may be misspelt.
    world.cloud.with(|cloud| cloud.disks.clear());
    world.patch("home", json!({ "metadata": { "labels": { "looked": "again" } } })).await;
    world.until_said("home", "there is no external resource").await;
    pass(3600).await;
    assert_eq!(changes(&world), [0, 1, 0]);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn without_the_finalizer_nothing_is_created() {
    let world = World::start().await;
    let controller = ExternalController::new(world.driver());
    let builder = crate::controller::ControllerBuilder::new().outcome_condition("Ready");
    let running = world.manager().controller_with(controller, builder).start();
    world.create("home").await;
    world.until_said("home", "does not carry the finalizer example.dev/volume").await;
    assert_eq!(changes(&world), [0, 0, 0]);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_names_calls_and_makes_none() {
    let world = World::start().await;
    let dry = || {
        let mut driver = world.driver();
        driver.is_dry_run = true;
        driver
    };
    let running = world.run(dry());
    world.create("home").await;
    world.until_said("home", "would create the external resource of \"shop/home\"").await;
    assert_eq!(world.annotation("home", CREATE_PENDING).await, None);
    drop(running);

    let running = world.run(world.driver());
    world.until_ready("home").await;
    drop(running);
    world.patch("home", json!({ "spec": { "size": 9 } })).await;

    let running = world.run(dry());
    until("the update is named", async || world.counted("update", "dry_run") > 0).await;
    world.volumes().delete("home").await.unwrap();
    world.until_said("home", "would delete external resource \"disk-1\"").await;
    assert_eq!(changes(&world), [1, 0, 0]);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_an_object_does_not_own_its_resource() {
    let world = World::start().await;
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    let annotations = world.get("home").await.metadata.annotations.unwrap();
    world.create_with("copy", json!(annotations)).await;
    world.until_said("copy", "another object has made").await;
    assert_eq!(world.ready("copy").await.1, "TerminalError");
    world.delete("copy").await;
    assert_eq!(world.cloud.disks(), (1, 1), "the resource of the other one is left alone");
    let is_copys = |call: &&(&str, String, tokio::time::Instant)| call.1 == "copy";
    assert_eq!(world.cloud.with(|cloud| cloud.calls.iter().filter(is_copys).count()), 0);
    until("its event", async || world.has_event("ExternalCopied").await).await;
    let notes = world.notes("ExternalCopied").await;
    assert!(notes.len() == 1 && notes[0].contains("\"disk-1\" is left alone"), "{notes:?}");
    world.until_ready("home").await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn without_imports_an_id_that_was_set_by_hand_is_neither_changed_nor_deleted() {
    let world = World::start().await;
    world.cloud.make("theirs", 7);
    let running = world.run(world.driver().policy(ExternalPolicy::NO_IMPORT));
    world.create_with("home", json!({ EXTERNAL_NAME: "theirs" })).await;
    world.until_said("home", "the policy permits no import").await;
    world.create("other").await;
    world.until_ready("other").await;
    world.delete("home").await;
    assert_eq!((changes(&world), world.cloud.disks().0), ([1, 0, 0], 2));
    until("its event", async || world.has_event("ExternalKept").await).await;
    assert!(world.notes("ExternalKept").await[0].contains("permits no import"));

    // The resource that the object had made before would be lost.
    world.annotate("other", json!({ EXTERNAL_NAME: "theirs" })).await;
    world.until_said("other", "the policy permits no import").await;
    world.volumes().delete("other").await.unwrap();
    pass(3600).await;
    assert_eq!((changes(&world), world.cloud.disks().0), ([1, 0, 0], 2));
    world.annotate("other", json!({ EXTERNAL_NAME: "disk-1" })).await;
    until("it is gone", async || world.volumes().get_opt("other").await.unwrap().is_none()).await;
    assert_eq!((changes(&world), world.cloud.disks().0), ([1, 0, 1], 1));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_outlives_its_object_is_told_once_though_the_clean_up_waits_for_others() {
    let world = World::start().await;
    let controller = super::parts::Parted::of(&world);
    let running = world.manager().controller(controller).start();
    let volume = json!({
        "metadata": { "name": "home", "annotations": { format!("{EXTERNAL_POLICY}_data"): "no-delete" } },
        "spec": { "size": 5, "parts": ["data", "log"] },
    });
    world.volumes().create(&serde_json::from_value(volume).unwrap()).await.unwrap();
    world.until_ready("home").await;
    pass(60).await;
    world.cloud.with(|cloud| cloud.lingers = 5);
    world.delete("home").await;
    until("its event", async || world.has_event("ExternalKept").await).await;
    pass(600).await;
    let notes = world.notes("ExternalKept").await;
    assert!(notes.len() == 1 && notes[0].starts_with("1 Normal "), "{notes:?}");
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_another_object_has_recorded_is_not_taken() {
    let world = World::start().await;
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    let metadata = json!({ "name": "thief", "annotations": { EXTERNAL_NAME: "disk-1" } });
    let thief = json!({ "metadata": metadata, "spec": { "size": 9 } });
    world.volumes().create(&serde_json::from_value(thief).unwrap()).await.unwrap();
    world.until_said("thief", "is recorded by the object \"shop/home\" already").await;
    assert_eq!(world.ready("thief").await.1, "TerminalError");
    assert_eq!(world.cloud.with(|cloud| cloud.disks["disk-1"].size), 5);
    // It owns nothing, and its deletion touches nothing.
    world.delete("thief").await;
    let is_thiefs = |call: &&(&str, String, tokio::time::Instant)| call.1 == "thief";
    assert_eq!(world.cloud.with(|cloud| cloud.calls.iter().filter(is_thiefs).count()), 0);
    assert_eq!(world.cloud.disks(), (1, 1));
    until("its event", async || world.has_event("ExternalKept").await).await;
    let notes = world.notes("ExternalKept").await;
    let said =
        "external resource \"disk-1\" is left alone: it is recorded by the object \"shop/home\"";
    assert!(notes.len() == 1 && notes[0].contains(said), "{notes:?}");
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn of_two_objects_that_import_one_resource_the_first_keeps_it() {
    let world = World::start().await;
    world.cloud.make("old", 5);
    let mut running = world.run(world.driver());
    world.create_with("b", json!({ EXTERNAL_NAME: "old" })).await;
    world.until_ready("b").await;
    pass(5).await;
    world.create_with("a", json!({ EXTERNAL_NAME: "old" })).await;
    world.until_said("a", "\"shop/b\" already").await;
    drop(running);
    running = world.run(world.driver());
    pass(3600).await;
    assert_eq!(
        (world.ready("a").await.0, world.ready("b").await.0),
        ("False".into(), "True".into())
    );
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn objects_that_only_observe_share_a_resource() {
    let world = World::start().await;
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    let watching = json!({ EXTERNAL_NAME: "disk-1", EXTERNAL_POLICY: "observe-only" });
    world.create_with("watcher", watching).await;
    world.until_ready("watcher").await;
    drop(running);
}
