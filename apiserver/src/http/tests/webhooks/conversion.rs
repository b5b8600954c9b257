use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::support::*;
use crate::ApiServer;
use crate::http::test_support::*;

const OLD: &str = "/apis/g.io/v1/namespaces/default/widgets";
const NEW: &str = "/apis/g.io/v2/namespaces/default/widgets";

/// Returns a version in which the size has the name `field`.
fn version(name: &str, field: &str, storage: bool) -> Value {
    let spec = json!({"type": "object", "properties": {field: {"type": "integer"},
        "mode": {"type": "string", "default": format!("auto-{name}")}}});
    let status = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object",
            "properties": {"spec": spec, "status": status}}},
        "subresources": {"status": {}, "scale": {
            "specReplicasPath": format!(".spec.{field}"), "statusReplicasPath": ".status.n"}},
        "selectableFields": [{"jsonPath": format!(".spec.{field}")}],
    })
}

/// Returns a definition with `size` in v1 and `count` in v2, which is stored.
fn definition() -> Value {
    let mut definition = widgets();
    definition["spec"]["versions"] =
        json!([version("v1", "size", false), version("v2", "count", true)]);
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://hooks.test/convert"}}});
    definition
}

/// Returns an object in the wanted version.
fn convert(object: &Value, wanted: &str) -> Value {
    let (from, to) = if wanted == "g.io/v1" { ("count", "size") } else { ("size", "count") };
    let mut made = object.clone();
    made["apiVersion"] = wanted.into();
    if let Some(size) = made["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
        made["spec"][to] = size;
    }
    made
}

/// Returns the answer to a review, changed by `change`.
fn answered(review: &Value, change: impl Fn(&mut Value)) -> Value {
    let request = &review["request"];
    let wanted = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap();
    let made: Vec<_> = objects.iter().map(|object| convert(object, wanted)).collect();
    let mut answer = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": request["uid"], "convertedObjects": made,
            "result": {"status": "Success"}},
    });
    change(&mut answer);
    answer
}

fn converting() -> Hooks {
    Hooks::new(|_, review| Some((200, answered(review, |_| {}).to_string())))
}

/// Starts a server with the definition.
async fn start(hooks: &Hooks) -> (ApiServer, Client) {
    let (server, mut client) = hooks.start().await;
    let reply = client.post(CRDS, definition()).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    (server, client)
}

fn old(name: &str, size: u32) -> Value {
    widget(name, json!({"size": size}))
}

fn new(name: &str, count: u32) -> Value {
    json!({"apiVersion": "g.io/v2", "kind": "Widget", "metadata": {"name": name},
        "spec": {"count": count}})
}

#[tokio::test(start_paused = true)]
async fn an_object_is_written_in_one_version_and_read_in_another() {
    let hooks = converting();
    let (server, mut client) = start(&hooks).await;
    let created = client.post(OLD, old("a", 3)).await;
    assert_eq!(
        (created.code, &created.value["spec"]),
        (201, &json!({"size": 3, "mode": "auto-v1"}))
    );
    let stored = server.get_object("g.io", "widgets", "default", "a").unwrap();
    assert_eq!((&stored["apiVersion"], &stored["spec"]["count"]), (&json!("g.io/v2"), &json!(3)));
    let wanted: Vec<_> =
        hooks.requests().iter().map(|request| request["desiredAPIVersion"].clone()).collect();
    assert_eq!(wanted, ["g.io/v2", "g.io/v1"]);
    assert_eq!(hooks.paths()[0], "/convert?timeout=30s");
    assert_eq!(client.get(&format!("{OLD}/a")).await.value, created.value);
    assert_eq!(client.get(&format!("{NEW}/a")).await.value["spec"]["count"], 3);
    // No conversion is needed for the stored version.
    let calls = hooks.paths().len();
    assert_eq!(client.post(NEW, new("b", 4)).await.code, 201);
    assert_eq!(client.get(&format!("{NEW}/b")).await.code, 200);
    assert_eq!(hooks.paths().len(), calls);
    assert_eq!(
        client.get(&format!("{OLD}/b")).await.value["spec"],
        json!({"size": 4, "mode": "auto-v2"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_is_converted_at_once_and_selected_afterwards() {
    let hooks = converting();
    let (_server, mut client) = start(&hooks).await;
    for (name, count) in [("a", 1), ("b", 2), ("c", 2)] {
        client.post(NEW, new(name, count)).await;
    }
    let list = client.get(OLD).await;
    assert_eq!(list.names(), ["a", "b", "c"]);
    assert!(
        list.value["items"].as_array().unwrap().iter().all(|item| item["apiVersion"] == "g.io/v1")
    );
    assert_eq!(hooks.requests().len(), 1);
    assert_eq!(hooks.requests()[0]["objects"].as_array().unwrap().len(), 3);
    assert_eq!(client.get(&format!("{OLD}?fieldSelector=spec.size%3D2")).await.names(), ["b", "c"]);
    let page = client.get(&format!("{OLD}?limit=2")).await;
    assert_eq!(
        (page.names(), &page.value["metadata"]["remainingItemCount"]),
        (vec!["a".to_owned(), "b".to_owned()], &json!(1))
    );
}

#[tokio::test(start_paused = true)]
async fn changes_start_from_the_version_of_the_request() {
    let hooks = converting();
    let (_server, mut client) = start(&hooks).await;
    client.post(NEW, new("b", 4)).await;
    let url = format!("{OLD}/b");
    let reply = client.merge(&url, json!({"spec": {"size": 5}})).await;
    assert_eq!((reply.code, &reply.value["spec"]["size"]), (200, &json!(5)), "{}", reply.text);
    let version = reply.version();
    assert_eq!(client.merge(&url, json!({"spec": {"size": 5}})).await.version(), version);
    let reply = client.merge(&format!("{url}/status"), json!({"status": {"n": 6}})).await;
    assert_eq!((&reply.value["status"]["n"], &reply.value["spec"]["size"]), (&json!(6), &json!(5)));
    let scale = client.merge(&format!("{url}/scale"), json!({"spec": {"replicas": 7}})).await;
    assert_eq!(
        (&scale.value["spec"]["replicas"], &scale.value["status"]["replicas"]),
        (&json!(7), &json!(6)),
        "{}",
        scale.text
    );
    let reply =
        client.patch("apply", &format!("{url}?fieldManager=f&force=true"), old("b", 9)).await;
    assert_eq!((reply.code, &reply.value["spec"]["size"]), (200, &json!(9)), "{}", reply.text);
    let mut whole = reply.value;
    whole["spec"]["size"] = json!(10);
    assert_eq!(client.put(&url, whole).await.code, 200);
    assert_eq!(client.get(&format!("{NEW}/b")).await.value["spec"]["count"], 10);
    let reply = client.merge(&url, json!({"spec": {"size": "x"}})).await;
    assert!(reply.message().contains("spec.size"), "{}", reply.text);
    assert_eq!(client.delete(&url).await.value["status"], "Success");
    assert_eq!(client.get(&url).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn events_of_a_watch_are_converted_and_selected_in_its_version() {
    let hooks = converting();
    let (server, mut client) = start(&hooks).await;
    client.post(NEW, new("a", 1)).await;
    let mut all = Watch::open(&server, &format!("{OLD}?watch=1")).await;
    let mut twos =
        Watch::open(&server, &format!("{OLD}?watch=1&fieldSelector=spec.size%3D2")).await;
    let event = all.event().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["spec"]["size"]), (&json!("ADDED"), &json!(1)));
    client.merge(&format!("{NEW}/a"), json!({"spec": {"count": 2}})).await;
    let event = all.event().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["spec"]["size"]), (&json!("MODIFIED"), &json!(2)));
    assert_eq!(event["object"]["apiVersion"], "g.io/v1");
    assert_eq!(twos.brief().await, "ADDED a");
    client.merge(&format!("{NEW}/a"), json!({"spec": {"count": 3}})).await;
    assert_eq!(twos.brief().await, "DELETED a");
    client.delete(&format!("{NEW}/a")).await;
    assert_eq!((all.brief().await, all.brief().await), ("MODIFIED a".into(), "DELETED a".into()));
}

#[tokio::test(start_paused = true)]
async fn answers_of_a_conversion_are_checked() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 19] = [
        (
            |r| r["response"]["result"] = json!({"status": "Failure", "message": "cannot do"}),
            "failed: cannot do",
        ),
        (
            |r| r["response"]["result"] = json!({"status": "Failure"}),
            "failed: response.result.status was 'Failure', not 'Success'",
        ),
        (
            |r| drop(r["response"].as_object_mut().unwrap().remove("result")),
            "failed: response.result.status was '', not 'Success'",
        ),
        (|r| r["response"]["convertedObjects"] = json!([]), "returned 0 objects, expected 1"),
        (
            |r| {
                let one = r["response"]["convertedObjects"][0].clone();
                r["response"]["convertedObjects"] = json!([one, one])
            },
            "returned 2 objects, expected 1",
        ),
        (
            |r| r["response"]["convertedObjects"][0]["apiVersion"] = json!("g.io/v2"),
            "returned invalid object at index 0: invalid groupVersion (expected g.io/v1, received g.io/v2)",
        ),
        (
            |r| r["response"]["convertedObjects"][0]["kind"] = json!("Foo"),
            "returned invalid object at index 0: invalid kind (expected Widget, received Foo)",
        ),
        (
            |r| r["response"]["convertedObjects"][0]["metadata"]["name"] = json!("zz"),
            "returned invalid object: must have the same name: b != zz",
        ),
        (
            |r| r["response"]["convertedObjects"][0]["metadata"]["namespace"] = json!("zz"),
            "returned invalid object: must have the same namespace: default != zz",
        ),
        (
            |r| {
                drop(
                    r["response"]["convertedObjects"][0]
                        .as_object_mut()
                        .unwrap()
                        .remove("metadata"),
                )
            },
            "returned invalid object: must have the same name: b != ",
        ),
        (
            |r| r["response"]["convertedObjects"][0]["metadata"]["labels"] = json!({"a b": "c"}),
            "returned invalid metadata: metadata.labels: Invalid value: \"a b\": name part must consist",
        ),
        (
            |r| {
                r["response"]["convertedObjects"][0]["metadata"]["annotations"] =
                    json!({"a b": "c"})
            },
            "returned invalid metadata: metadata.annotation: Invalid value: \"a b\": name part must consist",
        ),
        (
            |r| r["response"]["convertedObjects"][0]["metadata"]["labels"] = json!({"a": 5}),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
        (
            |r| r["response"]["convertedObjects"][0]["metadata"]["labels"] = json!("x"),
            "returned invalid metadata: invalid metadata.labels of type string in converted object",
        ),
        (|r| drop(r.as_object_mut().unwrap().remove("response")), "failed: no response provided"),
        (
            |r| *r = json!({"response": r["response"]}),
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
        ),
        (|r| r["response"]["uid"] = json!("x"), "failed: expected response.uid="),
        (
            |r| r["kind"] = json!("Foo"),
            "failed: no kind \"Foo\" is registered for version \"apiextensions.k8s.io/v1\"",
        ),
        (|r| *r = json!("oops"), "failed: couldn't get version/kind; json parse error"),
    ];
    for (change, text) in cases {
        let hooks = Hooks::new(move |_, review| Some((200, answered(review, change).to_string())));
        let (_server, mut client) = start(&hooks).await;
        client.post(NEW, new("b", 4)).await;
        let reply = client.get(&format!("{OLD}/b")).await;
        let wanted = format!("conversion webhook for g.io/v2, Kind=Widget {text}");
        assert!(reply.message().starts_with(&wanted), "{} is not {wanted}", reply.message());
        assert_eq!((reply.code, reply.value.get("reason")), (500, None));
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_stays_except_for_labels_and_annotations_and_unknown_fields_are_dropped() {
    let hooks = Hooks::new(|_, review| {
        let changed = answered(review, |answer| {
            let object = &mut answer["response"]["convertedObjects"][0];
            object["metadata"]["generation"] = json!(77);
            object["metadata"]["finalizers"] = json!(["a/b"]);
            object["metadata"]["labels"] = json!({"n": "w"});
            object["spec"]["zork"] = json!(1);
        });
        Some((200, changed.to_string()))
    });
    let (_server, mut client) = start(&hooks).await;
    client.post(NEW, new("b", 4)).await;
    let reply = client.get(&format!("{OLD}/b")).await;
    let metadata = &reply.value["metadata"];
    assert_eq!((&metadata["generation"], &metadata["labels"]), (&json!(1), &json!({"n": "w"})));
    assert_eq!((metadata.get("finalizers"), reply.value["spec"].get("zork")), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_failed_conversion_fails_the_request_and_changes_nothing() {
    let fails = Arc::new(AtomicBool::new(false));
    let broken = fails.clone();
    let hooks = Hooks::new(move |_, review| {
        if broken.load(Ordering::SeqCst) {
            return Some((500, String::new()));
        }
        Some((200, answered(review, |_| {}).to_string()))
    });
    let (server, mut client) = start(&hooks).await;
    client.post(OLD, old("b", 4)).await;
    let mut watch = Watch::open(&server, &format!("{OLD}?watch=1")).await;
    assert_eq!(watch.brief().await, "ADDED b");
    fails.store(true, Ordering::SeqCst);
    let before = server.revision();
    let url = format!("{OLD}/b");
    let why =
        "failed: an error on the server (\"unknown\") has prevented the request from succeeding";
    let stored = format!("conversion webhook for g.io/v2, Kind=Widget {why}");
    for (reply, text) in [
        (
            client.post(OLD, old("z", 1)).await,
            format!("conversion webhook for g.io/v1, Kind=Widget {why}"),
        ),
        (client.get(&url).await, stored.clone()),
        (client.get(OLD).await, stored.clone()),
        (client.merge(&url, json!({"spec": {"size": 1}})).await, stored.clone()),
        (client.delete(&url).await, stored.clone()),
        (client.delete(OLD).await, stored.clone()),
    ] {
        assert_eq!((reply.code, reply.message()), (500, &*text));
    }
    assert_eq!(server.revision(), before);
    assert_eq!(client.get(&format!("{NEW}/b")).await.code, 200);
    client.merge(&format!("{NEW}/b"), json!({"spec": {"count": 8}})).await;
    let event = watch.event().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["message"]), (&json!("ERROR"), &json!(stored)));
    assert_eq!(watch.brief().await, "END");
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_change_migrates_the_stored_version() {
    let hooks = converting();
    let (server, mut client) = start(&hooks).await;
    client.post(NEW, new("b", 4)).await;
    let url = format!("{CRDS}/widgets.g.io");
    let mut changed = client.get(&url).await.value;
    assert_eq!(changed["status"]["storedVersions"], json!(["v2"]));
    changed["spec"]["versions"][0]["storage"] = json!(true);
    changed["spec"]["versions"][1]["storage"] = json!(false);
    let reply = client.put(&url, changed).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    assert_eq!(client.get(&url).await.value["status"]["storedVersions"], json!(["v2", "v1"]));
    let before = client.get(&format!("{OLD}/b")).await;
    assert_eq!(before.value["spec"]["size"], 4);
    let reply = client.put(&format!("{OLD}/b"), before.value.clone()).await;
    assert!(reply.version() > before.version());
    let calls = hooks.paths().len();
    assert_eq!(client.get(&format!("{OLD}/b")).await.value["spec"]["size"], 4);
    assert_eq!(hooks.paths().len(), calls);
    let stored = server.get_object("g.io", "widgets", "default", "b").unwrap();
    assert_eq!(stored["apiVersion"], "g.io/v1");
}

#[tokio::test(start_paused = true)]
async fn admission_webhooks_see_the_version_of_their_rules() {
    let hooks = Hooks::new(|path, review| {
        if path.starts_with("/convert") {
            return Some((200, answered(review, |_| {}).to_string()));
        }
        Some(answer(review, patch(json!([{"op": "add", "path": "/spec/count", "value": 7}]))))
    });
    let (_server, mut client) = start(&hooks).await;
    let rules = json!({"rules": [{"apiGroups": ["g.io"], "apiVersions": ["v2"],
        "resources": ["widgets"], "operations": ["*"]}]});
    configure(&mut client, MUTATING, "c", &[hook("a", rules)]).await;
    let reply = client.post(OLD, old("a", 3)).await;
    assert_eq!((reply.code, &reply.value["spec"]["size"]), (201, &json!(7)), "{}", reply.text);
    let reviews = hooks.reviews();
    let review = reviews.iter().find(|one| one["kind"] == "AdmissionReview").unwrap();
    let request = &review["request"];
    assert_eq!(
        (&request["kind"]["version"], &request["requestKind"]["version"]),
        (&json!("v2"), &json!("v1"))
    );
    assert_eq!(
        (&request["object"]["apiVersion"], &request["object"]["spec"]["count"]),
        (&json!("g.io/v2"), &json!(3))
    );
}
