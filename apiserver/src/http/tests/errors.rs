use serde_json::{Value, json};

use crate::http::test_support::*;

#[tokio::test(start_paused = true)]
async fn errors_read_as_kube_apiservers_do() {
    let (_server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let bad_name = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    for (reply, code, reason, message) in [
        (client.get(&format!("{MAPS}/x")).await, 404, "NotFound", "configmaps \"x\" not found"),
        (
            client.get(&format!("{DEPLOYMENTS}/x")).await,
            404,
            "NotFound",
            "deployments.apps \"x\" not found",
        ),
        (
            client.get("/api/v1/nonsense").await,
            404,
            "NotFound",
            "the server could not find the requested resource",
        ),
        (
            client.get("/apis/apps/v9/deployments").await,
            404,
            "NotFound",
            "the server could not find the requested resource",
        ),
        (
            client.put("/api/v1/namespaces", json!({})).await,
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ),
        (
            client.post(&format!("{MAPS}/a"), map("a")).await,
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ),
        (
            client.post(MAPS, map("a")).await,
            409,
            "AlreadyExists",
            "configmaps \"a\" already exists",
        ),
        (
            client.post(MAPS, json!({})).await,
            422,
            "Invalid",
            "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required",
        ),
        (
            client.post(MAPS, map("A")).await,
            422,
            "Invalid",
            &format!("ConfigMap \"A\" is invalid: metadata.name: Invalid value: \"A\": {bad_name}"),
        ),
        (
            client.post("/api/v1/namespaces/none/configmaps", map("a")).await,
            404,
            "NotFound",
            "namespaces \"none\" not found",
        ),
        (
            client.put(&format!("{MAPS}/b"), map("b")).await,
            404,
            "NotFound",
            "configmaps \"b\" not found",
        ),
        (
            client.put(&format!("{MAPS}/a"), map("q")).await,
            400,
            "BadRequest",
            "the name of the object (q) does not match the name on the URL (a)",
        ),
        (
            client.delete("/api/v1/namespaces/default").await,
            403,
            "Forbidden",
            "namespaces \"default\" is forbidden: this namespace may not be deleted",
        ),
        (
            client.get(&format!("{MAPS}?labelSelector=a%20b")).await,
            400,
            "BadRequest",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            client.get(&format!("{MAPS}?fieldSelector=data.k%3D1")).await,
            400,
            "BadRequest",
            "\"data.k\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        (
            client.get(&format!("{MAPS}?resourceVersion=abc")).await,
            400,
            "BadRequest",
            "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
        ),
        (
            client.get(&format!("{MAPS}?timeout=abc")).await,
            400,
            "BadRequest",
            "invalid timeout specified in the request URL - time: invalid duration \"abc\"",
        ),
        (
            client.send("POST", MAPS, &[], "").await,
            400,
            "BadRequest",
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)",
        ),
        (
            client.patch("strange", &format!("{MAPS}/a"), json!({})).await,
            415,
            "UnsupportedMediaType",
            "415: Unsupported Media Type",
        ),
        (
            client.get("/api/v1/namespaces/default/configmaps/%2e%2e").await,
            400,
            "BadRequest",
            "Name parameter invalid: \"..\": may not be '..'",
        ),
        (
            client.merge(&format!("{MAPS}/a"), Value::Null).await,
            400,
            "BadRequest",
            "Invalid JSON Patch",
        ),
    ] {
        assert_eq!(
            (reply.code, reply.value["reason"].as_str()),
            (code, Some(reason)),
            "{}",
            reply.text
        );
        assert_eq!(reply.message(), message);
        assert_eq!(reply.value["code"], code);
    }
}

#[tokio::test(start_paused = true)]
async fn some_failures_have_no_reason_and_some_no_status() {
    let (_server, mut client) = start().await;
    let mut body = map("a");
    body["metadata"]["resourceVersion"] = json!("5");
    let reply = client.post(MAPS, body.clone()).await;
    assert_eq!((reply.code, reply.value.get("reason")), (500, None));
    assert_eq!(reply.message(), "resourceVersion should not be set on objects to be created");
    body["metadata"]["resourceVersion"] = json!("abc");
    assert_eq!(client.post(MAPS, body).await.code, 201);
    for path in ["/apis/nope.x/v1/as", "/nope", "/apis/nope.x"] {
        let reply = client.get(path).await;
        assert_eq!((reply.code, reply.text.as_str()), (404, "404 page not found\n"));
        assert_eq!(reply.headers["content-type"], "text/plain; charset=utf-8");
    }
    let reply = client.get(&format!("{MAPS}/a?resourceVersion=abc")).await;
    assert_eq!((reply.code, reply.value.get("reason")), (500, None));
}

#[tokio::test(start_paused = true)]
async fn media_types_nobody_reads_or_writes_are_refused() {
    let (_server, mut client) = start().await;
    let cbor = "application/cbor";
    let reply = client.send("POST", MAPS, &[("content-type", cbor)], "x").await;
    assert_eq!(
        (reply.code, reply.message()),
        (
            415,
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
        )
    );
    let reply = client.send("GET", &format!("{MAPS}/a"), &[("accept", cbor)], "").await;
    assert_eq!(
        (reply.code, reply.message()),
        (
            406,
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"
        )
    );
    let reply = client.send("GET", MAPS, &[("accept", "text/html")], "").await;
    assert_eq!(reply.code, 406);
    assert!(
        reply
            .message()
            .starts_with("406: Not Acceptable\n\nAvailable representations: application/json")
    );
    let both = format!("{cbor},application/json");
    assert_eq!(client.send("GET", MAPS, &[("accept", &both)], "").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_body_over_three_mebibytes_is_too_large() {
    let (_server, mut client) = start().await;
    let reply = client.send("POST", MAPS, &[], vec![b' '; 3 * 1024 * 1024 + 1]).await;
    assert_eq!((reply.code, reply.message()), (413, "Request entity too large: limit is 3145728"));
}
