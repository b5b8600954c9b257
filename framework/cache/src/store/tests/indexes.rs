//! Indexes: their values, their members, and their costs when nothing changes.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

static DECODES: AtomicUsize = AtomicUsize::new(0);

fn hosts(object: &ConfigMap) -> Vec<String> {
    DECODES.fetch_add(1, Ordering::Relaxed);
    object.data.iter().flatten().filter(|(k, _)| *k == "host").map(|(_, v)| v.clone()).collect()
}

const BY_FUNCTION: Index<ConfigMap, String> = Index::new("function", hosts);

/// G-C5 (an index fits the objects of the same moment).
#[test]
fn an_index_follows_every_change_and_leaves_no_empty_value_behind() {
    let core = core();
    let store = store(&core);
    put(&core, &with_host("b", 1, "x"));
    put(&core, &with_host("a", 2, "x"));
    for index in [BY_HOST, BY_FUNCTION] {
        assert_eq!(names(&store.by_index(index, "x")), ["a", "b"]);
    }
    put(&core, &with_host("a", 3, "y"));
    put(&core, &with_host("c", 4, "y"));
    for index in [BY_HOST, BY_FUNCTION] {
        assert_eq!(names(&store.by_index(index, "x")), ["b"]);
        assert_eq!(names(&store.by_index(index, "y")), ["a", "c"]);
    }
    delete(&core, &with_host("b", 5, "x"));
    assert!(store.by_index(BY_HOST, "x").is_empty());
    assert_eq!(core.state.read().tables[0].values(), 1);
}

#[test]
fn an_index_on_a_path_does_not_decode_and_a_function_sees_each_version_once() {
    let core = core();
    let store = store(&core);
    let mut bad = with_host("bad", 1, "x");
    bad["data"]["number"] = json!(7);
    put(&core, &bad);
    assert_eq!(names(&store.by_index(BY_HOST, "x")), ["bad"]);
    assert!(store.by_index(BY_FUNCTION, "x").is_empty(), "what does not decode has no values");
    let before = DECODES.load(Ordering::Relaxed);
    put(&core, &with_host("good", 2, "x"));
    assert_eq!(names(&store.by_index(BY_FUNCTION, "x")), ["good"]);
    store.by_index(BY_FUNCTION, "y");
    assert!(DECODES.load(Ordering::Relaxed) > before);
}

static SLOW: std::sync::OnceLock<Store<ConfigMap>> = std::sync::OnceLock::new();

/// An index function that builds another index while a batch is being prepared, as a reader may.
fn builds_another(_: &ConfigMap) -> Vec<String> {
    if let Some(store) = SLOW.get() {
        store.ensure_index(BY_HOST).unwrap();
    }
    Vec::new()
}

#[test]
fn an_index_built_while_a_batch_is_prepared_misses_nothing_of_it() {
    let core = core();
    let store = store(&core);
    store.ensure_index(Index::<_, String>::new("slow", builds_another)).unwrap();
    SLOW.set(store.clone()).unwrap();
    put(&core, &with_host("a", 1, "x"));
    assert_eq!(names(&store.by_index(BY_HOST, "x")), ["a"]);
}

#[test]
fn a_selection_is_by_namespace_and_labels() {
    let core = core();
    for (namespace, name, app) in
        [("n", "a", "x"), ("n", "b", "y"), ("m", "c", "x"), ("n-", "d", "x")]
    {
        let mut object = config_map(name, "u", 1);
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["labels"] = json!({"app": app});
        put(&core, &object);
    }
    let store = store(&core);
    let x = Selector::everything().equals("app", "x");
    assert_eq!(names(&store.select(Some("n"), &x)), ["a"]);
    assert_eq!(names(&store.select(None, &x)), ["c", "a", "d"]);
    assert_eq!(store.select(Some("n"), &Selector::everything()).len(), 2);
}

#[test]
fn children_are_found_by_their_owners_uid() {
    let core = core();
    for (name, owners) in [("a", vec!["x"]), ("b", vec!["y", "x"]), ("c", vec![])] {
        let mut object = config_map(name, "u", 1);
        let owner = |uid: &&str| json!({"apiVersion": "v1", "kind": "O", "name": "o", "uid": uid});
        object["metadata"]["ownerReferences"] = owners.iter().map(owner).collect();
        put(&core, &object);
    }
    assert_eq!(names(&store(&core).owned_by("x")), ["a", "b"]);
    assert_eq!(names(&store(&core).owned_by("y")), ["b"]);
}

const BY_TAGS: Index<ConfigMap, String> = Index::on_path("tags", &["data", "tags", "name"]);

/// An object with several values in an index.
fn with_tags(name: &str, version: u64, tags: &[&str]) -> Value {
    let mut object = config_map(name, "u", version);
    let tag = |tag: &&str| json!({"name": tag});
    object["data"] = json!({"tags": tags.iter().map(tag).collect::<Vec<_>>()});
    object
}

/// `TestThreadSafeStoreDeleteRemovesEmptySetsFromIndex` (the leak of kubernetes#84959).
#[test]
fn mechanism_62_a_value_that_loses_its_last_object_leaves_nothing_behind() {
    let core = core();
    let store = store(&core);
    store.ensure_index(BY_HOST).unwrap();
    for version in 1..500 {
        put(&core, &with_host("a", version, &format!("host-{version}")));
        assert_eq!((store.stats().index_values, store.stats().index_entries), (1, 1));
    }
    delete(&core, &with_host("a", 500, "host-499"));
    let stats = store.stats();
    assert_eq!((stats.index_values, stats.index_entries, stats.namespaces), (0, 0, 0));
    assert_eq!((stats.objects, stats.payload_bytes), (0, 0));
}

/// `TestThreadSafeStoreAddKeepsNonEmptySetPostDeleteFromIndex`.
#[test]
fn mechanism_62_the_other_objects_of_a_value_stay_when_one_goes() {
    let core = core();
    let store = store(&core);
    for (version, name) in ["a", "b", "c"].into_iter().enumerate() {
        put(&core, &with_host(name, version as u64 + 1, "x"));
    }
    store.ensure_index(BY_HOST).unwrap();
    delete(&core, &with_host("b", 9, "x"));
    assert_eq!(names(&store.by_index(BY_HOST, "x")), ["a", "c"]);
    put(&core, &with_host("b", 10, "x"));
    assert_eq!(names(&store.by_index(BY_HOST, "x")), ["a", "b", "c"]);
}

/// `TestThreadSafeStoreIndexingFunctionsWithMultipleValues`, `TestMultiIndexKeys`.
#[test]
fn mechanism_62_values_that_vanish_appear_or_stay_are_handled_apart() {
    let core = core();
    let store = store(&core);
    store.ensure_index(BY_TAGS).unwrap();
    let found = |tag: &str| names(&store.by_index(BY_TAGS, tag)).join(" ");
    put(&core, &with_tags("a", 1, &["x", "y", "y"]));
    put(&core, &with_tags("b", 2, &["y", "z"]));
    assert_eq!([found("x"), found("y"), found("z")], ["a", "a b", "b"]);
    assert_eq!(store.stats().index_entries, 4, "a value counts once an object");
    put(&core, &with_tags("a", 3, &["y", "z"]));
    assert_eq!([found("x"), found("y"), found("z")], ["", "a b", "a b"]);
    put(&core, &with_tags("b", 4, &[]));
    assert_eq!([found("x"), found("y"), found("z")], ["", "a", "a"]);
    put(&core, &with_tags("b", 5, &["y"]));
    assert_eq!([found("x"), found("y"), found("z")], ["", "a b", "a"]);
    delete(&core, &with_tags("a", 6, &[]));
    assert_eq!([found("x"), found("y"), found("z")], ["", "b", ""]);
}

fn panics_at_two(object: &ConfigMap) -> Vec<String> {
    let host = hosts(object);
    assert!(host != ["two"], "an index function with a fault");
    host
}

/// `TestCacheTransactionShouldIndexErrors`, `TestKeyError`: in a batch a fault of a single object
/// does not affect the others.
#[test]
fn an_object_that_an_index_function_fails_on_is_kept_without_values_and_the_batch_goes_on() {
    let core = core();
    let store = store(&core);
    let index = Index::<_, String>::new("faulty", panics_at_two);
    store.ensure_index(index).unwrap();
    let batch = ["one", "two", "three"].into_iter().enumerate().map(|(at, host)| {
        let object = with_host(host, at as u64 + 1, host);
        Delta::Put(sighting(&core, &object, ListGeneration::default()))
    });
    assert_eq!(core.apply(batch.collect()).events.len(), 3);
    assert_eq!(names(&store.by_index(index, "one")), ["one"]);
    assert!(store.by_index(index, "two").is_empty());
    assert_eq!(names(&store.by_index(index, "three")), ["three"]);
    assert!(store.get(&key("two")).is_some());
}

/// The other half of `TestAddIndexersWithConflict`: indexes may come late, and again.
#[test]
fn mechanism_62_an_index_may_be_added_when_objects_are_there() {
    let core = core();
    let store = store(&core);
    for at in 0..300 {
        put(&core, &with_host(&format!("o{at:03}"), at + 1, &format!("h{}", at % 3)));
    }
    store.ensure_index(BY_HOST).unwrap();
    store.ensure_index(BY_HOST).unwrap();
    assert_eq!(store.stats().indexes, 1);
    let found = store.by_index(BY_HOST, "h1");
    assert_eq!(found.len(), 100);
    assert!(found.is_sorted_by(|a, b| a.key() < b.key()), "a large group is sorted, too");
}

/// Values of other types than strings are compared by their text.
#[test]
fn a_number_is_looked_up_as_a_number() {
    const PORT: Index<ConfigMap, u16> = Index::on_path("port", &["data", "port"]);
    let core = core();
    let mut object = config_map("a", "u", 1);
    object["data"] = json!({"port": 8080});
    put(&core, &object);
    let store = store(&core);
    assert_eq!(names(&store.by_index(PORT, &8080_u16)), ["a"]);
    assert_eq!(names(&store.by_text(PORT, "8080")), ["a"]);
    assert!(store.by_index(PORT, &80_u16).is_empty());
}
