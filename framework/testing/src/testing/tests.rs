//! Promises of election and manager, against an API server: the embedded one, or the real server
//! with `WINDLASS_TEST_SERVER=real`.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use windlass_client::api::Patch;
use windlass_core::resource::{DynamicObject, ResourceExt, ResourceInfo, Scope};
use windlass_runtime::leader::{Elector, LeaderElection, Leadership};
use windlass_runtime::manager::ManifestOptions;

#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, short = "ws")]
struct Website {
    metadata: ObjectMeta,
    spec: WebsiteSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct WebsiteSpec {
    host: String,
}

fn elector(cluster: &TestCluster, identity: &str) -> Elector {
    let settings = LeaderElection::new("ops").identity(identity).namespace(cluster.namespace());
    Elector::new(settings, &cluster.client()).unwrap()
}

#[tokio::test]
async fn a_lease_passes_from_a_leader_that_stops_to_the_one_that_waits() {
    let cluster = TestCluster::start().await;
    let stop = CancellationToken::new();
    let first = elector(&cluster, "first").campaign(&stop).await.unwrap();
    let leases = cluster.client().namespace::<Lease>(cluster.namespace());
    let label = json!({ "metadata": { "labels": { "kept": "yes" } } });
    leases.patch("ops", Patch::Merge(label)).await.unwrap();

    let second = elector(&cluster, "second");
    let mut status = second.watch();
    let campaign = tokio::spawn({
        let stop = stop.clone();
        async move { second.campaign(&stop).await.unwrap() }
    });
    let waits = |now: &Leadership| *now == Leadership::Candidate { holder: Some("first".into()) };
    status.wait_for(waits).await.unwrap();
    first.end(true).await;
    let term = campaign.await.unwrap();

    let lease = leases.get("ops").await.unwrap();
    assert_eq!(lease.label("kept"), Some("yes"), "a renewal keeps what others wrote");
    let spec = lease.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some("second"));
    assert_eq!(spec.lease_transitions, Some(1));
    assert!(spec.acquire_time.is_some() && spec.renew_time.is_some());
    assert!(term.gate().validity().is_some());

    let events = cluster.client().namespace::<Event>(cluster.namespace());
    let notes: Vec<String> =
        events.list().await.unwrap().items.into_iter().filter_map(|event| event.note).collect();
    assert!(notes.contains(&"first became leader".to_owned()), "{notes:?}");
    assert!(notes.contains(&"first stopped leading".to_owned()), "{notes:?}");
}

#[tokio::test]
async fn a_definition_is_served_once_install_returns_and_can_be_installed_again() {
    let cluster = TestCluster::start().await;
    cluster.install::<Website>().await;
    cluster.install::<Website>().await;
    let api = cluster.client().namespace::<Website>(cluster.namespace());
    let site = Website {
        metadata: ObjectMeta { name: Some("home".into()), ..ObjectMeta::default() },
        spec: WebsiteSpec { host: "home.example".into() },
    };
    let created = api.create(&site).await.unwrap();
    assert_eq!(created.spec.host, "home.example");
    assert_eq!(created.namespace(), Some(cluster.namespace()));
}

#[tokio::test]
async fn a_server_accepts_the_manifests_as_they_are_printed() {
    let cluster = TestCluster::start().await;
    let manager = Manager::new(cluster.client()).leader_election("ops").install::<Website>();
    let options = ManifestOptions::default().namespace(cluster.namespace());
    let text = manager.manifests(&options).unwrap();
    let documents: Vec<DynamicObject> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(documents.len(), 11, "{text}");
    for document in documents {
        let info = info_of(&document);
        let api = cluster.client().dynamic(info, document.namespace());
        let outcome = api.apply(document.name(), &document).force().dry_run().await;
        let stored = outcome.unwrap_or_else(|error| panic!("{}: {error:?}", document.kind));
        assert_eq!(stored.kind, document.kind);
    }
}

pub(super) fn info_of(object: &DynamicObject) -> ResourceInfo {
    let (group, version) =
        object.api_version.split_once('/').unwrap_or(("", object.api_version.as_str()));
    let cluster = object.namespace().is_none();
    ResourceInfo {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        kind: object.kind.clone().into(),
        plural: format!("{}s", object.kind.to_lowercase()).replace("ys", "ies").into(),
        scope: if cluster { Scope::Cluster } else { Scope::Namespaced },
    }
}

#[tokio::test]
async fn every_cluster_has_a_namespace_of_its_own() {
    let (a, b) = (TestCluster::start().await, TestCluster::builder().seed(2).start().await);
    assert_ne!(a.namespace(), b.namespace());
    let namespaces = a.client().all::<Namespace>();
    assert_eq!(namespaces.get(a.namespace()).await.unwrap().name(), a.namespace());
    assert_ne!(a.new_namespace().await, a.namespace());
    assert_eq!(a.client().default_namespace(), a.namespace());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_of_its_own_starts_and_repeats_itself() {
    let name = || async { TestCluster::builder().embedded().start().await.namespace().to_owned() };
    assert_eq!(name().await, name().await);
}
