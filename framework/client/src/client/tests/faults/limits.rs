//! Servers that send too much, and readers that are too slow for them.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::http2::{Dial, Peer};
use super::*;

const KIB: usize = 1 << 10;

fn at(path: &str) -> Prepared {
    Prepared::get(path, format!("read {path}"))
}

async fn endless_heads(rig: Rig) {
    let head = |line: &str| {
        let line = Bytes::from(line.to_owned());
        Bad::Drip("HTTP/1.1 200 OK\r\n".into(), line, Duration::ZERO)
    };
    for line in [format!("x-a: {}\r\n", "y".repeat(1000)), "x: y\r\n".to_owned(), "y".repeat(999)] {
        rig.server.change([head(&line)]);
        let before = rig.server.pushed();
        let (error, times) = rig.fails(create()).await;
        assert_eq!((error.kind(), times), (ErrorKind::Ambiguous, 1), "{error}");
        assert!(error.to_string().contains("too large"), "{error}");
        // Data that was read, and data that waited in the buffers of the system.
        assert!(rig.server.pushed() - before < 16 << 20);
    }
    rig.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_endless_headers_is_cut_in_memory() {
    let rig = Rig::in_memory([]);
    let server = Arc::clone(&rig.server);
    endless_heads(rig).await;
    let most = 3 * (64 + 16 + 16) * KIB;
    assert!(server.pushed() < most, "64 KiB each, and a pipe: {}", server.pushed());
}

#[tokio::test]
async fn an_answer_with_endless_headers_is_cut_on_a_socket() {
    endless_heads(Rig::on_a_socket([]).await).await;
}

async fn endless_interim_answers(rig: Rig, pause: Duration) {
    let interim = || Bad::Drip(Bytes::new(), "HTTP/1.1 103 Early\r\n\r\n".into(), pause);
    rig.server.change([interim()]);
    let (error, times) = rig.fails(create()).await;
    assert_eq!((error.kind(), times), (ErrorKind::Ambiguous, 1), "{error}");
    rig.server.change([interim(), Bad::Write(answer(200, "{}"))]);
    rig.client.send(get()).await.unwrap();
    until("the connections are closed", || rig.server.left() == 2).await;
    rig.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_interim_answers_for_ever_is_cut_in_memory() {
    endless_interim_answers(Rig::in_memory([]), Duration::from_millis(100)).await;
}

#[tokio::test]
async fn a_server_that_sends_interim_answers_for_ever_is_cut_on_a_socket() {
    endless_interim_answers(Rig::on_a_socket([]).await, Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn an_http2_answer_with_100_kib_of_headers_is_refused() {
    let peer = Peer::new(true);
    let client = Client::over(Dial::pipe(&peer), environment());
    let mut request = at("/head");
    request.timeout = Some(Duration::from_secs(3));
    let error = client.send(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
    client.send(get()).await.unwrap();
}

/// A reader that takes a single chunk and then pauses.
async fn slow_reader(client: &Client, peer: &Peer, most: usize) {
    let mut slow = client.stream(at("/flood")).await.unwrap();
    slow.next().await.unwrap().unwrap();
    let before = AtomicU32::new(0);
    until("the server is stopped", || {
        let now = u32::try_from(peer.pushed()).unwrap();
        before.swap(now, Ordering::Relaxed) == now
    })
    .await;
    let pushed = peer.pushed();
    assert!(pushed <= most, "{pushed} bytes were pushed at a reader that does not read");
    // When the reader continues, so does the stream.
    for _ in 0..50 {
        slow.next().await.unwrap().unwrap();
    }
    until("the server goes on", || peer.pushed() > pushed).await;
    drop(slow);
    until("the server notices", || peer.dropped() == 1).await;
    client.send(get()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_stops_the_server_over_http1_in_memory() {
    let peer = Peer::new(false);
    let client = Client::over(Dial::pipe(&peer), environment());
    // The pipe, the client's buffer, the server's own, and chunks between them.
    slow_reader(&client, &peer, (64 + 64 + 512 + 64) * KIB).await;
    assert_eq!(peer.connections(), 2, "a stream that was given up ends its connection");
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_stops_the_server_over_http2_in_memory() {
    let peer = Peer::new(true);
    let client = Client::over(Dial::pipe(&peer), environment());
    slow_reader(&client, &peer, (1024 + 512 + 64) * KIB).await;
    assert_eq!(peer.connections(), 1, "a stream that was given up leaves its connection");
}

#[tokio::test(start_paused = true)]
async fn slow_readers_do_not_stop_others_on_the_same_connection() {
    let peer = Peer::new(true);
    let client = Client::over(Dial::pipe(&peer), environment());
    let mut slow = Vec::new();
    for _ in 0..40 {
        slow.push(client.stream(at("/flood")).await.unwrap());
    }
    until("all are stopped", || peer.pushed() >= 40 << 20).await;
    let started = Instant::now();
    client.send(create()).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(peer.connections(), 1);
}

#[tokio::test(start_paused = true)]
async fn g_r2_a_dropped_stream_ends_its_request_at_the_server() {
    for http2 in [false, true] {
        let peer = Peer::new(http2);
        let client = Client::over(Dial::pipe(&peer), environment());
        let mut stream = client.stream(at("/ticks")).await.unwrap();
        peer.ticks.add_permits(1);
        stream.next().await.unwrap().unwrap();
        assert_eq!(peer.dropped(), 0);
        drop(stream);
        until("the server notices", || peer.dropped() == 1).await;
        client.send(get()).await.unwrap();
        assert_eq!(peer.connections(), if http2 { 1 } else { 2 });
    }
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn zipped(body: &[u8]) -> Bad {
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend(body);
    Bad::Write(bytes.into())
}

#[tokio::test(start_paused = true)]
async fn whole_answers_and_lists_are_asked_for_in_gzip_and_read_in_plain() {
    let body = gzip(b"{\"plain\":true}");
    let rig = Rig::in_memory([zipped(&body)]);
    let answer = rig.client.send(get()).await.unwrap();
    assert_eq!(answer.body, "{\"plain\":true}");
    assert!(!answer.headers.contains_key("content-encoding"));
    assert!(rig.server.last_head().contains("accept-encoding: gzip\r\n"));

    let list = Prepared::new(Verb::List, Method::GET, "/api/v1/pods".into(), "list pods".into());
    rig.server.change([zipped(&[gzip(b"{\"items\":"), gzip(b"[]}")].concat())]);
    let mut stream = rig.client.stream(list).await.unwrap();
    assert!(rig.server.last_head().contains("accept-encoding: gzip\r\n"));
    let mut plain = Vec::new();
    while let Some(piece) = stream.next().await {
        plain.extend(piece.unwrap());
    }
    assert_eq!(plain, b"{\"items\":[]}");
    assert_eq!(rig.server.connections(), 1, "read to the end, connections are kept");

    for request in [watch(60), get()] {
        drop(rig.client.stream(request).await.unwrap());
        assert!(rig.server.last_head().contains("accept-encoding: identity\r\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn compression_can_be_turned_off_and_left_to_the_caller() {
    let server = BadServer::new([Bad::Write(answer(200, "{}"))]);
    let client = Client::builder()
        .connector(Arc::new(Pipe(Arc::clone(&server))))
        .environment(environment())
        .compression(false)
        .build()
        .unwrap();
    client.send(get()).await.unwrap();
    assert!(server.last_head().contains("accept-encoding: identity\r\n"));

    let body = gzip(b"plain");
    server.change([zipped(&body)]);
    let mut request = get();
    request.headers.insert("accept-encoding", "gzip".parse().unwrap());
    assert_eq!(client.send(request).await.unwrap().body, body);
}

#[tokio::test(start_paused = true)]
async fn a_gzip_bomb_is_cut_at_the_limit_of_the_answer() {
    let bomb = gzip(&gzip_of_zeros());
    let rig = Rig::in_memory([zipped(&bomb)]);
    let (error, times) = rig.fails(get()).await;
    assert_eq!((error.kind(), times), (ErrorKind::Decode, 1), "{error}");
    assert!(error.to_string().contains("larger than 64 MiB"), "{error}");
    let mut request = create();
    request.response_limit = Some(10 * KIB);
    let (error, times) = rig.fails(request).await;
    assert_eq!((error.kind(), times), (ErrorKind::Decode, 1));
    assert!(
        error.to_string().contains("answered 200, but the answer is larger than 10 KiB"),
        "{error}"
    );
    rig.goes_on().await;
}

/// 65 MiB of zeros.
fn gzip_of_zeros() -> Vec<u8> {
    vec![0; 65 << 20]
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_gzip_or_of_an_unknown_encoding_is_an_error_once() {
    let foreign = "HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 2\r\n\r\n{}";
    for bad in [zipped(b"{\"plain\":true}"), Bad::Write(foreign.into())] {
        let rig = Rig::in_memory([bad]);
        let (error, times) = rig.fails(get()).await;
        assert_eq!((error.kind(), times), (ErrorKind::Decode, 1), "{error}");
        let mut stream = rig.client.stream(watch(60)).await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Decode);
        assert!(stream.next().await.is_none());
        rig.goes_on().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_largest_answer_is_the_clients_to_say() {
    let server = BadServer::new([Bad::Write(answer(200, [b'x'; 3000]))]);
    let client = Client::builder()
        .connector(Arc::new(Pipe(Arc::clone(&server))))
        .environment(environment())
        .max_response_size(2999)
        .build()
        .unwrap();
    let error = client.send(get()).await.unwrap_err();
    assert!(error.to_string().contains("larger than 2999 bytes"), "{error}");
    let mut request = get();
    request.response_limit = Some(3000);
    assert_eq!(client.send(request).await.unwrap().body.len(), 3000);
}

#[tokio::test(start_paused = true)]
async fn g_r1_a_list_that_makes_no_progress_ends_and_a_silent_log_lives_for_hours() {
    let first = [&chunked("")[..], &chunk("x")].concat();
    let rig = Rig::in_memory([Bad::Stop(first.into())]);
    let list = Prepared::new(Verb::List, Method::GET, "/api/v1/pods".into(), "list pods".into());
    let mut stream = rig.client.stream(list).await.unwrap();
    stream.next().await.unwrap().unwrap();
    // Time that the reader spends elsewhere does not count.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let started = Instant::now();
    for _ in 0..9 {
        // Nor does a cancelled read reset the wait.
        assert!(tokio::time::timeout(Duration::from_secs(3), stream.next()).await.is_err());
    }
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert_eq!(error.to_string(), "cannot list pods: nothing came for 30 s");
    assert_eq!(started.elapsed().as_secs(), 30);

    let mut log = rig.client.stream(at("/log")).await.unwrap();
    log.next().await.unwrap().unwrap();
    let started = Instant::now();
    let hours = Duration::from_secs(4 * 3600);
    assert!(tokio::time::timeout(hours, log.next()).await.is_err());
    assert_eq!(log.next().await.unwrap().unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(started.elapsed(), hours + Duration::from_secs(30));
    let mut log = rig.client.stream(at("/log")).await.unwrap().idle_limit(None);
    log.next().await.unwrap().unwrap();
    let days = Duration::from_secs(3 * 86_400);
    assert!(tokio::time::timeout(days, log.next()).await.is_err());
}
