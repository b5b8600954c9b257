//! Every form of keeping objects gives the answers of the compact form.

use std::any::TypeId;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::*;
use crate::delta::Delta;
use crate::store::object::ObjectContent;
use windlass_core::clock::Clock;
use windlass_core::resource::{
    DynamicObject, ObjectKey, PartialObject, ResourceExt, ResourceInfo, Selector,
};
use windlass_macros::Projection;

/// A part of a Pod: without the node, which has an index.
#[derive(Projection, Clone, Debug)]
#[projection(of = Pod, skip(annotations))]
struct PodView {
    metadata: ObjectMeta,
    #[projection(path = "status.phase")]
    phase: Option<String>,
    #[projection(path = "spec.priority")]
    priority: Option<i32>,
}

fn core(settings: StoreSettings) -> Arc<StoreCore> {
    StoreCore::with_settings(ResourceInfo::of::<Pod>(), Clock::system(), settings, 0)
}

fn settings<K: Resource>(representation: Representation) -> StoreSettings {
    StoreSettings::of::<K>(representation, None)
}

fn pod(number: usize, version: u64) -> Value {
    let container = |name: &str| {
        json!({"name": name, "image": format!("registry.example/{name}:1.2.3"),
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "resources": {"limits": {"memory": "128Mi"}, "requests": {"cpu": "10m"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}})
    };
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("p-{number:04}"), "namespace": format!("n-{}", number % 3),
            "uid": format!("u-{number}"), "resourceVersion": version.to_string(),
            "labels": {"app": format!("app-{}", number % 5)},
            "annotations": {"example.dev/note": format!("note {number}\n")},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o",
                "uid": format!("o-{}", number % 7), "controller": true}],
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:x": {}}}]},
        "spec": {"nodeName": format!("node-{}", (number as u64 + version) % 4), "priority": number,
            "containers": [container("app"), container("proxy")]},
        "status": {"phase": "Running", "podIP": format!("10.0.0.{number}")}})
}

fn sighting(core: &StoreCore, object: &Value, run: u32) -> Observed {
    let bytes = object.to_string();
    let scan = MetadataScan::of(bytes.as_bytes()).expect("it has a name");
    let object = core.listed(&scan, 0).0.unwrap_or_else(|| core.object(&scan));
    Observed { object, run: ListGeneration { epoch: 0, number: run }, is_initial: false }
}

fn put(core: &StoreCore, object: &Value) -> BatchOutcome {
    core.apply(vec![Delta::Put(sighting(core, object, 1))])
}

fn relist(core: &StoreCore, run: u32, version: &str, objects: &[Value]) -> BatchOutcome {
    let mut batch: Vec<_> =
        objects.iter().map(|object| Delta::Put(sighting(core, object, run))).collect();
    batch.push(Delta::StreamMark(StreamMark {
        scope: 0,
        namespace: None,
        run: ListGeneration { epoch: 0, number: run },
        resource_version: Arc::from(version),
        what: MarkKind::Listed,
    }));
    core.apply(batch)
}

fn told(applied: &BatchOutcome) -> Vec<String> {
    let show = |object: &Object| format!("{}@{}", object.key(), object.version());
    let tell = |event: &StoreEvent| match event {
        StoreEvent::Added { new, .. } => format!("+{}", show(new)),
        StoreEvent::Updated { old, new } => format!("{}>{}", show(old), new.version()),
        StoreEvent::Deleted { last, .. } => format!("-{}", show(last)),
    };
    applied.events.iter().map(tell).collect()
}

fn names<K: Resource>(found: &[Cached<K>]) -> String {
    let names: Vec<_> = found.iter().map(|cached| cached.key().name()).collect();
    names.join(" ")
}

/// An index on a path of the spec; for metadata, a function with the spec's values.
fn by_node<K: Resource>() -> Index<K, String> {
    let is_metadata = TypeId::of::<K>() == TypeId::of::<PartialObject>();
    Index::on_path("node", if is_metadata { &["metadata", "none"] } else { &["spec", "nodeName"] })
}

/// All answers to readers, which are the same in all forms.
fn answers<K: Resource>(store: &Store<K>) -> Vec<String> {
    let by_app: Index<K, String> = Index::on_path("app", &["metadata", "labels", "app"]);
    let by_node = by_node::<K>();
    let by_length: Index<K, usize> = Index::new("length", |object: &K| vec![object.name().len()]);
    let app = Selector::everything().equals("app", "app-1");
    let mut said = vec![
        format!("all {}", names(&store.list())),
        format!("n-1 {}", names(&store.select(Some("n-1"), &Selector::everything()))),
        format!("app-1 {}", names(&store.select(None, &app))),
        format!("app-2 {}", names(&store.by_index(by_app, "app-2"))),
        format!("node-3 {}", names(&store.by_index(by_node, "node-3"))),
        format!("long {}", names(&store.by_index(by_length, &6_usize))),
        format!("owned {}", names(&store.owned_by("o-3"))),
    ];
    for cached in store.list().iter().step_by(37) {
        let object = cached.get().expect("it decodes");
        let metadata = cached.metadata();
        said.push(format!(
            "{} {} {} {:?} {:?} {} {:?}",
            cached.key(),
            metadata.uid(),
            metadata.resource_version(),
            metadata.label("app"),
            metadata.controller().map(|owner| owner.uid),
            object.resource_version(),
            object.label("app"),
        ));
    }
    said
}

/// The life of a cache: a list, changes, an own write, deletions, a relist.
fn life<K: Resource>(settings: StoreSettings) -> Vec<String> {
    let core = core(settings);
    let store: Store<K> = Store::new(Arc::clone(&core));
    store.ensure_index(by_node::<K>()).unwrap();
    let first: Vec<_> = (0..600).map(|number| pod(number, 1000)).collect();
    let mut said = told(&relist(&core, 1, "1000", &first));
    said.extend(answers(&store));
    for number in [3, 37, 500] {
        said.extend(told(&put(&core, &pod(number, 1001))));
    }
    said.extend(told(&put(&core, &pod(3, 1000))));
    let last = sighting(&core, &pod(4, 1002), 1);
    said.extend(told(&core.apply(vec![Delta::Delete(last)])));
    said.extend(answers(&store));

    let key = ObjectKey::new(Some("n-1"), "p-0037");
    let mut own: K = (*store.get(&key).expect("it is there").get().expect("it decodes")).clone();
    own.metadata_mut().resource_version = Some("1005".to_owned());
    own.metadata_mut().labels.get_or_insert_default().insert("app".to_owned(), "mine".to_owned());
    let bytes = serde_json::to_vec(&own).expect("it encodes");
    core.wrote(core.object(&MetadataScan::of(&bytes).expect("it has a name")));
    let by_app: Index<K, String> = Index::on_path("app", &["metadata", "labels", "app"]);
    said.push(format!("own {}", names(&store.by_index(by_app, "mine"))));
    said.push(format!(
        "own {:?}",
        store.get(&key).map(|own| own.metadata().label("app").map(str::to_owned))
    ));
    said.extend(told(&put(&core, &pod(37, 1006))));
    said.push(format!("own {}", names(&store.by_index(by_app, "mine"))));

    let again: Vec<_> =
        (10..600).map(|number| pod(number, if number == 50 { 1009 } else { 1000 })).collect();
    said.extend(told(&relist(&core, 2, "1009", &again)));
    said.extend(answers(&store));
    said
}

#[test]
fn every_form_answers_alike() {
    let compact = life::<Pod>(settings::<Pod>(Representation::Compact));
    assert!(compact.iter().any(|line| line.starts_with("node-3 p-")), "{compact:#?}");
    assert_eq!(life::<Pod>(settings::<Pod>(Representation::Typed)), compact);
    assert_eq!(life::<Pod>(settings::<Pod>(Representation::Cold)), compact);
    assert_eq!(life::<PodView>(settings::<PodView>(Representation::Compact)), compact);
    assert_eq!(life::<PodView>(settings::<PodView>(Representation::Typed)), compact);
    // With metadata only, no index can be on the spec.
    let but_nodes = |said: Vec<String>| -> Vec<String> {
        said.into_iter().filter(|line| !line.starts_with("node-3")).collect()
    };
    let metadata = life::<PartialObject>(settings::<PartialObject>(Representation::Metadata));
    assert_eq!(but_nodes(metadata), but_nodes(compact.clone()));
    assert_eq!(life::<DynamicObject>(settings::<Pod>(Representation::Typed)), compact);
    assert_eq!(life::<DynamicObject>(settings::<DynamicObject>(Representation::Typed)), compact);
}

/// An own write through `Bare`, over a Pod with two more labels; `change` is the write.
fn own_of_bare(
    representation: Representation,
    change: fn(&mut Bare),
) -> (Arc<StoreCore>, Store<Bare>) {
    let core = core(settings::<Bare>(representation));
    let store = Store::<Bare>::new(Arc::clone(&core));
    store.ensure_index(Index::<Bare, String>::on_path("image", IMAGES)).unwrap();
    let mut shown = pod(1, 7);
    shown["metadata"]["labels"] = json!({"app": "web", "team": "a", "quote": "\"\\"});
    put(&core, &shown);
    for version in ["8", "9"] {
        let mut own = (*store.list()[0].get().unwrap()).clone();
        own.metadata.resource_version = Some(version.to_owned());
        change(&mut own);
        let bytes = serde_json::to_vec(&own).unwrap();
        core.wrote(core.object(&MetadataScan::of(&bytes).unwrap()));
    }
    (core, store)
}

const IMAGES: &[&str] = &["spec", "containers", "image"];

#[test]
fn an_own_write_through_a_projection_keeps_the_labels_that_it_skips() {
    for representation in [Representation::Compact, Representation::Typed] {
        let (_, store) = own_of_bare(representation, |own| own.app = None);
        let team = Selector::everything().equals("team", "a");
        let found = store.select(None, &team);
        assert_eq!(names(&found), "p-0001", "{representation:?}");
        let metadata = found[0].metadata();
        assert_eq!((metadata.resource_version(), metadata.label("quote")), ("9", Some("\"\\")));
        assert_eq!(metadata.label("app"), None, "what it has a field for is its own");
        let view = found[0].get().unwrap();
        assert_eq!((view.app.as_deref(), view.note.as_deref()), (None, Some("note 1\n")));
        assert_eq!(view.containers.len(), 2);
        let by_team: Index<Bare, String> = Index::on_path("i", &["metadata", "labels", "team"]);
        assert!(
            store.ensure_index(by_team).is_err()
                || names(&store.by_index(by_team, "a")) == "p-0001"
        );
    }
}

#[test]
fn an_own_write_through_a_projection_has_no_labels_of_an_object_that_was_there_before_it() {
    let (_, store) = own_of_bare(Representation::Compact, |own| {
        own.metadata.uid = Some("another".to_owned());
    });
    assert_eq!(store.list()[0].metadata().label("team"), None);
}

#[test]
fn an_own_write_that_clears_a_list_is_not_found_by_what_was_in_it() {
    for representation in [Representation::Compact, Representation::Typed] {
        let by_image: Index<Bare, String> = Index::on_path("image", IMAGES);
        let image = "registry.example/app:1.2.3";
        let (core, store) = own_of_bare(representation, |own| own.containers.clear());
        assert_eq!(names(&store.by_index(by_image, image)), "", "{representation:?}");
        put(&core, &pod(1, 10));
        assert_eq!(names(&store.by_index(by_image, image)), "p-0001");
        let (_, store) = own_of_bare(representation, |own| own.app = None);
        assert_eq!(names(&store.by_index(by_image, image)), "p-0001");
    }
}

#[test]
fn an_annotation_that_a_projection_has_a_field_for_is_found_in_every_form() {
    for representation in [Representation::Compact, Representation::Typed] {
        let cached = one::<Bare>(settings::<Bare>(representation));
        assert_eq!(cached.annotation("example.dev/note").as_deref(), Some("note 1\n"));
        assert_eq!(cached.annotation("example.dev/other"), None);
    }
}

fn one<K: Resource>(settings: StoreSettings) -> Cached<K> {
    let core = core(settings);
    put(&core, &pod(1, 7));
    Store::new(core).list().remove(0)
}

fn json(raw: &[u8]) -> Value {
    serde_json::from_slice(raw).expect("it is JSON")
}

#[test]
fn a_typed_object_is_decoded_once_and_its_bytes_are_written_again_when_asked_for() {
    let cached = one::<Pod>(settings::<Pod>(Representation::Typed));
    let (first, second) = (cached.get().unwrap(), cached.get().unwrap());
    assert!(Arc::ptr_eq(&first, &second));
    assert!(matches!(cached.object.content(), ObjectContent::DecodedObject(_)));
    let raw = json(&cached.raw());
    assert_eq!(raw["status"]["podIP"], "10.0.0.1");
    assert_eq!((raw.get("kind"), raw["metadata"].get("managedFields")), (None, None));
    assert_eq!(cached.annotation("example.dev/note").as_deref(), Some("note 1\n"));
}

#[test]
fn a_projection_keeps_what_it_names_and_nothing_else() {
    for representation in [Representation::Compact, Representation::Cold, Representation::Typed] {
        let cached = one::<PodView>(settings::<PodView>(representation));
        let view = cached.get().unwrap();
        assert_eq!((view.phase.as_deref(), view.priority), (Some("Running"), Some(1)));
        let raw = json(&cached.raw());
        assert_eq!(raw["spec"], json!({"priority": 1}));
        assert_eq!(cached.annotation("example.dev/note"), None, "it skips annotations");
        assert_eq!(cached.metadata().owners().count(), 1);
        assert!(Arc::ptr_eq(&view, &cached.get().unwrap()), "it is shared while somebody holds it");
        let is_decoded = matches!(cached.object.content(), ObjectContent::DecodedObject(_));
        assert_eq!(is_decoded, representation == Representation::Typed);
    }
}

/// A part of a Pod without the members from which the head is read.
#[derive(Projection, Clone, Debug)]
#[projection(of = Pod, skip(labels, annotations))]
struct Bare {
    metadata: ObjectMeta,
    #[projection(label = "app")]
    app: Option<String>,
    #[projection(annotation = "example.dev/note")]
    note: Option<String>,
    #[projection(path = "spec.containers")]
    containers: Vec<Value>,
}

#[test]
fn a_part_of_an_object_decodes_as_the_whole_does() {
    let text = pod(1, 7).to_string();
    let whole = |text: &str| {
        let compact = MetadataScan::of(text.as_bytes()).unwrap().compact();
        serde_json::to_value(serde_json::from_slice::<Bare>(&compact).unwrap()).unwrap()
    };
    let kept = |text: &str| {
        let core = core(settings::<Bare>(Representation::Compact));
        let object = core.object(&MetadataScan::of(text.as_bytes()).unwrap());
        let seen = Observed { object, run: ListGeneration::default(), is_initial: false };
        core.apply(vec![Delta::Put(seen)]);
        Store::<Bare>::new(core).list().remove(0)
    };
    // A name with escapes on the path: nothing is left out.
    let escaped = text.replacen("\"spec\"", "\"sp\\u0065c\"", 1);
    let indented = serde_json::to_string_pretty(&pod(1, 7)).unwrap();
    for (text, is_cut) in [(&text, true), (&indented, true), (&escaped, false)] {
        let cached = kept(text);
        let value = serde_json::to_value(&*cached.get().unwrap()).unwrap();
        assert_eq!(value, whole(text));
        assert_eq!(value["metadata"]["annotations"]["example.dev/note"], "note 1\n");
        assert_eq!(json(&cached.raw()).get("status").is_none(), is_cut);
        let metadata = cached.metadata();
        assert_eq!((metadata.uid(), metadata.resource_version()), ("u-1", "7"));
        assert_eq!((metadata.label("app"), metadata.owners().count()), (Some("app-1"), 1));
        assert_eq!(cached.annotation("example.dev/note").as_deref(), Some("note 1\n"));
    }
}

#[test]
fn of_metadata_only_the_content_is_gone_and_annotations_are_there() {
    let cached = one::<PartialObject>(settings::<PartialObject>(Representation::Metadata));
    let raw = json(&cached.raw());
    assert_eq!(raw.as_object().map(serde_json::Map::len), Some(1));
    assert_eq!(raw["metadata"]["name"], "p-0001");
    assert_eq!(cached.annotation("example.dev/note").as_deref(), Some("note 1\n"));
    let object = cached.get().unwrap();
    assert_eq!((object.kind.as_str(), object.api_version.as_str()), ("Pod", "v1"));
}

thread_local! {
    static DECODES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// A text; counts the attempts to read a text.
#[derive(Clone, Debug, serde::Serialize)]
struct Counted(String);

impl<'de> serde::Deserialize<'de> for Counted {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DECODES.set(DECODES.get() + 1);
        String::deserialize(deserializer).map(Self)
    }
}

/// A view that takes the priority for a text.
#[derive(Projection, Clone, Debug)]
#[projection(of = Pod)]
struct Mistaken {
    metadata: ObjectMeta,
    #[projection(path = "spec.priority")]
    priority: Option<Counted>,
}

#[test]
fn an_object_that_does_not_decode_is_tried_once_a_version_in_every_form() {
    for settings in [
        settings::<Mistaken>(Representation::Compact),
        settings::<Pod>(Representation::Typed),
        settings::<Pod>(Representation::Compact),
        settings::<Pod>(Representation::Cold),
    ] {
        let core = core(settings);
        let store: Store<Mistaken> = Store::new(Arc::clone(&core));
        let key = ObjectKey::new(Some("n-1"), "p-0001");
        for version in [7, 8] {
            DECODES.set(0);
            put(&core, &pod(1, version));
            // The typed store has decoded the object into the store's type.
            let read =
                || store.get(&key).expect("it is there").get().map(|view| view.priority.clone());
            let first = read().expect_err("a number is not text").message;
            let tries = DECODES.get();
            // By the scanner, by serde_json, and once more for an error text without values.
            assert!((1..=3).contains(&tries), "{tries}");
            assert!((0..5).all(|_| read().is_err_and(|invalid| invalid.message == first)));
            assert_eq!(DECODES.get(), tries, "version {version}");
        }
        assert!(
            Store::<PodView>::new(Arc::clone(&core)).list()[0].get().is_ok(),
            "as another type"
        );
        assert_eq!(core.invalid(), 1);
    }
}

/// C1 (an object that does not decode): in the forms that decode at once, too.
#[test]
fn an_object_that_does_not_decode_is_kept_and_heals() {
    for (settings, decodes_at_once) in [
        (settings::<Pod>(Representation::Typed), true),
        (settings::<PodView>(Representation::Typed), true),
        (settings::<PodView>(Representation::Compact), false),
    ] {
        let core = core(settings);
        let store: Store<PodView> = Store::new(Arc::clone(&core));
        put(&core, &pod(1, 7));
        let mut broken = pod(2, 8);
        broken["spec"]["priority"] = json!("high");
        broken["status"]["phase"] = json!([]);
        assert_eq!(told(&put(&core, &broken)), ["+n-2/p-0002@8"]);
        assert_eq!(core.invalid(), usize::from(decodes_at_once), "before anybody reads it");
        let key = ObjectKey::new(Some("n-2"), "p-0002");
        let cached = store.get(&key).expect("it is visible");
        assert!(cached.get().is_err_and(|invalid| invalid.message.contains(".spec.priority")));
        assert_eq!(core.invalid(), 1);
        assert_eq!(cached.metadata().label("app"), Some("app-2"));
        assert_eq!(json(&cached.raw())["spec"]["priority"], "high");
        assert_eq!(store.list().len(), 2);
        put(&core, &pod(2, 9));
        assert_eq!(core.invalid(), 0);
        assert!(store.get(&key).expect("it is there").get().is_ok());
        broken["metadata"]["resourceVersion"] = json!("10");
        put(&core, &broken);
        assert!(store.get(&key).expect("it is there").get().is_err());
        let last = sighting(&core, &broken, 1);
        assert_eq!(told(&core.apply(vec![Delta::Delete(last)])), ["-n-2/p-0002@10"]);
        assert_eq!(core.invalid(), 0);
    }
}

#[test]
fn a_transform_runs_before_indexes_and_readers_in_every_form() {
    let transform = || {
        let mark = Transform::new(|object| object["metadata"]["labels"]["app"] = json!("marked"));
        Some(Transform::drop_paths(&[&["spec", "containers"], &["status"]]).then(mark))
    };
    for settings in [
        StoreSettings::of::<Pod>(Representation::Compact, transform()),
        StoreSettings::of::<Pod>(Representation::Typed, transform()),
        StoreSettings::of::<Pod>(Representation::Cold, transform()),
    ] {
        let core = core(settings);
        let store: Store<Pod> = Store::new(Arc::clone(&core));
        let by_app: Index<Pod, String> = Index::on_path("app", &["metadata", "labels", "app"]);
        put(&core, &pod(1, 7));
        assert_eq!(store.by_index(by_app, "marked").len(), 1);
        let cached = store.list().remove(0);
        let raw = json(&cached.raw());
        assert_eq!((raw["spec"].get("image"), raw.get("status")), (None, None));
        assert_eq!(cached.metadata().label("app"), Some("marked"));
    }
}

#[test]
fn a_transform_that_takes_the_name_or_panics_leaves_the_object_as_it_came() {
    for transform in [
        Transform::drop_paths(&[&["metadata", "name"]]),
        Transform::new(|object| object["metadata"]["resourceVersion"] = json!("1")),
        Transform::new(|_| panic!("a defect of the user's")),
        Transform::new(|object| *object = json!(1)),
    ] {
        let core = core(StoreSettings::of::<Pod>(Representation::Compact, Some(transform)));
        put(&core, &pod(1, 7));
        let cached: Cached<Pod> = Store::new(core).list().remove(0);
        assert_eq!(cached.metadata().resource_version(), "7");
        assert_eq!(json(&cached.raw())["status"]["phase"], "Running");
    }
}

#[cfg(feature = "cold")]
mod cold {
    use super::*;

    fn filled(objects: usize) -> (Arc<StoreCore>, Store<Pod>) {
        let core = core(settings::<Pod>(Representation::Cold));
        for number in 0..objects {
            put(&core, &pod(number, 1000));
        }
        let store = Store::new(Arc::clone(&core));
        (core, store)
    }

    fn is_cold(cached: &Cached<Pod>) -> bool {
        matches!(cached.object.content(), ObjectContent::Cold(_))
    }

    #[test]
    fn objects_are_compressed_once_a_dictionary_is_trained_those_before_included() {
        let (core, store) = filled(255);
        assert!(!store.list().iter().any(is_cold));
        let before = core.sizes().bytes;
        put(&core, &pod(255, 1000));
        assert!(store.list().iter().all(is_cold));
        assert!(core.sizes().bytes * 3 < before, "{} of {before} bytes", core.sizes().bytes);
        let cached = store.get(&ObjectKey::new(Some("n-0"), "p-0003")).expect("it is there");
        let mut whole = pod(3, 1000);
        whole["metadata"].as_object_mut().expect("an object").remove("managedFields");
        let whole = whole.as_object_mut().expect("an object");
        assert!(whole.remove("kind").is_some() && whole.remove("apiVersion").is_some());
        assert_eq!(json(&cached.raw()), Value::Object(whole.clone()));
        assert_eq!(cached.annotation("example.dev/note").as_deref(), Some("note 3\n"));
    }

    #[test]
    fn a_decoded_value_is_shared_while_somebody_holds_it() {
        let (_core, store) = filled(300);
        let cached = store.list().remove(7);
        let held = cached.get().unwrap();
        assert!(Arc::ptr_eq(&held, &cached.get().unwrap()));
    }

    #[test]
    fn a_kind_that_changes_its_looks_gets_another_dictionary_and_old_objects_stay_readable() {
        let (core, store) = filled(800);
        let noise = |seed: u64, length: u64| -> String {
            let mix = |at: u64| {
                let mixed = (seed * 1_000 + at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
            };
            (0..length).map(|at| format!("{:016x}", mix(at))).collect()
        };
        // Content that all new objects have, and no old object.
        let news = noise(77, 60);
        let mut sizes = Vec::new();
        for number in 0..6_000 {
            let mut changed = pod(1_000 + number % 2_000, 2_000 + number as u64);
            changed["spec"]["containers"][0]["env"] = json!([{"name": "NEWS", "value": news}]);
            put(&core, &changed);
            let key = ObjectKey::new(
                Some(&format!("n-{}", (1_000 + number % 2_000) % 3)),
                &format!("p-{:04}", 1_000 + number % 2_000),
            );
            sizes.push(store.get(&key).map_or(0, |cached| cached.object.content().len()));
        }
        let (first, last) = (sizes[0], sizes[sizes.len() - 1]);
        assert!(last * 2 < first, "{first} bytes at first, {last} in the end");
        for cached in store.list() {
            assert!(cached.get().is_ok(), "{cached:?}");
        }
    }

    #[test]
    fn what_does_not_get_smaller_stays_as_it_is() {
        let core = StoreCore::with_settings(
            ResourceInfo::of::<Pod>(),
            Clock::system(),
            settings::<Pod>(Representation::Cold),
            0,
        );
        for number in 0..400 {
            let tiny = json!({"metadata": {"name": format!("{number}"), "uid": "u"}});
            put(&core, &tiny);
        }
        let store: Store<Pod> = Store::new(core);
        assert_eq!(store.list().len(), 400);
        assert!(store.list().iter().all(|cached| cached.get().is_ok()));
    }
}

mod beside;
mod outside;
