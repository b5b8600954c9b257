//! Scale, eviction, tokens, logs.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};
use windlass::api::{Api, Patch};
use windlass::resource::{FullObject, ResourceExt};

use crate::bench::Bench;
use crate::gadget::gadget;

async fn created<K: FullObject>(bench: &Bench, object: Value) -> Api<K> {
    let api = bench.cluster.client().namespace::<K>(bench.cluster.namespace());
    api.create(&serde_json::from_value(object).unwrap()).await.unwrap();
    api
}

#[tokio::test]
async fn a_deployment_is_scaled_by_its_subresource() {
    let bench = Bench::start().await;
    let labels = json!({ "app": "web" });
    let api: Api<Deployment> = created(
        &bench,
        json!({ "metadata": { "name": "web" }, "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "web", "image": "nginx:1.29" }] },
            },
        }}),
    )
    .await;
    let scale = api.scale("web");
    let mut read = scale.get().await.unwrap();
    assert_eq!(read.spec.as_ref().unwrap().replicas, Some(1));
    read.spec.as_mut().unwrap().replicas = Some(2);
    scale.replace(&read).dry_run().await.unwrap();
    assert_eq!(api.get("web").await.unwrap().spec.unwrap().replicas, Some(1));
    scale.replace(&read).await.unwrap();
    assert_eq!(api.get("web").await.unwrap().spec.unwrap().replicas, Some(2));
    assert!(scale.replace(&read).await.unwrap_err().is_conflict(), "its version is old by now");
    let scaled = scale.to(3).await.unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(3));
    let status: Deployment = api.subresource("web", "status").get().await.unwrap();
    assert_eq!(status.spec.unwrap().replicas, Some(3));
}

#[tokio::test]
async fn what_has_no_scale_says_so() {
    let bench = Bench::start().await;
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    let error = bench.gadgets.scale("home").get().await.unwrap_err();
    assert!(
        error.is_not_found() && error.to_string().contains("no subresource `scale`"),
        "{error}"
    );
    let error = bench.gadgets.evict("home").await.unwrap_err();
    assert!(error.is_not_found() || error.is_method_not_supported(), "{error}");
}

#[tokio::test]
async fn an_eviction_asks_the_disruption_budget() {
    let bench = Bench::start().await;
    let labels = json!({ "app": "web" });
    let pods: Api<Pod> = created(
        &bench,
        json!({ "metadata": { "name": "web", "labels": labels }, "spec": {
            "containers": [{ "name": "web", "image": "nginx:1.29" }],
        }}),
    )
    .await;
    let running = json!({ "status": {
        "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }],
    }});
    pods.patch("web", Patch::Merge(running)).status().await.unwrap();
    let budgets: Api<PodDisruptionBudget> = created(
        &bench,
        json!({ "metadata": { "name": "web" }, "spec": {
            "minAvailable": 1, "selector": { "matchLabels": labels },
        }}),
    )
    .await;
    let allow = async |disruptions: i32| {
        let status = json!({ "status": {
            "observedGeneration": 1, "disruptionsAllowed": disruptions, "currentHealthy": 1,
            "desiredHealthy": 1 - disruptions, "expectedPods": 1,
        }});
        budgets.patch("web", Patch::Merge(status)).status().await.unwrap();
    };
    allow(0).await;
    let error = pods.evict("web").await.unwrap_err();
    assert!(error.is_disruption_budget(), "{error}");
    assert!(pods.get_opt("web").await.unwrap().is_some());
    allow(1).await;
    let uid = pods.get("web").await.unwrap().uid().to_owned();
    assert!(pods.evict("web").uid("another").await.unwrap_err().is_conflict());
    // The real server has charged the budget for that eviction.
    allow(1).await;
    pods.evict("web").uid(&uid).await.unwrap();
    pods.wait_deleted("web", &uid, std::time::Duration::from_secs(30)).await.unwrap();
}

#[tokio::test]
async fn an_eviction_as_a_dry_run_leaves_the_pod() {
    let bench = Bench::start().await;
    let pods: Api<Pod> = created(
        &bench,
        json!({ "metadata": { "name": "web" }, "spec": {
            "containers": [{ "name": "web", "image": "nginx:1.29" }],
        }}),
    )
    .await;
    let uid = pods.get("web").await.unwrap().uid().to_owned();
    pods.evict("web").dry_run().await.unwrap();
    let rehearsal = bench.cluster.client().dry_run();
    let rehearsed: Api<Pod> = rehearsal.namespace(bench.cluster.namespace());
    rehearsed.evict("web").uid(&uid).await.unwrap();
    let pod = pods.get("web").await.unwrap();
    assert!(pod.uid() == uid && !pod.is_terminating(), "{pod:?}");
}

#[tokio::test]
async fn a_token_of_a_service_account_is_issued_for_its_time() {
    let bench = Bench::start().await;
    let accounts: Api<ServiceAccount> =
        created(&bench, json!({ "metadata": { "name": "bot" } })).await;
    let hour = std::time::Duration::from_secs(3600);
    let token = accounts.token_request("bot").expires_in(hour).await.unwrap();
    assert_eq!(token.token.expose().split('.').count(), 3, "a signed token");
    let left = token.expires.duration_since(bench.clock().wall()).as_secs();
    assert!((3500..=3700).contains(&left), "{left} s");
    assert!(!format!("{token:?}").contains(token.token.expose()));
    let error = accounts.token_request("nobody").await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
}

#[tokio::test]
async fn a_pod_that_has_not_started_has_an_empty_log_and_a_wrong_container_is_refused() {
    let bench = Bench::start().await;
    let pods: Api<Pod> = created(
        &bench,
        json!({ "metadata": { "name": "web" }, "spec": {
            "containers": [{ "name": "web", "image": "nginx:1.29" }],
        }}),
    )
    .await;
    assert_eq!(pods.log("web").container("web").tail(1).text().await.unwrap(), "");
    assert!(pods.log("web").follow().await.unwrap().next_line().await.is_none());
    let error = pods.log("web").container("other").text().await.unwrap_err();
    assert!(error.is_bad_request() && error.to_string().contains("other"), "{error}");
    assert!(pods.log("other").follow().await.unwrap_err().is_not_found());
}
