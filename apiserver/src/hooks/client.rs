//! The exchange with a webhook: connection, request, answer, all within one deadline.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::ClientConfig;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connector::{self, Connector, Destination, WebhookStream};
use super::session::{CallFailure, Question};
use super::{failure, tls};
use crate::clock::Clock;
use crate::long_work::LongWork;
use crate::storage::{self, Store};

/// Longest answer of a webhook, in bytes. Upstream has no limit; a patch and a list of converted
/// objects are longer than the largest request.
const LIMIT: usize = 64 * 1024 * 1024;
/// Most idle connections to a webhook.
const IDLE: usize = 8;
/// Longest time that a connection stays idle.
const KEPT: Duration = Duration::from_secs(90);
/// Most webhooks whose settings are kept.
const WEBHOOKS: usize = 200;

/// A connection that serves requests in sequence.
struct WebhookConnection {
    sender: SendRequest<Full<Bytes>>,
    /// Time of the last answer.
    since: Instant,
}

/// The settings and idle connections of a webhook.
#[derive(Default)]
struct Webhook {
    config: Option<Arc<ClientConfig>>,
    idle: Vec<WebhookConnection>,
}

/// Calls webhooks, and keeps connections to them.
pub(crate) struct Client {
    /// `None` connects by TCP.
    connector: Mutex<Option<Arc<dyn Connector>>>,
    /// By the text of `clientConfig`.
    webhooks: Mutex<HashMap<String, Webhook>>,
    /// Judges certificates: that of tests is not the system's.
    clock: Clock,
    /// Ends the connections when the server stops.
    stop: CancellationToken,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Returns a client that connects by TCP.
    pub(crate) fn new(clock: Clock, stop: CancellationToken) -> Self {
        Self { connector: Mutex::default(), webhooks: Mutex::default(), clock, stop }
    }

    /// Installs another connector.
    pub(crate) fn install(&self, connector: Arc<dyn Connector>) {
        *self.connector.lock() = Some(connector);
    }

    /// Puts a question to the webhook and returns the answered review; the error is the text of the
    /// failure. A deadline of the request may end the call before the webhook's own timeout.
    pub(crate) async fn call(
        &self,
        store: &Store,
        long: &LongWork,
        question: &Question,
        uid: &str,
        deadline: Instant,
    ) -> Result<Value, CallFailure> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(CallFailure::Deadline);
        }
        let (allowed, is_last) = (left.min(question.timeout), left < question.timeout);
        let destination = Destination::of(&question.client, store).map_err(CallFailure::Client)?;
        let key = question.client.to_string();
        let config = long
            .run_on(key.len(), || self.config(&key, || tls::config(bundle(question), &self.clock)));
        let config = config.await.map_err(CallFailure::Client)?;
        let write = || {
            let mut review = question.review.clone();
            review["request"]["uid"] = uid.into();
            Bytes::from(review.to_string())
        };
        let body = long.run_on(storage::size(&question.review), write).await;
        let url = format!(
            "https://{}{}?timeout={}s",
            destination.authority(&question.client),
            destination.path,
            allowed.as_secs() + u64::from(allowed.subsec_nanos() > 0),
        );
        let exchange = self.exchange(&key, config, &destination, &url, body);
        let Ok(answered) = tokio::time::timeout(allowed, exchange).await else {
            let text = format!("Post {url:?}: context deadline exceeded");
            return Err(if is_last { CallFailure::Deadline } else { CallFailure::Call(text) });
        };
        let (code, media, body) = answered.map_err(CallFailure::Call)?;
        let read = || failure::review(code, media.as_deref(), &body, &question.review);
        long.run_on(body.len(), read).await.map_err(CallFailure::Call)
    }

    /// Returns the TLS settings of a webhook; they are made once.
    fn config(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<Arc<ClientConfig>, String>,
    ) -> Result<Arc<ClientConfig>, String> {
        let known = self.webhooks.lock().get(key).and_then(|webhook| webhook.config.clone());
        if let Some(config) = known {
            return Ok(config);
        }
        // While no lock is held: a bundle may be long, and other calls go on. Two calls may make
        // the same.
        let config = make()?;
        let mut webhooks = self.webhooks.lock();
        // Configurations that changed leave their old settings behind.
        if webhooks.len() >= WEBHOOKS && !webhooks.contains_key(key) {
            webhooks.clear();
        }
        let held = &mut webhooks.entry(key.to_owned()).or_default().config;
        Ok(held.get_or_insert(config).clone())
    }

    /// Sends a request on an idle connection or a new connection, and reads the answer.
    async fn exchange(
        &self,
        key: &str,
        config: Arc<ClientConfig>,
        destination: &Destination,
        url: &str,
        body: Bytes,
    ) -> Result<(http::StatusCode, Option<String>, Bytes), String> {
        let failed = |why: String| format!("Post {url:?}: {why}");
        let answer = loop {
            let (mut connection, is_reused) = match self.idle(key) {
                Some(connection) => (connection, true),
                None => {
                    let fresh = self.open(config.clone(), destination).await.map_err(failed)?;
                    (fresh, false)
                }
            };
            let request = request(url, body.clone()).map_err(failed)?;
            match connection.sender.send_request(request).await {
                Ok(answer) => break (connection, answer),
                // The webhook had closed the connection before anything was sent.
                Err(error) if is_reused && error.is_canceled() => {}
                Err(error) => return Err(failed(broken(&error))),
            }
        };
        let (connection, answer) = answer;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, LIMIT).collect().await.map_err(|error| {
            format!(
                "unexpected error when reading response body. Please retry. Original error: {error}"
            )
        })?;
        self.keep(key, connection);
        let media = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        Ok((parts.status, media.map(str::to_owned), body.to_bytes()))
    }

    /// Takes an idle connection that is still open.
    fn idle(&self, key: &str) -> Option<WebhookConnection> {
        let mut webhooks = self.webhooks.lock();
        let idle = &mut webhooks.get_mut(key)?.idle;
        idle.retain(|one| !one.sender.is_closed() && one.since.elapsed() < KEPT);
        let ready = idle.iter().rposition(|one| one.sender.is_ready())?;
        Some(idle.swap_remove(ready))
    }

    /// Keeps a connection for the next request.
    fn keep(&self, key: &str, connection: WebhookConnection) {
        let mut webhooks = self.webhooks.lock();
        let Some(webhook) = webhooks.get_mut(key) else { return };
        if webhook.idle.len() < IDLE {
            webhook.idle.push(WebhookConnection { since: Instant::now(), ..connection });
        }
    }

    /// Opens a connection.
    async fn open(
        &self,
        config: Arc<ClientConfig>,
        destination: &Destination,
    ) -> Result<WebhookConnection, String> {
        // Cloned out of the lock, which must not be held while the connection is made.
        let connector = self.connector.lock().clone();
        let opened = match &connector {
            Some(connector) => connector.connect(destination).await,
            None => connector::connect(destination).await,
        };
        let WebhookStream { io, is_tls } = opened.map_err(|error| error.to_string())?;
        let io = if is_tls { tls::handshake(config, &destination.host, io).await? } else { io };
        let (sender, connection) =
            handshake(TokioIo::new(io)).await.map_err(|error| broken(&error))?;
        let stop = self.stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                // The failure of a connection is the failure of the request on it.
                _ = connection => {}
            }
        });
        Ok(WebhookConnection { sender, since: Instant::now() })
    }
}

/// Returns the bundle of authorities of a webhook.
fn bundle(question: &Question) -> &str {
    question.client["caBundle"].as_str().unwrap_or_default()
}

/// Returns the request with a review.
fn request(url: &str, body: Bytes) -> Result<http::Request<Full<Bytes>>, String> {
    let rest = url.strip_prefix("https://").unwrap_or(url);
    let (authority, _) = rest.split_once('/').unwrap_or((rest, ""));
    let target = rest.get(authority.len()..).unwrap_or("/");
    let host = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
    http::Request::post(target)
        .header(HOST, host)
        .header(ACCEPT, "application/json, */*")
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, "kube-apiserver-admission")
        .body(Full::new(body))
        .map_err(|error| error.to_string())
}

/// Returns the failure of a connection in Go's words, as far as they are known.
fn broken(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_canceled() {
        return "EOF".to_owned();
    }
    if error.is_parse() {
        return format!("net/http: HTTP/1.x transport connection broken: {error}");
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_made_once_and_while_no_lock_is_held() {
        let client = Client::new(Clock::system(), CancellationToken::new());
        let mut made = 0;
        for key in ["a", "a", "b"] {
            let make = || {
                made += 1;
                assert!(client.webhooks.try_lock().is_some(), "calls of other webhooks would wait");
                tls::config("", &Clock::system())
            };
            client.config(key, make).unwrap();
        }
        assert_eq!(made, 2);
    }
}
