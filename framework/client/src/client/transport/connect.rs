//! Connections to the API server: TCP and TLS, or a pipe in memory.

use std::fmt::{self, Debug};
use std::future::{Future, Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tower::Service;

use super::message::{HttpRequest, HttpResponse, Stack};
use windlass_core::error::{Error, ErrorKind};

/// A byte stream in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A boxed [`Io`].
pub type BoxIo = Box<dyn Io>;

/// Future of [`Connect::open`].
pub type ConnectFuture<'a> = Pin<Box<dyn Future<Output = io::Result<ConnectedStream>> + Send + 'a>>;

/// An open stream and the protocol that both ends agreed on.
pub struct ConnectedStream {
    /// The stream.
    pub io: BoxIo,
    /// Whether HTTP/2 was agreed on; otherwise the protocol is HTTP/1.1.
    pub http2: bool,
}

impl Debug for ConnectedStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectedStream").field("http2", &self.http2).finish_non_exhaustive()
    }
}

/// Opens streams to the API server.
///
/// A pipe in memory serves as well as a socket: the same client speaks the same HTTP over the pipe,
/// on a clock that tests may pause, so that hours of retries and timeouts take milliseconds. Tests
/// of this crate, the embedded server and simulations use such a connector; tunnels and custom
/// proxies are other uses. A connector reads no environment, and has to add TLS on top.
///
/// ```
/// # extern crate windlass_client as windlass;
/// use std::future::Future;
/// use std::io;
/// use std::pin::Pin;
/// use std::sync::Arc;
///
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use windlass::client::{BoxIo, Client, Connect, Prepared};
/// use windlass::environment::Environment;
///
/// /// A server in memory that answers one request a connection.
/// #[derive(Debug)]
/// struct InMemory;
///
/// impl Connect for InMemory {
///     fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
///         Box::pin(async {
///             let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
///             tokio::spawn(async move {
///                 let mut request = [0; 4096];
///                 theirs.read(&mut request).await?;
///                 theirs.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await
///             });
///             Ok(Box::new(ours) as BoxIo)
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), windlass::Error> {
/// let client = Client::over(Arc::new(InMemory), Environment::system());
/// let answer = client.send(Prepared::get("/version", "read the version")).await?;
/// assert_eq!(answer.body, "hi");
/// # Ok(())
/// # }
/// ```
pub trait Connect: Debug + Send + Sync + 'static {
    /// Opens a stream.
    ///
    /// # Errors
    /// Any I/O error counts as a failure before the request was sent, so that the call is tried
    /// again.
    /// # Cancel safety
    /// The future is dropped when the call ends first; the connector must not leave a half-open
    /// stream.
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>>;

    /// Opens a stream and reports the protocol. Default: [`connect`](Self::connect), and HTTP/1.1.
    fn open(&self) -> ConnectFuture<'_> {
        Box::pin(async { Ok(ConnectedStream { io: self.connect().await?, http2: false }) })
    }

    /// Opens a stream that speaks HTTP/1.1, regardless of the protocol that [`open`](Self::open)
    /// would agree on, and that may stay silent: exec, attach and port-forward take the stream
    /// over. Default: [`connect`](Self::connect).
    fn open_http1(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        self.connect()
    }
}

/// Error text of an offline client.
const OFFLINE: &str = "this client is offline: it was made without a cluster";

/// Connector without a server.
#[derive(Debug)]
pub(in crate::client) struct Nowhere;

impl Connect for Nowhere {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Err(io::Error::new(io::ErrorKind::NotConnected, OFFLINE)) })
    }
}

/// Stand-in for the transport of an offline client. The error is final, whereas a failed connection
/// would be retried in vain.
#[derive(Clone, Debug)]
pub(in crate::client) struct Offline;

impl Offline {
    pub(in crate::client) fn new(_: Stack) -> Self {
        Self
    }
}

impl Service<HttpRequest> for Offline {
    type Response = HttpResponse;
    type Error = Error;
    type Future = Ready<Result<HttpResponse, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: HttpRequest) -> Self::Future {
        ready(Err(Error::new(ErrorKind::Connect, OFFLINE)))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use tokio::time::Instant;

    use crate::client::Client;
    use windlass_core::error::ErrorKind;

    #[tokio::test(start_paused = true)]
    async fn an_offline_client_fails_at_once_and_says_why() {
        let start = Instant::now();
        let error = Client::offline().all::<Namespace>().list().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Connect);
        assert!(error.to_string().contains("this client is offline"), "{error}");
        assert_eq!(start.elapsed(), std::time::Duration::ZERO);
    }
}
