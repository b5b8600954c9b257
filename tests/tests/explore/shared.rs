//! An operator that writes into an object of its users.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::prelude::*;
use windlass::testing::World;

use crate::fleet::{Fleet, create, metadata};

/// Keeps the sizes of all fleets in a ConfigMap that users made.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Lists {
    /// Whether an update names the version that it was made from.
    is_fixed: bool,
}

impl Reconciler for Lists {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        let maps = cx.api::<ConfigMap>();
        let mut list = maps.get("sizes").await?;
        let size = fleet.spec.size.to_string();
        let known = list.data.get_or_insert_default().insert(fleet.name().to_owned(), size.clone());
        if known != Some(size) {
            if !self.is_fixed {
                list.metadata.resource_version = None;
            }
            maps.replace(&list).await?;
        }
        Ok(Action::done())
    }
}

/// A write of a user between the read and the update of the operator is lost.
pub(crate) async fn lists(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    let list = ConfigMap { metadata: metadata("", "sizes"), ..ConfigMap::default() };
    world.client().namespace::<ConfigMap>("default").create(&list).await.unwrap();
    world.operator(move |client| Manager::new(client).controller(Lists { is_fixed }));
    for (number, name) in ["a", "b"].into_iter().enumerate() {
        create(&world, name, 1).await;
        let listed = || -> Option<BTreeMap<String, String>> {
            world.objects::<ConfigMap>().into_iter().find(|map| map.name() == "sizes")?.data
        };
        let is_listed = async || listed().is_some_and(|all| all.len() == number + 1);
        world.eventually("it is listed", is_listed).await;
    }
}
