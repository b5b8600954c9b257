//! One connection: its handshake, its requests, its end.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use windlass_client::client::BoxIo;
use windlass_core::clock::Clock;
use windlass_core::metrics::{Metrics, names};

use super::body::{BODY, BodyMemory};
use super::progress::{ConnectionPhase, ConnectionProgress, ProgressStream};
use super::tls::ServerTls;
use crate::size::ReviewSize;
use crate::webhooks::AdmissionHandler;

/// Bytes of the headers of a request.
const MAX_HEADERS: usize = 16 * 1024;
/// Requests at once on a connection of HTTP/2.
const STREAMS: u32 = 100;
/// Streams of HTTP/2 that a client may reset before they are seen.
const RESETS: usize = 20;
/// Bytes that a connection of HTTP/2 sends before they are read.
const WINDOW: u32 = 256 * 1024;

/// Parts that all connections share.
#[derive(Debug)]
pub(super) struct ConnectionShared {
    pub(super) handler: AdmissionHandler,
    /// `None`: connections are plain, as they come through memory.
    pub(super) tls: Option<ServerTls>,
    pub(super) bodies: BodyMemory,
    pub(super) clock: Clock,
    pub(super) metrics: Metrics,
    /// The server is about to stop: each further answer ends its connection.
    pub(super) stop: CancellationToken,
    /// Connections that are still open end after the answer that is being made, if one is.
    pub(super) closing: CancellationToken,
    /// Longest time between the two.
    pub(super) last_requests: Duration,
}

impl ConnectionShared {
    /// Counts a connection that is closed early.
    pub(super) fn closed(&self, cause: &str) {
        self.metrics.count(&names::WEBHOOK_REFUSED, &[cause], 1);
    }
}

/// Serves a connection until it is closed.
pub(super) async fn serve(
    io: BoxIo,
    shared: Arc<ConnectionShared>,
    progress: Arc<ConnectionProgress>,
) {
    let expired = progress.expired();
    let opened = tokio::select! {
        biased;
        opened = open(io, &shared) => opened,
        phase = expired => return shared.closed(phase.word()),
    };
    let Some((stream, is_http2)) = opened else { return shared.closed("handshake") };
    progress.opened(is_http2);
    let ended = match is_http2 {
        true => over_http2(stream, &shared, &progress).await,
        false => over_http1(stream, &shared, &progress).await,
    };
    match ended {
        // The end of an idle connection is usual.
        None | Some(ConnectionPhase::Idle) => {}
        Some(phase) => shared.closed(phase.word()),
    }
}

/// Agrees on TLS; returns whether the client chose HTTP/2, too.
async fn open(io: BoxIo, shared: &ConnectionShared) -> Option<(BoxIo, bool)> {
    let Some(tls) = &shared.tls else { return Some((io, false)) };
    let Some(config) = tls.config() else {
        tracing::debug!("a connection is closed: the CA of client certificates was not read yet");
        return None;
    };
    let accepted = TlsAcceptor::from(config).accept(io).await;
    let accepted =
        accepted.inspect_err(|error| tracing::debug!(%error, "a handshake of TLS failed"));
    let stream = accepted.ok()?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Some((Box::new(stream), is_http2))
}

async fn over_http1(
    stream: BoxIo,
    shared: &Arc<ConnectionShared>,
    progress: &Arc<ConnectionProgress>,
) -> Option<ConnectionPhase> {
    let (own, shared_by_all) = (Arc::clone(progress), Arc::clone(shared));
    let service =
        service_fn(move |request| answer(request, Arc::clone(&shared_by_all), Arc::clone(&own)));
    let io = TokioIo::new(ProgressStream::new(stream, Arc::clone(progress)));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // The own deadline of headers spares idle connections.
        .header_read_timeout(None)
        .max_headers(64)
        .max_buf_size(MAX_HEADERS)
        .serve_connection(io, service);
    // A client that sends a request while its connection is closed loses it.
    let end = &shared.closing;
    drive(connection, (end, |connection| connection.graceful_shutdown()), progress).await
}

async fn over_http2(
    stream: BoxIo,
    shared: &Arc<ConnectionShared>,
    progress: &Arc<ConnectionProgress>,
) -> Option<ConnectionPhase> {
    let (own, shared_by_all) = (Arc::clone(progress), Arc::clone(shared));
    let service =
        service_fn(move |request| answer(request, Arc::clone(&shared_by_all), Arc::clone(&own)));
    let io = TokioIo::new(ProgressStream::new(stream, Arc::clone(progress)));
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(MAX_HEADERS as u32)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(RESETS)
        .initial_connection_window_size(WINDOW)
        .initial_stream_window_size(WINDOW)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(10))
        .serve_connection(io, service);
    // Clients learn which requests were not read.
    let end = &shared.stop;
    drive(connection, (end, |connection| connection.graceful_shutdown()), progress).await
}

/// Runs a connection to its end, and returns the phase that took too long, if one did.
async fn drive<C: Future<Output = hyper::Result<()>>>(
    connection: C,
    (end, shut_down): (&CancellationToken, impl Fn(Pin<&mut C>)),
    progress: &ConnectionProgress,
) -> Option<ConnectionPhase> {
    let mut connection = pin!(connection);
    let mut is_stopping = false;
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection of the webhook server ended early");
                }
                return None;
            }
            phase = progress.expired() => return Some(phase),
            () = end.cancelled(), if !is_stopping => {
                is_stopping = true;
                shut_down(connection.as_mut());
            }
        }
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<ConnectionShared>,
    progress: Arc<ConnectionProgress>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let request_progress = progress.begin_request();
    let (parts, body) = request.into_parts();
    let is_broken = AtomicBool::new(false);
    let read = async |limit: Duration, size: ReviewSize| {
        let read = shared.bodies.read((body, size), &shared.clock, limit.min(BODY)).await;
        let is_cut = read.as_ref().is_err_and(|failure| failure.code == StatusCode::BAD_REQUEST);
        // `Relaxed`: read by the same task.
        is_broken.store(is_cut, Ordering::Relaxed);
        request_progress.received();
        read.map(|read| (read.bytes, read.memory))
    };
    let answer = shared.handler.handle_read(&parts, read).await;
    // A request that was taken back often ends as a body that is cut off.
    if !is_broken.load(Ordering::Relaxed) {
        request_progress.answered();
    }
    let mut answer = answer.map(Full::new);
    if shared.stop.is_cancelled() && parts.version < Version::HTTP_2 {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(answer)
}
