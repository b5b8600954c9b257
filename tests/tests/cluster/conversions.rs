//! The conversion of a definition through the life of operators: before their caches are filled, at
//! a URL, and while the definition is newer than their types.

use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass::api::Patch;
use windlass::client::Client;
use windlass::manager::{Exit, Manager, Running};
use windlass::prelude::*;
use windlass::resource::Resource;
use windlass::testing::TestCluster;
use windlass::webhook::{ConfigurationOptions, MountedFiles, WebhookServer, Webhooks};
use windlass::{Convertible, Schema};

use crate::webhooks::{Mounted, eventually};

const DEFINITION: &str = "bags.conversions.example.dev";
const ANNOTATION: &str = "windlass.dev/replaced-conversion";

/// The hub.
mod v1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "conversions.example.dev", version = "v1", namespaced)]
    #[resource(versions(v1beta1::Bag))]
    pub(crate) struct Bag {
        pub metadata: ObjectMeta,
        pub spec: BagSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    pub(crate) struct BagSpec {
        pub grams: i64,
    }
}

/// The version that is stored.
mod v1beta1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(version = "v1beta1", hub = v1::Bag, storage)]
    pub(crate) struct Bag {
        pub metadata: ObjectMeta,
        pub spec: BagSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::BagSpec)]
    pub(crate) struct BagSpec {
        #[convert(rename = grams)]
        pub weight: i64,
    }
}

fn webhooks() -> Webhooks {
    Webhooks::new().converting::<v1::Bag>()
}

/// Sockets need real time: the clock is not paused. One test, since the definition is one.
#[tokio::test]
async fn a_conversion_is_answered_through_the_life_of_operators() {
    let cluster = TestCluster::start().await;
    let (client, namespace) = (cluster.client(), cluster.namespace().to_owned());
    w4_a_cache_that_needs_conversions_of_its_own_operator_fills(&client, &namespace).await;
    a_process_at_a_url_gives_back_what_was_there_before_it(&client, &namespace).await;
    client.all::<CustomResourceDefinition>().delete(DEFINITION).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_is_settled_converts_a_kind_that_it_has_installed() {
    let cluster = TestCluster::builder().embedded().start().await;
    let manager = Manager::new(cluster.client()).name("bags").install::<v1::Bag>();
    let running = cluster.spawn(manager.runnable(WebhookServer::new(webhooks())));
    running.settled().await;
    let old = cluster.client().namespace::<v1beta1::Bag>(cluster.namespace());
    old.create(&v1beta1::Bag::new("bag", v1beta1::BagSpec { weight: 7 })).await.unwrap();
    let new = cluster.client().namespace::<v1::Bag>(cluster.namespace());
    assert_eq!(new.get("bag").await.unwrap().spec.grams, 7);
}

#[tokio::test(start_paused = true)]
async fn of_two_operators_in_a_test_that_convert_one_kind_the_other_takes_over_at_once() {
    let cluster = TestCluster::builder().embedded().start().await;
    let start = async |name: &str| {
        let manager = Manager::new(cluster.client()).name(name).install::<v1::Bag>();
        let running = cluster.spawn(manager.runnable(WebhookServer::new(webhooks())));
        running.settled().await;
        running
    };
    let (first, second) = (start("bags").await, start("sacks").await);
    let definitions = cluster.client().all::<CustomResourceDefinition>();
    let clock = cluster.client().environment().clock.clone();
    let version =
        async || definitions.get(DEFINITION).await.unwrap().metadata.resource_version.unwrap();
    clock.sleep(Duration::from_secs(3)).await;
    let written = version().await;
    clock.sleep(Duration::from_secs(600)).await;
    assert_eq!(version().await, written, "they do not write in turn");
    let old = cluster.client().namespace::<v1beta1::Bag>(cluster.namespace());
    old.create(&v1beta1::Bag::new("bag", v1beta1::BagSpec { weight: 7 })).await.unwrap();
    let new = cluster.client().namespace::<v1::Bag>(cluster.namespace());
    assert_eq!(new.get("bag").await.unwrap().spec.grams, 7);
    assert_eq!(second.stop().await, Exit::Drained);
    clock.sleep(Duration::from_millis(100)).await;
    assert_eq!(new.get("bag").await.unwrap().spec.grams, 7);
    assert_eq!(first.stop().await, Exit::Drained);
}

async fn w4_a_cache_that_needs_conversions_of_its_own_operator_fills(
    client: &Client,
    namespace: &str,
) {
    let mounted = Mounted::new(&format!("bags-{namespace}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let options = ConfigurationOptions::new("bags", "operators").url(url);
    let options = options.ca_bundle(mounted.authority.clone());
    let mut definition = v1::Bag::crd().unwrap();
    definition.spec.conversion =
        webhooks().configurations(&options).unwrap().conversions.remove(DEFINITION);
    client.all::<CustomResourceDefinition>().create(&definition).await.unwrap();
    let old = client.namespace::<v1beta1::Bag>(namespace);
    eventually("the stored version is served", async || old.list().await.is_ok()).await;
    for weight in 0..3 {
        let name = format!("bag-{weight}");
        old.create(&v1beta1::Bag::new(&name, v1beta1::BagSpec { weight })).await.unwrap();
    }

    let server = WebhookServer::new(webhooks())
        .certificates(MountedFiles::new(&mounted.folder))
        .listener(listener);
    let manager = Manager::new(client.clone()).quiet().without_signals().runnable(server);
    let running = manager.start();
    // Its list is in the hub's version: the API server asks this operator to convert all of it.
    let _cache = running.informers().pinned::<v1::Bag>();
    eventually("the cache is filled", async || {
        let readiness = running.readiness();
        let has_cache = readiness.checks.iter().any(|check| check.name.starts_with("cache "));
        has_cache && readiness.is_ready()
    })
    .await;
    stop(running).await;
}

/// Starts an operator at a URL, and waits until it converts.
async fn at_url(client: &Client, namespace: &str) -> Running {
    let server = WebhookServer::new(webhooks()).url("https://localhost:0");
    let manager = Manager::new(client.clone()).name("bags").runnable(server);
    let running = manager.quiet().without_signals().start();
    let (definitions, new) = (client.all(), client.namespace::<v1::Bag>(namespace));
    eventually("the definition has its conversion", async || {
        let definition: CustomResourceDefinition = definitions.get(DEFINITION).await.unwrap();
        let service = json!(definition.spec.conversion)["webhook"]["clientConfig"]["url"].take();
        service.as_str().is_some_and(|url| url.starts_with("https://localhost:"))
    })
    .await;
    // Lists may come from a cache of the API server: a write is converted.
    let change = || Patch::Merge(json!({ "metadata": { "labels": { "seen": "yes" } } }));
    eventually("objects are converted", async || {
        new.patch("bag-1", change()).dry_run().await.is_ok()
    })
    .await;
    running
}

async fn stop(running: Running) {
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}

async fn a_process_at_a_url_gives_back_what_was_there_before_it(client: &Client, namespace: &str) {
    let definitions = client.all::<CustomResourceDefinition>();
    let definition = async || definitions.get(DEFINITION).await.unwrap();
    let before = definition().await.spec.conversion;
    let running = at_url(client, namespace).await;
    let during = definition().await;
    assert_ne!(during.spec.conversion, before);
    stop(running).await;
    let after = definition().await;
    assert_eq!(after.spec.conversion, before);
    assert!(!after.metadata.annotations.unwrap_or_default().contains_key(ANNOTATION));

    // A process that was killed leaves this.
    let kept = &during.metadata.annotations.unwrap()[ANNOTATION];
    let mut left = json!(during.spec.conversion);
    left["webhook"]["clientConfig"]["service"] = Value::Null;
    let patch = json!({
        "metadata": { "annotations": { ANNOTATION: kept } }, "spec": { "conversion": left },
    });
    definitions.patch(DEFINITION, Patch::Merge(patch)).await.unwrap();
    assert_eq!(definition().await.spec.conversion, during.spec.conversion);
    let running = at_url(client, namespace).await;
    fields_of_a_newer_definition_survive_their_storage(client, namespace).await;
    stop(running).await;
    assert_eq!(definition().await.spec.conversion, before);
}

async fn fields_of_a_newer_definition_survive_their_storage(client: &Client, namespace: &str) {
    let definitions = client.all::<CustomResourceDefinition>();
    let mut definition = json!(definitions.get(DEFINITION).await.unwrap());
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        let is_hub = version["name"] == "v1";
        let properties =
            &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        if is_hub {
            properties["tag"] = json!({ "type": "string" });
        }
        properties["note"] = json!({ "type": "string" });
    }
    let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
    definitions.replace(&definition).await.unwrap();
    let bags = client.dynamic(v1::Bag::static_info().unwrap(), Some(namespace));
    let spec = json!({ "grams": 9, "tag": "only in v1", "note": "in both" });
    eventually("the newer definition is in force", async || {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let written = bags.patch("bag-0", patch).await;
        written.is_ok_and(|bag| json!(bag)["spec"] == spec)
    })
    .await;
    // Stored in v1beta1, which prunes the tag.
    let stored = client.dynamic(v1beta1::Bag::static_info().unwrap(), Some(namespace));
    let stored = json!(stored.get("bag-0").await.unwrap());
    assert_eq!(stored["spec"], json!({ "weight": 9, "note": "in both" }));
    assert_eq!(json!(bags.get("bag-0").await.unwrap())["spec"], spec);
    let patch = Patch::Merge(json!({ "spec": { "note": "changed" } }));
    let changed = json!(bags.patch("bag-0", patch).await.unwrap());
    let spec = json!({ "grams": 9, "tag": "only in v1", "note": "changed" });
    assert_eq!(changed["spec"], spec);
}
