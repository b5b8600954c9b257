//! Operator and API server in a process: duplex streams, paused clock, a single seed.
//!
//! All bytes that pass between the two are hashed, so two runs of a seed can be compared. An
//! operator can be crashed at any request: from then on no byte of the operator reaches the server.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use windlass::client::{BoxIo, Client, Connect};
use windlass::clock::Clock;
use windlass::environment::Environment;
use windlass::metrics::Metrics;
use windlass::rng::Rng;
use windlass_apiserver::{ApiServer, Backup, Builder};

/// Start of simulated wall time: 2026-01-01T00:00:00Z.
pub const EPOCH: i64 = 1_767_225_600;

/// A world with an API server.
#[derive(Debug)]
pub struct World {
    /// The API server.
    pub server: ApiServer,
    /// Randomness of the scenario.
    pub rng: Rng,
    trace: Arc<Trace>,
}

/// Returns the settings of each world's server.
fn server(seed: u64) -> Builder {
    ApiServer::builder().seed(seed).epoch(EPOCH).stand_ins(true)
}

/// Returns the objects that each server begins with: making them takes most of a short run.
fn prepared() -> Option<&'static Backup> {
    static PREPARED: OnceLock<Option<Backup>> = OnceLock::new();
    let prepare = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().ok()?;
        let _inside = runtime.enter();
        Some(server(0).start().backup())
    };
    // Worlds are made inside of a runtime, which must not see another one end.
    PREPARED.get_or_init(|| std::thread::spawn(prepare).join().ok().flatten()).as_ref()
}

/// Traffic between clients and server, as a running hash.
#[derive(Debug)]
pub struct Trace {
    hash: std::sync::Mutex<Sha256>,
    connections: AtomicU64,
    requests: AtomicU64,
}

/// A client's connection to the server; can be cut. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Wire {
    state: Arc<WireState>,
}

#[derive(Debug)]
struct WireState {
    server: ApiServer,
    trace: Arc<Trace>,
    cut: AtomicBool,
    /// Number of requests after which the wire is cut.
    crash_at: AtomicU64,
    sent: AtomicU64,
}

impl World {
    /// Creates a world that follows from `seed`. Call this function inside a paused,
    /// single-threaded runtime.
    pub fn new(seed: u64) -> Self {
        let server = match prepared() {
            Some(prepared) => server(seed).start_from(prepared),
            None => server(seed).start(),
        };
        let trace = Trace {
            hash: std::sync::Mutex::default(),
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        };
        Self { server, rng: Rng::seeded(seed).fork("scenario"), trace: Arc::new(trace) }
    }

    /// Returns a client with separate seams, and the wire that can cut the client off.
    pub fn client(&self, name: &str) -> (Client, Wire) {
        let wire = Wire {
            state: Arc::new(WireState {
                server: self.server.clone(),
                trace: Arc::clone(&self.trace),
                cut: AtomicBool::new(false),
                crash_at: AtomicU64::new(u64::MAX),
                sent: AtomicU64::new(0),
            }),
        };
        let environment = Environment {
            clock: Clock::simulated(epoch()),
            rng: self.rng.fork(name),
            metrics: Metrics::new(),
        };
        (Client::over(Arc::new(wire.clone()), environment), wire)
    }

    /// Returns the newest versions of the kinds that an operator should leave alone after settling;
    /// leases are renewed for ever.
    pub fn written(&self) -> Vec<u64> {
        const KINDS: [(&str, &str); 4] = [
            ("example.dev", "websites"),
            ("apps", "deployments"),
            ("", "services"),
            ("events.k8s.io", "events"),
        ];
        KINDS.iter().map(|(group, plural)| self.server.resource_revision(group, plural)).collect()
    }

    /// Returns the hash of all bytes that were exchanged, and the number of requests.
    pub fn trace(&self) -> (String, u64) {
        let hash = self
            .trace
            .hash
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
            .finalize();
        (
            hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            self.trace.requests.load(Ordering::Relaxed),
        )
    }
}

pub(crate) fn epoch() -> jiff::Timestamp {
    jiff::Timestamp::from_second(EPOCH).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}

impl Trace {
    fn record(&self, connection: u64, direction: u8, bytes: &[u8]) {
        let mut hash = self.hash.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        hash.update(connection.to_be_bytes());
        hash.update([direction]);
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    }
}

impl Wire {
    /// Crashes the client when `requests` more requests have been sent: the last request reaches
    /// the server, the answer does not come back.
    pub fn crash_after(&self, requests: u64) {
        self.state
            .crash_at
            .store(self.state.sent.load(Ordering::Relaxed) + requests, Ordering::Relaxed);
    }

    /// Cuts the wire now: nothing passes any more, in either direction.
    pub fn cut(&self) {
        self.state.cut.store(true, Ordering::Relaxed);
    }

    /// Whether the wire is cut.
    pub fn is_cut(&self) -> bool {
        self.state.cut.load(Ordering::Relaxed)
    }
}

impl WireState {
    fn open(self: &Arc<Self>) -> io::Result<BoxIo> {
        if self.cut.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let number = self.trace.connections.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(Tap { inner: self.server.connect()?, number, wire: Arc::clone(self) }))
    }

    fn sending(&self, bytes: &[u8]) {
        const METHODS: [&[u8]; 5] = [b"GET ", b"PUT ", b"POST ", b"PATCH ", b"DELETE "];
        if METHODS.iter().any(|method| bytes.starts_with(method)) {
            self.trace.requests.fetch_add(1, Ordering::Relaxed);
            let sent = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
            if sent >= self.crash_at.load(Ordering::Relaxed) {
                self.cut.store(true, Ordering::Relaxed);
            }
        }
    }

    fn broken(&self) -> Option<io::Error> {
        self.cut.load(Ordering::Relaxed).then(|| io::ErrorKind::ConnectionReset.into())
    }
}

impl Connect for Wire {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async move { self.state.open() })
    }
}

/// A connection that records the traffic.
struct Tap {
    inner: DuplexStream,
    number: u64,
    wire: Arc<WireState>,
}

impl AsyncRead for Tap {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(error) = self.wire.broken() {
            return Poll::Ready(Err(error));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        if polled.is_ready() {
            self.wire.trace.record(self.number, b'<', &buf.filled()[before..]);
        }
        polled
    }
}

impl AsyncWrite for Tap {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(error) = self.wire.broken() {
            return Poll::Ready(Err(error));
        }
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if let Poll::Ready(Ok(written)) = &polled {
            self.wire.trace.record(self.number, b'>', &bytes[..*written]);
            self.wire.sending(&bytes[..*written]);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
