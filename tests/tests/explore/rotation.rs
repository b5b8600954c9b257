//! An operator that replaces members that a cache shows as expired.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::api::Patch;
use windlass::prelude::*;
use windlass::resource::Resource;
use windlass::testing::World;

use crate::fleet::{self, Fleet, create, ensure, metadata, remove};

/// Replaces a member that is marked as expired. The mark is read from the cache, and the deletion
/// is by name: a cache that lags behind shows the member that has been replaced already.
#[derive(Controller)]
#[controller(for = Fleet, owns(ConfigMap))]
struct Rotation {
    is_fixed: bool,
}

fn is_expired(map: &ConfigMap) -> bool {
    map.metadata.annotations.as_ref().is_some_and(|all| all.contains_key("expired"))
}

impl Reconciler for Rotation {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        let members = cx.api::<ConfigMap>();
        let name = fleet.name();
        let cached = cx
            .store_of::<ConfigMap>()
            .get(&windlass::resource::ObjectKey::new(Some("default"), name));
        let cached = cached.is_some_and(|found| found.get().is_ok_and(|map| is_expired(&map)));
        let is_due = match self.is_fixed {
            true => members.get_opt(name).await?.is_some_and(|map| is_expired(&map)),
            false => cached,
        };
        if is_due {
            remove(&members, name).await?;
        }
        let mut metadata = metadata(name, name);
        metadata.owner_references = Fleet::static_info()
            .and_then(|info| fleet.controller_reference(&info))
            .map(|owner| vec![owner]);
        ensure(&members, &ConfigMap { metadata, ..ConfigMap::default() }).await?;
        cx.patch_status(json!({ "phase": format!("size {}", fleet.spec.size) })).await?;
        Ok(Action::done())
    }
}

/// A live member is deleted, because the cache still shows the expired member of the same name.
pub(crate) async fn stale_deletion(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| Manager::new(client).controller(Rotation { is_fixed }));
    create(&world, "a", 1).await;
    world.eventually("it has a member", async || fleet::maps(&world, "a").len() == 1).await;
    let maps = world.client().namespace::<ConfigMap>("default");
    let expired = Patch::Merge(json!({ "metadata": { "annotations": { "expired": "yes" } } }));
    maps.patch("a", expired).await.unwrap();
    let is_fresh = async || fleet::maps(&world, "a").iter().any(|map| !is_expired(map));
    world.eventually("the member is replaced", is_fresh).await;
    fleet::resize(&world, "a", 2).await;
    let is_resized = async || fleet::fleets(&world).get("a").await.unwrap().phase() == "size 2";
    world.eventually("the new size is seen", is_resized).await;
}
