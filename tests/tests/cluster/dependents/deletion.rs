//! The clean-up of a graph.

use super::*;

#[tokio::test]
async fn a_clean_up_deletes_in_reverse_and_waits() {
    let world = World::start().await;
    let running = world.spawn();
    world.create("shop", &["a", "b"]).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    let hold = json!({ "metadata": { "finalizers": ["example.dev/hold"] } });
    world.api::<Secret>().patch("shop-a", Patch::Merge(hold)).await.unwrap();
    world.api::<Shop>().delete("shop").await.unwrap();
    world
        .eventually("all but the held one are gone", async || {
            world.owned::<Secret>().await == ["shop-a"]
        })
        .await;
    world.rest().await;
    assert_eq!(world.owned::<Secret>().await, ["shop-a"], "it is held");
    let maps = world.owned::<ConfigMap>().await;
    assert_eq!(maps, ["shop-app", "shop-config"], "they come before the shards");
    let free = json!({ "metadata": { "finalizers": null } });
    world.api::<Secret>().patch("shop-a", Patch::Merge(free)).await.unwrap();
    world
        .eventually("the shop is gone", async || {
            world.api::<Shop>().get_opt("shop").await.unwrap().is_none()
        })
        .await;
    assert!(world.owned::<ConfigMap>().await.is_empty());
    running.stop().await;
}

#[tokio::test]
async fn a_clean_up_waits_for_all_that_a_child_owns() {
    let world = World::start().await;
    let running = world.spawn();
    world.create("shop", &["a"]).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    let shard = world.api::<Secret>().get("shop-a").await.unwrap();
    let mut page = map("page".to_owned());
    let owner = json!([{ "apiVersion": "v1", "kind": "Secret", "name": "shop-a", "uid": shard.uid(),
        "blockOwnerDeletion": true }]);
    page.metadata.owner_references = serde_json::from_value(owner).unwrap();
    page.metadata.finalizers = Some(vec!["example.dev/hold".to_owned()]);
    world.api::<ConfigMap>().create(&page).await.unwrap();
    world.api::<Shop>().delete("shop").await.unwrap();
    world.rest().await;
    assert_eq!(world.owned::<Secret>().await, ["shop-a"], "its page is held");
    let maps = world.owned::<ConfigMap>().await;
    assert_eq!(maps, ["page", "shop-app", "shop-config"], "two of them come before the shards");
    let free = json!({ "metadata": { "finalizers": null } });
    world.api::<ConfigMap>().patch("page", Patch::Merge(free)).await.unwrap();
    world
        .eventually("the shop is gone", async || {
            world.api::<Shop>().get_opt("shop").await.unwrap().is_none()
        })
        .await;
    assert!(world.owned::<ConfigMap>().await.is_empty());
    running.stop().await;
}

/// A graph of many children, whose clean-up shows in a condition.
mod stock {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(for = Shop, by = Keepers)]
    pub(super) struct Stock {
        goods: Vec<ConfigMap>,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(Stock), outcome_condition = "Ready", name = "keepers")]
    #[controller(finalizer = "graph.example.dev/stock")]
    pub(super) struct Keepers;

    impl DesiredStock for Keepers {
        async fn goods(&self, shop: &Shop, _: &Context<Self>) -> Result<Vec<ConfigMap>> {
            let names = shop.spec.shards.iter();
            let hold = ["example.dev/hold"];
            Ok(names
                .map(|name| object!(ConfigMap { metadata: { name: name, finalizers: hold } }))
                .collect())
        }
    }

    impl Finalize for Keepers {
        async fn cleanup(&self, shop: &Shop, cx: &Context<Self>) -> Result<()> {
            Stock::delete(self, shop, cx).await
        }
    }
}

#[tokio::test]
async fn a_clean_up_that_waits_names_the_first_of_the_children_that_are_left() {
    let world = World::start().await;
    let manager = Manager::new(world.cluster.client()).controller(stock::Keepers);
    let running = world.cluster.spawn(manager);
    world.create("shop", &["a", "b", "c", "d", "e"]).await;
    running.settled().await;
    world.api::<Shop>().delete("shop").await.unwrap();
    running.settled().await;
    let at = |name: &str| format!("ConfigMap \"{}/{name}\"", world.cluster.namespace());
    let first = format!("{}, {}, {}", at("a"), at("b"), at("c"));
    let all = format!("Deleting: goods: {first} and 2 more left");
    assert_eq!(world.told("shop").await, all);
    let free = json!({ "metadata": { "finalizers": null } });
    for name in ["a", "b", "d"] {
        world.api::<ConfigMap>().patch(name, Patch::Merge(free.clone())).await.unwrap();
    }
    running.settled().await;
    assert_eq!(world.told("shop").await, format!("Deleting: goods: {}, {} left", at("c"), at("e")));
    for name in ["c", "e"] {
        world.api::<ConfigMap>().patch(name, Patch::Merge(free.clone())).await.unwrap();
    }
    world
        .eventually("the shop is gone", async || {
            world.api::<Shop>().get_opt("shop").await.unwrap().is_none()
        })
        .await;
    running.stop().await;
}
