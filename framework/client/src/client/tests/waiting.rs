//! Waits of a call for permits, backoff and retries, and their order.

use std::time::Duration;

use tokio::time::Instant;
use tower::util::MapRequestLayer;
use tracing::Level;

use super::*;
use crate::client::test_support::Captured;
use crate::client::{Permit, TokenBucket, UrlBackoff};
use windlass_core::error::ErrorKind;
use windlass_core::metrics::names::{REST_RATE_LIMITER_SECONDS, REST_SECONDS};

fn limited(server: &Arc<Server>, qps: f64, burst: u32) -> Client {
    let wire = Arc::new(Wire(Arc::clone(server)));
    Client::builder()
        .connector(wire)
        .environment(environment())
        .qps(qps)
        .burst(burst)
        .build()
        .unwrap()
}

fn version(client: &Client) -> Request {
    client.get().abs_path(["/version"])
}

/// Returns the count of a histogram for requests by `GET`.
fn observed(client: &Client, name: &str) -> usize {
    let start = format!("{name}_count{{verb=\"GET\",host=\"localhost\"}} ");
    let text = client.environment().metrics.encode();
    text.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok()).unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn mechanism_10_all_requests_of_a_client_share_one_limit() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = limited(&server, 2.0, 3);
    let started = Instant::now();
    let tasks: Vec<_> = (0..7)
        .map(|i| {
            let client = if i % 2 == 0 { client.clone() } else { client.field_manager("other") };
            tokio::spawn(async move {
                match i % 3 {
                    0 => client.send(get()).await.map(drop),
                    _ => version(&client).send().await.map(drop),
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    // Three at once, then one request each half second.
    assert_eq!(started.elapsed().as_millis() / 100, 20);
    assert_eq!(observed(&client, REST_RATE_LIMITER_SECONDS.name), 7, "observed always");
}

#[tokio::test(start_paused = true)]
async fn mechanism_10_no_limit_is_set_and_none_observed_unless_asked_for() {
    for qps in [None, Some(0.0), Some(-1.0)] {
        let server = Server::with([Reply::Answer(200, "{}")]);
        let builder = Client::builder().connector(Arc::new(Wire(Arc::clone(&server))));
        let builder = match qps {
            Some(qps) => builder.qps(qps).burst(1),
            None => builder,
        };
        let client = builder.build().unwrap();
        let started = Instant::now();
        for _ in 0..50 {
            version(&client).send().await.unwrap();
        }
        assert_eq!(started.elapsed().as_millis(), 0);
        assert_eq!(observed(&client, REST_RATE_LIMITER_SECONDS.name), 0);
        assert_eq!(observed(&client, REST_SECONDS.name), 50);
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_10_each_retry_waits_for_a_permit_again() {
    let server = Server::with([
        Reply::With(429, "retry-after", "1", ""),
        Reply::With(429, "retry-after", "1", ""),
        Reply::Answer(200, "{}"),
    ]);
    let client = limited(&server, 0.1, 1);
    let started = Instant::now();
    version(&client).send().await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 20, "a permit each ten seconds");
    assert_eq!(server.count(), 3);
}

/// The wait for a permit does not count towards the 10 s for the head of the attempt's answer.
#[tokio::test(start_paused = true)]
async fn mechanism_10_the_wait_for_a_permit_comes_before_the_attempts_own_time() {
    let gate = Arc::new(Semaphore::new(0));
    let server = Server::with([Reply::Answer(200, ""), Reply::Later(Arc::clone(&gate))]);
    let client = limited(&server, 0.1, 1);
    version(&client).send().await.unwrap();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(19)).await;
        gate.add_permits(1);
    });
    version(&client).send().await.unwrap();
    assert_eq!(server.count(), 2, "one attempt sufficed");
}

#[tokio::test(start_paused = true)]
async fn mechanism_10_a_wait_beyond_the_deadline_is_an_error_at_once_with_its_reason() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = limited(&server, 0.1, 1);
    version(&client).send().await.unwrap();
    let started = Instant::now();
    let error = version(&client).timeout(Duration::from_secs(4)).send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(
        error.to_string(),
        "cannot GET /version: the next permit of the client's rate limit (0.1 a second, 1 at once) \
         comes in 10.0 s, and the deadline is in 4.0 s; raise the limit or the timeout"
    );
    assert_eq!((started.elapsed().as_secs(), server.count()), (0, 1));
    // The failed request took no permit: the next caller waits no longer because of that request.
    version(&client).send().await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn mechanism_10_a_request_may_have_a_limiter_of_its_own() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = limited(&server, 0.1, 1);
    let own = TokenBucket::new(1.0, 1, Clock::system());
    let request = version(&client).throttle(Arc::new(own));
    let started = Instant::now();
    for _ in 0..4 {
        request.send().await.unwrap();
    }
    assert_eq!(started.elapsed().as_secs(), 3);
}

/// Limiter that ignores the deadline.
#[derive(Debug)]
struct Forgetful;

impl RequestLimiter for Forgetful {
    fn try_accept(&self) -> bool {
        false
    }

    fn accept(&self, _: Option<Instant>) -> Permit<'_> {
        Box::pin(std::future::pending())
    }

    fn qps(&self) -> f64 {
        1.0
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_10_a_limiter_that_never_answers_is_held_to_the_deadline() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let started = Instant::now();
    let request = version(&client(&server)).throttle(Arc::new(Forgetful));
    let error = request.send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!((started.elapsed().as_secs(), server.count()), (30, 0));
}

#[tokio::test(start_paused = true)]
async fn mechanism_10_very_long_waits_are_logged_with_their_reason_but_not_each() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = limited(&server, 0.5, 1);
    let (captured, _guard) = Captured::at(Level::DEBUG);
    for _ in 0..13 {
        version(&client).send().await.unwrap();
    }
    let lines = captured.with("a request waited for its permit");
    let info: Vec<_> = lines.iter().filter(|line| line.starts_with("INFO")).collect();
    assert_eq!((lines.len(), info.len()), (12, 3), "{lines:#?}");
    let reason = "the client's rate limit of 0.5 a second, not the API server";
    assert!(info[0].contains(reason) && info[0].contains("/version"), "{}", info[0]);
    // Waits below 50 ms are not logged, those below 1 s at DEBUG.
    let (captured, _guard) = Captured::at(Level::DEBUG);
    for (qps, lines) in [(25.0, 0), (10.0, 1)] {
        let client = limited(&server, qps, 1);
        version(&client).send().await.unwrap();
        if lines == 0 {
            tokio::time::advance(Duration::from_millis(5)).await;
        }
        version(&client).send().await.unwrap();
        let found = captured.with("a request waited for its permit");
        assert_eq!(found.len(), lines, "{found:?}");
        assert!(found.iter().all(|line| line.starts_with("DEBUG")));
    }
}

/// Recorder of calls and their times.
#[derive(Clone, Debug, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }
}

impl RequestLimiter for Diary {
    fn try_accept(&self) -> bool {
        true
    }

    fn accept(&self, _: Option<Instant>) -> Permit<'_> {
        self.note("permit");
        Box::pin(async { Ok(()) })
    }

    fn qps(&self) -> f64 {
        1.0
    }
}

impl BackoffManager for Diary {
    fn delay(&self, url: &http::Uri) -> Duration {
        self.note(format!("delay {}", url.path()));
        Duration::ZERO
    }

    fn observe(&self, _: &http::Uri, code: Option<u16>) {
        self.note(format!("observe {code:?}"));
    }
}

/// Upstream: `TestRequestDoWithRetryInvokeOrder` and the related tests for stream and watch. Ours
/// backs off before taking a permit in the first attempt too, so that a permit is not stale.
#[tokio::test(start_paused = true)]
async fn mechanism_12_each_attempt_backs_off_takes_a_permit_sends_and_reports() {
    for terminal in ["send", "stream", "watch"] {
        let busy = || Reply::With(429, "retry-after", "1", "");
        let server = Server::with([busy(), busy(), Reply::Answer(200, "")]);
        let diary = Diary::default();
        let sent = diary.clone();
        let layer = MapRequestLayer::new(move |request: HttpRequest| {
            sent.note("send");
            request
        });
        let wire = Arc::new(Wire(Arc::clone(&server)));
        let client = Client::builder()
            .connector(wire)
            .environment(environment())
            .layer(layer)
            .build()
            .unwrap();
        let request =
            version(&client).throttle(Arc::new(diary.clone())).backoff(Arc::new(diary.clone()));
        match terminal {
            "send" => drop(request.send().await.unwrap()),
            "stream" => drop(request.stream().await.unwrap()),
            _ => drop(request.watch().await.unwrap()),
        }
        let attempt = |code| {
            let mut steps = vec!["delay /version", "permit", "send", code];
            steps.retain(|step| terminal != "watch" || *step != "permit");
            steps
        };
        let [busy, fine] = ["observe Some(429)", "observe Some(200)"];
        let expected = [attempt(busy), attempt(busy), attempt(fine)].concat();
        assert_eq!(*diary.0.lock(), expected, "{terminal}");
    }
}

fn url_backoff() -> Arc<UrlBackoff> {
    let (base, max) = (Duration::from_secs(1), Duration::from_secs(8));
    Arc::new(UrlBackoff::new(base, max, Clock::system()))
}

/// Upstream: `TestBackoffLifecycle`.
#[tokio::test(start_paused = true)]
async fn mechanism_11_a_host_in_trouble_is_asked_ever_more_seldom_until_it_recovers() {
    let server = Server::with([
        Reply::Answer(500, ""),
        Reply::Answer(429, ""),
        Reply::Answer(599, ""),
        Reply::Answer(504, ""),
        Reply::Answer(500, ""),
        Reply::Answer(404, ""),
        Reply::Answer(500, ""),
        Reply::Answer(200, "{}"),
    ]);
    let client = client(&server);
    let manager = url_backoff();
    let mut waits = Vec::new();
    for _ in 0..9 {
        let started = Instant::now();
        let request = version(&client).backoff(Arc::clone(&manager) as _).max_retries(0);
        let _ = request.send().await;
        waits.push(started.elapsed().as_secs());
    }
    assert_eq!(waits, [0, 1, 2, 4, 8, 8, 0, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn mechanism_11_a_retry_waits_for_the_longest_of_retry_after_backoff_and_jitter() {
    for (retry_after, seconds) in [("0", 1 + 2 + 4), ("3", 3 + 3 + 4)] {
        let busy = || Reply::With(429, "retry-after", retry_after, "");
        let server = Server::with([busy(), busy(), busy(), Reply::Answer(200, "{}")]);
        let started = Instant::now();
        version(&client(&server)).backoff(url_backoff()).send().await.unwrap();
        assert_eq!(started.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_11_a_backoff_beyond_the_deadline_fails_at_once() {
    let server = Server::with([Reply::Answer(500, "")]);
    let request = version(&client(&server)).backoff(url_backoff()).max_retries(0);
    request.send().await.unwrap_err();
    let started = Instant::now();
    let error = request.timeout(Duration::from_secs(1)).send().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("are delayed 1 s after errors of this host"), "{error}");
    assert_eq!((started.elapsed().as_secs(), server.count()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn mechanism_2_each_request_gets_a_backoff_manager_from_the_client() {
    let server = Server::with([Reply::Answer(500, "")]);
    let made = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&made);
    let client = Client::builder()
        .connector(Arc::new(Wire(Arc::clone(&server))))
        .backoff(Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            url_backoff()
        }))
        .build()
        .unwrap();
    let request = version(&client);
    for seconds in [0, 1, 2] {
        let started = Instant::now();
        request.send().await.unwrap_err();
        assert_eq!(started.elapsed().as_secs(), seconds, "one request keeps its own");
    }
    let started = Instant::now();
    version(&client).send().await.unwrap_err();
    client.send(Prepared::get("/version", "ask")).await.unwrap_err();
    assert_eq!(started.elapsed().as_secs(), 0, "another has another");
    assert_eq!(made.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn an_urgent_request_waits_for_no_permit_that_others_wait_for() {
    let server = Server::with([Reply::Answer(200, "{}")]);
    let client = limited(&server, 1.0, 1);
    client.send(get()).await.unwrap();
    let started = Instant::now();
    client.urgent().send(get()).await.unwrap();
    assert_eq!(started.elapsed(), Duration::ZERO);
    client.send(get()).await.unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1), "others wait");
}

#[tokio::test(start_paused = true)]
async fn an_urgent_request_waits_for_no_backoff_of_the_client() {
    let server = Server::with([Reply::Answer(500, "")]);
    let shared = url_backoff();
    let client = Client::builder()
        .connector(Arc::new(Wire(Arc::clone(&server))))
        .environment(environment())
        .backoff(Arc::new(move || Arc::clone(&shared) as _))
        .build()
        .unwrap();
    client.send(get()).await.unwrap_err();
    let started = Instant::now();
    client.urgent().send(get()).await.unwrap_err();
    assert_eq!(started.elapsed(), Duration::ZERO);
    client.send(get()).await.unwrap_err();
    assert!(started.elapsed() >= Duration::from_secs(1), "others wait");
}
