//! Children that come after several others, and children that several others come after.

use super::*;

#[derive(Dependents)]
#[dependents(by = Joins)]
struct JoinParts {
    #[dependent(ready = is_open)]
    left: ConfigMap,
    #[dependent(ready = is_open)]
    right: ConfigMap,
    #[dependent(after(left, right))]
    last: Secret,
    #[dependent(after(right))]
    side: Route,
}

#[derive(Controller)]
#[controller(for = Shop, dependents(JoinParts), finalizer = "graph.example.dev/joins", name = "joins")]
struct Joins;

impl DesiredJoinParts for Joins {
    async fn left(&self, _: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
        Ok(map("left".to_owned()))
    }

    async fn right(&self, _: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
        Ok(map("right".to_owned()))
    }

    async fn last(&self, shop: &Shop, _: &Context<Self>) -> Result<Secret> {
        Ok(secret(shop.name().to_owned()))
    }

    async fn side(&self, shop: &Shop, _: &Context<Self>) -> Result<Route> {
        Ok(Route::new(shop.name(), RouteSpec { host: "shop.example".to_owned() }))
    }
}

impl Reconciler for Joins {
    type Object = Shop;

    async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
        let parts = JoinParts::apply_each(self, shop, cx).await;
        let condition = if parts.all_ready() { met } else { unmet };
        cx.set_condition(condition("Ready", "Parts", parts.summary())).await?;
        parts.action()
    }
}

impl Finalize for Joins {
    async fn cleanup(&self, shop: &Shop, cx: &Context<Self>) -> Result<()> {
        JoinParts::delete(self, shop, cx).await
    }
}

impl World {
    fn spawn_joins(&self) -> RunningOperator {
        self.cluster.spawn(Manager::new(self.cluster.client()).controller(Joins))
    }

    /// Sets the annotation that makes a map ready, or removes it.
    async fn set_open(&self, name: &str, open: bool) {
        let patch = json!({ "metadata": { "annotations": { "open": open.then_some("yes") } } });
        self.api::<ConfigMap>().patch(name, Patch::Merge(patch)).await.unwrap();
    }

    async fn hold<K: Resource>(&self, name: &str, is_held: bool) {
        let finalizers = is_held.then_some(["example.dev/hold"]);
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        self.api::<K>().patch(name, Patch::Merge(patch)).await.unwrap();
    }
}

#[tokio::test]
async fn a_child_waits_for_each_of_those_before_it() {
    let world = World::start().await;
    let running = world.spawn_joins();
    world.create("shop", &[]).await;
    for (open, closed) in [("left", "right"), ("right", "left")] {
        running.settled().await;
        world.set_open(closed, false).await;
        world.set_open(open, true).await;
        running.settled().await;
        assert!(world.owned::<Secret>().await.is_empty(), "{closed} is not ready");
        let told = world.told("shop").await;
        assert!(told.contains(&format!("last: waits for {closed}")), "{told}");
    }
    world.set_open("left", true).await;
    running.settled().await;
    assert_eq!(world.owned::<Secret>().await, ["shop"]);
    assert_eq!(world.told("shop").await, "ready");
    running.stop().await;
}

#[tokio::test]
async fn a_child_is_deleted_when_each_of_those_behind_it_is_gone() {
    // Garbage collection ends deletions in the foreground.
    let world = World::start().await;
    let running = world.spawn_joins();
    world.create("shop", &[]).await;
    running.settled().await;
    for name in ["left", "right"] {
        world.set_open(name, true).await;
    }
    running.settled().await;
    assert_eq!(world.owned::<Route>().await, ["shop"]);
    world.hold::<Route>("shop", true).await;
    world.hold::<Secret>("shop", true).await;
    world.api::<Shop>().delete("shop").await.unwrap();
    world.rest().await;
    assert_eq!(world.owned::<ConfigMap>().await, ["left", "right"], "the secret is held");
    world.hold::<Secret>("shop", false).await;
    world
        .eventually("the left one is gone", async || world.owned::<ConfigMap>().await == ["right"])
        .await;
    world.rest().await;
    assert_eq!(world.owned::<ConfigMap>().await, ["right"], "the route is held");
    world.hold::<Route>("shop", false).await;
    world
        .eventually("the shop is gone", async || {
            world.api::<Shop>().get_opt("shop").await.unwrap().is_none()
        })
        .await;
    assert!(world.owned::<ConfigMap>().await.is_empty());
    running.stop().await;
}

/// A controller with two graphs that have children of one kind, and with a child of its own.
mod two {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(by = Shops)]
    struct Front {
        page: ConfigMap,
    }

    #[derive(Dependents)]
    #[dependents(by = Shops)]
    struct Back {
        #[dependent(when = Shop::is_exposed)]
        store: ConfigMap,
        login: Secret,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(Front, Back), owns(Secret), name = "shops")]
    pub(super) struct Shops;

    impl DesiredFront for Shops {
        async fn page(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(format!("{}-page", shop.name())))
        }
    }

    impl DesiredBack for Shops {
        async fn store(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(format!("{}-store", shop.name())))
        }

        async fn login(&self, shop: &Shop, _: &Context<Self>) -> Result<Secret> {
            Ok(secret(format!("{}-login", shop.name())))
        }
    }

    impl Reconciler for Shops {
        type Object = Shop;

        async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
            cx.apply_owned(map(format!("{}-notes", shop.name()))).await?;
            cx.apply_owned(secret(format!("{}-key", shop.name()))).await?;
            Front::apply(self, shop, cx).await?;
            Back::apply(self, shop, cx).await?.action()
        }
    }
}

#[tokio::test]
async fn two_graphs_of_one_controller_may_have_children_of_one_kind() {
    let world = World::start().await;
    let running = world.cluster.spawn(Manager::new(world.cluster.client()).controller(two::Shops));
    world.create("shop", &[]).await;
    world.patch("shop", json!({ "spec": { "exposed": true } })).await;
    world
        .eventually("all is there", async || {
            world.owned::<ConfigMap>().await == ["shop-notes", "shop-page", "shop-store"]
        })
        .await;
    running.settled().await;
    assert_eq!(world.owned::<Secret>().await, ["shop-key", "shop-login"]);
    world.patch("shop", json!({ "spec": { "exposed": false } })).await;
    world
        .eventually("one is gone", async || {
            world.owned::<ConfigMap>().await == ["shop-notes", "shop-page"]
        })
        .await;
    running.settled().await;
    assert_eq!(world.owned::<Secret>().await, ["shop-key", "shop-login"]);
    running.stop().await;
}
