use super::*;

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn names(snapshot: &Snapshot, namespace: &str) -> Vec<String> {
    in_namespace(snapshot, namespace).map(|(key, _)| key.to_string()).collect()
}

#[test]
fn two_writes_never_share_a_revision_even_of_different_resources() {
    let store = Store::new();
    let first = store.put("a", "x", None, named("x")).unwrap();
    let second = store.put("b", "x", None, named("x")).unwrap();
    assert_eq!((first.revision, second.revision, store.revision()), (2, 3, 3));
    assert_eq!(second.value["metadata"]["resourceVersion"], "3");
    assert_eq!((store.resource_revision("a"), store.resource_revision("b")), (2, 3));
}

#[test]
fn a_write_over_another_state_than_expected_changes_nothing() {
    let store = Store::new();
    let first = store.put("a", "x", None, named("x")).unwrap();
    let second = store.put("a", "x", Some(&first), named("x")).unwrap();
    assert_eq!(store.put("a", "x", Some(&first), named("x")).unwrap_err(), PreconditionFailed);
    assert_eq!(store.put("a", "x", None, named("x")).unwrap_err(), PreconditionFailed);
    assert_eq!(store.remove("a", "x", &first).unwrap_err(), PreconditionFailed);
    assert_eq!(store.revision(), second.revision);
}

#[test]
fn an_old_snapshot_shows_what_was_there_then() {
    let store = Store::new();
    let x = store.put("a", "n/x", None, named("x")).unwrap();
    store.put("a", "n/y", None, named("y")).unwrap();
    store.remove("a", "n/x", &x).unwrap();
    assert_eq!(names(&store.snapshot_at("a", 1).unwrap(), ""), Vec::<String>::new());
    assert_eq!(names(&store.snapshot_at("a", 3).unwrap(), ""), ["n/x", "n/y"]);
    assert_eq!(names(&store.snapshot("a").0, ""), ["n/y"]);
    store.compact();
    assert_eq!(store.snapshot_at("a", 3).unwrap_err(), Compacted { current: 4 });
    assert_eq!(names(&store.snapshot_at("a", 4).unwrap(), ""), ["n/y"]);
}

#[test]
fn a_namespace_holds_its_own_objects_and_lists_follow_the_whole_key() {
    let store = Store::new();
    for key in ["ns/a", "ns-z/a", "ns0/a", "n/z"] {
        store.put("a", key, None, named("x")).unwrap();
    }
    let (snapshot, _) = store.snapshot("a");
    assert_eq!(names(&snapshot, ""), ["n/z", "ns-z/a", "ns/a", "ns0/a"]);
    assert_eq!(names(&snapshot, "ns"), ["ns/a"]);
}

#[test]
fn a_cursor_sees_each_change_once_in_small_bites_too() {
    let store = Store::new();
    let (_, mut cursor) = store.follow("a");
    for name in ["x", "y", "z"] {
        store.put("a", name, None, named(name)).unwrap();
        store.put("b", name, None, named(name)).unwrap();
    }
    let mut seen = Vec::new();
    loop {
        let bite = store.changes("a", &mut cursor, 2).unwrap();
        if bite.changes.is_empty() {
            break;
        }
        seen.extend(bite.changes.iter().map(|change| change.key.to_string()));
    }
    assert_eq!(seen, ["x", "y", "z"]);
    assert_eq!(cursor.revision, store.revision());
}

#[test]
fn a_cursor_from_before_the_compaction_is_told_so() {
    let store = Store::new();
    store.put("a", "x", None, named("x")).unwrap();
    let (_, mut slow) = store.follow("a");
    store.put("a", "y", None, named("y")).unwrap();
    store.compact();
    assert!(store.changes("a", &mut slow, 10).is_err());
    assert!(store.follow_from("a", 2).is_err());
    assert!(store.follow_from("a", 3).is_ok());
}

#[test]
fn a_resource_served_anew_ends_the_watches_of_its_former_life() {
    let store = Store::new();
    store.serve("a", true);
    let (_, mut cursor) = store.follow("a");
    let x = store.put("a", "x", None, named("x")).unwrap();
    store.remove("a", "x", &x).unwrap();
    store.end("a");
    let last = store.changes("a", &mut cursor, 10).unwrap();
    assert_eq!((last.changes.len(), last.ended), (2, true));
    store.serve("a", true);
    assert!(store.changes("a", &mut cursor, 10).unwrap().ended);
    assert!(store.follow_from("a", 1).is_err(), "a new resource has no history");
}

#[tokio::test(start_paused = true)]
async fn a_cursor_wakes_when_its_resource_changes() {
    let store = Arc::new(Store::new());
    let (_, mut cursor) = store.follow("a");
    let writer = store.clone();
    let write = async move { writer.put("a", "x", None, named("x")).map(drop) };
    let (_, wrote) = tokio::join!(cursor.changed(), write);
    assert!(wrote.is_ok());
}

/// Generates writes: a key, and whether the key is removed.
fn writes() -> impl proptest::strategy::Strategy<Value = Vec<(u8, bool)>> {
    proptest::collection::vec((0..4_u8, proptest::bool::ANY), 0..60)
}

/// Applies writes; returns the revision and the keys after each.
fn play(store: &Store, writes: &[(u8, bool)]) -> Vec<(u64, Vec<String>)> {
    let mut states = vec![(store.revision(), names(&store.snapshot("a").0, ""))];
    for (key, remove) in writes {
        let name = format!("k{key}");
        let held = store.get("a", &name);
        match (&held, remove) {
            (Some(held), true) => drop(store.remove("a", &name, held).unwrap()),
            (None, true) => {}
            (held, false) => drop(store.put("a", &name, held.as_ref(), named(&name)).unwrap()),
        }
        states.push((store.revision(), names(&store.snapshot("a").0, "")));
    }
    states
}

proptest::proptest! {
    /// A watch from any revision, read in batches of any size, ends in the state that a list shows.
    #[test]
    fn a_list_and_the_changes_after_it_make_the_present(writes in writes(), bite in 1..9_usize) {
        let store = Store::new();
        let states = play(&store, &writes);
        let present = states.last().cloned().unwrap().1;
        for (revision, keys) in states {
            let mut keys: std::collections::BTreeSet<String> = keys.into_iter().collect();
            let mut cursor = store.follow_from("a", revision).unwrap();
            loop {
                let batch = store.changes("a", &mut cursor, bite).unwrap();
                for change in &batch.changes {
                    proptest::prop_assert_eq!(change.before.is_some(), keys.contains(&*change.key));
                    if change.after.is_some() {
                        keys.insert(change.key.to_string());
                    } else {
                        keys.remove(&*change.key);
                    }
                }
                if batch.changes.is_empty() {
                    break;
                }
            }
            proptest::prop_assert_eq!(keys.into_iter().collect::<Vec<_>>(), present.clone());
        }
    }

    /// Every revision can be read unchanged.
    #[test]
    fn old_snapshots_never_change(writes in writes()) {
        let store = Store::new();
        for (revision, keys) in play(&store, &writes) {
            proptest::prop_assert_eq!(names(&store.snapshot_at("a", revision).unwrap(), ""), keys);
        }
    }
}

#[test]
fn a_restored_backup_sets_objects_and_revisions_back_and_ends_cursors() {
    let store = Store::new();
    let put = |name: &str, held: Option<&Arc<StoredObject>>| {
        store.put("pods", name, held, named(name)).unwrap()
    };
    let old = put("a", None);
    let backup = store.backup();
    put("a", Some(&old));
    put("b", None);
    let (_, mut cursor) = store.follow("pods");
    store.restore(&backup);
    assert_eq!(store.revision(), backup.revision());
    assert!(store.get("pods", "b").is_none());
    assert_eq!(store.get("pods", "a").unwrap().revision, old.revision);
    assert!(store.changes("pods", &mut cursor, 9).unwrap().ended);
    assert_eq!(store.follow_from("pods", 4).unwrap().revision, 4, "it waits there");
    store.refuse_future();
    assert_eq!(store.follow_from("pods", 4).unwrap_err(), Compacted { current: 2 });
    let again = put("c", None);
    assert_eq!(again.revision, 3, "versions are given a second time");
}

#[test]
fn the_history_is_bounded_by_bytes_of_all_resources() {
    let store = Store::new();
    let value = |i: usize| json!({"metadata": {"name": "a"}, "data": format!("{i}{}", "x".repeat(4 << 20))});
    let mut last = None;
    for i in 0..40 {
        let resource = if i % 2 == 0 { "a" } else { "b" };
        let expected = store.get(resource, "k");
        last = Some(store.put(resource, "k", expected.as_ref(), value(i)).unwrap());
    }
    let kept: usize = store.inner.lock().resources.values().map(|state| state.bytes).sum();
    assert!(kept <= HISTORY_BYTES, "{kept}");
    let newest = last.unwrap().revision;
    assert!(store.follow_from("a", 1).is_err(), "the oldest changes are gone");
    assert!(store.follow_from("b", newest - 2).is_ok(), "the newest are not");
}

#[test]
fn deleted_objects_count_in_the_history() {
    let store = Store::new();
    for i in 0..40 {
        let value =
            json!({"metadata": {"name": "a"}, "data": format!("{i}{}", "x".repeat(4 << 20))});
        let stored = store.put("a", "k", None, value).unwrap();
        store.remove("a", "k", &stored).unwrap();
    }
    let inner = store.inner.lock();
    let log = &inner.resources["a"].log;
    let kept = log.iter().filter(|change| change.before.is_some()).count();
    assert!(kept < 10, "{kept} deleted objects are kept");
}
