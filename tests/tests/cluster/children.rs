//! Ownership of children, and the fate of objects that are none of ours: decided by the API server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use serde_json::{Value, json};
use windlass::ErrorKind;
use windlass::api::Api;
use windlass::prelude::*;
use windlass::resource::FullObject;

use crate::bench::Bench;
use crate::gadget::{Gadget, gadget};

/// No object is ever at this version.
const NO_VERSION: &str = "9223372036854775807";

/// Gives each gadget a page, or adopts a page that is marked as ours.
#[derive(Debug, Controller)]
#[controller(for = Gadget, owns(ConfigMap), name = "pages")]
struct Pages;

impl Reconciler for Pages {
    type Object = Gadget;

    async fn reconcile(&self, gadget: &Gadget, cx: &Context<Self>) -> Result {
        let mut page = ConfigMap::default();
        page.metadata.name = Some(gadget.name().to_owned());
        page.data = Some([("color".to_owned(), gadget.spec.color.clone())].into());
        cx.apply_owned(page).adopt_if(|map| map.label("by") == Some("pages")).await?;
        let condition = met("Ready", "Painted", &gadget.spec.color);
        cx.set_condition(condition).await?;
        Ok(Action::done())
    }
}

fn operator(client: Client) -> Manager {
    Manager::new(client).install::<Gadget>().controller(Pages)
}

impl Bench {
    async fn color(&self, name: &str) -> String {
        self.data(name).await.unwrap()["color"].clone()
    }

    async fn controller_of(&self, name: &str) -> Option<String> {
        let child = self.children.get(name).await.unwrap();
        let owners = child.metadata.owner_references.unwrap_or_default();
        owners.into_iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid)
    }

    async fn events_of(&self, reason: &str) -> usize {
        let events = self.cluster.client().namespace::<Event>(self.cluster.namespace());
        let events = events.list().await.unwrap().items;
        events.iter().filter(|event| event.reason.as_deref() == Some(reason)).count()
    }

    async fn create_map(&self, map: Value) -> ConfigMap {
        self.children.create(&serde_json::from_value(map).unwrap()).await.unwrap()
    }
}

async fn preconditions_hold<K: FullObject>(api: &Api<K>, name: &str, spec: Value, changed: Value) {
    let at = |version: &str, uid: &str, content: &Value| {
        let mut intent = content.clone();
        intent["metadata"] = json!({ "name": name });
        let texts = [("resourceVersion", version), ("uid", uid)];
        for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            intent["metadata"][field] = text.into();
        }
        api.apply(name, &intent).manager("us").force().into_future()
    };
    let absent = at("", "5f6e3c0c-0000-4000-8000-000000000000", &spec).await.unwrap_err();
    assert_eq!((absent.kind(), absent.code()), (ErrorKind::Conflict, Some(409)), "{absent}");
    let created = at(NO_VERSION, "", &spec).await.unwrap();
    assert!(!created.uid().is_empty() && created.resource_version() != NO_VERSION);
    let refused = at(NO_VERSION, "", &changed).await.unwrap_err();
    assert_eq!((refused.kind(), refused.code()), (ErrorKind::Conflict, Some(409)), "{refused}");
    assert_eq!(api.get(name).await.unwrap().resource_version(), created.resource_version());
    let same = at(created.resource_version(), created.uid(), &spec).await.unwrap();
    assert_eq!(same.resource_version(), created.resource_version(), "nothing is written");
    let newer = at(created.resource_version(), created.uid(), &changed).await.unwrap();
    assert_ne!(newer.resource_version(), created.resource_version());
    let late = at(created.resource_version(), created.uid(), &spec).await.unwrap_err();
    assert_eq!(late.code(), Some(409), "{late}");
    api.delete(name).await.unwrap();
    api.wait_deleted(name, created.uid(), Duration::from_secs(60)).await.unwrap();
    let gone = at(newer.resource_version(), newer.uid(), &spec).await.unwrap_err();
    assert_eq!(gone.code(), Some(409), "{gone}");
}

#[tokio::test]
async fn an_apply_at_a_version_that_no_object_has_creates_and_changes_nothing_that_is_there() {
    let bench = Bench::start().await;
    let (one, two) = (json!({ "data": { "a": "1" } }), json!({ "data": { "a": "2" } }));
    preconditions_hold(&bench.children, "map", one, two).await;
    let (one, two) = (
        json!({ "spec": { "color": "red", "size": 1 } }),
        json!({ "spec": { "color": "blue", "size": 1 } }),
    );
    preconditions_hold(&bench.gadgets, "gadget", one, two).await;
}

#[tokio::test]
async fn an_object_that_is_not_marked_as_ours_is_neither_changed_nor_owned() {
    let bench = Bench::start().await;
    bench
        .create_map(json!({ "metadata": { "name": "home" }, "data": { "color": "theirs" } }))
        .await;
    let running = bench.cluster.spawn(operator(bench.cluster.client()));
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    bench.eventually("an Event says so", async || bench.events_of("ChildTaken").await > 0).await;
    assert_eq!(
        (bench.color("home").await, bench.controller_of("home").await),
        ("theirs".into(), None)
    );
    bench.children.delete("home").await.unwrap();
    // Retried by the backoff of the failures, or by a change of the gadget.
    bench.change("home", json!({ "color": "blue" })).await;
    bench
        .eventually("it is made", async || {
            bench.data("home").await.is_some_and(|data| data["color"] == "blue")
        })
        .await;
    running.settled().await;
    assert_eq!(bench.events_of("ChildAdopted").await, 0);
}

#[tokio::test]
async fn an_orphan_that_is_marked_as_ours_is_adopted_and_put_right() {
    let bench = Bench::start().await;
    let orphan = bench
        .create_map(json!({
            "metadata": { "name": "home", "labels": { "by": "pages" } },
            "data": { "color": "old", "more": "kept" },
        }))
        .await;
    let running = bench.cluster.spawn(operator(bench.cluster.client()));
    let site = bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    running.settled().await;
    assert_eq!(bench.children.get("home").await.unwrap().uid(), orphan.uid());
    assert_eq!(bench.controller_of("home").await.as_deref(), Some(site.uid()));
    let data = bench.data("home").await.unwrap();
    assert_eq!((data["color"].as_str(), data["more"].as_str()), ("red", "kept"));
    assert_eq!(bench.events_of("ChildTaken").await, 0);
    bench.eventually("an Event says so", async || bench.events_of("ChildAdopted").await > 0).await;
}

#[tokio::test]
async fn a_child_restored_with_the_uid_of_an_earlier_parent_is_adopted_if_it_is_marked() {
    let bench = Bench::start().await;
    let site = bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    // The recorded parent is a former object of the same name; another owner is left alone.
    let reference = |kind: &str, name: &str, uid: &str, controller: bool| {
        json!({ "apiVersion": "test.windlass.dev/v1", "kind": kind, "name": name, "uid": uid,
                "controller": controller })
    };
    let earlier = "5f6e3c0c-0000-4000-8000-000000000000";
    bench
        .create_map(json!({
            "metadata": {
                "name": "home", "labels": { "by": "pages" },
                "ownerReferences": [
                    reference("Gadget", "home", earlier, true),
                    reference("Gadget", "home", site.uid(), false),
                ],
            },
            "data": { "color": "old" },
        }))
        .await;
    let running = bench.cluster.spawn(operator(bench.cluster.client()));
    running.settled().await;
    assert_eq!(bench.controller_of("home").await.as_deref(), Some(site.uid()));
    let owners = bench.children.get("home").await.unwrap().metadata.owner_references.unwrap();
    assert_eq!(owners.len(), 1, "{owners:?}");
    assert_eq!(bench.color("home").await, "red");
}

#[tokio::test]
async fn the_children_of_deleted_objects_are_not_made_again_and_nothing_fails() {
    let bench = Bench::start().await;
    let client = bench.cluster.client();
    let running = bench.cluster.spawn(operator(client.clone()));
    for round in 0..25 {
        let name = format!("home-{round}");
        let site = bench.gadgets.create(&gadget(&name, "red")).await.unwrap();
        running.settled().await;
        // Deleted in the order of garbage collection: the child's end may be seen before the
        // owner's end.
        bench.gadgets.delete(&name).await.unwrap();
        if bench.data(&name).await.is_some() {
            let _ = bench.children.delete(&name).await;
        }
        bench.gadgets.wait_deleted(&name, site.uid(), Duration::from_secs(60)).await.unwrap();
        running.settled().await;
        let left = bench.data(&name).await;
        assert!(left.is_none(), "round {round}: {left:?}");
    }
    let errors = &windlass::metrics::names::RECONCILE_ERRORS;
    assert_eq!(client.environment().metrics.counted(errors, &["pages"]), 0);
}

/// A controller beside which another client creates the child first.
#[derive(Debug, Controller)]
#[controller(for = Gadget, owns(ConfigMap), name = "late")]
struct Late {
    made: AtomicUsize,
}

impl Reconciler for Late {
    type Object = Gadget;

    async fn reconcile(&self, gadget: &Gadget, cx: &Context<Self>) -> Result {
        let mut page = ConfigMap::default();
        page.metadata.name = Some(gadget.name().to_owned());
        // The other client creates the page between the look into the cache and the create.
        let mut theirs = page.clone();
        theirs.data = Some([("color".to_owned(), "theirs".to_owned())].into());
        let maps = cx.api::<ConfigMap>();
        if self.made.fetch_add(1, Ordering::SeqCst) == 0 {
            maps.create(&theirs).await?;
        }
        page.data = Some([("color".to_owned(), "ours".to_owned())].into());
        cx.apply_owned(page).await?;
        Ok(Action::done())
    }
}

#[tokio::test]
async fn an_object_that_is_created_a_moment_before_ours_stays_as_it_is() {
    let bench = Bench::start().await;
    let late = Late { made: AtomicUsize::new(0) };
    let manager = Manager::new(bench.cluster.client()).install::<Gadget>().controller(late);
    let _running = bench.cluster.spawn(manager);
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    bench.eventually("an Event says so", async || bench.events_of("ChildTaken").await > 0).await;
    assert_eq!(bench.color("home").await, "theirs");
    assert_eq!(bench.controller_of("home").await, None);
}
