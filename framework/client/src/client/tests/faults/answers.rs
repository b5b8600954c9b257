//! Error answers: of the API server (A1: 429, A2: 5xx) and of proxies in front of the API server
//! (A14: text instead of a Status).

use super::*;
use windlass_core::metrics::names::REST_RETRIES;

fn with(code: u16, headers: &str, body: &str) -> Bad {
    let length = body.len();
    Bad::Write(
        format!("HTTP/1.1 {code} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into(),
    )
}

#[tokio::test(start_paused = true)]
async fn a1_throttling_is_obeyed_up_to_a_minute_and_within_the_call_in_memory() {
    let rig = Rig::in_memory([with(429, "retry-after: 7\r\n", ""), Bad::Write(answer(201, "{}"))]);
    for request in [create(), apply(), get()] {
        rig.server.change([with(429, "retry-after: 7\r\n", ""), Bad::Write(answer(201, "{}"))]);
        let (before, started) = (rig.server.requests(), Instant::now());
        rig.client.send(request).await.unwrap();
        assert_eq!(rig.server.requests() - before, 2, "a refusal is no execution");
        assert!((7..8).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    }
    for (asked, text) in [("61", "61 s"), ("86400", "86400 s"), ("45", "45 s")] {
        rig.server.change([with(429, &format!("retry-after: {asked}\r\n"), "")]);
        let mut patient = create();
        // A minute is obeyed, if the call has that much time.
        patient.timeout = Some(Duration::from_secs(if asked == "45" { 40 } else { 100_000 }));
        let started = Instant::now();
        let (error, times) = rig.fails(patient).await;
        assert_eq!((error.kind(), times), (ErrorKind::TooManyRequests, 1));
        assert!(error.to_string().contains(text), "{error}");
        assert!(started.elapsed() < Duration::from_secs(1), "it fails at once");
    }
    rig.goes_on().await;
}

/// A client that sends a request once a second, for two hours.
#[tokio::test(start_paused = true)]
async fn a1_hours_of_throttling_cost_a_tenth_of_the_traffic_in_retries_in_memory() {
    let rig = Rig::in_memory([with(429, "retry-after: 1\r\n", "")]);
    let started = Instant::now();
    let mut calls = 0;
    while started.elapsed() < Duration::from_secs(2 * 3600) {
        let (error, _) = rig.fails(get()).await;
        assert_eq!(error.kind(), ErrorKind::TooManyRequests);
        calls += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let retries = rig.server.requests() - calls;
    let seconds = started.elapsed().as_secs() as usize;
    assert!(retries <= 20 + calls / 10 + seconds / 10, "{retries} of {calls} in {seconds} s");
    let counted =
        rig.client.environment().metrics.counted(&REST_RETRIES, &["429", "GET", "localhost"]);
    assert_eq!(counted, retries as u64);
    rig.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn a2_a_write_of_unknown_fate_is_executed_once_and_reads_go_on_in_memory() {
    let rig = Rig::in_memory([Bad::Write(answer(200, "{}"))]);
    for code in [500, 502, 503, 504] {
        rig.server.change([Bad::Write(answer(code, "etcdserver: request timed out"))]);
        let (error, times) = rig.fails(create()).await;
        assert_eq!((error.kind(), times), (ErrorKind::Ambiguous, 1), "{code}: {error}");
        assert_eq!(error.status().map(|status| status.code), Some(code));

        let bad = Bad::Write(answer(code, ""));
        rig.server.change([bad.clone(), bad, Bad::Write(answer(200, "{}"))]);
        let before = rig.server.requests();
        let read = rig.client.send(get()).await;
        let times = rig.server.requests() - before;
        // A bare 500 would most likely come again; the other codes stem from something in between.
        assert_eq!((read.is_ok(), times), if code == 500 { (false, 1) } else { (true, 3) });
        rig.goes_on().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a2_hours_of_a_server_in_trouble_end_with_its_recovery_in_memory() {
    let rig = Rig::in_memory([with(503, "retry-after: 5\r\n", "shutting down")]);
    let started = Instant::now();
    let mut failed = 0;
    while started.elapsed() < Duration::from_secs(3 * 3600) {
        let (error, _) = rig.fails(apply()).await;
        assert_eq!(error.kind(), ErrorKind::Server, "{error}");
        failed += 1;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    assert!(failed >= 3 * 3600 / 36, "no call takes longer than its deadline: {failed}");
    rig.goes_on().await;
}

async fn a14_pages_of_proxies(rig: Rig) {
    let page = format!("<html><body>no upstream \u{fffd}{}</body></html>", "x ".repeat(50_000));
    let mut garbage = page.clone().into_bytes();
    garbage.extend([0xff, 0xfe, 0]);
    for (code, kind) in
        [(403, ErrorKind::Forbidden), (404, ErrorKind::NotFound), (500, ErrorKind::Server)]
    {
        rig.server.change([Bad::Write(answer(code, &garbage))]);
        let (error, times) = rig.fails(get()).await;
        assert_eq!((error.kind(), times), (kind, 1), "{error}");
        let text = &error.status().unwrap().message;
        assert!(text.starts_with("<html><body>no upstream"), "{text}");
        assert!(text.len() <= 2048 + '…'.len_utf8(), "{}", text.len());
    }
    let used = (rig.server.requests(), rig.server.connections());
    assert_eq!(used, (3, 1), "pages are read to the end: one connection");
    // A page where an object was expected.
    rig.server.change([Bad::Write(answer(200, "<html>please log in</html>"))]);
    let api = rig.client.namespace::<k8s_openapi::api::core::v1::ConfigMap>("shop");
    let error = api.get("home").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode, "{error}");
    rig.goes_on().await;
}

#[tokio::test(start_paused = true)]
async fn a14_a_proxys_page_is_an_error_of_2_kib_in_memory() {
    a14_pages_of_proxies(Rig::in_memory([])).await;
}

#[tokio::test]
async fn a14_a_proxys_page_is_an_error_of_2_kib_on_a_socket() {
    a14_pages_of_proxies(Rig::on_a_socket([]).await).await;
}

#[tokio::test(start_paused = true)]
async fn a14_an_endless_error_page_is_cut_in_memory() {
    let endless = Bad::Drip(
        "HTTP/1.1 403 X\r\ntransfer-encoding: chunked\r\n\r\n".into(),
        chunk(vec![b'x'; 4096]),
        Duration::ZERO,
    );
    let rig = Rig::in_memory([endless]);
    let (error, times) = rig.fails(create()).await;
    assert_eq!((error.kind(), times), (ErrorKind::Forbidden, 1), "{error}");
    assert!(rig.server.pushed() < 2 << 20, "1 MiB is read: {}", rig.server.pushed());
    until("the connection is closed", || rig.server.left() == 1).await;
    rig.goes_on().await;
}
