//! Every verb, for a built-in and for a custom kind, without types: sent objects arrive, and
//! answers hold the stored objects.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use windlass::ErrorKind;
use windlass::api::{Api, Patch, Propagation, WatchEvent, WatchStream};
use windlass::resource::{DynamicObject, ResourceExt, ResourceInfo};

use crate::bench::Bench;
use crate::gadget::{Gadget, gadget};

/// A kind under test; the fields `color` and `note` stand in `section`.
struct Case {
    api: Api<DynamicObject>,
    section: &'static str,
    custom: bool,
}

impl Case {
    async fn built_in(bench: &Bench) -> Self {
        Self { api: api::<ConfigMap>(bench), section: "data", custom: false }
    }

    async fn custom(bench: &Bench) -> Self {
        Self { api: api::<Gadget>(bench), section: "spec", custom: true }
    }

    fn object(&self, name: &str) -> DynamicObject {
        let mut fields = json!({ "color": "red" });
        if self.custom {
            fields["size"] = json!(1);
        }
        let metadata = json!({ "name": name, "labels": { "app": "trip" } });
        serde_json::from_value(json!({ "metadata": metadata, self.section: fields })).unwrap()
    }

    fn field<'a>(&self, object: &'a DynamicObject, field: &str) -> &'a Value {
        &object.rest[self.section][field]
    }
}

fn api<K: windlass::resource::Resource>(bench: &Bench) -> Api<DynamicObject> {
    let info = K::static_info().unwrap();
    bench.cluster.client().field_manager("trip").dynamic(info, Some(bench.cluster.namespace()))
}

#[tokio::test]
async fn every_verb_of_a_built_in_kind_goes_there_and_back() {
    let bench = Bench::start().await;
    every_verb(&Case::built_in(&bench).await).await;
}

#[tokio::test]
async fn every_verb_of_a_custom_kind_goes_there_and_back() {
    let bench = Bench::start().await;
    every_verb(&Case::custom(&bench).await).await;
}

async fn every_verb(case: &Case) {
    let api = &case.api;
    assert!(api.get_opt("home").await.unwrap().is_none());
    let before = api.list().await.unwrap().resource_version;
    let mut watch = api.watch().resource_version(&before).await.unwrap();
    let created = create_and_replace(case).await;
    patches(case).await;
    applies(case).await;
    pages(case).await;
    deletions(case, created.uid()).await;
    let events = events_of(&mut watch, "home").await;
    assert_eq!(events[0], "added");
    assert_eq!(events.iter().filter(|event| **event == "modified").count(), 5, "{events:?}");
    assert_eq!(events.last(), Some(&"deleted"));
}

async fn create_and_replace(case: &Case) -> DynamicObject {
    let api = &case.api;
    let home = case.object("home");
    let dry = api.create(&home).dry_run().await.unwrap();
    assert_eq!(dry.name(), "home");
    assert!(api.get_opt("home").await.unwrap().is_none(), "a dry run stores nothing");
    let created = api.create(&home).await.unwrap();
    assert_eq!(created.kind, api.info().kind);
    assert!(!created.uid().is_empty() && created.metadata.creation_timestamp.is_some());
    assert_eq!(api.get("home").await.unwrap(), created);
    let error = api.create(&home).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert_eq!(error.status().unwrap().details.as_ref().unwrap().name, "home");

    let mut changed = created.clone();
    changed.rest[case.section]["note"] = json!("replaced");
    let replaced = api.replace(&changed).await.unwrap();
    assert_eq!(case.field(&replaced, "note"), "replaced");
    assert_ne!(replaced.resource_version(), created.resource_version());
    let error = api.replace(&changed).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let message = &error.status().unwrap().message;
    assert!(message.contains("the object has been modified"), "{message}");
    created
}

async fn patches(case: &Case) {
    let (api, section) = (&case.api, case.section);
    let merge = Patch::Merge(json!({ section: { "note": null, "color": "blue" } }));
    let merged = api.patch("home", merge).await.unwrap();
    assert_eq!(
        (case.field(&merged, "note"), case.field(&merged, "color")),
        (&Value::Null, &json!("blue"))
    );
    let path = format!("/{section}/note");
    let operations = json!([
        { "op": "test", "path": "/metadata/name", "value": "home" },
        { "op": "add", "path": path, "value": "patched" },
    ]);
    let patched = api.patch("home", Patch::Json(operations)).await.unwrap();
    assert_eq!(case.field(&patched, "note"), "patched");
    let failing = json!([{ "op": "test", "path": path, "value": "another" }]);
    let error = api.patch("home", Patch::Json(failing)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");

    let labels = json!({ "metadata": { "labels": { "more": "x" } } });
    let strategic = api.patch("home", Patch::Strategic(labels.clone())).await;
    if case.custom {
        assert_eq!(strategic.unwrap_err().kind(), ErrorKind::UnsupportedMediaType);
        api.patch("home", Patch::Merge(labels)).await.unwrap();
    } else {
        assert_eq!(strategic.unwrap().label("app"), Some("trip"));
    }
    let stale = json!({ "metadata": { "resourceVersion": "1" }, section: { "color": "x" } });
    let error = api.patch("home", Patch::Merge(stale)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
}

async fn applies(case: &Case) {
    let (api, section) = (&case.api, case.section);
    let intent = json!({ section: { "note": "applied" } });
    let error = api.apply("home", &intent).manager("other").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let causes = &error.status().unwrap().details.as_ref().unwrap().causes;
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert_eq!(causes[0].reason, "FieldManagerConflict");
    assert_eq!(causes[0].field, format!(".{section}.note"));
    assert!(causes[0].message.contains("conflict with \"trip\""), "{}", causes[0].message);
    let applied = api.apply("home", &intent).manager("other").force().await.unwrap();
    assert_eq!(case.field(&applied, "note"), "applied");
    let again = api.apply("home", &intent).manager("other").await.unwrap();
    assert_eq!(again.resource_version(), applied.resource_version(), "nothing changed");
    let stored = api.get("home").await.unwrap();
    assert_eq!(stored.resource_version(), applied.resource_version());
    assert_eq!(stored.label("app"), Some("trip"), "what it did not name stays");
}

async fn pages(case: &Case) {
    let api = &case.api;
    for name in ["x1", "x2", "x3"] {
        api.create(&case.object(name)).await.unwrap();
    }
    let first = api.list().labels("app=trip").limit(2).await.unwrap();
    let token = first.continue_token.as_deref().unwrap();
    let rest = api.list().labels("app=trip").limit(9).continue_token(token).await.unwrap();
    let items = first.items.iter().chain(&rest.items);
    let names: Vec<_> = items.map(|item| item.name()).collect();
    assert_eq!(names, ["home", "x1", "x2", "x3"]);
    assert_eq!(rest.continue_token, None);
    assert_eq!(rest.resource_version, first.resource_version, "pages show one moment");
    assert_eq!(api.list().labels("app in (none)").await.unwrap().items.len(), 0);
    let named = api.list().fields("metadata.name=x2").await.unwrap().items;
    assert_eq!((named.len(), named[0].name()), (1, "x2"));
}

async fn deletions(case: &Case, uid: &str) {
    let api = &case.api;
    for delete in [api.delete("home").uid("another"), api.delete("home").resource_version("1")] {
        let error = delete.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
    api.delete("home").dry_run().await.unwrap();
    assert!(api.get_opt("home").await.unwrap().is_some(), "a dry run deletes nothing");
    api.delete("home").uid(uid).propagation(Propagation::Background).await.unwrap();
    assert_eq!(api.delete("home").await.unwrap_err().kind(), ErrorKind::NotFound);
    let mut other = case.object("other");
    other.metadata.labels = None;
    api.create(&other).await.unwrap();
    api.delete_collection().labels("app=trip").await.unwrap();
    assert!(api.list().labels("app=trip").await.unwrap().items.is_empty());
    assert!(api.get_opt("other").await.unwrap().is_some());
}

/// Returns the events of a watch about an object, up to the deletion.
async fn events_of(watch: &mut WatchStream<DynamicObject>, name: &str) -> Vec<&'static str> {
    let mut events = Vec::new();
    while events.last() != Some(&"deleted") {
        let (event, object) = match watch.next().await.expect("the watch goes on").unwrap() {
            WatchEvent::Added(object) => ("added", object),
            WatchEvent::Modified(object) => ("modified", object),
            WatchEvent::Deleted(object) => ("deleted", object),
            WatchEvent::Bookmark { .. } => continue,
        };
        if object.name() == name {
            events.push(event);
        }
    }
    events
}

#[tokio::test]
async fn a_watch_without_a_version_begins_with_what_is_there_and_filters_by_label() {
    let bench = Bench::start().await;
    let case = Case::custom(&bench).await;
    case.api.create(&case.object("home")).await.unwrap();
    let mut watch = case.api.watch().labels("app=trip").await.unwrap();
    // An object that loses the label is gone for this watch, and new when the label comes back.
    for app in ["other", "trip"] {
        let label = json!({ "metadata": { "labels": { "app": app } } });
        case.api.patch("home", Patch::Merge(label)).await.unwrap();
    }
    case.api.delete("home").await.unwrap();
    assert_eq!(events_of(&mut watch, "home").await, ["added", "deleted"]);
    assert_eq!(events_of(&mut watch, "home").await, ["added", "deleted"]);
}

#[tokio::test]
async fn a_status_is_written_through_its_subresource_only() {
    let bench = Bench::start().await;
    let created = bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    let condition = json!({
        "type": "Small", "status": "True", "reason": "Fits", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let both = json!({ "spec": { "color": "blue" }, "status": { "conditions": [condition] } });
    let main = bench.gadgets.patch("home", Patch::Merge(both.clone())).await.unwrap();
    assert!(main.status.is_none(), "the object itself takes no status");
    assert_eq!((main.spec.color.as_str(), main.generation()), ("blue", created.generation() + 1));
    let both = json!({ "spec": { "color": "green" }, "status": both["status"] });
    let status = bench.gadgets.patch("home", Patch::Merge(both)).status().await.unwrap();
    assert!(status.status.unwrap().conditions.is_met("Small"));
    assert_eq!(status.spec.color, "blue", "the status subresource takes nothing else");
    assert_eq!(status.metadata.generation, main.metadata.generation);
}

#[tokio::test]
async fn the_status_of_a_built_in_kind_is_applied_beside_its_spec() {
    let bench = Bench::start().await;
    let (client, namespace) = (bench.cluster.client(), bench.cluster.namespace());
    let labels = json!({ "app": "home" });
    let api = client.dynamic(ResourceInfo::of::<Deployment>(), Some(namespace));
    let deployment = json!({ "spec": {
        "replicas": 2,
        "selector": { "matchLabels": labels },
        "template": {
            "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "web", "image": "nginx:1.29" }] },
        },
    }});
    let created = api.apply("home", &deployment).await.unwrap();
    assert_eq!(created.rest["spec"]["progressDeadlineSeconds"], 600, "defaults are filled in");
    let status = json!({ "status": { "replicas": 2, "readyReplicas": 1 } });
    let applied = api.apply("home", &status).manager("counter").status().await.unwrap();
    assert_eq!(applied.rest["status"]["readyReplicas"], 1);
    assert_eq!(applied.generation(), created.generation());
    let managers: Vec<_> = applied
        .metadata
        .managed_fields
        .unwrap()
        .into_iter()
        .map(|entry| (entry.manager.unwrap(), entry.subresource))
        .collect();
    assert!(managers.contains(&("counter".to_owned(), Some("status".to_owned()))), "{managers:?}");
}
