//! A scripted server over pipes, and tests of the client against this server on a paused clock.

mod attacks;
mod building;
mod calls;
mod configuring;
mod connecting;
mod faults;
mod in_flight_writes;
mod sending;
mod telling;
mod waiting;
mod watching;
mod wrappers;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::*;
use windlass_core::clock::Clock;
use windlass_core::error::BoxError;
use windlass_core::metrics::Metrics;
use windlass_core::rng::Rng;

/// Reaction of the server to a request.
#[derive(Clone, Debug)]
enum Reply {
    /// Sends an answer.
    Answer(u16, &'static str),
    /// Sends an answer with a header.
    With(u16, &'static str, &'static str, &'static str),
    /// Accepts the request and never answers.
    Silence,
    /// Closes the connection without an answer.
    Cut,
    /// Sends half of the answer, then closes the connection.
    Half,
    /// Answers when the semaphore has a permit.
    Later(Arc<Semaphore>),
}

/// A request that the server received.
#[derive(Clone, Debug)]
struct Seen {
    /// Path and query.
    target: String,
    headers: HeaderMap,
    body: Bytes,
}

/// A server with scripted replies; the last reply is repeated.
#[derive(Debug)]
struct Server {
    replies: Mutex<VecDeque<Reply>>,
    seen: Mutex<Vec<Seen>>,
    connections: AtomicU32,
    /// Connections to refuse before the first is accepted.
    refusals: AtomicU32,
    http2: bool,
    /// Permits to shut a connection down gracefully, one connection each.
    farewell: Arc<Semaphore>,
}

impl Server {
    fn with(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self::bare(replies))
    }

    fn bare(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            replies: Mutex::new(replies.into_iter().collect()),
            seen: Mutex::default(),
            connections: AtomicU32::new(0),
            refusals: AtomicU32::new(0),
            http2: false,
            farewell: Arc::new(Semaphore::new(0)),
        }
    }

    fn http2(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self { http2: true, ..Self::bare(replies) })
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    fn count(&self) -> usize {
        self.seen.lock().len()
    }

    fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    async fn answer(
        self: Arc<Self>,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let target = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        let seen = Seen { target, headers: parts.headers, body };
        self.seen.lock().push(seen);
        let reply = {
            let mut replies = self.replies.lock();
            if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() }
        };
        match reply.expect("a reply") {
            Reply::Answer(code, body) => Ok(response(code, body)),
            Reply::With(code, name, value, body) => {
                let mut response = response(code, body);
                response.headers_mut().insert(name, value.parse()?);
                Ok(response)
            }
            Reply::Silence => std::future::pending().await,
            Reply::Cut => Err("cut".into()),
            Reply::Half => {
                let mut half = http::Response::new(HalfBody(0).boxed_unsync());
                half.headers_mut().insert("content-length", 100.into());
                Ok(half)
            }
            Reply::Later(gate) => {
                gate.acquire().await?.forget();
                Ok(response(200, "{}"))
            }
        }
    }

    fn serve(self: Arc<Self>, io: tokio::io::DuplexStream) {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let farewell = Arc::clone(&self.farewell);
        let http2 = self.http2;
        let service = service_fn(move |request| Arc::clone(&self).answer(request));
        let io = TokioIo::new(io);
        tokio::spawn(async move {
            if http2 {
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let mut serving = Box::pin(builder.serve_connection(io, service));
                tokio::select! {
                    biased;
                    _ = &mut serving => {}
                    permit = farewell.acquire() => {
                        permit.unwrap().forget();
                        serving.as_mut().graceful_shutdown();
                        let _ = serving.await;
                    }
                }
            } else {
                let mut builder = hyper::server::conn::http1::Builder::new();
                let serving = builder.timer(TokioTimer::new()).serve_connection(io, service);
                let _ = serving.await;
            }
        });
    }
}

fn response(code: u16, body: &'static str) -> http::Response<UnsyncBoxBody<Bytes, BoxError>> {
    let body = Full::new(Bytes::from_static(body.as_bytes()));
    let body = body.map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut response = http::Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

/// A single chunk, a pause in which the chunk is flushed, then an error.
struct HalfBody(u32);

impl http_body::Body for HalfBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0 += 1;
        match self.0 {
            1 => std::task::Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"{\"half\":"))))),
            2..9 => {
                cx.waker().wake_by_ref();
                std::task::Poll::Pending
            }
            _ => std::task::Poll::Ready(Some(Err("cut".into()))),
        }
    }
}

/// Connects to a [`Server`].
#[derive(Debug)]
struct Wire(Arc<Server>);

impl Wire {
    fn pipe(&self) -> io::Result<tokio::io::DuplexStream> {
        let one_less = |left: u32| left.checked_sub(1);
        let (order, refusals) = (Ordering::Relaxed, &self.0.refusals);
        if refusals.fetch_update(order, order, one_less).is_ok() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        Arc::clone(&self.0).serve(theirs);
        Ok(ours)
    }
}

impl Connect for Wire {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(Box::new(self.pipe()?) as BoxIo) })
    }

    fn open(&self) -> ConnectFuture<'_> {
        Box::pin(async { Ok(ConnectedStream { io: Box::new(self.pipe()?), http2: self.0.http2 }) })
    }
}

fn environment() -> Environment {
    Environment { clock: Clock::system(), rng: Rng::seeded(7), metrics: Metrics::new() }
}

fn client(server: &Arc<Server>) -> Client {
    Client::over(Arc::new(Wire(Arc::clone(server))), environment())
}

fn get() -> Prepared {
    Prepared::get("/api/v1/namespaces/shop/configmaps/home", "get configmaps \"home\" in \"shop\"")
}

fn create() -> Prepared {
    let path = "/api/v1/namespaces/shop/configmaps".to_owned();
    let what = "create configmaps \"home-*\" in \"shop\"".to_owned();
    let mut request = Prepared::new(Verb::Create, Method::POST, path, what);
    request.body = Bytes::from_static(br#"{"metadata":{"generateName":"home-"}}"#);
    request
}

fn apply() -> Prepared {
    let path = "/api/v1/namespaces/shop/configmaps/home".to_owned();
    let what = "apply configmaps \"home\" in \"shop\"".to_owned();
    let mut request = Prepared::new(Verb::Apply, Method::PATCH, path, what);
    request.repeatable = true;
    request
}
