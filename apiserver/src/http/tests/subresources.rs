//! Subresources of Pods and of certificate requests.

use serde_json::{Value, json};

use crate::http::test_support::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// Returns a Pod with a container that requests CPU.
fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}})
}

/// Returns a certificate request.
fn request(name: &str) -> Value {
    let begin = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
    json!({"metadata": {"name": name}, "spec": {
        "request": begin, "signerName": "example.dev/signer", "usages": ["client auth"],
        "username": "mallory", "groups": ["system:masters"]}})
}

#[tokio::test(start_paused = true)]
async fn ephemeral_containers_are_added_and_never_changed() {
    let (_server, mut client) = start().await;
    client.post(PODS, pod("p")).await;
    let url = format!("{PODS}/p/ephemeralcontainers");
    let add = |image: &str| {
        json!({"spec": {"ephemeralContainers": [
            {"name": "e", "image": image, "targetContainerName": "c"}]}})
    };
    let reply = client.patch("strategic-merge", &url, add("i")).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    let held = &reply.value["spec"]["ephemeralContainers"][0];
    assert_eq!(held["terminationMessagePolicy"], "File");
    assert_eq!(reply.value["metadata"]["generation"], 2);
    assert_eq!(client.get(&url).await.value, reply.value);
    let changed = client.patch("strategic-merge", &url, add("j")).await;
    assert_eq!(changed.code, 422);
    assert!(changed.message().contains("\"e\" may not be changed"), "{}", changed.text);
    let mut less = reply.value.clone();
    less["spec"]["ephemeralContainers"] = json!([]);
    let removed = client.put(&url, less).await;
    assert!(removed.message().contains("\"e\" may not be removed"), "{}", removed.text);
}

#[tokio::test(start_paused = true)]
async fn a_write_to_ephemeral_containers_changes_nothing_else() {
    let (_server, mut client) = start().await;
    let mut whole = client.post(PODS, pod("p")).await.value;
    whole["metadata"]["labels"] = json!({"a": "b"});
    whole["spec"]["containers"][0]["image"] = json!("other");
    whole["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "i"}]);
    let reply = client.put(&format!("{PODS}/p/ephemeralcontainers"), whole).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    assert_eq!(reply.value["metadata"]["labels"], Value::Null);
    assert_eq!(reply.value["spec"]["containers"][0]["image"], "i");
    assert_eq!(reply.value["spec"]["ephemeralContainers"][0]["name"], "e");
}

#[tokio::test(start_paused = true)]
async fn faults_of_ephemeral_containers_are_told_by_field() {
    let (_server, mut client) = start().await;
    client.post(PODS, pod("p")).await;
    let url = format!("{PODS}/p/ephemeralcontainers");
    for (container, text) in [
        (json!({"name": "c", "image": "i"}), "[0].name: Duplicate value: \"c\""),
        (json!({"name": "e"}), "[0].image: Required value"),
        (
            json!({"name": "e", "image": "i", "targetContainerName": "x"}),
            "[0].targetContainerName: Not found: \"x\"",
        ),
        (
            json!({"name": "e", "image": "i", "ports": [{"containerPort": 80}]}),
            "[0].ports: Forbidden: cannot be set for an Ephemeral Container",
        ),
    ] {
        let body = json!({"spec": {"ephemeralContainers": [container]}});
        let reply = client.patch("strategic-merge", &url, body).await;
        assert_eq!(reply.code, 422, "{}", reply.text);
        assert!(reply.message().contains(text), "{}", reply.text);
    }
    let mut early = pod("q");
    early["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "i"}]);
    let reply = client.post(PODS, early).await;
    assert!(reply.message().contains("cannot be set on create"), "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn resize_changes_cpu_and_memory_and_keeps_the_class() {
    let (_server, mut client) = start().await;
    client.post(PODS, pod("p")).await;
    let url = format!("{PODS}/p/resize");
    let to =
        |resources: Value| json!({"spec": {"containers": [{"name": "c", "resources": resources}]}});
    let reply = client.patch("strategic-merge", &url, to(json!({"requests": {"cpu": "2"}}))).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    assert_eq!(reply.value["spec"]["containers"][0]["resources"]["requests"]["cpu"], "2");
    assert_eq!(reply.value["metadata"]["generation"], 2);
    for (resources, text) in [
        (json!({"requests": {"cpu": null}}), "resource requests cannot be removed"),
        (
            json!({"requests": {"example.dev/x": "1"}, "limits": {"example.dev/x": "1"}}),
            "only cpu and memory resources are mutable",
        ),
    ] {
        let reply = client.patch("strategic-merge", &url, to(resources)).await;
        assert_eq!(reply.code, 422, "{}", reply.text);
        assert!(reply.message().contains(text), "{}", reply.text);
    }
}

#[tokio::test(start_paused = true)]
async fn connections_fail_as_without_a_kubelet() {
    let (_server, mut client) = start().await;
    client.post(PODS, pod("p")).await;
    let mut placed = pod("q");
    placed["spec"]["nodeName"] = json!("n");
    client.post(PODS, placed).await;
    for (method, path, code, text) in [
        ("GET", "p/log", 204, ""),
        ("GET", "p/log?container=x", 400, "container x is not valid for pod p"),
        ("GET", "p/log?tailLines=-1", 422, "must be greater than or equal to 0"),
        ("GET", "x/log", 404, "pods \"x\" not found"),
        ("POST", "p/exec?command=true", 400, "pod p does not have a host assigned"),
        ("GET", "p/attach", 400, "pod p does not have a host assigned"),
        ("POST", "p/portforward", 400, "pod p does not have a host assigned"),
        ("GET", "p/proxy/metrics", 400, "address not allowed"),
        ("GET", "q/log", 404, "pods \"n\" not found"),
        ("PUT", "p/log", 405, "does not allow this method"),
    ] {
        let reply = client.send(method, &format!("{PODS}/{path}"), &[], "").await;
        assert_eq!(reply.code, code, "{method} {path}: {}", reply.text);
        assert!(reply.message().contains(text), "{method} {path}: {}", reply.text);
    }
    let status = json!({"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]});
    client.post("/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    client.merge("/api/v1/nodes/n/status", json!({"status": status})).await;
    let local = json!({"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]});
    client.post("/api/v1/nodes", json!({"metadata": {"name": "l"}})).await;
    client.merge("/api/v1/nodes/l/status", json!({"status": local})).await;
    for (node, code, text) in [("n", 503, "dial tcp 192.0.2.1"), ("l", 400, "address not allowed")]
    {
        let reply = client.get(&format!("/api/v1/nodes/{node}/proxy/metrics")).await;
        assert!(reply.code == code && reply.message().contains(text), "{}", reply.text);
    }
    let reply = client.get(&format!("{PODS}/q/log")).await;
    assert_eq!(reply.code, 500);
    assert!(reply.message().contains("https://192.0.2.1:10250/containerLogs/default/q/c"));
}

#[tokio::test(start_paused = true)]
async fn a_get_to_exec_needs_the_right_to_create() {
    let (server, mut client) = start().await;
    client.post(PODS, pod("p")).await;
    let rule = json!({"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "r"}, "rules": [rule]});
    client.post(&format!("{rbac}/clusterroles"), role).await;
    let binding = json!({"metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]});
    client.post(&format!("{rbac}/clusterrolebindings"), binding).await;
    let mut ann = Client::user(&server, "ann").await;
    let reply = ann.get(&format!("{PODS}/p/exec")).await;
    assert_eq!(reply.code, 403, "{}", reply.text);
    assert!(reply.message().contains("cannot create resource \"pods/exec\""), "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_request_carries_its_user_and_is_approved_once() {
    let (server, mut client) = start().await;
    let made = client.post(REQUESTS, request("r")).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(made.value["spec"]["username"], "system:admin");
    assert_ne!(made.value["spec"]["username"], "mallory");
    let url = format!("{REQUESTS}/r/approval");
    let verdict = |kind: &str| json!({"status": {"conditions": [{"type": kind, "status": "True", "reason": "Test"}]}});
    let approved = client.merge(&url, verdict("Approved")).await;
    assert_eq!(approved.code, 200, "{}", approved.text);
    let condition = &approved.value["status"]["conditions"][0];
    assert_eq!(condition["lastUpdateTime"], "2026-01-01T00:00:00Z");
    let denied = client.merge(&url, verdict("Denied")).await;
    assert!(denied.message().contains("may not remove a condition of type \"Approved\""));
    let both = json!({"status": {"conditions": [condition,
        {"type": "Denied", "status": "True"}]}});
    let both = client.merge(&url, both).await;
    assert!(both.message().contains("are mutually exclusive"), "{}", both.text);
    // Status cannot decide, and the request does not change.
    client.post(REQUESTS, request("s")).await;
    let reply = client.merge(&format!("{REQUESTS}/s/status"), verdict("Approved")).await;
    assert!(reply.message().contains("may not add a condition of type \"Approved\""));
    let spec = json!({"spec": {"signerName": "example.dev/other"}});
    let reply = client.merge(&format!("{REQUESTS}/s"), spec).await;
    assert_eq!(reply.value["spec"]["signerName"], "example.dev/signer", "{}", reply.text);
    drop(server);
}

#[tokio::test(start_paused = true)]
async fn an_approval_needs_the_right_for_the_signer() {
    let (server, mut client) = start().await;
    client.post(REQUESTS, request("r")).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut rules = vec![json!({"apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests/approval"], "verbs": ["patch"]})];
    let role = json!({"metadata": {"name": "r"}, "rules": rules});
    let role = client.post(&format!("{rbac}/clusterroles"), role).await.value;
    let binding = json!({"metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]});
    client.post(&format!("{rbac}/clusterrolebindings"), binding).await;
    let mut ann = Client::user(&server, "ann").await;
    let url = format!("{REQUESTS}/r/approval");
    let verdict = json!({"status": {"conditions": [{"type": "Approved", "status": "True"}]}});
    let reply = ann.merge(&url, verdict.clone()).await;
    assert_eq!(reply.code, 403);
    let text = "user not permitted to approve requests with signerName \"example.dev/signer\"";
    assert!(reply.message().ends_with(text), "{}", reply.text);
    rules.push(json!({"apiGroups": ["certificates.k8s.io"], "resources": ["signers"],
        "resourceNames": ["example.dev/*"], "verbs": ["approve"]}));
    assert_eq!(role["metadata"]["name"], "r");
    client.merge(&format!("{rbac}/clusterroles/r"), json!({"rules": rules})).await;
    assert_eq!(ann.merge(&url, verdict).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_needs_the_right_to_sign_for_the_signer() {
    let (server, mut client) = start().await;
    client.post(REQUESTS, request("r")).await;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut rules = vec![json!({"apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests/status"], "verbs": ["patch"]})];
    let role = json!({"metadata": {"name": "r"}, "rules": rules});
    client.post(&format!("{rbac}/clusterroles"), role).await;
    let binding = json!({"metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}]});
    client.post(&format!("{rbac}/clusterrolebindings"), binding).await;
    let mut ann = Client::user(&server, "ann").await;
    let url = format!("{REQUESTS}/r/status");
    let failed = json!({"status": {"conditions": [{"type": "Failed", "status": "True"}]}});
    let text = "user not permitted to sign requests with signerName \"example.dev/signer\"";
    let reply = ann.merge(&url, failed.clone()).await;
    assert_eq!(reply.code, 403, "{}", reply.text);
    assert!(reply.message().ends_with(text), "{}", reply.text);
    rules.push(json!({"apiGroups": ["certificates.k8s.io"], "resources": ["signers"],
        "resourceNames": ["example.dev/signer"], "verbs": ["sign"]}));
    client.merge(&format!("{rbac}/clusterroles/r"), json!({"rules": rules})).await;
    assert_eq!(ann.merge(&url, failed).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn metadata_of_a_strategic_patch_is_refused_in_the_words_of_its_converter() {
    let (_server, mut client) = start().await;
    client.post(PODS, pod("p")).await;
    for (patch, text) in [
        (json!({"annotations": {"n": 7}}), "cannot convert int64 to string"),
        (json!({"generation": "x"}), "unrecognized type: int64"),
    ] {
        let url = format!("{PODS}/p");
        let refused = client.patch("strategic-merge", &url, json!({"metadata": patch})).await;
        assert_eq!(refused.code, 422, "{}", refused.text);
        assert!(refused.message().ends_with(text), "{}", refused.text);
    }
}
