//! Drivers of two controllers of one operator.

use super::*;
use crate::controller::{Context, ControllerBuilder, Finalize, Reconciler, Result};
use crate::manager::PlanOptions;

/// A controller whose reconciler calls a driver.
struct Hand(Arc<Externals<Volumes>>);

impl Reconciler for Hand {
    type Object = Volume;

    async fn reconcile(&self, _: &Volume, cx: &Context<Self>) -> Result {
        self.0.reconcile(cx).await?;
        Ok(self.0.requeue(cx))
    }
}

impl Finalize for Hand {
    async fn cleanup(&self, _: &Volume, cx: &Context<Self>) -> Result<()> {
        self.0.cleanup(cx).await
    }
}

/// Returns an operator with two controllers of volumes, each with a finalizer and a condition of
/// its own.
fn operator(manager: Manager, drivers: [Arc<Externals<Volumes>>; 2]) -> Manager {
    let [one, two] = drivers;
    let builder = |name: &str| ControllerBuilder::<Hand>::new().name(name);
    let manager = manager
        .controller_with(Hand(one), builder("one").finalizer(FINALIZER).outcome_condition("Ready"));
    let two_with = builder("two").finalizer("example.dev/other").outcome_condition("Held");
    manager.controller_with(Hand(two), two_with)
}

impl World {
    /// Returns reasons and messages of the conditions of both controllers.
    async fn both(&self) -> Vec<(String, String)> {
        let status = self.get("home").await.status.unwrap_or_default();
        let found = ["Ready", "Held"].map(|type_| status.conditions.get(type_).cloned());
        found.into_iter().flatten().map(|it| (it.reason, it.message)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn two_controllers_whose_drivers_have_no_name_make_one_resource_and_the_second_says_so() {
    let world = World::start().await;
    let drivers = [Arc::new(world.driver()), Arc::new(world.driver())];
    let running = operator(world.manager(), drivers).start();
    world.create("home").await;
    let is_told = |(reason, message): &(String, String)| {
        reason == "TerminalError"
            && message.contains("have no name")
            && message.contains("\"one\"")
            && message.contains("\"two\"")
    };
    let reasons =
        async |reason: &str| world.both().await.iter().filter(|it| it.0 == reason).count();
    until("one is refused", async || world.both().await.iter().any(is_told)).await;
    until("one is at work", async || reasons("Reconciled").await == 1).await;
    pass(3600).await;
    assert_eq!((world.cloud.disks(), reasons("TerminalError").await), ((1, 1), 1));

    // Both clean-ups go on: the finalizer of the second does not keep the object.
    world.delete("home").await;
    assert_eq!(world.cloud.disks(), (0, 1));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn two_controllers_share_a_driver() {
    let world = World::start().await;
    let driver = Arc::new(world.driver());
    let running = operator(world.manager(), [Arc::clone(&driver), driver]).start();
    world.create("home").await;
    let are_done = async || {
        let both = world.both().await;
        both.len() == 2 && both.iter().all(|(reason, _)| reason == "Reconciled")
    };
    until("both are at work", are_done).await;
    world.delete("home").await;
    assert_eq!(world.cloud.disks(), (0, 1));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_plan_names_the_second_driver_of_two_controllers() {
    let world = World::start().await;
    world.create("home").await;
    let drivers = [Arc::new(world.driver()), Arc::new(world.driver())];
    let manager = operator(Manager::new(world.client.dry_run()), drivers);
    let plan = manager.plan(PlanOptions::default()).await.unwrap();
    let outcomes: Vec<_> = plan.objects.iter().map(|it| format!("{:?}", it.outcome)).collect();
    assert!(outcomes[0].contains("DryRun"), "{outcomes:?}");
    assert!(outcomes[1].contains("\\\"one\\\" and \\\"two\\\" have no name"), "{outcomes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_plan_of_controllers_whose_drivers_would_not_start_is_refused() {
    let world = World::start().await;
    let manager = Manager::new(world.client.dry_run());
    let builder = |name: &str| ControllerBuilder::<Hand>::new().name(name).finalizer(FINALIZER);
    let driving = |name: &str| builder(name).drives_alone(|_| vec![String::new()]);
    let hand = || Hand(Arc::new(world.driver()));
    let manager =
        manager.controller_with(hand(), driving("one")).controller_with(hand(), driving("two"));
    let error = manager.plan(PlanOptions::default()).await.unwrap_err().to_string();
    assert!(error.contains("\"one\" and \"two\""), "{error}");
}
