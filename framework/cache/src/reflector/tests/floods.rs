//! Tests of servers that send without end, or name no end: deadlines hold nevertheless.

use super::*;

/// Deadlines hold also while there is always something to read, so that no timer is polled.
#[tokio::test(start_paused = true)]
async fn b5_a_server_that_floods_a_streaming_list_with_no_progress_is_listed_in_pages() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    // More frames than are read in 31 s of the time that the other task lets pass.
    let flood = vec![frame("MODIFIED", &shown("b", 7, "1")); 60_000];
    source.script(move |number, _| (number == 0).then(|| body(&flood)).flatten());
    let rig = Rig::start(source, ReflectorOptions::new());
    while rig.reads().len() < 2 && rig.status.get() != ReflectorState::Watching {
        tokio::task::yield_now().await;
        tokio::time::advance(Duration::from_secs(5)).await;
    }
    rig.watching().await;
    let kinds: Vec<_> = rig.reads().iter().map(is_stream).collect();
    assert_eq!(kinds[..2], [true, false], "it is not tried as a stream again");
    assert!(rig.troubles.lock().is_empty(), "it has not failed");
    assert_eq!(rig.store.len(), 1);
}

/// The watch that follows would begin at an arbitrary version.
#[tokio::test(start_paused = true)]
async fn b5_an_end_mark_without_a_version_ends_no_list() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    let mark = end_mark(9, "true").replace(r#""resourceVersion":"9""#, r#""resourceVersion":"""#);
    source.script(move |number, _| {
        (number == 0).then(|| hang(std::slice::from_ref(&mark))).flatten()
    });
    let rig = Rig::synced(source, ReflectorOptions::new()).await;
    assert_eq!(versions(&rig.reads()), ["-", "-", "watch 11"]);
    assert_eq!(rig.store.len(), 1);
}
