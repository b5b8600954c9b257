//! A status that is written field by field, of a type that serde reads only whole.

use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::api::{Api, Patch};
use windlass::prelude::*;
use windlass::testing::TestCluster;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "test.windlass.dev", version = "v1", namespaced)]
struct Demanding {
    metadata: ObjectMeta,
    spec: DemandingSpec,
    status: Option<DemandingStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct DemandingSpec {
    host: String,
}

/// No field is an `Option`, and none has `#[serde(default)]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DemandingStatus {
    conditions: Conditions,
    public_url: String,
    phase: Phase,
    ready_replicas: i32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Phase {
    Running,
    #[default]
    Pending,
}

/// Sets a condition first; records the part of its write that a later reconcile reads.
#[derive(Controller)]
#[controller(for = Demanding)]
struct Demandings {
    has_read: AtomicBool,
}

impl Reconciler for Demandings {
    type Object = Demanding;

    async fn reconcile(&self, object: &Demanding, cx: &Context<Self>) -> Result {
        cx.set_condition(met("Ready", "Serving", "")).await?;
        if object.status.as_ref().is_some_and(|status| status.conditions.is_met("Ready")) {
            self.has_read.store(true, Ordering::SeqCst);
            cx.patch_status(json!({ "publicUrl": format!("https://{}", object.spec.host) }))
                .await?;
        }
        Ok(Action::done())
    }
}

#[tokio::test]
async fn the_first_write_of_a_status_may_be_a_condition_alone_and_is_read_by_the_type_after_it() {
    let cluster = TestCluster::start().await;
    if cluster.is_embedded() {
        tokio::time::pause();
    }
    cluster.install::<Demanding>().await;
    let objects: Api<Demanding> = cluster.client().namespace(cluster.namespace());
    objects.create(&Demanding::new("home", DemandingSpec { host: "a".to_owned() })).await.unwrap();
    let controller = Demandings { has_read: AtomicBool::new(false) };
    let running = cluster.spawn(Manager::new(cluster.client()).controller(controller));
    running.settled().await;
    let status = objects.get("home").await.unwrap().status.expect("a status");
    assert!(status.conditions.is_met("Ready"));
    assert_eq!((status.phase, status.ready_replicas), (Phase::Pending, 0));

    // A change makes the controller read the partial status out of the cache, and write another
    // part.
    objects.patch("home", Patch::Merge(json!({ "spec": { "host": "b" } }))).await.unwrap();
    running.settled().await;
    let status = objects.get("home").await.unwrap().status.expect("a status");
    assert_eq!(status.public_url, "https://b");
    let informers = running.informers().status();
    assert!(informers.iter().all(|informer| informer.invalid == 0), "{informers:?}");
    assert!(running.busy_report().iter().all(|(_, busy_report)| busy_report.now.is_empty()));
    running.stop().await;
}

#[tokio::test]
async fn any_part_of_a_status_is_a_valid_first_write() {
    let cluster = TestCluster::start().await;
    cluster.install::<Demanding>().await;
    let objects: Api<Demanding> = cluster.client().namespace(cluster.namespace());
    for (name, part) in [
        ("a", json!({})),
        ("b", json!({ "publicUrl": "https://b" })),
        ("c", json!({ "phase": "Running" })),
        ("d", json!({ "readyReplicas": 3, "conditions": [] })),
    ] {
        objects
            .create(&Demanding::new(name, DemandingSpec { host: "a".to_owned() }))
            .await
            .unwrap();
        let patch = Patch::Merge(json!({ "status": part }));
        let written = objects.patch(name, patch).status().await.unwrap();
        assert!(written.status.is_some(), "{name}");
        assert_eq!(objects.get(name).await.unwrap().resource_version(), written.resource_version());
    }
    let status = async |name: &str| objects.get(name).await.unwrap().status.expect("a status");
    assert_eq!(status("b").await.public_url, "https://b");
    assert_eq!(status("c").await.phase, Phase::Running);
    assert_eq!(status("d").await.ready_replicas, 3);
}
