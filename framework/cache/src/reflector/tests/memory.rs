//! Tests that the in-memory source behaves as an API server does, and an API server as a source.

use std::io;
use std::pin::Pin;

use k8s_openapi::api::core::v1::Pod;
use windlass_apiserver::ApiServer;

use super::*;
use crate::reflector::{ApiSource, Served};
use windlass_client::client::{BoxIo, Client, Connect};
use windlass_core::resource::Scope;

async fn text(source: &MemorySource, read: Read) -> Result<String, Error> {
    let mut chunks = source.open(read).await?;
    let mut text = String::new();
    // A watch stays open: the present pieces are enough.
    while let Ok(Some(piece)) = tokio::time::timeout(Duration::from_millis(1), chunks.next()).await
    {
        text.push_str(&String::from_utf8_lossy(&piece?));
    }
    Ok(text)
}

fn watch(version: u64) -> Read {
    Read::Watch { resource_version: version.to_string(), timeout: Duration::from_secs(300) }
}

#[tokio::test(start_paused = true)]
async fn a_source_in_memory_keeps_uids_counts_versions_and_tells_its_watches() {
    let source = source();
    assert_eq!(source.put(&map("a", "1")).unwrap(), 11);
    assert_eq!(source.put(&map("a", "2")).unwrap(), 12);
    source.put(&json!({"metadata": {"namespace": "m", "name": "b"}})).unwrap();
    let last = source.delete(Some("n"), "a").unwrap();
    assert_eq!(last["metadata"]["uid"], "uid11");
    assert_eq!(source.delete(Some("n"), "a"), None);
    let told = text(&source, watch(11)).await.unwrap();
    let types: Vec<_> = told.lines().map(|line| line.split('"').nth(3).unwrap()).collect();
    assert_eq!(types, ["MODIFIED", "ADDED", "DELETED"]);
    assert!(
        told.lines()
            .next()
            .unwrap()
            .contains(r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"#)
    );
    let one = source.in_namespace(Some("m"));
    assert_eq!(text(&one, watch(10)).await.unwrap().lines().count(), 1);
    source.expire();
    assert!(text(&source, watch(11)).await.unwrap().contains("410"));
    assert!(source.put(&json!({"metadata": {}})).is_err());
    assert!(source.put(&json!(7)).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_source_that_was_restored_breaks_its_watches_and_leaves_versions_of_the_future_waiting() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    source.put(&map("a", "2")).unwrap();
    let mut open = source.open(watch(12)).await.unwrap();
    source.restore(10);
    assert!(open.next().await.is_some_and(|piece| piece.is_err()), "it was started again");
    let mut waiting = source.open(watch(12)).await.unwrap();
    assert_eq!(source.put(&map("a", "3")).unwrap(), 11);
    assert_eq!(source.put(&map("a", "4")).unwrap(), 12);
    assert_eq!(source.put(&map("a", "5")).unwrap(), 13);
    let came = waiting.next().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&came).contains(r#""resourceVersion":"13""#), "{came:?}");
    assert_eq!(text(&source, watch(10)).await.unwrap().lines().count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_script_may_ask_the_source_it_scripts() {
    let source = source();
    let same = source.clone();
    source.script(move |_, _| (same.version() > 10).then(|| MemoryResponse::status(500, "")));
    assert!(text(&source, watch(10)).await.is_ok());
    source.put(&map("a", "1")).unwrap();
    assert!(text(&source, watch(10)).await.is_err());
}

#[derive(Clone)]
struct InMemory(ApiServer);

impl std::fmt::Debug for InMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InMemory")
    }
}

impl Connect for InMemory {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        let pipe = self.0.connect();
        Box::pin(async move { Ok(Box::new(pipe?) as BoxIo) })
    }
}

/// B13 (a kind that does not exist): no rights on definitions are needed to see which kinds are
/// served.
#[tokio::test(start_paused = true)]
async fn b13_an_api_server_tells_whether_a_kind_is_served() {
    let server = ApiServer::builder().seed(7).start();
    let client = Client::over(Arc::new(InMemory(server)), environment());
    let of = |group: &str, version: &str, plural: &str| ResourceInfo {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        kind: "Any".into(),
        plural: plural.to_owned().into(),
        scope: Scope::Namespaced,
    };
    for (info, expected) in [
        (ResourceInfo::of::<Pod>(), Served::Yes),
        (of("apps", "v1", "deployments"), Served::Yes),
        (of("apps", "v1", "trips"), Served::No),
        (of("example.dev", "v1", "trips"), Served::No),
        (of("", "v7", "pods"), Served::No),
    ] {
        let source = ApiSource::new(client.clone(), info.clone());
        assert_eq!(source.is_served().await, expected, "{info}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_is_read_with_selectors_and_within_a_namespace() {
    let server = ApiServer::builder().seed(7).start();
    let client = Client::over(Arc::new(InMemory(server)), environment());
    let api = client.namespace::<ConfigMap>("default");
    for (name, tier) in [("a", "front"), ("b", "back"), ("c", "front")] {
        let object = json!({"metadata": {"name": name, "labels": {"tier": tier}}});
        api.create(&serde_json::from_value(object).unwrap()).await.unwrap();
    }
    let source = ApiSource::new(client, info())
        .namespace(Some("default"))
        .labels(Some("tier=front"))
        .fields(Some("metadata.name!=c"));
    let (reflector, store) = Reflector::into_store::<ConfigMap>(info(), Arc::new(source));
    let status = reflector.status();
    let task = tokio::spawn(reflector.run(CancellationToken::new()));
    status.wait_for(|state| *state == ReflectorState::Watching).await;
    let names: Vec<_> = store.list().iter().map(|o| o.key().name().to_owned()).collect();
    assert_eq!(names, ["a"]);
    task.abort();
}
