//! A small client for tests.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};

use crate::{ApiServer, Builder};

/// A client on a connection to a server.
pub(crate) struct Client {
    sender: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
    pub(crate) value: Value,
}

impl Reply {
    pub(crate) fn version(&self) -> u64 {
        self.value["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    }

    pub(crate) fn message(&self) -> &str {
        self.value["message"].as_str().unwrap_or(&self.text)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let items = self.value["items"].as_array().unwrap();
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect()
    }
}

/// Returns a server with a fixed seed and a fixed time.
pub(crate) fn server() -> ApiServer {
    Builder::default().seed(1).epoch(1_767_225_600).controllers(false).start()
}

/// Returns a server and a client.
pub(crate) async fn start() -> (ApiServer, Client) {
    let server = server();
    let client = Client::of(&server).await;
    (server, client)
}

impl Client {
    pub(crate) async fn of(server: &ApiServer) -> Self {
        Self::on(server.connect().unwrap()).await
    }

    /// Returns a client without credentials.
    pub(crate) async fn anonymous(server: &ApiServer) -> Self {
        Self::on(server.connect_anonymous().unwrap()).await
    }

    /// Returns a client of a user without groups.
    pub(crate) async fn user(server: &ApiServer, name: &str) -> Self {
        Self::on(server.connect_as(name, &[]).unwrap()).await
    }

    pub(crate) async fn on(stream: tokio::io::DuplexStream) -> Self {
        let io = TokioIo::new(stream);
        let (sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        Self { sender }
    }

    pub(crate) async fn open(
        &mut self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> hyper::Result<http::Response<Incoming>> {
        let mut request = http::Request::builder().method(method).uri(url).header("host", "x");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.sender.ready().await?;
        self.sender.send_request(request.body(Full::new(body.into())).unwrap()).await
    }

    pub(crate) async fn send(
        &mut self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        let response = self.open(method, url, headers, body).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let value = crate::protobuf::decode(&bytes, "", "").ok();
        let value = value.or_else(|| serde_json::from_str(&text).ok()).unwrap_or(Value::Null);
        Reply { code: parts.status.as_u16(), headers: parts.headers, text, value }
    }

    pub(crate) async fn get(&mut self, url: &str) -> Reply {
        self.send("GET", url, &[], "").await
    }

    pub(crate) async fn post(&mut self, url: &str, body: Value) -> Reply {
        self.send("POST", url, &[("content-type", "application/json")], body.to_string()).await
    }

    pub(crate) async fn put(&mut self, url: &str, body: Value) -> Reply {
        self.send("PUT", url, &[("content-type", "application/json")], body.to_string()).await
    }

    pub(crate) async fn patch(&mut self, form: &str, url: &str, body: Value) -> Reply {
        let media = match form {
            "apply" => "application/apply-patch+yaml".to_owned(),
            form => format!("application/{form}-patch+json"),
        };
        self.send("PATCH", url, &[("content-type", &media)], body.to_string()).await
    }

    pub(crate) async fn merge(&mut self, url: &str, body: Value) -> Reply {
        self.patch("merge", url, body).await
    }

    pub(crate) async fn delete(&mut self, url: &str) -> Reply {
        self.send("DELETE", url, &[], "").await
    }

    /// Sends an object in protobuf, and asks for the answer in protobuf.
    pub(crate) async fn send_protobuf(&mut self, method: &str, url: &str, object: &Value) -> Reply {
        let body = crate::protobuf::encode(object).unwrap();
        let headers = [("content-type", PROTOBUF), ("accept", PROTOBUF_OR_JSON)];
        self.send(method, url, &headers, body).await
    }

    pub(crate) async fn delete_with(&mut self, url: &str, options: Value) -> Reply {
        self.send("DELETE", url, &[("content-type", "application/json")], options.to_string()).await
    }
}

/// An open watch.
pub(crate) struct Watch {
    body: Incoming,
    buffer: Vec<u8>,
    pub(crate) code: u16,
}

impl Watch {
    /// Opens a watch on a separate connection.
    pub(crate) async fn open(server: &ApiServer, url: &str) -> Self {
        Self::open_as(server, url, &[]).await
    }

    pub(crate) async fn open_as(server: &ApiServer, url: &str, headers: &[(&str, &str)]) -> Self {
        let mut client = Client::of(server).await;
        let response = client.open("GET", url, headers, "").await.unwrap();
        let code = response.status().as_u16();
        Self { body: response.into_body(), buffer: Vec::new(), code }
    }

    /// Returns the next line; `None` when the stream has ended.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(end + 1);
                let line = std::mem::replace(&mut self.buffer, rest);
                return Some(String::from_utf8(line).unwrap());
            }
            match self.body.frame().await? {
                Ok(frame) => self.buffer.extend(frame.into_data().unwrap()),
                Err(_) => return None,
            }
        }
    }

    /// Returns the next frame in protobuf, without the length before the message.
    pub(crate) async fn message(&mut self) -> Vec<u8> {
        loop {
            if let Some((length, rest)) = self.buffer.split_first_chunk::<4>()
                && let Some(message) = rest.get(..u32::from_be_bytes(*length) as usize)
            {
                let message = message.to_vec();
                self.buffer.drain(..message.len() + 4);
                return message;
            }
            let frame = self.body.frame().await.unwrap().unwrap();
            self.buffer.extend(frame.into_data().unwrap());
        }
    }

    /// Returns the next event.
    pub(crate) async fn event(&mut self) -> Option<Value> {
        Some(serde_json::from_str(&self.line().await?).unwrap())
    }

    /// Returns the next event as `TYPE name`.
    pub(crate) async fn brief(&mut self) -> String {
        match self.event().await {
            Some(event) => format!(
                "{} {}",
                event["type"].as_str().unwrap(),
                event["object"]["metadata"]["name"].as_str().unwrap_or("-")
            ),
            None => "END".to_owned(),
        }
    }

    /// Returns whether no event comes for a while.
    pub(crate) async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(500), self.line()).await.is_err()
    }
}

/// Headers of a handshake.
const HANDSHAKE: [(&str, &str); 5] = [
    ("connection", "Upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("origin", "http://localhost"),
];

/// A client's end of a WebSocket.
pub(crate) struct Socket {
    pub(crate) headers: http::HeaderMap,
    stream: WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>,
}

impl Socket {
    /// Opens a WebSocket as the administrator; `Err` is the answer over HTTP.
    pub(crate) async fn open(
        server: &ApiServer,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, (u16, String)> {
        Self::on(&mut Client::of(server).await, url, headers).await
    }

    /// Opens a WebSocket; a given header takes the place of the usual header, and is left out if
    /// empty.
    pub(crate) async fn on(
        client: &mut Client,
        url: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, (u16, String)> {
        let is_given = |name: &str| headers.iter().any(|(given, _)| *given == name);
        let usual = HANDSHAKE.iter().filter(|(name, _)| !is_given(name));
        let all: Vec<_> =
            usual.chain(headers).filter(|(_, value)| !value.is_empty()).copied().collect();
        let mut response = client.open("GET", url, &all, "").await.unwrap();
        if response.status().as_u16() != 101 {
            let code = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            return Err((code, String::from_utf8_lossy(&body).into_owned()));
        }
        let upgraded = TokioIo::new(hyper::upgrade::on(&mut response).await.unwrap());
        let stream = WebSocketStream::from_raw_socket(upgraded, Role::Client, None).await;
        Ok(Self { headers: response.headers().clone(), stream })
    }

    pub(crate) async fn send(&mut self, message: Message) {
        self.stream.send(message).await.unwrap();
    }

    /// Sends a message that the server may refuse before having read all of it.
    pub(crate) async fn send_lossy(&mut self, message: Message) {
        drop(self.stream.feed(message).await);
        let flush = self.stream.flush();
        drop(tokio::time::timeout(Duration::from_millis(100), flush).await);
    }

    /// Returns the next message; `None` when the connection has ended.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        self.stream.next().await?.ok()
    }

    /// Returns the next event of a watch as `TYPE name`, and any other message as printed.
    pub(crate) async fn brief(&mut self) -> String {
        match self.next().await {
            Some(Message::Text(text)) => {
                assert!(text.ends_with('\n'));
                let event: Value = serde_json::from_str(&text).unwrap();
                let name = event["object"]["metadata"]["name"].as_str().unwrap_or("-");
                format!("{} {name}", event["type"].as_str().unwrap())
            }
            Some(Message::Close(frame)) => {
                format!("CLOSE {}", frame.map_or(0, |frame| u16::from(frame.code)))
            }
            Some(other) => format!("{other:?}"),
            None => "END".to_owned(),
        }
    }
}

pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// `Accept` of client-go.
pub(crate) const PROTOBUF_OR_JSON: &str = "application/vnd.kubernetes.protobuf,application/json";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const WIDGETS: &str = "/apis/g.io/v1/namespaces/default/widgets";

/// Returns a ConfigMap.
pub(crate) fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": "v"}})
}

/// Returns a Deployment.
pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]}}}})
}

/// Returns the definition of the kind `Widget`.
pub(crate) fn widgets() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.g.io"},
        "spec": {
            "group": "g.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {
                        "size": {"type": "integer"}, "host": {"type": "string"},
                        "mode": {"type": "string", "default": "auto"}}},
                    "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
                }}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"}},
                "selectableFields": [{"jsonPath": ".spec.host"}],
            }],
        },
    })
}

/// Returns an object of the kind `Widget`.
pub(crate) fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "g.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}
