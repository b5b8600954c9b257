//! Children that move from one field to another, and children that two fields describe.

use super::*;

/// A graph whose page is that of one field, or of another that waits.
mod waiting {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(by = Shops)]
    pub(super) struct Parts {
        front: Vec<ConfigMap>,
        #[dependent(ready = is_unlocked)]
        gate: Secret,
        #[dependent(after(gate))]
        back: Vec<ConfigMap>,
    }

    fn is_unlocked(gate: &Secret) -> bool {
        gate.annotation("open") == Some("yes")
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(Parts), name = "shops")]
    pub(super) struct Shops;

    /// Returns the page, if it is wanted here.
    fn page(shop: &Shop, is_here: bool) -> Vec<ConfigMap> {
        is_here.then(|| map(format!("{}-page", shop.name()))).into_iter().collect()
    }

    impl DesiredParts for Shops {
        async fn front(&self, shop: &Shop, _: &Context<Self>) -> Result<Vec<ConfigMap>> {
            Ok(page(shop, !shop.spec.exposed))
        }

        async fn gate(&self, shop: &Shop, _: &Context<Self>) -> Result<Secret> {
            Ok(secret(format!("{}-gate", shop.name())))
        }

        async fn back(&self, shop: &Shop, _: &Context<Self>) -> Result<Vec<ConfigMap>> {
            Ok(page(shop, shop.spec.exposed))
        }
    }

    impl Reconciler for Shops {
        type Object = Shop;

        async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
            Parts::apply(self, shop, cx).await?.action()
        }
    }
}

#[tokio::test]
async fn a_child_that_moves_to_a_field_that_waits_stays_until_that_field_takes_it_over() {
    let world = World::start().await;
    let manager = Manager::new(world.cluster.client()).controller(waiting::Shops);
    let running = world.cluster.spawn(manager);
    world.create("shop", &[]).await;
    running.settled().await;
    let page = world.api::<ConfigMap>().get("shop-page").await.unwrap();
    assert_eq!(page.label(windlass::dependents::LABEL), Some("shops.Parts.front"));
    world.patch("shop", json!({ "spec": { "exposed": true } })).await;
    running.settled().await;
    assert_eq!(world.owned::<ConfigMap>().await, ["shop-page"], "the gate is not open");

    let open = json!({ "metadata": { "annotations": { "open": "yes" } } });
    world.api::<Secret>().patch("shop-gate", Patch::Merge(open)).await.unwrap();
    running.settled().await;
    let moved = world.api::<ConfigMap>().get("shop-page").await.unwrap();
    assert_eq!(moved.label(windlass::dependents::LABEL), Some("shops.Parts.back"));
    assert_eq!(moved.uid(), page.uid(), "it was not made anew");
    running.stop().await;
}

/// A graph with one object in two fields.
mod doubled {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(by = Shops)]
    pub(super) struct Parts {
        first: ConfigMap,
        second: Vec<ConfigMap>,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(Parts), name = "shops")]
    pub(super) struct Shops;

    impl DesiredParts for Shops {
        async fn first(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(format!("{}-page", shop.name())))
        }

        async fn second(&self, shop: &Shop, _: &Context<Self>) -> Result<Vec<ConfigMap>> {
            let mut page = map(format!("{}-page", shop.name()));
            // That of the shop, which is where the other one is made as well.
            page.metadata.namespace = shop.namespace().map(ToOwned::to_owned);
            Ok(vec![page])
        }
    }

    impl Reconciler for Shops {
        type Object = Shop;

        async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
            let parts = Parts::apply_each(self, shop, cx).await;
            cx.set_condition(unmet("Ready", "Parts", parts.summary())).await?;
            parts.action()
        }
    }
}

#[tokio::test]
async fn an_object_that_two_fields_describe_is_the_child_of_the_first() {
    let world = World::start().await;
    let manager = Manager::new(world.cluster.client()).controller(doubled::Shops);
    let running = world.cluster.spawn(manager);
    world.create("shop", &[]).await;
    let text = "its object \"shop-page\" is described by the field `first` as well";
    world.eventually("it is told", async || world.told("shop").await.contains(text)).await;
    let page = async || world.api::<ConfigMap>().get("shop-page").await.unwrap();
    let before = page().await;
    world.rest().await;
    let page = page().await;
    assert_eq!(page.label(windlass::dependents::LABEL), Some("shops.Parts.first"));
    assert_eq!(page.resource_version(), before.resource_version(), "it is not written in turn");
    running.stop().await;
}
