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
