//! The kinds of locks against an API server: the embedded one, or the real one with
//! `WINDLASS_TEST_SERVER=real`.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints};
use k8s_openapi::api::events::v1::Event;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::api::Patch;
use crate::error::ErrorKind;
use crate::leader::{Elector, LEADER_ANNOTATION, LeaderElection, LockKind};
use crate::resource::ResourceExt;

fn elector(cluster: &TestCluster, kind: LockKind, identity: &str) -> Elector {
    let settings = LeaderElection::new("ops")
        .identity(identity)
        .namespace(cluster.namespace())
        .resource_lock(kind);
    Elector::new(settings, &cluster.client()).unwrap()
}

async fn annotation<K: crate::resource::Whole>(cluster: &TestCluster) -> Value {
    let object = cluster.client().namespace::<K>(cluster.namespace()).get("ops").await.unwrap();
    serde_json::from_str(object.annotation(LEADER_ANNOTATION).unwrap()).unwrap()
}

#[tokio::test]
async fn mechanism_36_legacy_locks_keep_the_record_in_an_annotation_as_client_go_did() {
    let (cluster, stop) = (TestCluster::start().await, CancellationToken::new());
    for (kind, word) in [(LockKind::ConfigMaps, "ConfigMap"), (LockKind::Endpoints, "Endpoints")] {
        let term = elector(&cluster, kind, "first").campaign(&stop).await.unwrap();
        let read = async || match kind {
            LockKind::ConfigMaps => annotation::<ConfigMap>(&cluster).await,
            _ => annotation::<Endpoints>(&cluster).await,
        };
        let record = read().await;
        assert_eq!(record["holderIdentity"], "first", "{word}");
        assert_eq!(record["leaseDurationSeconds"], 15);
        assert_eq!(record["leaderTransitions"], 0);
        assert!(record["acquireTime"].is_string() && record["renewTime"].is_string());
        term.end(true).await;
        assert_eq!(read().await["holderIdentity"], "");
        let next = elector(&cluster, kind, "second").campaign(&stop).await.unwrap();
        assert_eq!(read().await["leaderTransitions"], 1);
        next.end(true).await;
        let events = cluster.client().namespace::<Event>(cluster.namespace()).list().await.unwrap();
        let regards = |event: &Event| {
            event.regarding.as_ref().and_then(|object| object.kind.clone()).as_deref() == Some(word)
        };
        assert!(events.items.iter().any(regards), "mechanism 42: events are on the {word}");
    }
}

#[tokio::test]
async fn what_others_write_to_the_object_of_a_legacy_lock_stays_and_changes_no_lease() {
    let (cluster, stop) = (TestCluster::start().await, CancellationToken::new());
    let elector = elector(&cluster, LockKind::ConfigMaps, "first");
    let term = elector.campaign(&stop).await.unwrap();
    let maps = cluster.client().namespace::<ConfigMap>(cluster.namespace());
    maps.patch("ops", Patch::Merge(json!({ "data": { "kept": "yes" } }))).await.unwrap();
    term.end(true).await;
    let map = maps.get("ops").await.unwrap();
    assert_eq!(map.data.unwrap()["kept"], "yes");
    let record = annotation::<ConfigMap>(&cluster).await;
    assert_eq!(record["holderIdentity"], "", "the release found the new resourceVersion");
}

#[tokio::test]
async fn a_record_that_client_go_wrote_is_understood_and_a_broken_one_is_told() {
    let (cluster, stop) = (TestCluster::start().await, CancellationToken::new());
    let maps = cluster.client().namespace::<ConfigMap>(cluster.namespace());
    let text = r#"{"holderIdentity":"","leaseDurationSeconds":1,"acquireTime":"2021-02-03T04:05:06Z","renewTime":null,"leaderTransitions":41}"#;
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": { "name": "ops", "annotations": { LEADER_ANNOTATION: text } }
    }))
    .unwrap();
    maps.create(&map).await.unwrap();
    let term = elector(&cluster, LockKind::ConfigMaps, "ann").campaign(&stop).await.unwrap();
    assert_eq!(annotation::<ConfigMap>(&cluster).await["leaderTransitions"], 42);
    term.end(true).await;

    let broken = json!({ "metadata": { "annotations": { LEADER_ANNOTATION: "{" } } });
    maps.patch("ops", Patch::Merge(broken)).await.unwrap();
    let lock = LockKind::ConfigMaps.lock(&cluster.client(), cluster.namespace(), "ops", "ann");
    let error = lock.get().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.to_string().contains("correct or remove the annotation"), "{error}");
}

#[tokio::test]
async fn an_election_moves_from_a_config_map_to_a_lease_without_a_gap() {
    let (cluster, stop) = (TestCluster::start().await, CancellationToken::new());
    let old = elector(&cluster, LockKind::ConfigMaps, "old").campaign(&stop).await.unwrap();
    let both = LockKind::ConfigMapsLeases.lock(&cluster.client(), cluster.namespace(), "ops", "b");
    assert_eq!(both.get().await.unwrap().unwrap().record.holder.as_deref(), Some("old"));
    old.end(true).await;
    let step = elector(&cluster, LockKind::ConfigMapsLeases, "step").campaign(&stop).await.unwrap();
    let leases = cluster.client().namespace::<Lease>(cluster.namespace());
    let holder = async || leases.get("ops").await.unwrap().spec.unwrap().holder_identity;
    assert_eq!(holder().await.as_deref(), Some("step"));
    assert_eq!(annotation::<ConfigMap>(&cluster).await["holderIdentity"], "step");
    step.end(true).await;
    let new = elector(&cluster, LockKind::Leases, "new").campaign(&stop).await.unwrap();
    assert_eq!(holder().await.as_deref(), Some("new"));
    new.end(true).await;
}
