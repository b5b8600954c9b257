//! Output besides the answer: warnings, spans, bodies, metrics.

use serde_json::json;
use tracing::Level;

use super::*;
use crate::client::test_support::Captured;
use crate::client::{NoWarnings, Warning, WarningHandler};
use windlass_core::metrics::names::{REST_REQUESTS, REST_RETRIES};

/// Warning handler that records warnings.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<(String, String)>>);

impl WarningHandler for Heard {
    fn warn(&self, warning: &Warning, template: &str) {
        self.0.lock().push((warning.text.clone(), template.to_owned()));
    }
}

const OLD: &str = r#"299 - "policy/v1beta1 is deprecated", 299 - "and \"old\"", 199 - "no""#;

fn warned(code: u16) -> Arc<Server> {
    Server::with([Reply::With(code, "warning", OLD, "{}")])
}

fn home(client: &Client) -> Request {
    client.get().group_version("", "v1").namespace("shop").resource("configmaps").name("home")
}

#[tokio::test(start_paused = true)]
async fn mechanism_14_the_handler_of_the_client_is_told_unless_the_request_has_another() {
    for code in [200, 404] {
        let server = warned(code);
        let (ours, own) = (Arc::new(Heard::default()), Arc::new(Heard::default()));
        let client = Client::builder()
            .connector(Arc::new(Wire(Arc::clone(&server))))
            .warning_handler(Arc::clone(&ours) as _)
            .build()
            .unwrap();
        let request = home(&client);
        let _ = request.send().await;
        let template = "/api/v1/namespaces/{namespace}/configmaps/{name}";
        let expected = ["policy/v1beta1 is deprecated", r#"and "old""#]
            .map(|text| (text.to_owned(), template.to_owned()));
        assert_eq!(*ours.0.lock(), expected);
        let _ = request.clone().warning_handler(Arc::clone(&own) as _).send().await;
        let _ = request.warning_handler(Arc::new(NoWarnings)).send().await;
        assert_eq!(*own.0.lock(), expected);
        assert_eq!(ours.0.lock().len(), 2, "told once");
        let _ = client.send(get()).await;
        let _ = client.stream(get()).await;
        assert_eq!(ours.0.lock().len(), 6, "told of every request");
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_14_by_default_each_text_is_logged_once() {
    let server = warned(200);
    let client = client(&server);
    let (captured, _guard) = Captured::at(Level::WARN);
    for _ in 0..3 {
        client.send(get()).await.unwrap();
    }
    let lines = captured.with("the API server warns");
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].contains("the API server warns: policy/v1beta1 is deprecated"));
    assert!(!lines[0].contains("home"), "the template has no names: {}", lines[0]);
}

#[derive(Debug)]
struct Panics;

impl WarningHandler for Panics {
    fn warn(&self, _: &Warning, _: &str) {
        panic!("in the handler");
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_14_a_handler_that_panics_fails_no_call() {
    let client = client(&warned(200));
    home(&client).warning_handler(Arc::new(Panics)).send().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn mechanism_17_a_call_has_one_span_with_the_template_of_its_url() {
    let server = Server::with([Reply::With(503, "retry-after", "1", ""), Reply::Answer(200, "{}")]);
    let client = client(&server);
    let (captured, _guard) = Captured::at(Level::DEBUG);
    home(&client).send().await.unwrap();
    let spans = captured.with("url=/api/v1/namespaces/{namespace}/configmaps/{name}");
    assert_eq!(spans.len(), 1, "{}", captured.text());
    assert!(spans[0].contains("verb=\"get\""), "{}", spans[0]);
    let records = captured.with("record");
    assert_eq!(
        records,
        [
            "  record attempts=1",
            "  record code=\"503\"",
            "  record attempts=2",
            "  record code=\"200\""
        ]
    );
    assert!(!captured.text().contains("home"), "no names, no bodies: {}", captured.text());
}

#[tokio::test(start_paused = true)]
async fn mechanism_17_bodies_are_shown_at_trace_level_only_and_without_secrets() {
    let body = r#"{"kind":"ConfigMap","shown":1,"data":{"a":"canary"},"token":"canary"}"#;
    for (level, shown) in [(Level::DEBUG, false), (Level::TRACE, true)] {
        let server = Server::with([Reply::With(200, "set-cookie", "canary", body)]);
        let config = ClientConfig::new("https://c").unwrap().with_token("canary");
        let client = Client::builder()
            .config(config)
            .connector(Arc::new(Wire(Arc::clone(&server))))
            .trace_bodies(40)
            .build()
            .unwrap();
        let (captured, _guard) = Captured::at(level);
        let request = client.post().group_version("", "v1").namespace("shop").resource("secrets");
        request.object(&json!({"stringData": {"a": "canary"}})).send().await.unwrap();
        let request = client.post().group_version("", "v1").namespace("shop").resource("pods");
        let request = request.header("impersonate-user", ["me"]).header("cookie", ["canary"]);
        request.object(&json!({"sent": 1, "token": "canary"})).send().await.unwrap();
        let lines = captured.with("TRACE windlass_client::body");
        assert_eq!(lines.len(), if shown { 4 } else { 0 }, "{lines:#?}");
        assert!(!captured.text().contains("canary"), "{}", captured.text());
        if shown {
            assert!(lines[0].contains("bytes of a kind that holds secrets"), "{}", lines[0]);
            assert!(lines[2].contains("impersonate-user") && lines[2].contains("\\\"sent\\\":1"));
            assert!(lines[3].contains(&format!("… ({} bytes)", body.len())), "{}", lines[3]);
        }
    }
}

/// Names, labels and buckets of client-go as component-base and controller-runtime register them.
#[tokio::test(start_paused = true)]
async fn requests_are_counted_under_client_gos_names_labels_and_buckets() {
    let server = Server::with([
        Reply::Cut,
        Reply::With(429, "retry-after", "1", "slow"),
        Reply::Answer(200, "{\"answer\":true}"),
    ]);
    let wire = Arc::new(Wire(Arc::clone(&server)));
    let client =
        Client::builder().connector(wire).environment(environment()).qps(10.0).build().unwrap();
    let request = client.put().abs_path(["/x"]).repeatable().object(&json!({"a": 1}));
    request.send().await.unwrap();
    let metrics = &client.environment().metrics;
    for (code, count) in [("429", 1), ("<error>", 1), ("200", 1)] {
        assert_eq!(metrics.counted(&REST_REQUESTS, &[code, "PUT", "localhost"]), count, "{code}");
    }
    for (code, count) in [("429", 1), ("<error>", 1), ("200", 0)] {
        assert_eq!(metrics.counted(&REST_RETRIES, &[code, "PUT", "localhost"]), count, "{code}");
    }
    let text = metrics.encode();
    for line in [
        "rest_client_requests_total{code=\"200\",method=\"PUT\",host=\"localhost\"} 1",
        "rest_client_request_retries_total{code=\"429\",verb=\"PUT\",host=\"localhost\"} 1",
        "rest_client_request_duration_seconds_count{verb=\"PUT\",host=\"localhost\"} 1",
        "rest_client_rate_limiter_duration_seconds_count{verb=\"PUT\",host=\"localhost\"} 3",
        "rest_client_request_size_bytes_count{verb=\"PUT\",host=\"localhost\"} 3",
        "rest_client_request_size_bytes_sum{verb=\"PUT\",host=\"localhost\"} 21.0",
        "rest_client_response_size_bytes_count{verb=\"PUT\",host=\"localhost\"} 2",
        "rest_client_response_size_bytes_sum{verb=\"PUT\",host=\"localhost\"} 19.0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let bounds = |name: &str| -> Vec<f64> {
        let start = format!("{name}_bucket{{le=\"");
        let bound = |line: &str| line.strip_prefix(&start)?.split('"').next()?.parse().ok();
        text.lines().filter_map(bound).filter(|bound: &f64| bound.is_finite()).collect()
    };
    let seconds = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
    assert_eq!(bounds("rest_client_request_duration_seconds"), seconds);
    assert_eq!(bounds("rest_client_rate_limiter_duration_seconds"), seconds);
    let bytes = [64, 256, 512, 1024, 4096, 16384, 65536, 262_144, 1_048_576, 4_194_304, 16_777_216];
    assert_eq!(bounds("rest_client_request_size_bytes"), bytes.map(f64::from));
    assert_eq!(bounds("rest_client_response_size_bytes"), bytes.map(f64::from));
}
