//! An operator that copies the state that the cache shows: a start on a cache that lags behind
//! takes the copy back.

use std::sync::atomic::{AtomicI32, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::api::Patch;
use windlass::prelude::*;
use windlass::testing::World;

use crate::fleet::{self, Fleet, create, ensure, metadata, resize};

/// Writes the size of a fleet into the fleet's member.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Copies {
    /// Whether the size is read from the server instead of the cache.
    is_fixed: bool,
}

impl Reconciler for Copies {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        let mut size = fleet.spec.size;
        if self.is_fixed {
            let live = cx.api::<Fleet>().get_opt(fleet.name()).await?;
            size = live.map_or(size, |live| live.spec.size);
        }
        let metadata = metadata(fleet.name(), fleet.name());
        ensure(&cx.api(), &ConfigMap { metadata, ..ConfigMap::default() }).await?;
        let patch = Patch::Merge(json!({ "data": { "size": size.to_string() } }));
        cx.api::<ConfigMap>().patch(fleet.name(), patch).await?;
        Ok(Action::done())
    }
}

fn copied(world: &World) -> i32 {
    let maps = fleet::maps(world, "a").into_iter();
    let sizes = maps.filter_map(|map| map.data?.get("size")?.parse().ok());
    sizes.max().unwrap_or_default()
}

/// The copied size of a fleet that only grows becomes smaller for a while.
pub(crate) async fn sizes(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    let largest = AtomicI32::new(0);
    world.always("the copied size never becomes smaller", move |world| {
        let size = copied(world);
        largest.fetch_max(size, Ordering::Relaxed) <= size
    });
    world.operator(move |client| Manager::new(client).controller(Copies { is_fixed }));
    create(&world, "a", 1).await;
    for size in 2..4 {
        world.eventually("the size is copied", async || copied(&world) == size - 1).await;
        resize(&world, "a", size).await;
    }
    world.eventually("the last size is copied", async || copied(&world) == 3).await;
}
