use serde_json::json;

use crate::http::test_support::*;

#[tokio::test(start_paused = true)]
async fn a_definition_is_served_once_its_post_is_answered() {
    let (server, mut client) = start().await;
    let early = client.get(WIDGETS).await;
    assert_eq!((early.code, early.text.as_str()), (404, "404 page not found\n"));
    let made = client.post(CRDS, widgets()).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert_eq!(
        made.value["status"],
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]})
    );
    let settled = client.get(&format!("{CRDS}/widgets.g.io")).await;
    let conditions = settled.value["status"]["conditions"].as_array().unwrap();
    let brief: Vec<_> = conditions
        .iter()
        .map(|one| (one["type"].as_str().unwrap(), one["status"].as_str().unwrap()))
        .collect();
    assert_eq!(brief, [("NamesAccepted", "True"), ("Established", "True")]);
    let widget = client.post(WIDGETS, widget("a", json!({"size": 1}))).await;
    assert_eq!(
        (widget.code, &widget.value["metadata"]["generation"]),
        (201, &json!(1)),
        "{}",
        widget.text
    );
    let list = client.get(WIDGETS).await;
    assert_eq!(list.value["kind"], "WidgetList");
    assert_eq!(list.value["metadata"]["continue"], "");
    assert_eq!(list.value["items"][0]["kind"], "Widget");
    assert_eq!(server.resource_revision("g.io", "widgets"), widget.version());
}

#[tokio::test(start_paused = true)]
async fn custom_resources_need_a_version_on_put_and_keep_status_apart() {
    let (_server, mut client) = start().await;
    client.post(CRDS, widgets()).await;
    let mut body = widget("a", json!({"size": 1}));
    body["status"] = json!({"ready": 5});
    let made = client.post(WIDGETS, body.clone()).await;
    assert_eq!(made.value.get("status"), None);
    let url = format!("{WIDGETS}/a");
    let reply = client.put(&url, body).await;
    assert_eq!(
        (reply.code, reply.message()),
        (
            422,
            "widgets.g.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        )
    );
    let status = client.merge(&format!("{url}/status"), json!({"status": {"ready": 1}, "spec": {"size": 9}, "metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(
        (&status.value["status"], &status.value["spec"]["size"]),
        (&json!({"ready": 1}), &json!(1))
    );
    assert_eq!(status.value["metadata"].get("labels"), None);
    assert_eq!(status.value["metadata"]["generation"], 1);
    let spec = client.merge(&url, json!({"spec": {"size": 2}, "status": {"ready": 9}})).await;
    assert_eq!(
        (&spec.value["status"]["ready"], &spec.value["metadata"]["generation"]),
        (&json!(1), &json!(2))
    );
    let scale = client.merge(&format!("{url}/scale"), json!({"spec": {"replicas": 7}})).await;
    assert_eq!(scale.value["status"], json!({"replicas": 1}));
    assert_eq!(client.get(&url).await.value["spec"]["size"], 7);
}

#[tokio::test(start_paused = true)]
async fn bodies_of_custom_resources_say_what_they_are() {
    let (_server, mut client) = start().await;
    client.post(CRDS, widgets()).await;
    let mut other = widget("a", json!({}));
    other["kind"] = json!("Gadget");
    let reply = client.post(WIDGETS, other).await;
    assert_eq!(
        (reply.code, reply.value["details"]["causes"][0]["field"].as_str()),
        (422, Some("kind"))
    );
    let reply = client.post(WIDGETS, json!({"kind": "Widget"})).await;
    assert_eq!(
        (reply.code, reply.message()),
        (400, "the API version in the data () does not match the expected API version (g.io/v1)")
    );
    let reply = client.post(WIDGETS, json!({})).await;
    assert!(
        reply.message().ends_with("Object 'Kind' is missing in '{}' ({})"),
        "{}",
        reply.message()
    );
    let reply = client.patch("strategic-merge", &format!("{WIDGETS}/a"), json!({})).await;
    assert_eq!(
        reply.message(),
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
}

#[tokio::test(start_paused = true)]
async fn paths_of_custom_kinds_fail_in_their_own_words() {
    let (_server, mut client) = start().await;
    client.post(CRDS, widgets()).await;
    client.post(WIDGETS, widget("a", json!({}))).await;
    let reply = client.delete(&format!("{WIDGETS}/a/status")).await;
    assert_eq!(
        (reply.code, reply.message()),
        (405, "delete is not supported on resources of kind \"widgets.g.io\"")
    );
    let reply = client.get(&format!("{WIDGETS}/a/bogus")).await;
    assert_eq!((reply.code, reply.message()), (404, "widgets.g.io \"a\" not found"));
    assert_eq!(client.get("/apis/g.io/v9/widgets").await.text, "404 page not found\n");
    let reply = client.get(&format!("{WIDGETS}?fieldSelector=spec.nope%3D1")).await;
    assert_eq!((reply.code, reply.message()), (400, "field label not supported: spec.nope"));
}

#[tokio::test(start_paused = true)]
async fn selectable_fields_select() {
    let (_server, mut client) = start().await;
    client.post(CRDS, widgets()).await;
    client.post(WIDGETS, widget("a", json!({"host": "x"}))).await;
    client.post(WIDGETS, widget("b", json!({"host": "y"}))).await;
    assert_eq!(client.get(&format!("{WIDGETS}?fieldSelector=spec.host%3Dx")).await.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_dying_definition_takes_its_instances_along_and_waits_for_their_finalizers() {
    let (server, mut client) = start().await;
    client.post(CRDS, widgets()).await;
    client.post(WIDGETS, widget("a", json!({}))).await;
    let mut held = widget("b", json!({}));
    held["metadata"]["finalizers"] = json!(["x.io/f"]);
    client.post(WIDGETS, held).await;
    let mut watch =
        Watch::open(&server, &format!("{WIDGETS}?watch=1&resourceVersion={}", server.revision()))
            .await;
    let url = format!("{CRDS}/widgets.g.io");
    let dying = client.delete(&url).await;
    assert_eq!(
        (dying.code, &dying.value["metadata"]["finalizers"]),
        (200, &json!(["customresourcecleanup.apiextensions.k8s.io"]))
    );
    assert_eq!(client.get(WIDGETS).await.names(), ["b"]);
    let late = client.post(WIDGETS, widget("c", json!({}))).await;
    assert_eq!(late.code, 403);
    assert!(
        late.message()
            .ends_with("create not allowed while custom resource definition is terminating")
    );
    client.merge(&format!("{WIDGETS}/b"), json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(client.get(&url).await.code, 404);
    assert_eq!(client.get(WIDGETS).await.text, "404 page not found\n");
    let events =
        [watch.brief().await, watch.brief().await, watch.brief().await, watch.brief().await];
    assert_eq!(events, ["DELETED a", "MODIFIED b", "DELETED b", "END"]);
    assert_eq!(client.post(CRDS, widgets()).await.code, 201, "it can come back");
    assert_eq!(client.get(WIDGETS).await.names(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_name_conflict_keeps_a_definition_from_being_served_until_it_is_over() {
    let (_server, mut client) = start().await;
    client.post(CRDS, widgets()).await;
    let mut rival = widgets();
    rival["metadata"]["name"] = json!("gadgets.g.io");
    rival["spec"]["names"]["plural"] = json!("gadgets");
    rival["spec"]["names"]["singular"] = json!("gadget");
    client.post(CRDS, rival).await;
    let url = format!("{CRDS}/gadgets.g.io");
    let condition = &client.get(&url).await.value["status"]["conditions"][0];
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("False"), &json!("ListKindConflict"))
    );
    let path = "/apis/g.io/v1/namespaces/default/gadgets";
    assert_eq!(client.get(path).await.code, 404);
    client.delete(&format!("{CRDS}/widgets.g.io")).await;
    assert_eq!(client.get(path).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn two_versions_show_one_object_and_a_deprecated_one_warns() {
    let (_server, mut client) = start().await;
    let mut body = widgets();
    let mut second = body["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    body["spec"]["versions"][0]["deprecated"] = json!(true);
    body["spec"]["versions"].as_array_mut().unwrap().push(second);
    client.post(CRDS, body).await;
    client.post(WIDGETS, widget("a", json!({"size": 1}))).await;
    let newer = client.get("/apis/g.io/v2/namespaces/default/widgets/a").await;
    assert_eq!(newer.value["apiVersion"], "g.io/v2");
    assert_eq!(newer.warnings(), Vec::<&str>::new());
    let older = client.get(&format!("{WIDGETS}/a")).await;
    assert_eq!(older.warnings(), ["299 - \"g.io/v1 Widget is deprecated; use g.io/v2 Widget\""]);
}

#[tokio::test(start_paused = true)]
async fn rules_are_compiled_with_a_definition_and_run_on_objects() {
    let (_server, mut client) = start().await;
    let mut body = widgets();
    let schema = &mut body["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let spec = &mut schema["properties"]["spec"];
    spec["x-kubernetes-validations"] = json!([{"rule": "self.sise < 9"}]);
    let reply = client.post(CRDS, body.clone()).await;
    assert_eq!(reply.code, 422, "{}", reply.text);
    let text = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule";
    assert!(reply.message().contains(text), "{}", reply.text);
    assert!(reply.message().contains("undefined field 'sise'"), "{}", reply.text);
    let spec = &mut body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["x-kubernetes-validations"] = json!([{"rule": "self.size < 9"}, {"rule": "self.size >= oldSelf.size", "message": "shrinks"}]);
    assert_eq!(client.post(CRDS, body).await.code, 201);
    let reply = client.post(WIDGETS, widget("a", json!({"size": 10}))).await;
    assert_eq!(reply.code, 422, "{}", reply.text);
    assert_eq!(
        reply.message(),
        "Widget.g.io \"a\" is invalid: spec: Invalid value: failed rule: self.size < 9"
    );
    assert_eq!(client.post(WIDGETS, widget("a", json!({"size": 5}))).await.code, 201);
    let url = format!("{WIDGETS}/a");
    let reply = client.merge(&url, json!({"spec": {"size": 4}})).await;
    assert_eq!(reply.message(), "Widget.g.io \"a\" is invalid: spec: Invalid value: shrinks");
    assert_eq!(client.merge(&url, json!({"spec": {"size": 6}})).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn whole_numbers_of_custom_resources_come_back_as_integers() {
    let (_server, mut client) = start().await;
    let mut definition = widgets();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = json!(true);
    client.post(CRDS, definition).await;
    let sent = json!({"size": 20.0, "half": 1.5, "big": 1e19, "below": -3.0});
    let made = client.post(WIDGETS, widget("a", sent)).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let stored = made.value["spec"].to_string();
    assert_eq!(
        stored,
        r#"{"below":-3,"big":10000000000000000000,"half":1.5,"mode":"auto","size":20}"#
    );
}
