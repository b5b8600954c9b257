use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::support::*;
use crate::ApiServer;
use crate::http::test_support::*;
use crate::storage::Journal;

const WIDGETS: &str = "/apis/g.io/v1/namespaces/default/widgets";
const TOO_LARGE: &str = "etcdserver: request is too large";

/// Returns a text that no object in etcd has room for.
fn large() -> String {
    "x".repeat(1_600_000)
}

/// Returns a definition whose `spec` may hold anything.
fn open_widgets() -> Value {
    let mut definition = widgets();
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    definition["spec"]["versions"] = json!([{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]);
    definition
}

#[tokio::test(start_paused = true)]
async fn an_object_that_etcd_would_not_take_is_not_stored() {
    let (server, mut client) = start().await;
    client.post(CRDS, open_widgets()).await;
    let reply = client.post(WIDGETS, widget("a", json!({"host": large()}))).await;
    assert_eq!((reply.code, reply.message()), (500, TOO_LARGE));
    assert_eq!(reply.value.get("reason"), None);
    client.post(WIDGETS, widget("b", json!({"host": "x"}))).await;
    let url = format!("{WIDGETS}/b");
    let reply = client.merge(&url, json!({"spec": {"host": large()}})).await;
    assert_eq!((reply.code, reply.message()), (500, TOO_LARGE));
    let reply = client.post(WIDGETS, widget("c", json!({"host": "x".repeat(2_200_000)}))).await;
    let text =
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max (22";
    assert!(reply.code == 500 && reply.message().starts_with(text), "{}", reply.text);
    assert_eq!(server.list_objects("g.io", "widgets", "").len(), 1);
    // Protobuf is shorter than JSON, where each of these characters has six.
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{
        "name": "c", "image": "i", "args": ["\u{1}".repeat(400_000)]}]}});
    let reply = client.post("/api/v1/namespaces/default/pods", pod).await;
    assert_eq!(reply.code, 201, "{}", reply.message());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_large_with_its_managed_fields_is_stored_without_them() {
    let (_server, mut client) = start().await;
    client.post(CRDS, open_widgets()).await;
    let fields: serde_json::Map<_, _> =
        (0..50_000).map(|n| (format!("f{n:09}"), json!(1))).collect();
    let reply = client.post(WIDGETS, widget("a", json!(fields))).await;
    assert_eq!((reply.code, &reply.value["metadata"]["managedFields"]), (201, &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn a_patch_of_a_webhook_makes_no_larger_object_than_a_request() {
    let hooks = Hooks::answering(|request| match request["kind"]["kind"].as_str() {
        Some("Widget") => patch(json!([{"op": "add", "path": "/spec/host", "value": large()}])),
        _ => json!({"allowed": true}),
    });
    let (server, mut client) = hooks.start().await;
    client.post(CRDS, widgets()).await;
    let rules = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}]);
    let fields = json!({"rules": rules});
    configure(&mut client, MUTATING, "c", &[hook("a", fields)]).await;
    let reply = client.post(WIDGETS, widget("a", json!({"host": "x"}))).await;
    assert_eq!((reply.code, reply.message()), (500, TOO_LARGE));
    assert!(server.list_objects("g.io", "widgets", "").is_empty());
    let dry = client.post(&format!("{WIDGETS}?dryRun=All"), widget("a", json!({}))).await;
    assert_eq!(dry.code, 201, "nothing is stored");
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_of_a_webhook_is_read_away_from_the_worker() {
    let hooks = Hooks::answering(|request| match request["name"].as_str() {
        Some("long") => json!({"allowed": true, "auditAnnotations": {"a": large()}}),
        _ => json!({"allowed": true}),
    });
    let (server, mut client) = hooks.start().await;
    configure(&mut client, VALIDATING, "c", &[hook("a", json!({}))]).await;
    let mut runs = Vec::new();
    for name in ["short", "long"] {
        let before = server.core.long_work.runs();
        assert_eq!(client.post(MAPS, map(name)).await.code, 201);
        runs.push(server.core.long_work.runs() - before);
    }
    assert_eq!(runs, [2, 3], "the verb runs before and after the answer");
    // The review is written there as well.
    let data = json!({"metadata": {"name": "large"}, "data": {"k": "x".repeat(200_000)}});
    let before = server.core.long_work.runs();
    assert_eq!(client.post(MAPS, data).await.code, 201);
    assert_eq!(server.core.long_work.runs() - before, 3);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_sees_no_state_that_is_not_in_the_data_file_yet() {
    let hooks = Hooks::answering(|_| json!({"allowed": true}));
    let (server, mut client) = hooks.start().await;
    configure(&mut client, VALIDATING, "c", &[hook("a", json!({}))]).await;
    let journal = Arc::new(Journal::default());
    let store = &server.core.store;
    store.load(&store.backup(), journal.clone());
    let commit = || {
        let batch = journal.next().unwrap();
        journal.committed(batch.ticket);
    };
    server.commit("", "configmaps", "default", "held", Some(map("held"))).unwrap();
    let deletion = tokio::spawn(async move { client.delete(&format!("{MAPS}/held")).await.code });
    idle().await;
    assert!(hooks.requests().is_empty(), "the object would be lost with the process");
    commit();
    idle().await;
    assert_eq!(hooks.requests().len(), 1);
    assert!(!deletion.is_finished(), "nor is the deletion answered yet");
    commit();
    assert_eq!(deletion.await.unwrap(), 200);
}

/// Lets other tasks run until every task is idle.
async fn idle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_the_objects_that_were_listed() {
    let slot: Arc<OnceLock<ApiServer>> = Arc::default();
    let replacing = slot.clone();
    let hooks = Hooks::answering(move |request| {
        // Before the second object is deleted, another object has its name.
        if let Some(server) =
            replacing.get().filter(|_| request["oldObject"]["metadata"]["name"] == "a")
        {
            let (group, plural, namespace) = ("", "configmaps", "default");
            server.delete_object(group, plural, namespace, "b").unwrap();
            server.create_object(group, plural, namespace, map("b")).unwrap();
        }
        json!({"allowed": true})
    });
    let (server, mut client) = hooks.start().await;
    for name in ["a", "b", "c"] {
        client.post(MAPS, map(name)).await;
    }
    configure(&mut client, VALIDATING, "c", &[hook("a", json!({}))]).await;
    assert!(slot.set(server.clone()).is_ok());
    let reply = client.delete(MAPS).await;
    assert_eq!((reply.code, reply.names()), (200, vec!["a".into(), "b".into(), "c".into()]));
    let left = client.get(MAPS).await;
    assert_eq!(left.names(), ["b"], "the new one was not listed");
    let asked: Vec<_> = hooks.requests().iter().map(|one| one["options"].clone()).collect();
    assert!(asked.iter().all(|options| options.get("preconditions").is_none()), "{asked:?}");
}
