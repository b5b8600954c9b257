//! Tests of the stand-ins, by subject.

mod admission;
mod disruption;
mod jobs;
mod network;
mod pods;
mod sets;

use serde_json::{Value, json};

use crate::http::test_support::Client;
use crate::{ApiServer, Builder, ControllerSet};

const APPS: &str = "/apis/apps/v1/namespaces/default";
const BATCH: &str = "/apis/batch/v1/namespaces/default";
const CORE: &str = "/api/v1/namespaces/default";

/// Returns a server with all controllers, at midnight on the first of January 2026.
async fn start() -> (ApiServer, Client) {
    start_with(ControllerSet::ALL).await
}

async fn start_with(set: ControllerSet) -> (ApiServer, Client) {
    let server = Builder::default().seed(1).epoch(1_767_225_600).controller_set(set).start();
    let client = Client::of(&server).await;
    (server, client)
}

/// Waits until the controllers have done all their work.
async fn settle(server: &ApiServer) {
    let mut seen = u64::MAX;
    while server.revision() != seen {
        seen = server.revision();
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    }
}

/// Creates an object and waits for the consequences.
async fn make(server: &ApiServer, client: &mut Client, url: &str, object: Value) -> Value {
    let reply = client.post(url, object).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    settle(server).await;
    reply.value
}

/// Changes an object and waits for the consequences.
async fn merge(server: &ApiServer, client: &mut Client, url: &str, patch: Value) {
    let reply = client.merge(url, patch).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    settle(server).await;
}

/// Returns a template of Pods with annotations.
fn template(app: &str, policy: &str, annotations: Value) -> Value {
    json!({
        "metadata": {"labels": {"app": app}, "annotations": annotations},
        "spec": {"restartPolicy": policy, "containers": [{
            "name": "c", "image": "i", "ports": [{"name": "web", "containerPort": 8080}]}]},
    })
}

/// Returns a workload with Pods that run on.
fn workload(name: &str, replicas: u32) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": template(name, "Always", json!({}))}})
}

/// Returns the names of the Pods of the namespace `default`.
fn pods(server: &ApiServer) -> Vec<String> {
    names(&server.list_objects("", "pods", "default"))
}

fn names(objects: &[Value]) -> Vec<String> {
    objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns an object of the namespace `default`.
fn get(server: &ApiServer, group: &str, plural: &str, name: &str) -> Value {
    server.get_object(group, plural, "default", name).unwrap_or_default()
}

/// Returns the reasons of all events about an object.
fn reasons(server: &ApiServer, name: &str) -> Vec<String> {
    let mut events = server.list_objects("", "events", "default");
    events.retain(|event| event["involvedObject"]["name"] == name);
    events.sort_by_key(|event| {
        event["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap()
    });
    events.iter().map(|event| event["reason"].as_str().unwrap().to_owned()).collect()
}
