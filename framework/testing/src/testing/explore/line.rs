//! The operator's connections, which a crash cuts: from then on no byte passes in either direction.

use std::fmt;
use std::future::Future;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use windlass_apiserver::ApiServer;
use windlass_client::client::{BoxIo, Connect};

/// User name of explored operators; that of a second replica goes on behind it.
const OPERATOR: &str = "explored-operator";

/// Returns the user name of a replica.
fn user(replica: usize) -> String {
    if replica == 0 { OPERATOR.to_owned() } else { format!("{OPERATOR}-{}", replica + 1) }
}

/// Whether a user is a replica of the operator.
pub(super) fn is_operator(user: &str) -> bool {
    user.starts_with(OPERATOR)
}

/// The hash of all bytes that pass between operator and server.
#[derive(Debug, Default)]
pub(super) struct Trace {
    // Without a seed: equal bytes have one hash in every process. Under a lock because connections
    // share it; a run has one thread, so no task waits for it.
    hasher: Mutex<DefaultHasher>,
}

impl Trace {
    /// Adds bytes of a direction.
    fn add(&self, direction: u8, bytes: &[u8]) {
        let mut hasher = self.hasher.lock();
        hasher.write_u8(direction);
        hasher.write(bytes);
    }

    /// Returns the hash of all bytes so far.
    pub(super) fn hash(&self) -> u64 {
        self.hasher.lock().finish()
    }
}

/// The connections of one process of the operator. Clones share the cut.
#[derive(Clone)]
pub(super) struct ProcessConnections {
    server: ApiServer,
    user: String,
    is_cut: Arc<AtomicBool>,
    trace: Option<Arc<Trace>>,
}

impl fmt::Debug for ProcessConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessConnections").field("is_cut", &self.is_cut).finish_non_exhaustive()
    }
}

impl ProcessConnections {
    /// Returns the connections of a new process, that of a replica.
    pub(super) fn new(server: ApiServer, replica: usize, trace: Option<Arc<Trace>>) -> Self {
        Self { server, user: user(replica), is_cut: Arc::default(), trace }
    }

    /// Returns the switch that cuts all connections.
    pub(super) fn cut(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_cut)
    }
}

impl Connect for ProcessConnections {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async move {
            // Relaxed, as in `CutStream`: a run has one thread, and the flag guards no other data.
            if self.is_cut.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let inner = self.server.connect_as(&self.user, &["system:masters"])?;
            let (is_cut, trace) = (Arc::clone(&self.is_cut), self.trace.clone());
            Ok(Box::new(CutStream { inner, is_cut, trace }) as BoxIo)
        })
    }
}

/// One connection.
struct CutStream {
    inner: DuplexStream,
    is_cut: Arc<AtomicBool>,
    trace: Option<Arc<Trace>>,
}

impl CutStream {
    fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }
}

// A poll of a cut connection registers no waker: its process is about to be dropped.
impl AsyncRead for CutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_cut() {
            return Poll::Pending;
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        if let (Some(trace), Poll::Ready(Ok(()))) = (&self.trace, &polled) {
            trace.add(b'<', buf.filled().get(before..).unwrap_or_default());
        }
        polled
    }
}

impl AsyncWrite for CutStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_cut() {
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if let (Some(trace), Poll::Ready(Ok(written))) = (&self.trace, &polled) {
            trace.add(b'>', bytes.get(..*written).unwrap_or_default());
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
