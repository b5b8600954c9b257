//! Operators whose status has an age, a counter and a time that they renew all the time.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::api::Patch;
use windlass::prelude::*;
use windlass::testing::World;

use crate::fleet::{self, Fleet, create, ensure, metadata};

/// Creates a member, and renews a report about it.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Checked {
    is_fixed: bool,
    pause: Duration,
}

impl Reconciler for Checked {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        if fleet.phase().is_empty() {
            cx.patch_status(json!({ "phase": "Starting" })).await?;
            return Ok(Action::requeue_after(Duration::from_secs(2)));
        }
        let now = cx.clock().wall();
        let begin = fleet.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        let age = now.as_second() - begin.as_second();
        let checks = fleet.status.as_ref().and_then(|status| status.checks).unwrap_or_default() + 1;
        let report = json!({
            "phase": "Ready", "took": format!("runs for {}m{}s", age / 60, age % 60), "checks": checks,
            "checked": now.to_string(),
        });
        let metadata = metadata(fleet.name(), fleet.name());
        let member = ConfigMap { metadata, ..ConfigMap::default() };
        if self.is_fixed {
            ensure(&cx.api(), &member).await?;
            cx.patch_status(report).await?;
        } else {
            let is_new = fleet.phase() == "Starting";
            cx.patch_status(report).await?;
            if is_new {
                ensure(&cx.api(), &member).await?;
            }
        }
        Ok(Action::requeue_after(self.pause))
    }
}

async fn checked(world: World, is_fixed: bool, pause: Duration) {
    world.install::<Fleet>().await;
    world.operator(move |client| Manager::new(client).controller(Checked { is_fixed, pause }));
    for name in ["a", "b"] {
        create(&world, name, 1).await;
        let is_ready = async || fleet::fleets(&world).get(name).await.unwrap().phase() == "Ready";
        world.eventually("it is ready", is_ready).await;
    }
}

/// The status says that the member exists before the member exists; its report is renewed often.
pub(crate) async fn ages(world: World, is_fixed: bool) {
    checked(world, is_fixed, Duration::from_secs(20)).await;
}

/// The same with a report that is renewed more seldom than a run is quiet.
pub(crate) async fn slow_ages(world: World, is_fixed: bool) {
    checked(world, is_fixed, Duration::from_secs(300)).await;
}

/// Counts in an object's data.
#[derive(Controller)]
#[controller(for = ConfigMap)]
struct Beats;

impl Reconciler for Beats {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
        if map.name() != "heart" {
            return Ok(Action::done());
        }
        let beats = map.data.as_ref().and_then(|data| data.get("beats")?.parse::<u32>().ok());
        let beats = (beats.unwrap_or_default() + 1).to_string();
        let patch = Patch::Merge(json!({ "data": { "beats": beats } }));
        cx.api::<ConfigMap>().patch("heart", patch).await?;
        Ok(Action::requeue_after(Duration::from_secs(20)))
    }
}

/// A counter where a desired state stands.
pub(crate) async fn beats(world: World) {
    world.operator(|client| Manager::new(client).controller(Beats));
    let mut map = ConfigMap::default();
    map.metadata.name = Some("heart".to_owned());
    world.client().namespace::<ConfigMap>("default").create(&map).await.unwrap();
}
