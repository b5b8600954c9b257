//! A status that is written field by field, of a type that serde reads only whole, and one that is
//! written once another object has the name.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Notify;
use windlass::api::{Api, Patch};
use windlass::prelude::*;
use windlass::testing::{RunningOperator, TestCluster};

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

/// Writes the status of the first object after another one has taken the name.
#[derive(Controller, Clone, Default)]
#[controller(for = Demanding)]
struct Latecomers {
    has_begun: Arc<Notify>,
    is_replaced: Arc<Notify>,
    /// Codes of the answers.
    answers: Arc<Mutex<Vec<Option<u16>>>>,
}

impl Reconciler for Latecomers {
    type Object = Demanding;

    async fn reconcile(&self, object: &Demanding, cx: &Context<Self>) -> Result {
        if object.spec.host == "old" {
            self.has_begun.notify_one();
            self.is_replaced.notified().await;
            let whole = DemandingStatus { public_url: "old".to_owned(), ..Default::default() };
            let answers = [
                cx.patch_status(json!({ "publicUrl": "old" })).await,
                cx.set_status(whole).await,
                cx.set_condition(met("Ready", "Old", "")).await,
            ];
            let codes = answers.into_iter().map(|it| it.err().and_then(|error| error.code()));
            self.answers.lock().unwrap().extend(codes);
        }
        Ok(Action::done())
    }
}

impl Latecomers {
    async fn start(cluster: &TestCluster) -> (Self, RunningOperator, Api<Demanding>) {
        cluster.install::<Demanding>().await;
        let controller = Self::default();
        let manager = Manager::new(cluster.client()).controller(controller.clone());
        let running = cluster.spawn(manager);
        running.settled().await;
        (controller, running, cluster.client().namespace(cluster.namespace()))
    }

    /// Lets the first reconcile go on, and requires that none of its writes met the new object.
    async fn check(&self, running: RunningOperator, objects: &Api<Demanding>) {
        self.is_replaced.notify_one();
        running.settled().await;
        assert_eq!(*self.answers.lock().unwrap(), [Some(409), Some(409), Some(409)]);
        let newer = objects.get("home").await.unwrap();
        assert!(newer.status.is_none(), "{newer:?}");
        running.stop().await;
    }
}

fn hosted(host: &str) -> Demanding {
    Demanding::new("home", DemandingSpec { host: host.to_owned() })
}

#[tokio::test]
async fn the_status_of_a_deleted_object_is_not_written_to_another_one_of_its_name() {
    let cluster = TestCluster::start().await;
    let (controller, running, objects) = Latecomers::start(&cluster).await;
    objects.create(&hosted("old")).await.unwrap();
    controller.has_begun.notified().await;
    objects.delete("home").await.unwrap();
    objects.create(&hosted("new")).await.unwrap();
    controller.check(running, &objects).await;
}

#[tokio::test]
async fn an_unlocked_copy_changes_the_status_of_its_own_object_alone_whatever_was_written_since() {
    let cluster = TestCluster::start().await;
    cluster.install::<Demanding>().await;
    let objects: Api<Demanding> = cluster.client().namespace(cluster.namespace());
    let copy = |object: &Demanding, url: &str| {
        let mut copy = objects.patcher(object).unlocked();
        copy.status.get_or_insert_default().public_url = url.to_owned();
        copy
    };
    let old = objects.create(&hosted("old")).await.unwrap();
    objects.patch("home", Patch::Merge(json!({ "spec": { "host": "other" } }))).await.unwrap();
    copy(&old, "https://old").send().await.unwrap();
    let written = objects.get("home").await.unwrap();
    assert_eq!(
        (written.spec.host, written.status.unwrap().public_url),
        ("other".into(), "https://old".into())
    );

    objects.delete("home").await.unwrap();
    objects.create(&hosted("new")).await.unwrap();
    let refused = copy(&old, "https://late").send().await.unwrap_err();
    assert_eq!(refused.code(), Some(409), "{refused}");
    let newer = objects.get("home").await.unwrap();
    assert!(newer.status.is_none(), "{newer:?}");
}

/// A patch that fits the version alone, or nothing, and names another object.
#[tokio::test]
async fn another_uid_is_refused_in_a_patch_of_an_object_and_has_no_effect_in_one_of_a_status() {
    let cluster = TestCluster::start().await;
    cluster.install::<Demanding>().await;
    let objects: Api<Demanding> = cluster.client().namespace(cluster.namespace());
    objects.create(&hosted("old")).await.unwrap();
    let uid = "5f6e3c0c-0000-4000-8000-000000000000";
    for is_guarded in [false, true] {
        let mut metadata = json!({ "uid": uid });
        if is_guarded {
            metadata["resourceVersion"] =
                objects.get("home").await.unwrap().resource_version().into();
        }
        let mut of_object = metadata.clone();
        of_object["finalizers"] = json!(["example.dev/x"]);
        let patch = Patch::Merge(json!({ "metadata": of_object }));
        let refused = objects.patch("home", patch).await.unwrap_err();
        assert_eq!(refused.code(), Some(422), "{refused}");
        let url = format!("https://{is_guarded}");
        let patch = json!({ "metadata": metadata, "status": { "publicUrl": url } });
        let written = objects.patch("home", Patch::Merge(patch)).status().await.unwrap();
        assert_eq!(written.status.unwrap().public_url, url);
    }
}
