//! Planted faults of operators with state beside their objects, in memory and outside of
//! Kubernetes, and their twins without them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_core::resource::ResourceExt;
use windlass_runtime::controller::{Action, Context, Finalize, Reconciler, Result};
use windlass_runtime::manager::Manager;

use crate::testing::explore::{Exploration, ExternalWorld, Finding, World};

/// A kind with a record in its status.
#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(group = "outside.windlass.dev", version = "v1", namespaced)]
struct Volume {
    metadata: ObjectMeta,
    spec: VolumeSpec,
    status: Option<VolumeStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct VolumeSpec {
    size: i32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct VolumeStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<String>,
}

async fn create(world: &World) {
    let volumes = world.client().namespace::<Volume>("default");
    volumes.create(&Volume::new("a", VolumeSpec { size: 1 })).await.expect("a volume");
}

/// Explores an operator with its fault until the first finding, and its twin for some runs.
fn found_in_the_broken_only<W>(workload: impl Fn(World, bool) -> W + Send + Sync) -> Finding
where
    W: Future<Output = ()>,
{
    let exploration = Exploration::new().budget(Duration::from_secs(120));
    let report = exploration.clone().first_only(true).run(|world| workload(world, false));
    let finding = report.findings().first().cloned();
    let twin = exploration.runs(60).run(|world| workload(world, true));
    assert!(twin.findings().is_empty(), "the twin has no fault: {twin}");
    finding.unwrap_or_else(|| panic!("the fault is found: {report}"))
}

/// Remembers which volumes have their map, which goes by a finalizer.
#[derive(windlass_macros::Controller)]
#[controller(for = Volume, can(create delete ConfigMap), finalizer = "outside.windlass.dev/maps")]
struct Remembering {
    is_fixed: bool,
    done: Mutex<BTreeSet<String>>,
}

impl Reconciler for Remembering {
    type Object = Volume;

    async fn reconcile(&self, volume: &Volume, cx: &Context<Self>) -> Result<Action> {
        if self.done.lock().contains(volume.name()) {
            return Ok(Action::done());
        }
        let metadata = ObjectMeta { name: Some(volume.name().into()), ..ObjectMeta::default() };
        match cx.api().create(&ConfigMap { metadata, ..ConfigMap::default() }).await {
            Err(error) if error.is_already_exists() => {}
            created => drop(created?),
        }
        self.done.lock().insert(volume.name().to_owned());
        Ok(Action::done())
    }
}

impl Finalize for Remembering {
    async fn cleanup(&self, volume: &Volume, cx: &Context<Self>) -> Result<()> {
        match cx.api::<ConfigMap>().delete(volume.name()).await {
            Err(error) if error.is_not_found() => {}
            deleted => drop(deleted?),
        }
        if self.is_fixed {
            self.done.lock().remove(volume.name());
        }
        Ok(())
    }
}

/// A volume that is deleted and created again has no map: its clean-up has not forgotten it.
async fn forgetting(world: World, is_fixed: bool) {
    world.install::<Volume>().await;
    world.operator(move |client| {
        Manager::new(client).controller(Remembering { is_fixed, done: Mutex::default() })
    });
    create(&world).await;
    let has_map = || world.objects::<ConfigMap>().iter().any(|map| map.name() == "a");
    world.eventually("it has a map", async || has_map()).await;
}

/// Buckets by number, with their owners.
type Buckets = BTreeMap<u32, String>;

/// Keeps a bucket for each volume, and its number in the status.
#[derive(windlass_macros::Controller)]
#[controller(for = Volume)]
struct Stored {
    is_fixed: bool,
    buckets: ExternalWorld<Buckets>,
}

impl Reconciler for Stored {
    type Object = Volume;

    async fn reconcile(&self, volume: &Volume, cx: &Context<Self>) -> Result<Action> {
        if volume.status.as_ref().is_some_and(|status| status.bucket.is_some()) {
            return Ok(Action::done());
        }
        let (is_fixed, owner) = (self.is_fixed, volume.name().to_owned());
        let create = move |buckets: &mut Buckets| {
            // Looked up by its owner first: the record in the status may have been lost.
            let known = buckets.iter().find(|(_, known)| is_fixed && **known == owner);
            if let Some((number, _)) = known {
                return *number;
            }
            let number = buckets.keys().next_back().map_or(1, |last| last + 1);
            buckets.insert(number, owner);
            number
        };
        let number = self.buckets.call(&format!("create {}", volume.name()), create).await?;
        cx.patch_status(json!({ "bucket": number.to_string() })).await?;
        Ok(Action::done())
    }
}

/// A bucket is created twice when the record of the first one is lost.
async fn buckets(world: World, is_fixed: bool) {
    world.install::<Volume>().await;
    let buckets = world.external("buckets", Buckets::new());
    let outside = buckets.clone();
    world.operator(move |client| {
        Manager::new(client).controller(Stored { is_fixed, buckets: outside.clone() })
    });
    create(&world).await;
    let is_made = || buckets.with(|buckets| !buckets.is_empty());
    world.eventually("it has a bucket", async || is_made()).await;
}

#[test]
fn memory_that_a_clean_up_does_not_clear_is_found() {
    let finding = found_in_the_broken_only(forgetting);
    assert!(finding.to_string().contains("once its finalizers were gone"), "{finding}");
}

#[test]
fn a_bucket_that_is_created_twice_is_found_with_the_reasons_of_its_reconcile() {
    let finding = found_in_the_broken_only(buckets);
    let text = finding.to_string();
    assert!(text.contains("external buckets"), "{finding}");
    assert!(text.contains("its reconcile: Volume default/a, because of: "), "{finding}");
}
