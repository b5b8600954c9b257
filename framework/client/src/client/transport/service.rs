//! The innermost service: a single attempt of a request on a connection of the pool.
//!
//! The transport knows the outcome of an attempt: never sent, lost, or out of time. Retries depend
//! on that outcome, so a layer around the transport should return the transport's errors
//! (unchanged, or as a source).

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::Service;

use super::connection_driver::{Driven, Driver};
use super::gzip;
use super::message::{HttpRequest, HttpResponse};
use super::pool::{ConnectionLease, Http1, Http2, Pool, Ticket};
use super::self_wake::SelfWakeFilter;
use crate::client::policy::{AttemptOutcome, HeaderRules, WriteGate, WritePermit, is_uncertain};
use windlass_core::clock::Clock;
use windlass_core::error::{BoxError, Error};
use windlass_core::wire::status::retry_after;

/// State of an attempt that the caller shares with the transport, through the layers.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// Deadline for the head of the answer.
    pub(crate) head_until: Instant,
    /// Whether a second execution does no harm.
    pub(crate) repeatable: bool,
    /// Gate of a write, asked when a connection is open and only the sending remains.
    gate: Option<(Arc<dyn WriteGate>, Clock)>,
    /// Whether certainly nothing was sent.
    unsent: Arc<AtomicBool>,
    /// Whether the request was sent twice within this attempt.
    resent: Arc<AtomicBool>,
    /// Error of the gate, if the gate refused.
    refusal: Arc<Mutex<Option<Error>>>,
}

impl Attempt {
    pub(crate) fn new(head_until: Instant, repeatable: bool) -> Self {
        Self {
            head_until,
            repeatable,
            gate: None,
            unsent: Arc::default(),
            resent: Arc::default(),
            refusal: Arc::default(),
        }
    }

    /// Sets the gate that is asked again when a connection is open, however long that took.
    pub(crate) fn gated(mut self, gate: Arc<dyn WriteGate>, clock: Clock) -> Self {
        self.gate = Some((gate, clock));
        self
    }

    /// Takes the error of the gate, if the gate refused after a connection was found.
    pub(crate) fn take_refusal(&self) -> Option<Error> {
        self.refusal.lock().take()
    }

    /// Asks the gate for the last time; `None` without a gate.
    fn begin_write(&self) -> Result<Option<WritePermit>, WriteNotAllowed> {
        let Some((gate, _)) = &self.gate else { return Ok(None) };
        gate.begin_write().map(Some).map_err(|refusal| {
            *self.refusal.lock() = Some(refusal);
            WriteNotAllowed
        })
    }

    /// Records that `request` is sent from now on, and returns the deadline for the answer.
    fn sends(&self, out: &mut WritePermit, request: &mut HttpRequest) -> Instant {
        let (Some(limit), Some((_, clock))) = (out.limit(), &self.gate) else {
            out.sent(self.head_until);
            return self.head_until;
        };
        let now = clock.now();
        let limit = limit.min(self.head_until.saturating_duration_since(now));
        // The server's limit is in whole seconds and may end after ours: until then the write may
        // be executed.
        out.sent(now + set_server_timeout(request, limit));
        now + limit
    }

    /// Returns whether certainly nothing was sent. False until the transport reports that fact.
    pub(crate) fn is_unsent(&self) -> bool {
        // Relaxed: the flag guards no other data, and the transport's future has ended.
        self.unsent.load(Ordering::Relaxed)
    }

    /// Returns whether the request was sent again at once, after an idle connection broke.
    pub(crate) fn was_resent(&self) -> bool {
        self.resent.load(Ordering::Relaxed)
    }

    /// Relaxed: the caller reads the flag after the future of the transport has ended, which orders
    /// the two.
    fn set_unsent(&self, unsent: bool) {
        self.unsent.store(unsent, Ordering::Relaxed);
    }
}

/// Error of an attempt that the gate refused; the gate's own error is in the [`Attempt`].
#[derive(Debug)]
struct WriteNotAllowed;

impl fmt::Display for WriteNotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the write is not allowed any more")
    }
}

impl std::error::Error for WriteNotAllowed {}

/// Error of an attempt without an answer.
#[derive(Debug)]
pub(crate) struct TransportError {
    pub(crate) outcome: AttemptOutcome,
    source: Option<BoxError>,
}

impl TransportError {
    pub(crate) fn new(outcome: AttemptOutcome, source: impl Into<BoxError>) -> Self {
        Self { outcome, source: Some(source.into()) }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.outcome {
            AttemptOutcome::NotSent => "no connection",
            AttemptOutcome::TimedOut => "no answer in time",
            AttemptOutcome::Lost | AttemptOutcome::Answered { .. } => {
                "the connection broke before the answer"
            }
        })
    }
}

impl std::error::Error for TransportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Innermost service that sends requests over a [`Pool`].
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    pool: Arc<Pool>,
    rules: HeaderRules,
}

impl Transport {
    pub(in crate::client) fn new(pool: Arc<Pool>, rules: HeaderRules) -> Self {
        Self { pool, rules }
    }
}

impl Service<HttpRequest> for Transport {
    type Response = HttpResponse;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: HttpRequest) -> Self::Future {
        let pool = Arc::clone(&self.pool);
        // Checked here and not earlier, because layers may have added headers.
        let checked = self.rules.check(request.headers());
        let decode = gzip::ask(&mut request);
        Box::pin(async move {
            checked?;
            let answer = exchange(&pool, request).await?;
            Ok(if decode { gzip::decoded(answer) } else { answer })
        })
    }
}

/// Sends `request`; a connection that turns out to be stale is replaced once.
async fn exchange(pool: &Arc<Pool>, request: HttpRequest) -> Result<HttpResponse, TransportError> {
    let attempt = request.extensions().get::<Attempt>().cloned();
    let repeatable = attempt.as_ref().is_some_and(|attempt| attempt.repeatable);
    let until = attempt.as_ref().map(|attempt| attempt.head_until);
    let set_unsent = |unsent| attempt.iter().for_each(|attempt| attempt.set_unsent(unsent));
    let mut lost_before = false;
    let mut newer = None;
    loop {
        // While the attempt waits for a connection, only an earlier round can have sent
        // something.
        set_unsent(!lost_before);
        let lease = match before(until, pool.lease(newer)).await {
            Some(Ok(lease)) => lease,
            Some(Err(error)) => return Err(unsent_unless(lost_before, error)),
            None => return Err(unsent_unless(lost_before, "no connection in time")),
        };
        let (reused, id) = (lease.reused(), lease.id());
        let body = request.body().clone();
        // A body that was read in part cannot be sent again.
        let whole = || body.is_untouched();
        // Cloned for the next round; a complete body is shared, not copied.
        let mut request = request.clone();
        let mut out = match attempt.as_ref().map_or(Ok(None), Attempt::begin_write) {
            Ok(out) => out,
            Err(refused) => {
                // The connection is unused, and stays in the pool.
                lease.give_back(pool);
                return Err(unsent_unless(lost_before, refused));
            }
        };
        let until = match (&attempt, &mut out) {
            (Some(attempt), Some(out)) => Some(attempt.sends(out, &mut request)),
            _ => until,
        };
        set_unsent(false);
        // If the future is dropped from here on, or there is no answer, the write may still be
        // executed; the drop of `out` reports that to the gate.
        let result = send(pool, lease, request, until).await;
        if is_over(&result)
            && let Some(out) = out
        {
            out.settled();
        }
        match result {
            // Never executed, and the connection was stale: the next round opens a new connection.
            Err(error) if reused && whole() && error.outcome == AttemptOutcome::NotSent => {
                newer = Some(id);
            }
            // An idle connection broke under a request that may be repeated: once more, on a new
            // connection.
            Err(error)
                if reused
                    && whole()
                    && repeatable
                    && !lost_before
                    && error.outcome == AttemptOutcome::Lost =>
            {
                lost_before = true;
                // Relaxed: read when the result of the attempt is there; the future that returns
                // the result orders the two.
                attempt.iter().for_each(|attempt| attempt.resent.store(true, Ordering::Relaxed));
                newer = Some(id);
            }
            result => {
                set_unsent(
                    !lost_before
                        && matches!(&result, Err(e) if e.outcome == AttemptOutcome::NotSent),
                );
                return result;
            }
        }
    }
}

/// Returns whether certainly no server works on the request any more. An answer that leaves the
/// execution of a write unknown may come from a proxy, while the server continues.
fn is_over(result: &Result<HttpResponse, TransportError>) -> bool {
    !is_uncertain(match result {
        Ok(answer) => AttemptOutcome::Answered {
            code: answer.status().as_u16(),
            retry_after: retry_after(answer.headers()),
        },
        Err(error) => error.outcome,
    })
}

/// Sets the query parameter `timeout`, after which the server stops working on the request; returns
/// the parameter's value.
fn set_server_timeout(request: &mut HttpRequest, limit: Duration) -> Duration {
    let uri = request.uri();
    // The server would read an earlier `timeout` in place of the new value.
    let query = uri.query().unwrap_or_default().split('&');
    let mut query: Vec<_> =
        query.filter(|pair| !pair.is_empty() && !pair.starts_with("timeout=")).collect();
    // At least one second, because API servers read zero as their default.
    let seconds = limit.as_secs().max(1);
    let limit = format!("timeout={seconds}s");
    query.push(&limit);
    let path = format!("{}?{}", uri.path(), query.join("&"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(path).ok().or(parts.path_and_query);
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    Duration::from_secs(seconds)
}

/// Returns the error of a request that was not sent, unless an earlier round lost the request.
fn unsent_unless(lost: bool, source: impl Into<BoxError>) -> TransportError {
    TransportError::new(if lost { AttemptOutcome::Lost } else { AttemptOutcome::NotSent }, source)
}

/// Runs `future` until `deadline`; `None` when the deadline passed.
async fn before<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}

/// Sends a request on a leased connection and returns the head of the answer.
async fn send(
    pool: &Arc<Pool>,
    lease: ConnectionLease,
    request: HttpRequest,
    until: Option<Instant>,
) -> Result<HttpResponse, TransportError> {
    let late = || TransportError { outcome: AttemptOutcome::TimedOut, source: None };
    match lease {
        ConnectionLease::Http1 { mut sender, driver, ticket, .. } => {
            let is_long = is_watch(request.uri());
            let sent = sender.try_send_request(for_http1(request));
            let answer = before(until, sent).await.ok_or_else(late)?.map_err(failed)?;
            // A watch drives the connection, which saves two task switches for each event.
            let driven = if is_long { driver.take().await } else { None };
            let pool = Arc::clone(pool);
            let back = (sender, driver, ticket);
            Ok(answer.map(|body| Http1Body::new(body, back, driven, pool).boxed_unsync()))
        }
        ConnectionLease::Http2 { sender, user, id, .. } => {
            let sent = send_http2(sender, request);
            let Some(answer) = before(until, sent).await else {
                // A connection that answers too late may be half-open (A5), so new requests avoid
                // that connection.
                pool.evict(id);
                return Err(late());
            };
            Ok(answer?.map(|body| Http2Body { body, _user: user }.boxed_unsync()))
        }
    }
}

/// Sends a request on a shared connection.
async fn send_http2(
    mut sender: Http2,
    request: HttpRequest,
) -> Result<http::Response<Incoming>, TransportError> {
    sender.try_send_request(request).await.map_err(failed)
}

/// Moves the host of the URI into the header `Host`, as HTTP/1.1 requires.
pub(in crate::client) fn for_http1(mut request: HttpRequest) -> HttpRequest {
    let uri = std::mem::take(request.uri_mut());
    if let Some(host) = uri.authority().and_then(|a| HeaderValue::from_str(a.as_str()).ok()) {
        request.headers_mut().insert(HOST, host);
    }
    *request.uri_mut() = uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
    request
}

/// Classifies an error of hyper: a message that comes back was not sent.
pub(in crate::client) fn failed(
    mut error: hyper::client::conn::TrySendError<HttpRequest>,
) -> TransportError {
    // hyper returns a message if nothing of it was written.
    let came_back = error.take_message().is_some();
    let error = error.into_error();
    let outcome = if came_back || was_refused(&error) {
        AttemptOutcome::NotSent
    } else {
        AttemptOutcome::Lost
    };
    TransportError::new(outcome, error)
}

/// Returns whether the server reported that no work was done on this request: for streams beyond
/// the last stream in a `GOAWAY`, and by `REFUSED_STREAM`.
fn was_refused(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        if let Some(h2) = source.downcast_ref::<h2::Error>() {
            // Only the server's own reset or GOAWAY proves that the server did not work on the
            // stream.
            return h2.is_remote()
                && (h2.is_go_away() || h2.reason() == Some(h2::Reason::REFUSED_STREAM));
        }
        cause = source.source();
    }
    false
}

/// Returns whether the request is a watch, whose answer comes in small chunks.
fn is_watch(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// Body that returns the connection to the pool at the end. Dropped earlier, the body closes the
/// connection.
struct Http1Body {
    body: Incoming,
    /// Parts of the connection to return; `None` once returned.
    back: Option<(Http1, Driver, Ticket)>,
    /// The connection, if no separate task drives it.
    driven: Option<Driven>,
    /// Filters the wake-ups of the connection while this body drives it.
    within: SelfWakeFilter,
    pool: Arc<Pool>,
}

impl Http1Body {
    fn new(
        body: Incoming,
        back: (Http1, Driver, Ticket),
        driven: Option<Driven>,
        pool: Arc<Pool>,
    ) -> Self {
        let mut this = Self { body, back: Some(back), driven, within: SelfWakeFilter::new(), pool };
        // An answer without a body may never be polled, so the connection is returned here.
        if this.body.is_end_stream() {
            this.finish();
        }
        this
    }

    /// Returns the connection to the driving task and to the pool.
    fn finish(&mut self) {
        if let Some(driven) = self.driven.take() {
            // First, so that the pool gets a connection that is driven by a task.
            driven.give_back();
        }
        if let Some((sender, driver, ticket)) = self.back.take() {
            self.pool.put(sender, driver, ticket);
        }
    }

    /// Returns the next frame; drives the connection for that, unless a task does.
    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { body, driven, within, .. } = self;
        if driven.is_none() {
            return Pin::new(body).poll_frame(cx);
        }
        within.poll(cx, |cx| {
            // A buffered frame needs no work of the connection.
            let polled = Pin::new(&mut *body).poll_frame(cx);
            if polled.is_ready() {
                return polled;
            }
            if driven.as_mut().is_some_and(|driven| driven.poll(cx)) {
                *driven = None;
            }
            // The connection may have delivered a frame just now.
            Pin::new(&mut *body).poll_frame(cx)
        })
    }
}

impl Body for Http1Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = self.poll_body(cx);
        match &polled {
            Poll::Ready(None) => self.finish(),
            // The last frame may carry the end, and then the reader need not poll again.
            Poll::Ready(Some(Ok(_))) if self.body.is_end_stream() => self.finish(),
            _ => {}
        }
        polled.map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Body that counts as a user of the connection until dropped.
struct Http2Body {
    body: Incoming,
    /// Reference that the pool counts.
    _user: Arc<()>,
}

impl Body for Http2Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx).map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
