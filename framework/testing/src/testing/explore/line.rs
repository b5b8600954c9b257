//! The operator's connections, which a crash cuts: from then on no byte passes in either direction.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use windlass_apiserver::ApiServer;
use windlass_client::client::{BoxIo, Connect};

/// User name of explored operators.
pub(super) const OPERATOR: &str = "explored-operator";

/// The connections of one process of the operator. Clones share the cut.
#[derive(Clone)]
pub(super) struct Line {
    server: ApiServer,
    is_cut: Arc<AtomicBool>,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("is_cut", &self.is_cut).finish_non_exhaustive()
    }
}

impl Line {
    /// Returns the connections of a new process.
    pub(super) fn new(server: ApiServer) -> Self {
        Self { server, is_cut: Arc::default() }
    }

    /// Returns the switch that cuts all connections.
    pub(super) fn cut(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_cut)
    }
}

impl Connect for Line {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async move {
            if self.is_cut.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let inner = self.server.connect_as(OPERATOR, &["system:masters"])?;
            Ok(Box::new(Stream { inner, is_cut: Arc::clone(&self.is_cut) }) as BoxIo)
        })
    }
}

/// One connection.
struct Stream {
    inner: DuplexStream,
    is_cut: Arc<AtomicBool>,
}

impl Stream {
    fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }
}

// A poll of a cut connection registers no waker: its process is about to be dropped.
impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_cut() {
            return Poll::Pending;
        }
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_cut() {
            return Poll::Pending;
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
