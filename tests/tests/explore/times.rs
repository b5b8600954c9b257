//! Operators whose status says how long a step took, and how many attempts were made.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::prelude::*;
use windlass::testing::World;

use crate::fleet::{self, Fleet, create, ensure, metadata};

/// Creates a member, and records the time until the member was there.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Timed {
    is_fixed: bool,
}

impl Reconciler for Timed {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        let metadata = metadata(fleet.name(), fleet.name());
        let member = ConfigMap { metadata, ..ConfigMap::default() };
        match fleet.phase() {
            "" => {
                cx.patch_status(json!({ "phase": "Starting" })).await?;
                return Ok(Action::requeue_after(Duration::from_secs(2)));
            }
            "Starting" => {
                let begin = fleet.metadata.creation_timestamp.as_ref();
                let begin = begin.map_or(cx.clock().wall(), |time| time.0);
                let took = cx.clock().wall().as_second() - begin.as_second();
                let status = json!({ "phase": "Ready", "took": format!("ready after {took}s") });
                if self.is_fixed {
                    ensure(&cx.api(), &member).await?;
                    cx.patch_status(status).await?;
                } else {
                    cx.patch_status(status).await?;
                    ensure(&cx.api(), &member).await?;
                }
            }
            _ => {}
        }
        Ok(Action::done())
    }
}

/// The status says that the member exists before the member exists, and how long that took.
pub(crate) async fn durations(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| Manager::new(client).controller(Timed { is_fixed }));
    for name in ["a", "b"] {
        create(&world, name, 1).await;
        let is_ready = async || fleet::fleets(&world).get(name).await.unwrap().phase() == "Ready";
        world.eventually("it is ready", is_ready).await;
    }
}

/// Counts its attempts before each.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Counted {
    is_fixed: bool,
}

impl Reconciler for Counted {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        if fleet.phase() == "Ready" {
            return Ok(Action::done());
        }
        let tries = fleet.status.as_ref().and_then(|status| status.took.as_deref());
        let tries = tries.and_then(|text| text.parse::<u32>().ok()).unwrap_or_default() + 1;
        cx.patch_status(json!({ "took": tries.to_string() })).await?;
        let metadata = metadata(fleet.name(), fleet.name());
        let member = ConfigMap { metadata, ..ConfigMap::default() };
        let made = ensure(&cx.api(), &member).await;
        if self.is_fixed {
            made?;
        }
        cx.patch_status(json!({ "phase": "Ready" })).await?;
        Ok(Action::done())
    }
}

/// A creation that fails is taken for one that succeeds, and the attempts are counted.
pub(crate) async fn attempts(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| Manager::new(client).controller(Counted { is_fixed }));
    create(&world, "a", 1).await;
    let is_ready = async || fleet::fleets(&world).get("a").await.unwrap().phase() == "Ready";
    world.eventually("it is ready", is_ready).await;
}
