//! Discovery: the kinds that a server lists, and the time until they are served.

use std::time::Duration;

use serde_json::json;
use windlass::ErrorKind;
use windlass::discovery::{NoMatch, VersionReadState};
use windlass::resource::{DynamicObject, ResourceInfo, Scope};
use windlass::testing::TestCluster;

use crate::bench::Bench;

const LIMIT: Duration = Duration::from_secs(60);

fn trinkets() -> ResourceInfo {
    ResourceInfo {
        group: "discovery.windlass.dev".into(),
        version: "v1".into(),
        kind: "Trinket".into(),
        plural: "trinkets".into(),
        scope: Scope::Namespaced,
    }
}

fn definition() -> DynamicObject {
    let schema = json!({
        "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    });
    let version = |name: &str, stored: bool| {
        json!({
            "name": name, "served": true, "storage": stored, "schema": schema,
            "subresources": { "status": {}, "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
            }},
        })
    };
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "trinkets.discovery.windlass.dev" },
        "spec": {
            "group": "discovery.windlass.dev",
            "scope": "Namespaced",
            "names": {
                "plural": "trinkets", "singular": "trinket", "kind": "Trinket",
                "listKind": "TrinketList", "shortNames": ["trk"], "categories": ["toys"],
            },
            "versions": [version("v1beta1", false), version("v1", true)],
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn a_kind_is_known_by_every_name_as_soon_as_the_wait_for_it_ends() {
    let bench = Bench::start().await;
    let client = bench.cluster.client();
    let discovery = client.discovery();
    let error = discovery.find("trinkets").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(NoMatch::of(&error).unwrap().groups.contains(&"apps".to_owned()), "{error:?}");
    let short = Duration::from_secs(1);
    let error = discovery.wait_served(&trinkets(), short).await.unwrap_err();
    assert!(error.to_string().contains("the group version is not served"), "{error}");

    let definition = definition();
    let definitions = discovery.resource_of(&definition.api_version, &definition.kind).await;
    let definitions = client.dynamic(definitions.unwrap(), None);
    definitions.create(&definition).await.unwrap();
    discovery.wait_served(&trinkets(), LIMIT).await.unwrap();
    for name in [
        "trinkets",
        "trinket",
        "trk",
        "Trinket",
        "trinkets.discovery.windlass.dev",
        "trk.v1.discovery.windlass.dev",
    ] {
        assert_eq!(discovery.find(name).await.unwrap(), trinkets(), "{name}");
    }
    let older = discovery.resource_for("Trinket", Some("discovery.windlass.dev"), Some("v1beta1"));
    assert_eq!(older.await.unwrap().version, "v1beta1");

    let catalog = discovery.catalog().await.unwrap();
    let served = catalog.find("trinkets").unwrap();
    assert_eq!(
        (&*served.short_names, &*served.categories),
        (&["trk".to_owned()][..], &["toys".to_owned()][..])
    );
    assert!(served.supports("watch") && served.supports("deletecollection"));
    let scale = served.subresource("scale").unwrap();
    assert_eq!((&*scale.group, &*scale.version, &*scale.kind), ("autoscaling", "v1", "Scale"));
    assert_eq!(served.subresource("status").unwrap().kind, "Trinket");

    let object = json!({ "metadata": { "name": "ring" }, "spec": { "replicas": 1 } });
    let info = discovery.find("trk").await.unwrap();
    let api = client.dynamic(info, Some(bench.cluster.namespace()));
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    // Established and listed, the storage may still be made ready: the client waits as the answer
    // asks.
    assert_eq!(api.create(&object).await.unwrap().kind, "Trinket");

    definitions.delete("trinkets.discovery.windlass.dev").await.unwrap();
    bench
        .eventually("the definition is gone", async || {
            definitions.get_opt("trinkets.discovery.windlass.dev").await.unwrap().is_none()
        })
        .await;
    bench
        .eventually("its kind is gone", async || {
            discovery.invalidate();
            discovery.find("trinkets").await.is_err()
        })
        .await;
}

#[tokio::test]
async fn built_in_kinds_have_the_names_that_kubectl_knows() {
    let cluster = TestCluster::start().await;
    let discovery = cluster.client().discovery();
    for name in ["deploy", "deployments", "deployments.apps", "Deployment", "deployment.v1.apps"] {
        let found = discovery.find(name).await.unwrap();
        assert_eq!((&*found.group, &*found.version, &*found.kind), ("apps", "v1", "Deployment"));
    }
    for (name, kind, scope) in [
        ("cm", "ConfigMap", Scope::Namespaced),
        ("ns", "Namespace", Scope::Cluster),
        ("events", "Event", Scope::Namespaced),
        ("crd", "CustomResourceDefinition", Scope::Cluster),
        ("leases", "Lease", Scope::Namespaced),
    ] {
        let found = discovery.find(name).await.unwrap();
        assert_eq!((&*found.kind, found.scope), (kind, scope), "{name}");
    }
    assert_eq!(discovery.find("ev").await.unwrap().group, "", "the core group goes first");
    assert_eq!(discovery.find("ev.events.k8s.io").await.unwrap().group, "events.k8s.io");
    let namespaces = discovery.kind_for("namespaces", Some(""), None).await.unwrap();
    assert_eq!(namespaces.kind, "Namespace");
    let catalog = discovery.catalog().await.unwrap();
    let broken: Vec<_> =
        catalog.unread().filter(|v| v.freshness != VersionReadState::Stale).collect();
    assert!(broken.is_empty(), "{broken:?}");
    let pods = catalog.find("pods").unwrap();
    assert_eq!(pods.subresource("eviction").unwrap().group, "policy");
    assert_eq!(
        catalog.version("apps", "v1").unwrap().resource("deployments").unwrap().info.kind,
        "Deployment"
    );
}

#[tokio::test]
async fn a_user_without_rights_may_find_out_what_is_served() {
    let cluster = TestCluster::start().await;
    let groups = ["system:authenticated"];
    let discovery = cluster.client_as("somebody", &groups).discovery();
    assert_eq!(discovery.find("deploy").await.unwrap().kind, "Deployment");
    assert!(discovery.server_version().await.unwrap().at_least(1, 30));
}

#[tokio::test]
async fn the_schema_of_a_group_version_can_be_fetched() {
    let cluster = TestCluster::start().await;
    let discovery = cluster.client().discovery();
    let version = discovery.server_version().await.unwrap();
    assert!(version.to_string().starts_with("v1."), "{version}");
    let index = discovery.openapi_v3().await.unwrap();
    assert!(index.hash("apis/apps/v1").is_some_and(|hash| !hash.is_empty()), "{index:?}");
    for name in ["apps/v1", "apis/apps/v1"] {
        let document = discovery.openapi_v3_document(name).await.unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        assert!(schemas.keys().any(|name| name.ends_with("apps.v1.Deployment")), "{name}");
    }
}
