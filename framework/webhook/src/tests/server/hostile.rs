//! Clients that are slow, endless, many, or deep.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use super::*;
use crate::MAX_BODY;

/// Returns the head of a review with a length.
fn head(length: usize, query: &str) -> String {
    format!(
        "POST {VALIDATE}{query} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n"
    )
}

/// Returns the seconds until the server closes a connection.
async fn until_closed(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> u64 {
    let began = Instant::now();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    began.elapsed().as_secs()
}

/// Returns the status of an answer.
async fn status(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[9..]).into_owned()
}

#[tokio::test(start_paused = true)]
async fn w2_half_a_handshake_is_cut_off_after_five_seconds() {
    let hooks = Hooks::start().await;
    let mut silent = hooks.pipe(1024).await;
    let mut half = hooks.pipe(1024).await;
    // The header of a record of a handshake, and no more.
    half.write_all(&[0x16, 0x03, 0x01, 0x02, 0x00]).await.unwrap();
    assert_eq!(until_closed(&mut silent).await, 5);
    assert_eq!(until_closed(&mut half).await, 0);
    assert_eq!((hooks.closed("handshake"), hooks.open()), (2, 0.0));
}

#[tokio::test(start_paused = true)]
async fn w2_no_tls_is_closed_at_once() {
    let hooks = Hooks::start().await;
    let mut plain = hooks.pipe(1024).await;
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert_eq!(until_closed(&mut plain).await, 0);
}

#[tokio::test(start_paused = true)]
async fn w2_slow_headers_are_cut_off_after_five_seconds_on_new_and_on_used_connections() {
    let hooks = Hooks::start().await;
    let mut fresh = hooks.tls().await;
    let mut used = hooks.tls().await;
    let body = review("CREATE", map(json!({})), Value::Null).to_string();
    used.write_all(format!("{}{body}", head(body.len(), "")).as_bytes()).await.unwrap();
    assert_eq!(status(&mut used).await, "200");
    pass(60).await;
    assert_eq!(hooks.closed("headers"), 1);
    for stream in [&mut fresh, &mut used] {
        let _ = stream.write_all(b"POST ").await;
    }
    // A byte every two seconds does not help.
    let dripping = async {
        for _ in 0..10 {
            pass(2).await;
            let _ = fresh.write_all(b"x").await;
        }
    };
    tokio::join!(dripping, async { assert_eq!(until_closed(&mut used).await, 5) });
    assert_eq!(hooks.closed("headers"), 2);
}

#[tokio::test(start_paused = true)]
async fn w2_headers_without_end_are_refused() {
    let hooks = Hooks::start().await;
    let mut stream = hooks.tls().await;
    let line = format!("x-{}: y\r\n", "a".repeat(1000));
    let long = format!("POST {VALIDATE} HTTP/1.1\r\n{}", line.repeat(30));
    let _ = stream.write_all(long.as_bytes()).await;
    assert_eq!(status(&mut stream).await, "431");
}

#[tokio::test(start_paused = true)]
async fn w2_a_slow_body_is_refused_after_ten_seconds_or_at_the_deadline_of_the_review() {
    let hooks = Hooks::start().await;
    for (query, seconds) in [("", 9), ("?timeout=30s", 10), ("?timeout=2s", 1)] {
        let mut stream = hooks.tls().await;
        let began = Instant::now();
        stream.write_all(head(5000, query).as_bytes()).await.unwrap();
        stream.write_all(b"{\"kind\":").await.unwrap();
        assert_eq!(status(&mut stream).await, "408");
        assert_eq!(began.elapsed().as_secs(), seconds, "{query}");
        assert!(until_closed(&mut stream).await <= 5);
    }
}

#[tokio::test(start_paused = true)]
async fn w2_a_body_without_end_is_refused_at_its_limit() {
    let hooks = Hooks::start().await;
    let mut announced = hooks.tls().await;
    announced.write_all(head(MAX_BODY + 1, "").as_bytes()).await.unwrap();
    assert_eq!(status(&mut announced).await, "413");

    let (mut reading, mut writing) = tokio::io::split(hooks.tls().await);
    let head = head(0, "").replace("content-length: 0", "transfer-encoding: chunked");
    writing.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    let endless = tokio::spawn(async move {
        let mut sent = 0;
        while writing.write_all(chunk.as_bytes()).await.is_ok() {
            sent += 0x10000;
        }
        sent
    });
    assert_eq!(status(&mut reading).await, "413");
    drop(reading);
    assert!(endless.await.unwrap() <= MAX_BODY + (1 << 20));
}

#[tokio::test(start_paused = true)]
async fn w2_ten_thousand_connections_do_not_keep_a_good_client_out() {
    let hooks = Hooks::start_with(|server| server.connections(64)).await;
    let mut regular = hooks.http().await;
    assert_eq!(send(&mut regular, "", json!({})).await.0, 200);
    let mut crowd = Vec::new();
    for _ in 0..10_000 {
        crowd.push(hooks.pipe(64).await);
    }
    assert!(hooks.open() <= 64.0, "{}", hooks.open());
    let began = Instant::now();
    assert_eq!(send(&mut regular, "", json!({})).await.0, 200);
    assert_eq!(hooks.ask(json!({})).await.0, 200);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(hooks.closed("displaced") >= 10_000 - 64, "{}", hooks.closed("displaced"));
}

#[tokio::test(start_paused = true)]
async fn w2_a_further_connection_waits_while_all_are_being_answered() {
    let hooks = Hooks::start_with(|server| server.connections(1)).await;
    let mut first = hooks.http().await;
    let slow = tokio::spawn(async move { send(&mut first, "", json!({ "slow": "" })).await.0 });
    tokio::time::sleep(Duration::from_millis(10)).await;
    let began = Instant::now();
    assert_eq!(hooks.ask(json!({})).await.0, 200);
    assert!(began.elapsed() >= Duration::from_millis(900), "{:?}", began.elapsed());
    assert_eq!(slow.await.unwrap(), 200);
}

/// Begins a review whose body does not come.
async fn slow_body(hooks: &Hooks) -> TlsStream<DuplexStream> {
    let mut slow = hooks.tls().await;
    slow.write_all(head(5000, "?timeout=30s").as_bytes()).await.unwrap();
    slow.write_all(b"{").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    slow
}

#[tokio::test(start_paused = true)]
async fn w2_slow_bodies_keep_a_good_client_out_for_two_seconds_at_most() {
    let hooks = Hooks::start_with(|server| server.connections(8)).await;
    let mut slow = Vec::new();
    for _ in 0..8 {
        slow.push(slow_body(&hooks).await);
    }
    let began = Instant::now();
    assert_eq!(hooks.ask(json!({})).await.0, 200);
    let taken = began.elapsed();
    assert!(taken <= Duration::from_millis(2100), "{taken:?}");
    // They began before the good one.
    assert!(taken >= Duration::from_millis(1900), "a body may take a moment: {taken:?}");
    assert_eq!(hooks.closed("displaced"), 1);
}

#[tokio::test(start_paused = true)]
async fn w2_a_slow_body_loses_its_place_before_a_connection_that_is_used_now_and_then() {
    let hooks = Hooks::start_with(|server| server.connections(2)).await;
    let mut used = hooks.http().await;
    assert_eq!(send(&mut used, "", json!({})).await.0, 200);
    let mut slow = slow_body(&hooks).await;
    pass(3).await;
    assert_eq!(hooks.ask(json!({})).await.0, 200);
    assert_eq!(until_closed(&mut slow).await, 0);
    assert_eq!(send(&mut used, "", json!({})).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn w2_a_connection_whose_review_is_being_answered_keeps_its_place() {
    let hooks = Hooks::start_with(|server| server.connections(1)).await;
    let mut first = hooks.http().await;
    let answered = tokio::spawn(async move {
        let (code, _) = send(&mut first, "?timeout=10s", json!({ "hang": "" })).await;
        code
    });
    tokio::time::sleep(Duration::from_millis(10)).await;
    let began = Instant::now();
    assert_eq!(hooks.ask(json!({})).await.0, 200);
    assert_eq!(began.elapsed().as_secs(), 9);
    assert_eq!(answered.await.unwrap(), 504);
}

#[tokio::test(start_paused = true)]
async fn w2_of_idle_connections_the_one_that_was_used_longest_ago_loses_its_place() {
    let hooks = Hooks::start_with(|server| server.connections(2)).await;
    let (mut older, mut newer) = (hooks.http().await, hooks.http().await);
    for sender in [&mut newer, &mut older] {
        assert_eq!(send(sender, "", json!({})).await.0, 200);
        pass(1).await;
    }
    assert_eq!(hooks.ask(json!({})).await.0, 200);
    assert_eq!(send(&mut older, "", json!({})).await.0, 200);
    assert!(newer.ready().await.is_err(), "it was displaced");
}

/// A listener whose first connections end before they are accepted.
struct Reset(std::sync::atomic::AtomicUsize, Pipes);

impl WebhookListener for Reset {
    fn accept(&self) -> AcceptFuture<'_> {
        use std::sync::atomic::Ordering::Relaxed;
        let left = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
        match left {
            Ok(_) => {
                let aborted = std::io::Error::from(std::io::ErrorKind::ConnectionAborted);
                Box::pin(std::future::ready(Err(aborted)))
            }
            Err(_) => self.1.accept(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn w2_connections_that_end_before_they_are_accepted_delay_no_other() {
    let (dial, accepted) = mpsc::channel(16);
    let listener = Reset(1000.into(), Pipes(Mutex::new(accepted)));
    let hooks = Hooks::start_with(|server| server.listener(listener)).await;
    let hooks = Hooks { dial, ..hooks };
    let began = Instant::now();
    assert_eq!(hooks.ask(json!({})).await.0, 200);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn w2_large_bodies_wait_for_memory_and_small_ones_do_not() {
    let hooks = Hooks::start().await;
    let mut hogs = Vec::new();
    for _ in 0..5 {
        let mut hog = hooks.tls().await;
        hog.write_all(head(MAX_BODY, "?timeout=30s").as_bytes()).await.unwrap();
        hogs.push(hog);
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let began = Instant::now();
    assert_eq!(hooks.ask(json!({})).await.0, 200);
    assert_eq!(began.elapsed(), Duration::ZERO);
    let large = json!({ "large": "x".repeat(1 << 20) });
    let asked = send(&mut hooks.http().await, "?timeout=30s", large).await;
    assert_eq!(asked.0, 200);
    assert_eq!(began.elapsed().as_secs(), 9);
}

#[tokio::test(start_paused = true)]
async fn w2_deep_json_fails_the_request_and_nothing_else() {
    let hooks = Hooks::start().await;
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let object = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","data":{deep}}}"#);
    let inside = review("CREATE", json!("OBJECT"), Value::Null).to_string();
    for body in [deep.clone(), inside.replace("\"OBJECT\"", &object)] {
        let (parts, _) = request("", json!({})).into_parts();
        let asked = Request::from_parts(parts, Full::new(Bytes::from(body)));
        let answer = hooks.http().await.send_request(asked).await.unwrap();
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let is_denied = body["response"]["allowed"] == json!(false);
        assert!(code == 400 || is_denied, "{code}: {body}");
    }
    assert_eq!(hooks.ask(json!({})).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn w2_a_client_that_does_not_read_its_answer_is_cut_off_after_ten_seconds() {
    let hooks = Hooks::start().await;
    let config = hooks.authority.client(&[]);
    let mut stream = connect(config, hooks.pipe(512).await).await.unwrap();
    let warning = "x".repeat(4000);
    let body = review("CREATE", map(json!({ "warn": warning })), Value::Null).to_string();
    stream.write_all(format!("{}{body}", head(body.len(), "")).as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    pass(9).await;
    assert_eq!(hooks.open(), 1.0);
    pass(2).await;
    assert_eq!((hooks.open(), hooks.closed("write")), (0.0, 1));
}

#[tokio::test(start_paused = true)]
async fn w2_rapid_resets_end_their_connection_and_no_other() {
    let hooks = Hooks::start_with(WebhookServer::http2).await;
    let mut good = hooks.http().await;
    let config = hooks.authority.client(&["h2"]);
    let stream = connect(config, hooks.pipe(64 * 1024).await).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    let ended = tokio::spawn(connection);
    let mut sent = 0;
    for _ in 0..10_000 {
        let Ok(mut ready) = client.clone().ready().await else { break };
        let (parts, _) = request("", json!({ "hang": "" })).into_parts();
        let Ok((_, mut stream)) = ready.send_request(Request::from_parts(parts, ()), false) else {
            break;
        };
        // A request that was not sent yet would not be sent at all.
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        stream.send_reset(h2::Reason::CANCEL);
        sent += 1;
    }
    assert!(sent < 1000, "{sent}");
    assert_eq!(hooks.closed("resets"), 1);
    assert!(ended.await.unwrap().is_err());
    assert_eq!(send(&mut good, "", json!({})).await.0, 200);
}
