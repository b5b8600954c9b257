use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::support::*;
use crate::http::test_support::*;
use crate::{Builder, Connecting, Connector, Destination};

const FAILED: &str = "Internal error occurred: failed calling webhook \"a.example.com\": ";

/// Returns the message to the client for an answer of a webhook.
async fn message(code: u16, body: &'static str) -> String {
    let hooks = Hooks::new(move |_, _| Some((code, body.to_owned())));
    let (_server, mut client) = hooks.start().await;
    configure(&mut client, VALIDATING, "c", &[hook("a", json!({}))]).await;
    let reply = client.post(MAPS, map("m")).await;
    assert_eq!((reply.code, &reply.value["reason"]), (500, &json!("InternalError")));
    let message = reply.message().strip_prefix(FAILED).unwrap().to_owned();
    assert_eq!(
        reply.value["details"]["causes"][0]["message"],
        reply.message().strip_prefix("Internal error occurred: ").unwrap()
    );
    message
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_no_reviews_fail_the_request() {
    let object = "json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
    for (code, body, text) in [
        (200, "", "0-length response with status code: 200 and content type: application/json".to_owned()),
        (200, "[]", format!("couldn't get version/kind; json parse error: {object}")),
        (200, "oops", format!("couldn't get version/kind; json parse error: {}", object.replace("array", "string"))),
        (200, r#"{"apiVersion": "admission.k8s.io/v1", "kind": "Foo"}"#,
            "no kind \"Foo\" is registered for version \"admission.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"".to_owned()),
        (200, r#"{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}"#,
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion".to_owned()),
        (200, r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"allowed": "yes"}}"#,
            "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool".to_owned()),
        (500, r#"{"a": 1}"#, "an error on the server (\"unknown\") has prevented the request from succeeding".to_owned()),
        (500, r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "inner"}"#, "inner".to_owned()),
        (404, "x", "the server could not find the requested resource".to_owned()),
        (418, "x", "the server responded with the status code 418 but did not return more information".to_owned()),
    ] {
        assert_eq!(message(code, body).await, format!("failed to call webhook: {text}"));
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_checked_before_they_count() {
    let absent = r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#;
    let invalid = "received invalid webhook response: ";
    assert_eq!(message(200, absent).await, format!("{invalid}webhook response was absent"));
    let hooks = Hooks::answering(|request| match request["name"].as_str() {
        Some("patch") => json!({"allowed": true, "patch": "W10="}),
        Some("type") => json!({"allowed": true, "patchType": "JSONPatch"}),
        _ => json!({"allowed": true, "uid": "zzz"}),
    });
    let (_server, mut client) = hooks.start().await;
    configure(&mut client, VALIDATING, "c", &[hook("a", json!({}))]).await;
    for (name, text) in [
        ("patch", "validating webhook may not return response.patch"),
        ("type", "validating webhook may not return response.patchType"),
    ] {
        let reply = client.post(MAPS, map(name)).await;
        assert_eq!(reply.message(), format!("{FAILED}{invalid}{text}"));
    }
    let reply = client.post(MAPS, map("uid")).await;
    let uid = hooks.requests().pop().unwrap()["uid"].clone();
    let text = format!("{FAILED}{invalid}expected response.uid={uid}, got \"zzz\"");
    assert_eq!(reply.message(), text);
}

#[tokio::test(start_paused = true)]
async fn the_older_review_is_sent_to_webhooks_that_know_no_other() {
    let hooks = Hooks::new(|_, _| Some((200, r#"{"response": {"allowed": false}}"#.to_owned())));
    let (_server, mut client) = hooks.start().await;
    let fields = json!({"admissionReviewVersions": ["v9", "v1beta1"]});
    configure(&mut client, VALIDATING, "c", &[hook("a", fields)]).await;
    let reply = client.post(MAPS, map("m")).await;
    let text = "admission webhook \"a.example.com\" denied the request without explanation";
    assert_eq!((reply.code, reply.message()), (400, text));
    assert_eq!(hooks.reviews()[0]["apiVersion"], "admission.k8s.io/v1beta1");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_hangs_costs_its_timeout_and_blocks_no_other_request() {
    for (policy, code) in [("Fail", 500), ("Ignore", 201)] {
        let hooks = Hooks::new(|_, _| None);
        let (server, mut client) = hooks.start().await;
        let fields = json!({"timeoutSeconds": 3, "failurePolicy": policy});
        configure(&mut client, VALIDATING, "c", &[hook("a", fields)]).await;
        let begun = tokio::time::Instant::now();
        let mut other = Client::of(&server).await;
        let (reply, others) = tokio::join!(client.post(MAPS, map("m")), async {
            let read = other.get(MAPS).await;
            let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
            let written = other.post("/api/v1/namespaces/default/services", service).await;
            (read.code, written.code, begun.elapsed())
        });
        assert_eq!((others.0, others.1, others.2), (200, 201, Duration::ZERO));
        assert_eq!((reply.code, begun.elapsed().as_secs()), (code, 3), "{}", reply.text);
        if policy == "Fail" {
            let url = "https://hooks.test/a?timeout=3s";
            let why = format!("failed to call webhook: Post \"{url}\": context deadline exceeded");
            assert_eq!(reply.message(), format!("{FAILED}{why}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_ends_after_its_own_time_whatever_the_webhooks_allow() {
    let hooks = Hooks::new(|_, _| None);
    let (_server, mut client) = hooks.start().await;
    let slow = json!({"timeoutSeconds": 30, "failurePolicy": "Ignore"});
    let all = [hook("a", slow.clone()), hook("b", slow)];
    configure(&mut client, MUTATING, "c", &all).await;
    let begun = tokio::time::Instant::now();
    let reply = client.post(MAPS, map("m")).await;
    assert_eq!((reply.code, begun.elapsed().as_secs()), (504, 34), "{}", reply.text);
    let text =
        "Timeout: request did not complete within requested timeout - context deadline exceeded";
    assert_eq!((&reply.value["reason"], reply.message()), (&json!("Timeout"), text));
    let reply = client.post(&format!("{MAPS}?timeout=2s"), map("m")).await;
    assert_eq!((reply.code, begun.elapsed().as_secs()), (504, 36), "{}", reply.text);
    let text = "Timeout: request did not complete within the allotted timeout";
    assert_eq!(reply.message(), text);
    let reply = client.post(&format!("{MAPS}?timeout=1m500ms"), map("m")).await;
    assert_eq!((reply.code, begun.elapsed().as_secs()), (504, 70), "{}", reply.text);
}

#[tokio::test(start_paused = true)]
async fn a_connection_serves_one_call_after_another() {
    let hooks = Hooks::answering(|_| json!({"allowed": true}));
    let (_server, mut client) = hooks.start().await;
    configure(&mut client, VALIDATING, "c", &[hook("a", json!({}))]).await;
    for name in ["a", "b", "c"] {
        assert_eq!(client.post(MAPS, map(name)).await.code, 201);
    }
    assert_eq!((hooks.paths().len(), hooks.opened().len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_service_is_called_at_its_first_ready_endpoint() {
    let hooks = Hooks::answering(|_| json!({"allowed": true}));
    let (_server, mut client) = hooks.start().await;
    let service = json!({"metadata": {"name": "s"}, "spec": {"clusterIP": "10.0.0.9",
        "ports": [{"port": 443, "name": "https", "targetPort": 9443}]}});
    let services = "/api/v1/namespaces/default/services";
    assert_eq!(client.post(services, service).await.code, 201);
    let config = json!({"clientConfig": {"service": {"name": "s", "namespace": "default",
        "path": "/x"}}});
    configure(&mut client, VALIDATING, "c", &[hook("a", config)]).await;
    assert_eq!(client.post(MAPS, map("a")).await.code, 201);
    let expected = Destination {
        host: "s.default.svc".to_owned(),
        port: 443,
        path: "/x".to_owned(),
        address: Ok(("10.0.0.9".to_owned(), 443)),
    };
    assert_eq!(hooks.opened(), [expected]);
    let endpoint = |address: &str, ready: bool| json!({"addresses": [address], "conditions": {"ready": ready}});
    let slice = json!({"metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4", "ports": [{"name": "https", "port": 9443}],
        "endpoints": [endpoint("10.1.0.1", false), endpoint("10.1.0.2", true)]});
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let reply = client.post(slices, slice).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    // A separate webhook, so that the kept connection does not serve it.
    let config = json!({"clientConfig": {"service": {"name": "s", "namespace": "default"}}});
    configure(&mut client, VALIDATING, "d", &[hook("b", config)]).await;
    assert_eq!(client.post(MAPS, map("b")).await.code, 201);
    assert_eq!(hooks.opened()[1].address, Ok(("10.1.0.2".to_owned(), 9443)));
}

/// Returns the message for a `clientConfig`, called by TCP.
async fn by_socket(config: Value) -> String {
    let server = Builder::default().seed(1).controllers(false).start();
    let mut client = Client::of(&server).await;
    configure(&mut client, VALIDATING, "c", &[hook("a", json!({"clientConfig": config}))]).await;
    let reply = client.post(MAPS, map("m")).await;
    assert_eq!(reply.code, 500);
    reply.message().strip_prefix(FAILED).unwrap().to_owned()
}

#[tokio::test]
async fn a_webhook_that_cannot_be_reached_is_described_as_by_upstream() {
    let post =
        |url: &str, why: &str| format!("failed to call webhook: Post \"{url}?timeout=10s\": {why}");
    let refused = "dial tcp 127.0.0.1:1: connect: connection refused";
    for (config, text) in [
        (json!({"url": "https://127.0.0.1:1/a/b/"}), post("https://127.0.0.1:1/a/b", refused)),
        (json!({"url": "https://127.0.0.1:1"}), post("https://127.0.0.1:1/", refused)),
        (json!({"service": {"name": "s", "namespace": "default", "path": "/x"}}),
            post("https://s.default.svc:443/x", "service \"s\" not found")),
        (json!({"service": {"name": "kubernetes", "namespace": "default", "port": 9}}),
            post("https://kubernetes.default.svc:9/", "no service port 9 found for service \"kubernetes\"")),
        (json!({"url": "https://127.0.0.1:1", "caBundle": "aGVsbG8="}),
            "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block".to_owned()),
    ] {
        assert_eq!(by_socket(config).await, text);
    }
}

/// Refuses every connection.
struct Refusing;

impl Connector for Refusing {
    fn connect(&self, _destination: &Destination) -> Connecting {
        Box::pin(async { Err(std::io::Error::other("not today")) })
    }
}

#[tokio::test(start_paused = true)]
async fn the_text_of_a_connector_is_part_of_the_message() {
    let server = Builder::default().seed(1).controllers(false).connector(Refusing).start();
    let mut client = Client::of(&server).await;
    configure(&mut client, MUTATING, "c", &[hook("a", json!({}))]).await;
    let reply = client.post(MAPS, map("m")).await;
    let why = "failed to call webhook: Post \"https://hooks.test/a?timeout=10s\": not today";
    assert_eq!(reply.message(), format!("{FAILED}{why}"));
}

/// Certificates of a webhook for `127.0.0.1` and `good.example`.
fn certificates() -> (String, rustls::ServerConfig) {
    let mut authority = rcgen::CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = authority.self_signed(&key).unwrap();
    let issuer = rcgen::Issuer::new(authority, key);
    let names = ["127.0.0.1".to_owned(), "good.example".to_owned()];
    let own = rcgen::CertificateParams::new(names).unwrap();
    let own_key = rcgen::KeyPair::generate().unwrap();
    let signed = own.signed_by(&own_key, &issuer).unwrap();
    let key = rustls_pki_types::PrivatePkcs8KeyDer::from(own_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.der().clone()], key.into())
        .unwrap();
    use base64::Engine as _;
    let bundle = base64::engine::general_purpose::STANDARD.encode(certificate.pem());
    (bundle, config)
}

#[tokio::test]
async fn the_certificate_of_a_webhook_is_verified_with_its_bundle() {
    let (bundle, config) = certificates();
    let (other, _) = certificates();
    let hooks = Hooks::answering(|_| json!({"allowed": false}));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let served = hooks.clone();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, hooks) = (acceptor.clone(), served.clone());
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    hooks.serve(stream).await;
                }
            });
        }
    });
    let server = Builder::default().seed(1).controllers(false).start();
    let mut client = Client::of(&server).await;
    let url = format!("https://127.0.0.1:{port}/a");
    let config = json!({"url": url, "caBundle": bundle});
    configure(&mut client, VALIDATING, "c", &[hook("a", json!({"clientConfig": config}))]).await;
    let reply = client.post(MAPS, map("m")).await;
    let text = "admission webhook \"a.example.com\" denied the request without explanation";
    assert_eq!((reply.code, reply.message()), (400, text));
    let verify = "tls: failed to verify certificate: x509: ";
    let unknown = "certificate signed by unknown authority";
    let wrong = "certificate is valid for good.example, not localhost";
    for (host, bundle, why) in [
        ("127.0.0.1", json!(other), unknown),
        ("127.0.0.1", Value::Null, unknown),
        ("localhost", json!(bundle), wrong),
    ] {
        client.delete(&format!("{VALIDATING}/c")).await;
        let url = format!("https://{host}:{port}/a");
        let config = json!({"url": url, "caBundle": bundle});
        configure(&mut client, VALIDATING, "c", &[hook("a", json!({"clientConfig": config}))])
            .await;
        let reply = client.post(MAPS, map("m")).await;
        let call = format!("failed to call webhook: Post \"{url}?timeout=10s\": {verify}{why}");
        assert_eq!(reply.message(), format!("{FAILED}{call}"));
    }
    task.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_that_wait_for_a_webhook_leave_room_for_others() {
    let hooks = Hooks::new(|_, _| None);
    let (server, mut client) = hooks.start().await;
    configure(&mut client, VALIDATING, "c", &[hook("a", json!({"timeoutSeconds": 30}))]).await;
    let mut waiting = tokio::task::JoinSet::new();
    for number in 0..200 {
        let mut client = Client::of(&server).await;
        waiting.spawn(async move { client.post(MAPS, map(&format!("m{number}"))).await });
    }
    // All of them wait now: each has opened a connection.
    while hooks.paths().len() < 200 {
        tokio::task::yield_now().await;
    }
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let written = client.post("/api/v1/namespaces/default/services", service).await;
    assert_eq!((written.code, client.get(MAPS).await.code), (201, 200));
    assert!(waiting.try_join_next().is_none());
}
