//! Parts of kinds and metadata alone, in caches and as the objects of a controller.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::Projection;
use windlass::api::Patch;
use windlass::controller::Finalize;
use windlass::events::EventKind;
use windlass::informer::CacheOptions;
use windlass::prelude::*;
use windlass::resource::{PartialObject, Resource};
use windlass::store::Representation;

use crate::bench::Bench;
use crate::gadget::{Gadget, gadget};

/// The part of a gadget that a controller of colours needs; without the status.
#[derive(Projection, Clone, Debug)]
#[projection(of = Gadget, skip(labels, annotations))]
struct Painted {
    metadata: ObjectMeta,
    #[projection(path = "spec.color")]
    color: String,
    #[projection(label = "team")]
    team: Option<String>,
}

#[derive(Debug, Controller)]
#[controller(for = Painted, name = "painter", finalizer = "test.windlass.dev/painter")]
struct Painters;

impl Reconciler for Painters {
    type Object = Painted;

    async fn reconcile(&self, painted: &Painted, cx: &Context<Self>) -> Result {
        cx.set_condition(met("Painted", "Done", painted.color.clone())).await?;
        let team = painted.team.as_deref().unwrap_or("nobody");
        cx.event(EventKind::Normal, "Painted", format!("{} for {team}", painted.color));
        Ok(Action::done())
    }
}

impl Finalize for Painters {
    async fn cleanup(&self, _: &Painted, _: &Context<Self>) -> Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_controller_works_on_a_projection_and_loses_nothing_of_what_it_does_not_see() {
    let bench = Bench::start().await;
    let manager = Manager::new(bench.cluster.client()).install::<Gadget>().controller(Painters);
    let running = bench.cluster.spawn(manager);
    let mut home = gadget("home", "red");
    home.spec.note = Some("keep me".to_owned());
    home.metadata.finalizers = Some(vec!["other.dev/theirs".to_owned()]);
    bench.gadgets.create(&home).await.unwrap();
    running.settled().await;
    let theirs = json!({ "status": { "conditions": [
        { "type": "Painted", "status": "True", "reason": "Done", "message": "red",
            "lastTransitionTime": "2026-01-01T00:00:00Z" },
        { "type": "Theirs", "status": "True", "reason": "Written", "message": "by another",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
    bench.gadgets.patch("home", Patch::Merge(theirs)).status().await.unwrap();
    let change =
        json!({ "metadata": { "labels": { "team": "web" } }, "spec": { "color": "blue" } });
    bench.gadgets.patch("home", Patch::Merge(change)).await.unwrap();
    running.settled().await;

    let stored = bench.gadgets.get("home").await.unwrap();
    assert_eq!(stored.spec.note.as_deref(), Some("keep me"));
    assert!(stored.has_finalizer("other.dev/theirs"));
    assert!(stored.has_finalizer("test.windlass.dev/painter"));
    let conditions = &stored.status.as_ref().unwrap().conditions;
    assert_eq!(conditions.get("Painted").unwrap().message, "blue");
    assert!(conditions.get("Theirs").is_some(), "{conditions:?}");

    let store = running.informers().informer::<Painted>().store();
    let cached = store.list().remove(0);
    assert_eq!(cached.get().unwrap().color, "blue");
    assert_eq!(cached.get().unwrap().team.as_deref(), Some("web"));
    assert!(cached.get().unwrap().metadata.labels.is_none());
    assert_eq!(cached.metadata().label("team"), Some("web"));

    let gone = json!({ "metadata": { "finalizers": ["test.windlass.dev/painter"] } });
    bench.gadgets.patch("home", Patch::Merge(gone)).await.unwrap();
    bench.gadgets.delete("home").await.unwrap();
    running.settled().await;
    assert!(bench.gadgets.get_opt("home").await.unwrap().is_none());
}

#[tokio::test]
async fn caches_of_other_forms_follow_the_same_objects_side_by_side() {
    let bench = Bench::start().await;
    // The options of a cache let the kind be printed into the operator's role.
    let manager = Manager::new(bench.cluster.client())
        .install::<Gadget>()
        .cache::<Gadget>(CacheOptions::default())
        .cache::<ConfigMap>(CacheOptions::default().representation(Representation::Metadata));
    let running = bench.cluster.spawn(manager);
    let informers = running.informers();
    let whole = informers.informer::<Gadget>();
    let typed = informers
        .informer_with::<Gadget>(CacheOptions::default().representation(Representation::Typed));
    // A projection needs more than metadata, also if metadata alone is asked for.
    let painted = informers
        .informer_with::<Painted>(CacheOptions::default().representation(Representation::Metadata));
    let info = <ConfigMap as Resource>::static_info().unwrap();
    let maps = informers.informer_of::<PartialObject>(info);
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    let mut map = ConfigMap::default();
    map.metadata.name = Some("settings".into());
    map.metadata.annotations = Some([("note".to_owned(), "x".to_owned())].into());
    map.data = Some([("large".to_owned(), "data".to_owned())].into());
    bench.children.create(&map).await.unwrap();
    running.settled().await;

    let key = whole.store().list().remove(0).key().clone();
    assert_eq!(whole.store().get(&key).unwrap().get().unwrap().spec.color, "red");
    let value = typed.store().get(&key).unwrap();
    assert!(std::sync::Arc::ptr_eq(&value.get().unwrap(), &value.get().unwrap()));
    assert_eq!(painted.store().get(&key).unwrap().get().unwrap().color, "red");
    let map = maps.store().list().into_iter().find(|map| map.key().name() == "settings").unwrap();
    assert_eq!(
        (map.get().unwrap().kind.as_str(), map.annotation("note").as_deref()),
        ("ConfigMap", Some("x"))
    );
    assert!(!String::from_utf8_lossy(&map.raw()).contains("large"));
}
