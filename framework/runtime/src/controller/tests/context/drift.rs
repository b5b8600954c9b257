//! Children that are as intended cost no request, and changes by others are set back.

use super::*;
use windlass_cache::store::Transform;
use windlass_client::api::Api;

mod emptied;
mod safety;

/// Returns the writes to children since the last call.
fn child_writes(world: &World) -> Vec<String> {
    let mut writes = world.writes();
    writes.retain(|write| write.contains("configmaps"));
    writes
}

/// Starts an operator, lets it make the children of `names`, and stops the operator.
async fn made(world: &World, names: &[&str]) {
    let running = world.run(plain(&Sites::default())).await;
    for name in names {
        world.create(name, "a").await;
    }
    running.settled().await;
    assert_eq!(child_writes(world).len(), names.len());
    running.stop().await;
}

fn set_back(running: &Running) -> Vec<(String, String)> {
    let dump = running.handle.dump(50);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let records = dump["changes"].as_array().expect("a list").iter();
    records
        .filter(|record| record["verb"] == "set back")
        .map(|record| (text(&record["object"]), text(&record["changes"])))
        .collect()
}

async fn events(world: &World) -> Vec<String> {
    let events = world.client.namespace::<Event>("shop").list().await.expect("a list").items;
    let drifted = events.into_iter().filter(|e| e.reason.as_deref() == Some("DriftCorrected"));
    drifted.filter_map(|event| event.note).collect()
}

#[tokio::test(start_paused = true)]
async fn a_restart_costs_no_request_when_nothing_differs() {
    let world = World::start().await;
    made(&world, &["one", "two", "three"]).await;
    let sites = Sites::default();
    let running = world.run(plain(&sites)).await;
    assert_eq!((sites.runs("one"), sites.runs("two"), sites.runs("three")), (1, 1, 1));
    assert_eq!(world.writes(), Vec::<String>::new());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_after_changes_by_others_elsewhere_costs_no_request() {
    let world = World::start().await;
    made(&world, &["home"]).await;
    let theirs = json!({ "metadata": { "labels": { "team": "a" } }, "data": { "theirs": "x" } });
    world.maps().patch("home", Patch::Merge(theirs)).await.expect("patched");
    world.writes();
    let sites = Sites::default();
    let running = world.run(plain(&sites)).await;
    assert_eq!((sites.runs("home"), world.writes()), (1, Vec::new()));
    let data = world.maps().get("home").await.expect("it is there").data.expect("data");
    assert_eq!(data["theirs"], "x");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_by_others_elsewhere_costs_no_request_and_stays() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    for at in 0..3 {
        let (runs, label) = (sites.runs("home"), format!("{at}"));
        let theirs =
            json!({ "metadata": { "annotations": { "at": label } }, "data": { "theirs": label } });
        world.writes();
        world.maps().patch("home", Patch::Merge(theirs)).await.expect("patched");
        running.settled().await;
        assert!(sites.runs("home") > runs, "it was reconciled");
        assert_eq!(world.writes(), ["patch configmaps/"], "that of others");
    }
    let data = world.maps().get("home").await.expect("it is there").data.expect("data");
    assert_eq!((data["theirs"].as_str(), data["host"].as_str()), ("2", "a"));
    assert_eq!((set_back(&running), events(&world).await), (Vec::new(), Vec::new()));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_field_of_ours_is_set_back_by_one_apply_and_reported_by_its_path() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    let edit = json!({ "data": { "host": "edited", "theirs": "x" } });
    world.writes();
    world.maps().patch("home", Patch::Merge(edit)).await.expect("patched");
    running.settled().await;
    assert_eq!(child_writes(&world), ["patch configmaps/"; 2], "that of others, and one apply");
    let data = world.maps().get("home").await.expect("it is there").data.expect("data");
    assert_eq!((data["theirs"].as_str(), data["host"].as_str()), ("x", "a"));
    let expected = ("configmaps shop/home".to_owned(), ".data.host".to_owned());
    assert_eq!(set_back(&running), [expected]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let notes = events(&world).await;
    assert!(notes.len() == 1 && notes[0].contains(".data.host"), "{notes:?}");
    assert!(!notes[0].contains("edited"), "no values: {notes:?}");
    running.settled().await;
    assert_eq!(child_writes(&world), Vec::<String>::new());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_transform_leaves_out_of_the_cache_is_no_drift() {
    let (world, sites) = (World::start().await, Sites::default());
    let informers = InformerRegistry::new(world.client.clone(), vec![]);
    let options = CacheOptions::default().transform(Transform::drop_paths(&[&["data", "host"]]));
    informers.set_options(ResourceInfo::of::<ConfigMap>(), options).expect("no other options");
    let running = world.start_with(plain(&sites), informers).await;
    world.create("home", "a").await;
    running.settled().await;
    world.writes();
    let theirs = json!({ "metadata": { "labels": { "team": "a" } } });
    world.maps().patch("home", Patch::Merge(theirs)).await.expect("patched");
    running.settled().await;
    assert_eq!(child_writes(&world), ["patch configmaps/"; 2], "that of others, and one apply");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((set_back(&running), events(&world).await), (Vec::new(), Vec::new()));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_intent_is_applied_and_is_no_drift() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    world.writes();
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    running.settled().await;
    assert_eq!(child_writes(&world), ["patch configmaps/"]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((set_back(&running), events(&world).await), (Vec::new(), Vec::new()));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_changed_during_a_restart_is_applied_once() {
    let world = World::start().await;
    made(&world, &["home", "other"]).await;
    let edit = json!({ "data": { "host": "edited" } });
    world.maps().patch("home", Patch::Merge(edit)).await.expect("patched");
    // The same value by another manager: the field has two owners, and stays ours.
    let same = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "host": "a" } });
    world.maps().apply("other", &same).manager("them").await.expect("applied");
    world.writes();
    let running = world.run(plain(&Sites::default())).await;
    assert_eq!(child_writes(&world), ["patch configmaps/"]);
    let data = world.maps().get("home").await.expect("it is there").data.expect("data");
    assert_eq!(data["host"], "a");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_field_that_left_the_intent_during_a_restart_is_removed() {
    let world = World::start().await;
    made(&world, &["home"]).await;
    let owner = world.sites().get("home").await.expect("it is there");
    let info = ResourceInfo::of::<Site>();
    let mut older = child("home", "a");
    older.metadata.owner_references = Some(vec![owner.controller_reference(&info).expect("a uid")]);
    older.data.get_or_insert_default().insert("old".into(), "x".into());
    // As left by an earlier version of the operator.
    world.maps().apply("home", &older).manager("site").force().await.expect("applied");
    world.writes();
    let running = world.run(plain(&Sites::default())).await;
    assert_eq!(child_writes(&world), ["patch configmaps/"]);
    let data = world.maps().get("home").await.expect("it is there").data.expect("data");
    assert!(!data.contains_key("old"), "{data:?}");
    running.stop().await;
}

/// Changes the colour of every config map that is applied, as a mutating webhook does.
const PAINTER: &str = "object.data.host == 'painted' ? 'red' : object.data.host";

#[tokio::test(start_paused = true)]
async fn a_value_that_the_server_changes_is_applied_once_per_process() {
    let world = World::start().await;
    let policy = json!({ "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy", "metadata": { "name": "paint" }, "spec": {
            "reinvocationPolicy": "Never", "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{ "apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"] }] },
            "mutations": [{ "patchType": "ApplyConfiguration", "applyConfiguration": {
                "expression": format!("Object{{data: {{'host': {PAINTER}}}}}") } }] } });
    let binding = json!({ "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding", "metadata": { "name": "paint" },
        "spec": { "policyName": "paint" } });
    for (plural, kind, object) in [
        ("mutatingadmissionpolicies", "MutatingAdmissionPolicy", policy),
        ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", binding),
    ] {
        let info = ResourceInfo {
            group: "admissionregistration.k8s.io".into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            scope: windlass_core::resource::Scope::Cluster,
        };
        let api: Api<windlass_core::resource::DynamicObject> = world.client.dynamic(info, None);
        let object = serde_json::from_value(object).expect("an object");
        api.create(&object).await.expect("created");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (sites, name) = (Sites::default(), "home");
    let running = world.run(plain(&sites)).await;
    world.create(name, "painted").await;
    running.settled().await;
    let data = world.maps().get(name).await.expect("it is there").data.expect("data");
    assert_eq!(data["host"], "red", "the policy works");
    world.writes();
    let runs = sites.runs(name);
    let theirs = json!({ "metadata": { "labels": { "team": "a" } } });
    world.maps().patch(name, Patch::Merge(theirs)).await.expect("patched");
    running.settled().await;
    assert!(sites.runs(name) > runs, "it was reconciled");
    assert_eq!(child_writes(&world), ["patch configmaps/"], "that of others");
    running.stop().await;
}
