//! Unconfirmed own writes: which are remembered, for how long, and the events that end this.

use std::time::Duration;

use super::*;
use crate::store::Unconfirmed;

const SECOND: Duration = Duration::from_secs(1);

impl StoreCore {
    fn remembered(&self) -> usize {
        self.stats().own_writes
    }

    /// Applies a milestone of the whole scope at that version.
    fn mark(&self, version: &str, what: MarkKind) {
        let run = ListGeneration { epoch: u32::from(what == MarkKind::NewEpoch), number: 2 };
        let resource_version = Arc::from(version);
        let mark = StreamMark { scope: 0, namespace: None, run, resource_version, what };
        self.apply(vec![Delta::StreamMark(mark)]);
    }
}

fn versioned(name: &str, uid: &str, version: &str) -> Value {
    let mut object = config_map(name, uid, 0);
    object["metadata"]["resourceVersion"] = json!(version);
    object
}

#[tokio::test(start_paused = true)]
async fn an_own_write_is_remembered_until_the_watch_has_shown_it_or_what_came_after_it() {
    let core = core();
    for name in ["same", "later", "gone", "other"] {
        wrote(&core, &config_map(name, "u", 5));
        assert_eq!(core.unseen(&key(name)), Some(Unconfirmed::Shown));
    }
    wrote(&core, &config_map("open", "u", 5));
    assert_eq!((core.remembered(), core.unseen(&key("none"))), (5, None));
    put(&core, &config_map("open", "u", 4));
    assert_eq!(core.remembered(), 5, "older");
    put(&core, &config_map("same", "u", 5));
    put(&core, &config_map("later", "u", 6));
    delete(&core, &config_map("gone", "u", 6));
    put(&core, &config_map("other", "another", 7));
    assert_eq!(core.remembered(), 1);
    tokio::time::advance(10 * SECOND).await;
    for name in ["same", "later", "gone", "other"] {
        assert_eq!((core.unseen(&key(name)), core.is_stale(&key(name))), (None, false), "{name}");
    }
    assert_eq!(
        (core.unseen(&key("open")), core.is_stale(&key("open"))),
        (Some(Unconfirmed::Expired), true)
    );
}

#[tokio::test(start_paused = true)]
async fn an_own_deletion_is_remembered_until_the_watch_shows_it_or_a_successor() {
    let core = core();
    // A server's version of a deletion may be that of the object's last state.
    for (name, uid, version) in [("same", "u", 5), ("later", "u", 9), ("another", "v", 9)] {
        put(&core, &config_map(name, "u", 5));
        core.deleted(&key(name), "u");
        assert_eq!(core.unseen(&key(name)), Some(Unconfirmed::Shown));
        delete(&core, &config_map(name, uid, version));
        assert_eq!((core.unseen(&key(name)), core.remembered()), (None, 0), "{name}");
    }
    put(&core, &config_map("next", "u", 5));
    core.deleted(&key("next"), "u");
    put(&core, &config_map("next", "v", 9));
    assert_eq!(core.remembered(), 0);
    wrote(&core, &config_map("before", "u", 5));
    core.deleted(&key("before"), "u");
    delete(&core, &config_map("before", "v", 4));
    assert_eq!(core.remembered(), 1, "that was the deletion of an object that was there before");
}

/// Versions that are no numbers have no order: the uid identifies the deleted object.
#[tokio::test(start_paused = true)]
async fn without_an_order_of_versions_a_deletion_ends_own_writes_of_its_own_object_only() {
    for (uid, left) in [("u", 0), ("v", 1)] {
        let core = core();
        wrote(&core, &versioned("a", "u", "x1"));
        delete(&core, &versioned("a", uid, "x2"));
        assert_eq!(core.remembered(), left, "{uid}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_was_set_back_and_a_kind_that_is_gone_end_what_is_known_of_own_writes() {
    for what in [MarkKind::NewEpoch, MarkKind::Absent] {
        let core = core();
        let store = store(&core);
        put(&core, &config_map("b", "v", 3));
        wrote(&core, &config_map("a", "u", 20));
        core.deleted(&key("b"), "v");
        assert_eq!((core.remembered(), names(&store.list())), (2, vec!["a"]));
        core.mark("9", what);
        assert_eq!((core.remembered(), core.unseen(&key("a"))), (0, None), "{what:?}");
        assert!(store.get(&key("a")).is_none(), "{what:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_four_own_deletions_at_a_key_are_remembered() {
    let core = core();
    let store = store(&core);
    put(&core, &config_map("a", "u1", 5));
    for uid in ["u1", "u2", "u3", "u4"] {
        core.deleted(&key("a"), uid);
    }
    put(&core, &config_map("a", "u1", 6));
    assert!(store.get(&key("a")).is_none(), "somebody wrote to it before it was deleted");
    core.deleted(&key("a"), "u5");
    put(&core, &config_map("a", "u1", 7));
    assert_eq!(store.get(&key("a")).unwrap().metadata().uid(), "u1", "and not more of them");
}

/// A write from a time when the watch was behind may lapse; the deletion of the object that the
/// watch then shows must count.
#[tokio::test(start_paused = true)]
async fn a_deletion_counts_from_the_moment_at_which_a_later_write_has_lapsed() {
    for (waits, sees) in [(10 * SECOND - SECOND / 1000, Some("second")), (10 * SECOND, None)] {
        let core = core();
        let store = store(&core);
        put(&core, &config_map("a", "first", 5));
        wrote(&core, &config_map("a", "second", 9));
        tokio::time::advance(waits).await;
        core.deleted(&key("a"), "first");
        let shown = store.get(&key("a"));
        assert_eq!(shown.as_ref().map(|shown| shown.metadata().uid()), sees, "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_own_write_that_is_never_shown_is_forgotten_when_the_watch_cannot_be_silent_any_longer()
{
    // Remembered for twice the silence of a watch, and pruned once in ten seconds.
    for (silence, waits, left) in [(2, 6, 2), (5, 9, 2), (5, 10, 1), (5, 11, 1), (6, 11, 2)] {
        let core = core();
        core.silent_for_at_most(silence * SECOND);
        wrote(&core, &config_map("a", "u", 5));
        tokio::time::advance(waits * SECOND).await;
        wrote(&core, &config_map("b", "u", 6));
        assert_eq!(core.remembered(), left, "{silence} s of silence, after {waits} s");
    }
    let core = core();
    put(&core, &config_map("b", "v", 3));
    wrote(&core, &config_map("a", "u", 5));
    tokio::time::advance(1259 * SECOND).await;
    core.deleted(&key("b"), "v");
    assert_eq!(core.remembered(), 2, "unless told otherwise, for 21 minutes");
    tokio::time::advance(11 * SECOND).await;
    core.deleted(&key("b"), "v");
    assert_eq!(core.remembered(), 1);
}
