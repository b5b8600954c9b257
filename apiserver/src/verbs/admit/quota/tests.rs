//! Tests of the amounts and scopes that quotas count, and of requests at the same time.

use serde_json::{Value, json};

use super::*;
use crate::http::test_support::*;
use crate::{ApiServer, Builder, ControllerSet};

const PODS: &str = "/api/v1/namespaces/default/pods";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

/// Starts a server that counts what namespaces hold.
async fn start() -> (ApiServer, Client) {
    start_with("resourcequota").await
}

async fn start_with(controllers: &str) -> (ApiServer, Client) {
    let set: ControllerSet = controllers.parse().unwrap();
    let server = Builder::default().seed(1).epoch(1_767_225_600).controller_set(set).start();
    let client = Client::of(&server).await;
    (server, client)
}

/// Returns a container that requests CPU.
fn container(name: &str, cpu: &str) -> Value {
    json!({"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}})
}

/// Returns a Pod with a container, and more fields of the spec.
fn pod(name: &str, cpu: &str, more: &Value) -> Value {
    let mut pod =
        json!({"metadata": {"name": name}, "spec": {"containers": [container("c", cpu)]}});
    for (field, value) in more.as_object().into_iter().flatten() {
        pod["spec"][field] = value.clone();
    }
    pod
}

/// Returns a quota.
fn quota(name: &str, spec: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn an_init_container_counts_if_it_needs_more_than_the_containers() {
    let (_server, mut client) = start().await;
    client.post(QUOTAS, quota("q", json!({"hard": {"requests.cpu": "4"}}))).await;
    let heavy = json!({"initContainers": [container("i", "5")]});
    let refused = client.post(PODS, pod("a", "1", &heavy)).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert!(refused.message().contains("requested: requests.cpu=5"), "{}", refused.text);
    let light = json!({"initContainers": [container("i", "3"), container("j", "3")]});
    let allowed = client.post(PODS, pod("b", "2", &light)).await;
    assert_eq!(allowed.code, 201, "{}", allowed.text);
    let held = client.get(&format!("{QUOTAS}/q")).await;
    assert_eq!(held.value["status"]["used"]["requests.cpu"], "3");
}

#[tokio::test(start_paused = true)]
async fn a_sidecar_counts_beside_containers_and_later_initializations() {
    let (_server, mut client) = start().await;
    client.post(QUOTAS, quota("q", json!({"hard": {"requests.cpu": "9"}}))).await;
    let mut sidecar = container("s", "2");
    sidecar["restartPolicy"] = json!("Always");
    let more = json!({"initContainers": [container("i", "3"), sidecar, container("j", "3")]});
    let reply = client.post(PODS, pod("a", "4", &more)).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    let held = client.get(&format!("{QUOTAS}/q")).await;
    assert_eq!(held.value["status"]["used"]["requests.cpu"], "6");
    let unnamed = json!({"initContainers": [{"name": "i", "image": "i"}]});
    let reply = client.post(PODS, pod("b", "1", &unnamed)).await;
    assert!(reply.message().contains("must specify requests.cpu for: i"), "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn a_quota_with_scopes_counts_the_pods_of_its_scopes_only() {
    let (_server, mut client) = start().await;
    for (name, spec) in [
        ("ending", json!({"hard": {"pods": "1"}, "scopes": ["Terminating"]})),
        ("modest", json!({"hard": {"pods": "0"}, "scopes": ["BestEffort"]})),
    ] {
        let reply = client.post(QUOTAS, quota(name, spec)).await;
        assert_eq!(reply.code, 201, "{}", reply.text);
    }
    let ends = json!({"activeDeadlineSeconds": 9});
    assert_eq!(client.post(PODS, pod("a", "1", &json!({}))).await.code, 201);
    assert_eq!(client.post(PODS, pod("b", "1", &ends)).await.code, 201);
    let refused = client.post(PODS, pod("c", "1", &ends)).await;
    assert!(refused.message().contains("exceeded quota: ending"), "{}", refused.text);
    let mut idle = pod("d", "1", &json!({}));
    idle["spec"]["containers"][0]["resources"] = json!({});
    let refused = client.post(PODS, idle).await;
    assert!(refused.message().contains("exceeded quota: modest"), "{}", refused.text);
}

#[test]
fn scopes_of_priority_classes_select_by_their_operator() {
    let registry = crate::kinds::registry::Registry::new();
    let kind = registry.table().resource("", "pods").unwrap();
    let classy = json!({"spec": {"priorityClassName": "high"}});
    let plain = json!({"spec": {}});
    for (operator, values, counts) in [
        ("In", json!(["high"]), [true, false]),
        ("In", json!(["low"]), [false, false]),
        ("NotIn", json!(["high"]), [false, true]),
        ("Exists", Value::Null, [true, false]),
        ("DoesNotExist", Value::Null, [false, true]),
    ] {
        let term = json!({"scopeName": "PriorityClass", "operator": operator, "values": values});
        let spec = json!({"scopeSelector": {"matchExpressions": [term]}});
        let found = [&classy, &plain].map(|pod| scopes::cover(&kind, &spec, pod));
        assert_eq!(found, counts, "{operator}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_at_the_same_time_do_not_exceed_a_quota_together() {
    let (server, mut client) = start().await;
    client.post(QUOTAS, quota("q", json!({"hard": {"configmaps": "5"}}))).await;
    let mut tasks = Vec::new();
    for writer in 0..8 {
        let mut client = Client::of(&server).await;
        tasks.push(tokio::spawn(async move {
            let url = "/api/v1/namespaces/default/configmaps";
            let mut created = 0;
            for number in 0..20 {
                let name = format!("m{writer}-{number}");
                created += i32::from(client.post(url, map(&name)).await.code == 201);
            }
            created
        }));
    }
    let mut created = 0;
    for task in tasks {
        created += task.await.unwrap();
    }
    assert_eq!(created, 5);
}

#[tokio::test(start_paused = true)]
async fn without_the_controller_quotas_limit_by_their_status_and_each_write_adds_to_the_use() {
    let (_server, mut client) = start_with("").await;
    client.post(QUOTAS, quota("q", json!({"hard": {"pods": "1", "requests.cpu": "4"}}))).await;
    for name in ["a", "b"] {
        let reply = client.post(PODS, pod(name, "1", &json!({}))).await;
        assert_eq!(reply.code, 201, "a limit that nobody counted: {}", reply.text);
    }
    let path = format!("{QUOTAS}/q/status");
    let mut status =
        json!({"status": {"hard": {"pods": "3", "requests.cpu": "4"}, "used": {"pods": "2"}}});
    client.merge(&path, status.clone()).await;
    let reply = client.post(PODS, pod("c", "1", &json!({}))).await;
    let unknown = "status unknown for quota: q, resources: requests.cpu";
    assert!(reply.code == 403 && reply.message().contains(unknown), "{}", reply.text);
    status["status"]["used"]["requests.cpu"] = json!("2");
    client.merge(&path, status).await;
    assert_eq!(client.post(PODS, pod("c", "1", &json!({}))).await.code, 201);
    let held = client.get(&format!("{QUOTAS}/q")).await;
    assert_eq!(held.value["status"]["used"], json!({"pods": "3", "requests.cpu": "3"}));
    let reply = client.post(PODS, pod("d", "1", &json!({}))).await;
    assert!(reply.message().contains("used: pods=3, limited: pods=3"), "{}", reply.text);
    client.delete(&format!("{PODS}/a")).await;
    let held = client.get(&format!("{QUOTAS}/q")).await;
    assert_eq!(held.value["status"]["used"]["pods"], "3", "a deletion is not counted");
}
