//! Conversion between three versions in every direction: written in each, stored in each, read in
//! each, by lists and watches. The API server, embedded or real, asks over TLS.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use windlass::api::{Api, WatchEvent, WatchStream};
use windlass::client::Client;
use windlass::clock::Clock;
use windlass::manager::{Manager, Running};
use windlass::metrics::names;
use windlass::prelude::*;
use windlass::resource::FullObject;
use windlass::testing::TestCluster;
use windlass::webhook::{ConfigurationOptions, MountedFiles, WebhookServer, Webhooks};
use windlass::{Convertible, Schema};

use crate::webhooks::{Mounted, eventually};

const DEFINITION: &str = "barrels.directions.example.dev";
const PATH: &str = "/convert-directions-example-dev-barrel";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// The hub.
mod v1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "directions.example.dev", version = "v1", namespaced)]
    #[resource(versions(v1beta1::Barrel, v1alpha1::Barrel))]
    pub(crate) struct Barrel {
        pub metadata: ObjectMeta,
        pub spec: BarrelSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    pub(crate) struct BarrelSpec {
        pub litres: i64,
    }
}

/// An older version.
mod v1beta1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(version = "v1beta1", hub = v1::Barrel)]
    pub(crate) struct Barrel {
        pub metadata: ObjectMeta,
        pub spec: BarrelSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::BarrelSpec)]
    pub(crate) struct BarrelSpec {
        #[convert(rename = litres)]
        pub volume: i64,
    }
}

/// The first version.
mod v1alpha1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(version = "v1alpha1", hub = v1::Barrel)]
    pub(crate) struct Barrel {
        pub metadata: ObjectMeta,
        pub spec: BarrelSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::BarrelSpec)]
    pub(crate) struct BarrelSpec {
        #[convert(rename = litres)]
        pub size: i64,
    }
}

/// A barrel of any version.
trait Barrel: FullObject {
    fn made(name: &str, litres: i64) -> Self;
    fn litres(&mut self) -> &mut i64;
}

impl Barrel for v1::Barrel {
    fn made(name: &str, litres: i64) -> Self {
        Self::new(name, v1::BarrelSpec { litres })
    }

    fn litres(&mut self) -> &mut i64 {
        &mut self.spec.litres
    }
}

impl Barrel for v1beta1::Barrel {
    fn made(name: &str, volume: i64) -> Self {
        Self::new(name, v1beta1::BarrelSpec { volume })
    }

    fn litres(&mut self) -> &mut i64 {
        &mut self.spec.volume
    }
}

impl Barrel for v1alpha1::Barrel {
    fn made(name: &str, size: i64) -> Self {
        Self::new(name, v1alpha1::BarrelSpec { size })
    }

    fn litres(&mut self) -> &mut i64 {
        &mut self.spec.size
    }
}

/// Names of barrels, and their litres.
type Seen = BTreeMap<String, i64>;

fn seen<K: Barrel>(objects: impl IntoIterator<Item = K>) -> Seen {
    let of = |mut it: K| (it.metadata().name.clone().unwrap_or_default(), *it.litres());
    objects.into_iter().map(of).collect()
}

/// The operator that converts, and the kind in each version.
struct World {
    cluster: TestCluster,
    running: Running,
    v1: Api<v1::Barrel>,
    v1beta1: Api<v1beta1::Barrel>,
    v1alpha1: Api<v1alpha1::Barrel>,
    _mounted: Mounted,
}

impl World {
    async fn start() -> Self {
        let cluster = TestCluster::start().await;
        let (admin, namespace) = (cluster.client(), cluster.namespace().to_owned());
        let mounted = Mounted::new(&format!("directions-{namespace}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let webhooks = Webhooks::new().converting::<v1::Barrel>();
        let options = ConfigurationOptions::new("barrels", "operators").url(url);
        let options = options.ca_bundle(mounted.authority.clone());
        let mut definition = v1::Barrel::crd().unwrap();
        definition.spec.conversion =
            webhooks.configurations(&options).unwrap().conversions.remove(DEFINITION);
        admin.all::<CustomResourceDefinition>().create(&definition).await.unwrap();
        let files = MountedFiles::new(&mounted.folder);
        let server = WebhookServer::new(webhooks).certificates(files).listener(listener);
        let manager = Manager::new(admin.clone()).quiet().without_signals().runnable(server);
        let running = manager.start();
        eventually("the operator is ready", async || running.readiness().is_ready()).await;
        let (v1, v1beta1) = (admin.namespace(&namespace), admin.namespace(&namespace));
        let v1alpha1 = admin.namespace(&namespace);
        Self { cluster, running, v1, v1beta1, v1alpha1, _mounted: mounted }
    }

    fn admin(&self) -> Client {
        self.cluster.client()
    }

    /// Whether a creation in this version, not stored, is converted; `None` when it fails.
    async fn converts<K: Barrel>(&self, api: &Api<K>) -> Option<bool> {
        let metrics = self.admin().environment().metrics.clone();
        let asked = || metrics.counted(&names::WEBHOOK_REQUESTS, &[PATH, "200"]);
        let before = asked();
        api.create(&K::made("probe", 0)).dry_run().await.ok()?;
        Some(asked() > before)
    }

    /// Stores objects in this version from now on, and waits until the API server does: a creation
    /// in another one is converted then, and one in this version is not. The embedded server stores
    /// them so at once, and converts no dry run.
    async fn store(&self, version: &str) {
        let definitions = self.admin().all::<CustomResourceDefinition>();
        let mut definition = definitions.get(DEFINITION).await.unwrap();
        for one in &mut definition.spec.versions {
            one.storage = one.name == version;
        }
        definitions.replace(&definition).await.unwrap();
        if self.cluster.is_embedded() {
            return;
        }
        eventually("objects are stored in the version", async || {
            let converted = [
                self.converts(&self.v1).await,
                self.converts(&self.v1beta1).await,
                self.converts(&self.v1alpha1).await,
            ];
            converted == VERSIONS.map(|one| Some(one != version))
        })
        .await;
    }

    async fn lists(&self) -> [Seen; 3] {
        [
            seen(self.v1.list().await.unwrap().items),
            seen(self.v1beta1.list().await.unwrap().items),
            seen(self.v1alpha1.list().await.unwrap().items),
        ]
    }
}

/// Creates, changes and deletes barrels in one version; the one that is left has two litres more.
async fn write<K: Barrel>(api: &Api<K>, name: &str, litres: i64) {
    let mut made = api.create(&K::made(name, litres)).await.unwrap();
    *made.litres() += 2;
    api.replace(&made).await.unwrap();
    let brief = format!("{name}-brief");
    api.create(&K::made(&brief, litres + 1)).await.unwrap();
    api.delete(&brief).await.unwrap();
}

/// Reads the events of barrels until the third deletion; returns a line for each.
async fn events<K: Barrel>(clock: &Clock, mut watch: WatchStream<K>) -> Vec<String> {
    let (mut lines, mut deleted) = (Vec::new(), 0);
    while deleted < 3 {
        // A lost event must fail the test instead of stopping the whole program.
        let next = clock.timeout(Duration::from_secs(60), watch.next()).await;
        let Some(event) = next else { panic!("no further event for a minute after {lines:?}") };
        let (word, object) = match event.unwrap().unwrap() {
            WatchEvent::Added(object) => ("added", object),
            WatchEvent::Modified(object) => ("changed", object),
            WatchEvent::Deleted(object) => ("deleted", object),
            _ => continue,
        };
        deleted += usize::from(word == "deleted");
        lines.extend(seen([object]).into_iter().map(|(name, it)| format!("{word} {name} {it}")));
    }
    lines
}

async fn read_in_every_version(world: &World, stored: &str, mut all: Seen) -> Seen {
    let World { v1, v1beta1, v1alpha1, .. } = world;
    let since = v1.list().await.unwrap().resource_version;
    let watches = (
        v1.watch().resource_version(&since).await.unwrap(),
        v1beta1.watch().resource_version(&since).await.unwrap(),
        v1alpha1.watch().resource_version(&since).await.unwrap(),
    );
    let names = VERSIONS.map(|version| format!("{stored}-{version}"));
    write(v1, &names[0], 10).await;
    write(v1beta1, &names[1], 20).await;
    write(v1alpha1, &names[2], 30).await;
    let mut wanted = Vec::new();
    for (name, litres) in names.iter().zip([10, 20, 30]) {
        wanted.push(format!("added {name} {litres}"));
        wanted.push(format!("changed {name} {}", litres + 2));
        wanted.push(format!("added {name}-brief {}", litres + 1));
        wanted.push(format!("deleted {name}-brief {}", litres + 1));
        all.insert(name.clone(), litres + 2);
    }
    let clock = &world.admin().environment().clock.clone();
    let read = [
        events(clock, watches.0).await,
        events(clock, watches.1).await,
        events(clock, watches.2).await,
    ];
    assert_eq!(read, [(); 3].map(|()| wanted.clone()), "stored in {stored}");
    // Those that were stored in another version before, too.
    assert_eq!(world.lists().await, [(); 3].map(|()| all.clone()), "stored in {stored}");
    all
}

/// Sockets need real time: the clock is not paused. One test, since the definition is one.
#[tokio::test]
async fn objects_written_and_stored_in_any_of_three_versions_are_listed_and_watched_in_each() {
    let world = World::start().await;
    let mut all = Seen::new();
    for stored in ["v1beta1", "v1alpha1", "v1"] {
        world.store(stored).await;
        all = read_in_every_version(&world, stored, all).await;
    }
    assert_eq!(all.len(), 9);
    world.admin().all::<CustomResourceDefinition>().delete(DEFINITION).await.unwrap();
    world.running.stop();
    world.running.join().await.unwrap();
}
