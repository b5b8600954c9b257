//! Reads: order, one moment, listers.

use super::*;
use windlass_core::error::ErrorKind;

fn placed(namespace: Option<&str>, name: &str, version: u64, app: &str) -> Value {
    let mut object = with_host(name, version, app);
    object["metadata"]["namespace"] = json!(namespace);
    object["metadata"]["labels"] = json!({"app": app});
    object
}

fn keys(found: &[Cached<ConfigMap>]) -> String {
    found.iter().map(|cached| cached.key().to_string()).collect::<Vec<_>>().join(" ")
}

/// `TestListAll`: the empty selector matches everything and reads no labels.
#[test]
fn mechanism_64_a_lister_lists_by_labels_and_namespace() {
    let core = core();
    for (at, (namespace, name, app)) in
        [("n", "b", "x"), ("n", "a", "y"), ("m", "c", "x"), ("n-", "d", "x")].iter().enumerate()
    {
        put(&core, &placed(Some(namespace), name, at as u64 + 1, app));
    }
    let lister = store(&core).lister();
    let (all, x) = (Selector::everything(), Selector::everything().equals("app", "x"));
    assert_eq!(keys(&lister.list(&all)), "m/c n/a n/b n-/d");
    assert_eq!(keys(&lister.list(&x)), "m/c n/b n-/d");
    assert_eq!(keys(&lister.namespace("n").list(&all)), "n/a n/b");
    assert_eq!(keys(&lister.namespace("n").list(&x)), "n/b");
    assert!(lister.namespace("absent").list(&all).is_empty());
}

#[test]
fn mechanism_64_a_lister_says_what_it_did_not_find() {
    let core = core();
    put(&core, &placed(Some("n"), "a", 1, "x"));
    let lister = store(&core).lister();
    assert_eq!(lister.get(&key("a")).unwrap().key(), &key("a"));
    assert_eq!(lister.namespace("n").get("a").unwrap().key(), &key("a"));
    let error = lister.namespace("m").get("a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("\"m/a\" is not in the cache"), "{error}");
}

/// A new version has the predecessor's key, and each key has a single text for both parts.
#[test]
fn mechanism_63_keys_share_their_texts_and_are_found_by_their_parts() {
    let core = core();
    for (version, name) in [(1, "a"), (2, "b"), (3, "a")] {
        put(&core, &config_map(name, "u", version));
    }
    put(&core, &placed(None, "a", 4, "x"));
    let found = store(&core).list();
    assert_eq!(keys(&found), "a n/a n/b", "what has no namespace comes first");
    let texts = |key: &ObjectKey| (key.namespace().unwrap().as_ptr(), key.name().as_ptr());
    put(&core, &config_map("a", "u", 5));
    let now = store(&core).get(&key("a")).unwrap();
    assert_eq!(texts(now.key()), texts(found[1].key()));
    assert_eq!(texts(&now.key().clone()), texts(found[1].key()));
    assert!(store(&core).get(&ObjectKey::new(None, "b")).is_none());
}

#[test]
fn lists_are_in_key_order_whatever_place_objects_have() {
    let core = core();
    let store = store(&core);
    let mut version = 0;
    let mut wanted = std::collections::BTreeSet::new();
    for round in 0..40_u64 {
        for at in 0..5 {
            version += 1;
            let name = format!("o{}", (round * 7 + at * 13) % 50);
            if wanted.remove(&name) {
                delete(&core, &config_map(&name, "u", version));
            } else {
                put(&core, &config_map(&name, "u", version));
                wanted.insert(name);
            }
        }
        let wanted: Vec<_> = wanted.iter().map(String::as_str).collect();
        // Twice: the second list knows the order.
        for _ in 0..2 {
            assert_eq!(names(&store.list()), wanted);
            assert_eq!(names(&store.select(Some("n"), &Selector::everything())), wanted);
        }
    }
}

#[test]
fn a_large_namespace_is_listed_in_order_beside_others() {
    let core = core();
    let store = store(&core);
    for at in 0..300_u64 {
        let namespace = ["a", "b", "c"][(at % 3) as usize];
        put(&core, &placed(Some(namespace), &format!("o{:03}", (at * 101) % 300), at + 1, "x"));
    }
    let cold = store.select(Some("b"), &Selector::everything());
    assert_eq!(store.list().len(), 300);
    let warm = store.select(Some("b"), &Selector::everything());
    for found in [cold, warm] {
        assert_eq!(found.len(), 100);
        assert!(found.iter().all(|cached| cached.key().namespace() == Some("b")));
        assert!(found.is_sorted_by(|a, b| a.key() < b.key()));
    }
}

/// G-C5 (reads of one moment).
#[test]
fn g_c5_a_snapshot_answers_from_its_moment_whatever_happens_after_it() {
    let core = core();
    let store = store(&core);
    for (version, name) in [(1, "a"), (2, "b"), (3, "c")] {
        put(&core, &with_host(name, version, "x"));
    }
    store.ensure_index(BY_HOST).unwrap();
    let before = store.snapshot();
    put(&core, &with_host("a", 4, "y"));
    put(&core, &with_host("a", 5, "z"));
    delete(&core, &with_host("b", 6, "x"));
    put(&core, &with_host("d", 7, "x"));
    let after = before.clone();
    for snapshot in [&before, &after] {
        assert_eq!(names(&snapshot.list()), ["a", "b", "c"]);
        assert_eq!(snapshot.len(), 3);
        assert_eq!(names(&snapshot.by_index(BY_HOST, "x")), ["a", "b", "c"]);
        assert!(snapshot.by_index(BY_HOST, "z").is_empty());
        assert_eq!(snapshot.get(&key("a")).unwrap().metadata().resource_version(), "1");
        assert!(snapshot.get(&key("d")).is_none());
        assert_eq!(names(&snapshot.select(Some("n"), &Selector::everything())), ["a", "b", "c"]);
    }
    assert_eq!(names(&store.by_index(BY_HOST, "x")), ["c", "d"]);
    relist(&core, 2, "20", &[]);
    core.apply(vec![listed(3, "21", MarkKind::Absent)]);
    assert!(store.is_empty() && before.len() == 3);
}

/// G-C5 (reads of one moment), G-C8 (own writes are visible).
#[tokio::test(start_paused = true)]
async fn g_c5_a_snapshot_shows_the_own_writes_of_its_moment_and_no_later_ones() {
    let core = core();
    let store = store(&core);
    put(&core, &with_host("a", 1, "x"));
    put(&core, &with_host("gone", 2, "x"));
    store.ensure_index(BY_HOST).unwrap();
    wrote(&core, &with_host("a", 5, "y"));
    core.deleted(&key("gone"), "u");
    let snapshot = store.snapshot();
    wrote(&core, &with_host("b", 6, "y"));
    put(&core, &with_host("a", 7, "z"));
    put(&core, &with_host("gone", 8, "z"));
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    assert_eq!(names(&snapshot.list()), ["a"]);
    assert_eq!(names(&snapshot.by_index(BY_HOST, "y")), ["a"]);
    assert!(snapshot.by_index(BY_HOST, "x").is_empty());
    assert_eq!(snapshot.get(&key("a")).unwrap().metadata().resource_version(), "5");
}

#[test]
fn a_snapshot_that_nobody_holds_costs_nothing_any_more() {
    let core = core();
    let store = store(&core);
    put(&core, &with_host("a", 1, "x"));
    let old = Arc::downgrade(&core.get_seen(&key("a")).unwrap());
    let snapshot = store.snapshot();
    put(&core, &with_host("a", 2, "x"));
    assert!(old.upgrade().is_some(), "the snapshot has it");
    drop(snapshot);
    assert!(old.upgrade().is_none());
}

/// G-C5 (reads of one moment): the part of `TestHammerController` that concerns the store. Every
/// write moves an object from a value to the next, so at any moment each object has exactly one.
#[test]
fn g_c5_readers_beside_a_writer_see_each_object_once_in_list_and_index() {
    const OBJECTS: u64 = 40;
    let core = core();
    let store = store(&core);
    store.ensure_index(BY_HOST).unwrap();
    let write = |round: u64| {
        let put = |at: u64| {
            let object =
                with_host(&format!("o{at}"), round * OBJECTS + at + 1, &format!("h{}", round % 3));
            Delta::Put(sighting(&core, &object, ListGeneration::default()))
        };
        core.apply((0..OBJECTS).map(put).collect());
    };
    write(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (1..60).for_each(write));
        while !writer.is_finished() {
            let snapshot = store.snapshot();
            let hosts = ["h0", "h1", "h2"].map(|host| snapshot.by_index(BY_HOST, host));
            let mut found: Vec<_> = hosts.iter().flatten().collect();
            found.sort_by(|a, b| a.key().cmp(b.key()));
            let listed = snapshot.list();
            assert_eq!(found.len(), listed.len());
            assert!(found.iter().zip(&listed).all(|(found, listed)| found.is_same(listed)));
            let live = store.by_index(BY_HOST, "h1");
            let is_there = |cached: &Cached<ConfigMap>| {
                String::from_utf8_lossy(&cached.raw()).contains("\"h1\"")
            };
            assert!(live.iter().all(is_there));
        }
    });
}

/// `TestThreadSafeStoreRV`, `TestStoreResourceVersion`.
#[test]
fn the_stores_version_goes_forward_with_lists_events_and_bookmarks() {
    let core = core();
    let store = store(&core);
    assert_eq!(store.resource_version(), "");
    relist(&core, 1, "9", &[config_map("a", "u", 5)]);
    assert_eq!(store.resource_version(), "9");
    core.apply(vec![listed(1, "12", MarkKind::Reached)]);
    assert_eq!(store.resource_version(), "12");
    core.apply(vec![listed(1, "11", MarkKind::Reached)]);
    assert_eq!(store.resource_version(), "12");
    core.apply(vec![listed(2, "3", MarkKind::NewEpoch), listed(2, "3", MarkKind::Listed)]);
    assert_eq!(store.resource_version(), "3", "a new epoch begins anew");
}

/// client-go needs a detector because the cache of client-go hands out pointers that can be written
/// through.
#[test]
fn mechanism_65_what_a_reader_changes_is_a_copy_of_its_own() {
    let core = core();
    put(&core, &with_host("a", 1, "before"));
    let store = store(&core);
    let (mut mine, yours) = {
        let cached = store.get(&key("a")).unwrap();
        (cached.get().unwrap(), cached.get().unwrap())
    };
    assert!(Arc::ptr_eq(&mine, &yours), "decoded once");
    assert!(Arc::get_mut(&mut mine).is_none(), "and nobody can write where others read");
    Arc::make_mut(&mut mine).data.as_mut().unwrap().insert("host".to_owned(), "after".to_owned());
    assert_eq!(yours.data.as_ref().unwrap()["host"], "before");
    let again = store.get(&key("a")).unwrap().get().unwrap();
    assert_eq!(again.data.as_ref().unwrap()["host"], "before");
}
