//! How a client reaches its server: TCP and TLS, or a pipe in memory.

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// A byte stream in both directions.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A boxed [`Io`].
pub type BoxIo = Box<dyn Io>;

/// Opens streams to the API server. Tests implement it over `tokio::io::duplex`.
pub trait Connect: Debug + Send + Sync + 'static {
    /// Opens one stream.
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>>;
}
