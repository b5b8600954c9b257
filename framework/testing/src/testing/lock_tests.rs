//! The kinds of locks against an API server: the embedded one, or the real server with
//! `WINDLASS_TEST_SERVER=real`.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints};
use k8s_openapi::api::events::v1::Event;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use windlass_client::api::Patch;
use windlass_core::error::ErrorKind;
use windlass_core::resource::ResourceExt;
use windlass_runtime::leader::{
    Elector, LEADER_ANNOTATION, LeaderElection, LeaderElectionRecord, LockKind, ObservedRecord,
};

const NEVER: &str = "9999-12-31T23:59:59.999999Z";

fn elector(cluster: &TestCluster, kind: LockKind, identity: &str) -> Elector {
    let settings = LeaderElection::new("ops")
        .identity(identity)
        .namespace(cluster.namespace())
        .resource_lock(kind);
    Elector::new(settings, &cluster.client()).unwrap()
}

async fn annotation<K: windlass_core::resource::FullObject>(cluster: &TestCluster) -> Value {
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
async fn an_election_moves_from_a_config_map_to_a_lease() {
    let (cluster, stop) = (TestCluster::start().await, CancellationToken::new());
    if cluster.is_embedded() {
        tokio::time::pause();
    }
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

#[tokio::test]
async fn l1_mechanism_34_every_lock_takes_a_first_record_and_updates_of_the_stored_version_only() {
    let cluster = TestCluster::start().await;
    for kind in [
        LockKind::Leases,
        LockKind::ConfigMaps,
        LockKind::Endpoints,
        LockKind::ConfigMapsLeases,
        LockKind::EndpointsLeases,
    ] {
        let name = kind.as_str();
        let make = |who| kind.lock(&cluster.client(), cluster.namespace(), name, who);
        let (ann, bob) = (make("ann"), make("bob"));
        assert_eq!((ann.identity(), bob.identity()), ("ann", "bob"));
        let place = ann.describe();
        assert!(place.contains(name) && place.contains(cluster.namespace()), "{place}");
        assert_eq!(ann.get().await.unwrap(), None);
        let record = |who: &str, transitions| LeaderElectionRecord {
            holder: Some(who.to_owned()),
            duration: Duration::from_secs(15),
            acquired: Some(Timestamp::from_second(1_700_000_000).unwrap()),
            renewed: Some(Timestamp::from_second(1_700_000_009).unwrap()),
            transitions,
            ..LeaderElectionRecord::default()
        };
        let missing = ann.update("1", record("ann", 0)).await.unwrap_err();
        assert!(matches!(missing.kind(), ErrorKind::Conflict | ErrorKind::NotFound), "{missing}");
        let first = ann.create(record("ann", 0)).await.unwrap();
        assert_eq!((&first.record, first.is_partial), (&record("ann", 0), false), "{name}");
        let seen = bob.get().await.unwrap().unwrap();
        assert_eq!(seen, first, "{name}");
        let again = bob.create(record("bob", 0)).await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists, "{name}");
        let second = bob.update(&seen.version, record("bob", 1)).await.unwrap();
        assert_eq!(second.record, record("bob", 1));
        assert_ne!(second.version, first.version);
        let late = ann.update(&first.version, record("ann", 0)).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Conflict, "{name}");
        assert_eq!(ann.get().await.unwrap(), Some(second), "{name}");
        // Neither after the process has seen the stored version meanwhile: the decision to write
        // was made before.
        let late = ann.update(&first.version, record("ann", 0)).await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Conflict, "{name}");
        ann.record_event(format!("{name}: a note")).await.unwrap();
    }
    let events = cluster.client().namespace::<Event>(cluster.namespace()).list().await.unwrap();
    let about = |event: &Event| {
        let object = event.regarding.clone().unwrap();
        assert!(object.uid.is_some() && event.reason.as_deref() == Some("LeaderElection"));
        assert_eq!(event.type_.as_deref(), Some("Normal"));
        assert_eq!(event.reporting_instance.as_deref(), Some("ann"));
        format!("{}: {}", object.kind.unwrap(), event.note.as_deref().unwrap())
    };
    let mut notes: Vec<String> = events.items.iter().map(about).collect();
    notes.sort();
    let expected = [
        "ConfigMap: configmaps: a note",
        "ConfigMap: configmapsleases: a note",
        "Endpoints: endpoints: a note",
        "Endpoints: endpointsleases: a note",
        "Lease: configmapsleases: a note",
        "Lease: endpointsleases: a note",
        "Lease: leases: a note",
    ];
    assert_eq!(notes, expected);
}

#[tokio::test]
async fn a_lease_tells_of_its_own_changes_and_of_its_deletion_as_of_a_free_lock() {
    let cluster = TestCluster::start().await;
    let make = |name| LockKind::Leases.lock(&cluster.client(), cluster.namespace(), name, "ann");
    let (lock, other) = (make("ops"), make("other"));
    let record = |transitions| LeaderElectionRecord {
        holder: Some("ann".to_owned()),
        // A real API server refuses zero.
        duration: Duration::from_secs(15),
        transitions,
        ..LeaderElectionRecord::default()
    };
    let first = lock.create(record(0)).await.unwrap();
    other.create(record(7)).await.unwrap();
    let (told, mut heard) = tokio::sync::mpsc::channel(8);
    let tell = move |record: ObservedRecord| told.try_send(record).unwrap();
    let script = async {
        assert_eq!(heard.recv().await.unwrap(), first);
        let second = lock.update(&first.version, record(1)).await.unwrap();
        assert_eq!(heard.recv().await.unwrap(), second);
        let leases = cluster.client().namespace::<Lease>(cluster.namespace());
        leases.delete("ops").await.unwrap();
        let gone = heard.recv().await.unwrap();
        assert_eq!(gone.record, LeaderElectionRecord::default());
        assert_ne!(gone.version, second.version);
    };
    tokio::select! {
        biased;
        ended = lock.follow(&tell).expect("a Lease can be watched") => panic!("{ended:?}"),
        () = script => {}
    }
}

/// Writes a time of renewal that jiff cannot hold, or a text that is none.
async fn spoil(cluster: &TestCluster, kind: LockKind) {
    let client = cluster.client();
    if kind == LockKind::Leases {
        let leases = client.namespace::<Lease>(cluster.namespace());
        let never = json!({ "spec": { "renewTime": NEVER } });
        return drop(leases.patch("ops", Patch::Merge(never)).await.unwrap());
    }
    let mut record = annotation::<ConfigMap>(cluster).await;
    record["renewTime"] = json!("never");
    let text = json!({ "metadata": { "annotations": { LEADER_ANNOTATION: record.to_string() } } });
    let maps = client.namespace::<ConfigMap>(cluster.namespace());
    maps.patch("ops", Patch::Merge(text)).await.unwrap();
}

async fn renew_time(cluster: &TestCluster, kind: LockKind) -> Value {
    if kind == LockKind::ConfigMaps {
        return annotation::<ConfigMap>(cluster).await["renewTime"].clone();
    }
    let info = windlass_core::resource::ResourceInfo::of::<Lease>();
    let leases = cluster.client().dynamic(info, Some(cluster.namespace()));
    leases.get("ops").await.unwrap().rest["spec"]["renewTime"].clone()
}

#[tokio::test]
async fn d10_a_time_of_renewal_that_never_comes_or_is_none_stops_no_election() {
    let (cluster, stop) = (TestCluster::start().await, CancellationToken::new());
    if cluster.is_embedded() {
        tokio::time::pause();
    }
    let clock = cluster.client().environment().clock.clone();
    for kind in [LockKind::Leases, LockKind::ConfigMaps] {
        let term = elector(&cluster, kind, "ann").campaign(&stop).await.unwrap();
        spoil(&cluster, kind).await;
        let spoilt = renew_time(&cluster, kind).await;
        let mut looks = 0;
        while renew_time(&cluster, kind).await == spoilt && looks < 100 {
            clock.sleep(Duration::from_millis(100)).await;
            looks += 1;
        }
        assert!(looks < 100, "{kind:?}: it is not renewed any more");
        assert!(!term.lost().is_cancelled(), "{kind:?}");
        // A record left behind with such a time is followed like any other.
        term.end(false).await;
        spoil(&cluster, kind).await;
        let next = elector(&cluster, kind, "bob").campaign(&stop).await.unwrap();
        assert_ne!(renew_time(&cluster, kind).await, spoilt);
        next.end(true).await;
    }
}

#[tokio::test]
async fn an_object_whose_time_never_comes_is_read_and_written_back_as_it_was() {
    let cluster = TestCluster::start().await;
    let leases = cluster.client().namespace::<Lease>(cluster.namespace());
    let lease = json!({
        "metadata": { "name": "ops" },
        "spec": { "holderIdentity": "a", "acquireTime": NEVER, "renewTime": NEVER },
    });
    let info = windlass_core::resource::ResourceInfo::of::<Lease>();
    let dynamic = cluster.client().dynamic(info, Some(cluster.namespace()));
    dynamic.create(&serde_json::from_value(lease).unwrap()).await.unwrap();

    let mut read = leases.get("ops").await.unwrap();
    let time = |lease: &Lease| lease.spec.as_ref().unwrap().renew_time.as_ref().unwrap().0;
    assert_eq!(time(&read).to_string(), "9999-12-30T22:00:00.999999Z");
    assert_eq!(time(&leases.list().await.unwrap().items[0]), time(&read));
    let mut changes = leases.watch().await.unwrap();
    assert!(changes.next().await.unwrap().is_ok());

    read.metadata.labels = Some([("seen".to_owned(), "yes".to_owned())].into());
    leases.replace(&read).await.unwrap();
    let stored = dynamic.get("ops").await.unwrap();
    assert_eq!(stored.label("seen"), Some("yes"));
    assert_eq!(stored.rest["spec"]["renewTime"], NEVER);
    assert_eq!(stored.rest["spec"]["acquireTime"], NEVER);

    let label = json!({ "metadata": { "labels": { "seen": "again" } } });
    assert_eq!(time(&leases.patch("ops", Patch::Merge(label)).await.unwrap()), time(&read));
    assert_eq!(dynamic.get("ops").await.unwrap().rest["spec"]["renewTime"], NEVER);
}
