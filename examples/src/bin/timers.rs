//! Reconciles that are caused by time alone: a timer per object, a requeue, a debounced burst, a
//! pause.
//!
//! ```text
//! cargo run --bin timers
//! ```
//!
//! The program serves a cluster, changes a ConfigMap as a user would, prints the reason of each
//! reconcile, and ends without a signal.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use windlass::api::Patch;
use windlass::controller::ControllerBuilder;
use windlass::controller::{PAUSED, Timer};
use windlass::error::BoxError;
use windlass::local::LocalCluster;
use windlass::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

struct Probes {
    sender: mpsc::Sender<String>,
}

impl Reconciler for Probes {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
        let count = map.data.as_ref().and_then(|data| data.get("count"));
        self.sender.send(format!("{}: {}, count {count:?}", map.key(), cx.reasons())).await?;
        if cx.reasons().contains("timer probe") {
            // Once more, at a separate time within the spread, not together with all others.
            return Ok(Action::requeue_after(cx.spread(SECOND / 2)));
        }
        Ok(Action::done())
    }
}

fn builder() -> ControllerBuilder<Probes> {
    ControllerBuilder::new()
        // Every 10 s, the first time 2 s after an object was seen, and up to a second later.
        .timer(Timer::every(10 * SECOND, "probe").initial_delay(2 * SECOND))
        // A burst leads to one reconcile, half a second after the last change.
        .debounce(SECOND / 2, 5 * SECOND)
        // Every object once a day, changed or not.
        .resync(24 * 3600 * SECOND)
}

#[tokio::main]
async fn main() -> std::result::Result<(), BoxError> {
    let cluster = LocalCluster::start("timers").await?;
    let client = cluster.client();
    let namespace = object!(Namespace { metadata: { name: "shop" } });
    client.all().create(&namespace).await?;
    let (sender, mut lines) = mpsc::channel(16);
    let running = Manager::new(client.clone())
        .namespaces(["shop"])
        .without_leader_election()
        .without_health()
        .without_metrics()
        .without_signals()
        .controller_with(Probes { sender }, builder())
        .start();
    let mut until = async |part: &str| {
        while let Some(line) = lines.recv().await {
            println!("{line}");
            if line.contains(part) {
                return;
            }
        }
    };

    let maps = client.namespace::<ConfigMap>("shop");
    maps.create(&object!(ConfigMap { metadata: { name: "home" } })).await?;
    let change = async |change: Value| maps.patch("home", Patch::Merge(change)).await;
    for count in 1..=20 {
        change(json!({ "data": { "count": count.to_string() } })).await?;
    }
    // The last state, and only that.
    until(r#"count Some("20")"#).await;
    until("timer probe").await;
    until("requeue").await;

    // While the object is paused no reconcile runs; at the end of the pause a reconcile runs at
    // once.
    change(json!({ "metadata": { "annotations": { PAUSED: "true" } } })).await?;
    change(json!({ "data": { "count": "21" } })).await?;
    tokio::time::sleep(2 * SECOND).await;
    println!("paused");
    change(json!({ "metadata": { "annotations": { PAUSED: null } } })).await?;
    until(r#"count Some("21")"#).await;
    drop(lines);
    running.stop();
    running.join().await?;
    println!("done");
    Ok(())
}
