//! Hooks of exchanges: each attempt with its request, the head and the pieces of its answer, for a
//! recording; or answers in place of a server, for a replay.
//!
//! The hook belongs to the connections, so that handles that a program made before it was set are
//! covered as well. A `WebSocket` bypasses the hook.

// DESIGN.md, 278: A recording taps the attempts of the client, above retries of connections

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::Call;
use crate::client::Client;
use crate::client::policy::AttemptOutcome;
use crate::client::transport::{HttpRequest, HttpResponse, ResponseBody, TransportError};
use windlass_core::error::BoxError;

/// Cause of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum RequestOrigin {
    /// A cache, which lists and watches.
    Cache,
    /// Periodic writes of the framework: renewals of a lease, Events.
    Routine,
    /// Everything else.
    Caller,
}

/// A request about to be sent. `Debug` shows no contents.
#[derive(Clone)]
#[doc(hidden)]
pub struct SentRequest {
    /// HTTP method.
    pub method: String,
    /// Path below the server's address, percent-encoded.
    pub path: String,
    /// Query, percent-encoded; empty without one.
    pub query: String,
    /// `Content-Type` of the body.
    pub content_type: Option<String>,
    /// Whether objects are asked for by their metadata only.
    pub is_metadata: bool,
    pub origin: RequestOrigin,
    /// Whether the answer is passed on in pieces.
    pub is_stream: bool,
    /// Body; empty if the body is read while it is sent.
    pub body: Bytes,
}

/// End of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum ExchangeEnd {
    /// The answer came to its end.
    Whole,
    /// The connection failed or broke; whether the request was sent, and the error.
    Broken(BrokenExchange, String),
    /// The caller stopped waiting.
    Dropped,
}

/// Knowledge about a request without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum BrokenExchange {
    /// The request was certainly not sent.
    NotSent,
    /// The request may have been executed.
    Lost,
    /// No answer came in time.
    TimedOut,
}

/// A boxed future of an answer.
#[doc(hidden)]
pub type ResponseFuture = Pin<Box<dyn Future<Output = Result<HttpResponse, BoxError>> + Send>>;

/// A listener for the exchanges of a client, or the other side of them. All methods must return
/// quickly.
#[doc(hidden)]
pub trait ExchangeHook: fmt::Debug + Send + Sync {
    /// Returns the answer in place of a server's; `None` to send the request. Default: `None`.
    fn answer(&self, request: &SentRequest) -> Option<ResponseFuture> {
        let _ = request;
        None
    }

    /// Notes a request, and returns its number; `None` to hear no more of it. Default: `None`.
    fn sent(&self, request: SentRequest) -> Option<u64> {
        let _ = request;
        None
    }

    /// Notes the head of an answer.
    fn answered(&self, exchange: u64, code: u16, headers: &HeaderMap) {
        let _ = (exchange, code, headers);
    }

    /// Notes a piece of the body, as the reader takes it.
    fn received(&self, exchange: u64, piece: &[u8]) {
        let _ = (exchange, piece);
    }

    /// Notes the end.
    fn ended(&self, exchange: u64, end: ExchangeEnd) {
        let _ = (exchange, end);
    }
}

impl fmt::Debug for SentRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({} bytes)", self.method, self.path, self.body.len())
    }
}

impl BrokenExchange {
    /// Returns the error that the transport would have returned.
    pub fn error(self, text: &str) -> BoxError {
        let outcome = match self {
            Self::NotSent => AttemptOutcome::NotSent,
            Self::Lost => AttemptOutcome::Lost,
            Self::TimedOut => AttemptOutcome::TimedOut,
        };
        TransportError::new(outcome, text).into()
    }

    /// Classifies an error of the stack, as a call does.
    fn of(error: &BoxError) -> Self {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&**error);
        while let Some(source) = cause {
            match source.downcast_ref::<TransportError>().map(|error| error.outcome) {
                Some(AttemptOutcome::NotSent) => return Self::NotSent,
                Some(AttemptOutcome::TimedOut) => return Self::TimedOut,
                Some(_) => return Self::Lost,
                None => cause = source.source(),
            }
        }
        Self::Lost
    }
}

impl Client {
    /// Sets the hook of all exchanges over these connections, of every handle. Returns false if
    /// there is one already, which stays.
    #[doc(hidden)]
    pub fn set_exchange_hook(&self, hook: Arc<dyn ExchangeHook>) -> bool {
        self.shared.hook.set(hook).is_ok()
    }
}

impl Call<'_> {
    /// Sends a request through the stack, with the hook if there is one.
    pub(super) async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, BoxError> {
        let Some(hook) = self.shared.hook.get() else {
            return self.shared.stack.clone().oneshot(request).await;
        };
        let sent = self.observed(&request);
        if let Some(answer) = hook.answer(&sent) {
            return answer.await;
        }
        let Some(number) = hook.sent(sent) else {
            return self.shared.stack.clone().oneshot(request).await;
        };
        // Dropped with this future, the exchange ends without an answer.
        let mut running = RunningExchange { hook: Arc::clone(hook), number, is_ended: false };
        match self.shared.stack.clone().oneshot(request).await {
            Ok(response) => {
                hook.answered(number, response.status().as_u16(), response.headers());
                // A body without content may never be polled.
                if response.body().is_end_stream() {
                    running.end(ExchangeEnd::Whole);
                }
                Ok(response.map(|body| ObservedBody { body, running }.boxed_unsync()))
            }
            Err(error) => {
                running.end(ExchangeEnd::Broken(BrokenExchange::of(&error), error.to_string()));
                Err(error)
            }
        }
    }

    /// Returns the request as hooks see it.
    fn observed(&self, request: &HttpRequest) -> SentRequest {
        let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
        let header = |name| request.headers().get(name).and_then(text);
        let base = if self.request.extra.from_root { "" } else { self.shared.base_path() };
        let path = request.uri().path();
        let origin = match (self.client.is_routine, self.request.background) {
            (true, _) => RequestOrigin::Routine,
            (false, true) => RequestOrigin::Cache,
            (false, false) => RequestOrigin::Caller,
        };
        SentRequest {
            method: request.method().to_string(),
            path: path.strip_prefix(base).unwrap_or(path).to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            content_type: header(CONTENT_TYPE),
            is_metadata: header(ACCEPT).is_some_and(|it| it.contains("as=PartialObjectMetadata")),
            origin,
            is_stream: !self.whole,
            body: self.request.body.clone(),
        }
    }
}

/// An exchange whose end is still to be noted.
struct RunningExchange {
    hook: Arc<dyn ExchangeHook>,
    number: u64,
    is_ended: bool,
}

impl RunningExchange {
    /// Notes the end; a second one is ignored.
    fn end(&mut self, end: ExchangeEnd) {
        if !std::mem::replace(&mut self.is_ended, true) {
            self.hook.ended(self.number, end);
        }
    }
}

impl Drop for RunningExchange {
    fn drop(&mut self) {
        self.end(ExchangeEnd::Dropped);
    }
}

/// The body of an answer whose pieces are noted as they are read.
struct ObservedBody {
    body: ResponseBody,
    running: RunningExchange,
}

impl Body for ObservedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        let Self { body, running } = &mut *self;
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(piece) = frame.data_ref() {
                    running.hook.received(running.number, piece);
                }
                // A reader that knows the end need not poll again.
                if body.is_end_stream() {
                    running.end(ExchangeEnd::Whole);
                }
            }
            Poll::Ready(Some(Err(error))) => {
                running.end(ExchangeEnd::Broken(BrokenExchange::Lost, error.to_string()));
            }
            Poll::Ready(None) => running.end(ExchangeEnd::Whole),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
