//! Tests of the cache over the real client, against the API server of this workspace.

use std::io;
use std::pin::Pin;

use k8s_openapi::api::core::v1::Secret;
use windlass_apiserver::ApiServer;
use windlass_apiserver::faults::{Fault, FaultAction};

use super::*;
use windlass_client::client::{BoxIo, Client, Connect};
use windlass_core::metrics::names;

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

fn causes(environment: &Environment) -> Vec<(&'static str, u64)> {
    ["initial", "expired", "refused", "unreadable"]
        .into_iter()
        .map(|cause| {
            let lists =
                environment.metrics.counted(&names::INFORMER_RELISTS, &["configmaps", cause]);
            (cause, lists)
        })
        .filter(|(_, lists)| *lists > 0)
        .collect()
}

/// The cache converges and reports deletions (G-C2, G-C4) after a 410 (B2) and deletions during a
/// gap (B9).
#[tokio::test(start_paused = true)]
async fn the_cache_follows_a_server_through_a_restart_that_hides_a_deletion() {
    let server = ApiServer::builder().seed(7).start();
    let environment = environment();
    let client = Client::over(Arc::new(InMemory(server.clone())), environment.clone());
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
    assert_eq!(causes(&environment), [("initial", 1)]);
    let watches = environment.metrics.counted(&names::INFORMER_WATCHES, &["configmaps"]);
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

/// B13: a kind that does not exist yet.
#[tokio::test(start_paused = true)]
async fn a_custom_kind_is_found_after_its_definition_was_created() {
    use windlass_core::resource::{DynamicObject, ResourceInfo, Scope};
    let server = ApiServer::builder().seed(7).start();
    let client = Client::over(Arc::new(InMemory(server)), environment());
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

/// A server and two caches of that server, of config maps and of secrets.
async fn two_caches(
    server: &ApiServer,
) -> (Client, Informer<ConfigMap>, Informer<Secret>, CancellationToken) {
    let client = Client::over(Arc::new(InMemory(server.clone())), environment());
    let registry = InformerRegistry::new(client.clone(), vec!["default".to_owned()]);
    let (maps, secrets) = (registry.informer::<ConfigMap>(), registry.informer::<Secret>());
    let stop = CancellationToken::new();
    run(&registry, &stop);
    registry.synced().await;
    (client, maps, secrets, stop)
}

fn secret(name: &str, value: &str) -> Secret {
    let object = json!({"metadata": {"name": name}, "stringData": {"k": value}});
    serde_json::from_value(object).unwrap()
}

fn set_back(client: &Client, resource: &str) -> u64 {
    client.environment().metrics.counted(&names::INFORMER_SET_BACK, &[resource])
}

/// The server answers watches from the future by silence, as a kube-apiserver does.
#[tokio::test(start_paused = true)]
async fn b8_g_c2_a_cache_equals_a_restored_server_and_delivers_the_deletions_of_lost_objects() {
    let server = ApiServer::builder().seed(7).controllers(false).start();
    let (client, maps, _secrets, stop) = two_caches(&server).await;
    let api = client.namespace::<ConfigMap>("default");
    for name in ["kept", "same"] {
        api.create(&config_map(name, "old")).await.unwrap();
    }
    let key = |name: &str| ObjectKey::new(Some("default"), name);
    eventually("they come", || maps.store().len() == 2).await;
    let told = Told::default();
    let listening = told.listen(&maps);
    listening.synced().await.unwrap();
    told.take();
    let backup = server.backup();
    for value in 0..150 {
        let patch = windlass_client::api::Patch::Merge(json!({"data": {"k": value.to_string()}}));
        api.patch("kept", patch).await.unwrap();
    }
    api.create(&config_map("lost", "1")).await.unwrap();
    let is_last = |line: &str| told.0.lock().last().is_some_and(|last| last == line);
    eventually("they come", || is_last("+lost=1")).await;
    told.take();
    server.restore(&backup).await;
    let took = eventually("it is gone", || is_last("?lost=1")).await;
    assert!(maps.store().get(&key("lost")).is_none());
    assert!(took < Duration::from_secs(60), "{took:?}");
    let value = |name: &str| {
        let data = maps.store().get(&key(name)).unwrap().get().unwrap().data.clone();
        data.unwrap()["k"].clone()
    };
    assert_eq!(value("kept"), "old");
    let lines = told.take();
    assert_eq!(lines, ["~kept=149>kept=old", "?lost=1"], "what is the same is not told");
    // Versions below the earlier versions: an own write is read at once, and the watch goes on.
    let patch = windlass_client::api::Patch::Merge(json!({"data": {"k": "new"}}));
    let written = api.patch("kept", patch).await.unwrap();
    maps.wrote(&written).unwrap();
    assert_eq!(value("kept"), "new");
    api.create(&config_map("later", "1")).await.unwrap();
    eventually("and it goes on", || maps.store().get(&key("later")).is_some()).await;
    assert_eq!(set_back(&client, "configmaps"), 1);
    stop.cancel();
}

/// Kinds share a store: the kind with the newest position detects the fault for those whose
/// position was passed.
#[tokio::test(start_paused = true)]
async fn b8_a_kind_whose_position_was_climbed_past_learns_of_it_from_another_kind() {
    let server = ApiServer::builder().seed(7).controllers(false).start();
    let (client, maps, secrets, stop) = two_caches(&server).await;
    let (api, hidden) =
        (client.namespace::<ConfigMap>("default"), client.namespace::<Secret>("default"));
    hidden.create(&secret("kept", "old")).await.unwrap();
    let backup = server.backup();
    hidden.create(&secret("lost", "1")).await.unwrap();
    for number in 0..40 {
        api.create(&config_map(&format!("m{number}"), "1")).await.unwrap();
    }
    eventually("they come", || (maps.store().len(), secrets.store().len()) == (40, 2)).await;
    // The list of secrets fails until the versions have passed their position.
    let fault = Fault::new(FaultAction::Answer(503)).on("list").resource("secrets").always();
    let handle = server.faults().add(fault);
    server.restore(&backup).await;
    eventually("maps are set back", || maps.store().is_empty()).await;
    for number in 0..10 {
        api.create(&config_map(&format!("n{number}"), "1")).await.unwrap();
    }
    handle.remove();
    let took = eventually("secrets are, too", || secrets.store().len() == 1).await;
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert_eq!((set_back(&client, "configmaps"), set_back(&client, "secrets")), (1, 1));
    stop.cancel();
}
