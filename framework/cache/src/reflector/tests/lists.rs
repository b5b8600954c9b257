//! Tests of lists: versions, pages, and the consequences of their failure (mechanisms 49 to 52).

use super::*;
use windlass_core::error::{ApiStatus, StatusCause, StatusDetails};
use windlass_core::metrics::names;
use windlass_core::wire::MetadataScan;

fn page(version: Option<&str>, limit: Option<u32>, token: Option<&str>) -> Read {
    Read::Page {
        resource_version: version.map(str::to_owned),
        limit,
        continue_token: token.map(str::to_owned),
    }
}

fn paged() -> ReflectorOptions {
    ReflectorOptions::new().streaming(false)
}

/// Ends the watch so that a list follows.
async fn list_again(rig: &Rig) {
    let lists = rig.lists();
    rig.source.send(error_frame(410, "Expired"));
    eventually("it is listed again", || rig.lists() > lists).await;
    rig.watching().await;
}

/// Upstream's row 83: versions "0", "10", "".
#[tokio::test(start_paused = true)]
async fn mechanism_49_lists_name_0_then_the_last_version_then_none_when_stale_is_ok() {
    for streams in [true, false] {
        let options = ReflectorOptions::new().streaming(streams).stale_ok(true);
        let rig = Rig::synced(source(), options).await;
        rig.source.script(|_, read| match read {
            Read::Page { resource_version: Some(_), .. }
            | Read::StreamingList { resource_version: Some(_), .. } => {
                Some(MemoryResponse::status(410, "Expired"))
            }
            _ => None,
        });
        let before = Instant::now();
        list_again(&rig).await;
        assert!(before.elapsed() < Duration::from_secs(1), "the second answer is at once");
        let reads: Vec<_> = rig.reads();
        let lists: Vec<_> =
            reads.into_iter().filter(|read| !matches!(read, Read::Watch { .. })).collect();
        assert_eq!(versions(&lists), ["0", "10", "-"], "streams: {streams}");
    }
}

/// Upstream's row 82.
#[tokio::test(start_paused = true)]
async fn mechanism_49_a_later_list_is_not_older_than_what_was_seen_when_stale_is_ok() {
    let rig = Rig::synced(source(), paged().stale_ok(true)).await;
    rig.asked(2).await;
    rig.source.bookmark();
    tokio::time::sleep(Duration::from_secs(2)).await;
    list_again(&rig).await;
    rig.asked(4).await;
    assert_eq!(versions(&rig.reads()), ["0", "watch 10", "50", "watch 50"]);
}

#[tokio::test(start_paused = true)]
async fn mechanism_49_without_that_option_every_list_is_a_consistent_read() {
    let rig = Rig::synced(source(), paged()).await;
    rig.asked(2).await;
    rig.source.bookmark();
    list_again(&rig).await;
    rig.asked(4).await;
    assert_eq!(versions(&rig.reads()), ["-", "watch 10", "-", "watch 50"]);
}

/// Upstream's row 79.
#[tokio::test(start_paused = true)]
async fn mechanism_50_a_page_size_is_asked_for_and_tokens_are_followed_to_the_end() {
    let source = source();
    for i in 0..10 {
        source.put(&map(&format!("{i}"), "1")).unwrap();
    }
    let rig = Rig::synced(source, paged().page_size(4)).await;
    assert_eq!(rig.store.len(), 10);
    assert_eq!(
        rig.reads()[..3],
        [
            page(None, Some(4), None),
            page(None, Some(4), Some("20:4")),
            page(None, Some(4), Some("20:8"))
        ]
    );
    let whole = Rig::synced(rig.source.clone(), paged().page_size(0)).await;
    assert_eq!(whole.reads().last().filter(|read| **read == page(None, None, None)), None);
    assert!(whole.reads().contains(&page(None, None, None)), "0 asks for the whole list");
}

/// Upstream's row 80.
#[tokio::test(start_paused = true)]
async fn mechanism_50_a_list_that_names_a_version_has_no_limit() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    let rig = Rig::synced(source, paged().stale_ok(true)).await;
    list_again(&rig).await;
    let lists: Vec<_> =
        rig.reads().into_iter().filter(|read| matches!(read, Read::Page { .. })).collect();
    assert_eq!(lists, [page(Some("0"), Some(500), None), page(Some("11"), None, None)]);
}

/// Upstream's row 81.
#[tokio::test(start_paused = true)]
async fn mechanism_50_a_server_that_pages_whatever_version_is_named_is_remembered() {
    let source = source();
    for i in 0..700 {
        source.put(&map(&format!("{i:03}"), "1")).unwrap();
    }
    let rig = Rig::synced(source, paged().stale_ok(true)).await;
    list_again(&rig).await;
    let lists: Vec<_> =
        rig.reads().into_iter().filter(|read| matches!(read, Read::Page { .. })).collect();
    assert_eq!(
        lists,
        [
            page(Some("0"), Some(500), None),
            page(None, Some(500), Some("710:500")),
            page(Some("710"), Some(500), None),
            page(None, Some(500), Some("710:500")),
        ]
    );
}

/// Upstream's row 84: an expired continue token is answered by a whole, consistent list.
#[tokio::test(start_paused = true)]
async fn mechanism_51_an_expired_continue_token_leads_to_a_whole_consistent_list() {
    let source = source();
    for i in 0..6 {
        source.put(&map(&format!("{i}"), "1")).unwrap();
    }
    source.script(|_, read| match read {
        Read::Page { continue_token: Some(_), .. } => Some(MemoryResponse::status(410, "Expired")),
        _ => None,
    });
    let rig = Rig::synced(source, paged().page_size(4).stale_ok(true)).await;
    assert_eq!(rig.store.len(), 6);
    let reads = &rig.reads()[..3];
    assert_eq!(
        reads,
        [page(Some("0"), Some(4), None), page(None, Some(4), Some("16:4")), page(None, None, None)]
    );
}

/// Upstream's row 85: three spellings.
#[tokio::test(start_paused = true)]
async fn mechanism_51_a_version_that_is_too_large_in_any_spelling_leads_to_a_consistent_list() {
    let cause = StatusCause { reason: "ResourceVersionTooLarge".into(), ..StatusCause::default() };
    let details = StatusDetails { causes: vec![cause], ..StatusDetails::default() };
    let spellings = [
        ApiStatus {
            code: 504,
            reason: "Timeout".into(),
            details: Some(details),
            ..ApiStatus::default()
        },
        ApiStatus {
            code: 504,
            reason: "Timeout".into(),
            message: "Too large resource version: 9, current: 4".into(),
            ..ApiStatus::default()
        },
        ApiStatus {
            code: 500,
            message: "Too large resource version".into(),
            ..ApiStatus::default()
        },
    ];
    for spelling in spellings {
        let rig = Rig::synced(source(), paged().stale_ok(true)).await;
        rig.source.script(move |_, read| match read {
            Read::Page { resource_version: Some(_), .. } => {
                Some(MemoryResponse::Error(Error::from_status("list", spelling.clone())))
            }
            _ => None,
        });
        let before = Instant::now();
        list_again(&rig).await;
        assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
        let lists: Vec<_> =
            rig.reads().into_iter().filter(|read| matches!(read, Read::Page { .. })).collect();
        assert_eq!(versions(&lists), ["0", "10", "-"]);
        let labels = ["configmaps", "too_large"];
        assert_eq!(rig.environment.metrics.counted(&names::INFORMER_RELISTS, &labels), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_52_items_are_told_while_the_list_streams_and_replace_what_was_there() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    source.put(&map("b", "1")).unwrap();
    let target = Noted::default();
    let noted = target.clone();
    let reflector = Reflector::new(info(), Arc::new(source.clone()), target)
        .environment(environment())
        .options(paged());
    let status = reflector.status();
    let stop = CancellationToken::new();
    let task = tokio::spawn(reflector.run(stop.clone()));
    status.wait_for(|state| *state == ReflectorState::Watching).await;
    assert_eq!(noted.take(), ["list", "=a", "=b", "Listed 12"]);
    // The items of a list that breaks are handed over; that is harmless, because no `Listed`
    // follows.
    source.script(|number, read| match read {
        Read::Page { .. } if number < 4 => {
            body(&[format!(r#"{{"items":[{},"#, shown("a", 11, "1"))])
        }
        _ => None,
    });
    source.send(error_frame(410, "Expired"));
    eventually("a whole list follows", || source.requests().len() == 6).await;
    let told = noted.take();
    let listed = told.iter().position(|line| line == "Listed 12").unwrap();
    assert_eq!(told[..2], ["list", "=a"]);
    assert_eq!(told[listed - 3..listed], ["list", "=a", "=b"]);
    stop.cancel();
    task.await.unwrap();
}

/// Upstream's row 89: the store transforms each object once.
#[tokio::test(start_paused = true)]
async fn mechanism_52_each_version_of_an_object_is_told_once_a_list() {
    let source = source();
    for i in 0..7 {
        source.put(&map(&format!("{i}"), "1")).unwrap();
    }
    let target = Noted::default();
    let noted = target.clone();
    let reflector = Reflector::new(info(), Arc::new(source), target)
        .environment(environment())
        .options(paged().page_size(3));
    let status = reflector.status();
    let task = tokio::spawn(reflector.run(CancellationToken::new()));
    status.wait_for(|state| *state == ReflectorState::Watching).await;
    let told = noted.take();
    assert_eq!(told.iter().filter(|line| line.starts_with('=')).count(), 7);
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn lists_are_measured_by_cause_duration_and_items() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    let rig = Rig::synced(source, paged()).await;
    list_again(&rig).await;
    let metrics = rig.environment.metrics.encode();
    for line in [
        r#"windlass_informer_lists_total{resource="configmaps",cause="initial"} 1"#,
        r#"windlass_informer_lists_total{resource="configmaps",cause="expired"} 1"#,
        r#"windlass_informer_listed_items_total{resource="configmaps"} 2"#,
        r#"windlass_informer_list_duration_seconds_count{resource="configmaps"} 2"#,
        r#"windlass_informer_list_items_sum{resource="configmaps"} 2.0"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

/// As with an object without a name: the item may stand for the missing object.
#[tokio::test(start_paused = true)]
async fn a_list_with_objects_of_another_kind_deletes_nothing() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    source.put(&map("b", "1")).unwrap();
    let rig = Rig::synced(source, paged()).await;
    let other = r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"n","uid":"u","resourceVersion":"16"}}"#;
    let a = shown("a", 40, "2");
    let list = format!(r#"{{"metadata":{{"resourceVersion":"50"}},"items":[{a},{other}]}}"#);
    rig.source.script(move |_, read| match read {
        Read::Page { .. } => body(std::slice::from_ref(&list)),
        _ => None,
    });
    rig.source.expire();
    rig.source.break_watches();
    eventually("the list is applied", || rig.value("a").as_deref() == Some("2")).await;
    assert_eq!(rig.store.len(), 2);
}

/// A waiter for `Watching` may run on another thread.
#[test]
fn a_store_holds_the_list_when_its_target_is_told_the_end() {
    let (mut reflector, store): (_, Store<ConfigMap>) =
        Reflector::into_store(info(), Arc::new(source()));
    let object = shown("a", 5, "1");
    let scan = MetadataScan::of(object.as_bytes()).unwrap();
    reflector.sink.list_begins();
    reflector.sink.listed(&RawObject::new(&scan, object.as_bytes()));
    assert!(store.is_empty());
    reflector.sink.reached(StreamProgress::Listed, "5");
    assert_eq!(store.len(), 1);
}
