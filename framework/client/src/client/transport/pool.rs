//! Pool of open connections.
//!
//! An HTTP/1.1 connection carries a single request at a time and is idle between requests; HTTP/2
//! connections are shared. A closed connection is noticed when taken from the pool. Pings, ages and
//! idle times follow the clock, so that a run on a paused clock is reproducible. Not included: the
//! outcome of a request whose connection breaks (`transport`).
//!
//! Lock order: `dialing` before `state`. `dialing` is held across a connect, so that requests which
//! come meanwhile find the new connection; `state` is never held across an await.

// DESIGN.md, 4: The client has its own connection pool
// DESIGN.md, 19: Streams have idle limits instead of deadlines

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::connect::{Connect, ConnectedStream};
use super::connection_driver::Driver;
use super::payload::RequestBody;
use super::tuning::Tuning;
use windlass_core::clock::Clock;
use windlass_core::rng::Rng;

/// Largest number of idle HTTP/1.1 connections.
const MAX_IDLE: usize = 32;
/// Time after which an idle HTTP/1.1 connection is not used again, as in Go's client: the peer or a
/// middlebox may have dropped it. With HTTP/2, all idle connections but one are closed then.
const IDLE_TIME: Duration = Duration::from_secs(90);
/// Time for an idle connection to become ready, which normally takes none. A connection whose
/// server answered before reading the whole request may never become ready.
const READY_TIME: Duration = Duration::from_millis(100);
/// Longest interval and longest wait of pings; hyper adds them to an instant, which must not
/// overflow.
const LONGEST_PING: Duration = Duration::from_secs(365 * 24 * 3600);
/// Requests on an HTTP/2 connection before another is opened: a number that every server allows. If
/// a server allows less, requests queue, and the first that waits too long causes a new connection.
const MAX_STREAMS: usize = 100;
/// Most bytes that a server can send ahead of a slow reader: 100 MB/s at a round trip of 10 ms.
const STREAM_WINDOW: u32 = 1 << 20;
/// The same for all streams of a connection together: the sum of their windows, so that slow
/// readers never stop another stream.
const CONNECTION_WINDOW: u32 = (MAX_STREAMS as u32 + 28) * STREAM_WINDOW;
/// Largest frame that a server may send: the protocol's default, which is the smallest value.
const MAX_FRAME: u32 = 16 << 10;
/// Largest head of an answer, in bytes. For HTTP/1.1 the limit is the read buffer, too.
const MAX_HEAD: usize = 64 << 10;
/// Headers of an HTTP/1.1 answer; an API server may add a hundred warnings.
const MAX_HEADERS: usize = 256;

/// Sender of an HTTP/1.1 connection.
pub(crate) type Http1 = http1::SendRequest<RequestBody>;
/// Sender of an HTTP/2 connection; clones share the connection.
pub(crate) type Http2 = http2::SendRequest<RequestBody>;

/// Connections of a client.
pub(crate) struct Pool {
    connector: Arc<dyn Connect>,
    tuning: Tuning,
    clock: Clock,
    /// Randomness of the connections' ages.
    jitter: Rng,
    state: Mutex<State>,
    /// Held while a connection is opened, so that concurrent requests share a single HTTP/2
    /// connection instead of opening several.
    dialing: tokio::sync::Mutex<()>,
}

/// Connections by protocol. A server speaks either protocol, but a proxy behind the same address
/// may change the protocol.
#[derive(Default)]
struct State {
    /// Protocol of the last connection; `None` before the first connection.
    protocol: Option<Protocol>,
    /// Idle HTTP/1.1 connections.
    idle: Vec<Idle>,
    /// Open HTTP/2 connections.
    shared: Vec<Http2Connection>,
    /// Id of the next HTTP/2 connection; ids increase with time.
    next_id: u64,
    /// Number of times that all connections were retired; connections of an earlier generation
    /// are not pooled.
    generation: u64,
}

/// Protocol that the TLS handshake selected; plain connections speak HTTP/1.1.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

/// Validity of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    generation: u64,
    /// Instant from which the connection gets no more requests.
    expires: Option<Instant>,
}

impl Ticket {
    /// Whether the connection is too old for another request.
    fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }
}

/// An idle HTTP/1.1 connection.
struct Idle {
    sender: Http1,
    driver: Driver,
    ticket: Ticket,
    /// Instant of the return to the pool.
    since: Instant,
}

impl Idle {
    /// Whether the connection may serve another request: an old idle connection may be closed by
    /// the server or a firewall without a sign.
    fn is_usable(&self, now: Instant) -> bool {
        !self.ticket.is_expired(now) && now.saturating_duration_since(self.since) < IDLE_TIME
    }
}

/// An HTTP/2 connection.
struct Http2Connection {
    id: u64,
    sender: Http2,
    ticket: Ticket,
    /// A clone for each request under way, so that the reference count is the load.
    users: Arc<()>,
    /// Instant of the last request.
    used: Instant,
}

/// Capacity for a single request on a connection.
pub(crate) enum ConnectionLease {
    Http1 { sender: Http1, driver: Driver, ticket: Ticket, reused: bool },
    Http2 { sender: Http2, user: Arc<()>, id: u64, reused: bool },
}

impl ConnectionLease {
    /// Returns whether the connection has served requests before.
    pub(crate) fn reused(&self) -> bool {
        match self {
            Self::Http1 { reused, .. } | Self::Http2 { reused, .. } => *reused,
        }
    }

    /// Returns the id that a later connection has to [exceed](Pool::lease).
    pub(crate) fn id(&self) -> u64 {
        match self {
            // HTTP/1.1 connections are not shared: the next connection is always new.
            Self::Http1 { .. } => u64::MAX,
            Self::Http2 { id, .. } => *id,
        }
    }

    /// Returns the connection unused.
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
        jitter: Rng,
    ) -> Arc<Self> {
        let dialing = tokio::sync::Mutex::new(());
        Arc::new(Self { connector, tuning, clock, jitter, state: Mutex::default(), dialing })
    }

    /// Returns the code that opens connections outside of the pool.
    #[cfg(feature = "ws")]
    pub(crate) fn connector(&self) -> &dyn Connect {
        &*self.connector
    }

    /// Returns a connection with capacity for a request: an open or a new connection. After a
    /// request on a stale connection, only a connection with an id above `newer`: another request
    /// may have opened that connection meanwhile.
    pub(crate) async fn lease(&self, newer: Option<u64>) -> io::Result<ConnectionLease> {
        if let Some(lease) = self.pooled(newer).await {
            return Ok(lease);
        }
        if self.speaks_http1() {
            return self.dial().await;
        }
        // A waiter for this lock mostly finds the connection opened by its predecessor.
        let dial_guard = self.dialing.lock().await;
        if self.speaks_http1() {
            // HTTP/1.1 connections are not shared, so dials need not wait for each other.
            drop(dial_guard);
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

    /// Returns whether the last connection agreed on HTTP/1.1.
    fn speaks_http1(&self) -> bool {
        self.state.lock().protocol == Some(Protocol::Http1)
    }

    /// Returns a finished connection to the pool, unless the connection was retired meanwhile or is
    /// too old.
    pub(crate) fn put(&self, sender: Http1, driver: Driver, ticket: Ticket) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.idle.retain(|idle| idle.is_usable(now));
        let usable =
            ticket.generation == state.generation && !ticket.is_expired(now) && !sender.is_closed();
        if usable && state.idle.len() < MAX_IDLE {
            state.idle.push(Idle { sender, driver, ticket, since: now });
        }
    }

    /// Stops the use of a shared connection for new requests; requests under way on the connection
    /// continue.
    pub(crate) fn evict(&self, id: u64) {
        self.state.lock().shared.retain(|shared| shared.id != id);
    }

    /// Stops the use of all open connections for new requests.
    pub(crate) fn retire(&self) {
        let mut state = self.state.lock();
        // Connections that are in use or being opened now carry the old generation and are not
        // pooled later.
        state.generation += 1;
        state.idle.clear();
        state.shared.clear();
    }

    /// Returns an open connection with capacity, if there is any.
    async fn pooled(&self, newer: Option<u64>) -> Option<ConnectionLease> {
        loop {
            let now = self.clock.now();
            // Locked in an inner block: the lock must not be held across the await below.
            let Idle { mut sender, driver, ticket, .. } = {
                let mut state = self.state.lock();
                if let Some(lease) = state.share(now, newer) {
                    return Some(lease);
                }
                // Idle HTTP/1.1 connections may be as stale as the connection that has just failed.
                if newer.is_some() {
                    return None;
                }
                // The connection that was returned last is the least likely to have been closed by
                // the server.
                let idle = state.idle.pop()?;
                if !idle.is_usable(now) {
                    continue;
                }
                idle
            };
            // The last answer was read to the end, so the connection is ready at once, or closed.
            if let Some(Ok(())) = self.clock.timeout(READY_TIME, sender.ready()).await {
                return Some(ConnectionLease::Http1 { sender, driver, ticket, reused: true });
            }
        }
    }

    /// Opens a connection.
    async fn dial(&self) -> io::Result<ConnectionLease> {
        // Read before the connect: a retirement during the handshake keeps the connection out of
        // the pool.
        let generation = self.state.lock().generation;
        let ConnectedStream { io, http2 } = self.connector.open().await?;
        let ticket = Ticket { generation, expires: self.expiry() };
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
        Ok(ConnectionLease::Http1 { sender, driver, ticket, reused: false })
    }

    /// Returns the end of a connection that opens now: up to a fifth before the highest age, so
    /// that connections that were opened together do not end together.
    fn expiry(&self) -> Option<Instant> {
        let age = self.tuning.max_age?;
        Some(self.clock.after(age.saturating_sub(self.jitter.jitter(age / 5))))
    }

    /// Returns the settings of HTTP/2 connections.
    fn http2(&self) -> http2::Builder<TokioExecutor> {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(
                self.tuning.ping_interval.map(|interval| interval.min(LONGEST_PING)),
            )
            .keep_alive_timeout(self.tuning.ping_timeout.min(LONGEST_PING))
            // Idle connections are pinged as well, so that a broken connection is not found by a
            // request.
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(MAX_FRAME)
            .max_header_list_size(MAX_HEAD as u32);
        builder
    }
}

/// Runs a connection until the last user is gone or the peer closes the connection.
fn drive(connection: impl Future<Output = hyper::Result<()>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection to the API server ended");
        }
    });
}

impl State {
    /// Returns capacity on an open connection, with an id above `newer`.
    fn share(&mut self, now: Instant, newer: Option<u64>) -> Option<ConnectionLease> {
        let mut first = true;
        self.shared.retain(|shared| {
            // A connection that is too old, or has received GOAWAY, completes the open requests
            // outside of the pool. Idle connections that a burst of requests left behind are
            // closed; the first is kept open by pings.
            let open = !shared.sender.is_closed() && !shared.ticket.is_expired(now);
            let keep = open && (first || !shared.is_idle(now));
            first &= !keep;
            keep
        });
        let room = |shared: &&mut Http2Connection| {
            // The pool holds one reference, hence `<=`.
            newer.is_none_or(|id| shared.id > id) && Arc::strong_count(&shared.users) <= MAX_STREAMS
        };
        let shared = self.shared.iter_mut().find(room)?;
        shared.used = now;
        Some(shared.lease(true))
    }

    /// Adds a new HTTP/2 connection to the pool, unless all were retired meanwhile.
    fn adopt(&mut self, sender: Http2, ticket: Ticket, now: Instant) -> ConnectionLease {
        self.protocol = Some(Protocol::Http2);
        let shared =
            Http2Connection { id: self.next_id, sender, ticket, users: Arc::new(()), used: now };
        self.next_id += 1;
        let lease = shared.lease(false);
        if ticket.generation == self.generation {
            self.shared.push(shared);
        }
        lease
    }
}

impl Http2Connection {
    /// Returns whether the connection has served no request for `IDLE_TIME`.
    fn is_idle(&self, now: Instant) -> bool {
        Arc::strong_count(&self.users) == 1 && now.saturating_duration_since(self.used) >= IDLE_TIME
    }

    /// Returns capacity for a single request; the clone of `users` counts until the drop.
    fn lease(&self, reused: bool) -> ConnectionLease {
        ConnectionLease::Http2 {
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
