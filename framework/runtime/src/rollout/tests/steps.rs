//! Steps of a change: order, limits, partition, changes while another one is under way.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_change_reaches_one_child_after_the_other_from_the_last_to_the_first() {
    let world = World::start(Fleets::default(), 3).await;
    assert_eq!(world.images().await, "1? 1? 1?");
    world.make_all_ready().await;
    assert_eq!(world.status().phase, RolloutPhase::Complete);
    world.set_image("2").await;
    assert_eq!(world.images().await, "1 1 2?");
    assert_eq!(
        world.status().action().unwrap(),
        Action::wait_for("RollingOut", "1 of 3 updated, 2 ready")
    );
    tokio::time::sleep(600 * SECOND).await;
    assert_eq!(world.images().await, "1 1 2?", "the limit holds");
    world.make_ready(2).await;
    assert_eq!(world.images().await, "1 2? 2");
    world.make_ready(1).await;
    world.make_ready(0).await;
    assert_eq!(world.images().await, "2 2 2");
    assert!(world.status().is_complete());
}

#[tokio::test(start_paused = true)]
async fn as_many_children_are_unready_as_the_limit_says() {
    let world = World::start(Fleets { max_unavailable: 2, ..Fleets::default() }, 4).await;
    world.make_all_ready().await;
    world.set_image("2").await;
    assert_eq!(world.images().await, "1 1 2? 2?");
    world.make_ready(3).await;
    assert_eq!(world.images().await, "1 2? 2? 2");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_was_broken_is_replaced_by_the_next_one_at_once() {
    let world = World::start(Fleets::default(), 3).await;
    world.make_all_ready().await;
    world.set_image("broken").await;
    world.set_image("3").await;
    assert_eq!(world.images().await, "1 1 3?");
    world.roll_out().await;
    assert_eq!(world.images().await, "3 3 3");
}

#[tokio::test(start_paused = true)]
async fn children_below_the_partition_keep_their_revision_also_when_they_are_made_again() {
    let world = World::start(Fleets::default(), 3).await;
    world.make_all_ready().await;
    world.patch(json!({ "spec": { "image": "2", "partition": 2 } })).await;
    world.roll_out().await;
    assert_eq!(world.images().await, "1 1 2");
    assert_eq!(world.status().phase, RolloutPhase::Partitioned);
    world.api::<ConfigMap>().delete("a-0").await.unwrap();
    world.rest().await;
    assert_eq!(world.images().await, "1? 1 2");
    world.patch(json!({ "spec": { "partition": 0 } })).await;
    world.roll_out().await;
    assert_eq!(world.images().await, "2 2 2");
}

#[tokio::test(start_paused = true)]
async fn a_change_goes_on_after_a_restart_and_nothing_is_written_at_rest() {
    let mut world = World::start(Fleets::default(), 3).await;
    world.make_all_ready().await;
    world.set_image("2").await;
    world.restart().await;
    assert_eq!(world.images().await, "1 1 2?");
    world.roll_out().await;
    assert_eq!(world.images().await, "2 2 2");
    world.writes();
    world.patch(json!({ "metadata": { "labels": { "touched": "yes" } } })).await;
    assert_eq!(world.writes(), ["patch fleets"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_outside_of_the_state_reaches_all_children_at_once_in_their_revisions() {
    let world = World::start(Fleets::default(), 3).await;
    world.make_all_ready().await;
    world.set_image("2").await;
    world.patch(json!({ "spec": { "motto": "m" } })).await;
    assert_eq!(world.images().await, "1 1 2?");
    let maps = world.api::<ConfigMap>().list().await.unwrap().items;
    let mottos = maps.iter().filter_map(|map| map.data.as_ref()?.get("motto").cloned());
    assert_eq!(mottos.filter(|motto| motto == "m").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn children_that_are_not_wanted_any_more_are_deleted_and_others_are_left_alone() {
    let world = World::start(Fleets::default(), 3).await;
    let mut other = world.api::<ConfigMap>().get("a-0").await.unwrap();
    other.metadata = ObjectMeta {
        name: Some("other".to_owned()),
        owner_references: other.metadata.owner_references,
        ..ObjectMeta::default()
    };
    world.api().create(&other).await.unwrap();
    world.patch(json!({ "spec": { "count": 1 } })).await;
    let maps = world.api::<ConfigMap>().list().await.unwrap().items;
    let names: Vec<_> =
        maps.iter().map(ResourceExt::name).filter(|it| !it.starts_with("kube")).collect();
    assert_eq!(names, ["a-0", "other"]);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_being_deleted_is_not_ready() {
    let world = World::start(Fleets::default(), 3).await;
    world.make_all_ready().await;
    assert_eq!(world.status().phase, RolloutPhase::Complete);
    let hold = json!({ "metadata": { "finalizers": ["example.dev/hold"] } });
    world.api::<ConfigMap>().patch("a-0", Patch::Merge(hold)).await.unwrap();
    world.api::<ConfigMap>().delete("a-0").await.unwrap();
    world.rest().await;
    assert_eq!((world.status().phase, world.status().ready), (RolloutPhase::Progressing, 2));
    world.set_image("2").await;
    assert_eq!(world.images().await, "2? 1 1", "no other one is taken away beside it");
}
