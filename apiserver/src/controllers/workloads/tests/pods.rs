use serde_json::{Value, json};

use super::*;

/// Returns a Pod with annotations.
fn pod(name: &str, policy: &str, annotations: Value) -> Value {
    let mut pod = template(name, policy, annotations);
    pod["metadata"]["name"] = json!(name);
    pod
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_a_node_and_an_address_and_is_ready() {
    let (server, mut client) = start().await;
    let url = format!("{CORE}/pods");
    make(&server, &mut client, &url, pod("a", "Always", json!({}))).await;
    make(&server, &mut client, &url, pod("b", "Always", json!({}))).await;
    let a = get(&server, "", "pods", "a");
    assert_eq!(a["spec"]["nodeName"], "windlass");
    let status = &a["status"];
    assert_eq!((&status["phase"], &status["podIP"]), (&json!("Running"), &json!("10.244.0.2")));
    assert_eq!(get(&server, "", "pods", "b")["status"]["podIP"], "10.244.0.3");
    let ready: Vec<&Value> = status["conditions"].as_array().unwrap().iter().collect();
    assert!(ready.iter().all(|one| one["status"] == "True"), "{ready:?}");
    assert_eq!(
        status["containerStatuses"][0]["state"]["running"]["startedAt"],
        "2026-01-01T00:00:00Z"
    );
    client.delete(&format!("{url}/a")).await;
    settle(&server).await;
    assert_eq!(pods(&server), ["b"], "nothing delays its end");
}

#[tokio::test(start_paused = true)]
async fn annotations_say_how_a_pod_runs() {
    let (server, mut client) = start().await;
    let url = format!("{CORE}/pods");
    let (state, code) = ("windlass.dev/pod-state", "windlass.dev/exit-code");
    for (name, policy, annotations, phase) in [
        ("a", "Always", json!({state: "Pending"}), "Pending"),
        ("b", "Always", json!({state: "Failed", code: "7"}), "Failed"),
        ("c", "Never", json!({}), "Succeeded"),
        ("d", "Never", json!({code: "7"}), "Failed"),
        ("e", "Never", json!({state: "Running"}), "Running"),
    ] {
        make(&server, &mut client, &url, pod(name, policy, annotations)).await;
        assert_eq!(get(&server, "", "pods", name)["status"]["phase"], phase, "{name}");
    }
    let ended = &get(&server, "", "pods", "d")["status"]["containerStatuses"][0]["state"];
    assert_eq!(ended["terminated"]["exitCode"], 7);
    let fail = json!({"metadata": {"annotations": {state: "Failed"}}});
    merge(&server, &mut client, &format!("{url}/e"), fail).await;
    assert_eq!(get(&server, "", "pods", "e")["status"]["phase"], "Failed");
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_for_a_node_that_suits_it() {
    let (server, mut client) = start().await;
    let mut picky = pod("a", "Always", json!({}));
    picky["spec"]["nodeSelector"] = json!({"disk": "fast"});
    make(&server, &mut client, &format!("{CORE}/pods"), picky).await;
    assert_eq!(get(&server, "", "pods", "a")["status"]["phase"], "Pending");
    let node = json!({"metadata": {"name": "n", "labels": {"disk": "fast"}}});
    make(&server, &mut client, "/api/v1/nodes", node).await;
    assert_eq!(get(&server, "", "pods", "a")["spec"]["nodeName"], "n");
}

#[tokio::test(start_paused = true)]
async fn without_the_kubelet_pods_are_made_and_do_not_run() {
    let set = "replicaset".parse().unwrap();
    let (server, mut client) = start_with(set).await;
    make(&server, &mut client, &format!("{APPS}/replicasets"), workload("rs", 1)).await;
    let status = &server.list_objects("", "pods", "default")[0]["status"];
    assert_eq!((&status["phase"], &status["podIP"]), (&json!("Pending"), &Value::Null));
    let status = &get(&server, "apps", "replicasets", "rs")["status"];
    assert_eq!((&status["replicas"], &status["readyReplicas"]), (&json!(1), &Value::Null));
    assert!(server.list_objects("", "nodes", "").is_empty());
}
