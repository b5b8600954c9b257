//! Storage migrations of a kind whose two versions differ in name alone: pages, conflicts, stops,
//! refusals.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use windlass::Schema;
use windlass::api::Patch;
use windlass::client::Client;
use windlass::manager::{Exit, Manager, StorageMigration};
use windlass::prelude::*;
use windlass::testing::TestCluster;

use crate::webhooks::eventually;

/// Objects: more than one page has.
const OBJECTS: usize = 520;

/// The kind in its older version; the definition has a newer one that is the same.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "migration.example.dev", version = "v1", namespaced)]
struct Crate {
    metadata: ObjectMeta,
    spec: CrateSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct CrateSpec {
    grams: i64,
}

const DEFINITION: &str = "crates.migration.example.dev";

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

struct World {
    cluster: TestCluster,
    client: Client,
}

impl World {
    /// Adds a definition with two stored versions to a cluster, and objects of the older one.
    async fn start(cluster: TestCluster, count: usize) -> Self {
        let client = cluster.client();
        let definitions = client.all::<CustomResourceDefinition>();
        if definitions.get_opt(DEFINITION).await.unwrap().is_some() {
            definitions.delete(DEFINITION).await.unwrap();
            eventually("the former definition is gone", async || {
                definitions.get_opt(DEFINITION).await.unwrap().is_none()
            })
            .await;
        }
        let mut definition = Crate::crd().unwrap();
        let mut newer = definition.spec.versions[0].clone();
        (newer.name, newer.storage) = ("v2".to_owned(), false);
        definition.spec.versions.push(newer);
        definitions.create(&definition).await.unwrap();
        let crates = client.namespace::<Crate>(cluster.namespace());
        eventually("the kind is served", async || crates.list().await.is_ok()).await;
        for at in 0..count {
            let spec = CrateSpec { grams: at as i64 };
            crates.create(&Crate::new(format!("c{at:04}"), spec)).await.unwrap();
        }
        let mut definition = definitions.get(DEFINITION).await.unwrap();
        for version in &mut definition.spec.versions {
            version.storage = version.name == "v2";
        }
        definitions.replace(&definition).await.unwrap();
        let world = Self { cluster, client };
        eventually("both are stored", async || world.stored().await.len() == 2).await;
        world
    }

    async fn stored(&self) -> Vec<String> {
        let definition =
            self.client.all::<CustomResourceDefinition>().get(DEFINITION).await.unwrap();
        definition.status.unwrap().stored_versions.unwrap()
    }

    /// Returns the resource versions by name.
    async fn versions(&self) -> BTreeMap<String, String> {
        let crates = self.client.namespace::<Crate>(self.cluster.namespace()).list().await.unwrap();
        let version = |one: Crate| {
            (one.metadata.name.unwrap(), one.metadata.resource_version.unwrap_or_default())
        };
        crates.items.into_iter().map(version).collect()
    }

    async fn version(&self, name: &str) -> Option<String> {
        let crates = self.client.namespace::<Crate>(self.cluster.namespace());
        crates.get(name).await.unwrap().metadata.resource_version
    }

    async fn end(self) {
        self.client.all::<CustomResourceDefinition>().delete(DEFINITION).await.unwrap();
    }
}

/// One test, since the definition is one.
#[tokio::test]
async fn a_migration_writes_every_page_meets_conflicts_and_goes_on_after_a_stop() {
    let world = World::start(TestCluster::start().await, OBJECTS).await;
    let before = world.versions().await;
    let migration = StorageMigration::new().kind::<Crate>();

    // Stopped once the first objects are written.
    let client = world.client.clone();
    let stopped = tokio::spawn({
        let migration = migration.clone();
        async move { migration.run(&client).await }
    });
    eventually("the first object is written", async || {
        world.version("c0000").await.as_ref() != before.get("c0000")
    })
    .await;
    stopped.abort();
    assert!(stopped.await.is_err_and(|error| error.is_cancelled()), "it was not done yet");
    assert_eq!(world.stored().await.len(), 2, "nothing is trimmed");
    assert_eq!(world.versions().await.len(), OBJECTS);

    // Run again, while somebody writes an object between its list and its turn.
    let crates = world.client.namespace::<Crate>(world.cluster.namespace());
    let clock = world.client.environment().clock.clone();
    let writing = async {
        for grams in 10_000.. {
            let change = json!({ "spec": { "grams": grams } });
            crates.patch("c0499", Patch::Merge(change)).await.unwrap();
            clock.sleep(Duration::from_millis(20)).await;
        }
    };
    let done = tokio::select! {
        biased;
        done = migration.run(&world.client) => done.unwrap().remove(0),
        () = writing => unreachable!("it ends never"),
    };
    assert_eq!((done.objects, done.has_refused()), (OBJECTS, false), "{done}");
    assert!(done.conflicts > 0, "{done}");
    assert_eq!(world.stored().await, ["v2"]);
    assert!(crates.get("c0499").await.unwrap().spec.grams >= 10_000, "the change stays");
    let again = migration.run(&world.client).await.unwrap().remove(0);
    assert_eq!((again.objects, again.removed.len()), (0, 0));

    refused_objects_are_listed_and_the_others_are_written(&world).await;
    world.end().await;
}

/// Lets the API server refuse updates of two objects, and returns the name of the policy.
async fn refuse(world: &World) -> String {
    let (client, namespace) = (&world.client, world.cluster.namespace());
    let name = format!("refuse-{namespace}");
    let policy: ValidatingAdmissionPolicy = typed(json!({
        "metadata": { "name": name },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{
                "apiGroups": ["migration.example.dev"], "apiVersions": ["*"],
                "resources": ["crates"], "operations": ["UPDATE"],
            }] },
            "validations": [{
                "expression": "!(object.metadata.name in ['c0003', 'c0510'])",
                "message": "it is sealed",
            }],
        },
    }));
    client.all().create(&policy).await.unwrap();
    let binding: ValidatingAdmissionPolicyBinding = typed(json!({
        "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    }));
    client.all().create(&binding).await.unwrap();
    let crates = client.namespace::<Crate>(namespace);
    eventually("the policy is in force", async || {
        crates.patch("c0003", change_of_labels()).dry_run().await.is_err()
    })
    .await;
    name
}

fn change_of_labels() -> Patch {
    Patch::Merge(json!({ "metadata": { "labels": { "sealed": "no" } } }))
}

async fn refused_objects_are_listed_and_the_others_are_written(world: &World) {
    let (client, namespace) = (&world.client, world.cluster.namespace().to_owned());
    let definitions = client.all::<CustomResourceDefinition>();
    let mut definition = definitions.get(DEFINITION).await.unwrap();
    for version in &mut definition.spec.versions {
        version.storage = version.name == "v1";
    }
    definitions.replace(&definition).await.unwrap();
    eventually("both are stored", async || world.stored().await.len() == 2).await;
    let name = refuse(world).await;
    let crates = client.namespace::<Crate>(&namespace);

    let before = world.versions().await;
    let migration = StorageMigration::new().kind::<Crate>();
    let done = migration.run(client).await.unwrap().remove(0);
    assert_eq!((done.objects, done.removed.len()), (OBJECTS - 2, 0), "{done}");
    let names: Vec<_> = done.refused.iter().map(|object| object.name.as_str()).collect();
    assert_eq!(names, ["c0003", "c0510"]);
    assert!(done.refused[0].reason.contains("it is sealed"), "{done}");
    let text = done.to_string();
    assert!(
        text.contains("2 are refused") && text.contains(&format!("{namespace}/c0510: ")),
        "{text}"
    );
    assert_eq!(world.stored().await.len(), 2, "nothing is trimmed");
    let after = world.versions().await;
    let written = before.iter().filter(|(name, version)| after.get(*name) != Some(*version));
    assert_eq!(written.count(), OBJECTS - 2);

    client.all::<ValidatingAdmissionPolicyBinding>().delete(&name).await.unwrap();
    client.all::<ValidatingAdmissionPolicy>().delete(&name).await.unwrap();
    eventually("the policy is away", async || {
        crates.patch("c0003", change_of_labels()).dry_run().await.is_ok()
    })
    .await;
    let done = migration.run(client).await.unwrap().remove(0);
    assert_eq!((done.objects, world.stored().await), (OBJECTS, vec!["v1".to_owned()]), "{done}");
}

#[tokio::test(start_paused = true)]
async fn a_migration_in_an_operator_ends_with_a_list_and_does_not_begin_again() {
    let world = World::start(TestCluster::builder().embedded().start().await, 5).await;
    refuse(&world).await;
    let before = world.versions().await;
    let running = Manager::new(world.client.clone()).quiet().without_signals();
    let running = running.runnable(StorageMigration::new().kind::<Crate>()).start();
    let clock = world.client.environment().clock.clone();
    clock.sleep(Duration::from_secs(60)).await;
    let after = world.versions().await;
    let written: Vec<_> =
        after.iter().filter(|(name, version)| before.get(*name) != Some(*version)).collect();
    assert_eq!(written.len(), 4, "{written:?}");
    assert_eq!(world.stored().await.len(), 2);
    clock.sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.versions().await, after, "it does not begin again");
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}
