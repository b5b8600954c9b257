//! A list and the watch from the list's version, from which every cache is made.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::api::{Api, Patch, WatchEvent};
use windlass::resource::ResourceExt;

use crate::bench::Bench;

const OBJECTS: usize = 20;
const CHANGES: usize = 5;

fn config_map(name: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object.metadata.labels = Some([("app".to_owned(), "stream".to_owned())].into());
    object
}

/// Several writers at once; the watch is open while they write.
async fn write(api: Api<ConfigMap>) {
    let writers = (0..4).map(|writer| {
        let api = api.clone();
        tokio::spawn(async move {
            for object in (writer..OBJECTS).step_by(4) {
                let name = format!("x{object:02}");
                if object % 2 == 1 {
                    api.create(&config_map(&name)).await.unwrap();
                }
                for change in 1..=CHANGES {
                    let data = json!({ "data": { "change": change.to_string() } });
                    api.patch(&name, Patch::Merge(data)).await.unwrap();
                }
                api.delete(&name).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}

#[tokio::test]
async fn mechanism_66_a_list_and_the_watch_from_its_version_tell_every_change_once_and_in_order() {
    let bench = Bench::start().await;
    let api = bench.children.clone();
    // Half of the objects exist before the list.
    for object in (0..OBJECTS).step_by(2) {
        api.create(&config_map(&format!("x{object:02}"))).await.unwrap();
    }
    let list = api.list().labels("app=stream").await.unwrap();
    assert_eq!(list.items.len(), OBJECTS / 2);
    let mut watch =
        api.watch().labels("app=stream").resource_version(&list.resource_version).await.unwrap();
    let writing = tokio::spawn(write(api.clone()));

    let mut received: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut deleted, mut newest) = (0, 0);
    while deleted < OBJECTS {
        let event = watch.next().await.expect("the watch goes on").unwrap();
        let (word, object) = match event {
            WatchEvent::Added(object) => ("added", object),
            WatchEvent::Modified(object) => ("modified", object),
            WatchEvent::Deleted(object) => ("deleted", object),
            WatchEvent::Bookmark { .. } => continue,
        };
        let version: u64 = object.resource_version().parse().unwrap();
        assert!(version > newest, "{version} after {newest}");
        newest = version;
        deleted += usize::from(word == "deleted");
        let change = object.data.as_ref().and_then(|data| data.get("change")).cloned();
        let line = format!("{word} {}", change.as_deref().unwrap_or("-"));
        received.entry(object.name().to_owned()).or_default().push(line);
    }
    writing.await.unwrap();
    for (at, (name, lines)) in received.iter().enumerate() {
        let mut wanted: Vec<String> = (1..=CHANGES).map(|n| format!("modified {n}")).collect();
        if at % 2 == 1 {
            wanted.insert(0, "added -".to_owned());
        }
        wanted.push(format!("deleted {CHANGES}"));
        assert_eq!(*lines, wanted, "{name}");
    }
    assert_eq!(received.len(), OBJECTS);
}
