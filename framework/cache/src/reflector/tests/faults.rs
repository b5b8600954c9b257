//! The reflector's rows of the fault catalogue: ids are those of the book.

use tracing::Level;

use super::*;
use windlass_client::client::test_support::Captured;
use windlass_core::metrics::names;

/// A list of `items` objects of `size` bytes that is generated during the read, one piece at a
/// time.
#[derive(Debug)]
struct Endless {
    items: usize,
    size: usize,
    streams: bool,
}

impl ListWatch for Endless {
    fn open(&self, read: Read) -> OpenFuture<'_> {
        let (items, size) = (self.items, self.size);
        let is_page = matches!(read, Read::Page { .. });
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            let mut pieces = (0..items).map(|i| {
                let object = shown(&format!("o{i}"), 5, &"x".repeat(size));
                if is_page { format!("{object},") } else { frame("ADDED", &object) }
            });
            let (before, after) = if is_page {
                let last = shown("last", 5, "x");
                (
                    r#"{"items":["#.to_owned(),
                    format!(r#"{last}],"metadata":{{"resourceVersion":"9"}}}}"#),
                )
            } else {
                (String::new(), end_mark(9, "true"))
            };
            let mut next = Some(before);
            while let Some(piece) = next {
                if sender.send(Ok(piece.into())).await.is_err() {
                    return;
                }
                next = pieces.next();
            }
            let _ = sender.send(Ok(after.into())).await;
        });
        Box::pin(async move { Ok(Chunks::from(receiver)) })
    }

    fn streams_lists(&self) -> bool {
        self.streams
    }
}

/// A target that counts objects and stores none.
struct Counting(Arc<Mutex<usize>>);

impl ReflectorSink for Counting {
    fn list_begins(&mut self) {}
    fn listed(&mut self, _: &RawObject<'_>) {
        *self.0.lock() += 1;
    }
    fn changed(&mut self, _: &RawObject<'_>) {}
    fn deleted(&mut self, _: &RawObject<'_>) {}
    fn kept(&mut self, _: &RawObject<'_>) {}
    fn reached(&mut self, _: StreamProgress, _: &str) {}
}

#[test]
fn a12_a_list_costs_the_memory_of_one_object_and_one_read_whatever_its_size() {
    const ITEMS: usize = 4000;
    const SIZE: usize = 8192;
    for streams in [true, false] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let seen = Arc::<Mutex<usize>>::default();
        let counted = allocation_counter::measure(|| {
            runtime.block_on(async {
                let source = Arc::new(Endless { items: ITEMS, size: SIZE, streams });
                let reflector = Reflector::new(info(), source, Counting(Arc::clone(&seen)));
                let status = reflector.status();
                let stop = CancellationToken::new();
                let watch = status.wait_for(|state| *state == ReflectorState::Watching);
                tokio::select! {
                    biased;
                    () = reflector.run(stop) => {}
                    _ = watch => {}
                }
            });
        });
        assert!(*seen.lock() >= ITEMS, "{} items", seen.lock());
        let (most, whole) = (counted.bytes_max, (ITEMS * SIZE) as u64);
        assert!(most < 400_000 && whole > 30_000_000, "{most} bytes at most, of {whole}");
    }
}

#[tokio::test(start_paused = true)]
async fn a13_an_object_beyond_the_frame_limit_keeps_its_old_state_and_delays_nobody() {
    for streams in [true, false] {
        let source = source();
        source.put(&map("huge", "small")).unwrap();
        let options = ReflectorOptions::new().frame_limit(1000).streaming(streams);
        let rig = Rig::synced(source, options).await;
        rig.source.put(&map("huge", &"x".repeat(2000))).unwrap();
        rig.source.put(&map("fine", &"x".repeat(500))).unwrap();
        eventually("the next one comes", || rig.value("fine").is_some()).await;
        assert_eq!(rig.value("huge").as_deref(), Some("small"));
        rig.source.expire();
        rig.source.break_watches();
        eventually("it is listed again", || rig.lists() == 2).await;
        rig.watching().await;
        assert_eq!(rig.value("huge").as_deref(), Some("small"), "a list does not take it back");
        let dropped =
            rig.environment.metrics.counted(&names::INFORMER_DROPPED, &["configmaps", "too_large"]);
        assert_eq!(dropped, 2);
        rig.source.delete(Some("n"), "huge");
        eventually("its deletion counts", || rig.value("huge").is_none()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a13_an_event_of_an_unknown_type_beyond_the_frame_limit_is_no_object() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    let rig = Rig::synced(source, ReflectorOptions::new().frame_limit(1000)).await;
    rig.source.send(frame("LATER", &shown("a", 50, &"x".repeat(2000))));
    let dropped =
        |why: &str| rig.environment.metrics.counted(&names::INFORMER_DROPPED, &["configmaps", why]);
    eventually("the event is dropped", || dropped("unknown_type") == 1).await;
    assert_eq!((dropped("too_large"), rig.value("a").as_deref()), (0, Some("1")));
}

#[tokio::test(start_paused = true)]
async fn a15_a_missing_right_is_named_with_its_verb_and_ends_by_itself() {
    for (streams, verb) in [(true, "watch"), (false, "list")] {
        let source = source();
        source.script(|_, _| Some(MemoryResponse::status(403, "Forbidden")));
        let options = ReflectorOptions::new().streaming(streams);
        let rig = Rig::start(source, options);
        tokio::time::sleep(Duration::from_secs(120)).await;
        let ReflectorState::Degraded(why) = rig.status.get() else {
            panic!("{:?}", rig.status.get())
        };
        assert!(why.contains(&format!("grant the verb {verb} on configmaps")), "{why}");
        let requests = rig.source.requests().len();
        assert!(requests < 20, "{requests} requests in two minutes are no storm");
        rig.source.recover();
        let started = Instant::now();
        rig.watching().await;
        assert!(started.elapsed() <= Duration::from_secs(30), "{:?}", started.elapsed());
    }
    // 401: the credentials are refused, and no right is missing.
    let source = source();
    source.script(|_, _| Some(MemoryResponse::status(401, "Unauthorized")));
    let rig = Rig::start(source, ReflectorOptions::new());
    let state = rig.status.wait_for(|state| matches!(state, ReflectorState::Degraded(_))).await;
    assert!(state.to_string().contains("does not accept the credentials"), "{state}");
}

#[tokio::test(start_paused = true)]
async fn b1_a_watch_closed_at_once_for_ever_costs_a_request_in_four_seconds_at_most() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    source.script(|_, read| match read {
        Read::Page { .. } => None,
        _ => body(&[]),
    });
    let rig = Rig::start(source, ReflectorOptions::new());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.value("a").as_deref(), Some("1"), "a list in pages gives a view");
    let early = rig.source.requests().len();
    tokio::time::sleep(Duration::from_secs(1200)).await;
    let late = rig.source.requests().len() - early;
    assert!(early <= 30, "{early} requests in the first minute");
    assert!((20..=300).contains(&late), "{late} requests in twenty minutes");
    assert!(rig.status.get().to_string().contains("closed at once"), "{}", rig.status.get());
    let short = rig.environment.metrics.counted(&names::INFORMER_VERY_SHORT, &["configmaps"]);
    assert!(short > 20, "{short} counted");
    rig.source.recover();
    rig.source.put(&map("b", "1")).unwrap();
    let took = eventually("it goes on", || rig.value("b").is_some()).await;
    assert!(took <= Duration::from_secs(30), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn b2_a_history_that_is_gone_is_answered_by_a_list_that_finds_what_was_missed() {
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    for name in ["kept", "gone", "changed"] {
        rig.source.put(&map(name, "1")).unwrap();
    }
    eventually("they come", || rig.store.len() == 3).await;
    let kept = rig.store.get(&ObjectKey::new(Some("n"), "kept")).unwrap();
    rig.source.lose(Some("n"), "gone");
    rig.source.put(&map("changed", "2")).unwrap();
    rig.source.send(error_frame(410, "Expired"));
    let took = eventually("it is listed", || rig.lists() == 2).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    eventually("the view is right", || rig.store.len() == 2).await;
    assert_eq!(rig.value("changed").as_deref(), Some("2"));
    let now = rig.store.get(&ObjectKey::new(Some("n"), "kept")).unwrap();
    assert!(kept.is_same(&now), "what did not change is not even copied");
}

#[tokio::test(start_paused = true)]
async fn b2_a_version_that_is_too_old_is_listed_anew_at_once_and_with_pauses_when_that_repeats() {
    let at_once = Duration::from_millis(5);
    let rig = Rig::synced(source(), ReflectorOptions::new().streaming(false)).await;
    rig.asked(2).await;
    rig.source.send(error_frame(410, "Expired"));
    let took = eventually("it is listed", || rig.lists() == 2).await;
    assert!(took <= at_once && rig.troubles.lock().is_empty(), "{took:?}");

    let always = |read: &Read| matches!(read, Read::Watch { .. });
    rig.source.script(move |_, read| {
        always(read).then(|| body(&[error_frame(410, "Expired")])).flatten()
    });
    rig.source.close_watches();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let lists = rig.lists();
    assert!((10..100).contains(&lists), "{lists}");
    assert!(!rig.troubles.lock().is_empty());

    rig.source.recover();
    rig.watching().await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    let lists = rig.lists();
    rig.source.send(error_frame(410, "Expired"));
    let took = eventually("it is listed", || rig.lists() > lists).await;
    assert!(took <= at_once, "after a time in health it is a first one: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn b3_no_error_frame_is_fatal_and_only_what_is_lost_is_listed_anew() {
    for (code, reason, lists, cause) in [
        (500, "InternalError", 1, ""),
        (503, "ServiceUnavailable", 1, ""),
        (429, "TooManyRequests", 1, ""),
        (410, "Gone", 2, "expired"),
        (500, "StorageReadError", 2, "storage_read_error"),
        (400, "BadRequest", 2, "refused"),
        (418, "", 2, "refused"),
        // Either of code and reason makes the body a Status.
        (500, "", 1, ""),
        (503, "", 1, ""),
        (0, "Expired", 2, "expired"),
    ] {
        let rig = Rig::synced(source(), ReflectorOptions::new()).await;
        rig.source.send(error_frame(code, reason));
        rig.asked(2).await;
        rig.source.put(&map("a", "1")).unwrap();
        eventually("it goes on", || rig.value("a").is_some()).await;
        assert_eq!(rig.lists(), lists, "{code} {reason}");
        if !cause.is_empty() {
            let labels = ["configmaps", cause];
            let counted = rig.environment.metrics.counted(&names::INFORMER_RELISTS, &labels);
            assert_eq!(counted, 1, "{code} {reason}");
        }
        rig.stopped().await;
    }
    // An ERROR frame that is not a Status.
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    rig.source.send(frame("ERROR", r#""oops""#));
    eventually("it lists", || rig.lists() == 2).await;
    let why = rig.troubles.lock()[0].state.to_string();
    assert!(why.contains(r#"an ERROR frame that is not a Status: "oops""#), "{why}");
}

#[tokio::test(start_paused = true)]
async fn b4_pages_that_expire_before_they_are_read_lead_to_a_whole_list_at_once() {
    let source = source().without_streaming_lists();
    for i in 0..1200 {
        source.put(&map(&format!("{i:04}"), "1")).unwrap();
    }
    source.script(|_, read| match read {
        Read::Page { continue_token: Some(_), .. } => Some(MemoryResponse::status(410, "Expired")),
        _ => None,
    });
    let started = Instant::now();
    let rig = Rig::synced(source, ReflectorOptions::new()).await;
    assert_eq!((started.elapsed(), rig.store.len()), (Duration::ZERO, 1200));
    let whole = Read::Page { resource_version: None, limit: None, continue_token: None };
    assert_eq!(rig.reads()[2], whole, "{:?}", rig.reads());
    let count =
        |cause| rig.environment.metrics.counted(&names::INFORMER_RELISTS, &["configmaps", cause]);
    assert_eq!((count("initial"), count("expired_page")), (1, 1));
    let items = rig.environment.metrics.counted(&names::INFORMER_LISTED, &["configmaps"]);
    assert_eq!(items, 500 + 1200, "progress is counted while a list is read");
}

#[tokio::test(start_paused = true)]
async fn b4_a_list_that_never_comes_to_its_end_is_degraded_and_tried_in_every_way() {
    let source = source();
    for i in 0..600 {
        source.put(&map(&format!("{i:04}"), "1")).unwrap();
    }
    source.script(|_, read| match read {
        Read::StreamingList { .. } => hang(&[]).filter(|_| false).or_else(|| body(&[])),
        Read::Page { continue_token: Some(_), .. } => Some(MemoryResponse::status(410, "Expired")),
        Read::Page { limit: None, .. } => Some(MemoryResponse::status(504, "Timeout")),
        _ => None,
    });
    let rig = Rig::start(source, ReflectorOptions::new());
    let state = rig.status.wait_for(|state| matches!(state, ReflectorState::Degraded(_))).await;
    assert!(state.to_string().contains("the list has failed 5 times in a row"), "{state}");
    let reads = rig.reads();
    assert!(reads.iter().filter(|read| is_stream(read)).count() > 2, "streams are tried again");
    assert!(reads.iter().any(|read| matches!(read, Read::Page { limit: None, .. })));
    rig.source.recover();
    rig.watching().await;
    assert_eq!(rig.store.len(), 600);
}

#[tokio::test(start_paused = true)]
async fn b5_a_stream_whose_list_never_ends_is_given_up_said_so_and_remembered() {
    let (log, _guard) = Captured::at(Level::WARN);
    let source = source();
    source.put(&map("a", "1")).unwrap();
    // A server that does not know streaming lists: the objects, then changes for ever, and no end
    // mark.
    let objects = [frame("ADDED", &shown("a", 11, "1"))];
    source.script(move |_, read| if is_stream(read) { hang(&objects) } else { None });
    let rig = Rig::start(source, ReflectorOptions::new());
    for version in 20..30 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        rig.source.send(frame("MODIFIED", &shown("a", version, "2")));
        assert_eq!(rig.status.get(), ReflectorState::Listing, "not in step before the end mark");
    }
    let started = Instant::now();
    rig.watching().await;
    assert!(started.elapsed() <= Duration::from_secs(11), "{:?}", started.elapsed());
    let reminders = log.with("ends the streaming list has not arrived");
    assert_eq!(reminders.len(), 2, "one each 10 s: {reminders:?}");
    for _ in 0..3 {
        rig.source.expire();
        rig.source.break_watches();
        let lists = rig.lists();
        eventually("it is listed again", || rig.lists() > lists).await;
    }
    let streams = rig.reads().iter().filter(|read| is_stream(read)).count();
    assert_eq!(streams, 1, "it is not asked again for what it does not speak");
}

#[tokio::test(start_paused = true)]
async fn b6_older_and_repeated_frames_move_neither_the_store_nor_the_position() {
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    rig.source.put(&map("a", "1")).unwrap();
    rig.source.put(&map("a", "2")).unwrap();
    eventually("it comes", || rig.value("a").as_deref() == Some("2")).await;
    rig.source.send(frame("MODIFIED", &shown("a", 12, "again")));
    rig.source.send(frame("MODIFIED", &shown("a", 11, "older")));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(rig.value("a").as_deref(), Some("2"));
    rig.source.break_watches();
    rig.asked(2).await;
    assert_eq!(versions(&rig.reads())[1], "watch 12");
}

#[tokio::test(start_paused = true)]
async fn b7_the_first_view_is_a_consistent_read_unless_an_old_one_was_asked_for() {
    for streams in [true, false] {
        for (stale_ok, expected) in [(false, "-"), (true, "0")] {
            let options = ReflectorOptions::new().streaming(streams).stale_ok(stale_ok);
            let rig = Rig::synced(source(), options).await;
            assert_eq!(versions(&rig.reads())[0], expected, "{streams} {stale_ok}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn b15_the_age_of_the_view_is_known_by_events_and_bookmarks() {
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    let began = Instant::now();
    let ages = || {
        let fresh = rig.status.freshness();
        (
            began.max(fresh.last_received.unwrap()) - began,
            began.max(fresh.advanced.unwrap()) - began,
        )
    };
    let seconds = Duration::from_secs;
    tokio::time::sleep(seconds(40)).await;
    rig.source.bookmark();
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(ages(), (seconds(40), seconds(40)));
    // Data arrives, but no newer version.
    tokio::time::sleep(seconds(9)).await;
    rig.source.send(frame("MODIFIED", &shown("a", 12, "old")));
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(ages(), (seconds(50), seconds(40)));
    rig.source.put(&map("a", "1")).unwrap();
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(ages(), (seconds(60), seconds(60)));
}

/// B6 (older or repeated frames): deletions are remembered while they are few; the stream's own
/// position is remembered for ever.
#[tokio::test(start_paused = true)]
async fn b6_after_thousands_of_deletions_a_repeated_old_frame_makes_no_ghost() {
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    rig.source.put(&map("ghost", "1")).unwrap();
    eventually("it comes", || rig.store.len() == 1).await;
    rig.source.delete(Some("n"), "ghost");
    for i in 0..5000 {
        let name = format!("o{i}");
        rig.source.put(&map(&name, "1")).unwrap();
        rig.source.delete(Some("n"), &name);
        if i % 20 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    eventually("all are gone", || rig.store.is_empty()).await;
    rig.source.send(frame("MODIFIED", &shown("ghost", 11, "1")));
    rig.source.put(&map("last", "1")).unwrap();
    eventually("the last one comes", || rig.value("last").is_some()).await;
    assert_eq!(rig.store.len(), 1, "the ghost came back");
}

/// A bad item of any sort costs only that item.
#[tokio::test(start_paused = true)]
async fn items_of_a_list_that_are_no_objects_are_set_aside_and_the_kind_goes_on() {
    for bad in ["null", "7", "-1.5", "\"a\"", "[]", "[{}]", "true"] {
        let source = source().without_streaming_lists();
        let (good, last) = (shown("good", 9, "1"), shown("last", 10, "1"));
        let list = format!(
            r#"{{"kind":"ConfigMapList","items":[{good},{bad},{last}],"metadata":{{"resourceVersion":"10"}}}}"#
        );
        source.script(move |number, _| (number == 0).then(|| body(std::slice::from_ref(&list)))?);
        let rig = Rig::start(source, ReflectorOptions::new());
        let is_told = || {
            let told = "1 items could not be taken: deletions may be missed";
            matches!(rig.status.get(), ReflectorState::Degraded(why) if why == told)
        };
        eventually("the state says so", is_told).await;
        assert_eq!(rig.store.len(), 2, "{bad}");
        rig.source.put(&map("later", "1")).unwrap();
        eventually("it goes on", || rig.value("later").is_some()).await;
        let labels = ["configmaps", "unreadable"];
        assert_eq!(rig.environment.metrics.counted(&names::INFORMER_DROPPED, &labels), 1, "{bad}");
    }
}
