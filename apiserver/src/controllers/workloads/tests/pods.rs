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

#[tokio::test(start_paused = true)]
async fn the_node_has_no_taint_and_a_lease_that_is_renewed() {
    let (server, mut client) = start().await;
    let node = server.get_object("", "nodes", "", "windlass").unwrap();
    assert_eq!(node["spec"].get("taints"), None);
    let lease = || {
        let space = "kube-node-lease";
        server.get_object("coordination.k8s.io", "leases", space, "windlass").unwrap()["spec"]
            .clone()
    };
    let first = lease();
    assert_eq!(
        (&first["holderIdentity"], &first["leaseDurationSeconds"]),
        (&json!("windlass"), &json!(40))
    );
    assert!(first["renewTime"].as_str().unwrap().starts_with("2026-01-01T00:00:00."), "{first}");
    tokio::time::sleep(std::time::Duration::from_secs(25)).await;
    settle(&server).await;
    let renewed = lease()["renewTime"].as_str().unwrap().to_owned();
    assert!(renewed.starts_with("2026-01-01T00:00:2"), "{renewed}");
    // A node that another client adds is not ready.
    let made = client.post("/api/v1/nodes", json!({"metadata": {"name": "other"}})).await;
    assert_eq!(made.value["spec"]["taints"][0]["key"], "node.kubernetes.io/not-ready");
}

#[tokio::test(start_paused = true)]
async fn containers_have_ids_and_events_tell_their_start_once() {
    let (server, mut client) = start().await;
    let url = format!("{CORE}/pods");
    make(&server, &mut client, &url, pod("a", "Always", json!({}))).await;
    let status = get(&server, "", "pods", "a")["status"]["containerStatuses"][0].clone();
    let id = status["containerID"].as_str().unwrap();
    assert!(id.starts_with("windlass://") && id.len() == 75, "{id}");
    assert!(status["imageID"].as_str().unwrap().starts_with("i@sha256:"), "{status}");
    let told = ["Scheduled", "Pulled", "Created", "Started"];
    assert_eq!(reasons(&server, "a"), told);
    let label = json!({"metadata": {"labels": {"seen": "yes"}}});
    merge(&server, &mut client, &format!("{url}/a"), label).await;
    assert_eq!(reasons(&server, "a"), told);
}

#[tokio::test(start_paused = true)]
async fn a_container_gets_a_new_id_with_a_restart() {
    let (server, mut client) = start().await;
    let code = json!({"windlass.dev/exit-code": "1"});
    make(&server, &mut client, &format!("{CORE}/pods"), pod("a", "OnFailure", code)).await;
    let status = || get(&server, "", "pods", "a")["status"]["containerStatuses"][0].clone();
    let first = status();
    assert_eq!(first["lastState"]["terminated"]["containerID"], first["containerID"]);
    tokio::time::sleep(std::time::Duration::from_millis(10_500)).await;
    settle(&server).await;
    assert_eq!(status()["restartCount"], 2);
    assert_ne!(status()["containerID"], first["containerID"]);
}

#[tokio::test(start_paused = true)]
async fn an_annotation_that_means_nothing_is_told_by_an_event() {
    let (server, mut client) = start().await;
    let wrong = json!({"windlass.dev/pod-state": "Runing"});
    make(&server, &mut client, &format!("{CORE}/pods"), pod("a", "Always", wrong)).await;
    let events = server.list_objects("", "events", "default");
    let event = events.iter().find(|event| event["reason"] == "InvalidAnnotation").unwrap();
    assert_eq!(event["type"], "Warning");
    assert_eq!(
        event["message"],
        "annotation windlass.dev/pod-state is ignored: \"Runing\" is not one of Running, NotReady, Pending, Failed, Succeeded"
    );
    assert_eq!(get(&server, "", "pods", "a")["status"]["phase"], "Running");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_is_added_for_debugging_runs() {
    let (server, mut client) = start().await;
    let url = format!("{CORE}/pods");
    make(&server, &mut client, &url, pod("a", "Always", json!({}))).await;
    let debugger =
        json!({"spec": {"ephemeralContainers": [{"name": "debugger", "image": "busybox"}]}});
    merge(&server, &mut client, &format!("{url}/a/ephemeralcontainers"), debugger).await;
    let status = &get(&server, "", "pods", "a")["status"]["ephemeralContainerStatuses"][0];
    assert_eq!(status["name"], "debugger");
    assert_eq!(status["state"]["running"]["startedAt"], "2026-01-01T00:00:00Z");
    assert_eq!(status["ready"], false);
}
