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

#[tokio::test(start_paused = true)]
async fn a_missing_object_is_not_found_before_the_version_of_a_put_is_read() {
    let (_server, mut client) = start().await;
    let junk = json!({"metadata": {"name": "a", "resourceVersion": "x"}});
    assert_eq!(client.put(&format!("{MAPS}/a"), junk.clone()).await.code, 404);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let created = client.put(&format!("{leases}/a"), junk).await;
    assert_eq!((created.code, created.message().contains("strconv.ParseUint")), (500, true));
}

#[tokio::test(start_paused = true)]
async fn a_taken_name_beside_a_prefix_asks_for_another_attempt() {
    let (_server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let both = json!({"metadata": {"name": "a", "generateName": "g-"}});
    let taken = client.post(MAPS, both).await;
    assert_eq!(taken.value["details"]["retryAfterSeconds"], 1);
    assert_eq!(
        taken.message(),
        "configmaps \"a\" already exists, the server was not able to generate a unique name for the object"
    );
}

#[tokio::test(start_paused = true)]
async fn an_empty_precondition_holds_for_no_object() {
    let (_server, mut client) = start().await;
    client.post(MAPS, map("a")).await;
    let empty = json!({"preconditions": {"resourceVersion": ""}});
    assert_eq!(client.delete_with(&format!("{MAPS}/a"), empty).await.code, 409);
}

#[tokio::test(start_paused = true)]
async fn a_pod_keeps_its_tolerations_and_gets_no_new_gates() {
    let (_server, mut client) = start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let spec = json!({"containers": [{"name": "c", "image": "i"}],
        "tolerations": [{"key": "k", "operator": "Exists"}], "activeDeadlineSeconds": 5});
    client.post(pods, json!({"metadata": {"name": "a"}, "spec": spec})).await;
    let url = format!("{pods}/a");
    for (change, text) in [
        (json!({"tolerations": []}), "existing toleration can not be modified"),
        (json!({"schedulingGates": [{"name": "g"}]}), "found new scheduling gate 'g'"),
        (json!({"activeDeadlineSeconds": 6}), "must be less than or equal to previous value"),
        (json!({"activeDeadlineSeconds": null}), "must not update from a positive integer to nil"),
    ] {
        let refused = client.merge(&url, json!({"spec": change})).await;
        assert_eq!((refused.code, refused.message().contains(text)), (422, true), "{text}");
    }
    assert_eq!(client.merge(&url, json!({"spec": {"activeDeadlineSeconds": 4}})).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn an_apply_of_bytes_that_are_none_fails_in_the_conversion() {
    let (_server, mut client) = start().await;
    let intent = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
        "binaryData": {"k": "***"}});
    let refused = client.patch("apply", &format!("{MAPS}/a?fieldManager=m"), intent).await;
    assert_eq!(refused.code, 500);
    assert!(
        refused
            .message()
            .ends_with("error decoding from json: illegal base64 data at input byte 0")
    );
}

#[tokio::test(start_paused = true)]
async fn scalars_that_are_zero_are_left_out_of_objects_and_of_what_managers_own() {
    let (_server, mut client) = start().await;
    let spec = json!({"containers": [{"name": "c", "image": "i"}], "hostNetwork": false});
    let pod = json!({"metadata": {"name": "a"}, "spec": spec});
    let made = client.post("/api/v1/namespaces/default/pods", pod).await;
    assert_eq!(made.value["spec"]["hostNetwork"], Value::Null);
    assert!(!made.text.contains("f:hostNetwork"));
}

#[tokio::test(start_paused = true)]
async fn the_refusal_of_a_taken_name_keeps_its_warnings() {
    let (_server, mut client) = start().await;
    let url = "/api/v1/namespaces/default/services";
    let body = json!({"metadata": {"name": "s"}, "spec": {
        "externalName": "a.example", "ports": [{"port": 80}]}});
    assert_eq!(client.post(url, body.clone()).await.warnings().len(), 1);
    let taken = client.post(url, body).await;
    assert_eq!((taken.code, taken.warnings().len()), (409, 1), "{}", taken.text);
}

#[tokio::test(start_paused = true)]
async fn a_template_is_checked_like_a_pod_unless_the_selector_is_bad() {
    let (_server, mut client) = start().await;
    let deployment = |selector: &str| {
        json!({"metadata": {"name": "d"}, "spec": {
            "selector": {"matchLabels": {"a": selector}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                "volumes": [{"name": "v", "secret": {}}],
                "containers": [{"name": "c", "image": "i"}]}}}})
    };
    let url = "/apis/apps/v1/namespaces/default/deployments";
    let reply = client.post(url, deployment("b")).await;
    let field = "spec.template.spec.volumes[0].secret.secretName";
    assert_eq!(reply.value["details"]["causes"][0]["field"], field, "{}", reply.text);
    let reply = client.post(url, deployment("x y")).await;
    let causes = reply.value["details"]["causes"].as_array().cloned().unwrap_or_default();
    let fields: Vec<&str> = causes.iter().filter_map(|cause| cause["field"].as_str()).collect();
    assert_eq!(fields, ["spec.selector.matchLabels", "spec.selector"], "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn the_template_of_a_job_that_runs_does_not_change() {
    let (_server, mut client) = start().await;
    let job = |suspend: bool| {
        json!({"metadata": {"name": format!("j-{suspend}")}, "spec": {
            "suspend": suspend, "template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}})
    };
    let url = "/apis/batch/v1/namespaces/default/jobs";
    for (suspend, code) in [(false, 422), (true, 200)] {
        client.post(url, job(suspend)).await;
        let more = json!({"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}});
        let reply = client.patch("merge", &format!("{url}/j-{suspend}"), more).await;
        assert_eq!(reply.code, code, "{}", reply.text);
    }
}

#[tokio::test(start_paused = true)]
async fn the_phase_of_a_pod_is_what_its_status_says() {
    let (_server, mut client) = start().await;
    let url = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "image": "i"}]}});
    let made = client.post(url, pod.clone()).await.value;
    assert_eq!(made["status"]["phase"], "Pending");
    let written = client.put(&format!("{url}/p/status"), pod).await.value;
    assert_eq!(written["status"], json!({"qosClass": "BestEffort"}));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_a_creation_keeps_the_version_zero_that_it_was_sent() {
    let (_server, mut client) = start().await;
    let body = json!({"metadata": {"name": "s", "resourceVersion": "0"}, "spec": {
        "ports": [{"port": 80}]}});
    let url = "/api/v1/namespaces/default/services";
    let reply = client.put(&format!("{url}/s?dryRun=All"), body.clone()).await;
    assert_eq!((reply.code, reply.version()), (201, 0), "{}", reply.text);
    assert_ne!(client.post(url, body).await.version(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_of_a_status_changes_the_metadata_of_most_kinds_as_well() {
    let (_server, mut client) = start().await;
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
        {"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    for (plural, labels) in [("replicasets", json!(null)), ("deployments", json!({"l": "1"}))] {
        let url = format!("/apis/apps/v1/namespaces/default/{plural}");
        let metadata = json!({"name": "w", "labels": {"l": "1"}, "annotations": {"n": "1"}});
        client.post(&url, json!({"metadata": metadata, "spec": spec})).await;
        let body = json!({"metadata": {"name": "w"}, "spec": spec, "status": {"replicas": 1}});
        let reply = client.put(&format!("{url}/w/status"), body).await;
        assert_eq!(reply.value["metadata"]["labels"], labels, "{}", reply.text);
        assert_eq!(reply.value["metadata"]["annotations"], Value::Null, "{}", reply.text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_name_is_refused_as_unknown() {
    let (_server, mut client) = start().await;
    let body = json!({"spec": {"priorityClassName": "nope", "containers": [
        {"name": "c", "image": "i"}]}});
    let reply = client.post("/api/v1/namespaces/default/pods", body).await;
    assert_eq!(reply.value["details"]["name"], "Unknown", "{}", reply.text);
}
