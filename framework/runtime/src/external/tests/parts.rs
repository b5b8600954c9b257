//! Several resources of one object.

use super::*;
use crate::controller::{
    Action, Context, Controller, ControllerBuilder, Finalize, Reconciler, Result,
};

/// A volume for each part of the spec, and another one of a second driver.
pub(super) struct Parted {
    volumes: Externals<Volumes>,
    copies: Externals<Volumes>,
}

impl Parted {
    pub(super) fn of(world: &World) -> Self {
        Self { volumes: world.driver(), copies: world.driver().named("copies") }
    }
}

impl Reconciler for Parted {
    type Object = Volume;

    async fn reconcile(&self, volume: &Volume, cx: &Context<Self>) -> Result {
        for part in &volume.spec.parts {
            self.volumes.part(part).reconcile(cx).await?;
        }
        let recorded = self.volumes.parts(volume);
        for part in recorded.iter().filter(|part| !volume.spec.parts.contains(part)) {
            self.volumes.part(part).cleanup(cx).await?;
        }
        self.copies.reconcile(cx).await?;
        Ok(Action::done())
    }
}

impl Finalize for Parted {
    async fn cleanup(&self, _: &Volume, cx: &Context<Self>) -> Result<()> {
        self.volumes.cleanup(cx).await?;
        self.copies.cleanup(cx).await
    }
}

impl Controller for Parted {
    fn builder() -> ControllerBuilder<Self> {
        ControllerBuilder::new().finalizer(FINALIZER).outcome_condition("Ready")
    }
}

fn owners(world: &World) -> Vec<String> {
    let owners: Vec<_> =
        world.cloud.with(|cloud| cloud.disks.values().map(|disk| disk.owner.clone()).collect());
    let mut owners = owners;
    owners.sort();
    owners
}

#[tokio::test(start_paused = true)]
async fn parts_and_drivers_of_one_object_come_and_go_on_their_own() {
    let world = World::start().await;
    let running = world.manager().controller(Parted::of(&world)).start();
    let spec = json!({ "size": 5, "parts": ["data", "log"] });
    let volume = json!({ "metadata": { "name": "home" }, "spec": spec });
    world.volumes().create(&serde_json::from_value(volume).unwrap()).await.unwrap();
    world.until_ready("home").await;
    assert_eq!(owners(&world), ["home/", "home/data", "home/log"]);
    let key = format!("{EXTERNAL_NAME}_log");
    assert!(world.annotation("home", &key).await.is_some());

    world.patch("home", json!({ "spec": { "parts": ["data"] } })).await;
    until("the part is gone", async || world.cloud.disks().0 == 2).await;
    until("its record is gone", async || {
        let home = world.get("home").await;
        !home.metadata.annotations.unwrap_or_default().keys().any(|key| key.ends_with("_log"))
    })
    .await;
    world.patch("home", json!({ "spec": { "parts": ["data", "log"] } })).await;
    until("it is made again", async || world.cloud.disks() == (3, 4)).await;

    // A part that cannot be deleted yet keeps the object, and does not keep the others.
    world.cloud.fault("delete", Fault::Fail);
    world.delete("home").await;
    assert_eq!(world.cloud.disks().0, 0);
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn two_drivers_of_one_name_are_refused_and_the_second_changes_nothing() {
    let world = World::start().await;
    let controller = Parted { volumes: world.driver(), copies: world.driver() };
    let running = world.manager().controller(controller).start();
    let volume =
        json!({ "metadata": { "name": "home" }, "spec": { "size": 5, "parts": ["data"] } });
    world.volumes().create(&serde_json::from_value(volume).unwrap()).await.unwrap();
    world.until_said("home", "have no name").await;
    assert_eq!(world.ready("home").await.1, "TerminalError");
    assert_eq!(owners(&world), ["home/data"]);
    drop(running);
}
