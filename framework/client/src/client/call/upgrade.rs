//! The HTTP/1.1 upgrade of a request to a WebSocket, on a separate connection.
//!
//! Exec, attach and port-forward take a whole connection over, which a stream of a shared HTTP/2
//! connection cannot be. So their request bypasses the pool and the layers of the user; connector,
//! TLS, proxy, headers and credentials are those of every other request. The request is repeated
//! only when there was no connection, or when the server answered 401 and the credentials can be
//! renewed: in both cases the request was not executed. Not included: the protocol over the
//! WebSocket (`api::remote`).

// DESIGN.md, 22: WebSocket sessions bypass the connection pool

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use super::ClientShared;
use super::attempt::{self, check};
use super::uri::uri;
use crate::client::Client;
use crate::client::policy::{
    AttemptOutcome, MAX_RETRIES, RetryDecision, RetryInput, WritePermit, decide,
};
use crate::client::request::Prepared;
use crate::client::transport::{
    Attempt, BoxIo, HttpRequest, TransportError, dial, failed, for_http1,
};
use windlass_core::clock::Clock;
use windlass_core::error::{BoxError, Error, ErrorKind};
use windlass_core::metrics::names::{REST_REQUESTS, REST_RETRIES, REST_SECONDS};
use windlass_core::resource::Verb;
use windlass_core::wire::status;

/// Target of the log, beside `windlass_client::client::call`: the quickstart shows that target at
/// DEBUG.
const TARGET: &str = "windlass_client::upgrade";
/// Largest error answer that is read.
const ERROR_BODY_LIMIT: usize = 1 << 20;
/// Largest head of an answer.
const HEAD_LIMIT: usize = 256 << 10;

/// A connection that speaks WebSocket from here on.
pub(crate) struct Upgraded {
    pub(crate) io: BoxIo,
    /// Subprotocol that both ends agreed on, from the offered list.
    pub(crate) protocol: &'static str,
    pub(crate) clock: Clock,
}

impl Client {
    /// Sends `request` as an upgrade to WebSocket that offers `protocols`, the best protocol first.
    /// The request's deadline covers everything up to the upgrade. The write gate is asked as for a
    /// write.
    ///
    /// # Errors
    /// As [`Client::send`]; [`ErrorKind::Ambiguous`] for a request that is not repeatable and may
    /// or may not have been executed; [`ErrorKind::Server`] for an answer that is no upgrade.
    /// # Cancel safety
    /// Dropping the future closes the connection; a command may have been started.
    pub(crate) async fn upgrade(
        &self,
        request: &Prepared,
        protocols: &[&'static str],
    ) -> Result<Upgraded, Error> {
        if self.is_dry_run() {
            let text = "an upgraded connection has no dry run";
            let text = format!("cannot {}: {text}", request.what);
            return Err(Error::new(ErrorKind::Usage, text));
        }
        let request = &self.apply_restrictions(request.clone())?;
        check(request)?;
        // The transport, which checks the headers of all other requests, is bypassed.
        self.shared.rules.check(&request.headers)?;
        let span = tracing::debug_span!(target: TARGET, "upgrade", url = %request.template());
        let shared = &*self.shared;
        let timeout = request.timeout.unwrap_or(shared.defaults.timeout);
        let deadline = shared.environment.clock.after(timeout);
        let uri = uri(self, request)?;
        let call = UpgradeCall { client: self, shared, request, uri, protocols, deadline };
        let upgraded = Box::pin(call.run().instrument(span)).await;
        self.judged(request, upgraded)
    }
}

/// State of an upgrade in progress.
struct UpgradeCall<'a> {
    client: &'a Client,
    shared: &'a ClientShared,
    request: &'a Prepared,
    uri: Uri,
    /// Offered subprotocols, the best first.
    protocols: &'a [&'static str],
    deadline: Instant,
}

/// Failure of an attempt to upgrade.
struct UpgradeFailure {
    error: Error,
    /// Outcome; set when the request was not executed and another attempt may succeed.
    outcome: Option<AttemptOutcome>,
}

impl From<Error> for UpgradeFailure {
    fn from(error: Error) -> Self {
        Self { error, outcome: None }
    }
}

impl UpgradeCall<'_> {
    /// Makes attempts until one succeeds or no other is allowed.
    async fn run(self) -> Result<Upgraded, Error> {
        let mut attempt = 0;
        let mut refreshed = false;
        loop {
            attempt += 1;
            let credentials = self.credentials().await?;
            let failure = match self.attempt(credentials.as_ref()).await {
                Ok(upgraded) => return Ok(upgraded),
                Err(failure) => failure,
            };
            let Some(outcome) = failure.outcome else { return Err(failure.error) };
            let refreshable =
                self.shared.credentials.refreshable() || self.shared.rotating.is_some();
            let facts = RetryInput {
                // The decision treats the upgrade as a create: a command must not be started twice.
                verb: Verb::Create,
                repeatable: false,
                outcome,
                attempt,
                refreshable: refreshable && !refreshed,
                resendable: true,
                max_retries: MAX_RETRIES,
                remaining: self.remaining(),
            };
            match decide(facts) {
                RetryDecision::Refresh => {
                    refreshed = true;
                    self.renew(credentials.as_ref()).await;
                }
                RetryDecision::Wait { jitter, .. } => {
                    self.wait(jitter, attempt, failure.error).await?
                }
                RetryDecision::Fail(_) => return Err(tried(failure.error, attempt)),
            }
        }
    }

    /// Waits before another attempt, unless time or budget do not allow another.
    async fn wait(&self, jitter: Duration, attempt: u32, error: Error) -> Result<(), Error> {
        let clock = &self.shared.environment.clock;
        let wait = self.shared.jitter.jitter(jitter);
        if wait >= self.remaining() || !self.shared.budgets.lock().of(false).withdraw(clock.now()) {
            return Err(tried(error, attempt));
        }
        let labels = ["<error>", "GET", self.shared.host.as_str()];
        self.shared.environment.metrics.count(&REST_RETRIES, &labels, 1);
        clock.sleep(wait).await;
        Ok(())
    }

    /// Returns the header `Authorization`, within the time of the upgrade.
    async fn credentials(&self) -> Result<Option<HeaderValue>, Error> {
        let header = self.shared.credentials.header();
        match self.shared.environment.clock.timeout(self.remaining(), header).await {
            Some(Ok(header)) => Ok(header),
            Some(Err(error)) => {
                let text = format!("no credentials: {error}");
                Err(self.error(error.kind(), &text).because(error))
            }
            None => {
                let text = format!("no credentials in time{}", self.shared.credentials.awaited());
                Err(self.error(ErrorKind::Timeout, &text))
            }
        }
    }

    /// Requests new credentials in place of those that the server refused.
    async fn renew(&self, header: Option<&HeaderValue>) {
        let refused = self.shared.credentials.refused(header);
        self.shared.environment.clock.timeout(self.remaining(), refused).await;
    }

    /// Makes a single attempt, and counts it.
    async fn attempt(&self, credentials: Option<&HeaderValue>) -> Result<Upgraded, UpgradeFailure> {
        let clock = &self.shared.environment.clock;
        let started = clock.now();
        let mut code = None;
        let result = self.exchange(credentials, &mut code).await;
        let code = code.as_ref().map_or("<error>", StatusCode::as_str);
        let (metrics, host) = (&self.shared.environment.metrics, self.shared.host.as_str());
        metrics.count(&REST_REQUESTS, &[code, "GET", host], 1);
        metrics.observe(&REST_SECONDS, &["GET", host], clock.now() - started);
        result
    }

    /// Opens a connection and exchanges request and answer.
    async fn exchange(
        &self,
        credentials: Option<&HeaderValue>,
        code: &mut Option<StatusCode>,
    ) -> Result<Upgraded, UpgradeFailure> {
        // Asked here so that no connection is opened in vain, and again on a connection: after a
        // slow connect the gate's answer may be different.
        self.admit()?;
        let io = self.connect().await?;
        let (mut out, until) = self.begin_write()?;
        let key = self.key();
        let request = self.http(credentials, &key, until)?;
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_LIMIT)
            .handshake(TokioIo::new(io))
            .await
            .map_err(|error| self.unsent(error))?;
        // Aborted with this future; ends without an abort when the stream is handed over.
        let _driving = AbortOnDropHandle::new(tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(target: TARGET, %error, "connection for an upgrade ended");
            }
        }));
        // The gate counts the write until the answer: a command ends with the connection.
        out.sent(until);
        let answer = match self.until(until, sender.try_send_request(request)).await {
            None => return Err(self.late().into()),
            Some(Err(error)) => {
                // A request that came back was never sent, and leaves the gate nothing to wait for.
                let failure = failed(error);
                if failure.outcome == AttemptOutcome::NotSent {
                    out.settled();
                }
                return Err(self.lost(failure));
            }
            Some(Ok(answer)) => answer,
        };
        out.settled();
        *code = Some(answer.status());
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(self.refused(answer, until).await);
        }
        let protocol = self.check(answer.headers(), &key)?;
        match self.until(until, hyper::upgrade::on(answer)).await {
            None => Err(self.late().into()),
            Some(Err(error)) => Err(self.broken(error).into()),
            Some(Ok(io)) => {
                let clock = self.shared.environment.clock.clone();
                Ok(Upgraded { io: Box::new(TokioIo::new(io)), protocol, clock })
            }
        }
    }

    /// Opens a connection outside of the pool.
    async fn connect(&self) -> Result<BoxIo, UpgradeFailure> {
        let opening = self.shared.pool.connector().open_http1();
        match self.until(self.deadline, opening).await {
            Some(Ok(io)) => Ok(io),
            Some(Err(error)) => {
                let outcome = dial::untrusted(&error).is_none().then_some(AttemptOutcome::NotSent);
                Err(UpgradeFailure { outcome, ..self.unsent(error) })
            }
            None => Err(self.error(ErrorKind::Connect, "no connection in time").into()),
        }
    }

    /// Asks the gate, before there is a connection.
    fn admit(&self) -> Result<(), Error> {
        self.client.gate.as_ref().map_or(Ok(()), |gate| gate.admit().map(drop))
    }

    /// Asks the gate for the last time; returns the deadline of the upgrade.
    fn begin_write(&self) -> Result<(WritePermit, Instant), Error> {
        let out = match &self.client.gate {
            Some(gate) => gate.begin_write()?,
            None => WritePermit::within(None),
        };
        let clock = &self.shared.environment.clock;
        let until = out.limit().map(|limit| clock.after(limit).min(self.deadline));
        Ok((out, until.unwrap_or(self.deadline)))
    }

    /// Returns a random `Sec-WebSocket-Key`.
    fn key(&self) -> String {
        let random = || self.shared.jitter.next_u64().to_be_bytes();
        STANDARD.encode([random(), random()].concat())
    }

    /// Builds the upgrade request.
    fn http(
        &self,
        credentials: Option<&HeaderValue>,
        key: &str,
        until: Instant,
    ) -> Result<HttpRequest, Error> {
        let (uri, mark) = (self.uri.clone(), Attempt::new(until, false));
        let mut http = for_http1(attempt::http(self.shared, self.request, uri, credentials, mark));
        let headers = http.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        for (name, value) in
            [(SEC_WEBSOCKET_KEY, key), (SEC_WEBSOCKET_PROTOCOL, &self.protocols.join(", "))]
        {
            let value = HeaderValue::from_str(value)
                .map_err(|error| self.error(ErrorKind::Usage, "no such header").because(error))?;
            headers.insert(name, value);
        }
        Ok(http)
    }

    /// Checks that the answer belongs to this upgrade; returns the protocol that the server chose.
    fn check(&self, headers: &HeaderMap, key: &str) -> Result<&'static str, Error> {
        let has = |name: &HeaderName, word: &str| {
            let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            values.flat_map(|value| value.split(',')).any(|v| v.trim().eq_ignore_ascii_case(word))
        };
        let accepted = headers.get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
        if !has(&UPGRADE, "websocket")
            || !has(&CONNECTION, "upgrade")
            || accepted != Some(derive_accept_key(key.as_bytes()).as_bytes())
        {
            let text = "the server switched to something that is not our WebSocket; a proxy on the \
                        way may mix connections up";
            return Err(self.error(ErrorKind::Server, text));
        }
        let chosen = headers.get(SEC_WEBSOCKET_PROTOCOL).and_then(|value| value.to_str().ok());
        let known = self.protocols.iter().copied().find(|protocol| chosen == Some(*protocol));
        known.ok_or_else(|| {
            let offered = self.protocols.join(", ");
            let text = match chosen {
                Some(chosen) => {
                    format!("the server chose the protocol `{chosen}`, which was not offered ({offered})")
                }
                None => format!(
                    "the server agreed to none of the protocols {offered}; it is too old, or a proxy \
                     on the way drops the header Sec-WebSocket-Protocol"
                ),
            };
            self.error(ErrorKind::Server, &text)
        })
    }

    /// Returns the error of an answer that is no upgrade.
    async fn refused(&self, answer: http::Response<Incoming>, until: Instant) -> UpgradeFailure {
        let (parts, body) = answer.into_parts();
        if parts.status.is_success() || parts.status.is_informational() {
            let text = format!(
                "the answer was HTTP {} and no upgrade to WebSocket; a proxy on the way may not \
                 pass upgrades on",
                parts.status.as_u16()
            );
            return self.error(ErrorKind::Server, &text).into();
        }
        // An error answer whose body breaks or is too long still counts.
        let read = self.until(until, Limited::new(body, ERROR_BODY_LIMIT).collect()).await;
        let read = read.and_then(Result::ok).map_or_else(Bytes::new, |body| body.to_bytes());
        let retry_after = status::retry_after(&parts.headers);
        let status = status::of_answer(parts.status, &parts.headers, &read);
        let error = Error::from_status(&self.request.what, status).with_retry_after(retry_after);
        let code = parts.status.as_u16();
        let unauthorized = AttemptOutcome::Answered { code, retry_after: None };
        UpgradeFailure { error, outcome: (code == 401).then_some(unauthorized) }
    }

    /// Returns the failure of a request of which nothing was sent.
    fn unsent(&self, source: impl Into<BoxError>) -> UpgradeFailure {
        let source = source.into();
        let text = format!("no connection to {}: {source}", self.shared.host);
        let error = self.error(ErrorKind::Connect, &text).because(source);
        UpgradeFailure { error, outcome: Some(AttemptOutcome::NotSent) }
    }

    /// Returns the failure of a request that got no answer.
    fn lost(&self, failure: TransportError) -> UpgradeFailure {
        match failure.outcome {
            AttemptOutcome::NotSent => self.unsent(failure),
            _ => self.broken(failure).into(),
        }
    }

    /// Returns the error of a connection that broke after the request was sent.
    fn broken(&self, source: impl Into<BoxError>) -> Error {
        let text = format!("the connection to {} broke before the upgrade", self.shared.host);
        self.in_doubt(ErrorKind::Transport, &text).because(source)
    }

    /// Returns the error of a deadline that passed after the request was sent.
    fn late(&self) -> Error {
        let text = format!("{} did not upgrade the connection in time", self.shared.host);
        self.in_doubt(ErrorKind::Timeout, &text)
    }

    /// Returns the error of a request that was sent.
    fn in_doubt(&self, kind: ErrorKind, text: &str) -> Error {
        if self.request.repeatable {
            return self.error(kind, text);
        }
        self.error(ErrorKind::Ambiguous, &format!("{text}; it may have been executed"))
    }

    fn error(&self, kind: ErrorKind, text: &str) -> Error {
        Error::new(kind, format!("cannot {}: {text}", self.request.what))
    }

    /// Returns the time left until the deadline.
    fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(self.shared.environment.clock.now())
    }

    /// Runs `future` until `until`; `None` when `future` did not end in time.
    async fn until<F: Future>(&self, until: Instant, future: F) -> Option<F::Output> {
        let clock = &self.shared.environment.clock;
        clock.timeout(until.saturating_duration_since(clock.now()), future).await
    }
}

/// Adds the number of attempts to an error.
fn tried(error: Error, attempts: u32) -> Error {
    if attempts > 1 { error.note(&format!("tried {attempts} times")) } else { error }
}
