//! Children that the API server refuses in their new revision.

use super::*;
use windlass_apiserver::faults::{Fault, FaultAction as Do, FaultHandle};

impl World {
    /// Lets the API server refuse the writes to a child until the handle is removed.
    fn refuse(&self, child: &str) -> FaultHandle {
        let fault = Fault::new(Do::Answer(422)).resource("configmaps").on("patch").name(child);
        self.server.faults().add(fault.always())
    }

    /// Returns the only revision that was rolled back.
    async fn rolled_back(&self) -> Option<ControllerRevision> {
        let revisions = self.api::<ControllerRevision>().list().await.unwrap().items;
        revisions.into_iter().find(|revision| revision.annotation(ROLLED_BACK).is_some())
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_change_is_tried_again_when_a_person_removes_the_mark_of_its_rollback() {
    let world = World::start(Fleets { deadline: Some(60 * SECOND), ..Fleets::default() }, 2).await;
    world.make_all_ready().await;
    let refused = world.refuse("a-1");
    world.set_image("2").await;
    tokio::time::sleep(240 * SECOND).await;
    let revision = world.rolled_back().await.expect("it was taken back");
    assert_eq!(world.images().await, "1 1");
    refused.remove();
    let tried = json!({ "metadata": { "annotations": { ROLLED_BACK: null } } });
    let revisions = world.api::<ControllerRevision>();
    revisions.patch(revision.name(), Patch::Merge(tried)).await.unwrap();
    world.rest().await;
    assert_eq!(world.images().await, "1 2?");
    world.roll_out().await;
    assert_eq!(world.images().await, "2 2");
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_is_refused_holds_the_others_and_is_taken_back() {
    let canary = Some(Canary::pause_for(1, 30 * SECOND));
    let fleets = Fleets { deadline: Some(300 * SECOND), canary, ..Fleets::default() };
    let mut world = World::start(fleets, 3).await;
    world.make_all_ready().await;
    let _refused = world.refuse("a-2");
    world.set_image("2").await;
    tokio::time::sleep(200 * SECOND).await;
    assert_eq!(world.images().await, "1 1 1");
    world.restart().await;
    tokio::time::sleep(400 * SECOND).await;
    assert_eq!(world.images().await, "1 1 1");
    assert!(world.rolled_back().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_child_below_the_partition_that_is_refused_is_shown_and_takes_nothing_back() {
    let world = World::start(Fleets { deadline: Some(60 * SECOND), ..Fleets::default() }, 3).await;
    world.make_all_ready().await;
    world.patch(json!({ "spec": { "image": "2", "partition": 1 } })).await;
    world.roll_out().await;
    assert_eq!(world.images().await, "1 2 2");
    let refused = world.refuse("a-0");
    world.patch(json!({ "spec": { "motto": "anew" } })).await;
    tokio::time::sleep(600 * SECOND).await;
    assert!(world.rolled_back().await.is_none(), "it has another revision");
    assert!(world.client.environment().metrics.counted(&names::RECONCILE_ERRORS, &["fleet"]) > 0);
    refused.remove();
    tokio::time::sleep(1200 * SECOND).await;
    assert_eq!(world.status().phase, RolloutPhase::Partitioned);
    let mottos: Vec<_> = world
        .children()
        .await
        .iter()
        .map(|map| map.data.as_ref().unwrap()["motto"].clone())
        .collect();
    assert_eq!(mottos, ["anew"; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_part_of_the_children_that_is_refused_is_taken_back_with_the_others() {
    let fleets = Fleets { deadline: Some(60 * SECOND), max_unavailable: 3, ..Fleets::default() };
    let world = World::start(fleets, 3).await;
    world.make_all_ready().await;
    let _refused = world.refuse("a-1");
    world.set_image("2").await;
    assert_eq!(world.images().await, "2? 1 2?");
    world.make_ready(0).await;
    world.make_ready(2).await;
    assert_eq!(world.images().await, "2 1 2");
    tokio::time::sleep(240 * SECOND).await;
    assert!(world.rolled_back().await.is_some());
    assert_eq!(world.images().await, "1? 1 1?");
}
