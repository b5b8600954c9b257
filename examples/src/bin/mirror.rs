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
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
    use serde_json::json;
    use windlass::api::Patch;
    use windlass::testing::{Case, Exploration, Table, TestCluster, check};

    use super::*;

    fn mirror(name: &str, source: &str) -> Mirror {
        Mirror::new(name, MirrorSpec { source: source.to_owned() })
    }

    fn map(name: &str, color: &str) -> ConfigMap {
        object!(ConfigMap { metadata: { name }, data: { color } })
    }

    fn cases() -> Table {
        let case = |name: &str, status: &str, reason: &str| {
            let ready = json!({ "type": "Ready", "status": status, "reason": reason });
            let case = Case::new(name, &mirror("copy", "source"));
            case.reads("watch configmaps source").status(json!({ "conditions": [ready] }))
        };
        let mut copy = map("copy", "blue");
        let owner = OwnerReference {
            api_version: "example.dev/v1".to_owned(),
            kind: "Mirror".to_owned(),
            name: "copy".to_owned(),
            controller: Some(true),
            ..OwnerReference::default()
        };
        copy.metadata.owner_references = Some(vec![owner]);
        let (source, red) = (map("source", "red"), map("copy", "red"));
        Table::new(operator)
            .case(case("a mirror waits for its source", "False", "NoSource"))
            .case(case("a source is copied", "True", "Copied").given(&source).creates(&red))
            .case(
                case("a copy follows its source", "True", "Copied")
                    .given(&source)
                    .given(&copy)
                    .updates(&red),
            )
            .case(
                case("a copy goes with its source", "False", "NoSource")
                    .given(&copy)
                    .deletes::<ConfigMap>("copy"),
            )
    }

    #[tokio::test]
    async fn cases_hold_without_a_server_and_on_one() {
        cases().check().await;
        cases().check_on_server().await;
    }

    #[test]
    fn a_mirror_that_is_ready_has_its_copy_whatever_fails() {
        let report = Exploration::new().runs(60).run(|world| async move {
            world.install::<Mirror>().await;
            world.operator(operator);
            world.always("a mirror that is ready has its copy", |world| {
                let maps = world.objects::<ConfigMap>();
                let is_ready = |it: &Mirror| {
                    it.status.as_ref().is_some_and(|status| status.conditions.is_met("Ready"))
                };
                world
                    .objects::<Mirror>()
                    .iter()
                    .all(|it| !is_ready(it) || maps.iter().any(|map| map.name() == it.name()))
            });
            let client = world.client();
            client.namespace("default").create(&mirror("copy", "source")).await.unwrap();
            client.namespace("default").create(&map("source", "blue")).await.unwrap();
            let has_copy =
                async || world.objects::<ConfigMap>().iter().any(|it| it.name() == "copy");
            world.eventually("the source is copied", has_copy).await;
        });
        assert!(report.findings().is_empty(), "{report}");
    }

    #[tokio::test]
    async fn what_happens_to_a_source_reaches_its_own_copy_alone() {
        let cluster = TestCluster::start().await;
        cluster.install::<Mirror>().await;
        let running = cluster.spawn(operator(cluster.client()));
        let maps = cluster.client().namespace::<ConfigMap>(cluster.namespace());
        let mirrors = cluster.client().namespace::<Mirror>(cluster.namespace());
        for name in ["one", "two"] {
            mirrors.create(&mirror(&format!("copy-{name}"), name)).await.unwrap();
            running.settled().await;
            maps.create(&map(name, "blue")).await.unwrap();
        }
        running.settled().await;
        let red = Patch::Merge(json!({ "data": { "color": "red" } }));
        maps.patch("one", red).await.unwrap();
        running.settled().await;
        let color = |copy: ConfigMap| copy.data.unwrap()["color"].clone();
        assert_eq!(color(maps.get("copy-one").await.unwrap()), "red");
        assert_eq!(color(maps.get("copy-two").await.unwrap()), "blue");
        maps.delete("one").await.unwrap();
        running.settled().await;
        assert!(maps.get_opt("copy-one").await.unwrap().is_none());
        assert!(maps.get_opt("copy-two").await.unwrap().is_some());
        running.stop().await;
    }

    #[tokio::test]
    async fn serde_the_definition_and_an_api_server_agree() {
        let report = check::<Mirror>().await;
        assert!(report.unchecked().is_empty(), "{report}");
    }
}
