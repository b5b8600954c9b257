//! Deadlines of a connection: it is opened, sends a request, waits for the answer, reads it, idles.
//!
//! The deadlines are the server's own and not hyper's, whose one for headers would also end idle
//! connections: an API server that is just sending on one would see its request fail.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;
use windlass_core::clock::Clock;

/// Time for the handshake of TLS.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time for the request line and the headers, and from the handshake to the first request.
const HEADERS: Duration = Duration::from_secs(5);
/// Time for a client to take its answer.
const WRITE: Duration = Duration::from_secs(10);
/// Time for which a connection without requests is kept: API servers close theirs after 90 s.
const IDLE: Duration = Duration::from_secs(150);

/// Time after which a body, an answer or the rest of the headers is slow, and a connection without
/// requests is idle, when another connection needs the place.
pub(super) const SLOW: Duration = Duration::from_secs(2);

/// Requests that a client of HTTP/2 may take back, beyond the number of those that it let be
/// answered.
const MOST_RESETS: u32 = 100;

/// Activity of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// TLS is being agreed on.
    Handshake,
    /// No request has come yet, or a part of its headers has.
    Headers,
    /// Requests are read or answered.
    Request,
    /// An answer is being sent.
    Write,
    /// The connection waits for a further request.
    Idle,
    /// Too many requests were taken back: the connection is closed.
    Resets,
}

impl ConnectionPhase {
    /// Returns the limit of the phase. Requests have limits of their own.
    fn limit(self) -> Option<Duration> {
        match self {
            Self::Handshake => Some(HANDSHAKE),
            Self::Headers => Some(HEADERS),
            Self::Request => None,
            Self::Write => Some(WRITE),
            Self::Idle => Some(IDLE),
            Self::Resets => Some(Duration::ZERO),
        }
    }

    /// Returns the word for a connection that was closed in this phase, in metrics.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Headers => "headers",
            Self::Request => "request",
            Self::Write => "write",
            Self::Idle => "idle",
            Self::Resets => "resets",
        }
    }
}

/// Willingness to close a connection for another one, the most willing first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EvictionOrder {
    /// No request has come yet.
    NoRequest,
    /// The client has been slow with a body, with headers, or with taking an answer.
    Slow,
    /// No request for a while.
    Idle,
    /// No request at the moment.
    Recent,
    /// The client sends a body or headers, or takes an answer.
    Sending,
    /// A request is being answered.
    Handling,
}

/// The phase of a connection, shared by its parts.
#[derive(Debug)]
pub(super) struct ConnectionProgress {
    clock: Clock,
    state: Mutex<State>,
    /// Wakes the task that waits for the deadline.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    phase: ConnectionPhase,
    since: Instant,
    /// Requests being answered; several with HTTP/2.
    requests: usize,
    /// Those of them whose body has not come.
    bodies: usize,
    /// Requests that were taken back, less those that were answered.
    resets: u32,
    /// Whether a request has ever come.
    has_request: bool,
    /// Whether bytes of a new request end the idle time: not with HTTP/2, whose frames need not
    /// belong to a request.
    has_heads: bool,
}

impl ConnectionProgress {
    pub(super) fn new(clock: Clock) -> Self {
        let state = State {
            phase: ConnectionPhase::Handshake,
            since: clock.now(),
            requests: 0,
            bodies: 0,
            resets: 0,
            has_request: false,
            has_heads: true,
        };
        Self { clock, state: Mutex::new(state), changed: Notify::new() }
    }

    fn enter(&self, state: &mut State, phase: ConnectionPhase) {
        (state.phase, state.since) = (phase, self.clock.now());
        self.changed.notify_one();
    }

    /// The handshake is done.
    pub(super) fn opened(&self, is_http2: bool) {
        let mut state = self.state.lock();
        state.has_heads = !is_http2;
        self.enter(&mut state, ConnectionPhase::Headers);
    }

    /// The headers of a request have come. Dropping the value ends the request: it is taken back,
    /// unless it was [answered](RequestProgress::answered).
    pub(super) fn begin_request(self: &Arc<Self>) -> RequestProgress {
        let mut state = self.state.lock();
        state.requests += 1;
        state.bodies += 1;
        state.has_request = true;
        // A further request of HTTP/2 makes the bodies before it no faster.
        if !matches!(state.phase, ConnectionPhase::Resets | ConnectionPhase::Request) {
            self.enter(&mut state, ConnectionPhase::Request);
        }
        RequestProgress {
            progress: Arc::clone(self),
            has_body: AtomicBool::new(false),
            is_answered: false,
        }
    }

    fn received(&self) {
        let mut state = self.state.lock();
        if state.phase == ConnectionPhase::Idle && state.has_heads {
            self.enter(&mut state, ConnectionPhase::Headers);
        }
    }

    fn flushed(&self) {
        let mut state = self.state.lock();
        if state.phase == ConnectionPhase::Write {
            self.enter(&mut state, ConnectionPhase::Idle);
        }
    }

    /// Waits until the present phase takes too long, and returns it.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn expired(&self) -> ConnectionPhase {
        loop {
            let changed = self.changed.notified();
            let (phase, since) = {
                let state = self.state.lock();
                (state.phase, state.since)
            };
            match phase.limit() {
                None => changed.await,
                Some(limit) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = self.clock.sleep_until(since + limit) => return phase,
                },
            }
        }
    }

    /// Returns the standing of the connection, and the time of the last step.
    pub(super) fn eviction_order(&self) -> (EvictionOrder, Instant) {
        let state = self.state.lock();
        let is_late = self.clock.now() >= state.since + SLOW;
        let sending = if is_late { EvictionOrder::Slow } else { EvictionOrder::Sending };
        let standing = match state.phase {
            _ if !state.has_request => EvictionOrder::NoRequest,
            ConnectionPhase::Request if state.bodies < state.requests => EvictionOrder::Handling,
            ConnectionPhase::Resets => EvictionOrder::Handling,
            ConnectionPhase::Idle if is_late => EvictionOrder::Idle,
            ConnectionPhase::Idle => EvictionOrder::Recent,
            ConnectionPhase::Handshake
            | ConnectionPhase::Headers
            | ConnectionPhase::Request
            | ConnectionPhase::Write => sending,
        };
        (standing, state.since)
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct RequestProgress {
    progress: Arc<ConnectionProgress>,
    has_body: AtomicBool,
    is_answered: bool,
}

impl RequestProgress {
    /// The body is there, or will not come.
    pub(super) fn received(&self) {
        let mut state = self.progress.state.lock();
        // `Relaxed`: written under the lock.
        state.bodies -= usize::from(!self.has_body.swap(true, Relaxed));
        state.since = self.progress.clock.now();
    }

    /// The answer is there.
    pub(super) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for RequestProgress {
    fn drop(&mut self) {
        let mut state = self.progress.state.lock();
        state.requests -= 1;
        match *self.has_body.get_mut() {
            true => state.since = self.progress.clock.now(),
            false => state.bodies -= 1,
        }
        state.resets = match self.is_answered {
            true => state.resets.saturating_sub(1),
            false => state.resets + 1,
        };
        if state.resets > MOST_RESETS {
            self.progress.enter(&mut state, ConnectionPhase::Resets);
        } else if state.requests == 0 {
            self.progress.enter(&mut state, ConnectionPhase::Write);
        }
    }
}

/// A stream that tells the progress of its connection.
#[derive(Debug)]
pub(super) struct ProgressStream<I> {
    io: I,
    progress: Arc<ConnectionProgress>,
}

impl<I> ProgressStream<I> {
    pub(super) fn new(io: I, progress: Arc<ConnectionProgress>) -> Self {
        Self { io, progress }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for ProgressStream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.progress.received();
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for ProgressStream<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.progress.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
