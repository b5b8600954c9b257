//! Rolling changes between the children of a graph.

use windlass::rollout::RolloutChildren;

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
struct Fleets;

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
        Ok(RolloutChildren::new(color, shop.spec.shards.clone(), ship))
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
    async fn colors(&self, names: &[&str]) -> Vec<String> {
        let mut colors = Vec::new();
        for name in names {
            let ship = self.api::<ConfigMap>().get(name).await.unwrap();
            colors.push(ship.data.unwrap()["color"].clone());
        }
        colors
    }

    /// Sees a ship in its color.
    async fn see(&self, name: &str) {
        let ship = self.api::<ConfigMap>().get(name).await.unwrap();
        let color = &ship.data.unwrap()["color"];
        let patch = json!({ "metadata": { "annotations": { "seen": color } } });
        self.api::<ConfigMap>().patch(name, Patch::Merge(patch)).await.unwrap();
    }
}

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
