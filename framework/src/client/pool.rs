//! Keeps connections open between requests.
//!
//! HTTP/1.1 connections carry one request at a time and wait idle between two; HTTP/2 connections
//! are shared. A closed connection is noticed when it is taken; pings, ages and idle times are read
//! from the clock, so a run on a paused clock repeats itself. Not here: what becomes of a request
//! whose connection breaks (`transport`).

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::connect::{Connect, Opened};
use super::drive::Driver;
use super::payload::RequestBody;
use super::tuning::Tuning;
use crate::clock::Clock;
use crate::entropy::Entropy;

/// Idle HTTP/1.1 connections that are kept.
const MAX_IDLE: usize = 32;
/// Time after which an idle HTTP/1.1 connection is not used again, as in Go's client: the other end,
/// or something between, may have forgotten it. Of HTTP/2, all but one are closed then.
const IDLE_TIME: Duration = Duration::from_secs(90);
/// An idle connection gets ready at once. Only one whose server answered before it had read the whole
/// request does not, perhaps never.
const READY_TIME: Duration = Duration::from_millis(100);
/// Longest interval and longest wait of pings; the library adds them to an instant.
const LONGEST_PING: Duration = Duration::from_secs(365 * 24 * 3600);
/// Requests on one HTTP/2 connection before another is opened: what every server allows. If one
/// allows less, requests wait in line, and the first that waits too long has a new one opened.
const MAX_STREAMS: usize = 100;
/// Most that a server can send ahead of a slow reader: 100 MB/s at a round trip of 10 ms.
const STREAM_WINDOW: u32 = 1 << 20;
/// Of all streams together: as much as all of them, so that slow readers never stop another.
const CONNECTION_WINDOW: u32 = (MAX_STREAMS as u32 + 28) * STREAM_WINDOW;
/// Payload of a frame that a server may send, the protocol's default and smallest.
const MAX_FRAME: u32 = 16 << 10;
/// Bytes of an answer's head. Of HTTP/1.1 it is the read buffer, too.
const MAX_HEAD: usize = 64 << 10;
/// Headers of an HTTP/1.1 answer; an API server may add a hundred warnings.
const MAX_HEADERS: usize = 256;

pub(crate) type Http1 = http1::SendRequest<RequestBody>;
pub(crate) type Http2 = http2::SendRequest<RequestBody>;

/// The connections of one client.
pub(crate) struct Pool {
    connector: Arc<dyn Connect>,
    tuning: Tuning,
    clock: Clock,
    jitter: Entropy,
    state: Mutex<State>,
    /// Held while a connection is opened that others may come to share.
    dialing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    protocol: Option<Protocol>,
    idle: Vec<Idle>,
    shared: Vec<Shared>,
    next_id: u64,
    /// How often all connections were retired; those of an earlier era are not kept.
    era: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

/// When and until when a connection may be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    era: u64,
    /// Gets no more requests from then on.
    expires: Option<Instant>,
}

impl Ticket {
    fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }
}

struct Idle {
    sender: Http1,
    driver: Driver,
    ticket: Ticket,
    since: Instant,
}

impl Idle {
    fn is_usable(&self, now: Instant) -> bool {
        !self.ticket.is_expired(now) && now.saturating_duration_since(self.since) < IDLE_TIME
    }
}

struct Shared {
    id: u64,
    sender: Http2,
    ticket: Ticket,
    users: Arc<()>,
    /// When it got its last request.
    used: Instant,
}

/// Room for one request on a connection.
pub(crate) enum Lease {
    Http1 { sender: Http1, driver: Driver, ticket: Ticket, reused: bool },
    Http2 { sender: Http2, user: Arc<()>, id: u64, reused: bool },
}

impl Lease {
    pub(crate) fn reused(&self) -> bool {
        match self {
            Self::Http1 { reused, .. } | Self::Http2 { reused, .. } => *reused,
        }
    }

    /// What a later connection is [newer](Pool::lease) than.
    pub(crate) fn id(&self) -> u64 {
        match self {
            // Those of HTTP/1.1 are not shared: the next one is opened.
            Self::Http1 { .. } => u64::MAX,
            Self::Http2 { id, .. } => *id,
        }
    }

    /// Returns it unused.
    pub(crate) fn give_back(self, pool: &Pool) {
        if let Self::Http1 { sender, driver, ticket, .. } = self {
            pool.put(sender, driver, ticket);
        }
    }
}

impl Pool {
    pub(crate) fn new(
        connector: Arc<dyn Connect>,
        tuning: Tuning,
        clock: Clock,
        jitter: Entropy,
    ) -> Arc<Self> {
        let dialing = tokio::sync::Mutex::new(());
        Arc::new(Self { connector, tuning, clock, jitter, state: Mutex::default(), dialing })
    }

    /// Opens connections that are not to be pooled.
    #[cfg(feature = "ws")]
    pub(crate) fn connector(&self) -> &dyn Connect {
        &*self.connector
    }

    /// A connection with room for a request: one that is open, or a new one. After one that turned
    /// out to be stale, only one that is `newer`: others may have opened it meanwhile.
    pub(crate) async fn lease(&self, newer: Option<u64>) -> io::Result<Lease> {
        if let Some(lease) = self.pooled(newer).await {
            return Ok(lease);
        }
        if self.speaks_http1() {
            return self.dial().await;
        }
        // Whoever waited for this turn finds the connection that the one before has opened.
        let turn = self.dialing.lock().await;
        if self.speaks_http1() {
            // There is nothing to share, and so nothing to wait for.
            drop(turn);
            if let Some(lease) = self.pooled(newer).await {
                return Ok(lease);
            }
            return self.dial().await;
        }
        if let Some(lease) = self.state.lock().share(self.clock.now(), newer) {
            return Ok(lease);
        }
        self.dial().await
    }

    fn speaks_http1(&self) -> bool {
        self.state.lock().protocol == Some(Protocol::Http1)
    }

    /// Takes a finished connection back, unless it was retired meanwhile or is too old.
    pub(crate) fn put(&self, sender: Http1, driver: Driver, ticket: Ticket) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.idle.retain(|idle| idle.is_usable(now));
        let usable = ticket.era == state.era && !ticket.is_expired(now) && !sender.is_closed();
        if usable && state.idle.len() < MAX_IDLE {
            state.idle.push(Idle { sender, driver, ticket, since: now });
        }
    }

    /// Gives no more requests to a shared connection; those that it carries go on.
    pub(crate) fn evict(&self, id: u64) {
        self.state.lock().shared.retain(|shared| shared.id != id);
    }

    /// Gives no more requests to any connection that is open now.
    pub(crate) fn retire(&self) {
        let mut state = self.state.lock();
        state.era += 1;
        state.idle.clear();
        state.shared.clear();
    }

    async fn pooled(&self, newer: Option<u64>) -> Option<Lease> {
        loop {
            let now = self.clock.now();
            let Idle { mut sender, driver, ticket, .. } = {
                let mut state = self.state.lock();
                if let Some(lease) = state.share(now, newer) {
                    return Some(lease);
                }
                if newer.is_some() {
                    return None;
                }
                let idle = state.idle.pop()?;
                if !idle.is_usable(now) {
                    continue;
                }
                idle
            };
            // Its last answer was read to the end, so it gets ready at once, or is closed.
            if let Some(Ok(())) = self.clock.within(READY_TIME, sender.ready()).await {
                return Some(Lease::Http1 { sender, driver, ticket, reused: true });
            }
        }
    }

    async fn dial(&self) -> io::Result<Lease> {
        let era = self.state.lock().era;
        let Opened { io, http2 } = self.connector.open().await?;
        let ticket = Ticket { era, expires: self.expiry() };
        let io = TokioIo::new(io);
        if http2 {
            let handshake = self.http2().handshake(io).await;
            let (sender, connection) = handshake.map_err(io::Error::other)?;
            drive(connection);
            return Ok(self.state.lock().adopt(sender, ticket, self.clock.now()));
        }
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MAX_HEAD).max_headers(MAX_HEADERS);
        let (sender, connection) = builder.handshake(io).await.map_err(io::Error::other)?;
        let driver = Driver::spawn(connection);
        self.state.lock().protocol = Some(Protocol::Http1);
        Ok(Lease::Http1 { sender, driver, ticket, reused: false })
    }

    /// The end of a connection that opens now: up to a fifth before the highest age, so that
    /// connections that were opened together do not end together.
    fn expiry(&self) -> Option<Instant> {
        let age = self.tuning.max_age?;
        Some(self.clock.after(age.saturating_sub(self.jitter.jitter(age / 5))))
    }

    fn http2(&self) -> http2::Builder<TokioExecutor> {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(
                self.tuning.ping_interval.map(|interval| interval.min(LONGEST_PING)),
            )
            .keep_alive_timeout(self.tuning.ping_timeout.min(LONGEST_PING))
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(MAX_FRAME)
            .max_header_list_size(MAX_HEAD as u32);
        builder
    }
}

/// Runs a connection until its last user is gone or its peer ends it.
fn drive(connection: impl Future<Output = hyper::Result<()>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection to the API server ended");
        }
    });
}

impl State {
    /// Room on a connection that is open, and `newer` than another.
    fn share(&mut self, now: Instant, newer: Option<u64>) -> Option<Lease> {
        let mut first = true;
        self.shared.retain(|shared| {
            // One that is too old, or said goodbye, carries its requests to their end. Those of a
            // burst that nobody has needed since are closed; the first is kept alive by its pings.
            let open = !shared.sender.is_closed() && !shared.ticket.is_expired(now);
            let keep = open && (first || !shared.is_idle(now));
            first &= !keep;
            keep
        });
        let room = |shared: &&mut Shared| {
            newer.is_none_or(|id| shared.id > id) && Arc::strong_count(&shared.users) <= MAX_STREAMS
        };
        let shared = self.shared.iter_mut().find(room)?;
        shared.used = now;
        Some(shared.lease(true))
    }

    fn adopt(&mut self, sender: Http2, ticket: Ticket, now: Instant) -> Lease {
        self.protocol = Some(Protocol::Http2);
        let shared = Shared { id: self.next_id, sender, ticket, users: Arc::new(()), used: now };
        self.next_id += 1;
        let lease = shared.lease(false);
        if ticket.era == self.era {
            self.shared.push(shared);
        }
        lease
    }
}

impl Shared {
    fn is_idle(&self, now: Instant) -> bool {
        Arc::strong_count(&self.users) == 1 && now.saturating_duration_since(self.used) >= IDLE_TIME
    }

    fn lease(&self, reused: bool) -> Lease {
        Lease::Http2 {
            sender: self.sender.clone(),
            user: Arc::clone(&self.users),
            id: self.id,
            reused,
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Pool")
            .field("connector", &self.connector)
            .field("idle", &state.idle.len())
            .field("shared", &state.shared.len())
            .finish_non_exhaustive()
    }
}
