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
