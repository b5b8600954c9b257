//! Keeps connections open between requests.
//!
//! HTTP/1.1 connections carry one request at a time and wait idle between two; HTTP/2 connections
//! are shared. The pool reads no clock: idle connections are few, a closed one is noticed when it is
//! taken, and HTTP/2 connections ping on tokio's time. So a run on a paused clock repeats itself.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;

use super::connect::{Connect, Opened};
use super::payload::RequestBody;

/// Idle HTTP/1.1 connections that are kept.
const MAX_IDLE: usize = 32;
/// Requests on one HTTP/2 connection before another is opened: what every server allows. If one
/// allows less, requests wait in line, and the first that waits too long has a new one opened.
const MAX_STREAMS: usize = 100;
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Flow-control windows, as Go's HTTP/2 client has them for one stream.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

pub(crate) type Http1 = http1::SendRequest<RequestBody>;
pub(crate) type Http2 = http2::SendRequest<RequestBody>;

/// The connections of one client.
pub(crate) struct Pool {
    connector: Arc<dyn Connect>,
    state: Mutex<State>,
    /// Held while a connection is opened that others may come to share.
    dialing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    protocol: Option<Protocol>,
    idle: Vec<Http1>,
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

struct Shared {
    id: u64,
    sender: Http2,
    users: Arc<()>,
}

/// Room for one request on a connection.
pub(crate) enum Lease {
    Http1 { sender: Http1, era: u64, reused: bool },
    Http2 { sender: Http2, user: Arc<()>, id: u64, reused: bool },
}

impl Lease {
    pub(crate) fn reused(&self) -> bool {
        match self {
            Self::Http1 { reused, .. } | Self::Http2 { reused, .. } => *reused,
        }
    }

    /// Returns it unused.
    pub(crate) fn give_back(self, pool: &Pool) {
        if let Self::Http1 { sender, era, .. } = self {
            pool.put(sender, era);
        }
    }
}

impl Pool {
    pub(crate) fn new(connector: Arc<dyn Connect>) -> Arc<Self> {
        Arc::new(Self { connector, state: Mutex::default(), dialing: tokio::sync::Mutex::new(()) })
    }

    /// A connection with room for a request: one that is open, or with `fresh` always a new one.
    pub(crate) async fn lease(&self, fresh: bool) -> io::Result<Lease> {
        if !fresh && let Some(lease) = self.pooled().await {
            return Ok(lease);
        }
        if self.state.lock().protocol == Some(Protocol::Http1) {
            return self.dial().await;
        }
        // Whoever waited for this turn finds the connection that the one before has opened.
        let _turn = self.dialing.lock().await;
        if !fresh && let Some(lease) = self.state.lock().share() {
            return Ok(lease);
        }
        self.dial().await
    }

    /// Takes a finished connection back, unless it was retired meanwhile.
    pub(crate) fn put(&self, sender: Http1, era: u64) {
        let mut state = self.state.lock();
        if era == state.era && !sender.is_closed() && state.idle.len() < MAX_IDLE {
            state.idle.push(sender);
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

    async fn pooled(&self) -> Option<Lease> {
        loop {
            let (mut sender, era) = {
                let mut state = self.state.lock();
                if let Some(lease) = state.share() {
                    return Some(lease);
                }
                (state.idle.pop()?, state.era)
            };
            // Its last answer was read to the end, so it gets ready at once, or is closed.
            if sender.ready().await.is_ok() {
                return Some(Lease::Http1 { sender, era, reused: true });
            }
        }
    }

    async fn dial(&self) -> io::Result<Lease> {
        let era = self.state.lock().era;
        let Opened { io, http2 } = self.connector.open().await?;
        let io = TokioIo::new(io);
        if http2 {
            let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_TIMEOUT)
                .keep_alive_while_idle(true)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .handshake(io)
                .await
                .map_err(io::Error::other)?;
            drive(connection);
            return Ok(self.state.lock().adopt(sender, era));
        }
        let (sender, connection) = http1::handshake(io).await.map_err(io::Error::other)?;
        drive(connection);
        self.state.lock().protocol = Some(Protocol::Http1);
        Ok(Lease::Http1 { sender, era, reused: false })
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
    fn share(&mut self) -> Option<Lease> {
        self.shared.retain(|shared| !shared.sender.is_closed());
        let room = |shared: &&Shared| Arc::strong_count(&shared.users) <= MAX_STREAMS;
        let shared = self.shared.iter().find(room)?;
        Some(shared.lease(true))
    }

    fn adopt(&mut self, sender: Http2, era: u64) -> Lease {
        self.protocol = Some(Protocol::Http2);
        let shared = Shared { id: self.next_id, sender, users: Arc::new(()) };
        self.next_id += 1;
        let lease = shared.lease(false);
        if era == self.era {
            self.shared.push(shared);
        }
        lease
    }
}

impl Shared {
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
