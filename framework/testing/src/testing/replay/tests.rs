//! Operators that are recorded on a cluster, and replayed without one.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use serde_json::json;
use windlass_client::api::{Api, Patch};
use windlass_core::error::ErrorKind;
use windlass_core::resource::{ResourceExt, Selector};
use windlass_runtime::controller::{
    Action, Context, ControllerBuilder, Failure, Reconciler, Result, predicates,
};
use windlass_runtime::manager::RecordingOptions;

use super::*;
use crate::testing::faults::{Fault, FaultAction as Do};
use crate::testing::{Exploration, RunningOperator, TestCluster};

/// Copies each map with the label into one behind it, with the value of a Secret's name.
#[derive(Clone, Copy)]
struct Copies {
    /// Added to each copy.
    mark: Option<&'static str>,
    /// Time after which each map is reconciled again.
    again: Option<Duration>,
    /// Whether the Secret is left alone.
    is_lazy: bool,
}

const COPIES: Copies = Copies { mark: None, again: None, is_lazy: false };

impl windlass_core::rbac::Owns<ConfigMap> for Copies {}
impl windlass_core::rbac::Owns<Secret> for Copies {}
impl windlass_core::rbac::Owns<Pod> for Copies {}

impl Reconciler for Copies {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
        let namespace = map.namespace().unwrap_or_default();
        let data = map.data.clone().unwrap_or_default();
        if data.contains_key("fails") {
            return Err(Failure::from("this map fails"));
        }
        let secrets = cx.client().namespace::<Secret>(namespace);
        let secret = if self.is_lazy { None } else { secrets.get("password").opt().await? };
        let mut copy = ConfigMap::default();
        copy.metadata.name = Some(format!("{}-copy", map.name()));
        let mark = self.mark.map(|mark| ("mark".to_owned(), mark.to_owned()));
        copy.data = Some(data.into_iter().chain(mark).collect());
        cx.apply_owned(copy).await?;
        if let Some(secret) = secret {
            let mut copy = Secret::default();
            copy.metadata.name = Some(format!("{}-password", map.name()));
            copy.data = secret.data;
            cx.apply_owned(copy).await?;
        }
        Ok(self.again.map_or(Action::done(), Action::requeue_after))
    }
}

fn operator(copies: Copies, client: Client) -> Manager {
    let builder = ControllerBuilder::new()
        .name("copies")
        .when(predicates::labelled(Selector::everything().equals("copied", "yes")))
        .owns::<ConfigMap>()
        .owns::<Secret>();
    Manager::new(client).controller_with(copies, builder)
}

fn map(name: &str, value: &str) -> ConfigMap {
    let text = json!({ "metadata": { "name": name, "labels": { "copied": "yes" } },
        "data": { "value": value } });
    serde_json::from_value(text).unwrap()
}

/// A recorded operator on a cluster.
struct Bench {
    cluster: TestCluster,
    maps: Api<ConfigMap>,
    running: RunningOperator,
}

impl Bench {
    async fn start(options: RecordingOptions) -> Self {
        let cluster = TestCluster::builder().embedded().start().await;
        let manager = operator(COPIES, cluster.client()).recording(options);
        Self::over(cluster, manager).await
    }

    async fn over(cluster: TestCluster, manager: Manager) -> Self {
        let running = cluster.spawn_unrestricted(manager);
        let maps = cluster.client().namespace(cluster.namespace());
        let mut secret = Secret::default();
        secret.metadata.name = Some("password".to_owned());
        secret.data = Some(BTreeMap::from([("word".to_owned(), ByteString(b"canary".to_vec()))]));
        let secrets = cluster.client().namespace::<Secret>(cluster.namespace());
        secrets.create(&secret).await.unwrap();
        Self { cluster, maps, running }
    }

    async fn set(&self, name: &str, value: &str) {
        let patch = Patch::Merge(json!({ "data": { "value": value } }));
        self.maps.patch(name, patch).await.unwrap();
        self.running.settled().await;
    }

    /// Returns the recording so far.
    fn recorded(&self) -> Recording {
        Recording::parse(&self.running.recording().unwrap()).unwrap()
    }
}

/// An incident: creations, a refused and a lost write, a conflict of two users, a deletion.
async fn incident(bench: &Bench) {
    bench.maps.create(&map("a", "1")).await.unwrap();
    bench.maps.create(&map("b", "1")).await.unwrap();
    bench.running.settled().await;
    let faults = bench.cluster.server().faults();
    let write = |action, name| Fault::new(action).on("patch").resource("configmaps").name(name);
    let refused = faults.add(write(Do::Answer(500), "a-copy").times(1));
    bench.set("a", "2").await;
    let lost = faults.add(write(Do::ExecuteThenDrop, "b-copy").times(1));
    bench.set("b", "2").await;
    assert_eq!((refused.hits(), lost.hits()), (1, 1), "both writes were disturbed");
    let stranger = Patch::Merge(json!({ "data": { "value": "changed by another user" } }));
    bench.maps.patch("b-copy", stranger).await.unwrap();
    bench.running.settled().await;
    bench.maps.delete("a").await.unwrap();
    bench.running.settled().await;
}

fn played(recording: &Recording, copies: Copies) -> ReplayReport {
    Replay::new(recording).run(move |client| operator(copies, client))
}

#[tokio::test(start_paused = true)]
async fn a_recorded_incident_is_replayed_without_a_difference_again_and_again() {
    let bench = Bench::start(RecordingOptions::default()).await;
    incident(&bench).await;
    let recording = bench.recorded();
    assert!(recording.is_whole());
    for _ in 0..3 {
        replay(&recording, |client| operator(COPIES, client));
        let report = played(&recording, COPIES);
        assert!(report.reconciles() >= 5 && report.requests() >= 8, "{report}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_recording_that_began_in_the_middle_is_replayed_from_its_first_entry() {
    let options = RecordingOptions::default().time(Duration::from_secs(60));
    let bench = Bench::start(options).await;
    incident(&bench).await;
    bench.cluster.client().environment().clock.sleep(Duration::from_secs(600)).await;
    for value in ["3", "4", "5"] {
        bench.set("b", value).await;
    }
    let recording = bench.recorded();
    assert!(!recording.is_whole());
    let report = played(&recording, COPIES);
    assert_eq!(report.difference(), None);
    assert!(report.requests() >= 3, "{report}");
}

#[tokio::test(start_paused = true)]
async fn the_first_request_that_differs_is_named_with_both_values() {
    let bench = Bench::start(RecordingOptions::default()).await;
    incident(&bench).await;
    let recording = bench.recorded();
    let report = played(&recording, Copies { mark: Some("new"), ..COPIES });
    let text = report.to_string();
    assert!(text.contains("data.mark: nothing in the recording, \"new\" now"), "{text}");
    assert!(
        text.contains("PATCH /api/v1/namespaces/") && text.contains("configmaps/a-copy"),
        "{text}"
    );
    assert!(
        text.contains("the reconcile of ") && text.contains("by \"copies\" at 2026-01-01T"),
        "{text}"
    );
    let panicked = std::panic::catch_unwind(|| {
        replay(&recording, |client| operator(Copies { mark: Some("new"), ..COPIES }, client));
    });
    assert!(panicked.is_err());
}

#[tokio::test(start_paused = true)]
async fn missing_and_added_requests_and_other_ends_are_differences() {
    let bench = Bench::start(RecordingOptions::default()).await;
    incident(&bench).await;
    let recording = bench.recorded();
    let lazy = played(&recording, Copies { is_lazy: true, ..COPIES }).to_string();
    assert!(lazy.contains("/secrets/password is not sent"), "{lazy}");
    let again = Some(Duration::from_secs(30));
    let again = played(&recording, Copies { again, ..COPIES }).to_string();
    assert!(
        again.contains("\"succeeded, again in 30s\", and \"succeeded\" in the recording"),
        "{again}"
    );

    let bench = Bench::start(RecordingOptions::default()).await;
    let secrets = bench.cluster.client().namespace::<Secret>(bench.cluster.namespace());
    secrets.delete("password").await.unwrap();
    bench.maps.create(&map("a", "1")).await.unwrap();
    bench.running.settled().await;
    let text = bench.running.recording().unwrap();
    let other = text.replace("/secrets/password", "/secrets/other");
    let added = played(&Recording::parse(&other).unwrap(), COPIES).to_string();
    assert!(
        added.contains("/secrets/password is sent, which the recorded reconcile did not"),
        "{added}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failing_reconcile_fails_again_and_is_retried_at_its_recorded_times() {
    let bench = Bench::start(RecordingOptions::default()).await;
    bench.maps.create(&map("a", "1")).await.unwrap();
    bench.running.settled().await;
    let fails = Patch::Merge(json!({ "data": { "fails": "yes" } }));
    bench.maps.patch("a", fails).await.unwrap();
    bench.cluster.client().environment().clock.sleep(Duration::from_secs(20)).await;
    let mends = Patch::Merge(json!({ "data": { "fails": null } }));
    bench.maps.patch("a", mends).await.unwrap();
    bench.running.settled().await;
    let text = bench.running.recording().unwrap();
    assert!(text.matches("\"outcome\":\"failed\"").count() > 3, "{text}");
    let report = played(&Recording::parse(&text).unwrap(), COPIES);
    assert_eq!(report.difference(), None);
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_a_flag_limited_to_namespaces_is_limited_in_the_replay() {
    let cluster = TestCluster::builder().embedded().start().await;
    let manager = operator(COPIES, cluster.client()).recording(RecordingOptions::default());
    let manager = manager.namespaces([cluster.namespace()]);
    let bench = Bench::over(cluster, manager).await;
    incident(&bench).await;
    assert_eq!(played(&bench.recorded(), COPIES).difference(), None);
}

#[tokio::test(start_paused = true)]
async fn a_copied_secret_is_masked_in_the_recording_and_equal_in_the_replay() {
    let bench = Bench::start(RecordingOptions::default()).await;
    bench.maps.create(&map("a", "1")).await.unwrap();
    bench.running.settled().await;
    let text = bench.running.recording().unwrap();
    assert!(text.contains("a-password") && text.contains("bWFza2VkL"), "{text}");
    assert!(!text.contains("canary") && !text.contains("Y2FuYXJ5"), "{text}");
    assert_eq!(played(&Recording::parse(&text).unwrap(), COPIES).difference(), None);
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_caches_another_kind_differs_at_its_list() {
    let bench = Bench::start(RecordingOptions::default()).await;
    bench.maps.create(&map("a", "1")).await.unwrap();
    bench.running.settled().await;
    let report = Replay::new(&bench.recorded()).run(|client| {
        let builder = ControllerBuilder::new().name("copies").owns::<Pod>();
        Manager::new(client).controller_with(COPIES, builder)
    });
    let text = report.to_string();
    assert!(text.contains("caches /api/v1/pods, of which the recording has no objects"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_workload_goes_on_from_the_end_of_a_recording_or_from_an_earlier_time() {
    let bench = Bench::start(RecordingOptions::default()).await;
    bench.maps.create(&map("a", "1")).await.unwrap();
    bench.running.settled().await;
    let clock = bench.cluster.client().environment().clock.clone();
    let before = clock.wall();
    clock.sleep(Duration::from_secs(1)).await;
    bench.set("a", "2").await;
    let stored = bench.maps.get("a-copy").await.unwrap();
    let namespace = bench.cluster.namespace().to_owned();
    for (recording, value) in [(bench.recorded(), "2"), (bench.recorded().until(before), "1")] {
        let (uid, namespace) = (stored.metadata.uid.clone(), namespace.clone());
        let report = Exploration::new().runs(10).run(|world| {
            let (recording, uid, namespace) = (recording.clone(), uid.clone(), namespace.clone());
            async move {
                world.restore(&recording);
                let maps = world.client().namespace::<ConfigMap>(&namespace);
                let copy = maps.get("a-copy").await.unwrap();
                assert_eq!(copy.data.unwrap()["value"], value);
                assert_eq!(copy.metadata.uid, uid, "it is the same object");
                world.operator(|client| operator(COPIES, client));
                let patch = Patch::Merge(json!({ "data": { "value": "9" } }));
                maps.patch("a", patch).await.unwrap();
                let is_copied = async || {
                    maps.get("a-copy").await.is_ok_and(|copy| copy.data.unwrap()["value"] == "9")
                };
                world.eventually("the copy follows", is_copied).await;
            }
        });
        assert!(report.findings().is_empty(), "{report}");
    }
}

#[test]
fn a_text_that_is_no_recording_is_refused_with_the_line_and_the_reason() {
    let header = r#"{"recording":1,"operator":"a","framework":"w","namespace":"a","namespaces":[],"began":"2026-01-01T00:00:00Z","ended":"2026-01-01T00:01:00Z","seed":"1","isWhole":true}"#;
    assert!(Recording::parse(header).is_ok());
    let flawed = header.replace(":true}", r#":true,"flaw":"the caches are too large"}"#);
    let unknown = format!("{header}\n{{\"at\":\"2026-01-01T00:00:00Z\",\"event\":3}}");
    for (text, reason) in [
        ("", "line 1: it is empty"),
        ("nothing is recorded", "line 1: expected"),
        (&header.replace("\"recording\":1", "\"recording\":2"), "the format is 2"),
        (&flawed, "the caches are too large"),
        (&unknown, "line 2: there is no text `type`"),
        (&format!("{header}\n{{}}"), "line 2: it is no line of a recording"),
    ] {
        let error = Recording::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Decode);
        assert!(error.to_string().contains(reason), "{text}: {error}");
    }
    let error = Recording::read("no/such/file").unwrap_err();
    assert!(error.to_string().contains("no/such/file"), "{error}");
}
