//! Recordings of exchanges that are played by hand.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use serde_json::{Value, json};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{Mask, Recorder, RecordingOptions};
use crate::manager::Manager;
use windlass_client::client::{Client, ExchangeEnd, ExchangeHook, RequestOrigin, SentRequest};
use windlass_core::sync::Mutex;

const SECOND: Duration = Duration::from_secs(1);
const MAPS: &str = "/api/v1/namespaces/shop/configmaps";

fn recorder(options: RecordingOptions) -> Arc<Recorder> {
    Recorder::start("shop", &Client::offline(), Vec::new(), options).unwrap()
}

fn request(method: &str, path: &str, query: &str, body: &Value) -> SentRequest {
    SentRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        content_type: None,
        is_metadata: false,
        origin: RequestOrigin::Caller,
        is_stream: false,
        body: if body.is_null() { Vec::new().into() } else { body.to_string().into() },
    }
}

/// Records a whole exchange.
fn exchange(recorder: &Recorder, request: SentRequest, answer: &Value) {
    let number = recorder.sent(request).unwrap();
    recorder.answered(number, 200, &HeaderMap::new());
    recorder.received(number, answer.to_string().as_bytes());
    recorder.ended_exchange(number);
}

impl Recorder {
    fn ended_exchange(&self, number: u64) {
        ExchangeHook::ended(self, number, ExchangeEnd::Whole);
    }
}

fn of_cache(query: &str) -> SentRequest {
    let origin = RequestOrigin::Cache;
    SentRequest { origin, is_stream: true, ..request("GET", MAPS, query, &Value::Null) }
}

fn map(name: &str, version: u64, value: &str) -> Value {
    json!({ "metadata": { "namespace": "shop", "name": name, "resourceVersion": version.to_string() },
        "data": { "a": value } })
}

fn event(event: &str, object: &Value) -> String {
    format!("{}\n", json!({ "type": event, "object": object }))
}

/// Returns the lines of an export.
fn lines(recorder: &Recorder) -> Vec<Value> {
    let export = recorder.export();
    let text = std::str::from_utf8(&export).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns names and values of the objects that a cache has at the beginning of an export.
fn cached(recorder: &Recorder) -> Vec<(String, String)> {
    let lines = lines(recorder);
    let cache = lines.iter().find(|line| line["cache"] == 0).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let objects = cache["objects"].as_array().into_iter().flatten();
    objects.map(|it| (text(&it["metadata"]["name"]), text(&it["data"]["a"]))).collect()
}

#[tokio::test(start_paused = true)]
async fn an_exchange_is_a_line_for_the_request_and_a_line_for_the_answer() {
    let recorder = recorder(RecordingOptions::default());
    let sent = request("PUT", &format!("{MAPS}/a"), "fieldManager=shop", &map("a", 1, "x"));
    exchange(&recorder, sent, &map("a", 2, "x"));
    let lines = lines(&recorder);
    assert_eq!((&lines[0]["recording"], &lines[0]["isWhole"]), (&json!(1), &json!(true)));
    assert_eq!(
        (&lines[1]["method"], &lines[1]["query"]),
        (&json!("PUT"), &json!("fieldManager=shop"))
    );
    assert_eq!(lines[1]["body"], map("a", 1, "x"));
    assert_eq!((&lines[2]["answer"], &lines[2]["code"]), (&lines[1]["request"], &json!(200)));
    assert_eq!(lines[2]["body"], map("a", 2, "x"));
}

#[tokio::test(start_paused = true)]
async fn a_recording_stays_within_its_bytes_and_loses_the_oldest_part() {
    let bound = 64 * 1024;
    let recorder = recorder(RecordingOptions::default().bytes(bound));
    for number in 0..1000 {
        let name = format!("a{number}");
        let sent = request("PUT", &format!("{MAPS}/{name}"), "", &map(&name, 1, "x"));
        exchange(&recorder, sent, &map(&name, number, &"x".repeat(300)));
        assert!(recorder.window.lock().bytes <= bound);
    }
    let lines = lines(&recorder);
    assert_eq!(lines[0]["isWhole"], false);
    assert!(recorder.export().len() <= bound + 1024, "{}", recorder.export().len());
    assert!(lines.len() > 100, "{}", lines.len());
    assert_eq!(lines[lines.len() - 1]["body"]["metadata"]["name"], "a999", "the newest is there");
}

#[tokio::test(start_paused = true)]
async fn parts_older_than_the_time_leave_a_recording() {
    let recorder = recorder(RecordingOptions::default().time(60 * SECOND));
    exchange(&recorder, request("GET", &format!("{MAPS}/old"), "", &Value::Null), &json!({}));
    tokio::time::sleep(50 * SECOND).await;
    exchange(&recorder, request("GET", &format!("{MAPS}/new"), "", &Value::Null), &json!({}));
    tokio::time::sleep(20 * SECOND).await;
    let text = String::from_utf8(recorder.export().to_vec()).unwrap();
    assert!(text.contains("/new") && !text.contains("/old"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn events_that_leave_change_the_objects_at_the_beginning() {
    let recorder = recorder(RecordingOptions::default().time(60 * SECOND));
    let list = json!({ "metadata": { "resourceVersion": "10" },
        "items": [map("a", 1, "old"), map("b", 2, "old"), map("c", 3, "old")] });
    exchange(&recorder, of_cache("limit=500"), &list);
    assert!(cached(&recorder).is_empty(), "the list is an entry of its own");
    let watch = recorder.sent(of_cache("watch=true&resourceVersion=10")).unwrap();
    recorder.answered(watch, 200, &HeaderMap::new());
    let early = [event("MODIFIED", &map("a", 11, "new")), event("DELETED", &map("b", 12, "old"))];
    // A piece may end inside of an event.
    let early = early.concat();
    let (begin, end) = early.as_bytes().split_at(30);
    recorder.received(watch, begin);
    recorder.received(watch, end);
    tokio::time::sleep(70 * SECOND).await;
    recorder.received(watch, event("MODIFIED", &map("c", 13, "new")).as_bytes());
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(cached(&recorder), [pair("a", "new"), pair("c", "old")]);
    let lines = lines(&recorder);
    assert_eq!(lines[1]["resourceVersion"], "12");
    assert_eq!((&lines[2]["event"], &lines[2]["object"]["data"]["a"]), (&json!(0), &json!("new")));
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_and_a_list_in_pages_are_one_entry_each() {
    let recorder = recorder(RecordingOptions::default());
    let watch = recorder.sent(of_cache("watch=true&sendInitialEvents=true")).unwrap();
    recorder.answered(watch, 200, &HeaderMap::new());
    let end = json!({ "metadata": { "resourceVersion": "10",
        "annotations": { "k8s.io/initial-events-end": "true" } } });
    for line in [event("ADDED", &map("a", 1, "x")), event("BOOKMARK", &end)] {
        recorder.received(watch, line.as_bytes());
    }
    for (query, token, name) in [("limit=1", "more", "b"), ("limit=1&continue=more", "", "c")] {
        let metadata = json!({ "resourceVersion": "20", "continue": token });
        let list = json!({ "metadata": metadata, "items": [map(name, 2, "x")] });
        exchange(&recorder, of_cache(query), &list);
    }
    let lines = lines(&recorder);
    let lists: Vec<_> = lines.iter().filter(|line| !line["list"].is_null()).collect();
    let count = |at: usize| lists[at]["objects"].as_array().unwrap().len();
    assert_eq!((lists.len(), count(0), count(1)), (2, 1, 2));
    assert_eq!(
        (&lists[0]["resourceVersion"], &lists[1]["resourceVersion"]),
        (&json!("10"), &json!("20"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_recorded_as_refused_also_by_a_streamed_list() {
    for query in ["limit=500", "watch=true&sendInitialEvents=true"] {
        let recorder = recorder(RecordingOptions::default());
        let number = recorder.sent(of_cache(query)).unwrap();
        recorder.answered(number, 404, &HeaderMap::new());
        recorder.received(number, b"{\"reason\":\"NotFound\"}");
        recorder.ended_exchange(number);
        let lines = lines(&recorder);
        assert_eq!((&lines[2]["list"], &lines[2]["code"]), (&json!(0), &json!(404)), "{query}");
        assert_eq!(lines[2]["body"]["reason"], "NotFound");
    }
}

#[tokio::test(start_paused = true)]
async fn objects_larger_than_the_bound_end_the_recording_and_its_memory() {
    let recorder = recorder(RecordingOptions::default().bytes(1000));
    let list = json!({ "metadata": { "resourceVersion": "10" }, "items": [map("a", 1, &"x".repeat(2000))] });
    exchange(&recorder, of_cache("limit=500"), &list);
    let lines = lines(&recorder);
    assert!(lines[0]["flaw"].as_str().unwrap().contains("raise the bound"), "{}", lines[0]);
    assert_eq!((lines.len(), recorder.window.lock().bytes), (1, 0));
    assert_eq!(recorder.sent(of_cache("limit=500")), None, "nothing is recorded any more");
}

/// A subscriber that reads the recording on each event, if the lock of the window is free.
struct Reader {
    recorder: Arc<Recorder>,
    read: Arc<Mutex<Vec<bool>>>,
}

impl Subscriber for Reader {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.read.lock().push(self.recorder.window.try_lock().is_some());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_of_logs_may_read_the_recording_when_its_end_is_logged() {
    let recorder = recorder(RecordingOptions::default().bytes(1000));
    let read = Arc::default();
    let reader = Reader { recorder: Arc::clone(&recorder), read: Arc::clone(&read) };
    let list = json!({ "metadata": { "resourceVersion": "10" }, "items": [map("a", 1, &"x".repeat(2000))] });
    tracing::subscriber::with_default(reader, || {
        exchange(&recorder, of_cache("limit=500"), &list);
    });
    assert_eq!(*read.lock(), [true], "the lock of the window is held while the end is logged");
}

/// Requests and answers with secrets: paths and bodies.
fn confidential() -> [(&'static str, Value); 11] {
    let (secrets, canary) = ("/api/v1/namespaces/shop/secrets", "Y2FuYXJ5");
    let copy = json!({ "kubectl.kubernetes.io/last-applied-configuration": "canary" });
    let secret = json!({ "kind": "Secret", "metadata": { "name": "a", "annotations": copy.clone() },
        "data": { "key": canary }, "stringData": { "key": "canary" } });
    [
        (secrets, secret.clone()),
        (secrets, json!({ "items": [secret] })),
        (
            "/api/v1/namespaces/shop/secrets/a",
            json!([{ "op": "add", "path": "/data/key", "value": canary }]),
        ),
        (
            "/api/v1/namespaces/shop/secrets/a",
            json!([{ "op": "add", "path": "", "value": secret }]),
        ),
        (
            "/api/v1/namespaces/shop/secrets/a",
            json!([{ "op": "add", "path": "/metadata/annotations", "value": copy.clone() }]),
        ),
        (
            "/api/v1/namespaces/shop/secrets/a",
            json!([{ "op": "replace", "path": "/metadata", "value": { "annotations": copy.clone() } }]),
        ),
        (
            "/api/v1/namespaces/shop/secrets/a",
            json!([{ "op": "add", "value": "canary", "path":
                "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration" }]),
        ),
        (
            "/api/v1/namespaces/shop/secrets/a",
            json!([{ "op": "test", "path": "/stringData", "value": { "a": "canary" } }]),
        ),
        (
            "/apis/authentication.k8s.io/v1/tokenreviews",
            json!([{ "op": "add", "path": "/spec/token", "value": "canary" }]),
        ),
        (
            "/api/v1/namespaces/shop/serviceaccounts/a/token",
            json!({ "status": { "token": "canary" } }),
        ),
        ("/apis/authentication.k8s.io/v1/tokenreviews", json!({ "spec": { "token": "canary" } })),
    ]
}

#[tokio::test(start_paused = true)]
async fn secrets_are_masked_wherever_they_come() {
    let recorder = recorder(RecordingOptions::default());
    for (path, body) in confidential() {
        exchange(&recorder, request("POST", path, "", &body), &body);
    }
    exchange(&recorder, request("POST", "/api/v1/secrets", "", &Value::Null), &json!("canary"));
    let mut watch = of_cache("watch=true&resourceVersion=1");
    "/api/v1/secrets".clone_into(&mut watch.path);
    let watch = recorder.sent(watch).unwrap();
    recorder.answered(watch, 200, &HeaderMap::new());
    recorder.received(watch, event("ADDED", &confidential()[0].1).as_bytes());
    let text = String::from_utf8(recorder.export().to_vec()).unwrap();
    assert!(!text.contains("canary") && !text.contains("Y2FuYXJ5"), "{text}");
    assert!(text.contains("masked-"), "{text}");
}

#[test]
fn equal_secrets_have_equal_masks_and_a_mask_of_a_mask_is_that_mask() {
    let mask = Mask::new();
    let masked = |data: &str, plain: &str| {
        let mut secret = json!({ "data": { "a": data }, "stringData": { "b": plain } });
        mask.value(&mut secret);
        secret
    };
    let (one, other) = (masked("Y2FuYXJ5", "canary"), masked("b3RoZXI=", "other"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    assert!(
        Mask::is_mask(&text(&one["data"]["a"])) && Mask::is_mask(&text(&one["stringData"]["b"]))
    );
    assert_ne!(one["data"]["a"], other["data"]["a"]);
    let again = masked(&text(&one["data"]["a"]), &text(&one["stringData"]["b"]));
    assert_eq!(again, one);
    let mut by_another = json!({ "data": { "a": "Y2FuYXJ5" } });
    Mask::new().value(&mut by_another);
    assert_ne!(by_another["data"]["a"], one["data"]["a"], "the key is of the process");
    assert!(!Mask::is_mask("masked-12") && !Mask::is_mask("canary"));
}

#[tokio::test(start_paused = true)]
async fn renewals_of_leases_and_events_are_not_recorded() {
    let recorder = recorder(RecordingOptions::default());
    let routine = request("POST", "/api/v1/namespaces/shop/events", "", &json!({}));
    assert_eq!(recorder.sent(SentRequest { origin: RequestOrigin::Routine, ..routine }), None);
}

#[tokio::test(start_paused = true)]
async fn an_operator_records_nothing_unless_asked_to() {
    let quiet = |client: &Client| Manager::new(client.clone()).quiet().without_signals();
    for (manager, is_recorded) in [
        (quiet(&Client::offline()), false),
        (
            quiet(&Client::offline()).recording(RecordingOptions::default().time(Duration::ZERO)),
            false,
        ),
        (quiet(&Client::offline()).recording(RecordingOptions::default()), true),
    ] {
        let client = manager.own_client().clone();
        let running = manager.start();
        assert_eq!(running.recording().is_some(), is_recorded);
        // Without a recording nobody listens to the client, so that a listener can be set.
        let another = Recorder::start("other", &client, Vec::new(), RecordingOptions::default());
        assert_eq!(another.is_none(), is_recorded);
    }
}

#[tokio::test(start_paused = true)]
async fn clients_that_read_at_once_share_one_export() {
    let recorder = recorder(RecordingOptions::default());
    exchange(&recorder, request("GET", &format!("{MAPS}/a"), "", &Value::Null), &json!({}));
    let (one, other) = (recorder.export(), recorder.export());
    assert_eq!(one.as_ptr(), other.as_ptr());
    let length = one.len();
    drop((one, other));
    exchange(&recorder, request("GET", &format!("{MAPS}/b"), "", &Value::Null), &json!({}));
    assert!(recorder.export().len() > length, "a later one is new");
}
