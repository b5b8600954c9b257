//! Settings of `#[derive(Controller)]` that are literals, and their effect on a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use windlass::api::Patch;
use windlass::controller::ControllerBuilder;
use windlass::controller::predicates::labels_changed;
use windlass::prelude::*;
use windlass::resource::ObjectKey;
use windlass::store::Cached;

use crate::bench::Bench;
use crate::gadget::{Gadget, gadget};

/// Reconciles each gadget for changes of labels only, of the gadget's children and of others.
#[derive(Controller)]
#[controller(for = Gadget, name = "labelled", owns(ConfigMap, when = labels_changed()))]
#[controller(watches(Secret, by = namesakes, when = labels_changed()), resync = "never")]
#[controller(reconcile_timeout = "30s", retry(at_most = 2, base = "10ms", cap = "20ms"))]
#[controller(outcome_condition = "Replaced", workers = 1, with = Self::more)]
struct Labelled {
    reconciles: Arc<AtomicUsize>,
}

impl Labelled {
    fn more(builder: ControllerBuilder<Self>) -> ControllerBuilder<Self> {
        builder.outcome_condition("Synced")
    }
}

fn namesakes(secret: &Cached<Secret>) -> Vec<ObjectKey> {
    vec![secret.key().clone()]
}

impl Reconciler for Labelled {
    type Object = Gadget;

    async fn reconcile(&self, gadget: &Gadget, cx: &Context<Self>) -> Result {
        self.reconciles.fetch_add(1, Ordering::Relaxed);
        let child = object!(ConfigMap { metadata: { name: gadget.name() } });
        cx.apply_owned(child).await?;
        Ok(Action::done())
    }
}

#[tokio::test]
async fn a_change_counts_by_the_predicate_behind_its_kind() {
    let bench = Bench::start().await;
    let reconciles = Arc::<AtomicUsize>::default();
    let controller = Labelled { reconciles: Arc::clone(&reconciles) };
    let running = bench.cluster.spawn(Manager::new(bench.cluster.client()).controller(controller));
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    running.settled().await;
    let secrets = bench.cluster.client().namespace::<Secret>(bench.cluster.namespace());
    secrets.create(&object!(Secret { metadata: { name: "home" } })).await.unwrap();
    running.settled().await;

    let label = |value: &str| json!({ "metadata": { "labels": { "a": value } } });
    let data = json!({ "data": { "a": "Yg==" } });
    let steps: [(&str, Value, usize); 4] = [
        ("map", data.clone(), 0),
        ("map", label("x"), 1),
        ("secret", data, 0),
        ("secret", label("x"), 1),
    ];
    for (object, change, expected) in steps {
        let before = reconciles.load(Ordering::Relaxed);
        let patch = Patch::Merge(change.clone());
        if object == "map" {
            bench.children.patch("home", patch).await.unwrap();
        } else {
            secrets.patch("home", patch).await.unwrap();
        }
        running.settled().await;
        let more = reconciles.load(Ordering::Relaxed) - before;
        assert_eq!(more, expected, "{object}: {change}");
    }
    let status = bench.gadgets.get("home").await.unwrap().status.unwrap();
    assert!(status.conditions.is_met("Synced"), "the function of `with` has the last word");
    assert!(status.conditions.get("Replaced").is_none(), "{:?}", status.conditions);
    running.stop().await;
}

/// Reconciles by the clock.
#[derive(Controller)]
#[controller(for = Gadget, name = "ticking", timer(every = "1s", name = "tick"))]
struct Ticking {
    reconciles: Arc<AtomicUsize>,
}

impl Reconciler for Ticking {
    type Object = Gadget;

    async fn reconcile(&self, _: &Gadget, _: &Context<Self>) -> Result {
        self.reconciles.fetch_add(1, Ordering::Relaxed);
        Ok(Action::done())
    }
}

#[tokio::test]
async fn a_timer_reconciles_without_a_change() {
    let bench = Bench::start().await;
    let reconciles = Arc::<AtomicUsize>::default();
    let controller = Ticking { reconciles: Arc::clone(&reconciles) };
    let running = bench.cluster.spawn(Manager::new(bench.cluster.client()).controller(controller));
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    bench.eventually("the timer has fired", async || reconciles.load(Ordering::Relaxed) > 3).await;
    running.stop().await;
}
