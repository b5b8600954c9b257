//! Own writes, beside the state that the watch shows.

use std::time::Duration;

use super::*;

/// G-C8 (the next reconcile sees the writes of the last).
#[tokio::test(start_paused = true)]
async fn an_own_write_is_seen_at_once_by_every_kind_of_read() {
    let core = core();
    let store = store(&core);
    put(&core, &with_host("a", 1, "x"));
    store.ensure_index(BY_HOST).unwrap();
    wrote(&core, &with_host("a", 5, "y"));
    wrote(&core, &with_host("new", 6, "y"));
    assert_eq!(store.get(&key("a")).unwrap().metadata().resource_version(), "5");
    assert_eq!(store.get_seen(&key("a")).unwrap().metadata().resource_version(), "1");
    assert_eq!(names(&store.list()), ["a", "new"]);
    assert_eq!(store.len(), 2);
    assert_eq!(names(&store.by_index(BY_HOST, "y")), ["a", "new"]);
    assert!(store.by_index(BY_HOST, "x").is_empty());
    core.deleted(&key("a"), "u");
    assert!(store.get(&key("a")).is_none());
    assert_eq!(names(&store.list()), ["new"]);
}

/// G-C8 (the next reconcile sees the writes of the last).
#[tokio::test(start_paused = true)]
async fn an_own_write_gives_way_to_the_watch_and_to_time() {
    let core = core();
    let store = store(&core);
    put(&core, &with_host("a", 1, "x"));
    wrote(&core, &with_host("a", 5, "y"));
    put(&core, &with_host("a", 4, "z"));
    assert_eq!(store.get(&key("a")).unwrap().metadata().resource_version(), "5");
    put(&core, &with_host("a", 6, "z"));
    assert_eq!(store.get(&key("a")).unwrap().metadata().resource_version(), "6");

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

/// A list that was taken before an own write does not undo the write.
#[tokio::test(start_paused = true)]
async fn an_own_creation_survives_a_list_that_is_older() {
    let core = core();
    wrote(&core, &config_map("a", "u", 20));
    relist(&core, 1, "19", &[]);
    assert!(store(&core).get(&key("a")).is_some());
    relist(&core, 2, "21", &[]);
    assert!(store(&core).get(&key("a")).is_none());
}

/// G-C8 (own writes are visible): a watch that repeats itself shows the object before the deleted
/// object.
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

/// G-C5 (reads of one moment), G-C8 (own writes are visible): an own deletion that the watch never
/// confirms hides the object only for a limited time, in whole lists as in all other reads.
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

/// G-C8 (own writes are visible): an index finds a written object, also an index that was built
/// after the write.
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
    // Another value, a deletion and the watch each remove a write from the overlay.
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

/// G-C8 (own writes are visible): the deletion of an object whose write was never shown in time
/// counts.
#[tokio::test(start_paused = true)]
async fn g_c8_an_own_deletion_hides_a_creation_that_had_lapsed() {
    let core = core();
    let store = store(&core);
    relist(&core, 1, "9", &[]);
    wrote(&core, &config_map("a", "u", 20));
    tokio::time::advance(Duration::from_secs(11)).await;
    assert!(store.get(&key("a")).is_none() && store.is_stale(&key("a")));
    core.deleted(&key("a"), "u");
    put(&core, &config_map("a", "u", 20));
    assert!(store.get(&key("a")).is_none(), "the watch is late");
    delete(&core, &config_map("a", "u", 21));
    assert!(!store.is_stale(&key("a")));
}

/// G-C8 (own writes are visible): the second of two own deletions does not replace the first.
#[tokio::test(start_paused = true)]
async fn g_c8_each_of_two_own_deletions_hides_what_it_deleted() {
    let core = core();
    let store = store(&core);
    put(&core, &config_map("a", "first", 5));
    core.deleted(&key("a"), "first");
    core.deleted(&key("a"), "second");
    put(&core, &config_map("a", "first", 6));
    assert!(store.get(&key("a")).is_none(), "somebody wrote to it before it was deleted");
    put(&core, &config_map("a", "second", 8));
    assert!(store.get(&key("a")).is_none());
    put(&core, &config_map("a", "third", 10));
    assert_eq!(store.get(&key("a")).unwrap().metadata().uid(), "third");
}

/// G-C8 (own writes are visible): the answers of two tasks come in another order than the writes
/// were made.
#[tokio::test(start_paused = true)]
async fn g_c8_late_answers_neither_bring_back_what_was_deleted_nor_hide_its_successor() {
    let core = core();
    let store = store(&core);
    put(&core, &config_map("a", "first", 5));
    core.deleted(&key("a"), "first");
    wrote(&core, &config_map("a", "first", 7));
    assert!(store.get(&key("a")).is_none(), "a patch from before the deletion");
    wrote(&core, &config_map("a", "second", 9));
    core.deleted(&key("a"), "first");
    assert_eq!(store.get(&key("a")).unwrap().metadata().uid(), "second");
}

/// G-C1 (states in the server's order), G-C8 (own writes are visible): this process alone creates,
/// changes and deletes, with answers in order, while the watch lags and lists anew: readers see the
/// server's state.
#[tokio::test(start_paused = true)]
async fn g_c8_readers_see_what_the_server_has_however_far_the_watch_lags() {
    for seed in 0..300 {
        follow_own_writes(&windlass_core::rng::Rng::seeded(seed));
    }
}

fn follow_own_writes(rng: &windlass_core::rng::Rng) {
    let core = core();
    let store = store(&core);
    // The server's state after each version, and the last version that the watch has shown.
    let mut history: Vec<Option<(u64, u64)>> = vec![None];
    let (mut shown, mut run, mut uids) = (0, 1, 0);
    relist(&core, run, "0", &[]);
    for _ in 0..40 {
        let now = history.len() as u64;
        let last = *history.last().unwrap();
        match (rng.below(5), last) {
            (0 | 1, Some((uid, _))) => {
                history.push(None);
                core.deleted(&key("a"), &format!("u{uid}"));
            }
            (0 | 1, None) => {
                uids += 1;
                history.push(Some((uids, now)));
                wrote(&core, &config_map("a", &format!("u{uids}"), now));
            }
            (2, Some((uid, _))) => {
                history.push(Some((uid, now)));
                wrote(&core, &config_map("a", &format!("u{uid}"), now));
            }
            (3, _) => {
                // A list between the version that was shown and the current version.
                shown += rng.below((history.len() - shown) as u64) as usize;
                run += 1;
                let there = history[shown].map(|(uid, at)| config_map("a", &format!("u{uid}"), at));
                relist(&core, run, &shown.to_string(), there.as_slice());
            }
            _ => watch_on(&core, &history, &mut shown, run, rng),
        }
        let sees = store.get(&key("a")).map(|object| {
            (object.metadata().uid().to_owned(), object.metadata().resource_version().to_owned())
        });
        let is = history.last().unwrap().map(|(uid, at)| (format!("u{uid}"), at.to_string()));
        assert_eq!(sees, is, "the watch has shown {shown} of {history:?}");
    }
}

/// The watch shows some more versions.
fn watch_on(
    core: &Arc<StoreCore>,
    history: &[Option<(u64, u64)>],
    shown: &mut usize,
    number: u32,
    rng: &windlass_core::rng::Rng,
) {
    let run = ListGeneration { epoch: 0, number };
    for _ in 0..rng.below(4) {
        if *shown + 1 == history.len() {
            return;
        }
        *shown += 1;
        let state =
            |at: u64, uid: u64| sighting(core, &config_map("a", &format!("u{uid}"), at), run);
        let delta = match (history[*shown - 1], history[*shown]) {
            (_, Some((uid, at))) => Delta::Put(state(at, uid)),
            (Some((uid, _)), None) => Delta::Delete(state(*shown as u64, uid)),
            (None, None) => continue,
        };
        core.apply(vec![delta]);
    }
}

/// G-C8 (own writes are visible), while a store that was set back is read anew.
#[test]
fn an_own_write_of_a_new_epoch_is_shown_although_what_was_shown_has_a_larger_version() {
    let core = core();
    put(&core, &config_map("a", "u", 1100));
    let newest = || {
        let object = store(&core).get(&key("a")).expect("it is there");
        object.metadata().resource_version().to_owned()
    };
    let write = |version| {
        let bytes = config_map("a", "u", version).to_string();
        core.wrote(core.object(&MetadataScan::of(bytes.as_bytes()).expect("an object")))
    };
    assert!(write(1010), "the same epoch: somebody else was later, or the store was set back");
    assert_eq!(newest(), "1100");
    let run = ListGeneration { epoch: 1, number: 2 };
    let mark = |what, version: &str| {
        let resource_version = Arc::from(version);
        Delta::StreamMark(StreamMark { scope: 0, namespace: None, run, resource_version, what })
    };
    core.apply(vec![mark(MarkKind::NewEpoch, "1009")]);
    assert!(!write(1010));
    assert_eq!(newest(), "1010");
    let listed = sighting(&core, &config_map("a", "u", 1009), run);
    core.apply(vec![Delta::Put(listed)]);
    assert_eq!(newest(), "1010", "the list was read before the write");
    let shown = sighting(&core, &config_map("a", "u", 1010), run);
    core.apply(vec![Delta::Put(shown), mark(MarkKind::Listed, "1010")]);
    assert_eq!((newest(), core.stats().own_writes), ("1010".to_owned(), 0));
    assert!(write(1008), "compared again");
}

/// The watch never shows a dry run: the version says nothing, and no time ends the dry run.
#[tokio::test(start_paused = true)]
async fn a_dry_run_is_seen_whatever_its_version_until_it_is_withdrawn() {
    let core = core();
    let store = store(&core);
    let scanned = |object: &Value| {
        let bytes = object.to_string();
        core.object(&MetadataScan::of(bytes.as_bytes()).unwrap())
    };
    put(&core, &with_host("a", 5, "x"));
    put(&core, &with_host("b", 5, "x"));
    store.ensure_index(BY_HOST).unwrap();
    core.wrote_in_dry_run(scanned(&with_host("a", 5, "y")));
    let mut created = with_host("new", 1, "y");
    created["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    core.wrote_in_dry_run(scanned(&created));
    core.deleted_in_dry_run(&key("b"), "u");
    let is_seen = || {
        assert_eq!(names(&store.list()), ["a", "new"]);
        assert_eq!(names(&store.by_index(BY_HOST, "y")), ["a", "new"]);
        assert!(store.by_index(BY_HOST, "x").is_empty());
        assert!(!store.is_stale(&key("a")) && core.unseen(&key("new")).is_none());
    };
    is_seen();
    tokio::time::advance(Duration::from_secs(3600)).await;
    put(&core, &with_host("a", 7, "z"));
    relist(&core, 2, "30", &[with_host("a", 7, "z"), with_host("b", 5, "x")]);
    is_seen();
    for name in ["a", "b", "new"] {
        core.withdraw(&key(name));
    }
    assert_eq!(names(&store.list()), ["a", "b"]);
    assert_eq!(names(&store.by_index(BY_HOST, "z")), ["a"]);
    assert_eq!(core.stats().own_writes, 0);
    wrote(&core, &with_host("b", 40, "y"));
    core.withdraw(&key("b"));
    assert_eq!(names(&store.by_index(BY_HOST, "y")), ["b"], "a write is not withdrawn");
}
