//! Objects in two versions: an API server, embedded or real, asks the operator for conversions over
//! TLS.

use std::net::Ipv4Addr;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass::api::{Api, Patch, WatchEvent};
use windlass::client::Client;
use windlass::crd::KEPT_FIELDS;
use windlass::manager::{Manager, MigratedKind, Running, StorageMigration};
use windlass::prelude::*;
use windlass::testing::{TestCluster, check};
use windlass::webhook::{ConfigurationOptions, MountedFiles, WebhookServer, Webhooks};
use windlass::{Convertible, Schema};

use crate::webhooks::{Mounted, eventually};

const DEFINITION: &str = "parcels.versions.example.dev";

/// The hub.
mod v1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "versions.example.dev", version = "v1", namespaced)]
    #[resource(versions(v1beta1::Parcel), column("Grams", spec.grams))]
    pub(crate) struct Parcel {
        pub metadata: ObjectMeta,
        pub spec: ParcelSpec,
        pub status: Option<ParcelStatus>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    #[serde(rename_all = "camelCase")]
    pub(crate) struct ParcelSpec {
        pub grams: i64,
        #[serde(default)]
        pub insured: bool,
        pub to: Vec<Stop>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    pub(crate) struct Stop {
        pub name: String,
        pub note: Option<String>,
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
    pub(crate) struct ParcelStatus {
        pub place: Option<String>,
    }
}

/// An older version.
mod v1beta1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(version = "v1beta1", hub = v1::Parcel, deprecated = "use v1")]
    #[resource(column("Weight", spec.weight))]
    pub(crate) struct Parcel {
        pub metadata: ObjectMeta,
        pub spec: ParcelSpec,
        pub status: Option<ParcelStatus>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::ParcelSpec, hub_only(insured))]
    pub(crate) struct ParcelSpec {
        #[convert(rename = grams)]
        pub weight: i32,
        pub to: Vec<Stop>,
        #[convert(version_only)]
        pub sender: Option<String>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::Stop, hub_only(note))]
    pub(crate) struct Stop {
        pub name: String,
    }

    #[derive(Clone, Debug, Default, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::ParcelStatus)]
    pub(crate) struct ParcelStatus {
        pub place: Option<String>,
    }
}

/// A cluster that serves both versions, and the operator that converts.
struct World {
    cluster: TestCluster,
    running: Running,
    new: Api<v1::Parcel>,
    old: Api<v1beta1::Parcel>,
    _mounted: Mounted,
}

impl World {
    async fn start() -> Self {
        let cluster = TestCluster::start().await;
        let (admin, namespace) = (cluster.client(), cluster.namespace().to_owned());
        let mounted = Mounted::new(&namespace);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let webhooks = Webhooks::new().converting::<v1::Parcel>();
        let server = WebhookServer::new(webhooks.clone())
            .certificates(MountedFiles::new(&mounted.folder))
            .listener(listener);
        let manager = Manager::new(admin.clone()).quiet().without_signals();
        let running = manager.runnable(server).start();
        eventually("the operator is ready", async || running.readiness().is_ready()).await;

        let options = ConfigurationOptions::new(&namespace, "operators").url(url);
        let options = options.ca_bundle(mounted.authority.clone());
        let mut made = webhooks.configurations(&options).unwrap();
        let mut definition = v1::Parcel::crd().unwrap();
        definition.spec.conversion = made.conversions.remove(DEFINITION);
        admin.all::<CustomResourceDefinition>().create(&definition).await.unwrap();
        let new = admin.namespace::<v1::Parcel>(&namespace);
        let old = admin.namespace::<v1beta1::Parcel>(&namespace);
        eventually("both versions are served", async || {
            new.list().await.is_ok() && old.list().await.is_ok()
        })
        .await;
        Self { new, old, running, _mounted: mounted, cluster }
    }

    fn admin(&self) -> Client {
        self.cluster.client()
    }

    async fn stop(self) {
        self.admin().all::<CustomResourceDefinition>().delete(DEFINITION).await.unwrap();
        self.running.stop();
        self.running.join().await.unwrap();
    }
}

fn new(name: &str) -> v1::Parcel {
    let stop = |name: &str| v1::Stop { name: name.to_owned(), note: Some(format!("at {name}")) };
    let to = vec![stop("a"), stop("b")];
    v1::Parcel::new(name, v1::ParcelSpec { grams: 5, insured: true, to })
}

fn old(name: &str) -> v1beta1::Parcel {
    let sender = Some("me".to_owned());
    v1beta1::Parcel::new(name, v1beta1::ParcelSpec { weight: 7, to: Vec::new(), sender })
}

fn json_of(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap()
}

/// Sockets need real time: the clock is not paused. A single test, since the tests would share the
/// definition.
#[tokio::test]
async fn objects_of_get_list_and_watch_are_converted_in_both_directions() {
    let world = World::start().await;
    written_and_read_in_either_version(&world).await;
    watched_in_either_version(&world).await;
    an_object_without_an_equal_is_an_error_of_its_version_alone(&world).await;
    migrated_when_the_storage_version_changes(&world).await;
    world.stop().await;
}

async fn written_and_read_in_either_version(world: &World) {
    let World { new: v1, old: beta, .. } = world;
    v1.create(&new("new")).await.unwrap();
    let mut seen = beta.get("new").await.unwrap();
    assert_eq!(seen.spec.weight, 5);
    assert!(seen.metadata.annotations.as_ref().unwrap().contains_key(KEPT_FIELDS));
    seen.spec.weight = 6;
    seen.spec.to.remove(0);
    beta.replace(&seen).await.unwrap();
    let back = v1.get("new").await.unwrap();
    let spec = json!({ "grams": 6, "insured": true, "to": [{ "name": "b", "note": "at b" }] });
    assert_eq!(json_of(&back.spec), spec);
    assert_eq!(back.metadata.annotations, None);

    // Fields that the hub cannot hold are in the annotation.
    beta.create(&old("old")).await.unwrap();
    let seen = v1.get("old").await.unwrap();
    assert_eq!((seen.spec.grams, seen.spec.insured), (7, false));
    v1.patch("old", Patch::Merge(json!({ "spec": { "grams": 8 } }))).await.unwrap();
    let back = beta.get("old").await.unwrap();
    assert_eq!((back.spec.weight, back.spec.sender.as_deref()), (8, Some("me")));

    // Managers of fields and the status go through.
    let status = json!({ "status": { "place": "here" } });
    beta.apply_status("old", &status).force().await.unwrap();
    let seen = v1.get("old").await.unwrap();
    assert_eq!(seen.status.unwrap().place.as_deref(), Some("here"));
    let intent = json!({ "spec": { "weight": 9 } });
    beta.apply("old", &intent).force().await.unwrap();
    let seen = v1.get("old").await.unwrap();
    assert_eq!(seen.spec.grams, 9);
    let managers = seen.metadata.managed_fields.unwrap();
    assert!(managers.iter().any(|it| it.operation.as_deref() == Some("Apply")), "{managers:?}");
    let lists = (v1.list().await.unwrap(), beta.list().await.unwrap());
    let grams: Vec<_> = lists.0.items.iter().map(|it| it.spec.grams).collect();
    let weights: Vec<_> = lists.1.items.iter().map(|it| i64::from(it.spec.weight)).collect();
    assert_eq!((&grams, grams.len()), (&weights, 2));
}

async fn watched_in_either_version(world: &World) {
    let World { new: v1, old: beta, .. } = world;
    let since = v1.list().await.unwrap().resource_version;
    let mut of_v1 = v1.watch().resource_version(&since).await.unwrap();
    let mut of_beta = beta.watch().resource_version(&since).await.unwrap();
    v1.create(&new("seen-new")).await.unwrap();
    beta.create(&old("seen-old")).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        if let WatchEvent::Added(object) = of_v1.next().await.unwrap().unwrap() {
            seen.push(object.spec.grams);
        }
    }
    while seen.len() < 4 {
        if let WatchEvent::Added(object) = of_beta.next().await.unwrap().unwrap() {
            seen.push(object.spec.weight.into());
        }
    }
    assert_eq!(seen, [5, 7, 5, 7]);
}

async fn an_object_without_an_equal_is_an_error_of_its_version_alone(world: &World) {
    let World { new: v1, old: beta, .. } = world;
    let mut heavy = new("heavy");
    heavy.spec.grams = 5_000_000_000;
    v1.create(&heavy).await.unwrap();
    let text = format!("{:?}", beta.get("heavy").await.unwrap_err());
    assert!(
        text.contains("heavy\\\" to v1beta1: spec.weight: ") || text.contains("spec.weight: "),
        "{text}"
    );
    assert_eq!(v1.get("heavy").await.unwrap().spec.grams, 5_000_000_000);
    v1.delete("heavy").await.unwrap();
}

async fn migrated_when_the_storage_version_changes(world: &World) {
    let definitions = world.admin().all::<CustomResourceDefinition>();
    let stored_versions = async || {
        let definition = definitions.get(DEFINITION).await.unwrap();
        definition.status.unwrap().stored_versions.unwrap()
    };
    assert_eq!(stored_versions().await, ["v1"]);
    let before = json_of(&specs(world).await);
    let mut definition = definitions.get(DEFINITION).await.unwrap();
    for version in &mut definition.spec.versions {
        version.storage = version.name == "v1beta1";
    }
    definitions.replace(&definition).await.unwrap();
    eventually("both are stored", async || stored_versions().await.len() == 2).await;

    let migration = StorageMigration::new().kind::<v1::Parcel>();
    let old_version = world.new.get("new").await.unwrap().metadata.resource_version;
    let done = migration.run(&world.admin()).await.unwrap();
    let [MigratedKind { version, removed, objects, .. }] = done.as_slice() else {
        panic!("one kind: {done:?}")
    };
    assert_eq!((version.as_str(), removed.len(), *objects), ("v1beta1", 1, 4));
    assert_eq!(stored_versions().await, ["v1beta1"]);
    let new_version = world.new.get("new").await.unwrap().metadata.resource_version;
    assert_ne!(new_version, old_version, "the object was written");
    assert_eq!(json_of(&specs(world).await), before, "nothing is lost");
    let again = migration.run(&world.admin()).await.unwrap();
    assert!(again[0].removed.is_empty() && again[0].objects == 0, "{again:?}");
}

async fn specs(world: &World) -> Vec<v1::ParcelSpec> {
    world.new.list().await.unwrap().items.into_iter().map(|object| object.spec).collect()
}

/// A second kind: definitions of the same name are a single object on a real server.
mod letters {
    use super::*;

    pub(crate) mod v1 {
        use super::*;

        #[derive(CustomResource, Clone, Debug)]
        #[resource(group = "versions.example.dev", version = "v1", namespaced)]
        #[resource(versions(v1beta1::Letter))]
        pub(crate) struct Letter {
            pub metadata: ObjectMeta,
            pub spec: LetterSpec,
        }

        #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
        pub(crate) struct LetterSpec {
            pub pages: Vec<String>,
            pub stamp: Option<i32>,
        }
    }

    pub(crate) mod v1beta1 {
        use super::*;

        #[derive(CustomResource, Clone, Debug)]
        #[resource(version = "v1beta1", hub = v1::Letter)]
        pub(crate) struct Letter {
            pub metadata: ObjectMeta,
            pub spec: LetterSpec,
        }

        #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
        #[convert(hub = v1::LetterSpec, hub_only(stamp))]
        pub(crate) struct LetterSpec {
            #[convert(rename = pages, to_hub = lines, from_hub = join)]
            pub text: String,
        }

        fn lines(text: String) -> Vec<String> {
            text.split('/').map(str::to_owned).collect()
        }

        fn join(pages: Vec<String>) -> String {
            pages.join("/")
        }
    }
}

#[tokio::test]
async fn a_check_tries_round_trips_between_versions() {
    let report = check::<letters::v1beta1::Letter>().await;
    let (converted, refused) = report.converted();
    assert!(converted > 100, "{report}");
    assert_eq!(refused, 0, "{report}");
}
