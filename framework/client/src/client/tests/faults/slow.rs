//! Servers that answer too slowly (A6), and watches in gzip (A7).

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::api::WatchEvent;

async fn a6_head_drips(rig: Rig, head: Duration) {
    let drip = Bad::Drip("HTTP/1.1 200 OK\r\nx-slow: ".into(), "x".into(), rig.drip);
    rig.server.change([drip.clone(), Bad::Write(answer(200, "{}"))]);
    let started = Instant::now();
    rig.client.send(get()).await.unwrap();
    let took = started.elapsed();
    assert!(took >= head && took < rig.call, "{took:?}");
    until("the slow connection is left", || rig.server.left() == 1).await;

    rig.server.change([drip]);
    let (error, times) = rig.fails(create()).await;
    assert_eq!((error.kind(), times), (ErrorKind::Ambiguous, 1), "{error}");
    let (error, times) = rig.fails(get()).await;
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(times > 1, "a read is tried on another connection");
    rig.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn a6_a_head_that_drips_is_cut_after_10_seconds_in_memory() {
    a6_head_drips(Rig::in_memory([]), Duration::from_secs(10)).await;
}

#[tokio::test]
async fn a6_a_head_that_drips_is_cut_on_a_socket() {
    a6_head_drips(Rig::on_a_socket([]).await, Duration::from_millis(150)).await;
}

async fn a6_body_drips(rig: Rig) {
    let drip = || Bad::Drip(chunked(""), chunk(" "), rig.drip);
    rig.server.change([drip()]);
    for (request, kind) in [(create(), ErrorKind::Ambiguous), (get(), ErrorKind::Timeout)] {
        let (error, times) = rig.fails(request).await;
        assert_eq!((error.kind(), times), (kind, 1), "{error}");
    }
    until("the connections are closed", || rig.server.left() == 2).await;
    rig.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn a6_a_body_that_drips_ends_with_the_call_in_memory() {
    a6_body_drips(Rig::in_memory([])).await;
}

#[tokio::test]
async fn a6_a_body_that_drips_ends_with_the_call_on_a_socket() {
    a6_body_drips(Rig::on_a_socket([]).await).await;
}

#[tokio::test(start_paused = true)]
async fn a6_an_error_whose_text_drips_is_told_by_its_code_in_memory() {
    let head = "HTTP/1.1 409 X\r\ncontent-length: 4000\r\n\r\nalready";
    let rig = Rig::in_memory([Bad::Drip(head.into(), ".".into(), Duration::from_secs(1))]);
    let started = Instant::now();
    let (error, times) = rig.fails(create()).await;
    assert_eq!((error.kind(), times), (ErrorKind::Conflict, 1), "{error}");
    assert!(error.to_string().contains("already...."), "{error}");
    assert_eq!(started.elapsed().as_secs(), 5);
    rig.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn a6_a_watch_frame_that_drips_is_given_up_after_30_seconds_in_memory() {
    let frames = format!("{}{{\"type\":\"ADDED\",\"object\":", event("one", 7));
    let first = [&chunked("")[..], &chunk(frames)].concat();
    let rig = Rig::in_memory([Bad::Drip(first.into(), chunk(" "), Duration::from_secs(1))]);
    let api = rig.client.namespace::<ConfigMap>("shop");
    let mut events =
        api.watch().resource_version("6").timeout(Duration::from_secs(600)).await.unwrap();
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
    let started = Instant::now();
    let end = tokio::time::timeout(Duration::from_secs(60), events.next()).await;
    let error = end.expect("an end").unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!((29..=31).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    assert!(events.next().await.is_none());
    until("the connection is closed", || rig.server.left() == 1).await;
    rig.goes_on().await;
}

fn gzip(plain: &str) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain.as_bytes()).unwrap();
    encoder.finish().unwrap().into()
}

async fn a7_members(rig: Rig) {
    let gate = Arc::new(Semaphore::new(0));
    let mut steps = vec![chunked("content-encoding: gzip\r\n")];
    let names = ["one", "two", "three"];
    steps.extend(names.iter().map(|name| chunk(gzip(&event(name, 7)))));
    let torn = gzip(&event("torn", 8));
    steps.push(chunk(&torn[..torn.len() - 9]));
    steps.push(chunk(""));
    rig.server.change([Bad::Steps(steps, Arc::clone(&gate))]);
    gate.add_permits(1);
    let api = rig.client.namespace::<ConfigMap>("shop");
    let mut events = api.watch().resource_version("6").await.unwrap();
    assert!(rig.server.last_head().contains("accept-encoding: identity"), "not asked for");
    for name in names {
        gate.add_permits(1);
        let Some(Ok(WatchEvent::Added(map))) = events.next().await else { panic!("{name}") };
        assert_eq!(map.metadata.name.as_deref(), Some(name), "told when its member is there");
    }
    gate.add_permits(2);
    // The event's text was complete, the checksum was not: whether or not the event is delivered,
    // the end is an error.
    let mut last = events.next().await;
    if let Some(Ok(WatchEvent::Added(_))) = last {
        last = events.next().await;
    }
    assert_eq!(last.unwrap().unwrap_err().kind(), ErrorKind::Transport);
    rig.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn a7_a_watch_in_gzip_members_tells_each_event_when_it_comes_in_memory() {
    a7_members(Rig::in_memory([])).await;
}

#[tokio::test]
async fn a7_a_watch_in_gzip_members_tells_each_event_when_it_comes_on_a_socket() {
    a7_members(Rig::on_a_socket([]).await).await;
}

#[tokio::test(start_paused = true)]
async fn a7_a_watch_in_gzip_may_be_cut_anywhere_in_memory() {
    let all: Vec<u8> =
        ["one", "two"].iter().flat_map(|name| gzip(&event(name, 7)).to_vec()).collect();
    let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
    let mut steps = vec![chunked("content-encoding: gzip\r\n")];
    steps.extend(all.chunks(1).map(chunk));
    steps.push(chunk(""));
    let rig = Rig::in_memory([Bad::Steps(steps, gate)]);
    let mut stream = rig.client.stream(watch(300)).await.unwrap();
    let mut plain = Vec::new();
    while let Some(piece) = stream.next().await {
        plain.extend(piece.unwrap());
    }
    assert_eq!(plain, format!("{}{}", event("one", 7), event("two", 7)).as_bytes());
    rig.goes_on().await;
}
