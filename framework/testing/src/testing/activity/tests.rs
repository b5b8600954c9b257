//! Coverage and timeline of a small operator, on either server.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_client::client::Client;
use windlass_core::conditions::{Conditions, met, unmet};
use windlass_core::resource::ResourceExt;
use windlass_runtime::controller::{Action, Context, Failure, Reconciler, Result};
use windlass_runtime::events::Warning;
use windlass_runtime::manager::Manager;

use super::coverage::{CoverageReport, StoredCoverage};
use crate::testing::TestCluster;

#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(group = "coverage.example.dev", version = "v1", namespaced)]
struct Room {
    metadata: ObjectMeta,
    spec: RoomSpec,
    status: Option<RoomStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct RoomSpec {
    size: i32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct RoomStatus {
    conditions: Conditions,
}

#[derive(windlass_macros::Controller)]
#[controller(for = Room, owns(ConfigMap), name = "rooms")]
struct Rooms;

impl Reconciler for Rooms {
    type Object = Room;

    async fn reconcile(&self, room: &Room, cx: &Context<Self>) -> Result<Action> {
        if room.spec.size < 0 {
            cx.event(Warning, "Negative", "a room without a place");
            cx.set_condition(unmet("Ready", "Negative", "")).await?;
            return Err(Failure::terminal("a negative size"));
        }
        let metadata = ObjectMeta { name: Some(room.name().into()), ..ObjectMeta::default() };
        cx.apply_owned(ConfigMap { metadata, ..ConfigMap::default() }).await?;
        cx.set_condition(met("Ready", "Furnished", "")).await?;
        Ok(Action::done())
    }
}

fn operator(client: Client) -> Manager {
    Manager::new(client).controller(Rooms)
}

#[tokio::test]
async fn ends_reasons_conditions_and_events_are_counted_and_the_rest_was_never_seen() {
    let cluster = TestCluster::start().await;
    cluster.install::<Room>().await;
    let running = cluster.spawn(operator(cluster.client()));
    let rooms = cluster.client().namespace::<Room>(cluster.namespace());
    rooms.create(&Room::new("a", RoomSpec { size: 1 })).await.expect("a room");
    running.settled().await;
    let first = running.coverage();
    assert_ne!(first.seen("controller rooms", "succeeded"), 0, "{first}");
    assert_eq!(first.seen("controller rooms", "failed"), 0, "{first}");
    assert_eq!(first.seen("condition Ready of rooms.coverage.example.dev", "True"), 1, "{first}");
    assert!(first.to_string().contains("never"), "{first}");

    rooms.create(&Room::new("b", RoomSpec { size: -1 })).await.expect("a room");
    running.settled().await;
    let second = running.coverage();
    assert_ne!(second.seen("controller rooms", "failed"), 0, "{second}");
    assert_ne!(second.seen("controller rooms", "because of: changed"), 0, "{second}");
    assert_eq!(second.seen("condition Ready of rooms.coverage.example.dev", "False Negative"), 1);
    let both = first.and(&second);
    assert_eq!(both.seen("condition Ready of rooms.coverage.example.dev", "True"), 2, "{both}");
    running.stop().await;
}

/// An empty folder for a test of that name.
fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn processes_of_one_number_count_together_in_one_folder() {
    let folder = folder("coverage-numbers");
    // As after a number has come again: each has the number of this process, and a state of its
    // own.
    let (mut first, mut second) = (StoredCoverage::new(), StoredCoverage::new());
    let report = CoverageReport::of_events("Warning Taken", 1);
    std::fs::create_dir_all(&folder).expect("made");
    // Where files cannot be locked.
    for kept in [&mut first, &mut second] {
        kept.add_own(&report, &folder).expect("written");
    }
    first.add(&report, &folder).expect("written");
    second.add(&report, &folder).expect("written");
    first.add(&report, &folder).expect("written");
    let table = std::fs::read_to_string(folder.join("coverage.txt")).expect("a table");
    assert!(table.lines().any(|line| line.ends_with(" 5")), "{table}");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_run_with_a_process_for_each_test_keeps_one_file_of_counts() {
    let folder = folder("coverage-files");
    let report = CoverageReport::of_events("Normal Made", 1);
    for _ in 0..50 {
        StoredCoverage::new().add(&report, &folder).expect("written");
    }
    let names =
        std::fs::read_dir(&folder).expect("a folder").map(|file| file.expect("a file").file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["counts.json", "coverage.lock", "coverage.txt"]);
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn operators_that_end_at_once_are_all_counted() {
    let folder = folder("coverage-threads");
    let kept = parking_lot::Mutex::new(StoredCoverage::new());
    let others: Vec<_> = (0..3).map(|_| parking_lot::Mutex::new(StoredCoverage::new())).collect();
    std::thread::scope(|scope| {
        for kept in others.iter().chain([&kept, &kept, &kept]) {
            scope.spawn(|| {
                let report = CoverageReport::of_events("Normal Made", 1);
                (0..5).for_each(|_| kept.lock().add(&report, &folder).expect("written"));
            });
        }
    });
    let table = std::fs::read_to_string(folder.join("coverage.txt")).expect("a table");
    assert!(table.lines().any(|line| line.ends_with(" 30")), "{table}");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[tokio::test]
async fn a_timeline_has_the_writes_with_the_reasons_of_their_reconciles() {
    let cluster = TestCluster::start().await;
    cluster.install::<Room>().await;
    let running = cluster.spawn(operator(cluster.client()));
    let rooms = cluster.client().namespace::<Room>(cluster.namespace());
    rooms.create(&Room::new("a", RoomSpec { size: 1 })).await.expect("a room");
    running.settled().await;
    let timeline = running.timeline();
    let namespace = cluster.namespace();
    // `started` or `changed`, by the moment at which the cache has shown the room.
    let write = format!("apply configmaps {namespace}/a  [Room {namespace}/a, because of: ");
    assert!(timeline.contains(&write), "{timeline}");
    assert!(timeline.contains("rooms.coverage.example.dev/status"), "{timeline}");
    running.stop().await;
}

#[tokio::test]
async fn the_audit_log_of_a_cluster_has_the_writes() {
    let cluster = TestCluster::builder().embedded().audit(true).start().await;
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".to_owned());
    cluster.client().namespace(cluster.namespace()).create(&map).await.expect("a map");
    let audit = cluster.audit();
    assert!(
        audit.iter().any(|it| it["verb"] == "create" && it["resource"] == "configmaps"),
        "{audit:?}"
    );
}
