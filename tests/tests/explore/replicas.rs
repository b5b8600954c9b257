//! Two operators for faults that need several processes or objects: the first goes on to write when
//! another replica leads, the second takes an object of the same name for the known object.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::prelude::*;
use windlass::resource::Resource;
use windlass::testing::World;

use crate::fleet::{self, Fleet, create, ensure, metadata};

/// Time from the first look at a fleet to the creation of the member: a lease has passed on by
/// then.
const SLOWNESS: Duration = Duration::from_secs(25);

/// Creates a member some time after the first look at a fleet.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Slow {
    is_fixed: bool,
    /// The client that the operator was built with, which no lease guards.
    client: Client,
    begun: Mutex<BTreeSet<String>>,
}

fn member(fleet: &Fleet) -> ConfigMap {
    ConfigMap { metadata: metadata(fleet.name(), fleet.name()), ..ConfigMap::default() }
}

impl Reconciler for Slow {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        if fleet.phase() != "Seen" {
            cx.patch_status(json!({ "phase": "Seen" })).await?;
        }
        if cx.api::<ConfigMap>().get_opt(fleet.name()).await?.is_some() {
            return Ok(Action::done());
        }
        let is_first = self.begun.lock().unwrap().insert(fleet.name().to_owned());
        if self.is_fixed {
            if is_first {
                return Ok(Action::requeue_after(SLOWNESS));
            }
            ensure(&cx.api(), &member(fleet)).await?;
        } else if is_first {
            let (client, member) = (self.client.clone(), member(fleet));
            tokio::spawn(async move {
                client.environment().clock.sleep(SLOWNESS).await;
                while ensure(&client.namespace("default"), &member).await.is_err() {
                    client.environment().clock.sleep(Duration::from_secs(1)).await;
                }
            });
        } else {
            return Ok(Action::requeue_after(SLOWNESS));
        }
        Ok(Action::requeue_after(SLOWNESS))
    }
}

/// A task that a reconcile has started writes when the lease has passed on.
pub(crate) async fn tasks(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| {
        let slow = Slow { is_fixed, client: client.clone(), begun: Mutex::default() };
        Manager::new(client).controller(slow)
    });
    create(&world, "a", 1).await;
    world.eventually("it has a member", async || fleet::maps(&world, "a").len() == 1).await;
}

/// Remembers by name which fleets have their member.
#[derive(Controller)]
#[controller(for = Fleet, owns(ConfigMap))]
struct Remembering {
    is_fixed: bool,
    done: Mutex<BTreeSet<String>>,
}

impl Reconciler for Remembering {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        let is_done = self.done.lock().unwrap().contains(fleet.name());
        let live = cx.api::<Fleet>().get_opt(fleet.name()).await?;
        if live.is_none() || (is_done && !self.is_fixed) {
            return Ok(Action::done());
        }
        let mut member = member(fleet);
        let owner = Fleet::static_info().and_then(|info| fleet.controller_reference(&info));
        member.metadata.owner_references = owner.map(|owner| vec![owner]);
        ensure(&cx.api(), &member).await?;
        cx.patch_status(json!({ "phase": "Created" })).await?;
        self.done.lock().unwrap().insert(fleet.name().to_owned());
        Ok(Action::done())
    }
}

/// A fleet that is deleted and created again has no member, since the name is remembered.
pub(crate) async fn names(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| {
        Manager::new(client).controller(Remembering { is_fixed, done: Mutex::default() })
    });
    create(&world, "a", 1).await;
    world.eventually("it has a member", async || fleet::maps(&world, "a").len() == 1).await;
}
