//! Conditions of the parts of a reconcile: of handlers of fields, and of steps.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::api::{Api, Patch};
use windlass::controller::{ControllerBuilder, Failure, Steps};
use windlass::prelude::*;
use windlass::testing::{RunningOperator, TestCluster};

use super::website::{condition, shown};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "parts.windlass.dev", version = "v1", namespaced)]
struct Shop {
    metadata: ObjectMeta,
    spec: ShopSpec,
    status: Option<ShopStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct ShopSpec {
    host: String,
    size: i32,
    certificate: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ShopStatus {
    observed_generation: Option<i64>,
    conditions: Conditions,
}

#[derive(Conditions)]
#[conditions(ready(all(HostReady, Sized, Certified), stalled_on(Invalid)))]
enum ShopCondition {
    HostReady,
    Sized,
    Certified,
    Invalid,
}

#[derive(Controller)]
#[controller(for = Shop, conditions(ShopCondition), retry(base = "10ms", cap = "1s"))]
#[controller(on_change(spec.host = rehost, condition = HostReady))]
#[controller(on_change(spec.size = resize, condition = Sized), loop_guard(most = 1000, within = "1m"))]
#[controller(on_change(spec.certificate = inspect, condition = Invalid))]
struct Shops;

impl Shops {
    async fn rehost(&self, shop: &Shop, _: &Context<Self>) -> Result<()> {
        act(&shop.spec.host)
    }

    async fn resize(&self, shop: &Shop, _: &Context<Self>) -> Result<()> {
        if shop.spec.size < 0 { Err(Failure::from("a negative size")) } else { Ok(()) }
    }

    async fn inspect(&self, shop: &Shop, _: &Context<Self>) -> Result<()> {
        match shop.spec.certificate.as_str() {
            "forged" => Err(Failure::terminal("signed by nobody")),
            "unreachable" => Err(Failure::from("no answer")),
            "slow" => Err(Failure::wait_for("Inspection", "1 of 2 signatures")),
            _ => Ok(()),
        }
    }

    async fn certificate(&self, shop: &Shop) -> Result<()> {
        act(&shop.spec.certificate)
    }

    async fn limit(&self, shop: &Shop) -> Result<()> {
        match shop.spec.size {
            101.. => Err(Failure::terminal("more than 100")),
            100 => Err(Failure::from("no answer")),
            99 => Err(Failure::wait_for("Inspection", "of the size")),
            _ => Ok(()),
        }
    }
}

/// Ends a part of the reconcile as the text says.
fn act(text: &str) -> Result<()> {
    match text {
        "fails" => Err(Failure::from("no such zone")),
        "waits" => Err(Failure::wait_for("Propagation", "1 of 2 servers")),
        "panics" => panic!("on purpose"),
        _ => Ok(()),
    }
}

impl Reconciler for Shops {
    type Object = Shop;

    async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result {
        let steps = Steps::new(cx).step("certificate", self.certificate(shop));
        let steps = steps.sets(&ShopCondition::Certified).step("limit", self.limit(shop));
        steps.sets(&ShopCondition::Invalid).run().await
    }
}

struct Bench {
    cluster: TestCluster,
    shops: Api<Shop>,
    running: RunningOperator,
}

impl Bench {
    async fn start(cluster: TestCluster) -> Self {
        if cluster.is_embedded() {
            tokio::time::pause();
        }
        cluster.install::<Shop>().await;
        let shops: Api<Shop> = cluster.client().namespace(cluster.namespace());
        let running = cluster.spawn(Manager::new(cluster.client()).controller(Shops));
        let spec = ShopSpec { host: "a".into(), size: 1, certificate: "a".into() };
        shops.create(&Shop::new("home", spec)).await.unwrap();
        Self { cluster, shops, running }
    }

    /// Merges into the spec; returns the shop once the spec was reconciled.
    async fn after(&self, spec: Value) -> Value {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let generation = self.shops.patch("home", patch).await.unwrap().metadata.generation;
        let clock = self.cluster.client().environment().clock.clone();
        for _ in 0..2000 {
            let shop = serde_json::to_value(self.shops.get("home").await.unwrap()).unwrap();
            if shop["status"]["observedGeneration"].as_i64() == generation {
                return shop;
            }
            clock.sleep(Duration::from_millis(25)).await;
        }
        panic!("never reconciled");
    }

    /// Writes of the status since the last call; on the embedded server.
    fn status_writes(&self) -> usize {
        let requests = self.cluster.server().requests();
        self.cluster.server().clear_requests();
        let is_write = |verb: &str| !["get", "list", "watch"].contains(&verb);
        requests.iter().filter(|it| it.resource == "shops" && is_write(&it.verb)).count()
    }
}

fn all(shop: &Value) -> [String; 4] {
    ["HostReady", "Sized", "Certified", "Ready"].map(|type_| shown(shop, type_))
}

const MET: &str = "True Succeeded ";

#[tokio::test]
async fn each_handler_and_step_has_its_condition_and_ready_follows() {
    let bench = Bench::start(TestCluster::start().await).await;
    let ready = [MET, MET, MET, "True Reconciled "];
    assert_eq!(all(&bench.after(json!({})).await), ready);

    let shop = bench.after(json!({ "host": "fails" })).await;
    let failed = "False HandlerFailed no such zone";
    assert_eq!(all(&shop), [failed, MET, MET, failed]);
    assert_eq!(shown(&shop, "Reconciling").split(' ').nth(1), Some("ReconcileFailed"));

    let shop = bench.after(json!({ "host": "waits" })).await;
    let waits = "False Propagation 1 of 2 servers";
    assert_eq!(all(&shop), [waits, MET, MET, waits]);

    let shop = bench.after(json!({ "host": "panics" })).await;
    let unknown = "Unknown HandlerNotFinished its handler has panicked or was dropped";
    assert_eq!(all(&shop)[..3], [unknown, MET, MET]);
    assert!(shown(&shop, "Ready").starts_with("False ReconcileFailed"), "{shop:#}");

    assert_eq!(all(&bench.after(json!({ "host": "b" })).await), ready);
    let shop = bench.after(json!({ "certificate": "waits" })).await;
    assert_eq!(all(&shop), [MET, MET, waits, waits], "a step");
    let shop = bench.after(json!({ "certificate": "fails" })).await;
    let failed = "False StepFailed no such zone";
    assert_eq!(all(&shop), [MET, MET, failed, failed], "a step");
    assert_eq!(all(&bench.after(json!({ "certificate": "b" })).await), ready);
    bench.running.stop().await;
}

#[tokio::test]
async fn a_handler_whose_field_stays_keeps_its_condition_at_the_new_generation() {
    let bench = Bench::start(TestCluster::start().await).await;
    bench.after(json!({})).await;
    let shop = bench.after(json!({ "size": 2 })).await;
    assert_eq!(all(&shop), [MET, MET, MET, "True Reconciled "]);
    let host = condition(&shop, "HostReady").unwrap();
    assert_eq!(host.observed_generation, shop["metadata"]["generation"].as_i64());
    let shop = bench.after(json!({ "host": "c", "size": -1 })).await;
    let failed = "False HandlerFailed a negative size";
    assert_eq!(all(&shop), [MET, failed, MET, failed], "the one before it has succeeded");
    bench.running.stop_anyway().await;
}

#[tokio::test]
async fn all_parts_of_a_reconcile_are_one_status_write_and_none_when_nothing_changed() {
    let bench = Bench::start(TestCluster::builder().embedded().start().await).await;
    bench.running.settled().await;
    bench.status_writes();
    bench.after(json!({ "host": "b", "size": 2, "certificate": "waits" })).await;
    bench.running.settled().await;
    assert_eq!(bench.status_writes(), 2, "the patch of the test, and one of the operator");
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    bench.shops.patch("home", Patch::Merge(patch)).await.unwrap();
    bench.running.settled().await;
    assert_eq!(bench.status_writes(), 1, "the patch of the test");
    bench.running.stop().await;
}

fn stalls(shop: &Value) -> [String; 4] {
    ["Invalid", "Ready", "Stalled", "Reconciling"].map(|type_| shown(shop, type_))
}

#[tokio::test]
async fn a_terminal_failure_of_a_handler_stalls_the_object_until_its_field_changes() {
    let bench = Bench::start(TestCluster::start().await).await;
    let fine = ["absent", "True Reconciled ", "absent", "absent"];
    assert_eq!(stalls(&bench.after(json!({})).await), fine);
    let shop = bench.after(json!({ "certificate": "forged" })).await;
    let [invalid, ready] =
        ["True", "False"].map(|it| format!("{it} HandlerFailed signed by nobody"));
    assert_eq!(stalls(&shop), [&invalid, &ready, &invalid, "absent"]);
    // Another field does not help.
    let shop = bench.after(json!({ "size": 2 })).await;
    assert_eq!(stalls(&shop), [&invalid, &ready, &invalid, "absent"]);
    assert_eq!(stalls(&bench.after(json!({ "certificate": "b" })).await), fine);
    bench.after(json!({ "certificate": "forged" })).await;
    let shop = bench.after(json!({ "certificate": "a" })).await;
    assert_eq!(stalls(&shop), fine, "as at the last success, without a run of the handler");
    bench.running.stop().await;
}

#[tokio::test]
async fn a_failure_that_may_pass_neither_stalls_the_object_nor_ends_its_stall() {
    let bench = Bench::start(TestCluster::start().await).await;
    bench.after(json!({})).await;
    for (certificate, invalid) in [("unreachable", "absent"), ("slow", "absent")] {
        let shop = bench.after(json!({ "certificate": certificate })).await;
        assert_eq!(stalls(&shop)[0], invalid, "{certificate}");
        assert_eq!(stalls(&shop)[2], "absent", "{certificate}");
    }
    bench.after(json!({ "certificate": "forged" })).await;
    let shop = bench.after(json!({ "certificate": "unreachable" })).await;
    let [invalid, ready, stalled, reconciling] = stalls(&shop);
    assert_eq!(invalid, "True HandlerFailed signed by nobody", "it is not known to be over");
    assert!(ready.starts_with("False ReconcileFailed") && ready.contains("no answer"), "{ready}");
    assert!(reconciling.starts_with("True ReconcileFailed"), "{reconciling}");
    assert_eq!(stalled, "absent");
    assert_eq!(stalls(&bench.after(json!({ "certificate": "slow" })).await)[0], "absent");
    bench.running.stop_anyway().await;
}

#[tokio::test]
async fn a_step_with_a_stalling_condition_is_shown_as_a_handler_is() {
    let bench = Bench::start(TestCluster::start().await).await;
    bench.after(json!({})).await;
    let shop = bench.after(json!({ "size": 101 })).await;
    let [invalid, ready] = ["True", "False"].map(|it| format!("{it} StepFailed more than 100"));
    assert_eq!(stalls(&shop), [&invalid, &ready, &invalid, "absent"]);
    let shop = bench.after(json!({ "size": 100 })).await;
    assert_eq!(stalls(&shop)[0], "absent", "the handler of the certificate has succeeded");
    assert!(stalls(&shop)[1].starts_with("False ReconcileFailed"), "{shop:#}");
    let shop = bench.after(json!({ "size": 99 })).await;
    assert_eq!(
        stalls(&shop)[..3],
        ["absent", "False Inspection step \"limit\": of the size", "absent"]
    );
    let shop = bench.after(json!({ "size": 3 })).await;
    assert_eq!(stalls(&shop), ["absent", "True Reconciled ", "absent", "absent"]);
    bench.running.stop().await;
}

#[tokio::test]
async fn a_handler_with_a_condition_that_the_controller_does_not_keep_does_not_start() {
    let cluster = TestCluster::builder().embedded().start().await;
    cluster.install::<Shop>().await;
    let builder = ControllerBuilder::<Shops>::new().on_change(
        "spec.size",
        |old, new| old.spec.size == new.spec.size,
        |shops, shop, cx| Box::pin(shops.resize(shop, cx)),
    );
    let builder = builder.change_condition(&ShopCondition::Sized);
    let manager = Manager::new(cluster.client()).controller_with(Shops, builder);
    let run = manager.without_leader_election().on_free_ports().run();
    let run = tokio::time::timeout(Duration::from_secs(60), run).await.expect("it refuses");
    let error = run.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("`Sized` of Shop") && text.contains("spec.size"), "{text}");
}
