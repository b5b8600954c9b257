//! Reads that become watches: exactly the readers of an object run again, on both servers.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::api::Patch;
use windlass::controller::WatchScope;
use windlass::prelude::*;
use windlass::resource::Selector;
use windlass::store::{Cached, Index};
use windlass::testing::RunningOperator;

use crate::bench::Bench;
use crate::gadget::{Gadget, gadget};

const TEAM: Index<ConfigMap, String> = Index::on_path("team", &["data", "team"]);

/// A kind that is not served at first.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "reads.windlass.dev", version = "v1", namespaced)]
struct Late {
    metadata: ObjectMeta,
    spec: LateSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct LateSpec {}

/// Reads as the color says: `name=app`, `team=red`, `tier=web`, `late=one`; notes the found names.
#[derive(Clone, Controller)]
#[controller(for = Gadget, name = "reading", can(list watch ConfigMap), can(list watch Late))]
struct Reading(Arc<Mutex<Vec<String>>>);

impl Reconciler for Reading {
    type Object = Gadget;

    async fn reconcile(&self, gadget: &Gadget, cx: &Context<Self>) -> Result {
        let color = &gadget.spec.color;
        let (way, value) = color.split_once('=').unwrap_or((color, ""));
        if way == "late" {
            let found = cx.watch::<Late>(value).await?;
            let name = found.map_or_else(String::new, |found| found.key().name().to_owned());
            self.0.lock().unwrap().push(format!("{color}: {name}"));
            return Ok(Action::done());
        }
        let found = match way {
            "name" => cx.watch::<ConfigMap>(value).await?.into_iter().collect(),
            "team" => cx.watch_by(TEAM, value).await?,
            "tier" => {
                let labels = Selector::everything().equals("tier", value);
                cx.watch_by(WatchScope::<ConfigMap>::nearby(), &labels).await?
            }
            "fail" => return Err(windlass::controller::Failure::from("on purpose")),
            _ => Vec::new(),
        };
        let name = |map: &Cached<ConfigMap>| map.key().name().to_owned();
        let found: Vec<String> = found.iter().map(name).collect();
        self.0.lock().unwrap().push(format!("{color}: {}", found.join(" ")));
        Ok(Action::done())
    }
}

impl Reading {
    /// Returns the notes since the last call, in order of their texts.
    async fn noted(&self, running: &RunningOperator) -> Vec<String> {
        running.settled().await;
        let mut noted = std::mem::take(&mut *self.0.lock().unwrap());
        noted.sort_unstable();
        noted
    }
}

/// Starts a cluster with a gadget for each color, and the operator.
async fn reading(colors: &[&str]) -> (Bench, Reading, RunningOperator) {
    let (bench, reading) = (Bench::start().await, Reading(Arc::default()));
    let running =
        bench.cluster.spawn(Manager::new(bench.cluster.client()).controller(reading.clone()));
    for (number, color) in colors.iter().enumerate() {
        bench.gadgets.create(&gadget(&format!("gadget-{number}"), color)).await.unwrap();
    }
    assert_eq!(reading.noted(&running).await.len(), colors.len());
    (bench, reading, running)
}

async fn put(bench: &Bench, name: &str, patch: Value) {
    if bench.children.get_opt(name).await.unwrap().is_none() {
        let mut map = patch;
        map["metadata"]["name"] = name.into();
        bench.children.create(&serde_json::from_value(map).unwrap()).await.unwrap();
        return;
    }
    bench.children.patch(name, Patch::Merge(patch)).await.unwrap();
}

#[tokio::test]
async fn a_read_by_name_is_woken_by_appearance_change_and_disappearance() {
    let (bench, reading, running) = reading(&["name=app", "name=other"]).await;
    put(&bench, "app", json!({ "data": { "a": "1" } })).await;
    assert_eq!(reading.noted(&running).await, ["name=app: app"]);
    put(&bench, "app", json!({ "data": { "a": "2" } })).await;
    assert_eq!(reading.noted(&running).await, ["name=app: app"]);
    bench.children.delete("app").await.unwrap();
    assert_eq!(reading.noted(&running).await, ["name=app: "]);
    put(&bench, "unread", json!({ "data": { "a": "1" } })).await;
    assert!(reading.noted(&running).await.is_empty());
    running.stop().await;
}

#[tokio::test]
async fn a_read_by_an_index_is_woken_by_the_old_and_the_new_value() {
    let (bench, reading, running) = reading(&["team=red", "team=blue", "team=green"]).await;
    put(&bench, "app", json!({ "data": { "team": "red" } })).await;
    assert_eq!(reading.noted(&running).await, ["team=red: app"]);
    put(&bench, "app", json!({ "data": { "team": "blue" } })).await;
    assert_eq!(reading.noted(&running).await, ["team=blue: app", "team=red: "]);
    bench.children.delete("app").await.unwrap();
    assert_eq!(reading.noted(&running).await, ["team=blue: "]);
    running.stop().await;
}

#[tokio::test]
async fn a_read_by_labels_is_woken_by_objects_that_matched_and_that_match() {
    let (bench, reading, running) = reading(&["tier=web", "tier=db", "tier=cache"]).await;
    let labels = |labels: Value| json!({ "metadata": { "labels": labels } });
    put(&bench, "app", labels(json!({ "tier": "web" }))).await;
    assert_eq!(reading.noted(&running).await, ["tier=web: app"]);
    put(&bench, "app", labels(json!({ "more": "yes" }))).await;
    assert_eq!(reading.noted(&running).await, ["tier=web: app"]);
    put(&bench, "app", labels(json!({ "tier": "db" }))).await;
    assert_eq!(reading.noted(&running).await, ["tier=db: app", "tier=web: "]);
    put(&bench, "app", labels(json!({ "tier": null }))).await;
    assert_eq!(reading.noted(&running).await, ["tier=db: "]);
    bench.children.delete("app").await.unwrap();
    assert!(reading.noted(&running).await.is_empty());
    running.stop().await;
}

#[tokio::test]
async fn the_reads_of_the_last_success_count_also_after_a_restart() {
    let (bench, reading, running) = reading(&["name=old"]).await;
    bench.change("gadget-0", json!({ "color": "tier=web" })).await;
    assert_eq!(reading.noted(&running).await, ["tier=web: "]);
    put(&bench, "old", json!({ "data": { "a": "1" } })).await;
    assert!(reading.noted(&running).await.is_empty(), "it is not read any more");
    running.stop().await;
    let running =
        bench.cluster.spawn(Manager::new(bench.cluster.client()).controller(reading.clone()));
    assert_eq!(reading.noted(&running).await, ["tier=web: "]);
    put(&bench, "old", json!({ "metadata": { "labels": { "tier": "web" } } })).await;
    assert_eq!(reading.noted(&running).await, ["tier=web: old"]);
    running.stop().await;
}

#[tokio::test]
async fn an_operator_that_reads_a_kind_which_is_not_served_settles_and_says_so() {
    let (bench, reading, running) = reading(&["late=one"]).await;
    let readiness = running.readiness();
    let text = format!("{readiness:?}");
    assert!(readiness.is_ready(), "{text}");
    assert!(
        text.contains("cache lates.reads.windlass.dev") && text.contains("only read"),
        "{text}"
    );

    // Of another cause the text of the error says what was not waited for.
    bench.gadgets.create(&gadget("restless", "fail")).await.unwrap();
    let error = running.try_settled(std::time::Duration::from_secs(1)).await.unwrap_err();
    assert!(error.to_string().contains("not waited for: cache lates"), "{error}");
    bench.gadgets.delete("restless").await.unwrap();

    bench.cluster.install::<Late>().await;
    bench
        .cluster
        .client()
        .namespace(bench.cluster.namespace())
        .create(&Late::new("one", LateSpec {}))
        .await
        .unwrap();
    bench
        .eventually("it is read", async || {
            reading.0.lock().unwrap().last().is_some_and(|last| last == "late=one: one")
        })
        .await;
    assert!(running.readiness().is_ready());
    running.settled().await;
    running.stop().await;
}
