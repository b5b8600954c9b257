//! Imported resources that their objects do not name any more: each is told once, before the record
//! of it goes.

use super::imports::ACCEPTED;
use super::parts::Parted;
use super::*;

impl World {
    /// Leaves the object "home", without a running operator, with the recorded import of "x", and
    /// with these annotations on top.
    async fn imported_x(&self, annotations: Value) {
        self.cloud.make("x", 5);
        self.cloud.make("y", 5);
        self.import("home", "x").await;
        let running = self.run(self.driver());
        self.until_ready("home").await;
        running.stop();
        running.join().await.unwrap();
        self.annotate("home", annotations).await;
    }

    /// Returns the Events of kept resources, of which there is at least one.
    async fn kept(&self) -> Vec<String> {
        until("its event", async || self.has_event("ExternalKept").await).await;
        pass(1200).await;
        self.notes("ExternalKept").await
    }
}

#[tokio::test(start_paused = true)]
async fn an_import_whose_annotation_is_removed_is_told_before_another_resource_is_created() {
    let world = World::start().await;
    world.imported_x(json!({ EXTERNAL_NAME: null })).await;
    let running = world.run(world.driver());
    let notes = world.kept().await;
    let said = format!(
        "1 Normal external resource \"x\", which was imported before, is left alone: the annotation {EXTERNAL_NAME} names \
         no resource any more"
    );
    assert_eq!(notes, [said]);
    world.until_ready("home").await;
    assert_eq!(world.annotation("home", EXTERNAL_NAME).await.as_deref(), Some("disk-1"));
    world.delete("home").await;
    assert!(world.has_disk("x") && !world.has_disk("disk-1"));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn an_import_that_ends_is_told_once_over_restarts_where_nothing_is_created_or_changed() {
    for (policy, name) in
        [("no-create", Value::Null), ("observe-only", Value::Null), ("observe-only", json!("y"))]
    {
        let world = World::start().await;
        world.imported_x(json!({ EXTERNAL_NAME: name, EXTERNAL_POLICY: policy })).await;
        for _ in 0..2 {
            let running = world.run(world.driver());
            let notes = world.kept().await;
            let said = "1 Normal external resource \"x\", which was imported before, is left alone";
            assert!(notes.len() == 1 && notes[0].starts_with(said), "{policy}, {name}: {notes:?}");
            assert_eq!(world.annotation("home", ACCEPTED).await, None, "{policy}, {name}");
            running.stop();
            running.join().await.unwrap();
        }
        assert!(world.has_disk("x") && world.cloud.calls("create") == 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_annotation_is_removed_returns_to_the_resource_it_made_and_tells_the_import()
 {
    let world = World::start().await;
    world.cloud.make("x", 5);
    let running = world.run(world.driver());
    world.create("home").await;
    world.until_ready("home").await;
    world.annotate("home", json!({ EXTERNAL_NAME: "x" })).await;
    until("x is its own", async || world.annotation("home", ACCEPTED).await.is_some()).await;
    world.annotate("home", json!({ EXTERNAL_NAME: null })).await;
    until("x is given up", async || world.annotation("home", ACCEPTED).await.is_none()).await;
    pass(1200).await;
    let notes = world.notes("ExternalKept").await;
    let said = "external resource \"x\", which was imported before, is left alone";
    let told: Vec<_> = notes.iter().filter(|note| note.contains(said)).collect();
    assert!(told.len() == 1 && told[0].ends_with("names no resource any more"), "{notes:?}");
    world.delete("home").await;
    assert!(world.has_disk("x") && !world.has_disk("disk-1"));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn an_ended_import_of_an_object_that_is_deleted_at_once_is_told_by_the_clean_up() {
    for (policy, name, expected) in [
        (Value::Null, Value::Null, 1),
        (json!("no-delete"), Value::Null, 1),
        (json!("observe-only"), Value::Null, 1),
        (Value::Null, json!("y"), 1),
        // One Event of the resource that the policy keeps, which names the other one, too.
        (json!("no-delete"), json!("y"), 1),
        (json!("no-import"), json!("y"), 1),
    ] {
        let world = World::start().await;
        world.imported_x(json!({ EXTERNAL_NAME: name, EXTERNAL_POLICY: policy })).await;
        world.volumes().delete("home").await.unwrap();
        let running = world.run(world.driver());
        world.until_gone("home").await;
        let notes = world.kept().await;
        let said = "external resource \"x\", which was imported before, is kept";
        assert!(
            notes.len() == expected && notes.iter().any(|note| note.ends_with(said)),
            "{policy}, {name}: {notes:?}"
        );
        assert!(world.has_disk("x"), "{policy}, {name}");
        assert_eq!(world.has_disk("y"), !policy.is_null() || name.is_null(), "{policy}, {name}");
        drop(running);
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_that_left_with_its_annotation_is_told() {
    let world = World::start().await;
    world.cloud.make("x", 5);
    let log = format!("{EXTERNAL_NAME}_log");
    let metadata = json!({ "name": "home", "annotations": { &log: "x" } });
    let home = json!({ "metadata": metadata, "spec": { "size": 5, "parts": ["log"] } });
    let mut running = world.manager().controller(Parted::of(&world)).start();
    world.volumes().create(&serde_json::from_value(home).unwrap()).await.unwrap();
    world.until_ready("home").await;
    running.stop();
    running.join().await.unwrap();
    let left = json!({ "metadata": { "annotations": { &log: null } }, "spec": { "parts": [] } });
    world.patch("home", left).await;
    running = world.manager().controller(Parted::of(&world)).start();
    let notes = world.kept().await;
    let said = "external resource \"x\" (log), which was imported before, is kept";
    assert!(notes.len() == 1 && notes[0].ends_with(said), "{notes:?}");
    assert_eq!(world.annotation("home", &format!("{ACCEPTED}_log")).await, None);
    assert!(world.has_disk("x"));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_plan_names_an_ended_import_and_leaves_the_report_to_the_operator() {
    let world = World::start().await;
    world.imported_x(json!({ EXTERNAL_NAME: null })).await;
    let before = world.get("home").await;
    let driver = Arc::new(world.driver());
    for _ in 0..2 {
        let planned = plans::planned(&world, &driver).await;
        let events = plans::events(&planned);
        let told = events.iter().filter(|event| event.contains("\"x\", which was imported before"));
        assert_eq!(told.count(), 1, "{events:?}");
    }
    assert_eq!(world.get("home").await.metadata, before.metadata);
    let running = plans::run(&world, &driver);
    assert_eq!(world.kept().await.len(), 1);
    drop(running);
}
