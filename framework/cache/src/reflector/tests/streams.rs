//! Tests of streaming lists (mechanism 57): upstream's rows 91 and 92.

use super::*;

fn stale_frames() -> Vec<String> {
    vec![frame("ADDED", &shown("a", 5, "1")), frame("ADDED", &shown("b", 7, "1"))]
}

#[tokio::test(start_paused = true)]
async fn mechanism_57_a_stream_is_not_in_step_before_its_end_mark_and_goes_on_as_the_watch() {
    let source = source();
    source.script(|number, read| {
        (number == 0 && is_stream(read)).then(|| hang(&stale_frames())).flatten()
    });
    let rig = Rig::start(source, ReflectorOptions::new());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(rig.status.get(), ReflectorState::Listing);
    // The value of the annotation counts, not its presence.
    rig.source.send(end_mark(9, "false"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(rig.status.get(), ReflectorState::Listing);
    rig.source.send(end_mark(9, "true"));
    rig.watching().await;
    assert_eq!(rig.store.len(), 2);
    rig.source.send(frame("ADDED", &shown("c", 12, "1")));
    eventually("it goes on as the watch", || rig.value("c").is_some()).await;
    assert_eq!(rig.source.requests().len(), 1, "one request for list and watch");
    for value in ["1", "2"] {
        rig.source.put(&map("d", value)).unwrap();
    }
    rig.source.break_watches();
    rig.asked(2).await;
    assert_eq!(versions(&rig.reads()), ["-", "watch 12"]);
}

#[tokio::test(start_paused = true)]
async fn mechanism_57_changes_that_come_within_the_stream_are_applied() {
    let source = source();
    let mut frames = stale_frames();
    frames.push(frame("MODIFIED", &shown("a", 8, "2")));
    frames.push(frame("DELETED", &shown("b", 9, "1")));
    frames.push(end_mark(9, "true"));
    source.script(move |number, _| if number == 0 { hang(&frames) } else { None });
    let rig = Rig::synced(source, ReflectorOptions::new()).await;
    assert_eq!(rig.value("a").as_deref(), Some("2"));
    assert_eq!(rig.store.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn mechanism_57_it_is_not_asked_for_when_it_is_off_or_the_source_cannot() {
    let off = Rig::synced(source(), ReflectorOptions::new().streaming(false)).await;
    let cannot = source().without_streaming_lists();
    let cannot = Rig::synced(cannot, ReflectorOptions::new()).await;
    for rig in [off, cannot] {
        assert!(rig.reads().iter().all(|read| !is_stream(read)), "{:?}", rig.reads());
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_57_a_server_that_refuses_it_is_listed_in_pages_at_once_and_remembered() {
    for (code, reason) in
        [(422, "Invalid"), (400, "BadRequest"), (405, "MethodNotAllowed"), (415, "")]
    {
        let source = source();
        source.put(&map("a", "1")).unwrap();
        source.script(move |_, read| is_stream(read).then(|| MemoryResponse::status(code, reason)));
        let started = Instant::now();
        let rig = Rig::synced(source, ReflectorOptions::new()).await;
        assert_eq!((started.elapsed(), rig.store.len()), (Duration::ZERO, 1), "{code}");
        rig.source.expire();
        rig.source.break_watches();
        eventually("it is listed again", || rig.lists() == 3).await;
        assert_eq!(rig.reads().iter().filter(|read| is_stream(read)).count(), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_57_429_refused_connections_and_server_errors_are_tried_again_as_a_stream() {
    for kind in 0..3 {
        let source = source();
        source.script(move |number, _| {
            (number < 1).then(|| match kind {
                0 => MemoryResponse::status(429, "TooManyRequests"),
                1 => MemoryResponse::refused(),
                _ => MemoryResponse::status(500, "InternalError"),
            })
        });
        let rig = Rig::synced(source, ReflectorOptions::new()).await;
        let reads = rig.reads();
        assert!(reads.iter().all(is_stream) && reads.len() == 2, "{reads:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_57_a_stream_that_breaks_twice_before_its_end_mark_is_followed_by_pages() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    source.script(|_, read| if is_stream(read) { body(&stale_frames()) } else { None });
    let rig = Rig::synced(source, ReflectorOptions::new()).await;
    let kinds: Vec<_> = rig.reads().iter().take(3).map(is_stream).collect();
    assert_eq!(kinds, [true, true, false]);
    assert_eq!(rig.store.len(), 1, "what only the broken streams showed is gone");
    // The refusal does not count for ever.
    rig.source.recover();
    rig.source.expire();
    rig.source.break_watches();
    eventually("it is listed again", || rig.lists() == 4).await;
    assert!(is_stream(rig.reads().last().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn mechanism_57_an_established_stream_that_expires_is_listed_anew() {
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    rig.source.put(&map("a", "1")).unwrap();
    rig.source.expire();
    rig.source.break_watches();
    eventually("it is listed", || rig.lists() == 2).await;
    assert_eq!(versions(&rig.reads()), ["-", "watch 11", "-"]);
}

#[tokio::test(start_paused = true)]
async fn mechanism_57_it_stops_before_and_after_the_end_mark() {
    for frames in [stale_frames(), vec![end_mark(9, "true")]] {
        let source = source();
        source.script(move |_, _| hang(&frames));
        let rig = Rig::start(source, ReflectorOptions::new());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let source = rig.source.clone();
        rig.stopped().await;
        assert_eq!(source.watches(), 0);
    }
}

/// B5 (no end of the initial events): findings about a server expire.
#[tokio::test(start_paused = true)]
async fn b5_a_refusal_of_streaming_lists_counts_for_an_hour() {
    let source = source();
    source.script(|_, read| is_stream(read).then(|| MemoryResponse::status(422, "Invalid")));
    let rig = Rig::synced(source, ReflectorOptions::new()).await;
    let streams = || rig.reads().iter().filter(|read| is_stream(read)).count();
    let relist = async || {
        let lists = rig.lists();
        rig.source.expire();
        rig.source.close_watches();
        eventually("it is listed again", || rig.lists() > lists).await;
        rig.watching().await;
    };
    tokio::time::sleep(Duration::from_secs(3500)).await;
    relist().await;
    assert_eq!(streams(), 1, "it is not asked again for what it refused");
    tokio::time::sleep(Duration::from_secs(200)).await;
    relist().await;
    assert_eq!(streams(), 2, "it may have learned it");
    relist().await;
    assert_eq!(streams(), 2, "and refused it again");
    tokio::time::sleep(Duration::from_secs(3700)).await;
    rig.source.recover();
    relist().await;
    assert_eq!(streams(), 3);
    relist().await;
    assert_eq!(streams(), 4, "a server that streams goes on streaming");
}
