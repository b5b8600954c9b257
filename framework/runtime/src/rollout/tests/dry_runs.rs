//! Plans and shadows of rollouts.

use super::*;
use crate::manager::PlanOptions;

impl World {
    /// Returns the versions of all children and revisions.
    async fn versions(&self) -> Vec<String> {
        let maps = self.api::<ConfigMap>().list().await.unwrap().items;
        let revisions = self.api::<ControllerRevision>().list().await.unwrap().items;
        let maps = maps.iter().map(|map| map.resource_version().to_owned());
        maps.chain(revisions.iter().map(|it| it.resource_version().to_owned())).collect()
    }

    /// Plans the operator with these fleets; returns the changes in lines.
    async fn planned(&self, fleets: Fleets) -> Vec<String> {
        let manager = Manager::new(self.client.dry_run()).controller(fleets);
        let plan = manager.plan(PlanOptions::default()).await.unwrap();
        plan.objects.iter().flat_map(|it| it.changes.iter().map(ToString::to_string)).collect()
    }

    fn differing(&self) -> f64 {
        let metrics = self.client.environment().metrics.encode();
        let line = metrics.lines().find(|it| it.starts_with("windlass_shadow_differences{"));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(-1.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_a_change_shows_its_first_step_and_stores_nothing() {
    let canary = Some(Canary::pause_for(1, 100 * SECOND));
    let mut world = World::start(Fleets { canary, ..Fleets::default() }, 3).await;
    world.make_all_ready().await;
    world.stop().await;
    assert_eq!(world.planned(world.fleets.clone()).await, [""; 0], "it is at rest");
    world.set_image("2").await;
    let before = world.versions().await;
    let planned = world.planned(world.fleets.clone()).await;
    assert_eq!(world.versions().await, before);
    assert_eq!(planned.len(), 2, "{planned:?}");
    assert!(planned[0].starts_with("create controllerrevisions.apps shop/a-maps-"), "{planned:?}");
    assert_eq!(planned[1], "update configmaps shop/a-2");
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_a_refused_change_names_the_refusal() {
    let mut world = World::start(Fleets::default(), 2).await;
    world.make_all_ready().await;
    world.stop().await;
    world.set_image("refused").await;
    let manager = Manager::new(world.client.dry_run()).controller(world.fleets.clone());
    let plan = manager.plan(PlanOptions::default()).await.unwrap();
    assert!(plan.has_failures(), "{plan:#?}");
    let failed = format!("{:?}", plan.objects[0].outcome);
    assert!(failed.contains("a-1") && failed.contains("422"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_shadow_of_a_rollout_finds_no_difference_on_the_way_and_one_that_lasts_for_other_rules() {
    let canary = Some(Canary::pause_for(1, 600 * SECOND));
    let deadline = Some(3600 * SECOND);
    for (fleets, expected) in [
        (Fleets { canary, deadline, ..Fleets::default() }, 0.0),
        (Fleets { canary: None, deadline, ..Fleets::default() }, 1.0),
    ] {
        let world = World::start(Fleets { canary, deadline, ..Fleets::default() }, 3).await;
        world.make_all_ready().await;
        let shadow = Manager::new(world.client.dry_run()).controller(fleets);
        let shadow = shadow.without_leader_election().without_health().without_metrics();
        let shadow = shadow.without_signals().shadow(10 * SECOND).start();
        world.rest().await;
        world.set_image("2").await;
        world.make_ready(2).await;
        tokio::time::sleep(120 * SECOND).await;
        assert_eq!(world.images().await, "1 1 2");
        assert_eq!(world.differing(), expected);
        shadow.stop();
        shadow.join().await.unwrap();
    }
}
