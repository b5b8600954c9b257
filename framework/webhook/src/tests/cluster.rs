//! Handlers that the embedded API server calls.

use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use windlass_apiserver::{ApiServer, Connecting, Connector, Destination, WebhookStream};

use super::*;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// Connects each webhook to the handlers; those on the host `away` to nothing.
struct InProcess(AdmissionHandler);

impl Connector for InProcess {
    fn connect(&self, destination: &Destination) -> Connecting {
        let (handler, is_away) = (self.0.clone(), destination.host == "away");
        Box::pin(async move {
            if is_away {
                return Err(std::io::Error::other("connection refused"));
            }
            let (near, far) = tokio::io::duplex(64 * 1024);
            let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                let handler = handler.clone();
                async move {
                    let (parts, body) = request.into_parts();
                    let body = body.collect().await?.to_bytes();
                    let answer = handler.handle(Request::from_parts(parts, body)).await;
                    Ok::<_, hyper::Error>(answer.map(Full::new))
                }
            });
            let http = hyper::server::conn::http1::Builder::new();
            tokio::spawn(http.serve_connection(TokioIo::new(far), service));
            Ok(WebhookStream::plain(near))
        })
    }
}

/// A user of a server whose admission asks the handlers.
struct Cluster {
    sender: SendRequest<Full<Bytes>>,
    _server: ApiServer,
}

impl Cluster {
    async fn start(host: &str, policy: &str) -> Self {
        let server = ApiServer::builder().connector(InProcess(handler())).seed(1).start();
        let io = TokioIo::new(server.connect_as("alice", &["system:masters"]).unwrap());
        let (sender, connection) = handshake(io).await.unwrap();
        tokio::spawn(connection);
        let mut cluster = Self { sender, _server: server };
        for (kind, path) in [("validating", VALIDATE), ("mutating", MUTATE)] {
            let hook = json!({
                "name": format!("{kind}.example.dev"), "sideEffects": "None", "timeoutSeconds": 2,
                "admissionReviewVersions": ["v1"], "failurePolicy": policy,
                "clientConfig": { "url": format!("https://{host}{path}") },
                "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                    "operations": ["*"] }],
            });
            let body = json!({ "metadata": { "name": kind }, "webhooks": [hook] });
            let url = format!("{CONFIGURATIONS}/{kind}webhookconfigurations");
            let (code, _, body) = cluster.send("POST", &url, body).await;
            assert_eq!(code, 201, "{body}");
        }
        cluster
    }

    /// Sends a request; returns status, warnings and body.
    async fn send(&mut self, method: &str, url: &str, body: Value) -> (u16, Vec<String>, Value) {
        let request = Request::builder().method(method).uri(url).header("host", "localhost");
        let request = request.header("content-type", "application/json");
        let request = request.body(Full::new(Bytes::from(body.to_string()))).unwrap();
        let (parts, body) = self.sender.send_request(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let warnings = parts.headers.get_all("warning").iter();
        let warnings = warnings.map(|text| text.to_str().unwrap().to_owned()).collect();
        (parts.status.as_u16(), warnings, serde_json::from_slice(&bytes).unwrap())
    }

    async fn create(&mut self, query: &str, data: Value) -> (u16, Vec<String>, Value) {
        let map = json!({ "metadata": { "name": "settings" }, "data": data });
        self.send("POST", &format!("{MAPS}{query}"), map).await
    }
}

#[tokio::test(start_paused = true)]
async fn defaults_are_stored_and_warnings_reach_the_user() {
    let mut cluster = Cluster::start("hooks", "Fail").await;
    let (code, warnings, stored) =
        cluster.create("", json!({ "warn": "old", "user": "alice" })).await;
    assert_eq!((code, &stored["data"]["host"]), (201, &json!("home.example")));
    assert_eq!(warnings, ["299 - \"old\""]);
}

#[tokio::test(start_paused = true)]
async fn a_denial_reaches_the_user_with_its_causes() {
    let mut cluster = Cluster::start("hooks", "Fail").await;
    let (code, _, status) = cluster.create("", json!({ "invalid": "x" })).await;
    let message = "admission webhook \"validating.example.dev\" denied the request: ConfigMap \
                   \"settings\" is invalid: data[invalid]: Invalid value: \"x\": is not wanted";
    assert_eq!((code, &status["message"]), (422, &json!(message)));
    let cause = &status["details"]["causes"][0];
    assert_eq!(
        (&cause["field"], &cause["reason"]),
        (&json!("data[invalid]"), &json!("FieldValueInvalid"))
    );
}

#[tokio::test(start_paused = true)]
async fn updates_deletions_and_dry_runs_are_judged() {
    let mut cluster = Cluster::start("hooks", "Fail").await;
    assert_eq!(cluster.create("", json!({ "dry": "" })).await.0, 422);
    assert_eq!(cluster.create("?dryRun=All", json!({ "dry": "" })).await.0, 201);
    assert_eq!(cluster.create("", json!({ "fixed": "1", "keep": "" })).await.0, 201);
    let url = format!("{MAPS}/settings");
    let changed = json!({ "metadata": { "name": "settings" }, "data": { "fixed": "2" } });
    assert_eq!(cluster.send("PUT", &url, changed).await.0, 422);
    let (code, _, status) = cluster.send("DELETE", &url, json!({})).await;
    assert_eq!(code, 403, "{status}");
    let released = json!({ "metadata": { "name": "settings" }, "data": { "fixed": "1" } });
    assert_eq!(cluster.send("PUT", &url, released).await.0, 200);
    assert_eq!(cluster.send("DELETE", &url, json!({})).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn w3_w5_the_failure_policy_decides_when_a_handler_panics_hangs_or_fails() {
    for (policy, wanted) in [("Fail", 500), ("Ignore", 201)] {
        for wish in ["panic", "hang", "fail"] {
            let mut cluster = Cluster::start("hooks", policy).await;
            let (code, _, body) = cluster.create("", json!({ wish: "a reason" })).await;
            assert_eq!(code, wanted, "{policy}, {wish}: {body}");
            let text = body["message"].as_str().unwrap_or_default();
            assert_eq!(text.contains("failed calling webhook"), policy == "Fail", "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_failure_policy_decides_when_the_handlers_are_away() {
    for (policy, wanted) in [("Fail", 500), ("Ignore", 201)] {
        let mut cluster = Cluster::start("away", policy).await;
        let (code, _, body) = cluster.create("", json!({})).await;
        assert_eq!(code, wanted, "{policy}: {body}");
    }
}
