//! An operator for some namespaces: caches, watches and permissions cover these alone.
//!
//! ```text
//! cargo run --bin multi_namespace
//! ```
//!
//! The program serves a cluster with three teams and reconciles the ConfigMaps of two. A ConfigMap
//! names another ConfigMap of its namespace that holds the greeting: an index finds the ConfigMaps
//! that a change of that other ConfigMap concerns, in the same namespace only. The program plays
//! the teams, and ends without a signal.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use serde_json::json;
use tokio::sync::mpsc;
use windlass::api::Patch;
use windlass::controller::ControllerBuilder;
use windlass::error::BoxError;
use windlass::local::LocalCluster;
use windlass::prelude::*;
use windlass::resource::ObjectKey;
use windlass::store::Index;

/// The name of the ConfigMap that a ConfigMap reads the greeting from.
const BY_SOURCE: Index<ConfigMap, String> = Index::on_path("source", &["data", "greetingFrom"]);

struct Greetings {
    sender: mpsc::Sender<String>,
}

impl Reconciler for Greetings {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
        let data = |map: &ConfigMap, key: &str| map.data.as_ref()?.get(key).cloned();
        let Some(source) = data(map, "greetingFrom") else { return Ok(Action::done()) };
        // The same name in the object's own namespace; the other team's is never seen.
        let source = cx.store().get(&ObjectKey::new(cx.object().namespace(), &source));
        let source = source.and_then(|source| source.get().ok());
        let greeting = source.and_then(|source| data(&source, "text"));
        self.sender.send(format!("{}: {greeting:?}", map.key())).await?;
        Ok(Action::done())
    }
}

/// Returns the operator of these teams; `manifests` grants Roles in their namespaces.
fn operator(client: Client, teams: &[&str], sender: mpsc::Sender<String>) -> Manager {
    let builder = ControllerBuilder::new().watches_by::<ConfigMap, _>(BY_SOURCE);
    Manager::new(client)
        .namespaces(teams.iter().copied())
        .without_leader_election()
        .without_health()
        .without_metrics()
        .without_signals()
        .controller_with(Greetings { sender }, builder)
}

#[tokio::main]
async fn main() -> std::result::Result<(), BoxError> {
    let cluster = LocalCluster::start("multi-namespace").await?;
    let client = cluster.client();
    // Team c comes first, and gets no greeting, because its namespace is not watched.
    for team in ["team-c", "team-a", "team-b"] {
        let namespace = object!(Namespace { metadata: { name: team } });
        client.all().create(&namespace).await?;
        let text = format!("hello {team}");
        let texts = object!(ConfigMap { metadata: { name: "texts" }, data: { text: text } });
        let page =
            object!(ConfigMap { metadata: { name: "page" }, data: { greetingFrom: "texts" } });
        let maps = client.namespace::<ConfigMap>(team);
        maps.create(&texts).await?;
        maps.create(&page).await?;
    }
    let (sender, mut lines) = mpsc::channel(16);
    let running = operator(client.clone(), &["team-a", "team-b"], sender).start();
    let mut until = async |parts: &[&str]| {
        let mut left = parts.to_vec();
        while let Some(line) = lines.recv().await {
            println!("{line}");
            left.retain(|part| !line.contains(part));
            if left.is_empty() {
                return;
            }
        }
    };

    until(&["team-a/page: Some(\"hello team-a\")", "team-b/page: Some(\"hello team-b\")"]).await;
    // A write by team b concerns team b only.
    for team in ["team-c", "team-b"] {
        let patch = Patch::Merge(json!({ "data": { "text": "good evening" } }));
        client.namespace::<ConfigMap>(team).patch("texts", patch).await?;
    }
    until(&["team-b/page: Some(\"good evening\")"]).await;
    drop(lines);
    running.stop();
    running.join().await?;
    println!("done");
    Ok(())
}
