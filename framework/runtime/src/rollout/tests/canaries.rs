//! Canaries, and changes that are taken back.

use k8s_openapi::api::events::v1::Event;

use super::*;

fn pausing(canary: Canary) -> Fleets {
    Fleets { canary: Some(canary), ..Fleets::default() }
}

#[tokio::test(start_paused = true)]
async fn the_others_follow_when_the_canary_was_ready_for_the_pause() {
    let mut world = World::start(pausing(Canary::pause_for(1, 100 * SECOND)), 3).await;
    assert_eq!(world.images().await, "1? 1? 1?", "the first revision has no canary");
    world.make_all_ready().await;
    world.set_image("2").await;
    world.make_ready(2).await;
    tokio::time::sleep(50 * SECOND).await;
    assert_eq!(world.images().await, "1 1 2");
    assert!(matches!(world.status().phase, RolloutPhase::Paused(Some(_))), "{:?}", world.status());
    // The pause goes on over a restart.
    world.restart().await;
    tokio::time::sleep(55 * SECOND).await;
    assert_eq!(world.images().await, "1 2? 2");
    world.roll_out().await;
    assert_eq!(world.images().await, "2 2 2");
}

#[tokio::test(start_paused = true)]
async fn the_pause_begins_anew_when_the_canary_stops_being_ready() {
    let world = World::start(pausing(Canary::pause_for(1, 100 * SECOND)), 2).await;
    world.make_all_ready().await;
    world.set_image("2").await;
    world.make_ready(1).await;
    tokio::time::sleep(90 * SECOND).await;
    let unready = Patch::Merge(json!({ "data": { "ready": "no" } }));
    world.api::<ConfigMap>().patch("a-1", unready).await.unwrap();
    world.rest().await;
    world.make_ready(1).await;
    tokio::time::sleep(90 * SECOND).await;
    assert_eq!(world.images().await, "1 2");
    tokio::time::sleep(15 * SECOND).await;
    assert_eq!(world.images().await, "2? 2");
}

#[tokio::test(start_paused = true)]
async fn a_canary_without_a_pause_waits_for_the_approval_of_its_revision() {
    let world = World::start(pausing(Canary::until_promoted(1)), 3).await;
    world.make_all_ready().await;
    world.set_image("2").await;
    world.make_ready(2).await;
    tokio::time::sleep(3600 * SECOND).await;
    assert_eq!(world.images().await, "1 1 2");
    assert_eq!(world.status().phase, RolloutPhase::Paused(None));
    world.patch(json!({ "metadata": { "annotations": { PROMOTE: "another" } } })).await;
    assert_eq!(world.images().await, "1 1 2");
    let revision = world.status().revision;
    world.patch(json!({ "metadata": { "annotations": { PROMOTE: revision } } })).await;
    assert_eq!(world.images().await, "1 2? 2");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_not_ready_in_time_is_taken_back_to_the_last_good_revision() {
    let mut world =
        World::start(Fleets { deadline: Some(60 * SECOND), ..Fleets::default() }, 3).await;
    world.make_all_ready().await;
    world.set_image("broken").await;
    tokio::time::sleep(50 * SECOND).await;
    assert_eq!(world.images().await, "1 1 broken?");
    tokio::time::sleep(75 * SECOND).await;
    assert_eq!(world.images().await, "1 1 1");
    assert!(matches!(world.status().phase, RolloutPhase::RolledBack(_)), "{:?}", world.status());
    assert_eq!(world.stalled(), "RolledBack");
    let events = world.api::<Event>().list().await.unwrap().items;
    let reasons: Vec<_> = events.iter().filter_map(|event| event.reason.as_deref()).collect();
    assert_eq!(reasons.iter().filter(|reason| **reason == "RolledBack").count(), 1, "{reasons:?}");
    // The same state is not tried again, and another one is.
    world.restart().await;
    tokio::time::sleep(600 * SECOND).await;
    assert_eq!(world.images().await, "1 1 1");
    world.set_image("3").await;
    assert_eq!(world.images().await, "1 1 3?");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_the_server_refuses_is_taken_back_after_the_deadline() {
    let mut world =
        World::start(Fleets { deadline: Some(60 * SECOND), ..Fleets::default() }, 2).await;
    world.make_all_ready().await;
    world.set_image("refused").await;
    assert_eq!(world.images().await, "1 1");
    tokio::time::sleep(50 * SECOND).await;
    assert_eq!(world.status().phase, RolloutPhase::Complete, "of the revision before");
    // A restart does not begin the deadline again; a retry may come late by the backoff.
    world.restart().await;
    tokio::time::sleep(180 * SECOND).await;
    let RolloutPhase::RolledBack(reason) = world.status().phase else {
        panic!("{:?}", world.status())
    };
    assert_eq!(reason, "a child was refused by the API server for 60 s");
    assert_eq!(world.images().await, "1 1");
    world.set_image("3").await;
    assert_eq!(world.images().await, "1 3?");
}

#[tokio::test(start_paused = true)]
async fn without_a_good_revision_a_refused_change_is_tried_until_the_server_accepts_it() {
    let world = World::start(Fleets { deadline: Some(60 * SECOND), ..Fleets::default() }, 2).await;
    world.set_image("refused").await;
    tokio::time::sleep(300 * SECOND).await;
    assert!(!matches!(world.status().phase, RolloutPhase::Stalled(_)), "{:?}", world.status());
    world.set_image("2").await;
    world.roll_out().await;
    assert_eq!(world.status().phase, RolloutPhase::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_taken_back_at_its_deadline() {
    let world =
        World::start(Fleets { deadline: Some(1800 * SECOND), ..Fleets::default() }, 2).await;
    world.make_all_ready().await;
    world.set_image("broken").await;
    tokio::time::sleep(1790 * SECOND).await;
    assert_eq!(world.images().await, "1 broken?");
    assert_eq!(world.status().phase, RolloutPhase::Progressing);
    // Set two seconds before the sleep.
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(world.images().await, "1 1");
    assert!(matches!(world.status().phase, RolloutPhase::RolledBack(_)), "{:?}", world.status());
}

#[tokio::test(start_paused = true)]
async fn a_paused_canary_says_how_it_is_promoted_and_that_a_value_is_wrong() {
    let world = World::start(pausing(Canary::pause_for(1, 100 * SECOND)), 3).await;
    world.make_all_ready().await;
    world.set_image("2").await;
    world.make_ready(2).await;
    let revision = world.status().revision;
    let remedy = format!("annotation windlass.dev/promote={revision}");
    let text = world.status().text();
    assert!(text.contains("the canary is ready") && text.ends_with(&remedy), "{text}");
    world.patch(json!({ "metadata": { "annotations": { PROMOTE: "true" } } })).await;
    let text = world.status().text();
    assert!(text.contains(&remedy) && text.contains("\"true\" does not name"), "{text}");
    world.patch(json!({ "metadata": { "annotations": { PROMOTE: revision } } })).await;
    assert_eq!(world.images().await, "1 2? 2");
}

#[tokio::test(start_paused = true)]
async fn without_a_good_revision_a_change_that_is_not_ready_in_time_stops() {
    let world = World::start(Fleets { deadline: Some(60 * SECOND), ..Fleets::default() }, 2).await;
    tokio::time::sleep(130 * SECOND).await;
    assert!(matches!(world.status().phase, RolloutPhase::Stalled(_)), "{:?}", world.status());
    assert_eq!(world.stalled(), "RolloutStalled");
    assert_eq!(world.images().await, "1? 1?");
    world.make_all_ready().await;
    assert_eq!(world.status().phase, RolloutPhase::Complete, "late, and ready all the same");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_fails_after_all_were_ready_takes_nothing_back() {
    let world = World::start(Fleets { deadline: Some(60 * SECOND), ..Fleets::default() }, 2).await;
    world.make_all_ready().await;
    world.set_image("2").await;
    world.roll_out().await;
    let unready = Patch::Merge(json!({ "data": { "ready": "no" } }));
    world.api::<ConfigMap>().patch("a-1", unready).await.unwrap();
    tokio::time::sleep(600 * SECOND).await;
    assert_eq!(world.images().await, "2 2?");
}

#[tokio::test(start_paused = true)]
async fn a_child_more_does_not_pass_the_canary() {
    let world = World::start(pausing(Canary::until_promoted(1)), 3).await;
    world.make_all_ready().await;
    world.set_image("2").await;
    world.make_ready(2).await;
    world.patch(json!({ "spec": { "count": 4 } })).await;
    tokio::time::sleep(600 * SECOND).await;
    let images = world.images().await;
    assert!(images.starts_with("1 1 2 "), "{images}");
}

#[tokio::test(start_paused = true)]
async fn a_return_to_the_revision_before_is_not_late_because_its_children_are_old() {
    let world = World::start(Fleets { deadline: Some(60 * SECOND), ..Fleets::default() }, 3).await;
    world.make_all_ready().await;
    world.set_image("2").await;
    world.roll_out().await;
    tokio::time::sleep(3600 * SECOND).await;
    world.set_image("3").await;
    let unready = Patch::Merge(json!({ "data": { "ready": "no" } }));
    world.api::<ConfigMap>().patch("a-0", unready).await.unwrap();
    world.rest().await;
    world.set_image("2").await;
    world.rest().await;
    assert!(!matches!(world.status().phase, RolloutPhase::RolledBack(_)), "{:?}", world.status());
    world.roll_out().await;
    assert_eq!(world.images().await, "2 2 2");
}

/// Starts a fleet of two whose second image has been complete for an hour.
async fn complete_at_image_2() -> World {
    let world = World::start(Fleets { deadline: Some(60 * SECOND), ..Fleets::default() }, 2).await;
    world.make_all_ready().await;
    world.set_image("2").await;
    world.roll_out().await;
    tokio::time::sleep(3600 * SECOND).await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_new_child_that_is_late_takes_no_complete_revision_back() {
    let world = complete_at_image_2().await;
    world.patch(json!({ "spec": { "count": 3 } })).await;
    tokio::time::sleep(600 * SECOND).await;
    assert_eq!(world.images().await, "2 2 2?");
    assert_eq!(world.status().phase, RolloutPhase::Progressing);
    // Another state is on probation again.
    world.set_image("3").await;
    assert_eq!(world.images().await, "2 2 3?");
    tokio::time::sleep(600 * SECOND).await;
    assert_eq!(world.images().await, "2 2 2?");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_made_again_and_is_late_takes_no_complete_revision_back() {
    let world = complete_at_image_2().await;
    world.api::<ConfigMap>().delete("a-1").await.unwrap();
    tokio::time::sleep(600 * SECOND).await;
    assert_eq!(world.images().await, "2 2?");
    assert_eq!(world.status().phase, RolloutPhase::Progressing);
}
