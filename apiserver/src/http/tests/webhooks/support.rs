//! Webhooks in the same process, on in-memory connections.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::http::test_support::*;
use crate::{ApiServer, Builder, Connecting, Connector, Destination, WebhookStream};

pub(crate) const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
pub(crate) const MUTATING: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// Answers a review at a path: status and body; `None` never answers.
type Handler = dyn Fn(&str, &Value) -> Option<(u16, String)> + Send + Sync;

/// A webhook server in memory, and the requests that it has seen.
#[derive(Clone)]
pub(crate) struct Hooks {
    handler: Arc<Handler>,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
    opened: Arc<Mutex<Vec<Destination>>>,
}

impl Hooks {
    pub(crate) fn new(
        handler: impl Fn(&str, &Value) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Self {
        Self { handler: Arc::new(handler), seen: Arc::default(), opened: Arc::default() }
    }

    /// Returns webhooks whose answer has these fields beside the uid.
    pub(crate) fn answering(response: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Self {
        Self::new(move |_, review| Some(answer(review, response(&review["request"]))))
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.seen.lock().iter().map(|(_, review)| review["request"].clone()).collect()
    }

    /// Returns the paths that were called, with their queries.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.seen.lock().iter().map(|(path, _)| path.clone()).collect()
    }

    pub(crate) fn reviews(&self) -> Vec<Value> {
        self.seen.lock().iter().map(|(_, review)| review.clone()).collect()
    }

    pub(crate) fn opened(&self) -> Vec<Destination> {
        self.opened.lock().clone()
    }

    /// Returns the builder of a server whose webhooks these are.
    pub(crate) fn builder(&self) -> Builder {
        Builder::default().seed(1).epoch(1_767_225_600).connector(self.clone())
    }

    /// Starts a server without controllers whose webhooks these are.
    pub(crate) async fn start(&self) -> (ApiServer, Client) {
        let server = self.builder().controllers(false).start();
        let client = Client::of(&server).await;
        (server, client)
    }

    pub(crate) async fn serve(
        self,
        stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    ) {
        let answer = service_fn(move |request: http::Request<Incoming>| {
            let hooks = self.clone();
            async move {
                let path = request.uri().to_string();
                let body = request.into_body().collect().await?.to_bytes();
                let review: Value = serde_json::from_slice(&body).unwrap();
                hooks.seen.lock().push((path.clone(), review.clone()));
                let Some((code, body)) = (hooks.handler)(&path, &review) else {
                    return std::future::pending().await;
                };
                let body = Full::new(Bytes::from(body));
                let response = http::Response::builder().status(code);
                let response = response.header("content-type", "application/json").body(body);
                Ok::<_, hyper::Error>(response.unwrap())
            }
        });
        let http = hyper::server::conn::http1::Builder::new();
        drop(http.serve_connection(TokioIo::new(stream), answer).await);
    }
}

impl Connector for Hooks {
    fn connect(&self, destination: &Destination) -> Connecting {
        self.opened.lock().push(destination.clone());
        let hooks = self.clone();
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(64 * 1024);
            tokio::spawn(hooks.serve(far));
            Ok(WebhookStream::plain(near))
        })
    }
}

/// Returns an answered admission review.
pub(crate) fn answer(review: &Value, mut response: Value) -> (u16, String) {
    if response["uid"].is_null() {
        response["uid"] = review["request"]["uid"].clone();
    }
    let body = json!({
        "apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response,
    });
    (200, body.to_string())
}

/// Returns the response of a webhook that patches.
pub(crate) fn patch(operations: Value) -> Value {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.encode(operations.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": bytes})
}

/// Returns a webhook for ConfigMaps, with other fields.
pub(crate) fn hook(name: &str, fields: Value) -> Value {
    let mut hook = json!({
        "name": format!("{name}.example.com"), "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": format!("https://hooks.test/{name}")},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            "operations": ["*"]}],
    });
    for (field, value) in fields.as_object().unwrap() {
        hook[field] = value.clone();
    }
    hook
}

/// Creates the configuration `name` with webhooks.
pub(crate) async fn configure(client: &mut Client, url: &str, name: &str, hooks: &[Value]) {
    let reply = client.post(url, json!({"metadata": {"name": name}, "webhooks": hooks})).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
}
