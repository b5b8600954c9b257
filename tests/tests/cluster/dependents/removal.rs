//! Children that are not wanted any more.

use super::*;

#[tokio::test]
async fn a_child_whose_condition_ends_is_deleted() {
    let world = World::start().await;
    let running = world.spawn();
    world.create("shop", &[]).await;
    for exposed in [true, false, true] {
        world.patch("shop", json!({ "spec": { "exposed": exposed } })).await;
        running.settled().await;
        assert_eq!(world.owned::<Route>().await.len(), usize::from(exposed));
    }
    running.stop().await;
}

#[tokio::test]
async fn one_of_many_that_left_the_spec_goes_and_everything_else_stays() {
    let world = World::start().await;
    let running = world.spawn();
    let shop = world.create("shop", &["a", "b"]).await;
    world.patch("shop", json!({ "metadata": { "labels": { "notes": "yes" } } })).await;
    // The Secret claims the place of a shard, but no shop controls the Secret.
    let mut claim = secret("claim".to_owned());
    let label = (windlass::dependents::LABEL.to_owned(), "shops.Parts.shards".to_owned());
    claim.metadata.labels = Some([label].into());
    world.api::<Secret>().create(&claim).await.unwrap();
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    let kept = world.api::<Secret>().get("shop-b").await.unwrap();
    world.patch("shop", json!({ "spec": { "shards": ["c", "b"] } })).await;
    running.settled().await;
    assert_eq!(world.owned::<Secret>().await, ["shop-b", "shop-c", "shop-notes"]);
    let left = world.api::<Secret>().get("shop-b").await.unwrap();
    assert_eq!(left.resource_version(), kept.resource_version(), "it was not written again");
    assert!(world.api::<Secret>().get_opt("claim").await.unwrap().is_some());
    assert_eq!(world.told("shop").await, "ready");
    assert_eq!(world.api::<Shop>().get("shop").await.unwrap().uid(), shop.uid());
    running.stop().await;
}

#[tokio::test]
async fn a_child_that_is_held_by_a_finalizer_is_shown_as_being_deleted() {
    let world = World::start().await;
    let running = world.spawn();
    world.create("shop", &["a"]).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    let hold = json!({ "metadata": { "finalizers": ["example.dev/hold"] } });
    world.api::<Secret>().patch("shop-a", Patch::Merge(hold)).await.unwrap();
    world.patch("shop", json!({ "spec": { "shards": [] } })).await;
    running.settled().await;
    assert_eq!(world.told("shop").await, "1 object is being deleted");
    let free = json!({ "metadata": { "finalizers": null } });
    world.api::<Secret>().patch("shop-a", Patch::Merge(free)).await.unwrap();
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready");
    running.stop().await;
}

#[tokio::test]
async fn a_field_that_is_not_wanted_any_more_is_being_deleted_until_it_is_gone() {
    let world = World::start().await;
    let running = world.spawn();
    world.create("shop", &[]).await;
    world.patch("shop", json!({ "spec": { "exposed": true } })).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    let hold = json!({ "metadata": { "finalizers": ["example.dev/hold"] } });
    world.api::<Route>().patch("shop", Patch::Merge(hold)).await.unwrap();
    world.patch("shop", json!({ "spec": { "exposed": false } })).await;
    running.settled().await;
    assert_eq!(world.told("shop").await, "route: is being deleted");
    let free = json!({ "metadata": { "finalizers": null } });
    world.api::<Route>().patch("shop", Patch::Merge(free)).await.unwrap();
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready");
    running.stop().await;
}

#[tokio::test]
async fn a_child_that_is_being_deleted_is_not_deleted_once_more() {
    let world = World::embedded().await;
    world.cluster.install::<Route>().await;
    let running = world.spawn();
    world.create("shop", &["a"]).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    let hold = json!({ "metadata": { "finalizers": ["example.dev/hold"] } });
    world.api::<Secret>().patch("shop-a", Patch::Merge(hold)).await.unwrap();
    world.patch("shop", json!({ "spec": { "shards": [] } })).await;
    running.settled().await;
    world.cluster.server().clear_requests();
    for round in 0..3 {
        let label = json!({ "metadata": { "labels": { "round": round.to_string() } } });
        world.patch("shop", label).await;
        world.pass(5).await;
    }
    let requests = world.cluster.server().requests();
    assert!(requests.iter().all(|it| it.verb != "delete"), "{requests:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_wanted_child_that_is_being_deleted_is_not_ready_and_is_made_anew() {
    let world = World::start().await;
    let running = world.spawn();
    world.create("shop", &[]).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready");
    let hold = json!({ "metadata": { "finalizers": ["example.dev/hold"] } });
    let config = world.api::<ConfigMap>().patch("shop-config", Patch::Merge(hold)).await.unwrap();
    world.api::<ConfigMap>().delete("shop-config").await.unwrap();
    running.settled().await;
    let told = world.told("shop").await;
    assert_eq!(told, "shards: waits for app; app: waits for config; config: is being deleted");
    let free = json!({ "metadata": { "finalizers": null } });
    world.api::<ConfigMap>().patch("shop-config", Patch::Merge(free)).await.unwrap();
    world.eventually("it is ready", async || world.told("shop").await == "ready").await;
    assert_ne!(world.api::<ConfigMap>().get("shop-config").await.unwrap().uid(), config.uid());
    running.stop().await;
}

/// The next version of the operator: the shards are gone, the app has another field, and the rest
/// is new.
mod next {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(by = Shops, retired(Secret, Route))]
    pub(super) struct Parts {
        main: ConfigMap,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(Parts), name = "shops")]
    pub(super) struct Shops;

    impl DesiredParts for Shops {
        async fn main(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(format!("{}-app", shop.name())))
        }
    }

    impl Reconciler for Shops {
        type Object = Shop;

        async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
            let parts = Parts::apply_each(self, shop, cx).await;
            let condition = if parts.all_ready() { met } else { unmet };
            cx.set_condition(condition("Ready", "Parts", parts.summary())).await?;
            parts.action()
        }
    }
}

#[tokio::test]
async fn children_of_kinds_and_fields_that_a_new_version_lacks_are_deleted() {
    let world = World::start().await;
    let running = world.spawn();
    world.create("shop", &["a"]).await;
    world.patch("shop", json!({ "metadata": { "labels": { "notes": "yes" } } })).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    let app = world.api::<ConfigMap>().get("shop-app").await.unwrap();
    running.stop().await;
    let hold = json!({ "metadata": { "finalizers": ["example.dev/hold"] } });
    world.api::<Secret>().patch("shop-a", Patch::Merge(hold)).await.unwrap();
    let manager = Manager::new(world.cluster.client()).controller(next::Shops);
    let running = world.cluster.spawn(manager);
    running.settled().await;
    assert_eq!(world.told("shop").await, "1 object is being deleted", "of a retired kind");
    let free = json!({ "metadata": { "finalizers": null } });
    world.api::<Secret>().patch("shop-a", Patch::Merge(free)).await.unwrap();
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready");
    assert_eq!(world.owned::<Secret>().await, ["shop-notes"], "made beside the graph");
    assert_eq!(world.owned::<ConfigMap>().await, ["shop-app"], "and not the config");
    let left = world.api::<ConfigMap>().get("shop-app").await.unwrap();
    assert_eq!(left.uid(), app.uid(), "a field that takes a child over does not make it anew");
    running.stop().await;
}
