//! Two operators that overlook failures: of a creation, and of a clean-up.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass::controller::Finalize;
use windlass::prelude::*;
use windlass::testing::World;

use crate::fleet::{self, Fleet, create, ensure, metadata, remove};

/// Creates a member, and does not look whether that went well.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Hopeful {
    is_fixed: bool,
}

impl Reconciler for Hopeful {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        let metadata = metadata(fleet.name(), fleet.name());
        let created = ensure(&cx.api(), &ConfigMap { metadata, ..ConfigMap::default() }).await;
        if self.is_fixed {
            created?;
        }
        Ok(Action::done())
    }
}

/// A creation that fails once is never tried again.
pub(crate) async fn creation(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| Manager::new(client).controller(Hopeful { is_fixed }));
    create(&world, "a", 1).await;
    world.clock().sleep(std::time::Duration::from_secs(30)).await;
    create(&world, "b", 1).await;
}

/// Keeps a Secret that stands for something outside of the cluster.
#[derive(Controller)]
#[controller(for = Fleet, finalizer = "explore.windlass.dev/outside")]
struct Outside {
    is_fixed: bool,
}

impl Reconciler for Outside {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        let metadata = metadata(fleet.name(), fleet.name());
        ensure(&cx.api(), &Secret { metadata, ..Secret::default() }).await?;
        Ok(Action::done())
    }
}

impl Finalize for Outside {
    async fn cleanup(&self, fleet: &Fleet, cx: &Context<Self>) -> Result<()> {
        let removed = remove(&cx.api::<Secret>(), fleet.name()).await;
        if self.is_fixed {
            removed?;
        }
        Ok(())
    }
}

/// The finalizer is removed although the clean-up has failed.
pub(crate) async fn clean_up(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| Manager::new(client).controller(Outside { is_fixed }));
    create(&world, "a", 1).await;
    let exists = async || world.objects::<Secret>().iter().any(|secret| secret.name() == "a");
    world.eventually("it exists outside", exists).await;
    fleet::fleets(&world).delete("a").await.unwrap();
    world.eventually("the fleet is gone", async || world.objects::<Fleet>().is_empty()).await;
}
