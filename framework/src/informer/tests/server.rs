//! The cache over the real client, against an API server that was not written for this test.

use std::io;
use std::pin::Pin;

use windlass_apiserver::ApiServer;

use super::*;
use crate::client::{BoxIo, Client, Connect};
use crate::metrics::names;

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

fn config_map(name: &str, value: &str) -> ConfigMap {
    let object = json!({"metadata": {"name": name}, "data": {"k": value}});
    serde_json::from_value(object).unwrap()
}

fn causes(seams: &Seams) -> Vec<(&'static str, u64)> {
    ["initial", "expired", "refused", "unreadable"]
        .into_iter()
        .map(|cause| {
            let lists = seams.metrics.counted(&names::INFORMER_RELISTS, &["configmaps", cause]);
            (cause, lists)
        })
        .filter(|(_, lists)| *lists > 0)
        .collect()
}

/// G-C2, G-C4, B2, B9.
#[tokio::test(start_paused = true)]
async fn the_cache_follows_a_server_through_a_restart_that_hides_a_deletion() {
    let server = ApiServer::builder().seed(7).start();
    let seams = seams();
    let client = Client::over(Arc::new(InMemory(server.clone())), seams.clone());
    let api = client.namespace::<ConfigMap>("default");
    api.create(&config_map("gone", "1")).await.unwrap();
    api.create(&config_map("kept", "1")).await.unwrap();

    let registry = InformerRegistry::new(client.clone(), vec!["default".to_owned()]);
    let informer = registry.informer::<ConfigMap>();
    let told = Told::default();
    let listening = told.listen(&informer);
    let stop = CancellationToken::new();
    let task = run(&registry, &stop);
    registry.synced().await;
    listening.synced().await.unwrap();
    assert_eq!(causes(&seams), [("initial", 1)]);
    let watches = seams.metrics.counted(&names::INFORMER_WATCHES, &["configmaps"]);
    assert_eq!(watches, 1, "the streaming list is spoken and goes on as the watch");
    let mine = |told: Vec<String>| -> Vec<String> {
        told.into_iter().filter(|line| !line.contains("kube-root-ca")).collect()
    };
    assert_eq!(mine(told.take()), ["*gone=1", "*kept=1"]);

    let created = api.create(&config_map("new", "1")).await.unwrap();
    informer.wrote(&created).unwrap();
    let key = ObjectKey::new(Some("default"), "new");
    assert!(informer.store().get(&key).is_some(), "an own write is read at once");
    eventually("the creation is told", || mine(told.take()) == ["+new=1"]).await;

    // The connections break, an object goes, and the history is lost.
    let kept = ObjectKey::new(Some("default"), "kept");
    let before = informer.store().get(&kept).unwrap();
    server.restart().await;
    api.delete("gone").await.unwrap();
    server.compact();
    let gone = ObjectKey::new(Some("default"), "gone");
    eventually("the deletion is told", || informer.store().get(&gone).is_none()).await;
    let deleted = mine(told.take());
    assert!(deleted == ["?gone=1"] || deleted == ["-gone=1"], "{deleted:?}");
    assert!(before.is_same(&informer.store().get(&kept).unwrap()));

    api.create(&config_map("later", "1")).await.unwrap();
    eventually("and it goes on", || mine(told.take()) == ["+later=1"]).await;
    assert!(informer.status().synced, "{:?}", informer.status());
    stop.cancel();
    task.await.unwrap();
}

/// B13 against a server that knows the kind later.
#[tokio::test(start_paused = true)]
async fn a_custom_kind_is_found_after_its_definition_was_created() {
    use crate::resource::{DynamicObject, ResourceInfo, Scope};
    let server = ApiServer::builder().seed(7).start();
    let client = Client::over(Arc::new(InMemory(server)), seams());
    let info = ResourceInfo {
        group: "example.dev".into(),
        version: "v1".into(),
        kind: "Trip".into(),
        plural: "trips".into(),
        scope: Scope::Namespaced,
    };
    let registry = InformerRegistry::new(client.clone(), Vec::new());
    let informer = registry.informer_of::<DynamicObject>(info.clone());
    let stop = CancellationToken::new();
    let task = run(&registry, &stop);
    registry.synced().await;
    let status = informer.status();
    assert!(!status.synced && status.state.starts_with("absent"), "{status:?}");
    let definition: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "trips.example.dev"},
        "spec": {"group": "example.dev", "scope": "Namespaced",
            "names": {"plural": "trips", "singular": "trip", "kind": "Trip", "listKind": "TripList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema":
                {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    }))
    .unwrap();
    let definitions = ResourceInfo {
        group: "apiextensions.k8s.io".into(),
        version: "v1".into(),
        kind: "CustomResourceDefinition".into(),
        plural: "customresourcedefinitions".into(),
        scope: Scope::Cluster,
    };
    client.dynamic(definitions, None).create(&definition).await.unwrap();
    let took = eventually("the kind is found", || informer.status().synced).await;
    assert!(took < Duration::from_secs(6), "{took:?}");
    let trip = json!({"apiVersion": "example.dev/v1", "kind": "Trip", "metadata": {"name": "t"}});
    let trip: DynamicObject = serde_json::from_value(trip).unwrap();
    client.dynamic(info, Some("default")).create(&trip).await.unwrap();
    eventually("its objects come", || informer.store().len() == 1).await;
    assert_eq!(informer.store().list()[0].get().unwrap().kind, "Trip");
    stop.cancel();
    task.await.unwrap();
}
