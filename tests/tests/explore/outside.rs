//! Operators whose ends have numbers that only one run has: uids, times, resourceVersions, and ids
//! that a system outside counts on.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde::Serialize;
use serde_json::json;
use windlass::api::Patch;
use windlass::controller::Finalize;
use windlass::prelude::*;
use windlass::testing::{ExternalWorld, World};

use crate::fleet::{self, Fleet, create, ensure, fleets, metadata, remove};

/// Disks outside, by the ids that the system gives them.
#[derive(Clone, Debug, Default, Serialize)]
struct Disks {
    next: u32,
    owners: BTreeMap<String, String>,
}

impl Disks {
    fn find(&self, owner: &str) -> Option<String> {
        self.owners.iter().find(|(_, found)| *found == owner).map(|(id, _)| id.clone())
    }

    fn add(&mut self, owner: &str) -> String {
        self.next += 1;
        let id = format!("disk-{:04}", self.next);
        self.owners.insert(id.clone(), owner.to_owned());
        id
    }
}

/// Keeps a disk for each fleet, and a record of it by the uid of the fleet.
#[derive(Controller)]
#[controller(for = Fleet, finalizer = "explore.windlass.dev/disk")]
struct Volumes {
    is_fixed: bool,
    outside: ExternalWorld<Disks>,
}

fn record(fleet: &Fleet) -> String {
    format!("disk-of-{}", fleet.uid())
}

impl Reconciler for Volumes {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        if fleet.status.as_ref().is_some_and(|status| status.member.is_some()) {
            return Ok(Action::done());
        }
        let owner = fleet.name();
        let known = self.outside.call("find a disk", |disks| disks.find(owner)).await?;
        let id = match known.filter(|_| self.is_fixed) {
            Some(id) => id,
            None => self.outside.call("add a disk", |disks| disks.add(owner)).await?,
        };
        let data = BTreeMap::from([
            ("id".to_owned(), id.clone()),
            ("since".to_owned(), cx.clock().wall().as_second().to_string()),
        ]);
        let metadata = metadata(owner, &record(fleet));
        ensure(&cx.api(), &ConfigMap { metadata, data: Some(data), ..ConfigMap::default() })
            .await?;
        cx.patch_status(json!({ "member": id })).await?;
        Ok(Action::done())
    }
}

impl Finalize for Volumes {
    async fn cleanup(&self, fleet: &Fleet, cx: &Context<Self>) -> Result<()> {
        let owner = fleet.name().to_owned();
        let removed = |disks: &mut Disks| disks.owners.retain(|_, found| *found != owner);
        self.outside.call("remove disks", removed).await?;
        Ok(remove(&cx.api::<ConfigMap>(), &record(fleet)).await?)
    }
}

/// A disk is added twice; the ids, the record's name and its time are those of one run.
pub(crate) async fn disks(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    let outside = world.external("cloud", Disks::default());
    world.operator(move |client| {
        Manager::new(client).controller(Volumes { is_fixed, outside: outside.clone() })
    });
    for name in ["a", "b"] {
        create(&world, name, 1).await;
        let has_disk = async || {
            let fleet = fleets(&world).get(name).await.unwrap();
            fleet.status.is_some_and(|status| status.member.is_some())
        };
        world.eventually("it has a disk", has_disk).await;
    }
    fleets(&world).delete("a").await.unwrap();
    world
        .eventually("a is gone", async || fleets(&world).get_opt("a").await.unwrap().is_none())
        .await;
}

/// Writes the resourceVersion of a Secret into a fleet's member, which makes it restart.
#[derive(Controller)]
#[controller(for = Fleet, can(list watch Secret))]
struct Stamps {
    is_fixed: bool,
}

impl Reconciler for Stamps {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        let Some(secret) = cx.watch::<Secret>("settings").await? else {
            return Ok(Action::done());
        };
        let stamp = secret.get()?.resource_version().to_owned();
        if fleet.phase() == stamp && !self.is_fixed {
            return Ok(Action::done());
        }
        if !self.is_fixed {
            cx.patch_status(json!({ "phase": stamp })).await?;
        }
        let metadata = metadata(fleet.name(), fleet.name());
        ensure(&cx.api(), &ConfigMap { metadata, ..ConfigMap::default() }).await?;
        let patch = Patch::Merge(json!({ "data": { "stamp": stamp } }));
        cx.api::<ConfigMap>().patch(fleet.name(), patch).await?;
        if self.is_fixed {
            cx.patch_status(json!({ "phase": stamp })).await?;
        }
        Ok(Action::done())
    }
}

/// A member does not restart, since the status says that it has.
pub(crate) async fn stamps(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| Manager::new(client).controller(Stamps { is_fixed }));
    let secrets = world.client().namespace::<Secret>("default");
    secrets
        .create(&Secret { metadata: metadata("", "settings"), ..Secret::default() })
        .await
        .unwrap();
    create(&world, "a", 1).await;
    world.eventually("it has a member", async || fleet::maps(&world, "a").len() == 1).await;
    let change = Patch::Merge(json!({ "stringData": { "color": "red" } }));
    let stamp = secrets.patch("settings", change).await.unwrap().resource_version().to_owned();
    let is_seen = async || fleets(&world).get("a").await.unwrap().phase() == stamp;
    world.eventually("the change is seen", is_seen).await;
}
