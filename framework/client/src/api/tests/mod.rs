//! Calls over an in-memory connection: the requests, and the results of their answers.

mod deletions;
mod metadata;
mod pages;
mod patchers;
mod resuming;
mod subresources;
mod upserts;
mod waits;
mod writes;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::client::{BoxIo, Connect};
use windlass_core::environment::Environment;
use windlass_core::error::ErrorKind;
use windlass_core::resource::{DynamicObject, Scope};
use windlass_core::rng::Rng;

/// Answers every request with the next body (the last body repeatedly), and records requests.
#[derive(Debug, Default)]
struct Echo {
    /// The answer to every request but a watch, if set; the other answers are for watches then.
    listed: Mutex<Option<String>>,
    /// The status of the answer; 0 is 200.
    listed_code: std::sync::atomic::AtomicU16,
    answers: Mutex<Vec<(u16, String)>>,
    seen: Mutex<Vec<(String, String, Value)>>,
    accepted: Mutex<Vec<String>>,
}

impl Echo {
    fn with<const N: usize>(answers: [(u16, Value); N]) -> Arc<Self> {
        Self::text(answers.map(|(code, value)| (code, value.to_string())))
    }

    fn text<const N: usize>(answers: [(u16, String); N]) -> Arc<Self> {
        let mut answers = answers.to_vec();
        answers.reverse();
        Arc::new(Self { answers: Mutex::new(answers), ..Self::default() })
    }

    /// Answers every request but a watch with `list`.
    fn listing(self: Arc<Self>, list: &Value) -> Arc<Self> {
        *self.listed.lock() = Some(list.to_string());
        self
    }

    /// Method and target of each request, content type, body.
    fn seen(&self) -> Vec<(String, String, Value)> {
        self.seen.lock().clone()
    }

    /// Method and target of each request.
    fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|(line, _, _)| line).collect()
    }

    /// `Accept` of each request.
    fn accepted(&self) -> Vec<String> {
        self.accepted.lock().clone()
    }

    async fn answer(
        self: Arc<Self>,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<Full<Bytes>>, hyper::Error> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let kind = parts.headers.get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        let accept = parts.headers.get("accept").map(|kind| kind.to_str().unwrap().to_owned());
        self.accepted.lock().push(accept.unwrap_or_default());
        self.seen.lock().push((
            format!("{} {}", parts.method, parts.uri),
            kind.unwrap_or_default(),
            serde_json::from_slice(&body).unwrap_or_default(),
        ));
        let is_watch = parts.uri.query().is_some_and(|query| query.contains("watch=true"));
        if let Some(list) = self.listed.lock().clone().filter(|_| !is_watch) {
            let mut response = http::Response::new(Full::new(Bytes::from(list)));
            let code = self.listed_code.load(std::sync::atomic::Ordering::SeqCst).max(200);
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
            return Ok(response);
        }
        let mut answers = self.answers.lock();
        let last = answers.last().cloned().unwrap();
        let (code, text) = if answers.len() > 1 { answers.pop().unwrap() } else { last };
        let mut response = http::Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
        Ok(response)
    }
}

#[derive(Debug)]
struct Wire(Arc<Echo>);

impl Connect for Wire {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let echo = Arc::clone(&self.0);
        let service = service_fn(move |request| Arc::clone(&echo).answer(request));
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(theirs), service);
        tokio::spawn(serving);
        Box::pin(async { Ok(Box::new(ours) as BoxIo) })
    }
}

fn client(echo: &Arc<Echo>) -> Client {
    let environment = Environment { rng: Rng::seeded(1), ..Environment::system() };
    Client::over(Arc::new(Wire(Arc::clone(echo))), environment)
}

fn configmap(name: &str, version: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "resourceVersion": version },
    }))
    .unwrap()
}

fn stored() -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "home", "uid": "u" } })
}

#[tokio::test(start_paused = true)]
async fn each_verb_sends_method_path_and_body_that_the_api_expects() {
    let echo = Echo::with([(200, stored())]);
    let api = client(&echo).field_manager("me").namespace::<ConfigMap>("shop");
    let home = configmap("home", "7");
    api.get("home").await.unwrap();
    api.create(&home).dry_run().await.unwrap();
    api.replace(&home).await.unwrap();
    api.replace(&home).status().await.unwrap();
    api.patch("home", Patch::Merge(json!({"data": {"a": null}}))).manager("you").await.unwrap();
    api.patch("home", Patch::Json(json!([]))).await.unwrap();
    api.patch("home", Patch::Strategic(json!({}))).await.unwrap();
    api.apply("home", &json!({"data": {"a": "b"}})).force().await.unwrap();
    api.delete("home").await.unwrap();
    api.delete("home").uid("u").propagation(Propagation::Foreground).await.unwrap();
    api.delete_collection().labels("a=b").await.unwrap();
    let path = "/api/v1/namespaces/shop/configmaps";
    let seen = echo.seen();
    let lines: Vec<_> = seen.iter().map(|(line, kind, _)| format!("{line} {kind}")).collect();
    assert_eq!(
        lines,
        [
            format!("GET {path}/home "),
            format!("POST {path}?dryRun=All&fieldManager=me application/json"),
            format!("PUT {path}/home?fieldManager=me application/json"),
            format!("PUT {path}/home/status?fieldManager=me application/json"),
            format!("PATCH {path}/home?fieldManager=you application/merge-patch+json"),
            format!("PATCH {path}/home?fieldManager=me application/json-patch+json"),
            format!("PATCH {path}/home?fieldManager=me application/strategic-merge-patch+json"),
            format!("PATCH {path}/home?force=true&fieldManager=me application/apply-patch+yaml"),
            format!("DELETE {path}/home "),
            format!("DELETE {path}/home application/json"),
            format!("DELETE {path}?labelSelector=a%3Db "),
        ]
    );
    assert_eq!(seen[1].2["kind"], "ConfigMap");
    assert_eq!(
        seen[7].2,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "home" },
            "data": { "a": "b" },
        })
    );
    assert_eq!(
        seen[9].2,
        json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground",
            "preconditions": { "uid": "u" },
        })
    );
}

fn usage<T: std::fmt::Debug>(result: Result<T, Error>, part: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

/// G-R: requests are checked before they are sent.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_meant_is_refused_before_it_is_sent() {
    let echo = Echo::with([(200, stored())]);
    let client = client(&echo);
    let all = client.all::<ConfigMap>();
    let shop = client.namespace::<ConfigMap>("shop");
    usage(shop.get("").await, "name may not be empty; for the whole collection use Api::list");
    usage(shop.get("..").await, "would change the path");
    usage(shop.get("a/b").await, "cannot get configmaps \"a/b\" in \"shop\": `a/b` is not a name");
    usage(shop.delete("a%2f").await, "would change the path");
    usage(client.namespace::<ConfigMap>("").get("x").await, "namespace is empty");
    usage(client.namespace::<ConfigMap>("a/b").list().await, "would change the path");
    usage(all.get("home").await, "needs a namespace");
    usage(all.create(&configmap("home", "")).await, "needs a namespace");
    usage(all.apply("home", &json!({})).await, "needs a namespace");
    usage(all.delete_collection().await, "one namespace");
    usage(shop.create(&ConfigMap::default()).await, "neither a name nor a generateName");
    usage(shop.create(&configmap("home", "")).status().await, "status is not created");
    usage(shop.create(&configmap("home", "")).force().await, "only an apply");
    usage(shop.apply("home", &json!({"metadata": {"name": "x"}})).await, "another name");
    usage(shop.apply("home", &json!(1)).await, "not an object");
    usage(client.all::<DynamicObject>().list().await, "Client::dynamic");
    let unknown = client.namespace::<DynamicObject>("shop").list().await;
    usage(unknown, "cannot list objects of an unknown kind in \"shop\": the kind is not known");
    let mut elsewhere = configmap("home", "1");
    elsewhere.metadata.namespace = Some("other".into());
    usage(shop.replace(&elsewhere).await, "\"other\"");
    assert_eq!(echo.seen().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_with_a_namespace_needs_none_from_the_api() {
    let echo = Echo::with([(200, stored())]);
    let mut home = configmap("home", "1");
    home.metadata.namespace = Some("shop".into());
    client(&echo).all::<ConfigMap>().replace(&home).await.unwrap();
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    let _ = client(&echo).namespace::<Node>("ignored").create(&node).await;
    assert!(echo.seen()[0].0.starts_with("PUT /api/v1/namespaces/shop/configmaps/home?"));
    assert!(echo.seen()[1].0.starts_with("POST /api/v1/nodes?"));
}

#[tokio::test(start_paused = true)]
async fn errors_name_verb_resource_object_and_namespace() {
    let exists = json!({
        "kind": "Status", "status": "Failure", "message": "it exists", "reason": "AlreadyExists",
        "code": 409,
    });
    let echo = Echo::with([(409, exists)]);
    let info = ResourceInfo {
        group: "example.dev".into(),
        version: "v1".into(),
        kind: "Website".into(),
        plural: "websites".into(),
        scope: Scope::Namespaced,
    };
    let api = client(&echo).dynamic(info, Some("shop"));
    let mut home = DynamicObject::default();
    home.metadata.name = Some("home".into());
    let error = api.create(&home).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot create websites.example.dev \"home\" in \"shop\": it exists (409 AlreadyExists)"
    );
    assert_eq!(echo.seen()[0].2["apiVersion"], "example.dev/v1");
    let error = api.replace(&home).status().await.unwrap_err();
    assert!(error.to_string().starts_with("cannot replace status of websites"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_missing_object_is_none_and_other_errors_stay_errors() {
    let echo = Echo::with([(404, json!({})), (403, json!({}))]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    assert!(api.get_opt("home").await.unwrap().is_none());
    assert_eq!(api.get_opt("home").await.unwrap_err().kind(), ErrorKind::Forbidden);
}

fn page(names: &[&str], token: &str) -> Value {
    let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMapList", "items": items,
        "metadata": { "resourceVersion": "9", "continue": token },
    })
}

#[tokio::test(start_paused = true)]
async fn a_list_follows_its_pages() {
    let echo = Echo::with([(200, page(&["a", "b"], "t=1")), (200, page(&["c"], ""))]);
    let list = client(&echo).all::<ConfigMap>().list().labels("x").await.unwrap();
    let names: Vec<_> = list.items.iter().map(|item| item.metadata.name.clone().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!((list.resource_version.as_str(), list.continue_token), ("9", None));
    let lines: Vec<_> = echo.seen().into_iter().map(|(line, _, _)| line).collect();
    assert_eq!(
        lines,
        [
            "GET /api/v1/configmaps?labelSelector=x&limit=500",
            "GET /api/v1/configmaps?labelSelector=x&limit=500&continue=t%3D1",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_token_expires_starts_anew_without_pages() {
    let gone = json!({"kind": "Status", "reason": "Expired", "code": 410});
    let echo =
        Echo::with([(200, page(&["a"], "t")), (410, gone), (200, page(&["a", "b", "c"], ""))]);
    let list = client(&echo).all::<ConfigMap>().list().await.unwrap();
    assert_eq!(list.items.len(), 3);
    assert_eq!(echo.seen()[2].0, "GET /api/v1/configmaps");
}

#[tokio::test(start_paused = true)]
async fn one_page_is_read_when_a_limit_is_set() {
    let echo = Echo::with([(200, page(&["a"], "t"))]);
    let list = client(&echo).all::<ConfigMap>().list().limit(1).await.unwrap();
    assert_eq!(list.continue_token.as_deref(), Some("t"));
    assert_eq!(echo.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_item_is_named() {
    let mut list = page(&["good"], "");
    let bad = json!({"metadata": {"name": "bad", "namespace": "shop"}, "data": 5});
    list["items"].as_array_mut().unwrap().push(bad);
    let echo = Echo::with([(200, list)]);
    let error = client(&echo).all::<ConfigMap>().list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.to_string().contains("\"bad\" in \"shop\""), "{error}");
}

#[tokio::test(start_paused = true)]
async fn items_of_a_dynamic_list_carry_their_type() {
    let echo = Echo::with([(200, page(&["a"], ""))]);
    let info = ResourceInfo::of::<ConfigMap>();
    let list = client(&echo).dynamic(info, None).list().await.unwrap();
    assert_eq!(list.items[0].kind, "ConfigMap");
    assert_eq!(list.items[0].api_version, "v1");
}

#[tokio::test(start_paused = true)]
async fn a_watch_delivers_events_bookmarks_and_the_servers_error() {
    let event = |kind: &str, object: Value| json!({"type": kind, "object": object}).to_string();
    let mark = json!({
        "kind": "ConfigMap",
        "metadata": {
            "resourceVersion": "5", "annotations": { "k8s.io/initial-events-end": "true" },
        },
    });
    let bad = json!({"metadata": {"name": "bad"}, "data": 5});
    let gone = json!({"kind": "Status", "reason": "Expired", "code": 410, "message": "too old"});
    let lines = [
        event("ADDED", stored()),
        String::new(),
        event("MODIFIED", bad),
        event("DELETED", stored()),
        event("BOOKMARK", mark),
        event("ERROR", gone),
        event("ADDED", stored()),
    ];
    let echo = Echo::text([(200, lines.join("\n") + "\n")]);
    let api = client(&echo).all::<ConfigMap>();
    let mut watch = api.watch().resource_version("4").await.unwrap();
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(_)))));
    let error = watch.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.to_string().contains("\"bad\""), "{error}");
    assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Deleted(_)))));
    let expected = WatchEvent::Bookmark { resource_version: "5".into(), initial_events_end: true };
    assert_eq!(watch.next().await.unwrap().unwrap(), expected);
    assert_eq!(watch.next().await.unwrap().unwrap_err().kind(), ErrorKind::Expired);
    assert!(watch.next().await.is_none());
    assert_eq!(
        echo.seen()[0].0,
        "GET /api/v1/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion=4"
    );
}

#[tokio::test(start_paused = true)]
async fn half_an_event_at_the_end_is_not_delivered() {
    let line = json!({"type": "ADDED", "object": stored()}).to_string();
    let echo = Echo::text([(200, format!("{line}\n{}", &line[..30]))]);
    let mut watch = client(&echo).all::<ConfigMap>().watch().await.unwrap();
    assert!(watch.next().await.unwrap().is_ok());
    assert!(watch.next().await.is_none());
}

#[test]
fn only_writes_that_notice_an_earlier_one_are_repeatable() {
    let client =
        Client::over(Arc::new(Wire(Echo::with([(200, json!({}))]))), Environment::system());
    let api = client.namespace::<ConfigMap>("shop");
    let target = &api.target;
    let repeatable = |draft: Draft| draft.finish().unwrap().repeatable;
    let home = configmap("home", "7");
    let create = Draft::create(target, &home.metadata, draft::json(&home));
    assert!(!repeatable(create));
    let replace = |object: &ConfigMap| {
        repeatable(Draft::replace(target, &object.metadata, draft::json(object)))
    };
    assert!(replace(&home));
    assert!(!replace(&configmap("home", "")));
    let patch = |patch| repeatable(Draft::patch(target, "home", patch));
    assert!(!patch(Patch::Merge(json!({"data": {}}))));
    assert!(patch(Patch::Merge(json!({"metadata": {"resourceVersion": "7"}}))));
    assert!(!patch(Patch::Json(json!([{"op": "add", "path": "/data/a", "value": "b"}]))));
    let test = json!([{"op": "test", "path": "/metadata/resourceVersion", "value": "7"}]);
    assert!(patch(Patch::Json(test)));
    assert!(repeatable(Draft::apply(target, "home", Ok(json!({})))));
}
