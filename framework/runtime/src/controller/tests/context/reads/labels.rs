//! Reads by labels, and of whole namespaces.

use super::*;
use crate::controller::WatchScope;
use windlass_core::resource::{Requirement, Selector};

const BECAUSE: &str = "[reads ConfigMap shop/app]";

/// Makes the read that a word says: `tier:web` is a label, `!tier:web` the absence of that label,
/// and an empty word is everything.
pub(super) async fn read(what: &str, labels: &str, cx: &Context<Reader>) -> Result<Vec<ObjectKey>> {
    let selector = match labels.trim_start_matches('!').split_once(':') {
        None => Selector::everything(),
        Some((key, value)) if labels.starts_with('!') => {
            Selector::everything().and(Requirement::NotEquals(key.into(), value.into()))
        }
        Some((key, value)) => Selector::everything().equals(key, value),
    };
    let far = WatchScope::<ConfigMap>::in_namespace("far");
    let found = match what {
        "near" => keys(&cx.watch_by(WatchScope::<ConfigMap>::nearby(), &selector).await?),
        "far-by" => keys(&cx.watch_by(far, &selector).await?),
        "all" => keys(&cx.watch_by(WatchScope::<ConfigMap>::everywhere(), &selector).await?),
        "parts" => keys(&cx.watch_by(WatchScope::<Part>::nearby(), &selector).await?),
        "spaces" => keys(&cx.watch_by(WatchScope::<Namespace>::nearby(), &selector).await?),
        "spaces-in" => {
            keys(&cx.watch_by(WatchScope::<Namespace>::in_namespace("far"), &selector).await?)
        }
        _ => Vec::new(),
    };
    // The server keeps another map in each namespace.
    Ok(found.into_iter().filter(|key| key.name() != "kube-root-ca.crt").collect())
}

impl World {
    /// Sets labels of a map, which is created if missing; `null` removes a label.
    async fn label(&self, name: &str, labels: Value) {
        if self.maps().get_opt(name).await.expect("an answer").is_none() {
            let mut map = child(name, "first");
            map.metadata.labels = serde_json::from_value(labels).expect("labels");
            self.maps().create(&map).await.expect("created");
            return;
        }
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        self.maps().patch(name, patch).await.expect("patched");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_an_object_that_matched_before_or_matches_after_wakes_exactly_the_readers() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    for (site, words) in [("a", "near=tier:web"), ("b", "near=tier:db"), ("c", "near=!tier:web")] {
        world.reads(site, words).await;
    }
    running.settled().await;
    reader.noted();
    world.label("app", json!({ "tier": "web" })).await;
    running.settled().await;
    assert_eq!(reader.noted(), [format!("a {BECAUSE} near=tier:web:app")], "it appears");
    world.put("app", json!({ "host": "another field" })).await;
    running.settled().await;
    assert_eq!(reader.noted(), [format!("a {BECAUSE} near=tier:web:app")], "it changes");
    world.label("app", json!({ "tier": "db" })).await;
    running.settled().await;
    let both = [
        format!("a {BECAUSE} near=tier:web:none"),
        format!("b {BECAUSE} near=tier:db:app"),
        format!("c {BECAUSE} near=!tier:web:app"),
    ];
    assert_eq!(reader.noted(), both, "its labels change");
    world.maps().delete("app").await.expect("deleted");
    running.settled().await;
    let left =
        [format!("b {BECAUSE} near=tier:db:none"), format!("c {BECAUSE} near=!tier:web:none")];
    assert_eq!(reader.noted(), left, "it disappears");
    assert_eq!(world.counted(&names::READ_WAKES), 7);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_read_as_a_whole_and_others_wake_nobody() {
    let (world, reader) = (World::start().await, Reader::default());
    let far: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": "far" } })).expect("a namespace");
    world.client.all().create(&far).await.expect("created");
    let running = world.run(reader.controller()).await;
    for (site, words) in [("a", "near="), ("b", "far-by="), ("c", "all=tier:web")] {
        world.reads(site, words).await;
    }
    running.settled().await;
    reader.noted();
    world.maps().create(&child("app", "x")).await.expect("created");
    running.settled().await;
    assert_eq!(reader.noted(), [format!("a {BECAUSE} near=:app")]);
    let mut map = child("app", "x");
    map.metadata.labels = Some([("tier".to_owned(), "web".to_owned())].into());
    let maps = world.client.namespace::<ConfigMap>("far");
    maps.create(&map).await.expect("created");
    running.settled().await;
    let because = "[reads ConfigMap far/app]";
    let both = [format!("b {because} far-by=:app"), format!("c {because} all=tier:web:app")];
    assert_eq!(reader.noted(), both);
}

#[tokio::test(start_paused = true)]
async fn the_reads_of_a_success_replace_selectors_and_the_cache_stops_with_the_last() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    world.reads("home", "near=tier:web near=tier:web near=tier:db").await;
    running.settled().await;
    assert_eq!(running.handle.dump(10)["reads"], json!({ "readers": 1, "reads": 2 }));
    world.reads("home", "near=tier:db").await;
    running.settled().await;
    reader.noted();
    world.label("app", json!({ "tier": "web" })).await;
    running.settled().await;
    assert!(reader.noted().is_empty(), "it is not read any more");
    world.reads("home", "-").await;
    running.settled().await;
    assert_eq!(caches(&running), ["sites.example.dev"]);
    assert_eq!(running.handle.dump(10)["reads"], json!({ "readers": 0, "reads": 0 }));
}

#[tokio::test(start_paused = true)]
async fn projections_and_caches_of_metadata_are_read_by_labels() {
    for (word, representation) in [("near", Some(Representation::Metadata)), ("parts", None)] {
        let (world, reader) = (World::start().await, Reader::default());
        let informers = InformerRegistry::new(world.client.clone(), vec![]);
        if let Some(representation) = representation {
            let options = CacheOptions::default().representation(representation);
            informers.set_options(ResourceInfo::of::<ConfigMap>(), options).expect("not in use");
        }
        let running = world.start_with(reader.controller(), informers).await;
        world.reads("home", &format!("{word}=tier:web")).await;
        running.settled().await;
        reader.noted();
        for (label, found) in [(json!("web"), "app"), (Value::Null, "none")] {
            world.label("app", json!({ "tier": label })).await;
            running.settled().await;
            assert_eq!(reader.noted(), [format!("home {BECAUSE} {word}=tier:web:{found}")]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_without_namespaces_are_read_by_labels_and_not_in_a_namespace() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    world.reads("home", "spaces=tier:web").await;
    running.settled().await;
    reader.noted();
    let labelled = json!({ "metadata": { "name": "far", "labels": { "tier": "web" } } });
    let far: Namespace = serde_json::from_value(labelled).expect("a namespace");
    world.client.all().create(&far).await.expect("created");
    running.settled().await;
    assert_eq!(reader.noted(), ["home [reads Namespace far] spaces=tier:web:far"]);
    world.create("other", "spaces-in=tier:web").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let error = running.handle.dump(10)["lastErrors"][0]["error"].to_string();
    assert!(error.contains("tier=web") && error.contains("WatchScope::everywhere()"), "{error}");
    world.sites().delete("other").await.expect("deleted");
    running.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_the_operator_does_not_read_is_refused_by_labels_too() {
    let (world, reader) = (World::start().await, Reader::default());
    let informers = InformerRegistry::new(world.client.clone(), vec!["shop".into()]);
    let running = world.start_with(reader.controller(), informers).await;
    world.create("home", "far-by=tier:web").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let error = running.handle.dump(10)["lastErrors"][0]["error"].to_string();
    assert!(
        error.contains("far/tier=web") && error.contains("namespaces of the manager"),
        "{error}"
    );
    world.sites().delete("home").await.expect("deleted");
    running.settled().await;
}
