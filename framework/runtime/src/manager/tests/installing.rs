//! Contents of the caches when controllers begin, for kinds whose definitions were just installed.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass_apiserver::faults::{Fault, FaultAction as Strike};

use super::world::{DEFINITION, SECOND, Story, Trips, World, absent, definition, elected, until};
use super::*;
use windlass_client::api::{Api, Patch};
use windlass_client::client::test_support::Captured;

/// A follower has looked for the new version in vain before leading and installing that version.
#[tokio::test(start_paused = true)]
async fn mechanism_69_a_leader_works_when_it_sees_the_objects_of_a_version_that_it_installed() {
    let (world, story) = (World::start().await, Story::default());
    world.hold_the_lease().await;
    let operator = world.operator(&story, definition(&["v1", "v2"]));
    let running = operator.leader_election_with(elected()).start();
    until("the follower finds no such version", || absent(&running)).await;
    tokio::time::sleep(10 * SECOND).await;
    world.free_the_lease().await;
    until("it works", || story.recorded().len() == 4).await;
    let seen: Vec<_> = story.recorded().into_iter().map(|(_, objects)| objects).collect();
    assert_eq!(seen, [3, 3, 3, 3]);
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}

/// A proxy on the way answers 404 while the first lists are made.
#[tokio::test(start_paused = true)]
async fn c7_controllers_do_not_begin_without_a_kind_that_was_missing_for_a_moment() {
    let (world, story) = (World::start().await, Story::default());
    let not_found = Fault::new(Strike::Answer(404)).resource("trips").times(4);
    world.server.faults().add(not_found);
    let running = world.operator(&story, definition(&["v1", "v2"])).start();
    until("it works", || story.recorded().len() == 4).await;
    assert!(story.recorded().iter().all(|(_, objects)| *objects == 3), "{:?}", story.recorded());
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}

/// A newer program's definition, which is left alone, may lack a version.
#[tokio::test(start_paused = true)]
async fn b13_controllers_begin_without_a_kind_that_never_comes_and_the_log_names_it() {
    let (logged, _guard) = Captured::at(tracing::Level::WARN);
    let (world, story) = (World::start().await, Story::default());
    let version = |version: &str| -> BTreeMap<String, String> {
        [("windlass.dev/version".to_owned(), version.to_owned())].into()
    };
    let definitions: Api<CustomResourceDefinition> = world.client.all();
    let newer = json!({ "metadata": { "annotations": version("2.0.0") } });
    definitions.patch(DEFINITION, Patch::Merge(newer)).await.unwrap();
    let mut ours = definition(&["v1", "v2"]);
    ours.metadata.annotations = Some(version("1.0.0"));
    let running = world.operator(&story, ours).leader_election_with(elected()).start();
    let took = until("it begins", || !story.recorded().is_empty()).await;
    assert!((10 * SECOND..20 * SECOND).contains(&took), "{took:?}");
    assert_eq!(story.recorded(), [("leads", 0)]);
    let recorded = logged.with("but for kinds that are not served");
    assert!(recorded.len() == 1 && recorded[0].contains(DEFINITION), "{}", logged.text());
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}

/// A cluster whose caches no manager runs.
#[tokio::test(start_paused = true)]
async fn an_operator_that_watches_a_cluster_which_it_was_not_given_does_not_start() {
    let (world, story) = (World::start().await, Story::default());
    let east = Cluster::new("east", world.client.clone());
    let builder = || {
        ControllerBuilder::<Trips>::new()
            .watches_in::<ConfigMap>(&east, |map| vec![map.key().clone()])
            .name("mirror")
    };
    let operator = || world.operator(&story, definition(&["v1", "v2"]));
    let refused = operator().controller_with(Trips(story.clone()), builder()).run().await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Usage);
    for part in ["controller mirror", "cluster east", "Manager::cluster"] {
        assert!(refused.to_string().contains(part), "{refused}");
    }
    let maps: Api<ConfigMap> = east.client().namespace("shop");
    assert_eq!(maps.delete("any").await.unwrap_err().kind(), ErrorKind::Usage);
    // Given in any order.
    let running =
        operator().controller_with(Trips(story.clone()), builder()).cluster(&east).start();
    until("it works", || story.recorded().len() >= 4).await;
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
}

/// Other managers may keep rules in a definition: dropping them loses no stored data, so the
/// definition is replaced.
#[tokio::test(start_paused = true)]
async fn a_definition_that_is_replaced_over_a_rule_of_others_is_a_warning_that_names_the_rule() {
    let (logged, _guard) = Captured::at(tracing::Level::WARN);
    let world = World::start().await;
    let definitions: Api<CustomResourceDefinition> = world.client.all();
    let path = "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations";
    let rule = json!([{ "rule": "self.spec.to != 'a'" }]);
    let add = Patch::Json(json!([{ "op": "add", "path": path, "value": rule }]));
    definitions.patch(DEFINITION, add).manager("helm").await.unwrap();
    crate::manager::install::install_all(&world.client, &[definition(&["v1"])], false)
        .await
        .unwrap();
    let lines = logged.with("which lacks");
    assert_eq!(lines.len(), 1, "{}", logged.text());
    assert!(lines[0].contains("self.spec.to != 'a'"), "{}", lines[0]);
    let stored = definitions.get(DEFINITION).await.unwrap();
    assert!(!serde_json::to_string(&stored).unwrap().contains("self.spec.to"));
}
