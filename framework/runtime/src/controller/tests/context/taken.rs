//! Children whose name is taken: by an uncontrolled object, by a child of another controller, by a
//! child of an earlier parent, by an object that appears meanwhile.

use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::children::LABEL;

impl World {
    /// Returns the reasons of the Events about sites.
    async fn reported(&self) -> Vec<String> {
        let events = self.client.namespace::<Event>("shop").list().await.expect("an answer").items;
        let mut reasons: Vec<String> =
            events.into_iter().filter_map(|event| event.reason).collect();
        reasons.sort();
        reasons.dedup();
        reasons
    }

    /// Returns the host in the config map of that name, and the uid of the controlling object.
    async fn map(&self, name: &str) -> (String, Option<String>) {
        let map = self.maps().get(name).await.expect("it is there");
        let owners = map.metadata.owner_references.unwrap_or_default();
        let controller = owners.into_iter().find(|owner| owner.controller == Some(true));
        (map.data.expect("data")["host"].clone(), controller.map(|owner| owner.uid))
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_controller_is_neither_changed_nor_owned_nor_deleted() {
    let (world, sites) = (World::start().await, Sites::default());
    world.maps().create(&child("payments", "theirs")).await.expect("created");
    let running = world.run(plain(&sites)).await;
    world.create("payments", "ours").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.map("payments").await, ("theirs".to_owned(), None));
    assert!(
        world.reported().await.contains(&"ChildTaken".to_owned()),
        "{:?}",
        world.reported().await
    );
    assert!(world.counted(&names::RECONCILE_ERRORS) > 0);
    world.sites().delete("payments").await.expect("deleted");
    running.settled().await;
    assert_eq!(world.map("payments").await.0, "theirs");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_appears_between_the_lookup_and_the_create_is_not_taken() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    // The cache does not show the object.
    world.server.faults().pause_watches("configmaps");
    world.maps().create(&child("home", "theirs")).await.expect("created");
    world.create("home", "ours").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.map("home").await, ("theirs".to_owned(), None));
    world.server.faults().clear();
    // The obstacle is gone: the child is made without any other cause.
    world.maps().delete("home").await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(600)).await;
    running.settled().await;
    assert_eq!(world.map("home").await.0, "ours");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_another_client_created_anew_is_not_taken_over_by_the_remembered_apply() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    world.server.faults().pause_watches("configmaps");
    world.maps().delete("home").await.expect("deleted");
    world.maps().create(&child("home", "theirs")).await.expect("created");
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.map("home").await, ("theirs".to_owned(), None));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_let_go_meanwhile_is_not_taken_back() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    world.server.faults().pause_watches("configmaps");
    let orphan = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
    world.maps().patch("home", orphan).await.expect("patched");
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.map("home").await, ("a".to_owned(), None));
}

/// Makes each site a config map with the label that a graph gives to children.
struct Labelled;

impl Owns<ConfigMap> for Labelled {}

impl Reconciler for Labelled {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result<Action> {
        let mut map = child(site.name(), &site.spec.host);
        map.metadata.labels = Some([(LABEL.to_owned(), "sites.Maps.map".to_owned())].into());
        cx.apply_owned(map).await?;
        Ok(Action::done())
    }
}

/// Releases the child of a site of that name to other sites, and makes it a child again by the
/// command of the Event. Returns the note.
async fn released(name: &str, others: &[String]) -> String {
    let world = World::start().await;
    let controller = ControllerBuilder::<Labelled>::new().owns::<ConfigMap>().build(Labelled);
    let running = world.run(controller).await;
    let site = world.create(name, "a").await;
    let mut owners = Vec::new();
    for other in others {
        let uid = world.create(other, "a").await.uid().to_owned();
        owners.push(
            json!({ "apiVersion": "example.dev/v1", "kind": "Site", "name": other, "uid": uid }),
        );
    }
    running.settled().await;
    let owners = Some(owners).filter(|owners| !owners.is_empty());
    let orphan = Patch::Merge(json!({ "metadata": { "ownerReferences": owners } }));
    world.maps().patch(name, orphan).await.expect("patched");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.map(name).await.1, None, "a release is not undone");
    let events = world.client.namespace::<Event>("shop").list().await.expect("an answer").items;
    let taken = events.into_iter().find(|event| event.reason.as_deref() == Some("ChildTaken"));
    let note = taken.and_then(|event| event.note).expect("it is reported");
    let begin = format!("`kubectl patch configmaps {name} -n shop --type=json -p '");
    let (_, command) = note.split_once(&begin).expect(&note);
    let (patch, _) = command.split_once("'`").expect(&note);
    let patch = Patch::Json(serde_json::from_str(patch).expect("JSON"));
    world.maps().patch(name, patch).await.expect("patched");
    world.patch(name, json!({ "spec": { "host": "b" } })).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.map(name).await, ("b".to_owned(), Some(site.uid().to_owned())));
    note
}

#[tokio::test(start_paused = true)]
async fn a_child_that_lost_its_owner_is_reported_with_the_patch_that_makes_it_a_child_again() {
    let note = released("home", &[]).await;
    assert!(note.contains(&format!("carries the label {LABEL}")), "{note}");
    assert!(note.starts_with("cannot make ConfigMap \"shop/home\" a child"), "{note}");
}

#[tokio::test(start_paused = true)]
async fn the_patch_of_the_event_is_whole_with_the_longest_names_and_many_other_owners() {
    let others: Vec<_> = (0..5).map(|n| format!("{}-{n}", "b".repeat(200))).collect();
    let note = released(&"a".repeat(253), &others).await;
    assert!(note.len() <= 1024 && note.contains("makes it a child again"), "{note}");
}

#[tokio::test(start_paused = true)]
async fn the_child_of_an_earlier_parent_of_that_name_is_waited_for_without_a_failure() {
    let (captured, _logging) = Captured::at(tracing::Level::WARN);
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    let earlier = world.create("home", "held").await;
    running.settled().await;
    let info = <Site as windlass_core::resource::Resource>::static_info().expect("static");
    let held = Patch::Merge(json!({ "metadata": { "finalizers": ["example.dev/held"] } }));
    world.maps().patch("home", held).await.expect("patched");
    let reference = earlier.controller_reference(&info).expect("a uid");
    world.sites().delete("home").await.expect("deleted");
    running.settled().await;
    let site = world.create("home", "ours").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(world.map("home").await, ("held".to_owned(), Some(reference.uid)));
    assert!(!world.reported().await.contains(&"ChildTaken".to_owned()));
    assert_eq!(captured.text(), "");
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    world.maps().patch("home", release).await.expect("patched");
    tokio::time::sleep(Duration::from_secs(60)).await;
    running.settled().await;
    assert_eq!(world.map("home").await, ("ours".to_owned(), Some(site.uid().to_owned())));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn fields_of_others_in_a_child_of_ours_are_taken_back_and_those_left_out_are_theirs() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    let theirs = json!({ "data": { "host": "edited", "more": "theirs" } });
    world.maps().apply("home", &theirs).manager("kubectl").force().await.expect("applied");
    running.settled().await;
    let data = world.maps().get("home").await.expect("it is there").data.expect("data");
    assert_eq!((data["host"].as_str(), data["more"].as_str()), ("a", "theirs"));
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_status_alone_moved_is_not_applied_again() {
    let (world, pods) = (World::start().await, Pods::default());
    let running =
        world.run(ControllerBuilder::<Pods>::new().owns::<Pod>().build(pods.clone())).await;
    world.create("home", "a").await;
    running.settled().await;
    world.writes();
    let runs = pods.0.load(Ordering::SeqCst);
    let api = world.client.namespace::<Pod>("shop");
    let moved = Patch::Merge(json!({ "status": { "phase": "Running" } }));
    api.patch("home", moved).status().await.expect("patched");
    running.settled().await;
    assert_eq!(world.writes(), ["patch pods/status"], "the one that moved it");
    assert!(pods.0.load(Ordering::SeqCst) > runs, "it was looked at");
    let drift = Patch::Merge(json!({ "metadata": { "labels": { "app": "drifted" } } }));
    api.patch("home", drift).await.expect("patched");
    running.settled().await;
    assert_eq!(world.writes(), ["patch pods/", "patch pods/"], "the second puts it right");
    assert_eq!(api.get("home").await.expect("it is there").label("app"), Some("site"));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_a_limited_cache_does_not_show_is_applied_once_and_nothing_foreign_is_taken() {
    let (world, sites) = (World::start().await, Sites::default());
    let options = CacheOptions::default().labels("shown=yes");
    let informers = InformerRegistry::new(world.client.clone(), vec![]);
    informers.set_options(ResourceInfo::of::<ConfigMap>(), options).expect("nothing reads it yet");
    let running = world.start_with(plain(&sites), informers).await;
    running.settled().await;
    world.maps().create(&child("taken", "theirs")).await.expect("created");
    world.writes();
    world.create("home", "a").await;
    running.settled().await;
    let first = world.writes();
    assert_eq!(world.map("home").await.0, "a");
    world.patch("home", json!({ "metadata": { "labels": { "look": "again" } } })).await;
    running.settled().await;
    assert_eq!(world.writes(), ["patch sites/"], "after {first:?}");
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    running.settled().await;
    assert_eq!(world.map("home").await.0, "b");
    world.create("taken", "ours").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(world.map("taken").await, ("theirs".to_owned(), None));
}

/// Makes each site a pod.
#[derive(Clone, Default)]
struct Pods(Arc<AtomicU32>);

impl Owns<Pod> for Pods {}

impl Reconciler for Pods {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result<Action> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let pod = json!({
            "metadata": { "name": site.name(), "labels": { "app": "site" } },
            "spec": { "containers": [{ "name": "main", "image": "nginx" }] },
        });
        let pod: Pod = serde_json::from_value(pod)?;
        cx.apply_owned(pod).await?;
        Ok(Action::done())
    }
}
