//! Indexes on what the kept form does not have.

use super::*;

const BY_NODE: Index<PodView, String> = Index::on_path("node", &["spec", "nodeName"]);

fn views() -> (Arc<Core>, Store<PodView>) {
    let core = core(mode::<PodView>(Representation::Compact));
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
    core.wrote(core.object(&Skim::of(&bytes).unwrap()));
    let found = store.by_index(BY_NODE, "node-0");
    assert_eq!((names(&found).as_str(), found[0].head().resource_version()), ("p-0001", "9"));
    assert_eq!(names(&store.by_index(by_priority, &50)), "p-0001", "what it has is its own");
    assert_eq!(names(&store.by_index(by_priority, &1)), "");
    // (1 + 10) % 4
    put(&core, &pod(1, 10));
    assert_eq!(names(&store.by_index(BY_NODE, "node-0")), "");
    assert_eq!(names(&store.by_index(BY_NODE, "node-3")), "p-0001", "the watch has shown another");
}

/// What was not kept cannot be found: that is an error, and not an answer.
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
        assert_eq!(refused.kind(), crate::ErrorKind::Usage);
        let text = refused.to_string();
        assert!(text.contains("not kept") && text.contains("Wiring::index"), "{text}");
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
    // Without objects there is nothing that could be missing.
    core.apply(vec![Delta::Delete(sighting(&core, &pod(1, 8), 1))]);
    store.ensure_index(by_ip).unwrap();
    put(&core, &pod(1, 9));
    assert_eq!(store.by_index(by_ip, "10.0.0.1").len(), 1);
}

/// What it says when it panics.
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
    refuses_the_spec(mode::<PartialObject>(Representation::Metadata));
}

#[test]
fn of_metadata_only_an_index_on_the_spec_is_refused_also_with_a_transform() {
    let nothing = Some(Transform::drop_paths(&[]));
    refuses_the_spec(Mode::of::<PartialObject>(Representation::Metadata, nothing));
}

fn refuses_the_spec(mode: Mode) {
    let core = core(mode);
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

/// Stands for a reader that asks for a new index while a batch is being prepared.
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
