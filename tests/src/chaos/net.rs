//! The network between a client and the server: a connection may be cut within a frame, fall
//! silent, stall for a while or drip.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::time::Sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use windlass::client::{BoxIo, Connect};
use windlass::rng::Rng;
use windlass_apiserver::ApiServer;

/// Connection of a client to the server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Net {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: ApiServer,
    dice: Rng,
    is_healthy: AtomicBool,
    is_out: AtomicBool,
    /// Number of further names that are made unreadable.
    nameless: AtomicU64,
    /// Ends the connections that are open now.
    cut: Mutex<CancellationToken>,
    fates: [AtomicU64; FATES.len()],
}

/// Ends of a connection, as statistics name them.
const FATES: [&str; 5] = [
    "net: cut within",
    "net: fell silent",
    "net: stalled",
    "net: dripped",
    "net: names that were hidden",
];
/// Beginning of many objects' names, and the replacement.
const NAME: &[u8] = b"\"name\":\"object-";
const HIDDEN: &[u8] = b"\"nane\":\"object-";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Good,
    /// Reset after that many bytes from the server.
    Cut(u64),
    /// Nothing passes after that many bytes, and neither side is notified.
    Silent(u64),
    /// Nothing passes for a while after that many bytes.
    Stalled(u64, Duration),
    /// Bytes come in small pieces.
    Drips,
}

impl Net {
    /// Creates a healthy network.
    pub fn new(server: ApiServer, dice: Rng) -> Self {
        let shared = Shared {
            server,
            dice,
            is_healthy: AtomicBool::new(true),
            is_out: AtomicBool::new(false),
            nameless: AtomicU64::new(0),
            cut: Mutex::default(),
            fates: Default::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Sets whether later connections break. A connection that has fallen silent stays so.
    pub fn set_healthy(&self, healthy: bool) {
        self.shared.is_healthy.store(healthy, Ordering::Relaxed);
        if healthy {
            self.shared.is_out.store(false, Ordering::Relaxed);
        }
    }

    /// Sets whether connections are refused.
    pub fn set_out(&self, out: bool) {
        self.shared.is_out.store(out, Ordering::Relaxed);
    }

    /// Makes the names of that many objects unreadable that come from now on.
    pub fn hide_names(&self, number: u64) {
        self.shared.nameless.store(number, Ordering::Relaxed);
    }

    /// Resets every connection.
    pub fn cut(&self) {
        let mut cut = self.shared.cut.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *cut).cancel();
    }

    /// Returns the number of connections by their end.
    pub fn fates(&self) -> impl Iterator<Item = (&'static str, u64)> {
        FATES.iter().zip(&self.shared.fates).map(|(name, n)| (*name, n.load(Ordering::Relaxed)))
    }

    fn open(&self) -> io::Result<BoxIo> {
        let shared = &self.shared;
        if shared.is_out.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let cut = shared.cut.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Box::new(Connection {
            inner: shared.server.connect()?,
            fate: shared.fate(),
            read: 0,
            stall: None,
            cut: Box::pin(cut.cancelled_owned()),
            is_over: false,
            shared: Arc::clone(shared),
        }))
    }
}

impl Shared {
    fn fate(&self) -> Fate {
        if self.is_healthy.load(Ordering::Relaxed) {
            return Fate::Good;
        }
        // As often within the first frames as within the first megabyte.
        let after = 1 << self.dice.below(20);
        let after = after + self.dice.below(after);
        match self.dice.below(100) {
            0..45 => Fate::Good,
            45..75 => Fate::Cut(after),
            75..80 => Fate::Silent(after),
            80..94 => Fate::Stalled(after, self.dice.jitter(Duration::from_secs(40))),
            _ => Fate::Drips,
        }
    }

    /// Spoils the text after `metadata.name` of some objects: a key of the same length.
    fn hide(&self, bytes: &mut [u8]) {
        while self.nameless.load(Ordering::Relaxed) > 0 {
            let found = bytes.windows(NAME.len()).position(|part| part == NAME);
            let Some(at) = found else { return };
            bytes[at..at + HIDDEN.len()].copy_from_slice(HIDDEN);
            self.nameless.fetch_sub(1, Ordering::Relaxed);
            self.count(4);
        }
    }

    fn count(&self, fate: usize) {
        self.fates[fate].fetch_add(1, Ordering::Relaxed);
    }
}

impl Connect for Net {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async move { self.open() })
    }
}

struct Connection {
    inner: DuplexStream,
    fate: Fate,
    /// Bytes from the server so far.
    read: u64,
    stall: Option<Pin<Box<Sleep>>>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Whether the end of the connection has come.
    is_over: bool,
    shared: Arc<Shared>,
}

impl Connection {
    /// Returns the number of bytes that may be read before the connection's end comes.
    fn limit(&self) -> u64 {
        match self.fate {
            Fate::Good => u64::MAX,
            Fate::Drips => 1 + self.shared.dice.below(64),
            Fate::Cut(after) | Fate::Silent(after) | Fate::Stalled(after, _) => {
                after.saturating_sub(self.read)
            }
        }
    }

    /// Applies the end: `None` when the end is over.
    fn meet(&mut self, cx: &mut Context<'_>) -> Option<Poll<io::Result<()>>> {
        match self.fate {
            Fate::Cut(_) => {
                if !std::mem::replace(&mut self.is_over, true) {
                    self.shared.count(0);
                }
                Some(Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())))
            }
            Fate::Silent(_) => {
                if !std::mem::replace(&mut self.is_over, true) {
                    self.shared.count(1);
                }
                Some(Poll::Pending)
            }
            Fate::Stalled(_, pause) => {
                let stall = self.stall.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
                if stall.as_mut().poll(cx).is_pending() {
                    return Some(Poll::Pending);
                }
                self.shared.count(2);
                self.fate = Fate::Good;
                None
            }
            Fate::Drips | Fate::Good => None,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if self.limit() == 0
            && let Some(met) = self.meet(cx)
        {
            return met;
        }
        let most = usize::try_from(self.limit()).unwrap_or(usize::MAX).min(buf.remaining());
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
        let polled = Pin::new(&mut self.inner).poll_read(cx, &mut part);
        self.shared.hide(part.filled_mut());
        let got = part.filled().len();
        buf.advance(got);
        self.read += got as u64;
        // A connection drips for a while only.
        if self.fate == Fate::Drips && self.read > 8192 {
            self.shared.count(3);
            self.fate = Fate::Good;
        }
        polled
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_over {
            return match self.fate {
                Fate::Silent(_) => Poll::Ready(Ok(bytes.len())),
                _ => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            };
        }
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
