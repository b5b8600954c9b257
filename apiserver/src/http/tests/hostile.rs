//! Tests with malformed and hostile bodies.

use serde_json::json;

use crate::http::test_support::start;

#[tokio::test(start_paused = true)]
async fn a_body_of_wrong_types_is_refused_and_not_fatal() {
    let (_server, mut client) = start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let meta = json!({"name": "a"});
    let reply = client.post(pods, json!({"metadata": meta, "status": []})).await;
    assert_eq!(reply.code, 400);
    assert_eq!(
        reply.message(),
        "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal array into Go struct field Pod.status of type v1.PodStatus"
    );
    let spec = json!({"containers": [{"name": "c", "image": "i", "env": [5]}]});
    let template = json!({"spec": {"template": {"spec": spec}}, "metadata": meta});
    for (url, body) in [
        (pods, json!({"metadata": meta, "spec": spec})),
        ("/apis/apps/v1/namespaces/default/deployments", template.clone()),
        ("/apis/batch/v1/namespaces/default/jobs", template),
        ("/api/v1/namespaces/default/services", json!({"metadata": meta, "spec": []})),
        (
            "/api/v1/namespaces/default/secrets",
            json!({"metadata": meta, "data": [], "stringData": {"a": "b"}}),
        ),
    ] {
        let reply = client.post(url, body).await;
        assert_eq!(reply.code, 400, "{url}: {}", reply.text);
        assert!(reply.message().contains("json: cannot unmarshal"), "{}", reply.text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_never_holds_a_status_that_is_a_list() {
    let (_server, mut client) = start().await;
    let url = "/api/v1/namespaces/a";
    client.post("/api/v1/namespaces", json!({"metadata": {"name": "a"}})).await;
    let body = json!({"metadata": {"name": "a"}, "status": []});
    let reply = client.put(&format!("{url}/status"), body).await;
    assert_eq!(reply.code, 400, "{}", reply.text);
    let reply = client.merge(&format!("{url}/status"), json!({"status": []})).await;
    assert_eq!(reply.code, 422, "{}", reply.text);
    assert!(
        reply.message().starts_with(" \"\" is invalid: patch: Invalid value:"),
        "{}",
        reply.text
    );
    assert_eq!(client.delete(url).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn an_apply_of_something_new_needs_the_right_to_create() {
    use crate::auth::{Attributes, Authorizer, ByConnection, User};
    use crate::http::test_support::{Client, MAPS, map};

    struct NoCreate;
    impl Authorizer for NoCreate {
        fn authorize(&self, _user: &User, wanted: &Attributes) -> Result<(), String> {
            if wanted.verb == "create" { Err(String::new()) } else { Ok(()) }
        }
    }
    let (server, mut client) = start().await;
    assert_eq!(client.post(MAPS, map("old")).await.code, 201);
    server.core.install(std::sync::Arc::new(ByConnection), std::sync::Arc::new(NoCreate));
    let mut client = Client::of(&server).await;
    let body =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let url = |name: &str| format!("{MAPS}/{name}?fieldManager=m");
    let reply = client.patch("apply", &url("new"), body("new")).await;
    assert_eq!(reply.code, 403, "{}", reply.text);
    assert_eq!(
        reply.message(),
        "configmaps \"new\" is forbidden: User \"system:admin\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    assert_eq!(client.patch("apply", &url("old"), body("old")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_below_a_namespace_is_no_resource() {
    let (_server, mut client) = start().await;
    client.post("/api/v1/namespaces", json!({"metadata": {"name": "b"}})).await;
    let below = "/api/v1/namespaces/default/namespaces";
    for path in ["", "/b", "/b/status", "/b/finalize", "/default"] {
        let reply = client.get(&format!("{below}{path}")).await;
        assert_eq!((reply.code, reply.message()), (404, NO_RESOURCE), "{path}");
    }
    let reply = client.post(below, json!({"metadata": {"name": "evil"}})).await;
    assert_eq!((reply.code, reply.message()), (404, NO_RESOURCE));
    assert_eq!(client.delete(&format!("{below}/b")).await.code, 404);
    assert_eq!(client.get("/api/v1/namespaces/b").await.value["status"]["phase"], "Active");
    assert_eq!(client.get("/api/v1/namespaces/b/status").await.code, 200);
}

const NO_RESOURCE: &str = "the server could not find the requested resource";

#[tokio::test(start_paused = true)]
async fn a_patch_that_nests_a_document_step_by_step_is_refused_early() {
    let (_server, mut client) = start().await;
    let deep = |keys: usize| "{\"x\":".repeat(keys) + "{}" + &"}".repeat(keys);
    let mut operations = vec![r#"{"op":"add","path":"/a","value":{}}"#.to_owned()];
    for _ in 0..40 {
        operations.push(format!(r#"{{"op":"add","path":"/b","value":{}}}"#, deep(100)));
        let path = "/x".repeat(100);
        operations.push(format!(r#"{{"op":"move","from":"/a","path":"/b{path}/y"}}"#));
        operations.push(r#"{"op":"move","from":"/b","path":"/a"}"#.to_owned());
    }
    let headers = [("content-type", "application/json-patch+json")];
    let body = format!("[{}]", operations.join(","));
    let reply = client.send("PATCH", "/api/v1/namespaces/default", &headers, body).await;
    assert_eq!(reply.code, 422, "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_handler_is_answered_500_and_counted() {
    use crate::auth::{Attributes, Authorizer, ByConnection, User};
    use crate::http::test_support::Client;

    struct Panics;
    impl Authorizer for Panics {
        fn authorize(&self, _user: &User, wanted: &Attributes) -> Result<(), String> {
            assert_ne!(wanted.resource, "pods", "on purpose");
            Ok(())
        }
    }
    let (server, _client) = start().await;
    server.core.install(std::sync::Arc::new(ByConnection), std::sync::Arc::new(Panics));
    let mut client = Client::of(&server).await;
    let reply = client.get("/api/v1/pods").await;
    assert_eq!(reply.code, 500);
    let text = "This request caused apiserver to panic. Look in the logs for details.\n";
    assert_eq!(reply.text, text);
    assert_eq!(server.panics(), 1);
    assert_eq!(client.get("/api/v1/configmaps").await.code, 200, "on the same connection");
}

#[tokio::test(start_paused = true)]
async fn the_largest_generation_wraps_as_in_go() {
    let (_server, mut client) = start().await;
    let meta = json!({"name": "g", "generation": i64::MAX, "finalizers": ["a/b"]});
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(client.post(maps, json!({"metadata": meta})).await.code, 201);
    let reply = client.delete(&format!("{maps}/g")).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    assert_eq!(reply.value["metadata"]["generation"], i64::MIN);
}

#[tokio::test(start_paused = true)]
async fn a_body_of_many_unknown_fields_makes_few_warnings() {
    let (_server, mut client) = start().await;
    let name = "u".repeat(90);
    let fields: Vec<String> = (0..20_000).map(|i| format!("\"{name}{i}\":1")).collect();
    let body = format!("{{\"metadata\":{{\"name\":\"a\"}},{}}}", fields.join(","));
    let headers = [("content-type", "application/json")];
    let url = "/api/v1/namespaces/default/configmaps";
    let reply = client.send("POST", url, &headers, body).await;
    assert_eq!(reply.code, 201);
    assert!((10..50).contains(&reply.warnings().len()), "{}", reply.warnings().len());
}

#[tokio::test(start_paused = true)]
async fn kept_requests_hold_no_more_than_256_bytes_of_a_text() {
    let (server, mut client) = start().await;
    let agent = "é".repeat(5_000);
    let headers = [("user-agent", "x"), ("x", agent.as_str())];
    client.send("GET", &format!("/nope/{}", "x".repeat(5_000)), &headers, "").await;
    let kept = server.requests().pop().unwrap();
    assert_eq!(kept.resource.len(), 256);
}

#[tokio::test(start_paused = true)]
async fn a_role_of_billions_of_rights_is_refused_before_they_are_made() {
    use crate::http::test_support::Client;
    let server = crate::Builder::default().seed(1).start();
    let mut admin = Client::of(&server).await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let rule = json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]});
    let role = json!({"metadata": {"name": "writer"}, "rules": [rule]});
    assert_eq!(admin.post(roles, role).await.code, 201);
    let binding = json!({"metadata": {"name": "writer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"},
        "subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}]});
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    assert_eq!(admin.post(bindings, binding).await.code, 201);
    let texts: Vec<String> = (0..300).map(|i| format!("a{i}")).collect();
    let large = json!({"metadata": {"name": "large"}, "rules": [
        {"apiGroups": texts, "resources": texts, "verbs": texts, "resourceNames": texts}]});
    let headers = [("content-type", "application/json"), ("impersonate-user", "eve")];
    let reply = admin.send("POST", roles, &headers, large.to_string()).await;
    assert_eq!(reply.code, 403, "{}", reply.text);
    assert!(reply.message().contains("more than 10000 rights"), "{}", reply.message());
}

#[tokio::test(start_paused = true)]
async fn the_old_paths_of_watches_are_only_read() {
    let (_server, mut client) = start().await;
    let url = "/api/v1/watch/namespaces/default/configmaps";
    assert_eq!(client.post(url, json!({"metadata": {"name": "a"}})).await.code, 405);
    assert_eq!(client.delete(&format!("{url}/kube-root-ca.crt")).await.code, 405);
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_moves_a_long_list_again_and_again_is_refused() {
    let (_server, mut client) = start().await;
    let list = vec!["0"; 500_000].join(",");
    let mut operations = vec![format!(r#"{{"op":"add","path":"/a","value":[{list}]}}"#)];
    operations.extend(vec![r#"{"op":"add","path":"/a/0","value":1}"#.to_owned(); 9_000]);
    operations.push(r#"{"op":"remove","path":"/a"}"#.to_owned());
    let headers = [("content-type", "application/json-patch+json")];
    let body = format!("[{}]", operations.join(","));
    let reply = client.send("PATCH", "/api/v1/namespaces/default", &headers, body).await;
    assert_eq!(reply.code, 422, "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn thousands_of_containers_and_conditions_are_compared_by_name() {
    let (_server, mut client) = start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.post(pods, pod).await;
    let many: Vec<_> =
        (0..10_000).map(|i| json!({"name": format!("e{i}"), "image": "i"})).collect();
    let change = json!({"spec": {"ephemeralContainers": many}});
    let reply = client.merge(&format!("{pods}/p/ephemeralcontainers"), change).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = json!({"metadata": {"name": "r"}, "spec": {"signerName": "a.dev/b",
        "request": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K", "usages": ["client auth"]}});
    assert_eq!(client.post(requests, request).await.code, 201);
    let many: Vec<_> =
        (0..20_000).map(|i| json!({"type": format!("t{i}"), "status": "True"})).collect();
    let change = json!({"status": {"conditions": many}});
    let reply = client.merge(&format!("{requests}/r/status"), change).await;
    assert_eq!(reply.code, 200, "{}", reply.message());
}
