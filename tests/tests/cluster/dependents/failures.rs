//! Children that fail, beside others.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::Namespace;
use windlass_apiserver::faults::{Fault, FaultAction};

use super::*;

#[tokio::test]
async fn a_failure_stops_the_children_behind_it_and_no_others() {
    let world = World::embedded().await;
    world.cluster.install::<Route>().await;
    let refusing = Fault::new(FaultAction::Answer(403)).on("patch").resource("configmaps");
    let refusing = refusing.name("shop-config").always();
    let refusing = world.cluster.server().faults().add(refusing);
    let running = world.spawn();
    world.create("shop", &["a"]).await;
    world.patch("shop", json!({ "spec": { "exposed": true } })).await;
    world.eventually("the route is there", async || world.owned::<Route>().await.len() == 1).await;
    world.eventually("it is told", async || world.told("shop").await.contains("config: ")).await;
    let told = world.told("shop").await;
    assert!(
        told.contains("app: waits for config") && told.contains("shards: waits for app"),
        "{told}"
    );
    assert!(world.owned::<ConfigMap>().await.is_empty());

    refusing.remove();
    world
        .eventually("the app is there", async || world.owned::<ConfigMap>().await.len() == 2)
        .await;
    world.open("shop").await;
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready");
    running.stop().await;
}

/// A policy of the API server that refuses a Secret of the test's namespace.
struct RefusingPolicy<'a> {
    world: &'a World,
    name: String,
}

impl<'a> RefusingPolicy<'a> {
    async fn of(world: &'a World, secret: &str) -> Self {
        let namespace = world.cluster.namespace();
        let name = format!("refuse-{namespace}");
        let rule = json!({
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
            "resources": ["secrets"],
        });
        let validation = json!({
            "expression": format!("object.metadata.name != '{secret}'"),
            "message": "the name is not welcome",
        });
        let spec = json!({
            "matchConstraints": { "resourceRules": [rule] }, "validations": [validation],
        });
        let policy = json!({ "metadata": { "name": &name }, "spec": spec });
        let here = json!({ "matchLabels": { "kubernetes.io/metadata.name": namespace } });
        let binding = json!({ "metadata": { "name": &name }, "spec": {
            "policyName": &name, "validationActions": ["Deny"],
            "matchResources": { "namespaceSelector": here },
        } });
        let (client, policy) = (world.cluster.client(), serde_json::from_value(policy).unwrap());
        client.all::<ValidatingAdmissionPolicy>().create(&policy).await.unwrap();
        let binding = serde_json::from_value(binding).unwrap();
        client.all::<ValidatingAdmissionPolicyBinding>().create(&binding).await.unwrap();
        let it = Self { world, name };
        it.holds(secret, true).await;
        it
    }

    /// Waits until API servers have learned of the policy, or of its end.
    async fn holds(&self, refused: &str, holds: bool) {
        let probe = secret(refused.to_owned());
        let is_refused = async || {
            let answer = self.world.api::<Secret>().create(&probe).dry_run().await;
            answer.is_err_and(|error| error.to_string().contains("not welcome"))
        };
        self.world.eventually("the policy", async || is_refused().await == holds).await;
    }

    async fn remove(self, refused: &str) {
        let client = self.world.cluster.client();
        let bindings = client.all::<ValidatingAdmissionPolicyBinding>();
        bindings.delete(&self.name).await.unwrap();
        client.all::<ValidatingAdmissionPolicy>().delete(&self.name).await.unwrap();
        self.holds(refused, false).await;
    }
}

#[tokio::test]
async fn a_child_that_a_policy_of_the_server_refuses_is_told_and_keeps_no_other_from_being_applied()
{
    let world = World::start().await;
    let running = world.spawn();
    world.create("shop", &["a", "b"]).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    let policy = RefusingPolicy::of(&world, "shop-x").await;
    world.patch("shop", json!({ "spec": { "shards": ["a", "x", "c"] } })).await;
    let has_third = async || world.owned::<Secret>().await.contains(&"shop-c".to_owned());
    world.eventually("the third is there", has_third).await;
    let is_told = async || {
        let told = world.told("shop").await;
        told.contains("shop-x") && told.contains("the name is not welcome")
    };
    world.eventually("it is told", is_told).await;
    assert_eq!(world.owned::<Secret>().await, ["shop-a", "shop-b", "shop-c"], "nothing is removed");
    policy.remove("shop-x").await;
    let is_done = async || world.owned::<Secret>().await == ["shop-a", "shop-c", "shop-x"];
    world.eventually("the rest is done", is_done).await;
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready");
    running.stop().await;
}

#[tokio::test]
async fn one_child_of_many_that_is_refused_keeps_no_other_from_being_applied_or_kept() {
    let world = World::embedded().await;
    let running = world.spawn();
    world.create("shop", &["a", "b"]).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    let refusing = Fault::new(FaultAction::Answer(422)).on("patch").name("shop-x").always();
    let refusing = world.cluster.server().faults().add(refusing);
    world.patch("shop", json!({ "spec": { "shards": ["a", "x", "c"] } })).await;
    world
        .eventually("the third is there", async || {
            world.owned::<Secret>().await.contains(&"shop-c".to_owned())
        })
        .await;
    world.eventually("it is told", async || world.told("shop").await.contains("shop-x")).await;
    assert_eq!(world.owned::<Secret>().await, ["shop-a", "shop-b", "shop-c"], "nothing is removed");
    refusing.remove();
    world
        .eventually("the rest is done", async || {
            world.owned::<Secret>().await == ["shop-a", "shop-c", "shop-x"]
        })
        .await;
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready");
    running.stop().await;
}

#[tokio::test]
async fn the_object_of_somebody_else_is_neither_changed_nor_removed() {
    let world = World::start().await;
    let mut theirs = map("shop-config".to_owned());
    theirs.data = Some([("color".to_owned(), "theirs".to_owned())].into());
    world.api::<ConfigMap>().create(&theirs).await.unwrap();
    let running = world.spawn();
    world.create("shop", &[]).await;
    world.eventually("it is told", async || world.told("shop").await.contains("config: ")).await;
    world.api::<Shop>().delete("shop").await.unwrap();
    world
        .eventually("the shop is gone", async || {
            world.api::<Shop>().get_opt("shop").await.unwrap().is_none()
        })
        .await;
    let left = world.api::<ConfigMap>().get("shop-config").await.unwrap();
    assert_eq!((left.data, left.metadata.owner_references), (theirs.data, None));
    running.stop().await;
}

#[tokio::test]
async fn a_namespace_that_is_being_deleted_takes_its_shops_along() {
    let world = World::embedded().await;
    let running = world.spawn();
    world.create("shop", &["a"]).await;
    running.settled().await;
    world.open("shop").await;
    let namespaces = world.cluster.client().all::<Namespace>();
    namespaces.delete(world.cluster.namespace()).await.unwrap();
    world
        .eventually("the namespace is gone", async || {
            namespaces.get_opt(world.cluster.namespace()).await.unwrap().is_none()
        })
        .await;
    running.settled().await;
    running.stop().await;
}

/// A graph with a description that panics.
mod faulty {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(by = Shops)]
    struct FaultyParts {
        app: ConfigMap,
        #[dependent(after(app))]
        door: ConfigMap,
        login: Secret,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(FaultyParts), name = "shops")]
    pub(super) struct Shops;

    impl DesiredFaultyParts for Shops {
        async fn app(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            assert_ne!(shop.label("faulty"), Some("yes"), "no luck");
            Ok(map(shop.name().to_owned()))
        }

        async fn door(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(format!("{}-door", shop.name())))
        }

        async fn login(&self, shop: &Shop, _: &Context<Self>) -> Result<Secret> {
            Ok(secret(format!("{}-{}", shop.name(), shop.spec.shards.join("-"))))
        }
    }

    impl Reconciler for Shops {
        type Object = Shop;

        async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
            let parts = FaultyParts::apply_each(self, shop, cx).await;
            let condition = if parts.all_ready() { met } else { unmet };
            cx.set_condition(condition("Ready", "Parts", parts.summary())).await?;
            parts.action()
        }
    }
}

#[tokio::test]
async fn a_panic_in_one_description_is_a_failure_of_that_child_alone() {
    let world = World::start().await;
    let faulty = |yes: &str| json!({ "metadata": { "labels": { "faulty": yes } } });
    world.create("shop", &["a"]).await;
    let running =
        world.cluster.spawn(Manager::new(world.cluster.client()).controller(faulty::Shops));
    running.settled().await;
    world.patch("shop", faulty("yes")).await;
    world.patch("shop", json!({ "spec": { "shards": ["b"] } })).await;
    world
        .eventually("its sibling is changed, and what left is gone", async || {
            world.owned::<Secret>().await == ["shop-b"]
        })
        .await;
    let is_told = async || {
        let told = world.told("shop").await;
        told.contains("app: panicked: ")
            && told.contains("no luck")
            && told.contains("door: waits for app")
    };
    world.eventually("it is told", is_told).await;
    assert_eq!(world.owned::<ConfigMap>().await, ["shop", "shop-door"], "nothing of it goes");
    let metrics = world.cluster.client().environment().metrics.encode();
    let counted = "controller_runtime_reconcile_panics_total{controller=\"shops\"} ";
    let count = metrics.lines().find_map(|line| line.strip_prefix(counted));
    assert!(count.is_some_and(|count| count != "0"), "{metrics}");

    world.patch("shop", faulty("no")).await;
    world.eventually("it is over", async || world.told("shop").await == "ready").await;
    running.settled().await;
    running.stop().await;
}

/// A graph whose child is described when something outside of the cluster is there.
mod outside {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use windlass::controller::Failure;

    use super::super::*;

    #[derive(Dependents)]
    #[dependents(by = Shops)]
    pub(super) struct Parts {
        config: ConfigMap,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(Parts), name = "shops")]
    pub(super) struct Shops {
        pub(super) looks: Arc<AtomicUsize>,
    }

    impl DesiredParts for Shops {
        async fn config(&self, _: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            self.looks.fetch_add(1, Ordering::SeqCst);
            let wait = Failure::wait_for("Disk", "the disk is being made");
            Err(wait.check_after(Duration::from_secs(5)))
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
async fn a_description_that_waits_is_asked_again_after_the_delay_that_it_sets() {
    let world = World::embedded().await;
    let looks = std::sync::Arc::<std::sync::atomic::AtomicUsize>::default();
    let controller = outside::Shops { looks: std::sync::Arc::clone(&looks) };
    let running = world.cluster.spawn(Manager::new(world.cluster.client()).controller(controller));
    world.create("shop", &[]).await;
    world.pass(120).await;
    // The backoff of a wait would allow 8.
    let looks = looks.load(std::sync::atomic::Ordering::SeqCst);
    assert!(looks > 15, "{looks}");
    running.stop().await;
}

/// A graph whose descriptions wait, or fail, for different times.
mod slow {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use windlass::controller::Failure;

    use super::super::*;

    #[derive(Dependents)]
    #[dependents(by = Slow)]
    struct SlowParts {
        late: ConfigMap,
        soon: ConfigMap,
    }

    #[derive(Controller, Clone, Default)]
    #[controller(for = Shop, dependents(SlowParts), name = "slow")]
    pub(super) struct Slow(Arc<AtomicUsize>);

    impl Slow {
        pub(super) fn runs(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }

        fn end(shop: &Shop, seconds: u64) -> Result<ConfigMap> {
            let delay = Duration::from_secs(seconds);
            if shop.label("fails") == Some("yes") {
                return Err(Failure::retry_after(delay, "no answer"));
            }
            Err(Failure::wait_for("Answer", "none yet").check_after(delay))
        }
    }

    impl DesiredSlowParts for Slow {
        async fn late(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Self::end(shop, 40)
        }

        async fn soon(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Self::end(shop, 20)
        }
    }

    impl Reconciler for Slow {
        type Object = Shop;

        async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
            self.0.fetch_add(1, Ordering::SeqCst);
            SlowParts::apply(self, shop, cx).await?.action()
        }
    }
}

#[tokio::test]
async fn of_several_waits_and_of_several_failures_the_shortest_delay_counts() {
    for fails in ["no", "yes"] {
        let (world, slow) = (World::embedded().await, slow::Slow::default());
        world.create("shop", &[]).await;
        world.patch("shop", json!({ "metadata": { "labels": { "fails": fails } } })).await;
        let running =
            world.cluster.spawn(Manager::new(world.cluster.client()).controller(slow.clone()));
        world.eventually("it has begun", async || slow.runs() > 0).await;
        world.pass(15).await;
        assert_eq!(slow.runs(), 1, "fails: {fails}");
        world.pass(15).await;
        assert_eq!(slow.runs(), 2, "fails: {fails}");
        running.stop_anyway().await;
        // The next world pauses the clock anew.
        tokio::time::resume();
    }
}

/// A graph with a child in the namespace that the spec names.
mod far {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(for = Shop, by = Shops)]
    struct FarParts {
        #[dependent(scope = cluster)]
        note: ConfigMap,
        login: Secret,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(FarParts), name = "shops", conditions)]
    pub(super) struct Shops;

    impl DesiredFarParts for Shops {
        async fn note(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            let (name, namespace) = (shop.name(), shop.spec.shards.join(""));
            Ok(object!(ConfigMap { metadata: { name, namespace }, data: { color: "blue" } }))
        }

        async fn login(&self, shop: &Shop, _: &Context<Self>) -> Result<Secret> {
            Ok(secret(shop.name().to_owned()))
        }
    }
}

#[tokio::test]
async fn a_child_whose_namespace_is_being_deleted_is_told_and_made_once_the_namespace_is_back() {
    let world = World::embedded().await;
    let place = world.cluster.new_namespace().await;
    let client = world.cluster.client();
    let (maps, namespaces) = (client.namespace::<ConfigMap>(&place), client.all::<Namespace>());
    let mut held = map("held".to_owned());
    held.metadata.finalizers = Some(vec!["example.dev/hold".to_owned()]);
    maps.create(&held).await.unwrap();
    namespaces.delete(&place).await.unwrap();
    let running = world.cluster.spawn(Manager::new(client).controller(far::Shops));
    world.create("shop", &[place.as_str()]).await;
    let is_told = async || {
        let told = world.told("shop").await;
        told.contains("note: ") && told.contains(&place) && told.contains("being terminated")
    };
    world.eventually("it is told", is_told).await;
    assert_eq!(world.owned::<Secret>().await, ["shop"], "the other child is there");
    let shop = world.api::<Shop>().get("shop").await.unwrap();
    let conditions = shop.status.unwrap().conditions;
    let reasons = ["Ready", "Reconciling"].map(|type_| &*conditions.get(type_).unwrap().reason);
    assert_eq!(reasons, ["ReconcileFailed", "ReconcileFailed"], "it is tried again");

    maps.patch("held", Patch::Merge(json!({ "metadata": { "finalizers": null } }))).await.unwrap();
    let is_gone = async || namespaces.get_opt(&place).await.unwrap().is_none();
    world.eventually("the namespace is gone", is_gone).await;
    namespaces.create(&object!(Namespace { metadata: { name: &place } })).await.unwrap();
    // The operator may not read namespaces: it finds out by its retries.
    world.pass(600).await;
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready");
    assert!(maps.get_opt("shop").await.unwrap().is_some());

    // A clean-up waits for nothing that its namespace has taken along.
    maps.patch("shop", Patch::Merge(json!({ "metadata": { "finalizers": ["example.dev/hold"] } })))
        .await
        .unwrap();
    namespaces.delete(&place).await.unwrap();
    world.api::<Shop>().delete("shop").await.unwrap();
    let left = format!("note: ConfigMap \"{place}/shop\" left");
    world.eventually("it is told", async || world.told("shop").await.contains(&left)).await;
    maps.patch("shop", Patch::Merge(json!({ "metadata": { "finalizers": null } }))).await.unwrap();
    world
        .eventually("the shop is gone", async || {
            world.api::<Shop>().get_opt("shop").await.unwrap().is_none()
        })
        .await;
    running.stop().await;
}
