//! Servers on a data file: killed at any moment, and started again.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use windlass_apiserver::{ApiServer, Builder};

mod support;

use support::{Client, Events, Folder, Kubeconfig, Program, version};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Versions that clients have seen: by answers and by events.
#[derive(Default)]
struct Seen {
    /// Name and content of each version.
    states: BTreeMap<u64, (String, Value)>,
    /// Version of the last acknowledged write of each object; `None` for a deletion.
    acknowledged: BTreeMap<String, Option<u64>>,
    writes: usize,
}

impl Seen {
    /// Notes a state that a client has seen. A version never means two states.
    fn note(&mut self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let state = (name, object["data"].clone());
        let known = self.states.entry(version(object)).or_insert_with(|| state.clone());
        assert_eq!(*known, state, "version {} is used twice", version(object));
    }

    fn newest(&self) -> u64 {
        self.states.last_key_value().map_or(0, |(version, _)| *version)
    }
}

/// Creates, changes and deletes objects until the server is gone.
async fn write(
    mut client: Client,
    who: String,
    seen: Arc<Mutex<Seen>>,
    enough: Arc<Notify>,
    limit: usize,
) {
    for i in 0.. {
        let name = format!("{who}-{}", i / 3);
        let (method, url, body) = match i % 3 {
            0 => ("POST", MAPS.to_owned(), json!({"metadata": {"name": name}, "data": {"n": "0"}})),
            1 => ("PATCH", format!("{MAPS}/{name}"), json!({"data": {"n": "1"}})),
            _ if i % 2 == 0 => ("DELETE", format!("{MAPS}/{name}"), Value::Null),
            _ => continue,
        };
        let Ok(reply) = client.try_send(method, &url, &body).await else { return };
        assert!(reply.code < 300, "{reply:?}");
        let mut seen = seen.lock();
        if method == "DELETE" {
            seen.acknowledged.insert(name, None);
        } else {
            seen.note(&reply.value);
            seen.acknowledged.insert(name, Some(reply.version()));
        }
        seen.writes += 1;
        if seen.writes >= limit {
            enough.notify_one();
        }
    }
}

/// Reads events until the server is gone.
async fn watch(mut events: Events, seen: Arc<Mutex<Seen>>) {
    while let Some(event) = events.next().await {
        if event["type"] != "DELETED" {
            seen.lock().note(&event["object"]);
        }
    }
}

/// Checks that a list shows every acknowledged write; returns the list's version.
fn check(list: &Value, seen: &mut Seen) -> u64 {
    let items = list["items"].as_array().unwrap();
    let held: BTreeMap<&str, &Value> =
        items.iter().map(|item| (item["metadata"]["name"].as_str().unwrap(), item)).collect();
    for (name, acknowledged) in &seen.acknowledged {
        match (acknowledged, held.get(name.as_str())) {
            // A later write may be stored although its answer was lost.
            (Some(acknowledged), Some(item)) => assert!(version(item) >= *acknowledged, "{name}"),
            (Some(acknowledged), None) => {
                let last = seen.states.values().filter(|(held, _)| held == name).count();
                assert!(last == 2, "{name} at {acknowledged} is lost");
            }
            (None, found) => assert!(found.is_none(), "{name} is back"),
        }
    }
    for item in items {
        seen.note(item);
    }
    let listed = version(list);
    assert!(listed >= seen.newest(), "the list is at {listed}, clients saw {}", seen.newest());
    listed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_while_clients_write_loses_no_acknowledged_write() {
    let folder = Folder::new();
    let data = folder.path("data");
    let arguments = ["--data", data.to_str().unwrap()];
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut first: Option<Kubeconfig> = None;
    for round in 0..8_usize {
        let program = Program::start(&folder, &arguments);
        let kubeconfig = first.get_or_insert_with(|| program.kubeconfig.clone()).clone();
        // The kubeconfig of the first start is still good for the authority, the certificate and
        // the token.
        let mut client = program.client_with(&kubeconfig, None).await.unwrap();
        let list = client.get(MAPS).await;
        assert_eq!(list.code, 200, "{list:?}");
        // Not below a version that a client has seen: versions go on rising.
        let listed = check(&list.value, &mut seen.lock());
        let oldest = seen.lock().states.first_key_value().map(|(version, _)| *version);
        if let Some(oldest) = oldest.filter(|_| round > 0) {
            let identity = (kubeconfig.certificate.as_str(), kubeconfig.key.as_str());
            let mut other = program.client_with(&kubeconfig, Some(identity)).await.unwrap();
            assert_eq!(other.get(MAPS).await.code, 200);
            let old =
                other.open("GET", &format!("{MAPS}?watch=1&resourceVersion={oldest}"), "").await;
            let event = Events::of(old.unwrap()).next().await.unwrap();
            assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
        }
        let watcher = program
            .client()
            .await
            .open("GET", &format!("{MAPS}?watch=1&resourceVersion={listed}"), "")
            .await;
        let mut tasks = vec![tokio::spawn(watch(Events::of(watcher.unwrap()), seen.clone()))];
        let enough = Arc::new(Notify::new());
        let limit = seen.lock().writes + 20 + 37 * round;
        for writer in 0..6 {
            let who = format!("r{round}-w{writer}");
            tasks.push(tokio::spawn(write(
                program.client().await,
                who,
                seen.clone(),
                enough.clone(),
                limit,
            )));
        }
        enough.notified().await;
        program.kill();
        for task in tasks {
            task.await.unwrap();
        }
    }
    let program = Program::start(&folder, &arguments);
    let list = program.client().await.get(MAPS).await;
    check(&list.value, &mut seen.lock());
    let seen = seen.lock();
    let (writes, states) = (seen.writes, seen.states.len());
    assert!(writes > 1_000 && states > 500, "{writes} writes, {states} states");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_cannot_share_a_file_and_a_damaged_file_is_refused() {
    let folder = Folder::new();
    let data = folder.path("data");
    let arguments = ["--data", data.to_str().unwrap()];
    let program = Program::start(&folder, &arguments);
    let error = Program::try_start(&folder, &arguments).map(drop).unwrap_err();
    assert!(error.contains("another server has it open"), "{error}");
    assert!(error.contains(data.to_str().unwrap()), "{error}");
    program.terminate();
    let bytes = std::fs::read(&data).unwrap();
    std::fs::write(&data, &bytes[..bytes.len() / 3]).unwrap();
    let error = Program::try_start(&folder, &arguments).map(drop).unwrap_err();
    assert!(error.contains("it is damaged or no data file"), "{error}");
    std::fs::write(&data, &bytes).unwrap();
    Program::start(&folder, &arguments).terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_file_is_a_new_one_and_a_text_is_none() {
    let folder = Folder::new();
    let data = folder.path("data");
    std::fs::write(&data, "").unwrap();
    let arguments = ["--data", data.to_str().unwrap()];
    let program = Program::start(&folder, &arguments);
    assert_eq!(program.client().await.get("/version").await.code, 200);
    program.terminate();
    assert!(std::fs::metadata(&data).unwrap().len() > 0);
    std::fs::write(&data, "\n").unwrap();
    let error = Program::try_start(&folder, &arguments).map(drop).unwrap_err();
    assert!(error.contains("it is damaged or no data file"), "{error}");
}

/// Starts a server in this process on the folder's file.
async fn start(folder: &Folder, builder: Builder) -> (ApiServer, Client) {
    let server = builder.start_on(folder.path("data")).await.unwrap();
    let client = Client::on(server.connect().unwrap()).await;
    (server, client)
}

fn definition() -> Value {
    json!({
        "metadata": {"name": "widgets.example.dev"},
        "spec": {"group": "example.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    })
}

const WIDGETS: &str = "/apis/example.dev/v1/namespaces/default/widgets";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test]
async fn definitions_objects_and_tokens_are_served_after_a_restart() {
    let folder = Folder::new();
    let (server, mut client) = start(&folder, ApiServer::builder().seed(1)).await;
    assert_eq!(client.post(DEFINITIONS, definition()).await.code, 201);
    let widget = json!({"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"n": 0.1}});
    let widget = client.post(WIDGETS, widget).await;
    assert_eq!(widget.code, 201);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(client.post(accounts, json!({"metadata": {"name": "bot"}})).await.code, 201);
    let token = client.post(&format!("{accounts}/bot/token"), json!({"spec": {}})).await;
    let token = token.value["status"]["token"].as_str().unwrap().to_owned();
    server.shutdown().await;

    let (server, mut client) = start(&folder, ApiServer::builder().seed(1)).await;
    let again = client.get(&format!("{WIDGETS}/w")).await;
    assert_eq!(again.value, widget.value);
    assert_eq!(client.get("/apis/example.dev/v1").await.value["resources"][0]["name"], "widgets");
    let mut bot = Client::on(server.connect_anonymous().unwrap()).await;
    bot.token = Some(token);
    let me = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let me = bot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", me).await;
    assert_eq!(me.value["status"]["userInfo"]["username"], "system:serviceaccount:default:bot");
    // The same seed gives other uids.
    let uid = |reply: &support::Reply| reply.value["metadata"]["uid"].as_str().unwrap().to_owned();
    let fresh = client.post(MAPS, json!({"metadata": {"name": "fresh"}})).await;
    assert!(fresh.version() > widget.version());
    let maps = client.get("/api/v1/configmaps").await;
    let same = maps.value["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["metadata"]["uid"] == uid(&fresh));
    assert_eq!(same.count(), 1);
    // Deleted with its instances, and not served at the next start.
    assert_eq!(
        client
            .send("DELETE", &format!("{DEFINITIONS}/widgets.example.dev"), Value::Null)
            .await
            .code,
        200
    );
    server.shutdown().await;
    let (server, mut client) = start(&folder, ApiServer::builder()).await;
    assert_eq!(client.get(WIDGETS).await.code, 404);
    assert_eq!(client.post(DEFINITIONS, definition()).await.code, 201);
    assert_eq!(client.get(WIDGETS).await.value["items"], json!([]));
    server.shutdown().await;
}

#[tokio::test]
async fn a_deletion_that_was_begun_goes_on_after_the_restart() {
    let folder = Folder::new();
    // Nothing empties a namespace or collects garbage here, as if the server was killed just then.
    let (server, mut client) = start(&folder, ApiServer::builder().controllers(false)).await;
    client.post("/api/v1/namespaces", json!({"metadata": {"name": "gone"}})).await;
    client
        .post("/api/v1/namespaces/gone/configmaps", json!({"metadata": {"name": "inside"}}))
        .await;
    let owner = client.post(MAPS, json!({"metadata": {"name": "owner"}})).await;
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.value["metadata"]["uid"]});
    client.post(MAPS, json!({"metadata": {"name": "owned", "ownerReferences": [reference]}})).await;
    client.send("DELETE", &format!("{MAPS}/owner"), Value::Null).await;
    let reply = client.send("DELETE", "/api/v1/namespaces/gone", Value::Null).await;
    assert_eq!(reply.value["status"]["phase"], "Terminating");
    assert_eq!(client.get(&format!("{MAPS}/owned")).await.code, 200);
    server.shutdown().await;

    let (server, mut client) = start(&folder, ApiServer::builder()).await;
    while server.get_object("", "namespaces", "", "gone").is_some()
        || server.get_object("", "configmaps", "default", "owned").is_some()
    {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.get("/api/v1/namespaces/gone/configmaps/inside").await.code, 404);
    server.shutdown().await;
}

#[tokio::test]
async fn writes_without_a_request_are_in_the_file_after_a_flush_and_a_restore() {
    let folder = Folder::new();
    let (server, _) = start(&folder, ApiServer::builder().controllers(false)).await;
    let backup = server.backup();
    let map = |n: u64| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}, "data": {"n": n.to_string()}});
    for n in 0..500 {
        server.commit("", "configmaps", "default", "m", Some(map(n))).unwrap();
    }
    server.flush().await.unwrap();
    server.shutdown().await;
    assert!(server.flush().await.is_ok(), "nothing was written since");
    let (server, _) = start(&folder, ApiServer::builder().controllers(false)).await;
    let held = server.get_object("", "configmaps", "default", "m").unwrap();
    assert_eq!(held["data"]["n"], "499");
    server.restore(&backup).await;
    server.shutdown().await;
    let (server, _) = start(&folder, ApiServer::builder().controllers(false)).await;
    assert!(server.get_object("", "configmaps", "default", "m").is_none());
    assert_eq!(server.revision(), backup.revision());
    server.shutdown().await;
}
