//! Outcomes of a request that is sent: answers, retries, doubt, cancellation.

use std::error::Error as StdError;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::client::{Body, PatchType, Request};
use windlass_core::error::ErrorKind;

const BUSY: Reply = Reply::With(429, "retry-after", "1", "slow down");

fn home(client: &Client) -> Request {
    client.get().group_version("", "v1").namespace("shop").resource("configmaps").name("home")
}

/// A create whose body comes from a reader.
fn streamed(client: &Client, body: &'static [u8]) -> Request {
    let request = client.post().group_version("", "v1").namespace("shop").resource("configmaps");
    request.body(Body::reader(body))
}

#[tokio::test(start_paused = true)]
async fn mechanism_1_a_request_owns_its_client_and_is_sent_by_itself_again_and_again() {
    let server = Server::with([Reply::Answer(200, r#"{"a":1}"#)]);
    let request = home(&client(&server));
    for _ in 0..2 {
        assert_eq!(request.send().await.unwrap().json::<Value>().unwrap(), json!({"a": 1}));
    }
    assert_eq!(request.send_raw().await.unwrap(), r#"{"a":1}"#);
    let mut stream = request.stream().await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), r#"{"a":1}"#);
    assert_eq!(server.count(), 4);
    assert_eq!(server.seen()[0].target, "/api/v1/namespaces/shop/configmaps/home");
}

/// Upstream: a request with retries, sent from several goroutines.
#[tokio::test(start_paused = true)]
async fn mechanism_1_one_request_is_sent_from_several_tasks_each_with_its_whole_body() {
    let busy = std::iter::repeat_n(Reply::With(503, "retry-after", "1", ""), 3);
    let server = Server::with(busy.chain([Reply::Answer(200, "{}")]));
    let request = client(&server)
        .put()
        .group_version("", "v1")
        .namespace("shop")
        .resource("configmaps")
        .name("home")
        .object(&json!({"data": {"a": "b"}}));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let request = request.clone();
            tokio::spawn(async move { request.send().await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(server.count(), 8 + 3);
    assert!(server.seen().iter().all(|seen| seen.body == r#"{"data":{"a":"b"}}"#));
}

#[tokio::test(start_paused = true)]
async fn mechanism_4_a_reader_is_streamed_whole_and_once() {
    let server = Server::with([Reply::Answer(201, "{}")]);
    let request = streamed(&client(&server), b"{\"from\":\"a reader\"}");
    assert!(request.send().await.unwrap().was_created());
    let seen = server.seen().remove(0);
    assert_eq!(seen.body, "{\"from\":\"a reader\"}");
    assert_eq!(seen.headers["transfer-encoding"], "chunked");
    let error = request.send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("its body was read already"), "{error}");
    assert_eq!(server.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn mechanism_4_only_byte_bodies_are_sent_again() {
    for http2 in [false, true] {
        let replies = [BUSY, Reply::Answer(201, "{}")];
        let server = if http2 { Server::http2(replies) } else { Server::with(replies) };
        let request = create_request(&client(&server));
        request.send().await.unwrap();
        let seen = server.seen();
        assert!(seen.len() == 2 && seen.iter().all(|seen| seen.body == r#"{"a":1}"#));

        let server = if http2 { Server::http2([BUSY]) } else { Server::with([BUSY]) };
        let error = streamed(&client(&server), b"{}").send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooManyRequests);
        assert!(error.to_string().contains("read from a reader, once"), "{error}");
        assert_eq!(server.count(), 1);
    }
}

fn create_request(client: &Client) -> Request {
    let request = client.post().group_version("", "v1").namespace("shop").resource("configmaps");
    request.object(&json!({"a": 1}))
}

#[tokio::test(start_paused = true)]
async fn mechanism_4_a_reader_that_nobody_has_read_survives_a_refused_connection() {
    let server = Server::with([Reply::Answer(201, "{}")]);
    server.refusals.store(2, Ordering::Relaxed);
    streamed(&client(&server), b"{}").send().await.unwrap();
    assert_eq!(server.count(), 1);
}

/// Fails after the first bytes.
struct Broken(bool);

impl tokio::io::AsyncRead for Broken {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        if std::mem::replace(&mut self.0, true) {
            return std::task::Poll::Ready(Err(io::Error::other("the disk is gone")));
        }
        buffer.put_slice(b"{\"half\":");
        std::task::Poll::Ready(Ok(()))
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_4_a_reader_that_fails_is_told_and_nothing_was_executed() {
    let server = Server::with([Reply::Answer(201, "{}")]);
    let request = client(&server).post().abs_path(["/x"]).body(Body::reader(Broken(false)));
    let error = request.send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other, "{error:?}");
    assert!(error.to_string().contains("the disk is gone"), "{error}");
    assert_eq!(server.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn mechanism_12_429_and_5xx_with_retry_after_are_tried_again_as_often_as_allowed() {
    for (retries, calls) in [(0, 1), (1, 2), (3, 4)] {
        let server = Server::with([BUSY]);
        let request = home(&client(&server)).max_retries(retries);
        let started = Instant::now();
        let error = request.send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooManyRequests);
        assert_eq!((server.count(), started.elapsed().as_secs()), (calls, retries.into()));
        assert_eq!(server.connections(), 1, "the answers were read, so the connection is kept");
        let server = Server::with([BUSY]);
        home(&client(&server)).max_retries(retries).stream().await.unwrap_err();
        assert_eq!(server.count(), calls);
    }
    let server = Server::with([BUSY]);
    let request = home(&client(&server)).timeout(Duration::from_secs(3600));
    request.send().await.unwrap_err();
    assert_eq!(server.count(), 11, "ten retries unless the request says otherwise");
}

/// Upstream: `TestConnectionResetByPeerIsRetried`; here also for requests other than `GET` that are
/// safe to repeat.
#[tokio::test(start_paused = true)]
async fn mechanism_12_a_lost_connection_is_tried_again_for_reads_and_what_is_repeatable() {
    let put = |client: &Client| {
        let request = client.put().group_version("", "v1").namespace("shop");
        request.resource("configmaps").name("home").object(&json!({"a": 1}))
    };
    for (repeatable, again) in [(false, false), (true, true)] {
        let server = Server::with([Reply::Cut, Reply::Cut, Reply::Answer(200, "{}")]);
        let request = put(&client(&server));
        let request = if repeatable { request.repeatable() } else { request };
        assert_eq!(request.send().await.is_ok(), again);
        assert_eq!(server.count(), if again { 3 } else { 1 });
    }
    let server = Server::with([Reply::Cut, Reply::Cut, Reply::Answer(200, "{}")]);
    home(&client(&server)).send().await.unwrap();
    assert_eq!(server.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn mechanism_12_the_final_error_wraps_those_of_earlier_attempts() {
    let server = Server::with([Reply::Cut, BUSY, BUSY, Reply::Answer(404, "gone")]);
    let error = home(&client(&server)).send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let mut chain = Vec::new();
    let mut cause = error.source();
    while let Some(source) = cause {
        chain.push(source.to_string());
        cause = source.source();
    }
    assert_eq!(chain[0], "attempts 2 to 3: 429 TooManyRequests: slow down");
    assert!(chain[1].starts_with("attempt 1: the connection broke: "), "{chain:?}");
    assert_eq!(chain.len(), 2);
}

/// G-R4 (backoff has full jitter): the waits are random below a bound that doubles; upstream's are
/// fixed.
#[tokio::test(start_paused = true)]
async fn g_r4_waits_are_jittered_and_their_bound_grows() {
    let server = Server::with([Reply::Answer(503, "")]);
    let started = Instant::now();
    home(&client(&server)).max_retries(4).send().await.unwrap_err();
    let waited = started.elapsed();
    assert!(waited > Duration::ZERO && waited < Duration::from_millis(200 + 400 + 800 + 1600));
    assert_ne!(waited.as_millis() % 100, 0, "{waited:?}");
}

/// G-R4 (caches have a budget of their own): a cache whose kind fails uses up no retries of other
/// callers of the same client.
#[tokio::test(start_paused = true)]
async fn g_r4_background_requests_have_a_budget_of_their_own() {
    let server = Server::with([Reply::Answer(503, "")]);
    let client = client(&server);
    let background = home(&client).background().timeout(Duration::from_secs(600));
    let mut spent = 0;
    for _ in 0..5 {
        let before = server.count();
        background.send().await.unwrap_err();
        spent += server.count() - before - 1;
    }
    assert!((20..40).contains(&spent), "the background budget is used up: {spent}");
    let before = server.count();
    home(&client).max_retries(5).send().await.unwrap_err();
    assert_eq!(server.count() - before, 6, "all retries of a call are left");
}

#[tokio::test(start_paused = true)]
async fn g_r5_a_retry_after_beyond_the_cap_or_the_deadline_fails_at_once_and_says_so() {
    for (seconds, timeout) in [("61", 3600), ("20", 10)] {
        let server = Server::with([Reply::With(503, "retry-after", seconds, "")]);
        let started = Instant::now();
        let request = home(&client(&server)).timeout(Duration::from_secs(timeout));
        let error = request.send().await.unwrap_err();
        assert!(error.to_string().contains(&format!("asks to wait {seconds} s")), "{error}");
        assert_eq!((server.count(), started.elapsed().as_secs()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn g_r1_each_call_has_a_deadline_its_own_or_the_clients() {
    for (timeout, seconds) in [(None, 30), (Some(3), 3)] {
        for create in [false, true] {
            let server = Server::with([Reply::Silence]);
            let client = client(&server);
            let request = if create { create_request(&client) } else { home(&client) };
            let request = match timeout {
                Some(timeout) => request.timeout(Duration::from_secs(timeout)),
                None => request,
            };
            let started = Instant::now();
            let kind = request.send().await.unwrap_err().kind();
            assert_eq!(kind, if create { ErrorKind::Ambiguous } else { ErrorKind::Timeout });
            assert!(started.elapsed() <= Duration::from_secs(seconds), "{:?}", started.elapsed());
            let started = Instant::now();
            request.stream().await.unwrap_err();
            assert!(started.elapsed() <= Duration::from_secs(seconds), "{:?}", started.elapsed());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g_r2_dropping_the_call_cancels_the_request() {
    for http2 in [false, true] {
        let gate = Arc::new(Semaphore::new(0));
        let reply = [Reply::Later(Arc::clone(&gate))];
        let server = if http2 { Server::http2(reply) } else { Server::with(reply) };
        let request = home(&client(&server));
        let call = tokio::spawn(async move { request.send().await });
        while server.count() == 0 {
            tokio::task::yield_now().await;
        }
        // References: this test, the script, and the request that waits.
        assert_eq!(Arc::strong_count(&gate), 3);
        call.abort();
        call.await.unwrap_err();
        for _ in 0..1000 {
            if Arc::strong_count(&gate) == 2 {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert_eq!(Arc::strong_count(&gate), 2, "the server still works on it, http2 {http2}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_ambiguous_error_carries_what_was_sent_and_to_where() {
    for reply in [Reply::Cut, Reply::Silence, Reply::Answer(504, ""), Reply::Answer(500, "")] {
        let server = Server::with([reply]);
        let request = create_request(&client(&server)).param("x", "y z");
        let error = request.send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ambiguous);
        let doubt = error.uncertain_write().unwrap();
        assert_eq!((doubt.method.as_str(), doubt.host.as_str()), ("POST", "localhost"));
        assert_eq!(doubt.path, "/api/v1/namespaces/shop/configmaps");
        assert_eq!(doubt.query, "x=y%20z&fieldManager=windlass");
        assert_eq!(doubt.body, r#"{"a":1}"#);
        assert!(!format!("{doubt:?} {error:?}").contains(r#""a""#), "bodies may be secret");
    }
    let server = Server::with([Reply::Answer(409, "")]);
    let error = create_request(&client(&server)).send().await.unwrap_err();
    assert!(error.uncertain_write().is_none());
}

/// Upstream: `TestTransformResponse`.
#[tokio::test(start_paused = true)]
async fn mechanism_15_a_status_is_preferred_over_the_http_code() {
    const EXPIRED: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",
        "message":"too old","reason":"Expired","details":{"retryAfterSeconds":2},"code":410}"#;
    const DONE: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#;
    for code in [200, 400, 500] {
        let server = Server::with([Reply::Answer(code, EXPIRED)]);
        let error = home(&client(&server)).max_retries(0).send().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Expired, "{code}");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(2)));
    }
    let server = Server::with([Reply::Answer(200, DONE)]);
    home(&client(&server)).send().await.unwrap();
    // An object that merely contains the word Status is an object.
    let server = Server::with([Reply::Answer(200, r#"{"kind":"ConfigMap","a":"Status"}"#)]);
    home(&client(&server)).send().await.unwrap();
}

/// Upstream: `TestTransformUnstructuredError`.
#[tokio::test(start_paused = true)]
async fn mechanism_15_other_error_bodies_become_a_status_of_at_most_two_kibibytes() {
    for (code, kind, reason) in [
        (400, ErrorKind::BadRequest, "BadRequest"),
        (401, ErrorKind::Unauthorized, "Unauthorized"),
        (403, ErrorKind::Forbidden, "Forbidden"),
        (404, ErrorKind::NotFound, "NotFound"),
        (405, ErrorKind::Server, "MethodNotAllowed"),
        (406, ErrorKind::UnsupportedMediaType, "NotAcceptable"),
        (409, ErrorKind::Conflict, "Conflict"),
        (413, ErrorKind::Server, "RequestEntityTooLarge"),
        (415, ErrorKind::UnsupportedMediaType, "UnsupportedMediaType"),
        (422, ErrorKind::Invalid, "Invalid"),
        (429, ErrorKind::TooManyRequests, "TooManyRequests"),
        (503, ErrorKind::Server, "ServiceUnavailable"),
        (302, ErrorKind::Server, ""),
    ] {
        let text: &'static str = "x".repeat(3000).leak();
        let server = Server::with([Reply::With(code, "retry-after", "4", text)]);
        let error = home(&client(&server)).max_retries(0).send().await.unwrap_err();
        let status = error.status().unwrap();
        assert_eq!((error.kind(), status.reason.as_str(), status.code), (kind, reason, code));
        assert!(status.message.len() <= 2048 + 3, "{code}");
        assert_eq!(status.details.as_ref().unwrap().retry_after_seconds, 4, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_15_a_result_tells_status_content_type_creation_and_warnings() {
    let server =
        Server::with([Reply::With(201, "content-type", "application/json", r#"{"a":"b"}"#)]);
    let response = create_request(&client(&server)).send().await.unwrap();
    assert!(response.was_created() && response.warnings().is_empty());
    assert_eq!(response.content_type(), Some("application/json"));
    assert_eq!(response.raw(), r#"{"a":"b"}"#);
    let error = response.json::<Vec<u32>>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    let text =
        "cannot create configmaps in \"shop\": the answer (application/json) does not decode";
    assert!(error.to_string().starts_with(text), "{error}");
    let server = Server::with([Reply::With(200, "warning", r#"299 - "old""#, "{}")]);
    let response = home(&client(&server)).send().await.unwrap();
    assert!(!response.was_created() && response.content_type().is_none());
    assert_eq!(response.warnings()[0].text, "old");
}

#[tokio::test(start_paused = true)]
async fn a_result_holds_times_up_to_the_end_of_the_year_9999() {
    let text = r#"{"spec":{"renewTime":"9999-12-31T23:59:59.999999Z"}}"#;
    let server = Server::with([Reply::Answer(200, text)]);
    let response = home(&client(&server)).send().await.unwrap();
    let lease = response.json::<k8s_openapi::api::coordination::v1::Lease>().unwrap();
    let renewed = lease.spec.unwrap().renew_time.unwrap().0;
    assert_eq!(renewed.to_string(), "9999-12-30T22:00:00.999999Z");
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_used_again_after_an_error_that_was_read() {
    let server = Server::with([Reply::Answer(404, "not found"), Reply::Answer(200, "{}")]);
    let client = client(&server);
    home(&client).send().await.unwrap_err();
    home(&client).send().await.unwrap();
    assert_eq!(server.connections(), 1);
}

/// Upstream: `TestHTTP1DoNotReuseRequestAfterTimeout`.
#[tokio::test(start_paused = true)]
async fn a_connection_is_not_used_again_after_a_timeout() {
    let server = Server::with([Reply::Silence, Reply::Answer(200, "{}")]);
    let client = client(&server);
    let late = home(&client).timeout(Duration::from_secs(1)).max_retries(0);
    late.send().await.unwrap_err();
    home(&client).send().await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_server_is_told_the_smaller_of_two_timeouts() {
    #[derive(Debug)]
    struct Soon;
    impl WriteGate for Soon {
        fn admit(&self) -> Result<Option<Duration>, windlass_core::Error> {
            Ok(Some(Duration::from_secs(5)))
        }
    }
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = client(&server).gated(Arc::new(Soon));
    let request = client.patch(PatchType::Apply).abs_path(["/x"]).param("a", "b");
    request.timeout(Duration::from_secs(20)).object(&json!({})).send().await.unwrap();
    assert_eq!(server.seen()[0].target, "/x?a=b&fieldManager=windlass&timeout=5s");
}

#[tokio::test(start_paused = true)]
async fn g_r1_a_timeout_beyond_all_clocks_is_a_long_one() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = client(&server);
    let mut request = get();
    request.timeout = Some(Duration::MAX);
    client.send(request).await.unwrap();
    client.get().abs_path(["/version"]).timeout(Duration::MAX).stream().await.unwrap();
    let api = client.namespace::<k8s_openapi::api::core::v1::ConfigMap>("shop");
    api.get("home").timeout(Duration::MAX).await.unwrap();
}

/// Upstream: `TestConnectionResetByPeerIsRetried`: three attempts, and for reads only.
#[tokio::test(start_paused = true)]
async fn mechanism_12_a_reset_by_the_peer_is_tried_again_until_it_passes_for_reads_only() {
    let cuts = || [Reply::Cut, Reply::Cut, Reply::Answer(200, "{}")];
    let server = Server::with(cuts());
    let version = |client: &Client| client.get().abs_path(["/version"]);
    let started = tokio::time::Instant::now();
    version(&client(&server)).send().await.unwrap();
    assert_eq!(server.count(), 3);
    assert!(started.elapsed() < Duration::from_millis(700), "jitter below 200 and 400 ms");
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        let server = Server::with(cuts());
        let request = client(&server).verb(method.clone()).abs_path(["/version"]);
        assert_eq!(request.send().await.unwrap_err().kind(), ErrorKind::Ambiguous, "{method}");
        assert_eq!(server.count(), 1, "{method}");
    }
    // The same for a stream and a watch.
    let server = Server::with(cuts());
    drop(version(&client(&server)).stream().await.unwrap());
    drop(version(&client(&server)).watch().await.unwrap());
    assert_eq!(server.count(), 4);
}

/// A patch of another media type may not be repeated, even if the request began as an apply.
#[tokio::test(start_paused = true)]
async fn mechanism_12_an_apply_under_another_media_type_is_a_patch() {
    let server = Server::with([Reply::Answer(504, ""), Reply::Answer(200, "{}")]);
    let patch = client(&server).patch(crate::client::PatchType::Apply).abs_path(["/api/v1/a/b"]);
    let patch = patch.content_type("application/json-patch+json").body("[]");
    assert_eq!(patch.prepare().unwrap().verb, Verb::Patch);
    assert_eq!(patch.send().await.unwrap_err().kind(), ErrorKind::Ambiguous);
    assert_eq!(server.count(), 1);
}
