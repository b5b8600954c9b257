//! The audit log of the program.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use windlass_apiserver::faults::{Fault, FaultAction};
use windlass_apiserver::{ApiServer, ControllerSet};

mod support;

use support::{Client, Folder, Program};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(flavor = "multi_thread")]
async fn each_request_is_a_line_with_its_user_and_its_changes_and_no_value_of_a_secret() {
    let folder = Folder::new();
    let log = folder.path("audit");
    let program = Program::start(&folder, &["--audit-log", log.to_str().unwrap()]);
    let mut client = program.client().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "hidden-one"}});
    let created = client.post(secrets, secret).await;
    let patch = json!({"stringData": {"password": "hidden-two"}, "metadata": {"labels": {"a.b/c": "hidden-three"}}});
    let patched = client.send("PATCH", &format!("{secrets}/s"), patch).await;
    assert_eq!((created.code, patched.code), (201, 200));
    client.post(MAPS, json!({"metadata": {"name": "m"}, "data": {"k": "1"}})).await;
    client.send("PATCH", &format!("{MAPS}/m"), json!({"data": {"k": "2"}})).await;
    let dry =
        client.send("PATCH", &format!("{MAPS}/m?dryRun=All"), json!({"data": {"k": "3"}})).await;
    assert_eq!(dry.code, 200);
    let alice = [("impersonate-user", "alice")];
    client.try_send_with("DELETE", &format!("{MAPS}/m"), &alice, &Value::Null).await.unwrap();
    client.send("DELETE", &format!("{MAPS}/m"), Value::Null).await;
    client.token = Some("wrong".to_owned());
    assert_eq!(client.get("/version").await.code, 401);
    program.terminate();

    let text = std::fs::read_to_string(log).unwrap();
    assert!(!text.contains("hidden") && !text.contains("aGlkZGVu"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let codes: Vec<_> = lines
        .iter()
        .map(|line| (line["verb"].as_str().unwrap(), line["code"].as_u64().unwrap()))
        .collect();
    let wanted = [
        ("create", 201),
        ("patch", 200),
        ("create", 201),
        ("patch", 200),
        ("patch", 200),
        ("delete", 403),
        ("delete", 200),
        ("get", 401),
    ];
    assert_eq!(codes, wanted);
    let change = &lines[1]["changes"][0];
    assert_eq!(change["resourceVersionBefore"], created.value["metadata"]["resourceVersion"]);
    assert_eq!(change["resourceVersionAfter"], patched.value["metadata"]["resourceVersion"]);
    let paths: Vec<&str> = change["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|place| place["path"].as_str().unwrap())
        .collect();
    assert!(paths.contains(&"data.password"), "{paths:?}");
    assert_eq!(
        lines[3]["changes"][0]["paths"],
        json!([{"path": "data.k", "before": "1", "after": "2"}])
    );
    assert_eq!(lines[4]["changes"], json!([]), "a dry run");
    assert_eq!(
        (&lines[5]["user"], &lines[5]["impersonatedUser"]),
        (&json!("kubernetes-admin"), &json!("alice"))
    );
    assert_eq!(lines[6]["changes"][0]["operation"], "delete");
    assert_eq!((&lines[7]["user"], &lines[7]["resource"]), (&json!(""), &json!("/version")));
    assert!(
        lines[0]["time"].as_str().unwrap().ends_with('Z')
            && lines[0]["durationMicros"].as_u64().unwrap() > 0
    );
}

/// Starts a server with an audit log in memory and no controllers.
async fn start() -> (ApiServer, Client) {
    let none = ControllerSet::NONE;
    let server = ApiServer::builder().seed(1).audit(true).controller_set(none).start();
    let client = Client::on(server.connect().unwrap()).await;
    (server, client)
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": "v"}})
}

/// Returns the last entry.
fn last(server: &ApiServer) -> Value {
    server.audit().pop().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_entry_names_the_request_and_the_states_of_a_created_and_a_deleted_object() {
    let (server, mut client) = start().await;
    let made = client.post(MAPS, map("m")).await;
    let entry = last(&server);
    for (field, value) in [
        ("user", json!("system:admin")),
        ("groups", json!(["system:masters", "system:authenticated"])),
        ("verb", json!("create")),
        ("group", json!("")),
        ("version", json!("v1")),
        ("resource", json!("configmaps")),
        ("namespace", json!("default")),
        ("code", json!(201)),
        ("durationMicros", json!(0)),
    ] {
        assert_eq!(entry[field], value, "{field} of {entry}");
    }
    assert_eq!(entry.get("impersonatedUser"), None);
    let meta = &made.value["metadata"];
    let wanted = json!({
        "operation": "create", "resource": "configmaps", "namespace": "default", "name": "m",
        "uid": meta["uid"], "resourceVersionBefore": null,
        "resourceVersionAfter": meta["resourceVersion"],
    });
    assert_eq!(entry["changes"], json!([wanted]));
    client.send("DELETE", &format!("{MAPS}/m"), Value::Null).await;
    let change = &last(&server)["changes"][0];
    assert_eq!(change["resourceVersionBefore"], meta["resourceVersion"]);
    let after: u64 = change["resourceVersionAfter"].as_str().unwrap().parse().unwrap();
    assert_eq!((&change["operation"], after), (&json!("delete"), made.version() + 1));
    client.get(&format!("{MAPS}/m")).await;
    assert_eq!((&last(&server)["code"], &last(&server)["changes"]), (&json!(404), &json!([])));
    assert_eq!(server.audit().len(), 3, "one entry each");
}

#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_collection_names_the_first_objects_and_counts_the_others() {
    let (server, mut client) = start().await;
    for n in 0..70 {
        client.post(MAPS, map(&format!("m-{n:02}"))).await;
    }
    client.send("DELETE", MAPS, Value::Null).await;
    let entry = last(&server);
    let changes = entry["changes"].as_array().unwrap();
    assert_eq!((changes.len(), &entry["moreChanges"]), (64, &json!(6)));
    assert!(changes.iter().all(|change| change["operation"] == "delete"));
    assert_eq!((&changes[0]["name"], &changes[63]["name"]), (&json!("m-00"), &json!("m-63")));
}

#[tokio::test(start_paused = true)]
async fn places_values_and_names_in_an_entry_are_bounded() {
    let (server, mut client) = start().await;
    let key = |n: usize| format!("k{n:03}");
    client.post(MAPS, map("m")).await;
    let many: serde_json::Map<_, _> = (0..100).map(|n| (key(n), json!("v"))).collect();
    client.send("PATCH", &format!("{MAPS}/m"), json!({"data": many})).await;
    let change = last(&server)["changes"][0].clone();
    // 36 keys, and the metadata, which is not looked at any more.
    assert_eq!((change["paths"].as_array().unwrap().len(), &change["morePaths"]), (64, &json!(37)));
    let text = "ä".repeat(400);
    client.send("PATCH", &format!("{MAPS}/m"), json!({"data": {"k": text}})).await;
    let place = &last(&server)["changes"][0]["paths"][0];
    let shown = place["after"].as_str().unwrap();
    // 256 bytes of JSON: a quotation mark and the letters that are whole.
    assert_eq!(
        (shown, &place["path"]),
        (format!("\"{}…", "ä".repeat(127)).as_str(), &json!("data.k"))
    );
    let long = "x".repeat(4000);
    client.get(&format!("{MAPS}/{long}")).await;
    let entry = last(&server);
    assert_eq!(entry["name"], json!(format!("{}…", "x".repeat(512))));
    client.get(&format!("/{long}")).await;
    assert_eq!(last(&server)["resource"].as_str().unwrap().chars().count(), 513);
}

#[tokio::test(start_paused = true)]
async fn a_long_path_of_a_changed_place_is_cut() {
    let (server, mut client) = start().await;
    let definition = json!({"metadata": {"name": "widgets.g.io"}, "spec": {
        "group": "g.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let widgets = "/apis/g.io/v1/namespaces/default/widgets";
    let made = client
        .post(
            widgets,
            json!({"apiVersion": "g.io/v1", "kind": "Widget", "metadata": {"name": "w"}}),
        )
        .await;
    assert_eq!(made.code, 201, "{}", made.text);
    let long = "k".repeat(2000);
    let patch = json!({"spec": {long: {"inner": 1, "a.b": 2}}, "plain": {"a.b": 3}});
    client.send("PATCH", &format!("{widgets}/w"), patch).await;
    let places = last(&server)["changes"][0]["paths"].clone();
    let paths: Vec<&str> =
        places.as_array().unwrap().iter().map(|place| place["path"].as_str().unwrap()).collect();
    assert!(paths.contains(&"generation") || paths.contains(&"metadata.generation"), "{paths:?}");
    // Values of new objects are shown as a whole.
    assert!(paths.contains(&"spec") && paths.contains(&"plain"), "{paths:?}");
    let long = "k".repeat(2000);
    let patch = json!({"spec": {long: {"inner": 2}}, "plain": {"a.b": 4}});
    client.send("PATCH", &format!("{widgets}/w"), patch).await;
    let places = last(&server)["changes"][0]["paths"].clone();
    let places = places.as_array().unwrap();
    let cut = places.iter().find(|place| place["after"] == 2).unwrap();
    assert_eq!(cut["path"].as_str().unwrap(), format!("spec.{}…", "k".repeat(507)));
    let plain = places.iter().find(|place| place["after"] == 4).unwrap();
    assert_eq!(plain["path"], "plain[\"a.b\"]");
}

#[tokio::test(start_paused = true)]
async fn every_value_of_a_secret_is_masked_and_every_name_shown() {
    let (server, mut client) = start().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "s", "annotations": {"a": "hidden-a"}},
        "type": "hidden/b", "stringData": {"k": "hidden-c"}});
    client.post(secrets, secret).await;
    let patch = json!({"metadata": {"annotations": {"a": "hidden-d"}, "labels": {"l": "hidden-e"}},
        "stringData": {"k": "hidden-f", "n": "hidden-g"}});
    client.send("PATCH", &format!("{secrets}/s"), patch).await;
    let places = last(&server)["changes"][0]["paths"].clone();
    let shown = |path: &str| {
        let all = places.as_array().unwrap().iter();
        let place = all.clone().find(|place| place["path"] == path);
        let place = place.unwrap_or_else(|| panic!("{path} in {places}"));
        (place["before"].clone(), place["after"].clone())
    };
    assert_eq!(shown("data.k"), (json!("***"), json!("***")));
    assert_eq!(shown("data.n"), (Value::Null, json!("***")));
    assert_eq!(shown("metadata.annotations.a"), (json!("***"), json!("***")));
    assert_eq!(shown("metadata.labels"), (Value::Null, json!("***")));
    client.send("DELETE", &format!("{secrets}/s"), Value::Null).await;
    let text = Value::from(server.audit()).to_string();
    assert!(!text.contains("hidden") && !text.contains("aGlkZGVu"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_has_one_entry_with_what_it_wrote() {
    let (server, mut client) = start().await;
    let pause = Duration::from_secs(9);
    for action in [
        FaultAction::Drop,
        FaultAction::Hang,
        FaultAction::ExecuteThenDrop,
        FaultAction::ExecuteThenHang,
        FaultAction::Delay(pause),
    ] {
        let wrote = matches!(action, FaultAction::ExecuteThenDrop | FaultAction::ExecuteThenHang);
        let shown = format!("{action:?}");
        let seen = server.audit().len();
        server.faults().add(Fault::new(action).on("create"));
        let body = map(&format!("m-{seen}")).to_string();
        let sent =
            tokio::time::timeout(Duration::from_secs(3), client.open("POST", MAPS, body)).await;
        assert!(!matches!(sent, Ok(Ok(_))), "{shown}");
        // The client hangs up.
        client = Client::on(server.connect().unwrap()).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let all = server.audit();
        assert_eq!(all.len(), seen + 1, "{shown}: {all:?}");
        let entry = all.last().unwrap();
        assert_eq!((&entry["verb"], &entry["code"]), (&json!("create"), &json!(0)), "{shown}");
        assert_eq!(entry["changes"].as_array().unwrap().len(), usize::from(wrote), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_has_one_entry_and_the_server_itself_has_none() {
    let server =
        ApiServer::builder().seed(1).audit(true).controller_set(ControllerSet::ALL).start();
    let mut client = Client::on(server.connect().unwrap()).await;
    assert_eq!(server.audit(), [Value::Null; 0], "the first objects are nobody's request");
    let watch = client.open("GET", &format!("{MAPS}?watch=1"), "").await.unwrap();
    let mut other = Client::on(server.connect().unwrap()).await;
    other.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    for _ in 0..300 {
        tokio::task::yield_now().await;
    }
    assert!(server.get_object("", "serviceaccounts", "n", "default").is_some());
    let verbs: Vec<_> = server.audit().iter().map(|entry| entry["verb"].clone()).collect();
    assert_eq!(verbs, ["watch", "create"]);
    drop(watch);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_unless_it_is_asked_for() {
    let server = ApiServer::builder().controllers(false).start();
    let mut client = Client::on(server.connect().unwrap()).await;
    client.post(MAPS, map("m")).await;
    assert_eq!(server.audit().len(), 0);
    server.write_audit(io::sink());
    client.post(MAPS, map("n")).await;
    assert_eq!(server.audit().len(), 1);
}

/// A log whose writes wait until the test lets them.
struct Gate {
    opened: Receiver<()>,
    taken: Arc<Mutex<Vec<u8>>>,
}

impl io::Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Closed for good: the gate stays open.
        let _closed = self.opened.recv();
        self.taken.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_data_file_is_closed_before_the_lines_of_the_audit_log_are_waited_for() {
    let folder = Folder::new();
    let file = folder.path("data");
    let server = ApiServer::builder().controllers(false).start_on(&file).await.unwrap();
    let (gate, opened) = channel();
    let taken: Arc<Mutex<Vec<u8>>> = Arc::default();
    server.write_audit(Gate { opened, taken: taken.clone() });
    let mut client = Client::on(server.connect().unwrap()).await;
    assert_eq!(client.post(MAPS, map("m")).await.code, 201);
    let ending = tokio::spawn({
        let server = server.clone();
        async move { server.shutdown().await }
    });
    // The file is free although the log takes nothing.
    let again = loop {
        match ApiServer::builder().controllers(false).start_on(&file).await {
            Ok(server) => break server,
            Err(error) => assert!(error.to_string().contains("another server"), "{error}"),
        }
        tokio::task::yield_now().await;
    };
    assert!(again.get_object("", "configmaps", "default", "m").is_some());
    assert!(!ending.is_finished() && taken.lock().is_empty());
    drop(gate);
    ending.await.unwrap();
    assert_eq!(
        (taken.lock().iter().filter(|byte| **byte == b'\n').count(), server.lost_audit()),
        (1, 0)
    );
    again.shutdown().await;
}
