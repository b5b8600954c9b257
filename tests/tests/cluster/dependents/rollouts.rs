//! Rolling changes between the children of a graph.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use windlass::rollout::{Canary, PROMOTE, REVISION, RolloutChildren};

use super::*;

#[derive(Dependents)]
#[dependents(by = Fleets)]
struct FleetParts {
    login: Secret,
    #[dependent(rollout, after(login), ready = is_up)]
    ships: Vec<ConfigMap>,
    #[dependent(after(ships), when = Shop::is_exposed)]
    route: Route,
}

/// A ship is up when the test has seen its color.
fn is_up(ship: &ConfigMap) -> bool {
    ship.annotation("seen")
        == ship.data.as_ref().and_then(|data| data.get("color")).map(String::as_str)
}

#[derive(Controller)]
#[controller(for = Shop, dependents(FleetParts), name = "fleets")]
pub(super) struct Fleets;

fn ship(name: &str, color: &String) -> ConfigMap {
    object!(ConfigMap { metadata: { name }, data: { color } })
}

impl DesiredFleetParts for Fleets {
    async fn login(&self, shop: &Shop, _: &Context<Self>) -> Result<Secret> {
        Ok(secret(shop.name().to_owned()))
    }

    async fn ships(
        &self,
        shop: &Shop,
        _: &Context<Self>,
    ) -> Result<RolloutChildren<Self, ConfigMap>> {
        let color = shop.label("color").unwrap_or("blue").to_owned();
        let ships = RolloutChildren::new(color, shop.spec.shards.clone(), ship);
        Ok(match shop.label("rules") {
            Some("promoted") => ships.canary(Canary::until_promoted(1)),
            Some("paused") => ships.canary(Canary::pause_for(1, Duration::from_secs(100))),
            Some("deadline") => ships.deadline(Duration::from_secs(60)),
            Some("two") => ships.max_unavailable(2).partition(1).history(0),
            _ => ships,
        })
    }

    async fn route(&self, shop: &Shop, _: &Context<Self>) -> Result<Route> {
        Ok(Route::new(shop.name(), RouteSpec { host: "shop.example".to_owned() }))
    }
}

impl Reconciler for Fleets {
    type Object = Shop;

    async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
        let parts = FleetParts::apply_each(self, shop, cx).await;
        let condition = if parts.all_ready() { met } else { unmet };
        cx.set_condition(condition("Ready", "Parts", parts.summary())).await?;
        parts.action()
    }
}

impl World {
    /// Colors of the ships, in the order of their names.
    pub(super) async fn colors(&self, names: &[&str]) -> Vec<String> {
        let mut colors = Vec::new();
        for name in names {
            let ship = self.api::<ConfigMap>().get(name).await.unwrap();
            colors.push(ship.data.unwrap()["color"].clone());
        }
        colors
    }

    /// Sees a ship in its color.
    pub(super) async fn see(&self, name: &str) {
        let ship = self.api::<ConfigMap>().get(name).await.unwrap();
        let color = &ship.data.unwrap()["color"];
        let patch = json!({ "metadata": { "annotations": { "seen": color } } });
        self.api::<ConfigMap>().patch(name, Patch::Merge(patch)).await.unwrap();
    }

    fn spawn_fleets(&self) -> RunningOperator {
        self.cluster.spawn(Manager::new(self.cluster.client()).controller(Fleets))
    }

    /// Starts an operator with the ships `a`, `b` and `c` in blue, of which all are up.
    async fn fleet(&self, rules: &str) -> RunningOperator {
        let running = self.spawn_fleets();
        self.create("shop", &["a", "b", "c"]).await;
        self.patch("shop", json!({ "metadata": { "labels": { "rules": rules } } })).await;
        running.settled().await;
        for name in ["a", "b", "c"] {
            self.see(name).await;
        }
        running.settled().await;
        assert_eq!(self.told("shop").await, "ready");
        running
    }

    async fn paint(&self, color: &str) {
        self.patch("shop", json!({ "metadata": { "labels": { "color": color } } })).await;
    }

    async fn expose_shop(&self) {
        self.patch("shop", json!({ "spec": { "exposed": true } })).await;
    }
}

const SHIPS: [&str; 3] = ["a", "b", "c"];

#[tokio::test]
async fn a_rollout_updates_one_child_after_the_other_and_holds_what_comes_after() {
    let world = World::start().await;
    let running = world.cluster.spawn(Manager::new(world.cluster.client()).controller(Fleets));
    world.create("shop", &["a", "b", "c"]).await;
    world.patch("shop", json!({ "spec": { "exposed": true } })).await;
    running.settled().await;
    assert_eq!(world.colors(&["a", "b", "c"]).await, ["blue", "blue", "blue"]);
    assert!(world.owned::<Route>().await.is_empty(), "the ships are not up");
    for name in ["a", "b", "c"] {
        world.see(name).await;
    }
    running.settled().await;
    assert_eq!(world.owned::<Route>().await, ["shop"]);
    assert_eq!(world.told("shop").await, "ready");

    world.patch("shop", json!({ "metadata": { "labels": { "color": "red" } } })).await;
    running.settled().await;
    assert_eq!(world.colors(&["a", "b", "c"]).await, ["blue", "blue", "red"]);
    assert!(world.told("shop").await.contains("1 of 3 updated"), "{}", world.told("shop").await);
    world.see("c").await;
    running.settled().await;
    assert_eq!(world.colors(&["a", "b", "c"]).await, ["blue", "red", "red"]);
    running.stop().await;

    // After a restart it goes on, and a child that left the names goes.
    let running = world.cluster.spawn(Manager::new(world.cluster.client()).controller(Fleets));
    world.patch("shop", json!({ "spec": { "shards": ["a", "b"] } })).await;
    running.settled().await;
    assert_eq!(world.owned::<ConfigMap>().await, ["a", "b"]);
    world.see("b").await;
    running.settled().await;
    assert_eq!(world.colors(&["a", "b"]).await, ["red", "red"]);
    world.see("a").await;
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready");
    running.stop().await;
}

#[tokio::test]
async fn a_canary_holds_the_other_children_and_what_comes_after_until_it_is_approved() {
    let world = World::start().await;
    let running = world.fleet("promoted").await;
    world.paint("red").await;
    running.settled().await;
    world.see("c").await;
    world.expose_shop().await;
    world.rest().await;
    assert_eq!(world.colors(&SHIPS).await, ["blue", "blue", "red"]);
    assert!(world.owned::<Route>().await.is_empty(), "the ships are not all of one color");
    let canary = world.api::<ConfigMap>().get("c").await.unwrap();
    let revision = canary.label(REVISION).unwrap();
    let told = world.told("shop").await;
    let text = format!(
        "ships: 1 of 3 updated, 3 ready; the canary is ready, and the others wait; to go on: \
         annotation {PROMOTE}={revision}"
    );
    assert!(told.starts_with(&text), "{told}");

    let approval = json!({ "metadata": { "annotations": { PROMOTE: revision } } });
    world.patch("shop", approval).await;
    for name in ["b", "a"] {
        running.settled().await;
        world.see(name).await;
    }
    running.settled().await;
    assert_eq!(world.colors(&SHIPS).await, ["red", "red", "red"]);
    assert_eq!(world.told("shop").await, "ready");
    assert_eq!(world.owned::<Route>().await, ["shop"]);
    running.stop().await;
}

#[tokio::test]
async fn the_pause_of_a_canary_ends_in_time_without_a_change_of_anything() {
    let world = World::embedded().await;
    world.cluster.install::<Route>().await;
    let running = world.fleet("paused").await;
    world.paint("red").await;
    running.settled().await;
    world.see("c").await;
    world.pass(97).await;
    assert_eq!(world.colors(&SHIPS).await, ["blue", "blue", "red"]);
    world.pass(6).await;
    assert_eq!(world.colors(&SHIPS).await, ["blue", "red", "red"]);
    running.stop_anyway().await;
}

#[tokio::test]
async fn a_change_that_is_taken_back_fails_its_field_and_holds_what_comes_after() {
    let world = World::embedded().await;
    world.cluster.install::<Route>().await;
    let running = world.fleet("deadline").await;
    world.paint("broken").await;
    running.settled().await;
    world.expose_shop().await;
    assert_eq!(world.colors(&SHIPS).await, ["blue", "blue", "broken"]);
    world.pass(130).await;
    assert_eq!(world.colors(&SHIPS).await, ["blue", "blue", "blue"]);
    let told = world.told("shop").await;
    assert!(told.starts_with("ships: ") && told.ends_with("route: waits for ships"), "{told}");
    assert!(told.contains("\"c\""), "{told}");
    assert!(
        world.owned::<Route>().await.is_empty(),
        "all ships are up, in a color that is not wanted"
    );
    running.stop_anyway().await;

    // After a restart the same state is not tried again, and another one is.
    let running = world.spawn_fleets();
    world.pass(600).await;
    assert_eq!(world.colors(&SHIPS).await, ["blue", "blue", "blue"]);
    world.paint("red").await;
    for name in ["c", "b", "a"] {
        world.pass(2).await;
        world.see(name).await;
    }
    running.settled().await;
    assert_eq!(world.colors(&SHIPS).await, ["red", "red", "red"]);
    assert_eq!(world.told("shop").await, "ready");
    assert_eq!(world.owned::<Route>().await, ["shop"]);
    running.stop().await;
}

#[tokio::test]
async fn a_field_has_the_limits_the_partition_and_the_history_that_its_description_sets() {
    let world = World::start().await;
    let running = world.fleet("two").await;
    world.paint("red").await;
    running.settled().await;
    assert_eq!(
        world.colors(&SHIPS).await,
        ["blue", "red", "red"],
        "two at once, and not the first"
    );
    for name in ["b", "c"] {
        world.see(name).await;
    }
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready", "the first is left by its partition");
    world.paint("green").await;
    running.settled().await;
    for name in ["b", "c"] {
        world.see(name).await;
    }
    running.settled().await;
    let revisions = world.owned::<k8s_openapi::api::apps::v1::ControllerRevision>().await;
    assert_eq!(revisions.len(), 2, "no child is red: {revisions:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_child_of_a_rollout_that_is_being_deleted_is_not_ready() {
    let world = World::start().await;
    let running = world.fleet("none").await;
    let hold = json!({ "metadata": { "finalizers": ["example.dev/hold"] } });
    world.api::<ConfigMap>().patch("b", Patch::Merge(hold)).await.unwrap();
    world.api::<ConfigMap>().delete("b").await.unwrap();
    world.expose_shop().await;
    running.settled().await;
    let told = world.told("shop").await;
    assert_eq!(told, "ships: 3 of 3 updated, 2 ready; route: waits for ships");
    assert!(world.owned::<Route>().await.is_empty());
    let free = json!({ "metadata": { "finalizers": null } });
    world.api::<ConfigMap>().patch("b", Patch::Merge(free)).await.unwrap();
    running.settled().await;
    world.see("b").await;
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready");
    running.stop().await;
}

/// A rollout without a rule of its own for readiness.
mod volumes {
    use super::*;

    #[derive(Dependents)]
    #[dependents(by = Stores)]
    struct StoreParts {
        #[dependent(rollout)]
        volumes: Vec<PersistentVolumeClaim>,
        #[dependent(after(volumes))]
        sign: Secret,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(StoreParts), name = "stores")]
    pub(super) struct Stores;

    fn volume(name: &str, class: &String) -> PersistentVolumeClaim {
        object!(PersistentVolumeClaim {
            metadata: { name, labels: { class } },
            spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
        })
    }

    impl DesiredStoreParts for Stores {
        async fn volumes(
            &self,
            shop: &Shop,
            _: &Context<Self>,
        ) -> Result<RolloutChildren<Self, PersistentVolumeClaim>> {
            let class = shop.label("class").unwrap_or("slow").to_owned();
            Ok(RolloutChildren::new(class, shop.spec.shards.clone(), volume))
        }

        async fn sign(&self, shop: &Shop, _: &Context<Self>) -> Result<Secret> {
            Ok(secret(shop.name().to_owned()))
        }
    }

    impl Reconciler for Stores {
        type Object = Shop;

        async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
            let parts = StoreParts::apply_each(self, shop, cx).await;
            let condition = if parts.all_ready() { met } else { unmet };
            cx.set_condition(condition("Ready", "Parts", parts.summary())).await?;
            parts.action()
        }
    }
}

#[tokio::test]
async fn a_rollout_without_a_rule_goes_by_that_of_the_kind() {
    let world = World::start().await;
    let running =
        world.cluster.spawn(Manager::new(world.cluster.client()).controller(volumes::Stores));
    world.create("shop", &["a", "b"]).await;
    running.settled().await;
    let told = world.told("shop").await;
    assert_eq!(told, "volumes: 2 of 2 updated, 0 ready; sign: waits for volumes");
    let claims = world.api::<PersistentVolumeClaim>();
    for name in ["a", "b"] {
        assert!(world.owned::<Secret>().await.is_empty(), "{name} is not bound");
        let bound = json!({ "status": { "phase": "Bound" } });
        claims.patch(name, Patch::Merge(bound)).status().await.unwrap();
        running.settled().await;
    }
    assert_eq!(world.owned::<Secret>().await, ["shop"]);
    assert_eq!(world.told("shop").await, "ready");
    running.stop().await;
}

/// A rollout of an object that another field describes.
mod doubled {
    use super::*;

    #[derive(Dependents)]
    #[dependents(by = Doubled)]
    struct DoubledParts {
        first: ConfigMap,
        #[dependent(rollout, after(first))]
        ships: Vec<ConfigMap>,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(DoubledParts), name = "doubled")]
    pub(super) struct Doubled;

    impl DesiredDoubledParts for Doubled {
        async fn first(&self, _: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map("b".to_owned()))
        }

        async fn ships(
            &self,
            shop: &Shop,
            _: &Context<Self>,
        ) -> Result<RolloutChildren<Self, ConfigMap>> {
            Ok(RolloutChildren::new("red".to_owned(), shop.spec.shards.clone(), ship))
        }
    }

    impl Reconciler for Doubled {
        type Object = Shop;

        async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
            let parts = DoubledParts::apply_each(self, shop, cx).await;
            cx.set_condition(unmet("Ready", "Parts", parts.summary())).await?;
            parts.action()
        }
    }
}

#[tokio::test]
async fn a_child_of_another_field_is_none_of_a_rollout() {
    let world = World::start().await;
    let manager = Manager::new(world.cluster.client()).controller(doubled::Doubled);
    let running = world.cluster.spawn(manager);
    world.create("shop", &["a", "b"]).await;
    let text = "its object \"b\" is described by the field `first` already";
    world.eventually("it is told", async || world.told("shop").await.contains(text)).await;
    world.rest().await;
    assert_eq!(world.owned::<ConfigMap>().await, ["b"], "none of the rollout is made");
    assert_eq!(world.colors(&["b"]).await, ["blue"]);
    running.stop_anyway().await;
}
