//! What this process wrote, beside what the watch shows.

use std::time::Duration;

use super::*;

/// G-C8.
#[tokio::test(start_paused = true)]
async fn an_own_write_is_seen_at_once_by_every_kind_of_read() {
    let core = core();
    let store = store(&core);
    put(&core, &with_host("a", 1, "x"));
    store.ensure_index(BY_HOST).unwrap();
    wrote(&core, &with_host("a", 5, "y"));
    wrote(&core, &with_host("new", 6, "y"));
    assert_eq!(store.get(&key("a")).unwrap().head().resource_version(), "5");
    assert_eq!(store.get_seen(&key("a")).unwrap().head().resource_version(), "1");
    assert_eq!(names(&store.list()), ["a", "new"]);
    assert_eq!(store.len(), 2);
    assert_eq!(names(&store.by_index(BY_HOST, "y")), ["a", "new"]);
    assert!(store.by_index(BY_HOST, "x").is_empty());
    core.deleted(&key("a"), "u");
    assert!(store.get(&key("a")).is_none());
    assert_eq!(names(&store.list()), ["new"]);
}

/// G-C8.
#[tokio::test(start_paused = true)]
async fn an_own_write_gives_way_to_the_watch_and_to_time() {
    let core = core();
    let store = store(&core);
    put(&core, &with_host("a", 1, "x"));
    wrote(&core, &with_host("a", 5, "y"));
    put(&core, &with_host("a", 4, "z"));
    assert_eq!(store.get(&key("a")).unwrap().head().resource_version(), "5");
    put(&core, &with_host("a", 6, "z"));
    assert_eq!(store.get(&key("a")).unwrap().head().resource_version(), "6");

    wrote(&core, &with_host("a", 9, "y"));
    assert_eq!(delete(&core, &with_host("a", 10, "y")), ["-a/u@6"]);
    assert!(store.get(&key("a")).is_none(), "a deletion after the write ends it");
    wrote(&core, &with_host("a", 9, "y"));
    assert!(store.get(&key("a")).is_none(), "and a late answer does not bring it back");

    wrote(&core, &with_host("b", 20, "y"));
    tokio::time::advance(Duration::from_secs(9)).await;
    assert!(store.get(&key("b")).is_some() && !store.is_stale(&key("b")));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(store.get(&key("b")).is_none() && store.is_stale(&key("b")));
    relist(&core, 2, "30", &[]);
    assert!(!store.is_stale(&key("b")), "the list is later than the write and does not show it");
}

/// A list that was taken before an own write does not undo it.
#[tokio::test(start_paused = true)]
async fn an_own_creation_survives_a_list_that_is_older() {
    let core = core();
    wrote(&core, &config_map("a", "u", 20));
    relist(&core, 1, "19", &[]);
    assert!(store(&core).get(&key("a")).is_some());
    relist(&core, 2, "21", &[]);
    assert!(store(&core).get(&key("a")).is_none());
}

/// G-C8: a watch that repeats itself shows what stood at the key before the deleted object.
#[tokio::test(start_paused = true)]
async fn g_c8_an_older_frame_does_not_take_back_an_own_deletion() {
    let core = core();
    let store = store(&core);
    put(&core, &config_map("a", "u", 5));
    core.deleted(&key("a"), "u");
    put(&core, &config_map("a", "before", 3));
    assert!(store.get(&key("a")).is_none(), "the deleted object is shown again");
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(store.is_stale(&key("a")), "the watch has not shown the deletion");
}

/// G-C5, G-C8: an own deletion that the watch never confirms hides the object for its time only, from
/// whole lists as from everything else.
#[tokio::test(start_paused = true)]
async fn g_c5_an_object_hidden_by_an_own_deletion_is_listed_again_when_the_deletion_has_lapsed() {
    let core = core();
    let store = store(&core);
    put(&core, &config_map("a", "u", 1));
    put(&core, &config_map("b", "v", 2));
    core.deleted(&key("a"), "u");
    assert_eq!(names(&store.list()), ["b"]);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(store.get(&key("a")).is_some());
    assert_eq!(names(&store.list()), ["a", "b"]);
}

/// G-C8: an index finds what was written, whether it was there before the write or came after it.
#[tokio::test(start_paused = true)]
async fn g_c8_an_index_knows_own_writes_from_before_and_after_it_was_built() {
    let core = core();
    let store = store(&core);
    put(&core, &with_host("seen", 1, "x"));
    wrote(&core, &with_host("early", 5, "y"));
    store.ensure_index(BY_HOST).unwrap();
    assert_eq!(names(&store.by_index(BY_HOST, "y")), ["early"]);
    wrote(&core, &with_host("late", 6, "y"));
    wrote(&core, &with_host("seen", 7, "y"));
    assert_eq!(names(&store.by_index(BY_HOST, "y")), ["early", "late", "seen"]);
    assert!(store.by_index(BY_HOST, "x").is_empty());
    // Another value, a deletion and the watch each take a write out of where it was.
    wrote(&core, &with_host("late", 8, "z"));
    core.deleted(&key("early"), "u");
    put(&core, &with_host("seen", 9, "x"));
    assert!(store.by_index(BY_HOST, "y").is_empty());
    assert_eq!(names(&store.by_index(BY_HOST, "z")), ["late"]);
    assert_eq!(names(&store.by_index(BY_HOST, "x")), ["seen"]);
    assert_eq!(names(&store.snapshot().by_index(BY_HOST, "z")), ["late"]);
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(store.by_index(BY_HOST, "z").is_empty(), "it has lapsed");
}
