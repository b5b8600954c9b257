//! Two operators that write in the wrong order: a member twice, and a status too early.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::prelude::*;
use windlass::testing::World;

use crate::fleet::{self, Fleet, create, ensure, label, metadata};

/// Creates a member with a generated name, which the status records.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Generated {
    is_fixed: bool,
}

impl Reconciler for Generated {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        if fleet.status.as_ref().is_some_and(|status| status.member.is_some()) {
            return Ok(Action::done());
        }
        let members = cx.api::<ConfigMap>();
        let mut known = None;
        if self.is_fixed {
            let all = members.list().await?.items;
            known = all.into_iter().find(|map| label(map).as_deref() == Some(fleet.name()));
        }
        let member = match known {
            Some(member) => member,
            None => {
                let mut metadata = metadata(fleet.name(), "");
                metadata.name = None;
                metadata.generate_name = Some(format!("{}-", fleet.name()));
                members.create(&ConfigMap { metadata, ..ConfigMap::default() }).await?
            }
        };
        cx.patch_status(json!({ "member": member.name() })).await?;
        Ok(Action::done())
    }
}

/// A member is created twice, because the generated name was not recorded before the crash.
pub(crate) async fn generated(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| Manager::new(client).controller(Generated { is_fixed }));
    for name in ["a", "b"] {
        create(&world, name, 1).await;
        let recorded = async || {
            let fleet = fleet::fleets(&world).get(name).await.unwrap();
            fleet.status.is_some_and(|status| status.member.is_some())
        };
        world.eventually("the member is recorded", recorded).await;
    }
}

/// Takes a step for each phase of the status.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Phases {
    is_fixed: bool,
}

impl Reconciler for Phases {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        if fleet.phase() == "Created" {
            return Ok(Action::done());
        }
        let metadata = metadata(fleet.name(), fleet.name());
        let member = ConfigMap { metadata, ..ConfigMap::default() };
        if self.is_fixed {
            ensure(&cx.api(), &member).await?;
            cx.patch_status(json!({ "phase": "Created" })).await?;
        } else {
            cx.patch_status(json!({ "phase": "Created" })).await?;
            ensure(&cx.api(), &member).await?;
        }
        Ok(Action::done())
    }
}

/// The status says that the member exists before the member exists.
pub(crate) async fn phases(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| Manager::new(client).controller(Phases { is_fixed }));
    create(&world, "a", 1).await;
    let is_created = async || fleet::fleets(&world).get("a").await.unwrap().phase() == "Created";
    world.eventually("it is created", is_created).await;
}
