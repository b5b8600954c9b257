//! Operators that draw values: a password that a Secret and a database share, and names of members.
//! No two runs agree on these values, and the places of one run must.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use windlass::prelude::*;
use windlass::testing::{ExternalWorld, World};

use crate::fleet::{self, Fleet, create, ensure, fleets, metadata};

type Database = ExternalWorld<BTreeMap<String, String>>;

/// Draws a password for a fleet, gives it to the database and keeps it in a Secret.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Passwords {
    is_fixed: bool,
    database: Database,
}

impl Reconciler for Passwords {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        if fleet.phase() == "Ready" {
            return Ok(Action::done());
        }
        let (secrets, name) = (cx.api::<Secret>(), fleet.name());
        let kept = if self.is_fixed { secrets.get_opt(name).await? } else { None };
        let kept = kept.and_then(|secret| secret.data?.remove("password"));
        let password = kept
            .unwrap_or_else(|| ByteString(format!("{:016x}", cx.rng().next_u64()).into_bytes()));
        let data = Some(BTreeMap::from([("password".to_owned(), password.clone())]));
        let metadata = metadata(name, name);
        ensure(&secrets, &Secret { metadata, data, ..Secret::default() }).await?;
        let password = String::from_utf8_lossy(&password.0).into_owned();
        let set = |users: &mut BTreeMap<_, _>| drop(users.insert(name.to_owned(), password));
        self.database.call(&format!("set the password of {name}"), set).await?;
        cx.patch_status(json!({ "phase": "Ready" })).await?;
        Ok(Action::done())
    }
}

/// The password of the Secret is not that of the database, since another one is drawn when the
/// first attempt did not come to its end.
pub(crate) async fn passwords(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    let database = world.external("database", BTreeMap::new());
    world.operator(move |client| {
        Manager::new(client).controller(Passwords { is_fixed, database: database.clone() })
    });
    create(&world, "a", 1).await;
    let is_ready = async || fleets(&world).get("a").await.unwrap().phase() == "Ready";
    world.eventually("it is ready", is_ready).await;
}

/// Draws the name of a member, which the status records.
#[derive(Controller)]
#[controller(for = Fleet)]
struct Tokens {
    is_fixed: bool,
}

impl Reconciler for Tokens {
    type Object = Fleet;

    async fn reconcile(&self, fleet: &Fleet, cx: &Context<Self>) -> Result {
        let recorded = fleet.status.as_ref().and_then(|status| status.member.clone());
        let is_new = recorded.is_none();
        let drawn = || format!("{}-{:06x}", fleet.name(), cx.rng().below(1 << 24));
        let name = recorded.unwrap_or_else(drawn);
        let metadata = metadata(fleet.name(), &name);
        let member = ConfigMap { metadata, ..ConfigMap::default() };
        if !self.is_fixed {
            ensure(&cx.api(), &member).await?;
        }
        if is_new {
            cx.patch_status(json!({ "member": name })).await?;
        }
        if self.is_fixed {
            ensure(&cx.api(), &member).await?;
        }
        Ok(Action::done())
    }
}

/// A member is left over whose name was drawn and not recorded.
pub(crate) async fn tokens(world: World, is_fixed: bool) {
    world.install::<Fleet>().await;
    world.operator(move |client| Manager::new(client).controller(Tokens { is_fixed }));
    create(&world, "a", 1).await;
    world.eventually("it has a member", async || fleet::maps(&world, "a").len() == 1).await;
}
