//! Revisions: reuse, history, damaged ones.

use super::*;

async fn revisions(world: &World) -> Vec<(i64, Value)> {
    let all = world.api::<ControllerRevision>().list().await.unwrap().items;
    let mut all: Vec<_> =
        all.into_iter().map(|it| (it.revision, it.data.unwrap().0["state"].clone())).collect();
    all.sort_by_key(|(number, _)| *number);
    all
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_wanted_again_is_its_old_revision_with_a_new_number() {
    let world = World::start(Fleets::default(), 2).await;
    world.make_all_ready().await;
    let first = world.status().revision;
    world.set_image("2").await;
    world.roll_out().await;
    world.set_image("1").await;
    world.roll_out().await;
    assert_eq!(world.status().revision, first);
    assert_eq!(revisions(&world).await, [(2, json!("2")), (3, json!("1"))]);
    assert_eq!(world.images().await, "1 1");
}

#[tokio::test(start_paused = true)]
async fn as_many_unused_revisions_are_kept_as_the_history_says_and_the_good_one() {
    let world = World::start(Fleets { history: Some(1), ..Fleets::default() }, 1).await;
    for image in ["2", "3", "4", "5"] {
        world.roll_out().await;
        world.set_image(image).await;
    }
    let states: Vec<_> = revisions(&world).await.into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["3", "4", "5"], "one unused, the good one, and the newest");
}

#[tokio::test(start_paused = true)]
async fn children_of_a_revision_that_does_not_decode_are_left_as_they_are_until_they_are_updated() {
    let mut world = World::start(Fleets::default(), 2).await;
    world.make_all_ready().await;
    let revision = world.status().revision;
    world.stop().await;
    world.api::<ControllerRevision>().delete(&revision).await.unwrap();
    let mut damaged = ControllerRevision { revision: 1, ..ControllerRevision::default() };
    let maps = world.api::<ConfigMap>().get("a-0").await.unwrap();
    damaged.metadata = ObjectMeta {
        name: Some(revision.clone()),
        labels: Some([(ROLLOUT.to_owned(), "maps".to_owned())].into()),
        owner_references: maps.metadata.owner_references,
        ..ObjectMeta::default()
    };
    damaged.data = serde_json::from_value(json!({ "state": { "of": "another type" } })).unwrap();
    world.api().create(&damaged).await.unwrap();
    world.set_image("2").await;
    world.restart().await;
    assert_eq!(world.images().await, "1 2?");
    world.roll_out().await;
    assert_eq!(world.images().await, "2 2");
}

#[tokio::test(start_paused = true)]
async fn objects_whose_names_begin_alike_have_revisions_of_their_own() {
    let world = World::start(Fleets::default(), 1).await;
    let beginning = "customer-production-eu-central-1-postgres-main-";
    for end in ["a", "b"] {
        let spec = FleetSpec { image: "1".to_owned(), count: 1, ..FleetSpec::default() };
        world.api().create(&Fleet::new(format!("{beginning}{end}"), spec)).await.unwrap();
    }
    world.rest().await;
    assert_eq!(revisions(&world).await.len(), 3);
    assert_eq!(world.images().await, "1? 1? 1?");
}
