//! Deadlines, retries, credentials, the gate, and error texts.

use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::client::policy::MAX_RETRIES;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::names::{REST_REQUESTS, REST_RETRIES};

const STATUS_409: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"configmaps \"home\" already exists","reason":"AlreadyExists","code":409}"#;

/// A1 (429 with `Retry-After`): a wait beyond the cap fails the call.
#[tokio::test(start_paused = true)]
async fn a_retry_after_of_a_day_fails_at_once_and_says_so() {
    let server = Server::with([Reply::With(429, "retry-after", "86400", "slow down")]);
    let started = Instant::now();
    let error = client(&server).send(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooManyRequests);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(86_400)));
    assert!(error.to_string().contains("86400 s"), "{error}");
    assert_eq!((server.count(), started.elapsed().as_secs()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_short_retry_after_is_waited_for_with_every_verb() {
    for request in [get(), create(), apply()] {
        let server = Server::with([
            Reply::With(429, "retry-after", "3", ""),
            Reply::With(503, "retry-after", "2", ""),
            Reply::Answer(200, "{}"),
        ]);
        let started = Instant::now();
        client(&server).send(request).await.unwrap();
        assert_eq!(server.count(), 3);
        assert!((5..6).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    }
}

/// A2 (504): the request was executed, but the answer got lost in a proxy.
#[tokio::test(start_paused = true)]
async fn a_create_with_generate_name_answered_504_is_never_sent_twice() {
    for reply in [
        Reply::Answer(504, "<html>gateway timeout</html>"),
        Reply::Answer(502, ""),
        Reply::Cut,
        Reply::Half,
        Reply::Silence,
    ] {
        let server = Server::with([reply.clone()]);
        let error = client(&server).send(create()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ambiguous, "{reply:?}: {error}");
        assert_eq!(server.count(), 1, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_answered_500_may_have_been_executed_and_keeps_its_status() {
    for request in [create(), apply()] {
        let server = Server::with([Reply::Answer(500, "etcdserver: request timed out")]);
        let error = client(&server).send(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ambiguous, "{error}");
        assert!(error.to_string().contains("500"), "{error}");
        assert_eq!(error.status().map(|status| status.code), Some(500));
        assert_eq!(server.count(), 1);
    }
    let server = Server::with([Reply::Answer(500, "")]);
    let error = client(&server).send(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server, "{error}");
}

#[tokio::test(start_paused = true)]
async fn reads_and_applies_survive_a_lost_answer() {
    for request in [get(), apply()] {
        for reply in [Reply::Answer(504, ""), Reply::Answer(502, ""), Reply::Cut, Reply::Half] {
            let server = Server::with([reply.clone(), Reply::Answer(200, "{}")]);
            client(&server).send(request.clone()).await.unwrap();
            assert_eq!(server.count(), 2, "{reply:?}");
        }
    }
}

/// A6 (an answer that trickles): the server accepts the request and never answers.
#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_hits_the_deadline() {
    let server = Server::with([Reply::Silence]);
    let started = Instant::now();
    let error = client(&server).send(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(started.elapsed() <= Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(server.count() > 1, "a read is tried on another connection");

    let started = Instant::now();
    let mut request = create();
    request.timeout = Some(Duration::from_secs(7));
    let error = client(&server).send(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous, "{error}");
    assert_eq!(started.elapsed().as_secs(), 7);

    let error = client(&server).stream(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_outlives_the_deadline_of_its_head() {
    let server = Server::with([Reply::Half]);
    let mut stream = client(&server).stream(get()).await.unwrap();
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!(stream.next().await.unwrap().unwrap(), "{\"half\":");
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Transport);
    assert!(stream.next().await.is_none());
}

/// A3 (connection refused): the request was never sent, so any verb may be tried again.
#[tokio::test(start_paused = true)]
async fn a_refused_connection_is_tried_again_with_every_verb() {
    let server = Server::with([Reply::Answer(201, "{}")]);
    server.refusals.store(3, Ordering::Relaxed);
    let client = client(&server);
    client.send(create()).await.unwrap();
    assert_eq!(server.count(), 1);
    let retried =
        client.environment().metrics.counted(&REST_RETRIES, &["<error>", "POST", "localhost"]);
    assert_eq!(retried, 3);
    let requests = &client.environment().metrics;
    assert_eq!(requests.counted(&REST_REQUESTS, &["201", "POST", "localhost"]), 1);
    assert_eq!(requests.counted(&REST_REQUESTS, &["<error>", "POST", "localhost"]), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_ends_in_a_connect_error_within_the_deadline() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    server.refusals.store(u32::MAX, Ordering::Relaxed);
    let started = Instant::now();
    let error = client(&server).send(create()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(error.to_string().contains("connection refused"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(30));
}

/// Connector whose connections never open.
#[derive(Debug)]
struct BlackHole;

impl Connect for BlackHole {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_connection_was_certainly_not_executed() {
    let client = Client::over(Arc::new(BlackHole), environment());
    let error = client.send(create()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
}

/// After a retry that followed an unknown outcome, a refusal may be caused by the success of the
/// first attempt, and so proves nothing.
#[tokio::test(start_paused = true)]
async fn g_r3_a_refusal_after_a_repeated_write_leaves_its_fate_unknown() {
    for first in [vec![Reply::Answer(504, "")], vec![Reply::Answer(200, "{}"), Reply::Cut]] {
        let idle = first.len() > 1;
        for code in [400, 401, 403, 404, 409, 410, 422] {
            let replies = first.iter().cloned().chain([Reply::Answer(code, "refused")]);
            let server = Server::with(replies);
            let client = client(&server);
            if idle {
                client.send(get()).await.unwrap();
            }
            let error = client.send(apply()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Ambiguous, "{code}: {error}");
            assert_eq!(error.code(), Some(code));
            assert!(error.to_string().contains("an earlier attempt may have worked"), "{error}");
            assert_eq!(error.uncertain_write().unwrap().path, apply().path);
            assert!(!error.is_conflict(), "a loop over conflicts would do it twice");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn g_r3_throttling_that_outlasts_a_doubtful_write_does_not_deny_it() {
    let limit = Reply::With(429, "retry-after", "1000", "");
    let server = Server::with([Reply::Answer(504, ""), limit]);
    let error = client(&server).send(apply()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous, "{error}");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1000)));
}

/// An intent with a field that the kind does not have: a mistake, and certainly not executed.
#[tokio::test(start_paused = true)]
async fn an_intent_that_fits_no_schema_was_certainly_not_applied() {
    const TYPO: &str = r#"{"kind":"Status","status":"Failure","reason":"InternalError","code":500,
        "message":"failed to create typed patch object (shop/w; v1, Kind=W): .spec.sizee: field not declared in schema"}"#;
    let server = Server::with([Reply::Answer(500, TYPO)]);
    let error = client(&server).send(apply()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server, "{error}");
    assert!(error.to_string().contains("correct the intent"), "{error}");
    assert_eq!(server.count(), 1);
    let server = Server::with([Reply::Answer(504, ""), Reply::Answer(500, TYPO)]);
    let error = client(&server).send(apply()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous, "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_out_of_time_tells_what_the_server_said_before() {
    let server = Server::with([Reply::Answer(504, "too large a version"), Reply::Silence]);
    let error = client(&server).send(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    let text = error.to_string();
    assert!(text.contains("before: "), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_repeated_dry_run_is_certain_because_nothing_was_stored() {
    let server = Server::with([Reply::Answer(504, ""), Reply::Answer(409, "there is one")]);
    let error = client(&server).dry_run().send(create()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
}

/// G-R4: retries are at most a tenth of the traffic.
#[tokio::test(start_paused = true)]
async fn retries_of_a_failing_server_stay_within_the_budget() {
    let server = Server::with([Reply::Answer(503, "")]);
    let client = client(&server);
    for _ in 0..1000 {
        let mut request = get();
        request.timeout = Some(Duration::from_millis(1500));
        let error = client.send(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Server);
    }
    let retries = server.count() - 1000;
    assert!(retries <= 1000 / 10 + 20 + 150, "{retries}");
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_after_ten_retries() {
    let server = Server::with([Reply::Answer(503, "")]);
    let mut request = get();
    request.timeout = Some(Duration::from_secs(3600));
    let error = client(&server).send(request).await.unwrap_err();
    assert_eq!(server.count(), MAX_RETRIES as usize + 1);
    assert!(error.to_string().ends_with("tried 11 times"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_error_says_what_was_tried_on_what_and_why() {
    let server = Server::with([Reply::Answer(409, STATUS_409)]);
    let error = client(&server).send(create()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert_eq!(
        error.to_string(),
        "cannot create configmaps \"home-*\" in \"shop\": configmaps \"home\" already exists (409 \
         AlreadyExists)"
    );
}

/// A14: HTML or text instead of a Status.
#[tokio::test(start_paused = true)]
async fn a_proxys_page_becomes_an_error_by_its_code() {
    let server = Server::with([Reply::Answer(403, "<html><h1>Blocked</h1>\n</html>")]);
    let error = client(&server).send(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.to_string().contains("<h1>Blocked</h1>"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_an_error_and_not_followed() {
    let server = Server::with([Reply::With(302, "location", "http://elsewhere/", "")]);
    let error = client(&server).send(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server);
    assert_eq!(server.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_path_that_would_become_another_is_not_sent() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    for path in ["api", "/api/../x", "/api/.", "/api?x=1", "/a\\b"] {
        let error = client(&server).send(Prepared::get(path, "try")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{path}");
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_carries_its_query_encoded_and_a_user_agent() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let mut request = create();
    request.query.push(("labelSelector".into(), "a=b,c in (d, é)".to_owned()));
    client(&server).field_manager("me").send(request).await.unwrap();
    let seen = server.seen().remove(0);
    assert_eq!(
        seen.target,
        "/api/v1/namespaces/shop/configmaps?labelSelector=a%3Db%2Cc%20in%20%28d%2C%20%C3%A9%29\
         &fieldManager=me"
    );
    let agent = seen.headers["user-agent"].to_str().unwrap();
    assert!(agent.starts_with("windlass/0.1"), "{agent}");
    assert_eq!(seen.headers["host"], "localhost");
    assert_eq!(seen.body, r#"{"metadata":{"generateName":"home-"}}"#);
}

fn token_file(name: &str, token: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
    std::fs::write(&path, token).unwrap();
    path
}

fn with_token_file(server: &Arc<Server>, path: &std::path::Path) -> Client {
    let text = format!(
        "current-context: c\nclusters: [{{name: c, cluster: {{server: 'https://c'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
         users: [{{name: u, user: {{tokenFile: '{}'}}}}]\n",
        path.display()
    );
    Client::builder()
        .config(ClientConfig::from_yaml(&text, None).unwrap())
        .connector(Arc::new(Wire(Arc::clone(server))))
        .environment(environment())
        .build()
        .unwrap()
}

/// A8: expired, rotated or revoked tokens.
#[tokio::test(start_paused = true)]
async fn a_401_reads_the_token_again_once_and_tries_again() {
    let path = token_file("refreshed", "old");
    let server = Server::with([
        Reply::Answer(200, "{}"),
        Reply::Answer(401, ""),
        Reply::Answer(201, "{}"),
        Reply::Answer(401, ""),
    ]);
    let client = with_token_file(&server, &path);
    client.send(get()).await.unwrap();
    std::fs::write(&path, "new").unwrap();
    client.send(create()).await.unwrap();
    let tokens: Vec<_> =
        server.seen().iter().map(|seen| seen.headers["authorization"].clone()).collect();
    assert_eq!(tokens, ["Bearer old", "Bearer old", "Bearer new"]);
    let error = client.send(get()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert_eq!(server.count(), 5, "refreshed once per call");
}

#[tokio::test(start_paused = true)]
async fn no_error_of_a_call_shows_the_token() {
    let path = token_file("refused", "canary");
    for reply in [Reply::Answer(401, "no"), Reply::Cut, Reply::Silence] {
        let server = Server::with([reply]);
        let client = with_token_file(&server, &path);
        let error = client.send(get()).await.unwrap_err();
        assert!(!format!("{error} {error:?} {client:?}").contains("canary"), "{error:?}");
    }
}

/// Gate that permits a number of checks with 7.5 s each; a write is checked before and after a
/// connection is found.
#[derive(Debug)]
struct Lease(AtomicU32);

impl WriteGate for Lease {
    fn admit(&self) -> Result<Option<Duration>, Error> {
        let (order, one_less) = (Ordering::Relaxed, |left: u32| left.checked_sub(1));
        match self.0.fetch_update(order, order, one_less) {
            Ok(_) => Ok(Some(Duration::from_millis(7500))),
            Err(_) => Err(Error::new(ErrorKind::NotLeader, "the lease is not held")),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn l4_a_write_that_the_gate_refuses_is_not_sent_and_reads_pass() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = client(&server).gated(Arc::new(Lease(AtomicU32::new(0))));
    let error = client.send(create()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotLeader);
    assert_eq!(server.count(), 0);
    client.send(get()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn l4_a_gated_write_ends_within_the_leases_validity_and_tells_the_server() {
    let server = Server::with([Reply::Silence]);
    let client = client(&server).gated(Arc::new(Lease(AtomicU32::new(2))));
    let started = Instant::now();
    let error = client.send(create()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert_eq!(started.elapsed(), Duration::from_millis(7500));
    assert!(server.seen()[0].target.ends_with("&timeout=7s"), "{}", server.seen()[0].target);
}

/// Connector that takes 5 s.
#[derive(Debug)]
struct SlowWire(Wire);

impl Connect for SlowWire {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            self.0.connect().await
        })
    }
}

/// Gate that permits writes until an instant, without a limit that the client could enforce.
#[derive(Debug)]
struct Until(Instant);

impl WriteGate for Until {
    fn admit(&self) -> Result<Option<Duration>, Error> {
        if Instant::now() < self.0 {
            return Ok(Some(Duration::from_millis(7500)));
        }
        Err(Error::new(ErrorKind::NotLeader, "the lease is not held"))
    }
}

#[tokio::test(start_paused = true)]
async fn l4_a_write_whose_lease_ends_while_it_connects_is_not_sent() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let slow = Client::over(Arc::new(SlowWire(Wire(Arc::clone(&server)))), environment());
    let end = Instant::now() + Duration::from_secs(3);
    let error = slow.gated(Arc::new(Until(end))).send(create()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotLeader, "{error}");
    assert_eq!(server.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_not_sent_again_on_another_connection_without_the_gate() {
    let server = Server::with([Reply::Answer(200, "{}"), Reply::Cut, Reply::Answer(200, "{}")]);
    let client = client(&server);
    client.send(get()).await.unwrap();
    let gated = client.gated(Arc::new(Lease(AtomicU32::new(2))));
    let error = gated.send(apply()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous, "{error}");
    assert_eq!(server.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn l4_the_gate_is_asked_before_each_attempt() {
    let server = Server::with([Reply::With(429, "retry-after", "1", "")]);
    let gated = client(&server).gated(Arc::new(Lease(AtomicU32::new(4))));
    let error = gated.send(create()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotLeader);
    assert_eq!(server.count(), 2);

    // The first attempt may have been executed, so "not leader" alone would be wrong.
    let server = Server::with([Reply::Answer(504, "")]);
    let gated = client(&server).gated(Arc::new(Lease(AtomicU32::new(2))));
    let error = gated.send(apply()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_waits_the_same_times() {
    let mut times = Vec::new();
    for _ in 0..2 {
        let server = Server::with([Reply::Answer(503, "")]);
        let started = Instant::now();
        client(&server).send(get()).await.unwrap_err();
        times.push(started.elapsed());
    }
    assert_eq!(times[0], times[1]);
}

#[tokio::test(start_paused = true)]
async fn a_layer_sees_each_attempt_with_its_credentials() {
    use tower::util::MapRequestLayer;
    let server = Server::with([Reply::Answer(503, ""), Reply::Answer(200, "{}")]);
    let seen = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&seen);
    let layer = MapRequestLayer::new(move |mut request: HttpRequest| {
        assert!(request.headers().contains_key("authorization"));
        count.fetch_add(1, Ordering::Relaxed);
        request.headers_mut().insert("x-layer", "1".parse().unwrap());
        request
    });
    let client = Client::builder()
        .config(ClientConfig::new("https://c").unwrap().with_token("t"))
        .connector(Arc::new(Wire(Arc::clone(&server))))
        .environment(environment())
        .layer(layer)
        .build()
        .unwrap();
    client.send(get()).await.unwrap();
    assert_eq!(seen.load(Ordering::Relaxed), 2);
    assert!(server.seen().iter().all(|seen| seen.headers.contains_key("x-layer")));
}
