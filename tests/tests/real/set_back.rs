//! The server's etcd is restored from a backup, or emptied, while caches live on.
//!
//! A watch from a version that the store has not reached is answered by 200 and silence, so no
//! bytes of the server reveal the loss.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass::api::{Api, Patch};
use windlass::client::Client;
use windlass::clock::Clock;
use windlass::informer::{Informer, InformerRegistry};
use windlass::metrics::names::INFORMER_SET_BACK;
use windlass::resource::ResourceExt;
use windlass::testing::RealServer;

use crate::bench::{client, config_map, eventually, new_namespace};

/// Data of an object, and the object's uid.
type State = BTreeMap<String, (String, Option<BTreeMap<String, String>>)>;

struct Scene {
    server: RealServer,
    api: Api<ConfigMap>,
    cached: Client,
    informer: Informer<ConfigMap>,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Scene {
    /// Fills a cache with ten objects that were saved, after 150 changes that were not.
    async fn new() -> Self {
        let server = RealServer::start().await;
        let namespace = new_namespace(&server).await;
        let patient = Client::builder().config(server.admin()).timeout(Duration::from_secs(60));
        let api = patient.build().unwrap().namespace::<ConfigMap>(&namespace);
        for number in 0..10 {
            api.create(&config_map(&format!("kept-{number}"))).await.unwrap();
        }
        server.terminate().await;
        server.back_up();
        server.start_again().await;
        let cached = client(server.admin());
        let registry = InformerRegistry::new(cached.clone(), vec![namespace]);
        let informer = registry.informer::<ConfigMap>();
        let stop = CancellationToken::new();
        let token = stop.clone();
        let running = tokio::spawn(async move { registry.run(token).await });
        let scene = Self { server, api, cached, informer, stop, running };
        scene.change().await;
        scene.catches_up("the cache knows all changes").await;
        scene
    }

    async fn change(&self) {
        for number in 0..48 {
            self.api.create(&config_map(&format!("lost-{number}"))).await.unwrap();
        }
        for number in 0..100 {
            let data = json!({"data": {"number": number.to_string()}});
            let name = format!("kept-{}", number % 8);
            self.api.patch(&name, Patch::Merge(data)).await.unwrap();
        }
        for name in ["kept-8", "kept-9"] {
            self.api.delete(name).await.unwrap();
        }
    }

    fn shown(&self) -> State {
        let objects = self.informer.store().list();
        let objects = objects.iter().map(|object| object.get().unwrap());
        objects
            .map(|map| (map.name().to_owned(), (map.uid().to_owned(), map.data.clone())))
            .collect()
    }

    async fn held(&self) -> Option<State> {
        let list = self.api.list().await.ok()?.items.into_iter();
        let state = |map: ConfigMap| (map.name().to_owned(), (map.uid().to_owned(), map.data));
        Some(list.map(state).collect())
    }

    /// Waits until the cache is right, for at most a minute.
    async fn catches_up(&self, condition: &str) {
        eventually(condition, async || self.held().await == Some(self.shown())).await;
    }

    async fn ended(self) {
        self.stop.cancel();
        self.running.await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn b8_g_c2_a_cache_equals_the_server_within_a_minute_after_etcd_was_restored() {
    let scene = Scene::new().await;
    let newest = scene.api.list().await.unwrap().resource_version;
    assert_eq!(scene.shown().len(), 56);
    let mut resuming = scene.api.watch().resource_version(&newest).resuming();
    let nothing = Clock::system().timeout(Duration::from_secs(1), resuming.next()).await;
    assert!(nothing.is_none(), "nothing has changed since: {nothing:?}");
    scene.server.kill().await;
    scene.server.restore();
    scene.server.start_again().await;
    // The difficulty: a watch from the lost version is open and silent.
    let mut watch = scene.api.watch().resource_version(&newest).await.unwrap();
    let event = Clock::system().timeout(Duration::from_secs(3), watch.next()).await;
    assert!(event.is_none(), "the server says something: {event:?}");

    let ended = Clock::system().timeout(Duration::from_secs(60), resuming.next()).await;
    let error = ended.flatten().expect("it ends").expect_err("there is no event");
    assert!(error.is_expired() && error.to_string().contains("set back"), "{error}");

    scene.catches_up("the cache shows what was restored").await;
    assert_eq!(scene.shown().len(), 10);
    let found = scene.cached.environment().metrics.counted(&INFORMER_SET_BACK, &["configmaps"]);
    assert_eq!(found, 1);
    scene.change().await;
    scene.catches_up("the cache goes on").await;
    scene.ended().await;
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn b8_g_c2_a_cache_loses_what_an_emptied_etcd_has_lost() {
    let scene = Scene::new().await;
    scene.server.terminate().await;
    scene.server.empty();
    scene.server.start_again().await;
    scene.catches_up("the cache is empty").await;
    assert!(scene.shown().is_empty());
    scene.ended().await;
}
