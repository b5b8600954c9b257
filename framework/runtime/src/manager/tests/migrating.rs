//! Storage migrations whose objects the API server refuses.

use tracing::Level;
use windlass_apiserver::faults::{Fault, FaultAction as Strike};

use super::world::{DEFINITION, Trip, World, definition, object};
use super::*;
use serde_json::json;
use windlass_core::resource::{DynamicObject, ResourceInfo};

/// Objects beside the three of the world.
const MORE: usize = 120;

/// Returns a world whose objects are stored in a version that is not the storage version any more.
async fn world_of_older_objects() -> World {
    let world = World::start().await;
    let info = ResourceInfo { version: "v1".into(), ..ResourceInfo::of::<Trip>() };
    let trips = world.client.dynamic(info, Some("shop"));
    for at in 0..MORE {
        let trip: DynamicObject = object(json!({
            "apiVersion": "example.dev/v1", "kind": "Trip",
            "metadata": { "name": format!("t{at:03}") }, "spec": { "to": "Riga" },
        }));
        trips.create(&trip).await.unwrap();
    }
    let definitions = world.client.all::<CustomResourceDefinition>();
    let mut newer = definitions.get(DEFINITION).await.unwrap();
    newer.spec.versions = definition(&["v2", "v1"]).spec.versions;
    definitions.replace(&newer).await.unwrap();
    world
}

#[tokio::test(start_paused = true)]
async fn a_migration_whose_objects_are_all_refused_names_and_logs_a_hundred_of_them() {
    let world = world_of_older_objects().await;
    let fault = Fault::new(Strike::Answer(403)).on("patch").resource("trips").always();
    let refused = world.server.faults().add(fault);
    let (logged, _guard) = Captured::at(Level::INFO);
    let migration = StorageMigration::new().kind::<Trip>();
    let done = migration.run(&world.client).await.unwrap().remove(0);
    assert_eq!((done.objects, refused.hits()), (0, MORE + 3), "each object is tried once");
    assert_eq!((done.refused.len(), done.more_refused), (100, MORE + 3 - 100));
    assert!(done.removed.is_empty(), "{done:?}");
    assert!(done.to_string().ends_with("and 23 more"), "{done}");
    assert_eq!(logged.with("an object is not migrated").len(), 100);
    assert!(logged.lines().len() < 110, "{}", logged.lines().len());

    refused.remove();
    let done = migration.run(&world.client).await.unwrap().remove(0);
    assert_eq!((done.objects, done.has_refused()), (MORE + 3, false), "{done}");
}
