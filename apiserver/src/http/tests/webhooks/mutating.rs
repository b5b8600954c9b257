use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::support::*;
use crate::http::test_support::*;

fn add(path: &str, value: Value) -> Value {
    patch(json!([{"op": "add", "path": path, "value": value}]))
}

#[tokio::test(start_paused = true)]
async fn a_patch_changes_what_is_validated_and_stored() {
    let hooks = Hooks::answering(|request| match request["name"].as_str() {
        Some("bad") => add("/data/a b", json!("x")),
        _ => add("/data/x", json!("y")),
    });
    let (_server, mut client) = hooks.start().await;
    configure(&mut client, MUTATING, "c", &[hook("a", json!({}))]).await;
    let reply = client.post(MAPS, map("m")).await;
    assert_eq!((reply.code, &reply.value["data"]), (201, &json!({"k": "v", "x": "y"})));
    // Fields of webhooks have no manager.
    let owned = &reply.value["metadata"]["managedFields"][0]["fieldsV1"]["f:data"];
    assert_eq!(owned, &json!({".": {}, "f:k": {}}));
    assert_eq!(client.get(&format!("{MAPS}/m")).await.value, reply.value);
    let reply = client.post(MAPS, map("bad")).await;
    assert!(
        reply.message().starts_with("ConfigMap \"bad\" is invalid: data[a b]"),
        "{}",
        reply.text
    );
    // Not yet with the decisions of the server.
    let seen = &hooks.requests()[0]["object"]["metadata"];
    assert_eq!((seen.get("uid"), seen.get("creationTimestamp")), (None, None));
}

#[tokio::test(start_paused = true)]
async fn updates_patches_and_applies_are_changed_as_well() {
    let hooks = Hooks::answering(|_| add("/data/x", json!("y")));
    let (_server, mut client) = hooks.start().await;
    client.post(MAPS, map("m")).await;
    configure(&mut client, MUTATING, "c", &[hook("a", json!({}))]).await;
    let url = format!("{MAPS}/m");
    let held = client.get(&url).await.value;
    let reply = client.merge(&url, json!({"data": {"l": "w"}})).await;
    assert_eq!(reply.value["data"], json!({"k": "v", "l": "w", "x": "y"}));
    let request = &hooks.requests()[0];
    assert_eq!((&request["operation"], &request["oldObject"]), (&json!("UPDATE"), &held));
    assert_eq!(request["options"]["kind"], "UpdateOptions");
    let reply = client.put(&url, map("m")).await;
    assert_eq!(reply.value["data"], json!({"k": "v", "x": "y"}));
    let intent = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"},
        "data": {"a": "b"}});
    let reply = client.patch("apply", &format!("{MAPS}/n?fieldManager=f"), intent.clone()).await;
    assert_eq!((reply.code, &reply.value["data"]), (201, &json!({"a": "b", "x": "y"})));
    let version = reply.version();
    let reply = client.patch("apply", &format!("{MAPS}/n?fieldManager=f"), intent).await;
    assert_eq!((reply.code, reply.version()), (200, version));
}

#[tokio::test(start_paused = true)]
async fn webhooks_run_by_name_of_configuration_and_see_earlier_changes() {
    let hooks = Hooks::new(|path, review| {
        let name = path.trim_start_matches('/').split('?').next().unwrap();
        let earlier = review["request"]["object"]["data"]["seen"].as_str().unwrap_or_default();
        Some(answer(review, add("/data/seen", json!(format!("{earlier}{name}")))))
    });
    let (_server, mut client) = hooks.start().await;
    configure(&mut client, MUTATING, "z", &[hook("c", json!({}))]).await;
    configure(&mut client, MUTATING, "y", &[hook("a", json!({})), hook("b", json!({}))]).await;
    let reply = client.post(MAPS, map("m")).await;
    assert_eq!(reply.value["data"]["seen"], "abc");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_is_called_again_if_a_later_one_changes_the_object() {
    let hooks = Hooks::new(|path, review| {
        let name = path.trim_start_matches('/').split('?').next().unwrap();
        let data = &review["request"]["object"]["data"];
        let response = match name {
            "b" if data["b"].is_null() => add("/data/b", json!("1")),
            _ => json!({"allowed": true}),
        };
        Some(answer(review, response))
    });
    let (_server, mut client) = hooks.start().await;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let all = [
        hook("a", again.clone()),
        hook("n", json!({})),
        hook("b", again.clone()),
        hook("c", again),
    ];
    configure(&mut client, MUTATING, "c", &all).await;
    assert_eq!(client.post(MAPS, map("m")).await.code, 201);
    let names: Vec<_> = hooks.paths().iter().map(|path| path[1..2].to_owned()).collect();
    assert_eq!(names, ["a", "n", "b", "c", "a"]);
}

#[tokio::test(start_paused = true)]
async fn patches_that_do_not_apply_fail_the_request() {
    let of = |op: &str, path: &str| json!([{"op": op, "path": path, "value": 1}]);
    for (operations, text) in [
        (
            of("remove", "/data/zz"),
            "error in remove for path: '/data/zz': Unable to remove nonexistent key: zz: missing value",
        ),
        (
            of("add", "/nope/zz/y"),
            "add operation does not apply: doc is missing path: \"/nope/zz/y\": missing value",
        ),
        (of("test", "/data/k"), "testing value /data/k failed: test failed"),
        (of("frob", "/data/k"), "Unexpected kind: frob"),
        (
            json!([{"op": "add", "path": "/data", "value": 5}]),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string",
        ),
        (
            json!([{"op": "add", "path": "/kind", "value": "Foo"}]),
            "no kind \"Foo\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
    ] {
        let hooks = Hooks::answering(move |_| patch(operations.clone()));
        let (_server, mut client) = hooks.start().await;
        configure(&mut client, MUTATING, "c", &[hook("a", json!({"failurePolicy": "Ignore"}))])
            .await;
        let reply = client.post(MAPS, map("m")).await;
        assert_eq!(
            (reply.code, reply.message()),
            (500, &*format!("Internal error occurred: {text}"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn answers_with_an_unusable_patch_count_as_failed_calls() {
    let failed = |response: Value, text: &'static str| (response, text);
    for (response, text) in [
        failed(
            json!({"patch": "W10="}),
            "received invalid webhook response: webhook returned response.patch but not response.patchType",
        ),
        failed(
            json!({"patchType": "JSONPatch"}),
            "received invalid webhook response: webhook returned response.patchType but not response.patch",
        ),
        failed(
            json!({"patch": "W10=", "patchType": ""}),
            "received invalid webhook response: webhook returned invalid response.patchType of \"\"",
        ),
        failed(
            json!({"patch": "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d", "patchType": "Foo"}),
            "unsupported patch type \"Foo\"",
        ),
        failed(
            json!({"patch": "e30=", "patchType": "JSONPatch"}),
            "received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
        failed(
            json!({"patch": "***", "patchType": "JSONPatch"}),
            "failed to call webhook: illegal base64 data at input byte 0",
        ),
    ] {
        for policy in ["Fail", "Ignore"] {
            let sent = response.clone();
            let hooks = Hooks::answering(move |_| {
                let mut response = sent.clone();
                response["allowed"] = json!(true);
                response
            });
            let (_server, mut client) = hooks.start().await;
            configure(&mut client, MUTATING, "c", &[hook("a", json!({"failurePolicy": policy}))])
                .await;
            let reply = client.post(MAPS, map("m")).await;
            if policy == "Ignore" {
                assert_eq!(reply.code, 201, "{}", reply.text);
                continue;
            }
            let text = format!(
                "Internal error occurred: failed calling webhook \"a.example.com\": {text}"
            );
            assert_eq!((reply.code, reply.message()), (500, &*text));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_cannot_move_the_object_nor_change_a_deletion() {
    let hooks = Hooks::answering(|request| match request["operation"].as_str() {
        Some("CREATE") => add("/metadata/namespace", json!("kube-system")),
        _ => add("/data/x", json!("y")),
    });
    let (_server, mut client) = hooks.start().await;
    client.post(MAPS, map("held")).await;
    configure(&mut client, MUTATING, "c", &[hook("a", json!({}))]).await;
    let reply = client.post(MAPS, map("m")).await;
    let text =
        "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!((reply.code, reply.message()), (400, text));
    let reply = client.delete(&format!("{MAPS}/held")).await;
    let text = "Internal error occurred: admission webhook \"a.example.com\" attempted to modify the object, which is not supported for this operation";
    assert_eq!((reply.code, reply.message()), (500, text));
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_is_unknown_to_mutating_webhooks_and_known_to_validating_ones() {
    let hooks = Hooks::answering(|_| json!({"allowed": true}));
    let (_server, mut client) = hooks.start().await;
    configure(&mut client, MUTATING, "c", &[hook("a", json!({}))]).await;
    configure(&mut client, VALIDATING, "c", &[hook("b", json!({}))]).await;
    let reply = client.post(MAPS, json!({"metadata": {"generateName": "g-"}})).await;
    let requests = hooks.requests();
    assert_eq!(requests[0].get("name"), None);
    assert_eq!(requests[1]["name"], reply.value["metadata"]["name"]);
    assert_eq!(requests[1]["object"]["metadata"]["uid"], reply.value["metadata"]["uid"]);
    assert_eq!(requests.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_scale_is_changed_as_a_scale() {
    let hooks = Hooks::answering(|request| match request["subResource"].as_str() {
        Some("scale") => add("/spec/replicas", json!(2)),
        _ => json!({"allowed": true}),
    });
    let (_server, mut client) = hooks.start().await;
    client.post(DEPLOYMENTS, deployment("d", 1)).await;
    let rules = json!({"rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"],
        "resources": ["deployments/scale"], "operations": ["UPDATE"]}]});
    configure(&mut client, MUTATING, "c", &[hook("a", rules)]).await;
    let url = format!("{DEPLOYMENTS}/d/scale");
    let reply = client.merge(&url, json!({"spec": {"replicas": 9}})).await;
    assert_eq!((reply.code, &reply.value["spec"]["replicas"]), (200, &json!(2)), "{}", reply.text);
    assert_eq!(hooks.requests()[0]["object"]["kind"], "Scale");
    assert_eq!(hooks.requests()[0]["object"]["spec"]["replicas"], 9);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_meanwhile_is_shown_again() {
    let calls = AtomicUsize::new(0);
    let hooks = Hooks::answering(move |request| {
        let number = calls.fetch_add(1, Ordering::SeqCst);
        let stored = request["oldObject"]["data"].clone();
        add("/data/number", json!(format!("{number} {stored}")))
    });
    let (server, mut client) = hooks.start().await;
    client.post(MAPS, map("m")).await;
    configure(&mut client, MUTATING, "c", &[hook("a", json!({}))]).await;
    let (mut first, mut second) = (Client::of(&server).await, Client::of(&server).await);
    let url = format!("{MAPS}/m");
    let (one, two) = tokio::join!(
        first.merge(&url, json!({"data": {"one": "1"}})),
        second.merge(&url, json!({"data": {"two": "2"}})),
    );
    assert_eq!((one.code, two.code), (200, 200), "{} {}", one.text, two.text);
    let held = client.get(&url).await.value;
    assert_eq!((&held["data"]["one"], &held["data"]["two"]), (&json!("1"), &json!("2")));
    // The last writer has seen the write of the other.
    let number = held["data"]["number"].as_str().unwrap();
    assert!(number.contains("one") || number.contains("two"), "{number}");
}
