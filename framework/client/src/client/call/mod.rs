//! A single call: attempts, waits and deadline.
//!
//! Order of the steps of an attempt: the backoff of the host (after a failure combined with the
//! wait of the retry), a permit of the rate limiter, credentials, the gate, the exchange.

// DESIGN.md, 16: `retry::decide` is one pure function; caches have a retry budget of their own
// DESIGN.md, 17: The caller decides about ambiguous writes

mod attempt;
mod defaults;
mod exchange;
mod observe;
mod report;
mod throttle;
mod trace;
#[cfg(feature = "ws")]
mod upgrade;
mod uri;

pub(in crate::client) use defaults::Defaults;
pub use exchange::{
    BrokenExchange, ExchangeEnd, ExchangeHook, RequestOrigin, ResponseFuture, SentRequest,
};
pub use observe::{DryRunObserver, DryRunResponse, ObservedRequest, RequestObserver};
pub(in crate::client) use trace::{SHOWN, curl};
#[cfg(feature = "ws")]
pub(crate) use upgrade::Upgraded;
pub(in crate::client) use uri::uri;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Extensions, HeaderMap, HeaderValue, Uri};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use self::attempt::{AttemptError, AttemptResponse, check};
use crate::client::Client;
use crate::client::auth::Credentials;
use crate::client::policy::{
    AttemptOutcome, BackoffManager, Budgets, MAX_RETRIES, NoRetryReason, RetryDecision, RetryInput,
    ThrottledLog, decide, is_uncertain,
};
use crate::client::request::{ByteStream, Prepared, Response};
#[cfg(any(test, feature = "ws"))]
use crate::client::transport::Pool;
use crate::client::transport::{Attempt, RequestBody, Stack, Tls, Tuning};
use windlass_core::environment::Environment;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::Metrics;
use windlass_core::metrics::names::{
    REST_REQUEST_BYTES, REST_REQUESTS, REST_RESPONSE_BYTES, REST_RETRIES, REST_SECONDS,
};
use windlass_core::resource::Verb;
use windlass_core::rng::Rng;

/// Target of the logs of periodic writes: renewals of a lease, Events.
const ROUTINE: &str = "windlass_client::routine";

/// State that all clones of a client share.
pub(crate) struct ClientShared {
    /// Layers of the user around the transport.
    pub(super) stack: Stack,
    /// Listener for all exchanges, or their other side.
    pub(super) hook: OnceLock<Arc<dyn ExchangeHook>>,
    /// Source of connections for upgrades, which bypass the stack.
    #[cfg(any(test, feature = "ws"))]
    pub(super) pool: Arc<Pool>,
    /// Header checks of upgrades, which bypass the transport.
    #[cfg(feature = "ws")]
    pub(super) rules: super::policy::HeaderRules,
    /// State of modules above the client, by type: the cache of discovery. Locked only to copy or
    /// create an entry.
    pub(super) extensions: Mutex<Extensions>,
    pub(super) credentials: Arc<Credentials>,
    /// TLS settings with a client certificate that is read from files.
    pub(super) rotating: Option<Arc<Tls>>,
    /// Scheme, host, port and path prefix; no slash at the end.
    pub(super) base: String,
    /// Offset in `base` at which the path begins.
    pub(super) base_path_at: usize,
    /// Host and port, the label of metrics.
    pub(super) host: String,
    /// ` through the proxy …`, for error texts; empty without a proxy.
    pub(super) via: String,
    /// Namespace of the configuration.
    pub(super) namespace: String,
    /// Headers of the configuration, such as those of impersonation.
    pub(super) headers: HeaderMap,
    pub(super) user_agent: HeaderValue,
    pub(super) tuning: Tuning,
    /// Randomness of waits.
    pub(super) jitter: Rng,
    /// Retry budgets; shared so that all calls together stay below a tenth of the traffic.
    pub(super) budgets: Mutex<Budgets>,
    /// Limits the log lines about long waits for permits.
    pub(super) slow: Mutex<ThrottledLog>,
    pub(super) defaults: Defaults,
    pub(super) environment: Environment,
}

impl ClientShared {
    /// Returns the server's address without the path.
    pub(super) fn root(&self) -> &str {
        &self.base[..self.base_path_at]
    }

    /// Returns the path of the server's address; empty, or with a slash at the beginning only.
    pub(super) fn base_path(&self) -> &str {
        &self.base[self.base_path_at..]
    }
}

/// Implementation of [`Client::send`].
pub(super) async fn send(client: &Client, request: Prepared) -> Result<Response, Error> {
    let request = client.apply_restrictions(request)?;
    let span = span(&request);
    let call = async {
        let clock = &client.shared.environment.clock;
        let started = clock.now();
        let answer = Call::new(client, &request, true, &span)?.run().await;
        let labels = [request.method.as_str(), client.shared.host.as_str()];
        // Observed for failed calls, too; the time includes waits and retries.
        client.shared.environment.metrics.observe(&REST_SECONDS, &labels, clock.now() - started);
        let answer = answer?;
        if request.verb.writes() && client.is_routine {
            tracing::debug!(target: ROUTINE, "{}", request.what);
        } else if request.verb.writes() {
            // The status code is in the span already.
            tracing::debug!("{}", request.what);
        }
        let (status, headers, body) = (answer.status, answer.headers, answer.read);
        let response = Response { status, headers, body, what: request.what.clone() };
        client.observe_dry_run(&request, &response);
        Ok(response)
    };
    // Boxed: the state machine of a call is large and would be part of each caller's future.
    Box::pin(call.instrument(span.clone())).await
}

/// Implementation of [`Client::stream`].
pub(super) async fn stream(client: &Client, request: Prepared) -> Result<ByteStream, Error> {
    let request = client.apply_restrictions(request)?;
    let span = span(&request);
    let call = async {
        let answer = Call::new(client, &request, false, &span)?.run().await?;
        Ok(streamed(client, answer, &request))
    };
    Box::pin(call.instrument(span.clone())).await
}

/// Implementation of [`Request::watch`](super::Request::watch): `None` when the server was reached
/// but did not answer, or the connection broke.
pub(super) async fn watch(client: &Client, request: Prepared) -> Result<Option<ByteStream>, Error> {
    let request = client.apply_restrictions(request)?;
    let span = span(&request);
    let call = async {
        let mut call = Call::new(client, &request, false, &span)?;
        match call.run().await {
            Ok(answer) => Ok(Some(streamed(client, answer, &request))),
            // The caller of a watch handles the end of a watch anyway, and begins a new watch.
            Err(error)
                if matches!(call.last, Some(AttemptOutcome::Lost | AttemptOutcome::TimedOut)) =>
            {
                tracing::debug!(%error, "an empty watch stands for one that was lost");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    };
    Box::pin(call.instrument(span.clone())).await
}

/// Turns an answer into a stream; a body that was read already becomes a single chunk.
fn streamed(client: &Client, answer: AttemptResponse, request: &Prepared) -> ByteStream {
    let body = answer
        .rest
        .unwrap_or_else(|| Full::new(answer.read).map_err(|never| match never {}).boxed_unsync());
    ByteStream::new(body, request, client.shared.environment.clock.clone())
}

/// Creates the span of a call; attempts and code are recorded later.
fn span(request: &Prepared) -> Span {
    tracing::debug_span!(
        "request",
        verb = request.verb.as_str(),
        url = %request.template(),
        attempts = tracing::field::Empty,
        code = tracing::field::Empty,
    )
}

/// State of a call in progress.
pub(super) struct Call<'a> {
    client: &'a Client,
    pub(super) shared: &'a ClientShared,
    pub(super) request: &'a Prepared,
    /// Whether the body is read as a whole, or returned as a stream.
    whole: bool,
    pub(super) uri: Uri,
    /// Backoff manager of the request, or the client's.
    pub(super) backoff: Option<Arc<dyn BackoffManager>>,
    span: &'a Span,
    pub(super) deadline: Instant,
    /// Attempts so far.
    pub(super) attempt: u32,
    /// Whether credentials were refreshed in this call, which happens at most once.
    refreshed: bool,
    /// Whether an earlier attempt may have been executed.
    pub(super) doubt: bool,
    /// Descriptions of the failures of earlier attempts.
    pub(super) history: Vec<String>,
    /// Outcome of the last attempt, if it ended the call.
    last: Option<AttemptOutcome>,
}

impl<'a> Call<'a> {
    fn new(
        client: &'a Client,
        request: &'a Prepared,
        whole: bool,
        span: &'a Span,
    ) -> Result<Self, Error> {
        check(request)?;
        let shared = &*client.shared;
        let now = shared.environment.clock.now();
        // Each call earns, not each attempt: retries must not pay for retries.
        shared.budgets.lock().of(request.background).deposit(now);
        Ok(Self {
            client,
            shared,
            request,
            whole,
            uri: uri(client, request)?,
            backoff: request.extra.backoff.clone().or_else(|| client.new_backoff()),
            span,
            deadline: shared
                .environment
                .clock
                .after(request.timeout.unwrap_or(shared.defaults.timeout)),
            attempt: 0,
            refreshed: false,
            doubt: false,
            history: Vec::new(),
            last: None,
        })
    }

    /// Whether the call bypasses the client's shared rate limiter.
    pub(super) fn is_urgent(&self) -> bool {
        self.client.is_urgent
    }

    /// Runs the attempts and completes the error of a failed call.
    async fn run(&mut self) -> Result<AttemptResponse, Error> {
        let result = match self.attempts().await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.complete(error)),
        };
        self.client.judged(self.request, result)
    }

    /// Makes attempts until one succeeds or no other is allowed.
    async fn attempts(&mut self) -> Result<AttemptResponse, Error> {
        self.back_off().await?;
        loop {
            self.permit().await?;
            self.attempt += 1;
            let header = self.credentials().await?;
            // Asked here so that no connection is opened in vain, and again on a connection: after
            // a slow connect the gate's answer may be different.
            let limit = self.admit()?;
            let failure = match self.attempt(limit, header.as_ref()).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            self.last = failure.outcome();
            let Some(outcome) = self.last else { return Err(self.error(failure, None)) };
            match decide(self.facts(outcome)) {
                RetryDecision::Fail(why) => return Err(self.error(failure, Some(why))),
                RetryDecision::Refresh => self.refresh(header.as_ref(), &failure).await,
                RetryDecision::Wait { at_least, jitter } => {
                    let jitter = self.shared.jitter.jitter(jitter);
                    let wait = at_least.max(jitter).max(self.backoff());
                    self.wait(wait, failure, outcome).await?;
                }
            }
            // Cleared, so that a failure before the next exchange is not taken for a lost
            // request.
            self.last = None;
        }
    }

    /// Collects the input of the decision about a retry.
    fn facts(&self, outcome: AttemptOutcome) -> RetryInput {
        RetryInput {
            verb: self.request.verb,
            repeatable: self.request.repeatable,
            outcome,
            attempt: self.attempt,
            refreshable: !self.refreshed && self.refreshable(),
            resendable: self.request.is_sendable(),
            max_retries: self.request.extra.max_retries.unwrap_or(MAX_RETRIES),
            remaining: self.remaining(),
        }
    }

    /// Requests new credentials in place of those that the server refused.
    async fn refresh(&mut self, header: Option<&HeaderValue>, failure: &AttemptError) {
        self.refreshed = true;
        self.history.push(report::describe(failure));
        // If the deadline passes first, the next call meets the refusal; the present call ends at
        // the next attempt.
        let refused = self.shared.credentials.refused(header);
        self.shared.environment.clock.timeout(self.remaining(), refused).await;
    }

    /// Waits before another attempt, unless time or budget do not allow another.
    async fn wait(
        &mut self,
        wait: Duration,
        failure: AttemptError,
        was: AttemptOutcome,
    ) -> Result<(), Error> {
        // A wait beyond the deadline would only delay the same error.
        if wait >= self.remaining() {
            return Err(self
                .error(failure, Some(NoRetryReason::Final))
                .note("no time is left to try again"));
        }
        let clock = &self.shared.environment.clock;
        let background = self.request.background;
        // Spent after the deadline check: a retry that is not made costs nothing.
        // The lock covers the refill and the withdrawal: two calls never take the same saved retry.
        if !self.shared.budgets.lock().of(background).withdraw(clock.now()) {
            let note = "not tried again, because too many requests of this client are failing";
            return Err(self.error(failure, Some(NoRetryReason::Final)).note(note));
        }
        // Set only if another attempt follows: the error of the last attempt names that attempt's
        // doubt.
        self.doubt |= self.stores() && is_uncertain(was);
        self.history.push(report::describe(&failure));
        let labels = [failure.code(), self.method().to_owned(), self.shared.host.clone()];
        self.metrics().count(&REST_RETRIES, &labels.each_ref().map(String::as_str), 1);
        tracing::debug!(attempt = self.attempt, ?wait, ?was, "trying again");
        clock.sleep(wait).await;
        Ok(())
    }

    /// Returns whether the refused credentials can be read again from their source.
    fn refreshable(&self) -> bool {
        self.shared.credentials.refreshable() || self.shared.rotating.is_some()
    }

    /// Returns whether the request can have an effect; a dry run cannot.
    fn stores(&self) -> bool {
        self.request.verb.writes() && self.request.parameter("dryRun") != Some("All")
    }

    fn method(&self) -> &str {
        self.request.method.as_str()
    }

    /// Returns the labels of the call's metrics: method and host.
    pub(super) fn labels(&self) -> [&str; 2] {
        [self.method(), &self.shared.host]
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.shared.environment.metrics
    }

    /// Returns the time left until the deadline of the call.
    pub(super) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(self.shared.environment.clock.now())
    }

    /// Asks the gate about a write; returns the time that the attempt may take.
    fn admit(&self) -> Result<Option<Duration>, Error> {
        match &self.client.gate {
            Some(gate) if self.request.verb.writes() => {
                gate.admit().map_err(|refusal| self.in_doubt(refusal))
            }
            _ => Ok(None),
        }
    }

    /// Returns the header `Authorization`, within the time of the call.
    async fn credentials(&self) -> Result<Option<HeaderValue>, Error> {
        let header = self.shared.credentials.header();
        match self.shared.environment.clock.timeout(self.remaining(), header).await {
            Some(Ok(header)) => Ok(header),
            Some(Err(error)) => {
                let text = format!("cannot {}: no credentials: {error}", self.request.what);
                Err(self.in_doubt(Error::new(error.kind(), text).because(error)))
            }
            None => {
                let (what, awaited) = (&self.request.what, self.shared.credentials.awaited());
                let text = format!("cannot {what}: no credentials in time{awaited}");
                Err(self.in_doubt(Error::new(ErrorKind::Timeout, text)))
            }
        }
    }

    /// Sends the request once, and counts the attempt.
    async fn attempt(
        &mut self,
        limit: Option<Duration>,
        header: Option<&HeaderValue>,
    ) -> Result<AttemptResponse, AttemptError> {
        let clock = &self.shared.environment.clock;
        let time = limit.map_or(self.remaining(), |limit| limit.min(self.remaining()));
        let head = self.head_timeout().map_or(time, |head| head.min(time));
        // Shared with the transport, which reports through the mark, because layers may hide the
        // transport's errors.
        let mut mark = Attempt::new(clock.after(head), self.request.repeatable);
        if let Some(gate) = self.client.gate.as_ref().filter(|_| self.request.verb.writes()) {
            mark = mark.gated(Arc::clone(gate), clock.clone());
        }
        let request = self.http(header, mark.clone());
        trace::request(self.shared, self.request, self.attempt);
        let result = match clock.timeout(time, self.exchange(request)).await {
            Some(result) => result,
            // Only the transport knows whether the attempt timed out before sending.
            None if mark.is_unsent() => {
                Err(AttemptError::Broken { outcome: AttemptOutcome::NotSent, source: None })
            }
            None => Err(AttemptError::Broken { outcome: AttemptOutcome::TimedOut, source: None }),
        };
        // Counted before the gate's refusal is looked at: the attempt happened in any case.
        self.count(&result);
        if mark.was_resent() {
            self.doubt |= self.stores();
        }
        match (result, mark.take_refusal()) {
            (Err(_), Some(refusal)) => Err(AttemptError::Final(refusal)),
            (Err(failure), None) => Err(self.unreadable(failure)),
            (result, _) => result,
        }
    }

    /// Turns the failure of a body's reader into a final error: a request that was not sent
    /// completely was executed by no server.
    fn unreadable(&self, failure: AttemptError) -> AttemptError {
        let reader = self.request.extra.reader.as_ref();
        let Some(cause) = reader.and_then(RequestBody::take_failure) else { return failure };
        let kind = match cause.kind() {
            std::io::ErrorKind::FileTooLarge => ErrorKind::Usage,
            _ => ErrorKind::Other,
        };
        let what = &self.request.what;
        let text = format!("cannot {what}: its body cannot be read, and was not sent: {cause}");
        AttemptError::Final(Error::new(kind, text).because(cause))
    }

    /// Updates backoff, span and metrics after an attempt.
    fn count(&self, result: &Result<AttemptResponse, AttemptError>) {
        let (code, http_code, size) = match result {
            Ok(answer) => {
                let whole = self.whole.then_some(answer.read.len());
                (answer.status.as_str().to_owned(), Some(answer.status.as_u16()), whole)
            }
            Err(failure) => (failure.code(), failure.http_code(), failure.size()),
        };
        if let Some(backoff) = &self.backoff {
            backoff.observe(&self.uri, http_code);
        }
        self.span.record("attempts", self.attempt).record("code", code.as_str());
        let (metrics, labels) = (self.metrics(), self.labels());
        metrics.count(&REST_REQUESTS, &[&code, labels[0], labels[1]], 1);
        // The size of a streamed body is unknown.
        if self.request.extra.reader.is_none() {
            metrics.record(&REST_REQUEST_BYTES, &labels, self.request.body.len() as f64);
        }
        if let Some(size) = size {
            metrics.record(&REST_RESPONSE_BYTES, &labels, size as f64);
        }
    }

    /// Returns the time limit of the answer's head. Writes may take as long as the call: an
    /// admission webhook may be slow, and giving up early would leave the execution unknown.
    fn head_timeout(&self) -> Option<Duration> {
        match self.request.verb {
            Verb::Get | Verb::Watch => Some(self.shared.tuning.head),
            Verb::List => Some(self.shared.tuning.list_head),
            _ => None,
        }
    }
}
