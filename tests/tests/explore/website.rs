//! The website example: users create, scale and delete sites while everything is disturbed.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};
use windlass::api::Patch;
use windlass::resource::ResourceExt;
use windlass::testing::World;

// The example, with `main`: the exploration runs the users' own program.
#[path = "../../../examples/src/bin/website.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, missing_debug_implementations)]
pub(crate) mod example;

use example::Website;

/// Two sites; the first is scaled, the second deleted.
pub(crate) async fn sites(world: World) {
    world.operator(example::operator);
    let sites = world.client().namespace::<Website>("default");
    // The operator installs the kind.
    world.eventually("the kind is served", async || sites.list().await.is_ok()).await;
    for (name, host) in [("a", "a.example"), ("b", "b.example")] {
        let site = serde_json::from_value(json!({
            "apiVersion": "example.dev/v1", "kind": "Website", "metadata": { "name": name },
            "spec": { "host": host, "replicas": 2 },
        }));
        sites.create(&site.unwrap()).await.unwrap();
        world.eventually("the site is ready", async || is_ready(&world, name)).await;
    }
    let patch = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    sites.patch("b", patch).await.unwrap();
    let is_scaled = async || replicas(&world, "b") == Some(3) && is_ready(&world, "b");
    world.eventually("b has three replicas", is_scaled).await;
    sites.delete("a").await.unwrap();
    let is_gone = async || {
        let names: Vec<Service> = world.objects();
        replicas(&world, "a").is_none() && !names.iter().any(|service| service.name() == "a")
    };
    world.eventually("a's children are gone", is_gone).await;
}

fn replicas(world: &World, name: &str) -> Option<i32> {
    let all = world.objects::<Deployment>();
    let found = all.into_iter().find(|deployment| deployment.name() == name)?;
    found.spec?.replicas
}

fn is_ready(world: &World, name: &str) -> bool {
    let sites = world.objects::<Website>().into_iter().filter(|site| site.name() == name);
    let mut conditions = sites.flat_map(|site| {
        let site = serde_json::to_value(&site).unwrap_or_default();
        site["status"]["conditions"].as_array().cloned().unwrap_or_default()
    });
    conditions.any(|condition: Value| condition["type"] == "Ready" && condition["status"] == "True")
}
