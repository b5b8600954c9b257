//! Tests of stores that were set back (B8: versions that go back): the hints of a rollback, and the
//! cases without a new list.

use tracing::Level;

use super::*;
use windlass_client::client::test_support::Captured;
use windlass_core::metrics::names;

#[tokio::test(start_paused = true)]
async fn b8_versions_that_go_backwards_begin_an_epoch_in_which_everything_is_read_anew() {
    for stale_ok in [false, true] {
        let (log, _guard) = Captured::at(Level::WARN);
        let options = ReflectorOptions::new().stale_ok(stale_ok);
        let rig = Rig::synced(source(), options).await;
        for i in 0..30 {
            rig.source.put(&map("a", &i.to_string())).unwrap();
        }
        rig.source.put(&map("lost", "1")).unwrap();
        eventually("they come", || rig.store.len() == 2).await;
        rig.source.lose(Some("n"), "lost");
        rig.source.restore(11);
        rig.source.put(&map("a", "restored")).unwrap();
        rig.source.send(error_frame(410, "Expired"));
        eventually("the older state is taken", || rig.version("a").as_deref() == Some("12")).await;
        assert_eq!(rig.value("a").as_deref(), Some("restored"));
        eventually("what is gone is gone", || rig.store.len() == 1).await;
        rig.source.put(&map("a", "later")).unwrap();
        eventually("it goes on", || rig.value("a").as_deref() == Some("later")).await;
        assert_eq!(log.with("went backwards").len(), 1);
        let count =
            rig.environment.metrics.counted(&names::INFORMER_RELISTS, &["configmaps", "new_epoch"]);
        assert_eq!(count, 1);
    }
}

/// A kube-apiserver answers a watch from a version that the store has not reached by 200 and
/// silence.
#[tokio::test(start_paused = true)]
async fn b8_a_store_that_was_set_back_is_found_by_one_small_list_although_the_watch_is_silent() {
    let (log, _guard) = Captured::at(Level::WARN);
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    rig.source.put(&map("a", "first")).unwrap();
    for i in 0..30 {
        rig.source.put(&map("a", &i.to_string())).unwrap();
    }
    rig.source.put(&map("lost", "1")).unwrap();
    eventually("they come", || rig.store.len() == 2).await;
    rig.source.lose(Some("n"), "lost");
    rig.source.put(&map("a", "before")).unwrap();
    rig.source.restore(11);
    rig.source.put(&map("a", "restored")).unwrap();
    let asked = rig.reads().len();
    let took = eventually("the older state is taken", || rig.version("a").as_deref() == Some("12"));
    let took = took.await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(rig.value("a").as_deref(), Some("restored"));
    eventually("what is gone is gone", || rig.store.len() == 1).await;
    rig.source.put(&map("a", "later")).unwrap();
    eventually("it goes on", || rig.value("a").as_deref() == Some("later")).await;
    let reads = &rig.reads()[asked..];
    assert_eq!(
        (rig.version_reads(), reads.len()),
        (1, 2),
        "a version read, a watch, a list: {reads:?}"
    );
    assert_eq!(log.with("its store was set back").len(), 1, "{}", log.text());
    let counted = rig.environment.metrics.counted(&names::INFORMER_SET_BACK, &["configmaps"]);
    assert_eq!(counted, 1);
}

#[tokio::test(start_paused = true)]
async fn b8_a_lost_connection_to_a_store_that_is_well_costs_one_small_list_and_nothing_waits_for_it()
 {
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    rig.source.put(&map("a", "1")).unwrap();
    eventually("it comes", || rig.value("a").is_some()).await;
    let asked = rig.reads().len();
    // The version read gets no answer, and the watch goes on nevertheless.
    rig.source.script(|_, read| is_version_read(read).then_some(MemoryResponse::Never));
    rig.source.break_watches();
    rig.source.put(&map("a", "2")).unwrap();
    let took = eventually("the watch goes on", || rig.value("a").as_deref() == Some("2")).await;
    assert!(took < Duration::from_millis(810), "{took:?}");
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(
        (7..=20).contains(&rig.version_reads()),
        "tried again with pauses: {}",
        rig.version_reads()
    );
    assert_eq!(rig.reads().len(), asked + 1, "one watch: {:?}", rig.reads());
    rig.source.recover();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = rig.version_reads();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(rig.version_reads(), before, "one answer is enough");
}

/// A stream that ends at the regular time, after some data, raises no suspicion; any other end
/// does.
#[tokio::test(start_paused = true)]
async fn b8_only_the_orderly_end_of_a_watch_that_spoke_is_followed_by_no_reading() {
    for (speaks, after, version_reads) in [(true, 300, 0), (false, 300, 1), (true, 100, 1)] {
        let rig = Rig::synced(source().without_streaming_lists(), ReflectorOptions::new()).await;
        rig.asked(2).await;
        let timeout = match &rig.reads()[1] {
            Read::Watch { timeout, .. } => *timeout,
            other => panic!("a watch follows the list: {other:?}"),
        };
        let end = if after == 300 { timeout } else { Duration::from_secs(after) };
        tokio::time::sleep(end - Duration::from_secs(5)).await;
        if speaks {
            rig.source.bookmark();
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
        rig.source.close_watches();
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(rig.version_reads(), version_reads, "{speaks} {after}: {:?}", rig.reads());
    }
}

/// Versions alone show nothing once they have passed the position; a list that is made anyway does,
/// by an object in an older state than the cached state.
#[tokio::test(start_paused = true)]
async fn b8_a_list_that_shows_an_older_state_begins_an_epoch_although_its_version_is_later() {
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    for name in ["old", "same"] {
        rig.source.put(&map(name, "1")).unwrap();
    }
    rig.source.put(&map("old", "2")).unwrap();
    eventually("they come", || rig.value("old").as_deref() == Some("2")).await;
    let old =
        json!({"metadata": {"namespace": "n", "name": "old", "uid": "uid11"}, "data": {"k": "1"}});
    rig.source.restore(10);
    rig.source.put(&old).unwrap();
    for i in 0..9 {
        rig.source.put(&map("other", &i.to_string())).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(rig.value("old").as_deref(), Some("2"), "nothing was seen of it");
    rig.source.expire();
    rig.source.break_watches();
    eventually("the older state is taken", || rig.value("old").as_deref() == Some("1")).await;
    let counted = rig.environment.metrics.counted(&names::INFORMER_SET_BACK, &["configmaps"]);
    assert_eq!(counted, 1);
}

#[tokio::test(start_paused = true)]
async fn b8_a_frame_from_before_the_watch_is_looked_into_once_in_two_minutes() {
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    rig.source.put(&map("a", "1")).unwrap();
    eventually("it comes", || rig.value("a").is_some()).await;
    for _ in 0..20 {
        rig.source.send(frame("MODIFIED", &shown("b", 9, "old")));
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert_eq!((rig.version_reads(), rig.lists()), (1, 1), "{:?}", rig.reads());
    assert_eq!(rig.store.len(), 1);
}
