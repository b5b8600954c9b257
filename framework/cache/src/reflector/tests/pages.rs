//! Tests of the pager alone: upstream's row 109.

use std::ops::ControlFlow;

use super::*;
use crate::reflector::{Page, Pager};

fn full(objects: usize) -> MemorySource {
    let source = source();
    for i in 0..objects {
        source.put(&map(&format!("{i:03}"), "1")).unwrap();
    }
    source
}

fn pager(source: &MemorySource) -> Pager {
    Pager::new(Arc::new(source.clone())).page_size(10)
}

fn limits(source: &MemorySource) -> Vec<Option<u32>> {
    let limit = |(_, read): (Instant, Read)| match read {
        Read::Page { limit, .. } => limit,
        _ => panic!("a pager only lists"),
    };
    source.requests().into_iter().map(limit).collect()
}

fn expire_from(source: &MemorySource, number: usize) {
    source.script(move |n, read| match read {
        Read::Page { continue_token: Some(_), .. } if n >= number => {
            Some(MemoryResponse::status(410, "Expired"))
        }
        _ => None,
    });
}

#[tokio::test(start_paused = true)]
async fn a_pager_reads_every_page_and_every_object_once() {
    for objects in [0, 1, 9, 10, 11, 95] {
        let source = full(objects);
        let whole = pager(&source).all().await.unwrap();
        assert_eq!(whole.items.len(), objects);
        assert_eq!(source.requests().len(), objects.div_ceil(10).max(1));
        let mut names = Vec::new();
        pager(&source)
            .each(|seen| {
                names.push(seen.name().to_owned());
                ControlFlow::Continue(())
            })
            .await
            .unwrap();
        names.dedup();
        assert_eq!(names.len(), objects);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pager_reads_the_whole_list_when_a_token_expires() {
    let source = full(35);
    expire_from(&source, 2);
    let whole = pager(&source).version("0").all().await.unwrap();
    assert_eq!(whole.items.len(), 35);
    assert_eq!(limits(&source), [Some(10), Some(10), Some(10), None]);
    let versions =
        versions(&source.requests().into_iter().map(|(_, read)| read).collect::<Vec<_>>());
    assert_eq!(versions, ["0", "-", "-", "-"], "consistent then");
    let mut pages = pager(&source).pages();
    let mut anew = Vec::new();
    while let Some(page) = pages.next().await {
        let Page { items, restarts_list, .. } = page.unwrap();
        anew.push((items.len(), restarts_list));
    }
    assert_eq!(anew, [(10, false), (35, true)]);
}

#[tokio::test(start_paused = true)]
async fn a_pager_returns_the_error_when_that_was_asked_for_or_it_is_another_one() {
    let source = full(35);
    expire_from(&source, 1);
    let error = pager(&source).full_list_if_expired(false).all().await.unwrap_err();
    assert!(error.is_expired(), "{error}");
    source.script(|number, _| (number >= 3).then(|| MemoryResponse::status(500, "")));
    let mut pages = pager(&source).pages();
    assert!(pages.next().await.unwrap().is_ok());
    assert!(pages.next().await.unwrap().is_err());
    assert!(pages.next().await.is_none(), "nothing follows an error");
}

#[tokio::test(start_paused = true)]
async fn a_pager_stops_early_when_it_is_told_to_and_asks_no_further() {
    let source = full(35);
    let mut seen = 0;
    pager(&source)
        .each(|_| {
            seen += 1;
            if seen == 12 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .await
        .unwrap();
    assert_eq!((seen, source.requests().len()), (12, 2));
}

#[tokio::test(start_paused = true)]
async fn a_pager_reads_so_many_pages_ahead_and_no_more() {
    let source = full(95);
    let mut pages = pager(&source).read_ahead(3).pages();
    tokio::time::sleep(Duration::from_secs(60)).await;
    // Three pages wait, and another page has been read and waits for space.
    assert_eq!((pages.ready(), source.requests().len()), (3, 4));
    assert_eq!(pages.next().await.unwrap().unwrap().items.len(), 10);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(source.requests().len(), 5);
    drop(pages);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(source.requests().len(), 5, "nothing is read for nobody");
}

#[tokio::test(start_paused = true)]
async fn a_pager_without_a_page_size_asks_for_the_whole_list() {
    let source = full(95);
    let whole = pager(&source).page_size(0).all().await.unwrap();
    assert_eq!((whole.items.len(), limits(&source)), (95, vec![None]));
    pager(&source).page_size(1).pages().next().await.unwrap().unwrap();
    assert_eq!(limits(&source)[1], Some(1));
}

/// A list without them would be taken for the whole list.
#[tokio::test(start_paused = true)]
async fn a13_a_pager_fails_a_list_with_items_that_are_too_large() {
    let source = full(5);
    for large in ["x", "y"] {
        source.put(&map(large, &large.repeat(2000))).unwrap();
    }
    let error = pager(&source).item_limit(1000).all().await.unwrap_err();
    assert_eq!(error.kind(), windlass_core::ErrorKind::Decode, "{error}");
    assert!(error.to_string().contains("2 items are larger than 1000 bytes"), "{error}");
    assert_eq!(pager(&source).all().await.unwrap().items.len(), 7);
}

/// A source that never answers; each request holds a reference to the source while under way.
#[derive(Debug, Default)]
struct Silent(Arc<()>);

impl ListWatch for Silent {
    fn open(&self, _: Read) -> OpenFuture<'_> {
        let request = Arc::clone(&self.0);
        Box::pin(async move {
            let _request = request;
            std::future::pending().await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_pages_ends_the_request_under_way() {
    let source = Silent::default();
    let requests = Arc::clone(&source.0);
    // The source has one reference, and this test another.
    let pages = Pager::new(Arc::new(source)).pages();
    eventually("a page is asked for", || Arc::strong_count(&requests) == 3).await;
    drop(pages);
    let took = eventually("nobody asks", || Arc::strong_count(&requests) == 1).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_does_not_come_is_given_up_after_half_a_minute() {
    let source = full(5);
    for answer in 0..2 {
        source.script(move |_, _| match answer {
            0 => Some(MemoryResponse::Never),
            _ => hang(&[r#"{"items":["#.to_owned()]),
        });
        let started = Instant::now();
        let error = pager(&source).all().await.unwrap_err();
        assert_eq!(error.kind(), windlass_core::ErrorKind::Timeout, "{error}");
        assert_eq!(started.elapsed(), Duration::from_secs(30));
    }
}

/// A server that names the same next page for ever: the list fails, and is made anew after a pause.
#[tokio::test(start_paused = true)]
async fn b4_a_page_that_is_followed_by_itself_fails_the_list() {
    let source = source().without_streaming_lists();
    let page = r#"{"metadata":{"resourceVersion":"7","continue":"again"},"items":[]}"#.to_owned();
    source.script(move |_, _| body(std::slice::from_ref(&page)));
    let rig = Rig::start(source, ReflectorOptions::new());
    eventually("it has failed", || !rig.troubles.lock().is_empty()).await;
    assert_eq!(rig.reads().len(), 2);
    let told = format!("{:?}", rig.troubles.lock());
    assert!(told.contains("same page"), "{told}");
    let pager = crate::reflector::Pager::new(Arc::new(rig.source.clone()));
    let error = pager.all().await.unwrap_err();
    assert_eq!(error.kind(), windlass_core::ErrorKind::Decode, "{error}");
}
