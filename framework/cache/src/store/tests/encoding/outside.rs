//! Indexes on fields that the kept form lacks.

use super::*;

const BY_NODE: Index<PodView, String> = Index::on_path("node", &["spec", "nodeName"]);

fn views() -> (Arc<StoreCore>, Store<PodView>) {
    let core = core(settings::<PodView>(Representation::Compact));
    let store = Store::new(Arc::clone(&core));
    (core, store)
}

#[test]
fn an_index_outside_of_a_projection_is_evaluated_when_the_object_comes() {
    let (core, store) = views();
    store.ensure_index(BY_NODE).unwrap();
    put(&core, &pod(1, 7));
    assert_eq!(names(&store.by_index(BY_NODE, "node-0")), "p-0001");
    let before = store.snapshot();
    put(&core, &pod(1, 8));
    assert_eq!(names(&store.by_index(BY_NODE, "node-1")), "p-0001");
    assert_eq!(names(&store.by_index(BY_NODE, "node-0")), "");
    assert_eq!(names(&before.by_index(BY_NODE, "node-0")), "p-0001", "as it was");
    assert_eq!(names(&before.by_index(BY_NODE, "node-1")), "");
}

#[test]
fn an_own_write_through_a_projection_keeps_the_index_values_of_the_fields_it_does_not_have() {
    let (core, store) = views();
    store.ensure_index(BY_NODE).unwrap();
    let by_priority: Index<PodView, i32> = Index::on_path("priority", &["spec", "priority"]);
    put(&core, &pod(1, 7));
    let mut own = (*store.list()[0].get().unwrap()).clone();
    own.metadata.resource_version = Some("9".to_owned());
    own.priority = Some(50);
    let bytes = serde_json::to_vec(&own).unwrap();
    core.wrote(core.object(&MetadataScan::of(&bytes).unwrap()));
    let found = store.by_index(BY_NODE, "node-0");
    assert_eq!((names(&found).as_str(), found[0].metadata().resource_version()), ("p-0001", "9"));
    assert_eq!(names(&store.by_index(by_priority, &50)), "p-0001", "what it has is its own");
    assert_eq!(names(&store.by_index(by_priority, &1)), "");
    // (1 + 10) % 4
    put(&core, &pod(1, 10));
    assert_eq!(names(&store.by_index(BY_NODE, "node-0")), "");
    assert_eq!(names(&store.by_index(BY_NODE, "node-3")), "p-0001", "the watch has shown another");
}

/// Fields that were not kept cannot be found: that is an error, and not an answer.
#[test]
fn an_index_on_what_was_not_kept_is_refused_once_objects_are_there() {
    let (core, store) = views();
    let by_ip: Index<PodView, String> = Index::on_path("ip", &["status", "podIP"]);
    let by_phase: Index<PodView, String> = Index::on_path("phase", &["status", "phase"]);
    let by_note: Index<PodView, String> =
        Index::on_path("note", &["metadata", "annotations", "example.dev/note"]);
    let by_app: Index<PodView, String> = Index::on_path("app", &["metadata", "labels", "app"]);
    put(&core, &pod(1, 7));
    for index in [by_ip, by_note] {
        let refused = store.ensure_index(index).unwrap_err();
        assert_eq!(refused.kind(), windlass_core::ErrorKind::Usage);
        let text = refused.to_string();
        assert!(text.contains("not kept") && text.contains("ControllerBuilder::index"), "{text}");
        // A reconciler would take an empty answer for the truth.
        assert_eq!(panics(|| store.by_index(index, "10.0.0.1")), text);
        assert_eq!(panics(|| store.snapshot().by_index(index, "10.0.0.1")), text);
        assert_eq!(store.stats().indexes, 0);
    }
    assert_eq!(store.by_index(by_phase, "Running").len(), 1, "what it has is kept");
    assert_eq!(store.by_index(by_app, "app-1").len(), 1);
    assert_eq!(
        store
            .by_index(Index::new("n", |pod: &PodView| vec![pod.name().to_owned()]), "p-0001")
            .len(),
        1
    );
    // Without objects no value can be missing.
    core.apply(vec![Delta::Delete(sighting(&core, &pod(1, 8), 1))]);
    store.ensure_index(by_ip).unwrap();
    put(&core, &pod(1, 9));
    assert_eq!(store.by_index(by_ip, "10.0.0.1").len(), 1);
}

/// A part of a Pod without labels.
#[derive(Projection, Clone, Debug)]
#[projection(of = Pod, skip(labels, annotations))]
struct Unlabelled {
    metadata: ObjectMeta,
    #[projection(path = "status.phase")]
    phase: Option<String>,
}

#[test]
fn a_late_index_on_a_label_finds_what_is_kept_of_a_projection_that_skips_labels() {
    let core = core(settings::<Unlabelled>(Representation::Compact));
    let store: Store<Unlabelled> = Store::new(Arc::clone(&core));
    put(&core, &pod(1, 7));
    let by_app: Index<Unlabelled, String> = Index::on_path("app", &["metadata", "labels", "app"]);
    store.ensure_index(by_app).unwrap();
    let before = store.snapshot();
    assert_eq!(names(&store.by_index(by_app, "app-1")), "p-0001");
    core.apply(vec![Delta::Delete(sighting(&core, &pod(1, 8), 1))]);
    assert_eq!(names(&store.by_index(by_app, "app-1")), "");
    assert_eq!(names(&before.by_index(by_app, "app-1")), "p-0001");
}

/// Returns the message of a panic.
fn panics<R>(read: impl FnOnce() -> R) -> String {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
    let text = outcome.err().expect("it panics").downcast::<String>();
    *text.expect("it says why")
}

#[test]
fn who_asks_for_a_refused_index_keeps_no_reader_waiting() {
    let (core, store) = views();
    put(&core, &pod(1, 7));
    let by_ip: Index<PodView, String> = Index::on_path("ip", &["status", "podIP"]);
    let _reading = core.state.read();
    let (sender, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(store.ensure_index(by_ip).is_err()));
    let limit = std::time::Duration::from_secs(10);
    assert_eq!(answer.recv_timeout(limit), Ok(true), "it does not wait for readers");
}

#[test]
fn of_metadata_only_an_index_on_the_spec_is_refused_also_before_objects_are_there() {
    refuses_the_spec(settings::<PartialObject>(Representation::Metadata));
}

#[test]
fn of_metadata_only_an_index_on_the_spec_is_refused_also_with_a_transform() {
    let nothing = Some(Transform::drop_paths(&[]));
    refuses_the_spec(StoreSettings::of::<PartialObject>(Representation::Metadata, nothing));
}

fn refuses_the_spec(settings: StoreSettings) {
    let core = core(settings);
    let store: Store<PartialObject> = Store::new(Arc::clone(&core));
    let by_node: Index<PartialObject, String> = Index::on_path("node", &["spec", "nodeName"]);
    let by_app: Index<PartialObject, String> =
        Index::on_path("app", &["metadata", "labels", "app"]);
    for _ in ["empty", "filled"] {
        let refused = store.ensure_index(by_node).unwrap_err().to_string();
        assert!(refused.contains("only the metadata"), "{refused}");
        assert_eq!(panics(|| store.by_index(by_node, "node-0")), refused);
        put(&core, &pod(1, 7));
    }
    assert_eq!(store.by_index(by_app, "app-1").len(), 1);
}

static RACED: std::sync::OnceLock<Store<PodView>> = std::sync::OnceLock::new();

/// An index function that builds another index while a batch is being prepared, as a reader may.
fn builds_another(_: &PodView) -> Vec<String> {
    if let Some(store) = RACED.get() {
        store.ensure_index(BY_NODE).unwrap();
    }
    Vec::new()
}

#[test]
fn an_index_that_comes_while_the_first_objects_are_prepared_has_their_values_kept() {
    let (core, store) = views();
    store.ensure_index(Index::<_, String>::new("slow", builds_another)).unwrap();
    RACED.set(store.clone()).unwrap();
    put(&core, &pod(1, 7));
    let before = store.snapshot();
    assert_eq!(names(&store.by_index(BY_NODE, "node-0")), "p-0001");
    put(&core, &pod(1, 8));
    assert_eq!(names(&before.by_index(BY_NODE, "node-0")), "p-0001");
}

/// A Pod's type as an operator may declare the type: without the node.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct OwnPod {
    #[serde(flatten)]
    whole: Whole,
}

/// The same, without `flatten`.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Whole {
    metadata: ObjectMeta,
    spec: OwnSpec,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct OwnSpec {
    priority: i32,
}

macro_rules! a_resource {
    ($type:ident, $($metadata:tt)*) => {
        impl Resource for $type {
            type Kind = Self;

            fn static_info() -> Option<ResourceInfo> {
                Some(ResourceInfo::of::<Pod>())
            }

            fn metadata(&self) -> &ObjectMeta {
                &self.$($metadata)*
            }

            fn metadata_mut(&mut self) -> &mut ObjectMeta {
                &mut self.$($metadata)*
            }
        }
    };
}

a_resource!(OwnPod, whole.metadata);
a_resource!(Whole, metadata);

const PRIORITY: &[&str] = &["spec", "priority"];
const NODE: &[&str] = &["spec", "nodeName"];

/// Whether a type has a field cannot be known from the type: an empty answer may be wrong.
#[test]
fn a_late_index_on_a_path_outside_of_the_metadata_of_a_kept_value_is_refused() {
    fn late<K: Resource>(path: &'static [&'static str]) -> Result<usize, String> {
        let core = core(settings::<K>(Representation::Typed));
        let store: Store<K> = Store::new(Arc::clone(&core));
        put(&core, &pod(1, 7));
        let index: Index<K, String> = Index::on_path("late", path);
        store.ensure_index(index).map_err(|refused| refused.to_string())?;
        Ok(["1", "node-0", "app-1"].iter().map(|value| store.by_text(index, value).len()).sum())
    }
    for refused in [late::<Whole>(NODE), late::<OwnPod>(NODE), late::<Pod>(NODE)] {
        let refused = refused.unwrap_err();
        for part in ["`spec.nodeName`", "not kept", "ControllerBuilder::index", "Index::new"] {
            assert!(refused.contains(part), "{refused}");
        }
    }
    assert!(late::<Whole>(PRIORITY).is_err() && late::<PodView>(PRIORITY).is_err());
    assert_eq!(late::<DynamicObject>(NODE), Ok(1), "it keeps every member");
    for late in [late::<Whole>, late::<OwnPod>, late::<Pod>, late::<PodView>] {
        assert_eq!(late(&["metadata", "labels", "app"]), Ok(1));
        assert_eq!(late(&["metadata", "ownerReferences", "uid"]), Ok(0));
    }
}

#[test]
fn a_late_index_by_a_function_finds_the_fields_of_a_kept_value() {
    let core = core(settings::<Whole>(Representation::Typed));
    let store: Store<Whole> = Store::new(Arc::clone(&core));
    put(&core, &pod(1, 7));
    let by_priority: Index<Whole, i32> = Index::new("late", |pod| vec![pod.spec.priority]);
    assert_eq!(names(&store.by_index(by_priority, &1)), "p-0001");
}

#[test]
fn an_own_write_that_clears_a_field_of_a_kept_value_is_not_found_by_it() {
    fn clears<K: Resource>(path: &'static [&'static str], old: &str, clear: fn(&mut K)) {
        let core = core(settings::<K>(Representation::Typed));
        let store: Store<K> = Store::new(Arc::clone(&core));
        let index: Index<K, String> = Index::on_path("early", path);
        store.ensure_index(index).unwrap();
        put(&core, &pod(1, 7));
        assert_eq!(names(&store.by_text(index, old)), "p-0001");
        let mut own = (*store.list()[0].get().unwrap()).clone();
        own.metadata_mut().resource_version = Some("9".to_owned());
        clear(&mut own);
        let bytes = serde_json::to_vec(&own).unwrap();
        core.wrote(core.object(&MetadataScan::of(&bytes).unwrap()));
        assert_eq!(names(&store.by_text(index, old)), "", "the write has no such value");
    }
    clears::<Pod>(NODE, "node-0", |pod| pod.spec.as_mut().unwrap().node_name = None);
    clears::<PodView>(PRIORITY, "1", |pod| pod.priority = None);
}

#[test]
fn g_c5_an_early_index_on_a_field_that_a_kept_type_does_not_have_answers_as_any_other() {
    fn lives<K: Resource>() {
        let core = core(settings::<K>(Representation::Typed));
        let store: Store<K> = Store::new(Arc::clone(&core));
        let by_node: Index<K, String> = Index::on_path("node", NODE);
        store.ensure_index(by_node).unwrap();
        put(&core, &pod(1, 7));
        let before = store.snapshot();
        put(&core, &pod(1, 8));
        assert_eq!(names(&store.by_index(by_node, "node-1")), "p-0001");
        assert_eq!(names(&before.by_index(by_node, "node-0")), "p-0001", "as it was");
        let mut own = (*store.list()[0].get().unwrap()).clone();
        own.metadata_mut().resource_version = Some("9".to_owned());
        let bytes = serde_json::to_vec(&own).unwrap();
        core.wrote(core.object(&MetadataScan::of(&bytes).unwrap()));
        let found = store.by_index(by_node, "node-1");
        assert_eq!(
            (names(&found).as_str(), found[0].metadata().resource_version()),
            ("p-0001", "9")
        );
    }
    lives::<Whole>();
    lives::<OwnPod>();
    lives::<Pod>();
}

#[test]
fn a_path_that_ends_at_no_value_is_refused_in_every_form() {
    fn refused<K: Resource>(
        representation: Representation,
        path: &'static [&'static str],
    ) -> String {
        let store: Store<K> = Store::new(core(settings::<K>(representation)));
        let index: Index<K, String> = Index::on_path("none", path);
        let refused = store.ensure_index(index).expect_err("it could find nothing");
        assert_eq!(refused.kind(), windlass_core::ErrorKind::Usage);
        assert_eq!(panics(|| store.by_index(index, "x")), refused.to_string());
        refused.to_string()
    }
    for form in [Representation::Compact, Representation::Typed, Representation::Cold] {
        assert!(refused::<Pod>(form, &[]).contains("its path is empty"));
        assert!(refused::<Pod>(form, &["metadata"]).contains("the path ends at an object"));
        assert!(refused::<PodView>(form, &["metadata", "labels"]).contains("ends at an object"));
        let owners = &["metadata", "ownerReferences"];
        assert!(refused::<PodView>(form, owners).contains("name a field below it"));
    }
}

#[test]
fn a_function_sees_no_field_that_was_not_kept() {
    let core = core(settings::<PartialObject>(Representation::Metadata));
    let store: Store<PartialObject> = Store::new(Arc::clone(&core));
    put(&core, &pod(1, 7));
    let spec: Index<PartialObject, String> = Index::new("spec", |object| {
        let whole = serde_json::to_value(object).unwrap_or_default();
        whole["spec"]["nodeName"].as_str().map(str::to_owned).into_iter().collect()
    });
    assert_eq!(names(&store.by_index(spec, "node-0")), "");
}
