//! The clean-up of a graph.

use super::*;

#[tokio::test]
async fn a_clean_up_deletes_in_reverse_and_waits() {
    // Garbage collection ends deletions in the foreground; no controllers run beside the real server.
    let world = World::embedded().await;
    world.cluster.install::<Route>().await;
    let running = world.spawn();
    world.create("shop", &["a", "b"]).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    let hold = json!({ "metadata": { "finalizers": ["example.dev/hold"] } });
    world.api::<Secret>().patch("shop-a", Patch::Merge(hold)).await.unwrap();
    world.api::<Shop>().delete("shop").await.unwrap();
    running.settled().await;
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
