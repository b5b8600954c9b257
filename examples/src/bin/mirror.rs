//! A mirror operator: each `Mirror` copies the ConfigMap that its spec names, and follows every
//! change.
//!
//! `cargo run --bin mirror` needs no cluster: the program brings an API server and a sample. There
//! is no mapper: a reconcile reads the source by `cx.watch`, and runs again when the source
//! appears, changes or disappears.

use std::process::ExitCode;

use k8s_openapi::api::core::v1::ConfigMap;
use serde::{Deserialize, Serialize};
use windlass::prelude::*;

/// A copy of a ConfigMap of the same namespace, under the mirror's name.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
#[resource(column(spec.source), column("Ready", ".status.conditions[?(@.type==\"Ready\")].status"))]
pub struct Mirror {
    metadata: ObjectMeta,
    spec: MirrorSpec,
    status: Option<MirrorStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct MirrorSpec {
    /// Name of the ConfigMap that is copied.
    source: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
struct MirrorStatus {
    conditions: Conditions,
}

#[derive(Controller)]
#[controller(for = Mirror, owns(ConfigMap))]
struct Mirrors;

impl Reconciler for Mirrors {
    type Object = Mirror;

    async fn reconcile(&self, mirror: &Mirror, cx: &Context<Self>) -> Result {
        let name = &mirror.spec.source;
        let Some(source) = cx.watch::<ConfigMap>(name).await? else {
            cx.delete_owned::<ConfigMap>(mirror.name()).await?;
            cx.set_condition(unmet("Ready", "NoSource", format!("there is no {name}"))).await?;
            return Ok(Action::done());
        };
        let metadata = ObjectMeta { name: Some(mirror.name().into()), ..ObjectMeta::default() };
        let data = source.get()?.data.clone();
        cx.apply_owned(ConfigMap { metadata, data, ..ConfigMap::default() }).await?;
        cx.set_condition(met("Ready", "Copied", format!("as {name} is"))).await?;
        Ok(Action::done())
    }
}

/// Returns the operator, for `main` and for tests.
pub fn operator(client: Client) -> Manager {
    Manager::new(client).leader_election("mirror-operator").install::<Mirror>().controller(Mirrors)
}

fn main() -> ExitCode {
    let app = windlass::cli::App::new(operator).package(windlass::package!());
    let data = object!(ConfigMap { metadata: { name: "source" }, data: { color: "blue" } });
    let spec = MirrorSpec { source: "source".to_owned() };
    app.sample(data).sample(Mirror::new("copy", spec)).main()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass::api::Patch;
    use windlass::testing::TestCluster;

    use super::*;

    #[tokio::test]
    async fn a_copy_follows_its_source_from_its_first_day_to_its_last() {
        let cluster = TestCluster::start().await;
        cluster.install::<Mirror>().await;
        let running = cluster.spawn(operator(cluster.client()));
        let maps = cluster.client().namespace::<ConfigMap>(cluster.namespace());
        let mirrors = cluster.client().namespace::<Mirror>(cluster.namespace());
        let spec = MirrorSpec { source: "source".to_owned() };
        mirrors.create(&Mirror::new("copy", spec)).await.unwrap();
        running.settled().await;
        let status = mirrors.get("copy").await.unwrap().status.unwrap();
        assert_eq!(status.conditions.get("Ready").unwrap().reason, "NoSource");

        let source = object!(ConfigMap { metadata: { name: "source" }, data: { color: "blue" } });
        maps.create(&source).await.unwrap();
        running.settled().await;
        assert_eq!(maps.get("copy").await.unwrap().data, source.data);

        let red = Patch::Merge(json!({ "data": { "color": "red" } }));
        let source = maps.patch("source", red).await.unwrap();
        running.settled().await;
        assert_eq!(maps.get("copy").await.unwrap().data, source.data);

        maps.delete("source").await.unwrap();
        running.settled().await;
        assert!(maps.get_opt("copy").await.unwrap().is_none());
        running.stop().await;
    }

    #[tokio::test]
    async fn a_change_of_a_source_reaches_its_own_copy_alone() {
        let cluster = TestCluster::start().await;
        cluster.install::<Mirror>().await;
        let running = cluster.spawn(operator(cluster.client()));
        let maps = cluster.client().namespace::<ConfigMap>(cluster.namespace());
        let mirrors = cluster.client().namespace::<Mirror>(cluster.namespace());
        for name in ["one", "two"] {
            let source = object!(ConfigMap { metadata: { name }, data: { color: "blue" } });
            maps.create(&source).await.unwrap();
            let spec = MirrorSpec { source: name.to_owned() };
            mirrors.create(&Mirror::new(format!("copy-{name}"), spec)).await.unwrap();
        }
        running.settled().await;
        let red = Patch::Merge(json!({ "data": { "color": "red" } }));
        maps.patch("one", red).await.unwrap();
        running.settled().await;
        let color = |copy: ConfigMap| copy.data.unwrap()["color"].clone();
        assert_eq!(color(maps.get("copy-one").await.unwrap()), "red");
        assert_eq!(color(maps.get("copy-two").await.unwrap()), "blue");
        running.stop().await;
    }
}
