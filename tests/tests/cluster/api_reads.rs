//! Reads in all their forms, and the checks that writes can ask for.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use windlass::ErrorKind;
use windlass::api::{Api, Deletion, FieldValidation, ListStream, Patch, WatchEvent};
use windlass::resource::{PartialObject, Resource, ResourceExt, ResourceInfo};

use crate::bench::Bench;
use crate::gadget::{FINALIZER, gadget};

async fn only_metadata<K: Resource>(api: &Api<K>, kind: &str) {
    let whole = api.get("home").await.unwrap();
    let read = |object: &PartialObject| {
        assert_eq!(object.kind, kind);
        assert_eq!(object.uid(), whole.uid());
    };
    read(&api.get_metadata("home").await.unwrap());
    let metadata = api.metadata();
    read(&metadata.get("home").await.unwrap());
    let list = metadata.list().await.unwrap();
    read(list.items.iter().find(|object| object.name() == "home").unwrap());
    let mut watch = metadata.watch().resource_version(&list.resource_version).await.unwrap();
    let label = json!({ "metadata": { "labels": { "seen": "yes" } } });
    let patched = metadata.patch("home", Patch::Merge(label)).await.unwrap();
    read(&patched);
    assert_eq!(patched.label("seen"), Some("yes"));
    match watch.next().await.unwrap().unwrap() {
        WatchEvent::Modified(object) => {
            read(&object);
            assert_eq!(object.resource_version(), patched.resource_version());
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn metadata_of_built_in_and_of_custom_kinds_is_read_watched_and_patched() {
    let bench = Bench::start().await;
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    let mut map = ConfigMap::default();
    map.metadata.name = Some("home".into());
    bench.children.create(&map).await.unwrap();
    only_metadata(&bench.gadgets, "Gadget").await;
    only_metadata(&bench.children, "ConfigMap").await;
}

async fn names<K: Resource>(stream: &mut ListStream<K>) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(object) = stream.next().await {
        names.push(object.unwrap().name().to_owned());
    }
    names
}

#[tokio::test]
async fn a_streamed_list_shows_one_moment_in_pages() {
    let bench = Bench::start().await;
    for name in ["a", "b", "c", "d", "e"] {
        bench.gadgets.create(&gadget(name, "red")).await.unwrap();
    }
    let mut stream = bench.gadgets.list().page_size(2).stream();
    let first = stream.next().await.unwrap().unwrap();
    // Changes during the read do not show.
    bench.gadgets.delete("e").await.unwrap();
    bench.gadgets.create(&gadget("f", "red")).await.unwrap();
    let rest = names(&mut stream).await;
    assert_eq!((first.name(), rest), ("a", ["b", "c", "d", "e"].map(str::to_owned).to_vec()));
    assert!(stream.is_consistent());
    let page = bench.gadgets.list().limit(2).await.unwrap();
    assert_eq!(page.remaining, Some(3));
}

#[tokio::test]
async fn a_watch_can_begin_with_all_objects_and_says_when_they_end() {
    let bench = Bench::start().await;
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    let mut watch = bench.gadgets.watch().initial_events().await.unwrap();
    match watch.next().await.unwrap().unwrap() {
        WatchEvent::Added(home) => assert_eq!(home.name(), "home"),
        other => panic!("{other:?}"),
    }
    match watch.next().await.unwrap().unwrap() {
        WatchEvent::Bookmark { initial_events_end, .. } => assert!(initial_events_end),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn unknown_fields_are_refused_where_that_is_asked_for() {
    let bench = Bench::start().await;
    let info = ResourceInfo::of::<crate::gadget::Gadget>();
    let api = bench.cluster.client().dynamic(info, Some(bench.cluster.namespace()));
    let spec = json!({ "color": "red", "size": 1, "wheels": 4 });
    let object = json!({ "metadata": { "name": "home" }, "spec": spec });
    let object = serde_json::from_value(object).unwrap();
    let strict = api.create(&object).field_validation(FieldValidation::Strict).await.unwrap_err();
    assert_eq!(strict.kind(), ErrorKind::BadRequest, "{strict}");
    assert!(strict.to_string().contains("spec.wheels"), "{strict}");
    let created = api.create(&object).field_validation(FieldValidation::Ignore).await.unwrap();
    assert_eq!(created.rest["spec"].get("wheels"), None::<&Value>);
    let patch = Patch::Merge(json!({ "spec": { "wheels": 4 } }));
    let strict = api.patch("home", patch).field_validation(FieldValidation::Strict).await;
    assert!(strict.unwrap_err().is_invalid());
}

#[tokio::test]
async fn a_deletion_tells_whether_it_is_over() {
    let bench = Bench::start().await;
    let mut held = gadget("held", "red");
    held.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    let held = bench.gadgets.create(&held).await.unwrap();
    let free = bench.gadgets.create(&gadget("free", "red")).await.unwrap();
    let gone = bench.gadgets.delete("free").await.unwrap();
    assert!(gone.is_gone());
    assert_eq!(gone.uid(), free.uid());
    match bench.gadgets.delete("held").await.unwrap() {
        Deletion::Terminating(object) => assert_eq!(object.uid(), held.uid()),
        Deletion::Gone { .. } => panic!("its finalizer holds it"),
    }
}
