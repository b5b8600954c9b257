//! Ids that were set by hand, and the other records that name them.

use super::parts::Parted;
use super::*;

pub(super) const ACCEPTED: &str = "windlass.dev/external-import-accepted";

impl World {
    pub(super) async fn until_gone(&self, name: &str) {
        until("it is gone", async || self.volumes().get_opt(name).await.unwrap().is_none()).await;
    }

    pub(super) async fn import(&self, name: &str, id: &str) {
        self.create_with(name, json!({ EXTERNAL_NAME: id })).await;
    }

    /// Returns the number of calls for an object.
    fn calls_of(&self, name: &str) -> usize {
        self.cloud.with(|cloud| cloud.calls.iter().filter(|call| call.1 == name).count())
    }

    pub(super) fn has_disk(&self, id: &str) -> bool {
        self.cloud.with(|cloud| cloud.disks.contains_key(id))
    }
}

#[tokio::test(start_paused = true)]
async fn an_imported_resource_stays_with_its_object_over_a_restart_though_another_one_is_older() {
    let world = World::start().await;
    world.cloud.make("x", 5);
    let mut running = world.run(world.driver());
    world.create("old").await;
    world.until_ready("old").await;
    pass(100).await;
    world.import("importer", "x").await;
    world.until_ready("importer").await;
    world.annotate("old", json!({ EXTERNAL_NAME: "x" })).await;
    world.until_said("old", "\"shop/importer\" already").await;
    drop(running);
    running = world.run(world.driver());
    pass(3600).await;
    let ready = (world.ready("old").await.0, world.ready("importer").await.0);
    assert_eq!(ready, ("False".into(), "True".into()));

    // Its former resource is still its own.
    world.import("thief", "disk-1").await;
    world.until_said("thief", "\"shop/old\" already").await;
    world.volumes().delete("old").await.unwrap();
    world.until_gone("old").await;
    assert!(world.has_disk("x") && world.cloud.calls("delete") == 0);
    until("its event", async || world.has_event("ExternalKept").await).await;
    let notes = world.notes("ExternalKept").await;
    assert!(notes[0].contains("\"x\" is left alone") && notes[0].contains("disk-1"), "{notes:?}");
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn two_objects_that_name_a_resource_which_neither_has_are_both_refused_until_one_goes() {
    let world = World::start().await;
    world.cloud.make("x", 5);
    world.import("a", "x").await;
    pass(5).await;
    world.import("b", "x").await;
    let running = world.run(world.driver());
    for name in ["a", "b"] {
        world.until_said(name, "recorded for neither").await;
        assert_eq!(
            (world.ready(name).await.1.as_str(), world.calls_of(name)),
            ("TerminalError", 0)
        );
    }
    pass(60).await;
    let version = async || world.get("a").await.metadata.resource_version;
    let before = version().await;
    pass(3600).await;
    assert_eq!(version().await, before, "they do not wake each other without end");
    world.volumes().delete("a").await.unwrap();
    world.until_gone("a").await;
    world.until_ready("b").await;
    assert!(world.has_disk("x") && world.calls_of("a") == 0);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_an_object_does_not_have_the_import_of_the_original() {
    let world = World::start().await;
    world.cloud.make("x", 5);
    let mut running = world.run(world.driver());
    world.import("home", "x").await;
    world.until_ready("home").await;
    let home = world.get("home").await;
    assert_eq!(home.annotation(ACCEPTED), Some(&*format!("{} x", home.uid())));
    world.create_with("copy", json!(home.metadata.annotations)).await;
    world.until_said("copy", "\"shop/home\" already").await;
    drop(running);
    running = world.run(world.driver());
    pass(3600).await;
    let ready = (world.ready("copy").await.0, world.ready("home").await.0);
    assert_eq!((ready, world.calls_of("copy")), (("False".into(), "True".into()), 0));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_refused_import_takes_the_resource_over_once_the_other_object_is_gone() {
    let world = World::start().await;
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    world.import("heir", "disk-1").await;
    world.until_said("heir", "first set the policy `no-delete` on the other object").await;
    world.annotate("home", json!({ EXTERNAL_POLICY: "no-delete" })).await;
    world.delete("home").await;
    let began = tokio::time::Instant::now();
    world.until_ready("heir").await;
    assert!(began.elapsed() < 30 * SECOND, "{:?}", began.elapsed());
    assert_eq!(world.cloud.disks(), (1, 1));
    world.delete("heir").await;
    assert_eq!(world.cloud.disks(), (0, 1));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_names_its_creation_again_has_no_import_left() {
    let world = World::start().await;
    world.cloud.make("x", 5);
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    world.annotate("home", json!({ EXTERNAL_NAME: "x" })).await;
    until("x is its own", async || world.annotation("home", ACCEPTED).await.is_some()).await;
    world.annotate("home", json!({ EXTERNAL_NAME: "disk-1" })).await;
    until("x is given up", async || world.annotation("home", ACCEPTED).await.is_none()).await;
    world.import("other", "x").await;
    world.until_ready("other").await;
    world.annotate("home", json!({ EXTERNAL_NAME: "x" })).await;
    world.until_said("home", "\"shop/other\" already").await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_another_object_has_imported_meanwhile_is_not_taken_back() {
    let world = World::start().await;
    world.cloud.make("x", 5);
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    world.annotate("home", json!({ EXTERNAL_NAME: "x" })).await;
    until("x is its own", async || world.annotation("home", ACCEPTED).await.is_some()).await;
    world.import("other", "disk-1").await;
    world.until_ready("other").await;
    world.annotate("home", json!({ EXTERNAL_NAME: "disk-1" })).await;
    world.until_said("home", "\"shop/other\" already").await;
    let before = world.cloud.disks();
    world.delete("home").await;
    assert_eq!(world.cloud.disks(), before, "the other object's resource is left alone");
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_only_observes_gives_its_import_up() {
    let world = World::start().await;
    world.cloud.make("x", 5);
    let running = world.run(world.driver());
    world.import("home", "x").await;
    world.until_ready("home").await;
    world.annotate("home", json!({ EXTERNAL_POLICY: "observe-only" })).await;
    until("the record is gone", async || world.annotation("home", ACCEPTED).await.is_none()).await;
    world.import("other", "x").await;
    world.until_ready("other").await;
    world.annotate("home", json!({ EXTERNAL_POLICY: null })).await;
    world.until_said("home", "\"shop/other\" already").await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_part_is_not_imported_by_another_object_nor_by_another_part() {
    let world = World::start().await;
    let running = world.manager().controller(Parted::of(&world)).start();
    let log = format!("{EXTERNAL_NAME}_log");
    let volume = |name: &str, parts: &[&str], annotations: Value| {
        let metadata = json!({ "name": name, "annotations": annotations });
        let spec = json!({ "size": 5, "parts": parts });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
    };
    world.volumes().create(&volume("home", &["data"], json!({}))).await.unwrap();
    world.until_ready("home").await;
    let data = world.annotation("home", &format!("{EXTERNAL_NAME}_data")).await.unwrap();
    let thief = volume("thief", &["log"], json!({ &log: data }));
    world.volumes().create(&thief).await.unwrap();
    world.until_said("thief", "the part \"data\" of the object \"shop/home\" already").await;
    world.volumes().delete("thief").await.unwrap();
    world.until_gone("thief").await;
    assert_eq!((world.calls_of("thief"), world.cloud.disks()), (0, (2, 2)));

    let own = json!({ "metadata": { "annotations": { &log: data } }, "spec": { "parts": ["data", "log"] } });
    world.patch("home", own).await;
    world.until_said("home", "the part \"data\" of the same object already").await;
    // The part goes, and leaves the resource to the other one.
    world.patch("home", json!({ "spec": { "parts": ["data"] } })).await;
    until("the record is gone", async || world.annotation("home", &log).await.is_none()).await;
    world.until_ready("home").await;
    assert!(world.has_disk(&data));
    world.delete("home").await;
    assert_eq!(world.cloud.disks(), (0, 2));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_imports_another_resource_tells_that_the_one_it_made_is_left_alone() {
    let world = World::start().await;
    world.cloud.make("x", 5);
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    world.annotate("home", json!({ EXTERNAL_NAME: "x" })).await;
    until("its event", async || world.has_event("ExternalKept").await).await;
    pass(1200).await;
    let notes = world.notes("ExternalKept").await;
    let said = "external resource \"disk-1\", which was created before, is left alone";
    assert!(notes.len() == 1 && notes[0].starts_with("1 Normal "), "{notes:?}");
    assert!(notes[0].contains(said) && notes[0].ends_with("names \"x\""), "{notes:?}");
    world.delete("home").await;
    assert!(world.has_disk("disk-1") && !world.has_disk("x"));
    until("its event", async || world.notes("ExternalKept").await.len() == 2).await;
    let notes = world.notes("ExternalKept").await;
    let said = "external resource \"disk-1\", which was created before, is kept";
    assert!(notes.iter().any(|note| note.ends_with(said)), "{notes:?}");
    drop(running);
}

/// Leaves the object "home" as a crash does between the record of its import and the Event.
async fn crash_after_the_import(world: &World) {
    world.cloud.make("x", 5);
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    running.stop();
    running.join().await.unwrap();
    let import = format!("{} x", world.get("home").await.uid());
    world.annotate("home", json!({ EXTERNAL_NAME: "x", ACCEPTED: import })).await;
}

#[tokio::test(start_paused = true)]
async fn a_resource_whose_place_an_import_took_before_a_crash_is_told_by_the_next_process() {
    let world = World::start().await;
    crash_after_the_import(&world).await;
    let running = world.run(world.driver());
    until("its event", async || world.has_event("ExternalKept").await).await;
    pass(1200).await;
    let notes = world.notes("ExternalKept").await;
    assert!(notes.len() == 1 && notes[0].starts_with("1 Normal "), "{notes:?}");
    assert!(notes[0].contains("\"disk-1\"") && notes[0].ends_with("names \"x\""), "{notes:?}");
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_resource_whose_place_an_import_took_before_a_crash_is_told_by_the_clean_up() {
    for (policy, gone) in [(Value::Null, true), (json!("no-delete"), false)] {
        let world = World::start().await;
        crash_after_the_import(&world).await;
        world.annotate("home", json!({ EXTERNAL_POLICY: policy })).await;
        world.volumes().delete("home").await.unwrap();
        let running = world.run(world.driver());
        world.until_gone("home").await;
        assert!(world.has_disk("disk-1") && world.has_disk("x") != gone);
        until("its event", async || world.has_event("ExternalKept").await).await;
        let notes = world.notes("ExternalKept").await;
        let said = "external resource \"disk-1\", which was created before, is kept";
        assert!(notes.len() == 1 && notes[0].ends_with(said), "{notes:?}");
        drop(running);
    }
}

#[tokio::test(start_paused = true)]
async fn an_import_that_another_one_replaces_is_told() {
    let world = World::start().await;
    world.cloud.make("x", 5);
    world.cloud.make("y", 5);
    let running = world.run(world.driver());
    world.import("home", "x").await;
    world.until_ready("home").await;
    world.annotate("home", json!({ EXTERNAL_NAME: "y" })).await;
    until("its event", async || world.has_event("ExternalKept").await).await;
    let notes = world.notes("ExternalKept").await;
    let said = "external resource \"x\", which was imported before, is left alone";
    assert!(notes.len() == 1 && notes[0].contains(said), "{notes:?}");
    drop(running);
}
