use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::*;
use crate::delta::Delta;
use windlass_core::clock::Clock;
use windlass_core::resource::{DynamicObject, ObjectKey, Resource, ResourceInfo, Selector};
use windlass_core::wire::MetadataScan;

mod applied_fields;
mod buffer_pool;
mod encoding;
mod indexes;
mod model;
mod own_writes;
mod reads;
mod unseen;

fn core() -> Arc<StoreCore> {
    StoreCore::new(ResourceInfo::of::<ConfigMap>(), Clock::system())
}

fn store(core: &Arc<StoreCore>) -> Store<ConfigMap> {
    Store::new(Arc::clone(core))
}

fn config_map(name: &str, uid: &str, version: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "namespace": "n", "name": name, "uid": uid, "resourceVersion": version.to_string()}})
}

fn sighting(core: &StoreCore, object: &Value, run: ListGeneration) -> Observed {
    let bytes = object.to_string();
    Observed {
        object: core.object(&MetadataScan::of(bytes.as_bytes()).unwrap()),
        run,
        is_initial: false,
    }
}

fn put(core: &StoreCore, object: &Value) -> Vec<String> {
    told(core.apply(vec![Delta::Put(sighting(core, object, ListGeneration::default()))]))
}

fn delete(core: &StoreCore, object: &Value) -> Vec<String> {
    told(core.apply(vec![Delta::Delete(sighting(core, object, ListGeneration::default()))]))
}

fn listed(run: u32, version: &str, what: MarkKind) -> Delta<Observed, StreamMark> {
    Delta::StreamMark(StreamMark {
        scope: 0,
        namespace: None,
        run: ListGeneration { epoch: 0, number: run },
        resource_version: Arc::from(version),
        what,
    })
}

/// Applies a run that shows exactly `objects`, as the reflector does.
fn relist(core: &StoreCore, run: u32, version: &str, objects: &[Value]) -> BatchOutcome {
    let run_of = ListGeneration { epoch: 0, number: run };
    let mut batch: Vec<_> = objects
        .iter()
        .map(|object| {
            let bytes = object.to_string();
            let scan = MetadataScan::of(bytes.as_bytes()).unwrap();
            let object = core.listed(&scan, 0).0.unwrap_or_else(|| core.object(&scan));
            Delta::Put(Observed { object, run: run_of, is_initial: run == 1 })
        })
        .collect();
    batch.push(listed(run, version, MarkKind::Listed));
    core.apply(batch)
}

fn told(applied: BatchOutcome) -> Vec<String> {
    applied
        .events
        .iter()
        .map(|event| {
            let show = |object: &Object| {
                format!("{}/{}@{}", object.key().name(), object.metadata().uid(), object.version())
            };
            match event {
                StoreEvent::Added { new, .. } => format!("+{}", show(new)),
                StoreEvent::Updated { old, new } => format!("~{}>{}", show(old), new.version()),
                StoreEvent::Deleted { last, final_state_unknown: true } => {
                    format!("?{}", show(last))
                }
                StoreEvent::Deleted { last, .. } => format!("-{}", show(last)),
            }
        })
        .collect()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Some("n"), name)
}

/// G-C1 (states in the server's order), G-C3 (the version never goes back), B6 (older or repeated
/// frames).
#[test]
fn frames_that_are_not_newer_than_the_cached_object_are_dropped_and_counted() {
    let core = core();
    put(&core, &config_map("a", "u", 10));
    for version in [9, 10] {
        let applied = core.apply(vec![Delta::Put(sighting(
            &core,
            &config_map("a", "u", version),
            ListGeneration::default(),
        ))]);
        assert_eq!((applied.events.len(), applied.dropped), (0, 1));
    }
    assert!(delete(&core, &config_map("a", "u", 9)).is_empty());
    assert_eq!(store(&core).get(&key("a")).unwrap().metadata().resource_version(), "10");
}

/// B6 (older or repeated frames): tombstones last until the next list.
#[test]
fn a_deleted_object_is_not_brought_back_by_an_older_frame() {
    let core = core();
    put(&core, &config_map("a", "u", 10));
    assert_eq!(delete(&core, &config_map("a", "u", 12)), ["-a/u@10"]);
    assert!(put(&core, &config_map("a", "u", 11)).is_empty());
    assert_eq!(put(&core, &config_map("a", "v", 13)), ["+a/v@13"]);
}

/// B10 (deleted and created again under the same name), G-C4 (one deletion, before the successor's
/// addition).
#[test]
fn an_object_deleted_and_recreated_is_told_as_deleted_then_added() {
    let core = core();
    put(&core, &config_map("a", "u1", 1));
    assert_eq!(put(&core, &config_map("a", "u2", 5)), ["?a/u1@1", "+a/u2@5"]);
    // An older incarnation cannot replace the newer incarnation.
    assert!(put(&core, &config_map("a", "u1", 4)).is_empty());
    assert!(delete(&core, &config_map("a", "u1", 4)).is_empty());
}

/// B9 (deletions during a gap), G-C4 (exactly one deletion).
#[test]
fn what_a_list_does_not_show_is_deleted_with_its_last_state() {
    let core = core();
    relist(&core, 1, "5", &[config_map("a", "ua", 1), config_map("b", "ub", 2)]);
    let applied = relist(&core, 2, "9", &[config_map("b", "ub", 7), config_map("c", "uc", 8)]);
    assert_eq!(told(applied), ["~b/ub@2>7", "+c/uc@8", "?a/ua@1"]);
    let applied = core.apply(vec![listed(3, "10", MarkKind::ListedInPart)]);
    assert!(applied.events.is_empty(), "a list with unreadable names deletes nothing");
    let applied = core.apply(vec![listed(4, "11", MarkKind::Absent)]);
    assert_eq!(told(applied), ["?b/ub@7", "?c/uc@8"]);
    assert_eq!((core.seen_len(), core.sizes().bytes), (0, 0));
}

#[test]
fn a_relist_keeps_unchanged_objects_in_place() {
    let core = core();
    let objects = [config_map("a", "ua", 1), config_map("b", "ub", 2)];
    relist(&core, 1, "5", &objects);
    let before = store(&core).list();
    assert!(relist(&core, 2, "9", &objects).events.is_empty());
    let after = store(&core).list();
    assert!(before.iter().zip(&after).all(|(before, after)| before.is_same(after)));
}

/// B8 (versions that go back): versions of two epochs do not compare.
#[test]
fn a_new_epoch_accepts_older_versions_and_tells_what_is_another_state() {
    let core = core();
    put(&core, &config_map("a", "u", 100));
    let run = ListGeneration { epoch: 1, number: 2 };
    let mut other = config_map("a", "u", 100);
    other["data"] = json!({"k": "another state of the same version"});
    let cases = [(config_map("a", "u", 100), 0), (other, 1), (config_map("a", "u", 40), 1)];
    for (object, events) in cases {
        put(&core, &config_map("a", "u", 100));
        let applied = core.apply(vec![Delta::Put(sighting(&core, &object, run))]);
        assert_eq!(applied.events.len(), events, "{object}");
        let next = ListGeneration { epoch: 1, number: 3 };
        let applied =
            core.apply(vec![Delta::Put(sighting(&core, &config_map("a", "u", 39), next))]);
        assert_eq!(applied.dropped, 1, "within the epoch versions compare again");
        core.apply(vec![listed(99, "1", MarkKind::Absent)]);
    }
}

/// C1 (an object that does not decode), G-C9 (a bad object delays no other).
#[test]
fn an_object_that_does_not_decode_is_invalid_and_still_deletable() {
    let core = core();
    let mut bad = config_map("bad", "u", 1);
    bad["data"] = json!({"k": {"not": "a string"}});
    put(&core, &bad);
    put(&core, &config_map("good", "v", 2));
    let store = store(&core);
    assert_eq!(core.invalid(), 0, "nobody has read it yet");
    let invalid = store.get(&key("bad")).unwrap().get().unwrap_err();
    assert!(invalid.message.starts_with(".data.*: "), "{invalid}");
    assert_eq!(core.invalid(), 1);
    assert!(store.get(&key("good")).unwrap().get().is_ok());
    bad["metadata"]["resourceVersion"] = json!("3");
    assert_eq!(delete(&core, &bad), ["-bad/u@1"]);
    assert_eq!(core.invalid(), 0);
}

#[test]
fn an_object_is_decoded_once_while_somebody_holds_it() {
    let core = core();
    put(&core, &config_map("a", "u", 1));
    let cached = store(&core).get(&key("a")).unwrap();
    let first = cached.get().unwrap();
    assert!(Arc::ptr_eq(&first, &store(&core).get(&key("a")).unwrap().get().unwrap()));
    let weak = Arc::downgrade(&first);
    drop(first);
    assert!(weak.upgrade().is_none(), "the cache keeps bytes, not values");
}

#[test]
fn bytes_are_kept_without_what_no_reader_needs_and_dynamic_objects_get_their_kind_back() {
    let core = core();
    let mut object = config_map("a", "u", 1);
    object["metadata"]["managedFields"] = json!([{"manager": "x"}]);
    object["metadata"]["annotations"] = json!({"note": "n\"1"});
    put(&core, &object);
    let cached = store(&core).get(&key("a")).unwrap();
    let raw = String::from_utf8_lossy(&cached.raw()).into_owned();
    assert!(!raw.contains("managedFields") && !raw.contains("apiVersion"), "{raw}");
    assert_eq!(cached.annotation("note").as_deref(), Some("n\"1"));
    let dynamic: Store<DynamicObject> = Store::new(Arc::clone(&core));
    let dynamic = dynamic.get(&key("a")).unwrap().get().unwrap();
    assert_eq!((dynamic.api_version.as_str(), dynamic.kind.as_str()), ("v1", "ConfigMap"));
}

const BY_HOST: Index<ConfigMap, String> = Index::on_path("host", &["data", "host"]);

fn with_host(name: &str, version: u64, host: &str) -> Value {
    let mut object = config_map(name, "u", version);
    object["data"] = json!({"host": host});
    object
}

fn names(found: &[Cached<ConfigMap>]) -> Vec<&str> {
    found.iter().map(|cached| cached.key().name()).collect()
}

fn wrote(core: &StoreCore, object: &Value) {
    let bytes = object.to_string();
    core.wrote(core.object(&MetadataScan::of(bytes.as_bytes()).unwrap()));
}

#[test]
fn a_secrets_value_does_not_stand_in_the_error() {
    use k8s_openapi::api::core::v1::Secret;
    let core = StoreCore::new(ResourceInfo::of::<Secret>(), Clock::system());
    let mut object = config_map("a", "u", 1);
    object["type"] = json!(["hunter2"]);
    object["data"] = json!("hunter2");
    put(&core, &object);
    let error = Store::<Secret>::new(core).list()[0].get().unwrap_err().to_string();
    assert!(!error.contains("hunter2") && error.contains(".data"), "{error}");
}
