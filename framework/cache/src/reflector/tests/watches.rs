//! Tests of watches and of the consequences of their end (mechanisms 48 and 53 to 56).

use super::*;
use windlass_client::client::test_support::Captured;
use windlass_core::metrics::names;

/// Upstream's row 68.
#[tokio::test(start_paused = true)]
async fn mechanism_48_it_runs_until_it_is_stopped_whatever_it_is_doing() {
    // During a watch.
    Rig::synced(source(), ReflectorOptions::new()).await.stopped().await;
    // During a list that hangs, a list that does not begin, and a pause.
    for number in 0..3 {
        let source = source();
        source.put(&map("a", "1")).unwrap();
        source.script(move |_, _| match number {
            0 => hang(&[r#"{"items":[{"#.to_owned()]),
            1 => Some(MemoryResponse::Never),
            _ => Some(MemoryResponse::slow_down(Duration::from_secs(60))),
        });
        let rig = Rig::start(source, ReflectorOptions::new().streaming(number != 0));
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(rig.source.requests().len(), 1);
        rig.stopped().await;
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_48_stopping_ends_the_watch_once_and_a_stop_before_the_start_asks_nothing() {
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    let source = rig.source.clone();
    assert_eq!(source.watches(), 1);
    rig.stopped().await;
    assert_eq!(source.watches(), 0);
    let before = source.requests().len();
    let (reflector, _) = Reflector::into_store::<ConfigMap>(info(), Arc::new(source.clone()));
    let stop = CancellationToken::new();
    stop.cancel();
    reflector.run(stop).await;
    assert_eq!(source.requests().len(), before);
}

#[tokio::test(start_paused = true)]
async fn mechanism_48_trouble_is_told_to_a_handler_and_a_handler_that_panics_is_survived() {
    let source = source();
    source.script(|number, _| (number < 3).then(|| MemoryResponse::status(403, "Forbidden")));
    let rig = Rig::synced(source, ReflectorOptions::new()).await;
    let troubles = rig.troubles.lock().clone();
    assert_eq!(troubles.len(), 3);
    assert!(
        matches!(&troubles[0].state, ReflectorState::Degraded(why) if why.contains("verb watch on configmaps"))
    );
    assert_eq!(troubles[0].resource, "configmaps");
    let bounds = [800, 1600, 3200].map(Duration::from_millis);
    for (error, bound) in troubles.iter().zip(bounds) {
        assert!(error.pause < bound, "{error:?}");
    }
    let panicking = Reflector::new(info(), Arc::new(rig.source.clone()), Noted::default())
        .environment(environment())
        .name("the panicking one")
        .on_error(|_| panic!("this is the test's"));
    rig.source.script(|number, _| (number < 6).then(|| MemoryResponse::status(500, "")));
    let status = panicking.status();
    assert_eq!(status.description(), "the panicking one");
    let task = tokio::spawn(panicking.run(CancellationToken::new()));
    status.wait_for(|state| *state == ReflectorState::Watching).await;
    task.abort();
}

/// Upstream's row 73: attempts while the server refuses connections for ten minutes.
#[tokio::test(start_paused = true)]
async fn mechanism_48_a_server_that_is_down_is_tried_ever_more_seldom_and_then_each_half_minute() {
    let source = source();
    source.script(|_, _| Some(MemoryResponse::refused()));
    let rig = Rig::start(source, ReflectorOptions::new());
    tokio::time::sleep(Duration::from_secs(600)).await;
    let times: Vec<_> = rig.source.requests().into_iter().map(|(at, _)| at).collect();
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((25..=70).contains(&times.len()), "{} attempts", times.len());
    assert!(pauses[0] < Duration::from_millis(810), "{pauses:?}");
    assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(30)), "{pauses:?}");
}

/// Upstream's row 74.
#[tokio::test(start_paused = true)]
async fn mechanism_48_the_backoff_can_be_chosen() {
    let source = source();
    source.script(|_, _| Some(MemoryResponse::refused()));
    let second = Duration::from_secs(1);
    let rig = Rig::start(source, ReflectorOptions::new().backoff(second, second));
    tokio::time::sleep(Duration::from_secs(100)).await;
    let attempts = rig.source.requests().len();
    assert!((120..=300).contains(&attempts), "{attempts} attempts, half a second apart");
}

/// Upstream's row 76: one list, five watches.
#[tokio::test(start_paused = true)]
async fn mechanism_53_being_asked_to_slow_down_and_refused_connections_cost_no_list() {
    for kind in 0..3 {
        let source = source().without_streaming_lists();
        source.script(move |number, read| {
            let fails = matches!(read, Read::Watch { .. }) && number < 5;
            fails.then(|| match kind {
                0 => MemoryResponse::status(429, "TooManyRequests"),
                1 => MemoryResponse::refused(),
                _ => MemoryResponse::status(503, "ServiceUnavailable"),
            })
        });
        let rig = Rig::start(source, ReflectorOptions::new());
        rig.asked(6).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let reads = rig.reads();
        assert_eq!((rig.lists(), reads.len() - rig.lists()), (1, 5), "{reads:?}");
        assert!(reads[1..].iter().all(|read| matches!(read,
            Read::Watch { resource_version, .. } if resource_version == "10")));
    }
}

/// Upstream's row 75: 429 goes through the backoff, and through the server's requested wait.
#[tokio::test(start_paused = true)]
async fn mechanism_53_a_pause_that_the_server_asks_for_is_added_up_to_a_minute() {
    for (asked, least, most) in [(20, 20, 30), (86_400, 60, 75)] {
        let rig = Rig::synced(source(), ReflectorOptions::new()).await;
        rig.source.script(move |number, _| {
            (number < 4).then(|| MemoryResponse::slow_down(Duration::from_secs(asked)))
        });
        rig.source.close_watches();
        tokio::time::sleep(Duration::from_secs(1)).await;
        rig.source.break_watches();
        rig.asked(5).await;
        let requests = rig.source.requests().into_iter().filter(|(_, read)| !is_version_read(read));
        let times: Vec<_> = requests.map(|(at, _)| at).collect();
        for pair in times[1..].windows(2) {
            let pause = (pair[1] - pair[0]).as_secs();
            assert!((least..=most).contains(&pause), "{pause}");
        }
        assert_eq!(rig.lists(), 1);
    }
}

/// Upstream's row 77.
#[tokio::test(start_paused = true)]
async fn mechanism_53_internal_errors_are_waited_out_within_their_window_and_then_listed() {
    for (window, lists) in [(None, 1), (Some(60), 2)] {
        let mut options = ReflectorOptions::new().streaming(false);
        if let Some(seconds) = window {
            options = options.internal_errors_for(Duration::from_secs(seconds));
        }
        let rig = Rig::synced(source(), options).await;
        rig.asked(2).await;
        rig.source.script(|_, read| match read {
            Read::Watch { .. } => Some(MemoryResponse::status(500, "InternalError")),
            _ => None,
        });
        rig.source.break_watches();
        tokio::time::sleep(Duration::from_secs(50)).await;
        assert_eq!(rig.lists(), 1, "within the window: {window:?}");
        tokio::time::sleep(Duration::from_secs(70)).await;
        assert_eq!(rig.lists(), lists, "after it: {window:?}");
    }
}

/// Upstream's row 86.
#[tokio::test(start_paused = true)]
async fn mechanism_53_a_watch_asks_to_be_ended_within_its_minimum_and_twice_that() {
    for (asked, least) in [(60, 300), (1000, 1000), (u64::MAX, 86_400)] {
        let options = ReflectorOptions::new().min_watch_timeout(Duration::from_secs(asked));
        let rig = Rig::synced(source(), options).await;
        for requests in 2..30 {
            rig.source.bookmark();
            rig.source.close_watches();
            rig.asked(requests).await;
        }
        let timeouts: Vec<u64> = rig
            .reads()
            .iter()
            .filter_map(|read| match read {
                Read::Watch { timeout, .. } => Some(timeout.as_secs()),
                _ => None,
            })
            .collect();
        assert!(timeouts.iter().all(|t| (least..2 * least).contains(t)), "{timeouts:?}");
        assert!(timeouts.iter().any(|t| *t > least + least / 2), "{timeouts:?}");
    }
}

/// Upstream's row 71.
#[tokio::test(start_paused = true)]
async fn mechanism_53_the_version_of_the_list_is_where_the_watch_begins_and_events_move_it() {
    let rig = Rig::synced(source(), ReflectorOptions::new().streaming(false)).await;
    rig.asked(2).await;
    for (requests, name) in [(3, "a"), (4, "b"), (5, "c")] {
        rig.source.put(&map(name, "1")).unwrap();
        eventually("it comes", || rig.value(name).is_some()).await;
        rig.source.close_watches();
        rig.asked(requests).await;
    }
    assert_eq!(versions(&rig.reads()), ["-", "watch 10", "watch 11", "watch 12", "watch 13"]);
}

/// Upstream's row 72: no end of a watch loses an event.
#[tokio::test(start_paused = true)]
async fn mechanism_53_no_event_is_lost_over_errors_of_any_kind() {
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    for round in 0..40_u32 {
        let name = format!("{round}");
        match round % 8 {
            0 => rig.source.close_watches(),
            1 => rig.source.break_watches(),
            2 => rig.source.send(error_frame(500, "InternalError")),
            3 => rig.source.send(error_frame(410, "Expired")),
            4 => rig.source.send("not a frame\n"),
            5 => rig.source.expire(),
            6 => rig.source.send(r#"{"type":"ADDED","obj"#),
            _ => {}
        }
        rig.source.put(&map(&name, "1")).unwrap();
        if round % 8 == 6 {
            rig.source.break_watches();
        }
        eventually("it comes", || rig.value(&name).is_some()).await;
    }
    assert_eq!(rig.store.len(), 40);
}

/// Upstream's rows 70 and 87: each type of event, the effect on the store and on the position.
#[tokio::test(start_paused = true)]
async fn mechanism_54_each_type_of_event_does_its_work_and_moves_the_position() {
    let bookmark = |version: u64| end_mark(version, "false");
    for (frames, stored, version, unknown) in [
        (vec![], vec!["old"], "11", 0),
        (vec![frame("ADDED", &shown("a", 20, "1"))], vec!["a", "old"], "20", 0),
        (vec![frame("MODIFIED", &shown("old", 21, "2"))], vec!["old"], "21", 0),
        (vec![frame("DELETED", &shown("old", 22, "2"))], vec![], "22", 0),
        (vec![bookmark(23)], vec!["old"], "23", 0),
        (vec![frame("SYNC", &shown("a", 24, "1"))], vec!["old"], "11", 1),
        (
            vec![
                frame("ADDED", &shown("a", 30, "1")),
                frame("DELETED", &shown("a", 31, "1")),
                frame("ADDED", &shown("b", 32, "1")),
                bookmark(40),
            ],
            vec!["b", "old"],
            "40",
            0,
        ),
    ] {
        let source = source();
        source.put(&map("old", "1")).unwrap();
        let rig = Rig::synced(source, ReflectorOptions::new()).await;
        for frame in &frames {
            rig.source.send(frame.clone());
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        let names: Vec<_> =
            rig.store.list().iter().map(|object| object.key().name().to_owned()).collect();
        assert_eq!(names, stored, "{frames:?}");
        let labels = ["configmaps", "unknown_type"];
        assert_eq!(rig.environment.metrics.counted(&names::INFORMER_DROPPED, &labels), unknown);
        rig.source.break_watches();
        rig.asked(2).await;
        assert_eq!(versions(&rig.reads())[1], format!("watch {version}"), "{frames:?}");
    }
}

/// Upstream's row 90.
#[tokio::test(start_paused = true)]
async fn mechanism_54_tables_and_other_kinds_are_left_out_and_reported_once() {
    let table = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"name":"t","resourceVersion":"15"},"rows":[]}"#;
    let secret = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"n","uid":"u","resourceVersion":"16"}}"#;
    let (log, _guard) = Captured::at(tracing::Level::ERROR);
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    rig.source.send(frame("ADDED", table));
    rig.source.send(frame("ADDED", secret));
    rig.source.put(&map("a", "1")).unwrap();
    eventually("the others come", || rig.value("a").is_some()).await;
    assert_eq!(rig.store.len(), 1);
    let labels = ["configmaps", "unexpected_kind"];
    assert_eq!(rig.environment.metrics.counted(&names::INFORMER_DROPPED, &labels), 2);
    assert_eq!(log.with("Table of meta.k8s.io/v1").len(), 1);
    assert_eq!(log.lines().len(), 1, "once a stream: {:?}", log.lines());
    // A list that is a table.
    let source = source();
    source.script(|number, read| match read {
        Read::Page { .. } if number < 2 => {
            body(&[r#"{"kind":"Table","metadata":{"resourceVersion":"3"},"rows":[]}"#.to_owned()])
        }
        _ => None,
    });
    let rig = Rig::synced(source, ReflectorOptions::new().streaming(false)).await;
    let troubles = rig.troubles.lock().clone();
    assert!(troubles[0].state.to_string().contains("no `items`"), "{troubles:?}");
}

/// Upstream's row 69.
#[tokio::test(start_paused = true)]
async fn mechanism_55_a_watch_that_ends_at_once_is_a_failure_only_when_it_told_nothing() {
    for (told, lasts, is_failure) in [(0, 0, true), (0, 1100, false), (1, 0, false)] {
        let rig = Rig::synced(source(), ReflectorOptions::new()).await;
        rig.source.close_watches();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (frames, first) = (frame("ADDED", &shown("a", 20, "1")), rig.source.requests().len());
        rig.source.script(move |number, _| match number {
            n if n == first && told > 0 => body(std::slice::from_ref(&frames)),
            n if n == first && lasts == 0 => body(&[]),
            n if n == first => hang(&[]),
            _ => None,
        });
        let (troubles, asked) = (rig.troubles.lock().len(), rig.reads().len());
        rig.source.close_watches();
        rig.asked(asked + 1).await;
        tokio::time::sleep(Duration::from_millis(lasts)).await;
        rig.source.close_watches();
        rig.asked(asked + 2).await;
        let failed = rig.troubles.lock().len() > troubles;
        assert_eq!(failed, is_failure, "{told} told in {lasts} ms: {:?}", rig.troubles.lock());
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_56_the_target_is_asked_to_resync_each_period_when_it_wants_to_be() {
    for wants in [true, false] {
        let target = Noted { wants_no_resync: !wants, ..Noted::default() };
        let noted = target.clone();
        let source = source();
        let reflector = Reflector::new(info(), Arc::new(source.clone()), target)
            .environment(environment())
            .options(ReflectorOptions::new().resync(Duration::from_secs(30)));
        let task = tokio::spawn(reflector.run(CancellationToken::new()));
        // The watch may be busy or silent.
        for i in 0..60 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            source.put(&map("a", &i.to_string())).unwrap();
        }
        tokio::time::sleep(Duration::from_secs(61)).await;
        let resyncs = noted.take().iter().filter(|line| *line == "resync").count();
        assert_eq!(resyncs, if wants { 4 } else { 0 });
        assert_eq!(source.requests().len(), 1, "a resync asks the server nothing");
        task.abort();
    }
}

/// Upstream's row 78.
#[tokio::test(start_paused = true)]
async fn mechanism_56_a_resync_that_fails_ends_the_watch_and_the_state_is_listed_anew() {
    let target = Noted { resync_fails: true, ..Noted::default() };
    let source = source();
    let reflector = Reflector::new(info(), Arc::new(source.clone()), target)
        .environment(environment())
        .options(ReflectorOptions::new().resync(Duration::from_secs(30)));
    let status = reflector.status();
    let task = tokio::spawn(reflector.run(CancellationToken::new()));
    tokio::time::sleep(Duration::from_secs(35)).await;
    let requests: Vec<_> = source.requests().into_iter().map(|(_, read)| read).collect();
    assert!(matches!(requests[..], [Read::StreamingList { .. }, Read::StreamingList { .. }]));
    assert_eq!(status.get(), ReflectorState::Watching);
    task.abort();
}
