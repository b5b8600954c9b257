//! Plans of objects that stand for external resources: calls and Events of a run that are named
//! only.

use super::*;
use crate::controller::{
    Context, Controller, ControllerBuilder, Finalize, PlannedObject, Reconciler, Result,
};
use crate::manager::PlanOptions;

/// An operator whose driver other operators have, too.
struct Shared(Arc<Externals<Volumes>>);

impl Reconciler for Shared {
    type Object = Volume;

    async fn reconcile(&self, _: &Volume, cx: &Context<Self>) -> Result {
        self.0.reconcile(cx).await?;
        Ok(self.0.requeue(cx))
    }
}

impl Finalize for Shared {
    async fn cleanup(&self, _: &Volume, cx: &Context<Self>) -> Result<()> {
        self.0.cleanup(cx).await
    }
}

impl Controller for Shared {
    fn builder() -> ControllerBuilder<Self> {
        ControllerBuilder::new().finalizer(FINALIZER).outcome_condition("Ready")
    }
}

/// Runs an operator with that driver.
pub(super) fn run(world: &World, driver: &Arc<Externals<Volumes>>) -> Running {
    world.manager().controller(Shared(Arc::clone(driver))).start()
}

/// Plans the only object with that driver.
pub(super) async fn planned(world: &World, driver: &Arc<Externals<Volumes>>) -> PlannedObject {
    let manager = Manager::new(world.client.dry_run()).controller(Shared(Arc::clone(driver)));
    let mut plan = manager.plan(PlanOptions::default()).await.unwrap();
    assert_eq!(plan.objects.len(), 1, "{plan:#?}");
    plan.objects.remove(0)
}

pub(super) fn events(planned: &PlannedObject) -> Vec<String> {
    planned.events.iter().map(ToString::to_string).collect()
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_difference_is_an_event_of_each_plan_until_a_run_has_reported_it() {
    let world = World::start().await;
    world.cloud.make("theirs", 7);
    let annotations = json!({ EXTERNAL_POLICY: "no-update", EXTERNAL_NAME: "theirs" });
    world.create_with("home", annotations).await;
    let driver = Arc::new(world.driver());
    let said = "Normal ExternalDiffers: external resource \"theirs\" differs, and the policy permits no update: \
                size 7 instead of 5";
    for _ in 0..2 {
        let planned = planned(&world, &driver).await;
        assert_eq!((events(&planned), planned.external_calls.len()), (vec![said.to_owned()], 0));
    }
    let running = run(&world, &driver);
    until("its event", async || world.has_event("ExternalDiffers").await).await;
    drop(running);
    assert_eq!(events(&planned(&world, &driver).await), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_repair_is_planned_with_its_event_and_a_loss_with_that_of_the_loss() {
    let world = World::start().await;
    world.create("home").await;
    let driver = Arc::new(world.driver());
    let running = run(&world, &driver);
    world.until_ready("home").await;
    drop(running);

    world.cloud.with(|cloud| cloud.disks.get_mut("disk-1").unwrap().size = 9);
    let repair = planned(&world, &driver).await;
    let said = "external resource \"disk-1\" is updated: size 9 instead of 5";
    assert_eq!(events(&repair), [format!("Normal ExternalUpdated: {said}")]);
    assert_eq!(repair.external_calls, ["update external resource \"disk-1\": size 9 instead of 5"]);

    world.cloud.with(|cloud| cloud.disks.clear());
    // Longer than the time for which a provider may not show what it has created.
    pass(60).await;
    let loss = planned(&world, &driver).await;
    let said = "external resource \"disk-1\" is gone, and is created anew";
    assert_eq!(events(&loss), [format!("Warning ExternalGone: {said}")]);
    assert_eq!(loss.external_calls, ["create the external resource of \"shop/home\""]);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_a_clean_up_keeps_is_an_event_of_the_plan_and_of_the_run() {
    let world = World::start().await;
    world.create_with("home", json!({ EXTERNAL_POLICY: "no-delete" })).await;
    let driver = Arc::new(world.driver());
    let running = run(&world, &driver);
    world.until_ready("home").await;
    drop(running);
    world.volumes().delete("home").await.unwrap();
    for _ in 0..2 {
        let planned = planned(&world, &driver).await;
        let said = "Normal ExternalKept: external resource \"disk-1\" is kept, as the policy says";
        assert_eq!((events(&planned), planned.external_calls.len()), (vec![said.to_owned()], 0));
    }
    let running = run(&world, &driver);
    until("its event", async || world.has_event("ExternalKept").await).await;
    drop(running);
}
