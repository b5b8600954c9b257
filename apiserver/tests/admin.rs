//! The admin socket of the program.

#![cfg(unix)]
// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tokio::net::UnixStream;

mod support;

use support::{Client, Events, Folder, Program};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Starts the program with a socket, and returns a client of each.
async fn start(folder: &Folder, more: &[&str]) -> (Program, Client, Client) {
    let socket = folder.path("admin");
    let arguments = [&["--admin-socket", socket.to_str().unwrap()], more].concat();
    let program = Program::start(folder, &arguments);
    let client = program.client().await;
    let admin = Client::on(UnixStream::connect(socket).await.unwrap()).await;
    (program, client, admin)
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_added_listed_and_removed() {
    let folder = Folder::new();
    let (_program, mut client, mut admin) = start(&folder, &[]).await;
    let mode = std::fs::metadata(folder.path("admin")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let fault = json!({"verb": "list", "resource": "configmaps", "times": null, "actions": [{"answer": 503}, {"retryAfter": "7"}]});
    let added = admin.post("/faults", fault).await;
    assert_eq!((added.code, &added.value), (201, &json!({"id": 1})));
    assert_eq!(client.get(MAPS).await.code, 503);
    let listed = admin.get("/faults").await.value;
    assert_eq!(
        (&listed[0]["hits"], &listed[0]["verb"], &listed[0]["times"]),
        (&json!(1), &json!("list"), &Value::Null)
    );
    assert_eq!(admin.send("DELETE", "/faults/1", Value::Null).await.code, 200);
    assert_eq!(admin.send("DELETE", "/faults/1", Value::Null).await.code, 404);
    assert_eq!(client.get(MAPS).await.code, 200);
    for (body, text) in [
        (json!({"actions": []}), "at least one"),
        (json!({"actions": ["explode"]}), "unknown variant `explode`"),
        (json!({"verbs": "get", "actions": ["drop"]}), "unknown field `verbs`"),
    ] {
        let refused = admin.post("/faults", body).await;
        assert!(refused.code == 400 && refused.text.contains(text), "{refused:?}");
    }
    let lag = admin.post("/watches/lag", json!({"resource": "*"})).await;
    assert!(lag.code == 400 && lag.text.contains("needs `milliseconds`"), "{lag:?}");
    for (method, path) in
        [("PUT", "/faults"), ("GET", "/faults/1"), ("GET", "/watches/lag"), ("DELETE", "/snapshot")]
    {
        let wrong = admin.send(method, path, Value::Null).await;
        assert!(wrong.code == 405 && wrong.text.contains("is not a method of"), "{wrong:?}");
    }
    let absent = admin.get("/nothing").await;
    assert!(absent.code == 404 && absent.text.contains("the routes are /faults"), "{absent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_dropped_and_watches_are_ended_on_demand() {
    let folder = Folder::new();
    let (program, mut client, mut admin) = start(&folder, &["--audit-log", "-"]).await;
    let made = client.post(MAPS, json!({"metadata": {"name": "a"}})).await.version();
    client.post(MAPS, json!({"metadata": {"name": "b"}})).await;
    let url = format!("{MAPS}?watch=1&resourceVersion={made}");
    let mut events = Events::of(program.client().await.open("GET", &url, "").await.unwrap());
    assert_eq!(events.next().await.unwrap()["object"]["metadata"]["name"], "b");
    let counters = admin.get("/counters").await.value;
    assert_eq!((&counters["watches"], &counters["panics"]), (&json!(1), &json!(0)));
    assert!(
        counters["requests"].as_u64().unwrap() >= 3
            && counters["historyBytes"].as_u64().unwrap() > 0,
        "{counters}"
    );
    let audit = admin.get("/audit").await.value;
    assert_eq!((audit["entries"].as_array().unwrap().len(), &audit["dropped"]), (3, &json!(0)));
    assert_eq!(admin.post("/watches/close", json!({"resource": "configmaps"})).await.code, 200);
    assert_eq!(events.next().await, None);
    admin.post("/compact", Value::Null).await;
    let mut events = Events::of(program.client().await.open("GET", &url, "").await.unwrap());
    assert_eq!(events.next().await.unwrap()["object"]["code"], 410);
    assert_eq!(admin.post("/restart", Value::Null).await.code, 200);
    assert!(client.try_send("GET", MAPS, &Value::Null).await.is_err(), "the connection is cut");
    assert_eq!(program.client().await.get(MAPS).await.code, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_brings_objects_and_definitions_to_another_server_and_into_its_file() {
    let folder = Folder::new();
    let (program, mut client, mut admin) = start(&folder, &[]).await;
    let definition = json!({"metadata": {"name": "widgets.example.dev"}, "spec": {
        "group": "example.dev", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let widgets = "/apis/example.dev/v1/namespaces/default/widgets";
    let widget =
        json!({"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"}});
    let widget = client.post(widgets, widget).await;
    assert_eq!(widget.code, 201, "{widget:?}");
    let snapshot = admin.get("/snapshot").await.value;
    assert!(snapshot["revision"].as_u64().unwrap() >= widget.version());
    program.terminate();

    let data = folder.path("data");
    let arguments = ["--data", data.to_str().unwrap()];
    let (program, mut client, mut admin) = start(&folder, &arguments).await;
    client.post(MAPS, json!({"metadata": {"name": "later"}})).await;
    let mut bad = snapshot.clone();
    bad["revision"] = json!(1);
    let refused = admin.send("PUT", "/snapshot", bad.clone()).await;
    assert!(
        refused.code == 400 && refused.text.contains("has no resourceVersion up to 1"),
        "{refused:?}"
    );
    bad["revision"] = json!(u64::MAX);
    let refused = admin.send("PUT", "/snapshot", bad).await;
    assert!(refused.code == 400 && refused.text.contains("is above"), "{refused:?}");
    assert_eq!(admin.send("PUT", "/snapshot", snapshot).await.code, 200);
    let mut client = program.client().await;
    assert_eq!(client.get(&format!("{widgets}/w")).await.value, widget.value);
    assert_eq!(client.get(&format!("{MAPS}/later")).await.code, 404);
    // The socket of a killed server is replaced.
    program.kill();
    let (_program, mut client, _) = start(&folder, &arguments).await;
    assert_eq!(client.get(&format!("{widgets}/w")).await.value, widget.value);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_in_use_and_another_file_are_refused() {
    let folder = Folder::new();
    let (_program, _, _) = start(&folder, &[]).await;
    let socket = folder.path("admin");
    let error = Program::try_start(&folder, &["--admin-socket", socket.to_str().unwrap()])
        .map(drop)
        .unwrap_err();
    assert!(error.contains("another server listens on it"), "{error}");
    let file = folder.path("kubeconfig");
    let error = Program::try_start(&folder, &["--admin-socket", file.to_str().unwrap()])
        .map(drop)
        .unwrap_err();
    assert!(error.contains("a file that is not a socket"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leftovers_of_a_server_that_was_killed_at_its_start_are_removed() {
    let folder = Folder::new();
    let left = folder.path("admin.part");
    std::fs::create_dir(&left).unwrap();
    drop(std::os::unix::net::UnixListener::bind(left.join("s")).unwrap());
    let (_program, _, mut admin) = start(&folder, &[]).await;
    assert_eq!(admin.get("/counters").await.code, 200);
    assert!(!left.exists());
    let names = std::fs::read_dir(left.parent().unwrap()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let parts: Vec<String> = names.filter(|name| name.contains(".part")).collect();
    assert!(parts.is_empty(), "{parts:?}");
}
