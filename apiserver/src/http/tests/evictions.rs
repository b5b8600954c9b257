//! Evictions of Pods: phases, readiness, and the bounds of disruption budgets.

use serde_json::{Value, json};

use crate::http::test_support::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// Creates a Pod in a phase; a ready Pod has the condition.
async fn pod(client: &mut Client, name: &str, phase: &str, ready: bool) {
    let pod = json!({"metadata": {"name": name, "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(client.post(PODS, pod).await.code, 201);
    let mut status = json!({"phase": phase});
    if ready {
        status["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    }
    let url = format!("{PODS}/{name}/status");
    assert_eq!(client.merge(&url, json!({"status": status})).await.code, 200);
}

/// Creates a budget with a status.
async fn budget(client: &mut Client, name: &str, spec: Value, mut status: Value) {
    let mut whole = json!({"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        whole[field] = value.clone();
    }
    let reply = client.post(BUDGETS, json!({"metadata": {"name": name}, "spec": whole})).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    status["observedGeneration"] = json!(1);
    let reply = client.merge(&format!("{BUDGETS}/{name}/status"), json!({"status": status})).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
}

async fn evict(client: &mut Client, name: &str) -> Reply {
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    client.post(&format!("{PODS}/{name}/eviction"), eviction).await
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_two_budgets_is_not_evicted() {
    let (_server, mut client) = start().await;
    pod(&mut client, "p", "Running", true).await;
    for name in ["x", "y"] {
        budget(&mut client, name, json!({}), json!({"disruptionsAllowed": 5})).await;
    }
    let reply = evict(&mut client, "p").await;
    assert_eq!(reply.code, 500, "{}", reply.text);
    let text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    assert_eq!(reply.message(), text);
    let held = client.get(&format!("{BUDGETS}/x")).await;
    assert_eq!(held.value["status"]["disruptionsAllowed"], 5);
}

#[tokio::test(start_paused = true)]
async fn budgets_count_neither_ended_nor_pending_pods_but_those_of_unknown_phase() {
    let (_server, mut client) = start().await;
    budget(&mut client, "x", json!({}), json!({"disruptionsAllowed": 0})).await;
    for (phase, code) in [("Succeeded", 201), ("Failed", 201), ("Pending", 201), ("Unknown", 429)] {
        pod(&mut client, "p", phase, true).await;
        let reply = evict(&mut client, "p").await;
        assert_eq!(reply.code, code, "{phase}: {}", reply.text);
    }
}

#[tokio::test(start_paused = true)]
async fn the_policy_for_unhealthy_pods_decides_about_them() {
    let (_server, mut client) = start().await;
    let none = json!({"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 2});
    budget(&mut client, "x", json!({"unhealthyPodEvictionPolicy": "AlwaysAllow"}), none.clone())
        .await;
    pod(&mut client, "ready", "Running", true).await;
    pod(&mut client, "unready", "Running", false).await;
    assert_eq!(evict(&mut client, "ready").await.code, 429);
    assert_eq!(evict(&mut client, "unready").await.code, 201);
    client.delete(&format!("{BUDGETS}/x")).await;
    budget(&mut client, "y", json!({}), none).await;
    pod(&mut client, "unready", "Running", false).await;
    assert_eq!(evict(&mut client, "unready").await.code, 429, "the application is disrupted");
    let healthy = json!({"status": {"currentHealthy": 2}});
    client.merge(&format!("{BUDGETS}/y/status"), healthy).await;
    assert_eq!(evict(&mut client, "unready").await.code, 201);
    let held = client.get(&format!("{BUDGETS}/y")).await;
    assert_eq!(held.value["status"]["disruptedPods"], Value::Null, "no disruption was spent");
}

#[tokio::test(start_paused = true)]
async fn the_last_disruption_is_noted_by_the_server() {
    let (_server, mut client) = start().await;
    budget(&mut client, "x", json!({}), json!({"disruptionsAllowed": 1})).await;
    pod(&mut client, "p", "Running", true).await;
    assert_eq!(evict(&mut client, "p").await.code, 201);
    let held = client.get(&format!("{BUDGETS}/x")).await.value;
    assert_eq!(held["status"]["disruptionsAllowed"], 0);
    assert_eq!(held["status"]["conditions"][0]["reason"], "InsufficientPods");
    let managers = held["metadata"]["managedFields"].as_array().unwrap();
    assert!(managers.iter().any(|one| one["manager"] == "kube-apiserver"), "{managers:?}");
}

#[tokio::test(start_paused = true)]
async fn evictions_that_nobody_confirms_come_to_an_end() {
    let (_server, mut client) = start().await;
    let mut status = json!({"disruptionsAllowed": 9, "disruptedPods": {}});
    for number in 0..2001 {
        status["disruptedPods"][format!("q{number}")] = json!("2026-01-01T00:00:00Z");
    }
    budget(&mut client, "x", json!({}), status).await;
    pod(&mut client, "p", "Running", true).await;
    let reply = evict(&mut client, "p").await;
    assert_eq!(reply.code, 403, "{}", reply.text);
    assert!(reply.message().contains("DisruptedPods map too big"), "{}", reply.text);
}
