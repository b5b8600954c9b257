//! Protobuf over HTTP. The texts and bytes were recorded from kube-apiserver 1.36.3.

use serde_json::{Value, json};

use crate::http::test_support::*;

const TABLE: &str = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
const PARTIAL: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Returns an object with a kind.
fn typed(api_version: &str, kind: &str, mut object: Value) -> Value {
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object
}

fn media(reply: &Reply) -> &str {
    reply.headers["content-type"].to_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_object_is_created_read_updated_listed_and_deleted_in_protobuf() {
    let (_server, mut client) = start().await;
    let made = client.send_protobuf("POST", MAPS, &typed("v1", "ConfigMap", map("a"))).await;
    assert_eq!((made.code, media(&made)), (201, PROTOBUF), "{}", made.text);
    let url = format!("{MAPS}/a");
    let plain = client.get(&url).await;
    let got = client.send("GET", &url, &[("accept", PROTOBUF_OR_JSON)], "").await;
    assert_eq!((got.code, media(&got)), (200, PROTOBUF));
    assert_eq!(got.value, plain.value, "both forms show the same");
    assert_eq!(made.value, plain.value);
    let mut changed = got.value;
    changed["data"]["k"] = json!("w");
    let put = client.send_protobuf("PUT", &url, &changed).await;
    assert_eq!((put.code, &put.value["data"]["k"]), (200, &json!("w")));
    let list = client.send("GET", MAPS, &[("accept", PROTOBUF)], "").await;
    assert_eq!(list.value["kind"], "ConfigMapList");
    assert_eq!(list.value["items"][0].get("kind"), None, "items of a list carry no kind");
    let headers = [("accept", PROTOBUF), ("content-type", "application/merge-patch+json")];
    let patched = client.send("PATCH", &url, &headers, r#"{"data":{"x":"y"}}"#).await;
    assert_eq!(patched.value["data"], json!({"k": "w", "x": "y"}));
    let options = typed("v1", "DeleteOptions", json!({"preconditions": {"uid": "other"}}));
    assert_eq!(client.send_protobuf("DELETE", &url, &options).await.code, 409);
    let options = typed("apps/v1", "DeleteOptions", json!({"gracePeriodSeconds": 0}));
    let deleted = client.send_protobuf("DELETE", &url, &options).await;
    assert_eq!((deleted.code, &deleted.value["kind"]), (200, &json!("Status")), "{}", deleted.text);
    assert_eq!(deleted.value["details"]["kind"], "configmaps");
}

#[tokio::test(start_paused = true)]
async fn the_form_of_an_answer_follows_the_order_of_accept() {
    let (_server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    for (accept, expected) in [
        ("application/json,application/vnd.kubernetes.protobuf", "application/json"),
        ("application/vnd.kubernetes.protobuf;q=0.5,application/json;q=0.4", PROTOBUF),
        ("application/vnd.kubernetes.protobuf;q=0.3,application/json;q=0.4", "application/json"),
        ("application/cbor,application/vnd.kubernetes.protobuf", PROTOBUF),
        ("application/vnd.kubernetes.protobuf;stream=watch", PROTOBUF),
        // A table has no message.
        (&format!("{TABLE},application/json"), "application/json"),
        (&format!("{TABLE},application/json;as=Table;g=meta.k8s.io;v=v1"), "application/json"),
    ] {
        let reply = client.send("GET", &format!("{MAPS}/a"), &[("accept", accept)], "").await;
        assert_eq!((reply.code, media(&reply)), (200, expected), "{accept}");
    }
    let reply = client.send("GET", MAPS, &[("accept", TABLE)], "").await;
    let text = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    assert_eq!((reply.code, media(&reply), reply.message()), (406, "application/json", text));
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_comes_in_protobuf_for_built_in_and_custom_kinds() {
    let (_server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    client.post(CRDS, widgets()).await;
    client.post(WIDGETS, widget("a", json!({"size": 1}))).await;
    for url in [MAPS, WIDGETS] {
        let one = client.send("GET", &format!("{url}/a"), &[("accept", PARTIAL)], "").await;
        assert_eq!((one.code, media(&one)), (200, PROTOBUF));
        assert_eq!(one.value["kind"], "PartialObjectMetadata");
        assert_eq!(one.value["metadata"]["name"], "a");
        let list = client.send("GET", url, &[("accept", PARTIAL_LIST)], "").await;
        assert_eq!((list.code, media(&list)), (200, PROTOBUF));
        assert_eq!(list.value["apiVersion"], "meta.k8s.io/v1");
        assert_eq!(list.value["items"][0]["metadata"]["name"], "a");
    }
}

#[tokio::test(start_paused = true)]
async fn custom_resources_are_shown_in_json_or_refused_in_protobuf() {
    let (_server, mut client) = start().await;
    client.post(CRDS, widgets()).await;
    client.post(WIDGETS, widget("a", json!({"size": 1}))).await;
    let url = format!("{WIDGETS}/a");
    let reply = client.send("GET", &url, &[("accept", PROTOBUF_OR_JSON)], "").await;
    assert_eq!((reply.code, media(&reply)), (200, "application/json"));
    for url in [url.as_str(), &format!("{url}/scale"), &format!("{WIDGETS}?watch=1")] {
        let reply = client.send("GET", url, &[("accept", PROTOBUF)], "").await;
        assert_eq!((reply.code, media(&reply)), (406, PROTOBUF));
        // Without the text's length, which is in the recorded bytes as well.
        let recorded = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x99\x01\x0a\x06\x0a\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x74only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf\x22\x0dNotAcceptable0\x96\x03\x1a\x00\x22\x00";
        assert_eq!(reply.text, String::from_utf8_lossy(recorded));
    }
    let body = typed("v1", "ConfigMap", map("b"));
    let reply = client.send_protobuf("POST", WIDGETS, &body).await;
    assert_eq!(reply.code, 415);
    let scale = typed(
        "autoscaling/v1",
        "Scale",
        json!({"metadata": {"name": "a"}, "spec": {"replicas": 7}}),
    );
    let body = crate::protobuf::encode(&scale).unwrap();
    let headers = [("content-type", PROTOBUF)];
    let scaled = client.send("PUT", &format!("{url}/scale"), &headers, body).await;
    assert_eq!(
        (scaled.code, &scaled.value["spec"]["replicas"]),
        (200, &json!(7)),
        "{}",
        scaled.text
    );
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_no_object_of_the_kind_are_refused_in_gos_words() {
    let (_server, mut client) = start().await;
    let unknown = "the object provided is unrecognized (must be of type ConfigMap): ";
    let wrong = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: ";
    for (bytes, text) in [
        (&b""[..], format!("{unknown}empty data (<empty>)")),
        (
            b"junk",
            format!(
                "{unknown}provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (6a756e6b)"
            ),
        ),
        (b"k8s\0", format!("{unknown}empty body (6b387300)")),
        (b"k8s\0\xff\xff", format!("{unknown}unexpected EOF (6b387300ffff)")),
        (
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x03\x0a\xff\x01",
            format!("{wrong}unexpected EOF"),
        ),
        (
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x08\x01",
            format!("{wrong}proto: wrong wireType = 0 for field ObjectMeta"),
        ),
        (
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x00\x01",
            format!("{wrong}proto: ConfigMap: illegal tag 0 (wire type 0)"),
        ),
        (
            b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x00",
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion".to_owned(),
        ),
        (
            b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Nonono\x12\x00",
            "Nonono in version \"v1\" cannot be handled as a ConfigMap: no kind \"Nonono\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"".to_owned(),
        ),
    ] {
        let reply = client.send("POST", MAPS, &[("content-type", PROTOBUF)], bytes).await;
        assert_eq!((reply.code, reply.message()), (400, text.as_str()));
    }
    client.post(MAPS, map("a")).await;
    for (bytes, text) in [
        (&b"k8s\0"[..], "empty body"),
        (b"k8s\0\xff\xff", "unexpected EOF"),
        (
            b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x00",
            "no kind \"Secret\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
    ] {
        let url = format!("{MAPS}/a");
        let reply = client.send("DELETE", &url, &[("content-type", PROTOBUF)], bytes).await;
        assert_eq!((reply.code, reply.message()), (400, text));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_in_protobuf_is_framed_by_lengths() {
    let (server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let headers = [("accept", PROTOBUF_OR_JSON)];
    let url = format!("{MAPS}?watch=true");
    let reply = client.send("GET", &format!("{url}&timeoutSeconds=1"), &headers, "").await;
    assert_eq!(media(&reply), "application/vnd.kubernetes.protobuf;stream=watch");
    let mut watch = Watch::open_as(&server, &url, &headers).await;
    let message = watch.message().await;
    let object = client.get(&format!("{MAPS}/a")).await.value;
    let envelope = crate::protobuf::encode(&object).unwrap();
    assert!(message.starts_with(b"\x0a\x05ADDED\x12"));
    assert!(message.ends_with(&envelope));
    client.delete(&format!("{MAPS}/a")).await;
    assert!(watch.message().await.starts_with(b"\x0a\x07DELETED\x12"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_says_so_with_a_status_in_protobuf() {
    let (server, mut client) = start().await;
    let a = client.post(MAPS, map("a")).await.version();
    client.post(MAPS, map("b")).await;
    server.compact();
    let url = format!("{MAPS}?watch=true&resourceVersion={a}");
    let mut watch = Watch::open_as(&server, &url, &[("accept", PROTOBUF)]).await;
    let message = watch.message().await;
    assert!(message.starts_with(b"\x0a\x05ERROR\x12"));
    let start = message.windows(4).position(|bytes| bytes == b"k8s\0").unwrap();
    let status = crate::protobuf::decode(&message[start..], "", "").unwrap();
    assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(410)));
}

#[tokio::test(start_paused = true)]
async fn discovery_is_answered_in_protobuf_on_request() {
    let (_server, mut client) = start().await;
    for (path, kind) in [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/apis/apps", "APIGroup"),
        ("/apis/apps/v1", "APIResourceList"),
        ("/api/v1", "APIResourceList"),
    ] {
        let reply = client.send("GET", path, &[("accept", PROTOBUF)], "").await;
        assert_eq!((reply.code, media(&reply)), (200, PROTOBUF), "{path}");
        assert_eq!(reply.value["kind"], kind);
        let plain = client.get(path).await.value;
        for part in ["versions", "groups", "resources", "name", "groupVersion"] {
            assert_eq!(reply.value.get(part), plain.get(part), "{path}");
        }
    }
    let parameters = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let accept = format!("{PROTOBUF}{parameters},application/json");
    let reply = client.send("GET", "/apis", &[("accept", &accept)], "").await;
    assert_eq!(media(&reply), format!("{PROTOBUF}{parameters}"));
    let accept = format!("application/json{parameters}");
    let plain = client.send("GET", "/apis", &[("accept", &accept)], "").await;
    assert_eq!(reply.value["items"], plain.value["items"]);
    let reply = client.send("GET", "/apis/apps", &[("accept", "application/cbor")], "").await;
    assert_eq!(reply.code, 406);
}

#[tokio::test(start_paused = true)]
async fn reviews_and_subresources_are_read_and_answered_in_protobuf() {
    let (_server, mut client) = start().await;
    let review = typed(
        "authorization.k8s.io/v1",
        "SelfSubjectAccessReview",
        json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
    );
    let url = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let reply = client.send_protobuf("POST", url, &review).await;
    assert_eq!(
        (reply.code, &reply.value["status"]["allowed"]),
        (201, &json!(true)),
        "{}",
        reply.text
    );
    client
        .send_protobuf("POST", DEPLOYMENTS, &typed("apps/v1", "Deployment", deployment("d", 2)))
        .await;
    let url = format!("{DEPLOYMENTS}/d/scale");
    let scale = client.send("GET", &url, &[("accept", PROTOBUF)], "").await;
    assert_eq!((media(&scale), &scale.value["spec"]["replicas"]), (PROTOBUF, &json!(2)));
    let mut more = scale.value;
    more["spec"]["replicas"] = json!(0);
    assert_eq!(client.send_protobuf("PUT", &url, &more).await.code, 200);
    let pods = "/api/v1/namespaces/default/pods";
    let pod =
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    client.send_protobuf("POST", pods, &typed("v1", "Pod", pod)).await;
    let eviction =
        typed("policy/v1", "Eviction", json!({"metadata": {"name": "p", "namespace": "default"}}));
    let reply = client.send_protobuf("POST", &format!("{pods}/p/eviction"), &eviction).await;
    assert_eq!((reply.code, &reply.value["status"]), (201, &json!("Success")), "{}", reply.text);
}
