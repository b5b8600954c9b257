//! Order and readiness.

use super::*;

#[tokio::test]
async fn a_child_is_applied_when_those_before_it_are_ready() {
    let world = World::start().await;
    let running = world.spawn();
    world.create("shop", &["a", "b"]).await;
    running.settled().await;
    assert_eq!(world.owned::<ConfigMap>().await, ["shop-app", "shop-config"]);
    assert!(world.owned::<Secret>().await.is_empty(), "the app is not open");
    assert_eq!(world.told("shop").await, "shards: waits for app; app: not ready");

    world.open("shop").await;
    running.settled().await;
    assert_eq!(world.owned::<Secret>().await, ["shop-a", "shop-b"]);
    assert_eq!(world.told("shop").await, "ready");
    running.stop().await;
}

#[tokio::test]
async fn children_carry_the_label_of_their_place_and_their_owner() {
    let world = World::start().await;
    let running = world.spawn();
    let shop = world.create("shop", &[]).await;
    running.settled().await;
    let app = world.api::<ConfigMap>().get("shop-app").await.unwrap();
    assert_eq!(app.label(windlass::dependents::LABEL), Some("shops.Parts.app"));
    assert_eq!(app.metadata.owner_references.unwrap()[0].uid, shop.uid());
    running.stop().await;
}

#[tokio::test]
async fn nothing_is_sent_when_nothing_differs() {
    let world = World::embedded().await;
    // An absent kind is looked for every 5 s.
    world.cluster.install::<Route>().await;
    let running = world.spawn();
    world.create("shop", &["a", "b", "c"]).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    world.cluster.server().clear_requests();
    for round in 0..3 {
        let label = json!({ "metadata": { "labels": { "round": round.to_string() } } });
        world.patch("shop", label).await;
        // Not until settled: that would list.
        world.pass(5).await;
    }
    let requests = world.cluster.server().requests();
    let sent: Vec<String> =
        requests.iter().map(|it| format!("{} {}", it.verb, it.resource)).collect();
    assert_eq!(sent, ["patch shops", "patch shops", "patch shops"], "those of the test alone");
    running.stop().await;
}

#[tokio::test]
async fn an_optional_kind_may_be_missing_and_come_later() {
    let world = World::embedded().await;
    let running = world.spawn();
    world.create("shop", &["a"]).await;
    world.patch("shop", json!({ "spec": { "exposed": true } })).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready", "the route is optional");
    assert_eq!(world.owned::<Secret>().await, ["shop-a"]);
    world.cluster.server().clear_requests();
    world.pass(60).await;
    let writes = world.cluster.server().requests();
    assert!(writes.iter().all(|it| ["get", "watch", "list"].contains(&&*it.verb)), "{writes:?}");

    world.cluster.install::<Route>().await;
    world.pass(30).await;
    running.settled().await;
    assert_eq!(world.owned::<Route>().await, ["shop"]);
    running.stop().await;
}

/// A graph that needs a kind.
mod needed {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(for = Shop, by = Shops)]
    struct Parts {
        config: ConfigMap,
        route: Route,
        #[dependent(after(route))]
        login: Secret,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(Parts), outcome_condition = "Ready", name = "shops")]
    pub(super) struct Shops;

    impl DesiredParts for Shops {
        async fn config(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(shop.name().to_owned()))
        }

        async fn route(&self, shop: &Shop, _: &Context<Self>) -> Result<Route> {
            Ok(Route::new(shop.name(), RouteSpec { host: "shop.example".to_owned() }))
        }

        async fn login(&self, shop: &Shop, _: &Context<Self>) -> Result<Secret> {
            Ok(secret(shop.name().to_owned()))
        }
    }
}

#[tokio::test]
async fn a_kind_that_is_needed_and_missing_is_told_and_stops_no_other_child() {
    let world = World::embedded().await;
    let manager = Manager::new(world.cluster.client()).controller(needed::Shops);
    let running = world.cluster.spawn(manager);
    world.create("shop", &[]).await;
    let says = async || world.told("shop").await;
    world.eventually("it is told", async || says().await.contains("does not serve the kind")).await;
    assert_eq!(world.owned::<ConfigMap>().await, ["shop"]);
    assert!(world.owned::<Secret>().await.is_empty());

    world.cluster.install::<Route>().await;
    world.eventually("the rest follows", async || !world.owned::<Secret>().await.is_empty()).await;
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready");
    running.stop().await;
}
