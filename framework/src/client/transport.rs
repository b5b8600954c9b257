//! The innermost service: one attempt of a request on a connection of the pool.
//!
//! It knows what became of an attempt: never sent, lost, or out of time. Retries build on that, so a
//! layer around it should hand its errors on (as they are, or as a source).

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
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::Service;
use tower::util::BoxCloneSyncService;

use super::drive::{Driven, Driver};
use super::gzip;
use super::header_rules::HeaderRules;
use super::payload::RequestBody;
use super::pool::{Http1, Http2, Lease, Pool, Ticket};
use super::retry::{Outcome, leaves_doubt};
use super::within::Within;
use super::{LetOut, WriteGate};
use crate::clock::Clock;
use crate::error::{BoxError, Error};
use crate::wire::status::retry_after;

/// Body of an answer on its way.
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;
/// A request as [layers](super::ClientBuilder::layer) see it: absolute URI, credentials set.
pub type HttpRequest = http::Request<RequestBody>;
/// An answer as layers see it.
pub type HttpResponse = http::Response<ResponseBody>;
/// The services that an attempt passes, from the outermost layer to the connection.
pub type Stack = BoxCloneSyncService<HttpRequest, HttpResponse, BoxError>;

/// What the caller of the stack tells the transport, and the transport tells back.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// When the head of the answer must have arrived.
    pub(crate) head_until: Instant,
    /// Does executing it twice do no harm?
    pub(crate) repeatable: bool,
    /// Asked, for a write, when there is a connection and nothing is left to do but to send.
    gate: Option<(Arc<dyn WriteGate>, Clock)>,
    unsent: Arc<AtomicBool>,
    resent: Arc<AtomicBool>,
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

    /// Has `gate` asked again once a connection was found, however long that took.
    pub(crate) fn gated(mut self, gate: Arc<dyn WriteGate>, clock: Clock) -> Self {
        self.gate = Some((gate, clock));
        self
    }

    /// What the gate said, if it refused after a connection was found.
    pub(crate) fn take_refusal(&self) -> Option<Error> {
        self.refusal.lock().take()
    }

    /// Asks the gate for the last time; `None` when nobody is to be asked.
    fn let_out(&self) -> Result<Option<LetOut>, Refused> {
        let Some((gate, _)) = &self.gate else { return Ok(None) };
        gate.let_out().map(Some).map_err(|refusal| {
            *self.refusal.lock() = Some(refusal);
            Refused
        })
    }

    /// `request` is sent from now on; until when it must have been answered.
    fn sends(&self, out: &mut LetOut, request: &mut HttpRequest) -> Instant {
        let (Some(limit), Some((_, clock))) = (out.limit(), &self.gate) else {
            out.sent(self.head_until);
            return self.head_until;
        };
        let now = clock.now();
        let limit = limit.min(self.head_until.saturating_duration_since(now));
        out.sent(now + tell_limit(request, limit));
        now + limit
    }

    /// Is it certain that nothing was sent? False until the transport says so.
    pub(crate) fn is_unsent(&self) -> bool {
        self.unsent.load(Ordering::Relaxed)
    }

    /// Was it sent again at once, after a connection that had been idle broke?
    pub(crate) fn was_resent(&self) -> bool {
        self.resent.load(Ordering::Relaxed)
    }

    fn set_unsent(&self, unsent: bool) {
        self.unsent.store(unsent, Ordering::Relaxed);
    }
}

/// The gate refused; its own words are with the [`Attempt`].
#[derive(Debug)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the write is not allowed any more")
    }
}

impl std::error::Error for Refused {}

/// Why an attempt brought no answer.
#[derive(Debug)]
pub(crate) struct TransportError {
    pub(crate) outcome: Outcome,
    source: Option<BoxError>,
}

impl TransportError {
    pub(crate) fn new(outcome: Outcome, source: impl Into<BoxError>) -> Self {
        Self { outcome, source: Some(source.into()) }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.outcome {
            Outcome::NotSent => "no connection",
            Outcome::TimedOut => "no answer in time",
            Outcome::Lost | Outcome::Answered { .. } => "the connection broke before the answer",
        })
    }
}

impl std::error::Error for TransportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Sends requests over a [`Pool`].
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    pool: Arc<Pool>,
    rules: HeaderRules,
}

impl Transport {
    pub(super) fn new(pool: Arc<Pool>, rules: HeaderRules) -> Self {
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
        // Here, because layers may have added some.
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
        set_unsent(!lost_before);
        let lease = match before(until, pool.lease(newer)).await {
            Some(Ok(lease)) => lease,
            Some(Err(error)) => return Err(unsent_unless(lost_before, error)),
            None => return Err(unsent_unless(lost_before, "no connection in time")),
        };
        let (reused, id) = (lease.reused(), lease.id());
        let body = request.body().clone();
        let whole = || body.is_untouched();
        let mut request = request.clone();
        let mut out = match attempt.as_ref().map_or(Ok(None), Attempt::let_out) {
            Ok(out) => out,
            Err(refused) => {
                lease.give_back(pool);
                return Err(unsent_unless(lost_before, refused));
            }
        };
        let until = match (&attempt, &mut out) {
            (Some(attempt), Some(out)) => Some(attempt.sends(out, &mut request)),
            _ => until,
        };
        set_unsent(false);
        // Dropped here, or without an answer, the write may still be executed: then `out` tells the gate.
        let result = send(pool, lease, request, until).await;
        if is_over(&result)
            && let Some(out) = out
        {
            out.settled();
        }
        match result {
            Err(error) if reused && whole() && error.outcome == Outcome::NotSent => {
                newer = Some(id);
            }
            Err(error)
                if reused
                    && whole()
                    && repeatable
                    && !lost_before
                    && error.outcome == Outcome::Lost =>
            {
                lost_before = true;
                attempt.iter().for_each(|attempt| attempt.resent.store(true, Ordering::Relaxed));
                newer = Some(id);
            }
            result => {
                set_unsent(
                    !lost_before && matches!(&result, Err(e) if e.outcome == Outcome::NotSent),
                );
                return result;
            }
        }
    }
}

/// Is it certain that no server works on it any more? An answer that leaves in doubt whether a write
/// was executed may come from something in between, and the server is still at it.
fn is_over(result: &Result<HttpResponse, TransportError>) -> bool {
    !leaves_doubt(match result {
        Ok(answer) => Outcome::Answered {
            code: answer.status().as_u16(),
            retry_after: retry_after(answer.headers()),
        },
        Err(error) => error.outcome,
    })
}

/// The server stops working on it so long after it has arrived there; returns how long that is.
fn tell_limit(request: &mut HttpRequest, limit: Duration) -> Duration {
    let uri = request.uri();
    // A longer timeout that the request came with would be read in place of this one.
    let query = uri.query().unwrap_or_default().split('&');
    let mut query: Vec<_> =
        query.filter(|pair| !pair.is_empty() && !pair.starts_with("timeout=")).collect();
    let told = limit.as_secs().max(1);
    let limit = format!("timeout={told}s");
    query.push(&limit);
    let path = format!("{}?{}", uri.path(), query.join("&"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(path).ok().or(parts.path_and_query);
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    Duration::from_secs(told)
}

fn unsent_unless(lost: bool, source: impl Into<BoxError>) -> TransportError {
    TransportError::new(if lost { Outcome::Lost } else { Outcome::NotSent }, source)
}

/// Runs `future` until `deadline`; `None` when it did not end in time.
async fn before<F: Future>(deadline: Option<Instant>, future: F) -> Option<F::Output> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, future).await.ok(),
        None => Some(future.await),
    }
}

async fn send(
    pool: &Arc<Pool>,
    lease: Lease,
    request: HttpRequest,
    until: Option<Instant>,
) -> Result<HttpResponse, TransportError> {
    let late = || TransportError { outcome: Outcome::TimedOut, source: None };
    match lease {
        Lease::Http1 { mut sender, driver, ticket, .. } => {
            let is_long = is_watch(request.uri());
            let sent = sender.try_send_request(for_http1(request));
            let answer = before(until, sent).await.ok_or_else(late)?.map_err(failed)?;
            let driven = if is_long { driver.take().await } else { None };
            let pool = Arc::clone(pool);
            let back = (sender, driver, ticket);
            Ok(answer.map(|body| Http1Body::new(body, back, driven, pool).boxed_unsync()))
        }
        Lease::Http2 { sender, user, id, .. } => {
            let sent = send_http2(sender, request);
            let Some(answer) = before(until, sent).await else {
                pool.evict(id);
                return Err(late());
            };
            Ok(answer?.map(|body| Http2Body { body, _user: user }.boxed_unsync()))
        }
    }
}

async fn send_http2(
    mut sender: Http2,
    request: HttpRequest,
) -> Result<http::Response<Incoming>, TransportError> {
    sender.try_send_request(request).await.map_err(failed)
}

/// HTTP/1.1 takes the path in the request line and the host in a header.
pub(super) fn for_http1(mut request: HttpRequest) -> HttpRequest {
    let uri = std::mem::take(request.uri_mut());
    if let Some(host) = uri.authority().and_then(|a| HeaderValue::from_str(a.as_str()).ok()) {
        request.headers_mut().insert(HOST, host);
    }
    *request.uri_mut() = uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
    request
}

pub(super) fn failed(mut error: hyper::client::conn::TrySendError<HttpRequest>) -> TransportError {
    let came_back = error.take_message().is_some();
    let error = error.into_error();
    let outcome = if came_back || was_refused(&error) { Outcome::NotSent } else { Outcome::Lost };
    TransportError::new(outcome, error)
}

/// Did the server say that it did not work on this request? It says so for streams beyond the last
/// one that its `GOAWAY` names, and by `REFUSED_STREAM`.
fn was_refused(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        if let Some(h2) = source.downcast_ref::<h2::Error>() {
            return h2.is_remote()
                && (h2.is_go_away() || h2.reason() == Some(h2::Reason::REFUSED_STREAM));
        }
        cause = source.source();
    }
    false
}

/// Does the answer come a small piece at a time?
fn is_watch(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// Gives its connection back when it was read to the end; dropped earlier, it closes it.
struct Http1Body {
    body: Incoming,
    back: Option<(Http1, Driver, Ticket)>,
    /// The connection, when no task of its own runs it.
    driven: Option<Driven>,
    /// The connection wakes us while we run it.
    within: Within,
    pool: Arc<Pool>,
}

impl Http1Body {
    fn new(
        body: Incoming,
        back: (Http1, Driver, Ticket),
        driven: Option<Driven>,
        pool: Arc<Pool>,
    ) -> Self {
        let mut this = Self { body, back: Some(back), driven, within: Within::new(), pool };
        if this.body.is_end_stream() {
            this.finish();
        }
        this
    }

    fn finish(&mut self) {
        if let Some(driven) = self.driven.take() {
            driven.give_back();
        }
        if let Some((sender, driver, ticket)) = self.back.take() {
            self.pool.put(sender, driver, ticket);
        }
    }

    /// The next frame; runs the connection to get it, when that is for us to do.
    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { body, driven, within, .. } = self;
        if driven.is_none() {
            return Pin::new(body).poll_frame(cx);
        }
        within.poll(cx, |cx| {
            let polled = Pin::new(&mut *body).poll_frame(cx);
            if polled.is_ready() {
                return polled;
            }
            if driven.as_mut().is_some_and(|driven| driven.poll(cx)) {
                *driven = None;
            }
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

/// Counts as a user of its connection until it is dropped.
struct Http2Body {
    body: Incoming,
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
