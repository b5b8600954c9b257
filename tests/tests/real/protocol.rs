//! The same calls over HTTP/1.1 and over HTTP/2.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tower::util::MapResponseLayer;
use windlass::ErrorKind;
use windlass::api::{Api, Patch, WatchEvent};
use windlass::client::{Client, HttpResponse};
use windlass::resource::ResourceExt;
use windlass::testing::RealServer;

use crate::bench::{config_map, new_namespace};
use crate::proxy::Proxy;

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn mechanism_66_every_verb_works_over_http_2_on_one_connection() {
    assert_eq!(verbs_over(true).await, 1);
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn mechanism_66_every_verb_works_over_http_1_1() {
    // A watch runs beside the other calls.
    assert!(verbs_over(false).await >= 2);
}

/// Returns the number of connections that the calls took.
async fn verbs_over(http2: bool) -> u64 {
    let server = RealServer::shared().await;
    let proxy = Proxy::new(server).await;
    let spoken = Arc::new(Mutex::new(BTreeSet::new()));
    let sink = Arc::clone(&spoken);
    let client = Client::builder()
        .config(proxy.admin(server))
        .http2(http2)
        .layer(MapResponseLayer::new(move |answer: HttpResponse| {
            sink.lock().unwrap().insert(format!("{:?}", answer.version()));
            answer
        }))
        .build()
        .unwrap();
    let api = client.namespace::<ConfigMap>(&new_namespace(server).await);
    let before = api.list().await.unwrap().resource_version;
    let mut watch = api.watch().resource_version(&before).await.unwrap();
    writes(&api).await;
    many_at_once(&api).await;
    let mut seen = Vec::new();
    while seen.last() != Some(&"deleted home") {
        seen.push(match watch.next().await.unwrap().unwrap() {
            WatchEvent::Added(object) if object.name() == "home" => "added home",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(object) if object.name() == "home" => "deleted home",
            _ => continue,
        });
    }
    let modified = ["modified"; 5];
    assert_eq!(seen, [&["added home"], &modified[..], &["deleted home"]].concat());
    let wanted = if http2 { "HTTP/2.0" } else { "HTTP/1.1" };
    assert_eq!(*spoken.lock().unwrap(), BTreeSet::from([wanted.to_owned()]));
    proxy.connections()
}

async fn writes(api: &Api<ConfigMap>) {
    let created = api.create(&config_map("home")).await.unwrap();
    assert_eq!(api.get("home").await.unwrap(), created);
    let error = api.create(&config_map("home")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    let mut changed = created.clone();
    changed.data = Some([("color".to_owned(), "red".to_owned())].into());
    let replaced = api.replace(&changed).await.unwrap();
    assert_eq!(replaced.data, changed.data);
    let error = api.replace(&created).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let data = |color: &str| json!({ "data": { "color": color } });
    api.patch("home", Patch::Merge(data("blue"))).await.unwrap();
    let replace = json!([{ "op": "replace", "path": "/data/color", "value": "green" }]);
    api.patch("home", Patch::Json(replace)).await.unwrap();
    api.patch("home", Patch::Strategic(data("white"))).await.unwrap();
    let applied = api.apply("home", &data("black")).manager("painter").force().await.unwrap();
    assert_eq!(applied.data.unwrap()["color"], "black");
    let error = api.delete("home").uid("another").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    api.delete("home").uid(created.uid()).await.unwrap();
    let error = api.get("home").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

async fn many_at_once(api: &Api<ConfigMap>) {
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..30 {
        let api = api.clone();
        calls.spawn(async move { api.create(&config_map(&format!("many-{number}"))).await });
    }
    while let Some(created) = calls.join_next().await {
        created.unwrap().unwrap();
    }
    let page = api.list().limit(20).await.unwrap();
    assert_eq!(page.items.len(), 20);
    let rest = api.list().continue_token(&page.continue_token.unwrap()).await.unwrap();
    assert!(rest.items.len() >= 10);
    api.delete_collection().await.unwrap();
    assert!(api.list().fields("metadata.name=many-1").await.unwrap().items.is_empty());
}
