//! Incidents of the website example: recorded, also on several threads in real time, replayed on a
//! paused clock, and explored from their ends.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;
use windlass::api::{Api, Patch};
use windlass::manager::RecordingOptions;
use windlass::testing::{
    Exploration, Recording, Replay, RunningOperator, TestCluster, TestClusterBuilder,
};

use crate::website::example::{self, Website};

/// The website operator on a cluster, recorded.
struct Incident {
    cluster: TestCluster,
    sites: Api<Website>,
    running: RunningOperator,
}

fn site(name: &str, host: &str) -> Website {
    let site = json!({ "metadata": { "name": name }, "spec": { "host": host, "replicas": 2 } });
    serde_json::from_value(site).unwrap()
}

impl Incident {
    async fn start(cluster: TestClusterBuilder, options: RecordingOptions) -> Self {
        let cluster = cluster.stand_ins(true).start().await;
        cluster.install::<Website>().await;
        let running = cluster.spawn(example::operator(cluster.client()).recording(options));
        let sites = cluster.client().namespace(cluster.namespace());
        Self { cluster, sites, running }
    }

    /// Sites come, one takes the host of another, one is scaled, a Deployment is edited by another
    /// user, and a site goes.
    async fn happens(&self) {
        for (name, host) in [("a", "a.example"), ("b", "b.example"), ("thief", "a.example")] {
            self.sites.create(&site(name, host)).await.unwrap();
        }
        self.running.settled().await;
        let scale = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
        self.sites.patch("b", scale).await.unwrap();
        self.running.settled().await;
        let deployments = self.cluster.client().namespace::<Deployment>(self.cluster.namespace());
        let edit = Patch::Merge(json!({ "spec": { "replicas": 9 } }));
        deployments.patch("b", edit).await.unwrap();
        self.running.settled().await;
        self.sites.delete("a").await.unwrap();
        self.running.settled().await;
    }

    fn recorded(&self) -> String {
        self.running.recording().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn an_incident_of_the_website_is_replayed_request_by_request() {
    let embedded = TestCluster::builder().embedded();
    let incident = Incident::start(embedded, RecordingOptions::default()).await;
    incident.happens().await;
    let text = incident.recorded();
    let recording = Recording::parse(&text).unwrap();
    assert!(recording.is_whole());
    let report = Replay::new(&recording).run(example::operator);
    println!("{report}");
    assert_eq!(report.difference(), None);
    assert!(report.requests() >= 10, "{report}");

    // The same operator differs from a recording in which another one wrote.
    let other = text.replace("nginx:1.29", "nginx:1.28");
    let report = Replay::new(&Recording::parse(&other).unwrap()).run(example::operator);
    let difference = report.difference().unwrap();
    let expected = "image: \"nginx:1.28\" in the recording, \"nginx:1.29\" now";
    assert!(difference.contains(expected), "{difference}");
    assert!(
        difference.contains("by \"website\"") && difference.contains("/deployments/"),
        "{difference}"
    );
    incident.running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_that_lost_its_beginning_is_replayed_and_explored_from_its_end() {
    // The exchange before the last few seconds leaves the recording.
    let options = RecordingOptions::default().time(Duration::from_secs(2));
    let incident = Incident::start(TestCluster::builder(), options).await;
    incident.happens().await;
    let clock = incident.cluster.client().environment().clock.clone();
    while incident.recorded().contains("\"start\":") {
        clock.sleep(Duration::from_millis(100)).await;
    }
    let scale = Patch::Merge(json!({ "spec": { "replicas": 5 } }));
    incident.sites.patch("b", scale).await.unwrap();
    incident.running.settled().await;
    let recording = Recording::parse(&incident.recorded()).unwrap();
    assert!(!recording.is_whole());
    let report = Replay::new(&recording).run(example::operator);
    println!("{report}");
    assert_eq!(report.difference(), None);
    assert!(report.requests() >= 1, "{report}");

    let namespace = incident.cluster.namespace().to_owned();
    let report = Exploration::new().runs(40).run(|world| {
        let (recording, namespace) = (recording.clone(), namespace.clone());
        async move {
            world.install::<Website>().await;
            world.restore(&recording);
            let sites = world.client().namespace::<Website>(&namespace);
            let deployments = world.client().namespace::<Deployment>(&namespace);
            let replicas = async || deployments.get("b").await.unwrap().spec.unwrap().replicas;
            assert_eq!(replicas().await, Some(5), "the recorded state is there");
            world.operator(example::operator);
            let scale = Patch::Merge(json!({ "spec": { "replicas": 1 } }));
            sites.patch("b", scale).await.unwrap();
            world.eventually("b is scaled", async || replicas().await == Some(1)).await;
        }
    });
    println!("{report}");
    assert!(report.findings().is_empty(), "{report}");
    incident.running.stop().await;
}

/// Several recordings: a thread that is stopped between the begin of a reconcile and the read of
/// its object exchanges these two for a piece of a watch (DESIGN.md, 279), which happens on a busy
/// machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_recording_of_four_workers_on_four_threads_is_replayed_request_by_request() {
    for _ in 0..4 {
        if replay_of_four_workers().await.is_none() {
            return;
        }
    }
    assert_eq!(replay_of_four_workers().await, None);
}

/// Records reconciles on four threads, and returns the difference of the replay.
async fn replay_of_four_workers() -> Option<String> {
    let incident = Incident::start(TestCluster::builder(), RecordingOptions::default()).await;
    // All at once, and two of each host: reconciles of one object read the others in the cache.
    let create = |number: u32| {
        let site = site(&format!("site-{number}"), &format!("{}.example", number / 2));
        let sites = incident.sites.clone();
        tokio::spawn(async move { sites.create(&site).await.unwrap() })
    };
    for created in (0..12).map(create).collect::<Vec<_>>() {
        created.await.unwrap();
    }
    let scale = |number: u32| {
        let scale = Patch::Merge(json!({ "spec": { "replicas": number } }));
        let sites = incident.sites.clone();
        tokio::spawn(async move { sites.patch(&format!("site-{number}"), scale).await.unwrap() })
    };
    for scaled in (3..9).map(scale).collect::<Vec<_>>() {
        scaled.await.unwrap();
    }
    incident.running.settled().await;
    let recording = Recording::parse(&incident.recorded()).unwrap();
    let report = Replay::new(&recording).run(example::operator);
    println!("{report}");
    incident.running.stop().await;
    let difference = report.difference().map(ToString::to_string);
    assert!(difference.is_some() || report.requests() >= 12, "{report}");
    difference
}
