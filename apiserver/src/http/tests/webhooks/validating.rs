use serde_json::{Value, json};

use super::support::*;
use crate::http::test_support::*;

#[tokio::test(start_paused = true)]
async fn a_denied_request_names_the_webhook_and_stores_nothing() {
    for (status, code, reason, text) in [
        (Value::Null, 400, Value::Null, " without explanation"),
        (json!({"message": "no way"}), 400, Value::Null, ": no way"),
        (json!({"reason": "Weird", "code": 200}), 400, json!("Weird"), ": Weird"),
        (
            json!({"message": "x", "reason": "Forbidden", "code": 403}),
            403,
            json!("Forbidden"),
            ": x",
        ),
        (json!({"message": "x", "code": 418}), 418, Value::Null, ": x"),
    ] {
        let hooks = Hooks::answering(move |_| json!({"allowed": false, "status": status.clone()}));
        let (_server, mut client) = hooks.start().await;
        configure(&mut client, VALIDATING, "c", &[hook("a", json!({}))]).await;
        let reply = client.post(MAPS, map("m")).await;
        let wanted = format!("admission webhook \"a.example.com\" denied the request{text}");
        assert_eq!((reply.code, reply.message()), (code, &*wanted));
        assert_eq!(reply.value["reason"], reason);
        assert_eq!(client.get(&format!("{MAPS}/m")).await.code, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn the_details_of_a_denial_are_those_of_the_webhook() {
    let details = json!({"name": "n", "kind": "k",
        "causes": [{"reason": "R", "message": "m", "field": "f"}]});
    let sent = details.clone();
    let hooks = Hooks::answering(
        move |_| json!({"allowed": false, "status": {"message": "x", "code": 403, "details": sent}}),
    );
    let (_server, mut client) = hooks.start().await;
    configure(&mut client, VALIDATING, "c", &[hook("a", json!({}))]).await;
    assert_eq!(client.post(MAPS, map("m")).await.value["details"], details);
}

#[tokio::test(start_paused = true)]
async fn a_review_describes_the_request() {
    let hooks = Hooks::answering(|_| json!({"allowed": true}));
    let (_server, mut client) = hooks.start().await;
    configure(&mut client, VALIDATING, "c", &[hook("a", json!({"timeoutSeconds": 7}))]).await;
    let created = client.post(&format!("{MAPS}?fieldManager=me"), map("m")).await;
    client.merge(&format!("{MAPS}/m?dryRun=All"), json!({"data": {"k": "w"}})).await;
    client.delete_with(&format!("{MAPS}/m"), json!({"gracePeriodSeconds": 5})).await;
    assert_eq!(hooks.paths(), ["/a?timeout=7s"; 3]);
    let [create, update, delete] = &hooks.requests()[..] else { panic!() };
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    for (request, operation) in [(create, "CREATE"), (update, "UPDATE"), (delete, "DELETE")] {
        assert_eq!((&request["kind"], &request["requestKind"]), (&kind, &kind));
        assert_eq!((&request["resource"], &request["requestResource"]), (&resource, &resource));
        assert_eq!(request["operation"], operation);
        assert_eq!((&request["name"], &request["namespace"]), (&json!("m"), &json!("default")));
        assert_eq!(request["userInfo"]["username"], "system:admin");
        assert_eq!(request.get("subResource"), None);
        assert_eq!(request["uid"].as_str().unwrap().len(), 36);
    }
    // The object is complete, but is not stored yet.
    let mut complete = created.value.clone();
    complete["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    assert_eq!((&create["object"], &create["oldObject"]), (&complete, &Value::Null));
    let options = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1",
        "fieldManager": "me"});
    assert_eq!((&create["options"], &create["dryRun"]), (&options, &json!(false)));
    assert_eq!(
        (&update["object"]["data"]["k"], &update["oldObject"]),
        (&json!("w"), &created.value)
    );
    assert_eq!(update["dryRun"], true);
    let versions =
        [&update["object"], &update["oldObject"]].map(|one| &one["metadata"]["resourceVersion"]);
    assert_eq!(versions[0], versions[1]);
    assert_eq!((&delete["object"], &delete["oldObject"]), (&Value::Null, &created.value));
    assert_eq!(delete["options"]["gracePeriodSeconds"], 5);
}

#[tokio::test(start_paused = true)]
async fn all_webhooks_are_asked_and_the_first_refusal_counts() {
    let hooks = Hooks::new(|path, review| {
        let name = path.trim_start_matches('/').split('?').next().unwrap();
        let status = json!({"message": format!("by {name}")});
        let warnings = json!([format!("warned by {name}")]);
        let response = json!({"allowed": name == "a", "status": status, "warnings": warnings});
        Some(answer(review, response))
    });
    let (_server, mut client) = hooks.start().await;
    configure(&mut client, VALIDATING, "d", &[hook("c", json!({}))]).await;
    let pair = [hook("a", json!({})), hook("b", json!({}))];
    configure(&mut client, VALIDATING, "c", &pair).await;
    let reply = client.post(MAPS, map("m")).await;
    assert_eq!(reply.message(), "admission webhook \"b.example.com\" denied the request: by b");
    let warned = ["a", "b", "c"].map(|name| format!("299 - \"warned by {name}\""));
    assert_eq!(reply.warnings(), warned);
    assert_eq!(hooks.paths().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn rules_selectors_and_conditions_decide_which_webhooks_are_called() {
    let rule = |group: &str, resource: &str, operation: &str| {
        json!({"rules": [{"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource],
            "operations": [operation], "scope": "Namespaced"}]})
    };
    let labels = |key: &str, value: &str| json!({"matchLabels": {key: value}});
    let condition = |text: &str| json!({"matchConditions": [{"name": "c", "expression": text}]});
    let home = "kubernetes.io/metadata.name";
    for (fields, is_called) in [
        (rule("", "configmaps", "CREATE"), true),
        (rule("*", "*", "*"), true),
        (rule("", "*/*", "*"), true),
        (rule("", "secrets", "*"), false),
        (rule("", "configmaps/status", "*"), false),
        (rule("", "configmaps", "DELETE"), false),
        (json!({"rules": []}), false),
        (json!({"namespaceSelector": labels(home, "default")}), true),
        (json!({"namespaceSelector": labels(home, "other")}), false),
        (json!({"objectSelector": labels("app", "x")}), true),
        (json!({"objectSelector": labels("app", "y")}), false),
        (condition("object.data.k == 'v'"), true),
        (condition("request.operation == 'DELETE'"), false),
    ] {
        let hooks = Hooks::answering(|_| json!({"allowed": true}));
        let (_server, mut client) = hooks.start().await;
        configure(&mut client, VALIDATING, "c", &[hook("a", fields.clone())]).await;
        let mut object = map("m");
        object["metadata"]["labels"] = json!({"app": "x"});
        assert_eq!(client.post(MAPS, object).await.code, 201);
        assert_eq!(hooks.paths().len(), usize::from(is_called), "{fields}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_condition_refuses_the_request_or_skips_the_webhook() {
    let hooks = Hooks::answering(|_| json!({"allowed": false}));
    let (_server, mut client) = hooks.start().await;
    let conditions = json!([{"name": "c", "expression": "object.foo == 1"}]);
    let ignored = json!({"matchConditions": conditions, "failurePolicy": "Ignore"});
    configure(&mut client, VALIDATING, "c", &[hook("a", ignored)]).await;
    assert_eq!(client.post(MAPS, map("m")).await.code, 201);
    let failing = json!({"matchConditions": conditions});
    configure(&mut client, VALIDATING, "d", &[hook("b", failing)]).await;
    let reply = client.post(MAPS, map("n")).await;
    let text = "configmaps \"n\" is forbidden: expression 'object.foo == 1' resulted in error: no such key: foo";
    assert_eq!((reply.code, reply.message()), (403, text));
    assert!(hooks.paths().is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_version_of_a_resource_is_matched_unless_the_policy_is_exact() {
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    for (policy, is_called) in [("Equivalent", true), ("Exact", false)] {
        let hooks = Hooks::answering(|_| json!({"allowed": true}));
        let (_server, mut client) = hooks.start().await;
        let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["events"],
            "operations": ["*"]}]);
        let fields = json!({"rules": rules, "matchPolicy": policy});
        configure(&mut client, VALIDATING, "c", &[hook("a", fields)]).await;
        let event = json!({"metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z",
            "action": "a", "reason": "r", "type": "Normal", "reportingController": "c/c",
            "reportingInstance": "i", "note": "hello",
            "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}});
        let reply = client.post(events, event).await;
        assert_eq!(reply.code, 201, "{}", reply.text);
        let requests = hooks.requests();
        assert_eq!(requests.len(), usize::from(is_called));
        for request in requests {
            assert_eq!(
                (&request["kind"]["group"], &request["requestKind"]["group"]),
                (&json!(""), &json!("events.k8s.io"))
            );
            assert_eq!(request["object"]["message"], "hello");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_refused_only_by_webhooks_with_side_effects() {
    let hooks = Hooks::answering(|_| json!({"allowed": true}));
    let (server, mut client) = hooks.start().await;
    let url = format!("{MAPS}?dryRun=All");
    configure(&mut client, VALIDATING, "c", &[hook("a", json!({}))]).await;
    assert_eq!(client.post(&url, map("m")).await.code, 201);
    // Only configurations of older servers have side effects.
    let object = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "d"},
        "webhooks": [hook("b", json!({"sideEffects": "Some"}))]});
    let group = "admissionregistration.k8s.io";
    server.commit(group, "validatingwebhookconfigurations", "", "d", Some(object)).unwrap();
    let reply = client.post(&url, map("m")).await;
    let text = "admission webhook \"b.example.com\" does not support dry run";
    assert_eq!((reply.code, reply.message()), (400, text));
    assert_eq!(client.post(MAPS, map("m")).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn webhooks_do_not_see_the_configurations_of_admission() {
    let hooks = Hooks::answering(|_| json!({"allowed": false}));
    let (_server, mut client) = hooks.start().await;
    let all = json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"],
        "operations": ["*"]}]});
    configure(&mut client, VALIDATING, "c", &[hook("a", all.clone())]).await;
    configure(&mut client, MUTATING, "c", &[hook("a", all)]).await;
    assert_eq!(client.delete(&format!("{MUTATING}/c")).await.code, 200);
    assert!(hooks.paths().is_empty());
    assert_eq!(client.post(MAPS, map("m")).await.code, 400);
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_collection_is_judged_object_by_object() {
    let hooks = Hooks::answering(|request| {
        let name = &request["oldObject"]["metadata"]["name"];
        json!({"allowed": request["operation"] != "DELETE" || name != "c"})
    });
    let (_server, mut client) = hooks.start().await;
    for name in ["a", "b", "c", "d"] {
        client.post(MAPS, map(name)).await;
    }
    configure(&mut client, VALIDATING, "c", &[hook("h", json!({}))]).await;
    let reply = client.delete(MAPS).await;
    assert_eq!(reply.code, 400, "{}", reply.text);
    assert!(hooks.requests().iter().all(|request| request.get("name").is_none()));
    assert_eq!(client.get(MAPS).await.names(), ["c", "d"]);
    assert_eq!(client.delete(&format!("{VALIDATING}/c")).await.code, 200);
    assert_eq!(client.delete(MAPS).await.names(), ["c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn connections_actions_and_subresources_are_judged() {
    let hooks = Hooks::answering(|request| json!({"allowed": request["subResource"] == "status"}));
    let (_server, mut client) = hooks.start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "main", "image": "nginx"}]}});
    assert_eq!(client.post(pods, pod).await.code, 201);
    let all = json!({"rules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "resources": ["pods/*", "serviceaccounts/token"], "operations": ["*"]}]});
    configure(&mut client, VALIDATING, "c", &[hook("a", all)]).await;
    let url = format!("{pods}/p");
    let denied = "admission webhook \"a.example.com\" denied the request without explanation";
    let exec = format!("{url}/exec?command=ls&command=-l&stdin=true&container=main");
    for reply in [
        client.post(&exec, json!({})).await,
        client.post(&format!("{url}/eviction"), json!({"metadata": {"name": "p"}})).await,
        client
            .post(
                &format!("{url}/binding"),
                json!({"metadata": {"name": "p"},
            "target": {"name": "n"}}),
            )
            .await,
    ] {
        assert_eq!((reply.code, reply.message()), (400, denied));
    }
    let status = json!({"status": {"phase": "Running"}});
    assert_eq!(client.merge(&format!("{url}/status"), status).await.code, 200);
    let requests = hooks.requests();
    let seen: Vec<_> = requests
        .iter()
        .map(|one| format!("{} {} {}", one["operation"], one["subResource"], one["kind"]["kind"]))
        .collect();
    assert_eq!(
        seen,
        [
            r#""CONNECT" "exec" "PodExecOptions""#,
            r#""CREATE" "eviction" "Eviction""#,
            r#""CREATE" "binding" "Binding""#,
            r#""UPDATE" "status" "Pod""#,
        ]
    );
    assert_eq!(
        requests[0]["object"],
        json!({"kind": "PodExecOptions", "apiVersion": "v1",
        "stdin": true, "container": "main",
        "command": ["ls", "-l"]})
    );
    assert_eq!(requests[0]["options"], Value::Null);
}
