//! Two operators that shrink: the first forgets volumes of members that are gone, the second
//! forgets pending deletions.

use std::collections::BTreeMap;
use std::sync::Mutex;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass::prelude::*;
use windlass::testing::World;

use crate::fleet::{self, Fleet, create, ensure, label, metadata, remove, resize};

/// Each member is a ConfigMap, and has a Secret as volume. Surplus members are found by their
/// ConfigMaps, so these must go last.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Volumes {
    is_fixed: bool,
}

impl Reconciler for Volumes {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        let (members, volumes) = (cx.api::<ConfigMap>(), cx.api::<Secret>());
        for number in 0..fleet.spec.size {
            let metadata = metadata(fleet.name(), &format!("{}-{number}", fleet.name()));
            let volume = Secret { metadata: metadata.clone(), ..Secret::default() };
            ensure(&volumes, &volume).await?;
            ensure(&members, &ConfigMap { metadata, ..ConfigMap::default() }).await?;
        }
        for member in members.list().await?.items {
            if label(&member).is_some() && number(member.name()) >= fleet.spec.size {
                let name = member.name();
                if self.is_fixed {
                    remove(&volumes, name).await?;
                    remove(&members, name).await?;
                } else {
                    remove(&members, name).await?;
                    remove(&volumes, name).await?;
                }
            }
        }
        Ok(Action::done())
    }
}

fn number(name: &str) -> i32 {
    name.rsplit('-').next().and_then(|text| text.parse().ok()).unwrap_or(-1)
}

/// A cluster whose member is gone keeps the volume for ever.
pub(crate) async fn volumes(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| Manager::new(client).controller(Volumes { is_fixed }));
    create(&world, "db", 3).await;
    shrink(&world, "db").await;
}

async fn shrink(world: &World, name: &str) {
    world.eventually("three members", async || fleet::maps(world, name).len() == 3).await;
    resize(world, name, 1).await;
    world.eventually("one member", async || fleet::maps(world, name).len() == 1).await;
}

/// Deletes the members that the change of the size makes surplus; the size before is remembered in
/// memory only.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Transitions {
    is_fixed: bool,
    sizes: Mutex<BTreeMap<String, i32>>,
}

impl Reconciler for Transitions {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        let members = cx.api::<ConfigMap>();
        let size = fleet.spec.size;
        for number in 0..size {
            let metadata = metadata(fleet.name(), &format!("{}-{number}", fleet.name()));
            ensure(&members, &ConfigMap { metadata, ..ConfigMap::default() }).await?;
        }
        let before =
            self.sizes.lock().unwrap().insert(fleet.name().to_owned(), size).unwrap_or(size);
        let last = if self.is_fixed { 9 } else { before };
        for number in size..last {
            remove(&members, &format!("{}-{number}", fleet.name())).await?;
        }
        Ok(Action::done())
    }
}

/// A scale-down is acted upon as a transition: no state remembers the transition after a crash.
pub(crate) async fn transitions(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| {
        Manager::new(client).controller(Transitions { is_fixed, sizes: Mutex::default() })
    });
    create(&world, "web", 3).await;
    world.eventually("three members", async || fleet::maps(&world, "web").len() == 3).await;
    resize(&world, "web", 1).await;
    // Not a wait for the effect: the exploration judges whether the effect comes.
    world.clock().sleep(std::time::Duration::from_secs(60)).await;
}
