//! Graphs whose kinds a controller refuses.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass::controller::ControllerBuilder;

use super::*;

/// Wires a graph to a controller that is written by hand.
pub(super) fn add<G: Dependents>(_: G::Controller) {
    let _ = G::add_to(ControllerBuilder::new());
}

/// A graph that retires the kind of its field, under another name.
mod renamed {
    use super::super::*;

    type Settings = ConfigMap;

    #[derive(Dependents)]
    #[dependents(by = Shops, retired(Settings))]
    pub(super) struct Parts {
        config: ConfigMap,
    }

    pub(super) struct Shops;

    impl DesiredParts for Shops {
        async fn config(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(format!("{}-config", shop.name())))
        }
    }

    impl Reconciler for Shops {
        type Object = Shop;

        async fn reconcile(&self, _: &Shop, _: &Context<Self>) -> Result {
            Ok(Action::done())
        }
    }
}

#[test]
#[should_panic(expected = "`retired` names configmaps, which is the kind of its field `config`")]
fn a_retired_kind_that_a_field_has_is_refused_under_any_name() {
    add::<renamed::Parts>(renamed::Shops);
}

/// A graph with a child of the reconciled kind.
mod own {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(by = Shops)]
    pub(super) struct Parts {
        branch: Shop,
    }

    pub(super) struct Shops;

    impl DesiredParts for Shops {
        async fn branch(&self, shop: &Shop, _: &Context<Self>) -> Result<Shop> {
            Ok(Shop::new(format!("{}-branch", shop.name()), ShopSpec::default()))
        }
    }

    impl Reconciler for Shops {
        type Object = Shop;

        async fn reconcile(&self, _: &Shop, _: &Context<Self>) -> Result {
            Ok(Action::done())
        }
    }
}

#[test]
#[should_panic(expected = "its field `branch` is of the reconciled kind shops.graph.example.dev")]
fn a_child_of_the_reconciled_kind_is_refused() {
    add::<own::Parts>(own::Shops);
}

/// A controller that is written by hand, with a graph and a call beside it.
mod by_hand {
    use super::super::*;
    use windlass::controller::{Controller, ControllerBuilder};
    use windlass::dependents::OwnsDependents;
    use windlass::rbac::Owns;

    #[derive(Dependents)]
    #[dependents(by = Shops)]
    struct HandParts {
        config: ConfigMap,
        #[dependent(after(config))]
        login: Secret,
    }

    pub(super) struct Shops;

    impl Controller for Shops {
        fn builder() -> ControllerBuilder<Self> {
            HandParts::add_to(ControllerBuilder::new().name("by-hand").owns::<Route>())
        }
    }

    impl OwnsDependents<HandParts> for Shops {}

    // For the call beside the graph.
    impl Owns<Route> for Shops {}

    impl DesiredHandParts for Shops {
        async fn config(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(shop.name().to_owned()))
        }

        async fn login(&self, shop: &Shop, _: &Context<Self>) -> Result<Secret> {
            Ok(secret(shop.name().to_owned()))
        }
    }

    impl Reconciler for Shops {
        type Object = Shop;

        async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
            let spec = RouteSpec { host: "shop.example".to_owned() };
            cx.apply_owned(Route::new(shop.name(), spec)).await?;
            HandParts::apply(self, shop, cx).await?.action()
        }
    }
}

#[tokio::test]
async fn a_controller_that_is_written_by_hand_has_a_graph_and_calls_beside_it() {
    let world = World::start().await;
    world.create("shop", &[]).await;
    let manager = Manager::new(world.cluster.client());
    let running = world.cluster.spawn(manager.controller(by_hand::Shops));
    running.settled().await;
    assert_eq!(world.owned::<ConfigMap>().await, ["shop"]);
    assert_eq!(world.owned::<Route>().await, ["shop"]);
    assert_eq!(world.owned::<Secret>().await, ["shop"]);
    running.stop().await;
}

/// A graph with a child that it cannot do without, of a kind that may go.
mod needed {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(for = Shop, by = Shops)]
    struct NeededParts {
        route: Route,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(NeededParts), name = "shops", outcome_condition = "Ready")]
    pub(super) struct Shops;

    impl DesiredNeededParts for Shops {
        async fn route(&self, shop: &Shop, _: &Context<Self>) -> Result<Route> {
            Ok(Route::new(shop.name(), RouteSpec { host: "shop.example".to_owned() }))
        }
    }
}

#[tokio::test]
async fn a_needed_kind_that_is_installed_late_is_noticed_before_the_retry() {
    let world = World::embedded().await;
    world.cluster.install::<Route>().await;
    let running =
        world.cluster.spawn(Manager::new(world.cluster.client()).controller(needed::Shops));
    world.create("shop", &[]).await;
    running.settled().await;
    let definitions = world.cluster.client().all::<CustomResourceDefinition>();
    definitions.delete("routes.graph.example.dev").await.unwrap();
    world
        .eventually("it is told", async || world.told("shop").await.contains("does not serve"))
        .await;
    // The backoff has come to its longest time.
    world.pass(1800).await;
    world.cluster.install::<Route>().await;
    world.pass(12).await;
    assert_eq!(world.owned::<Route>().await, ["shop"]);
    running.settled().await;
    running.stop().await;
}
