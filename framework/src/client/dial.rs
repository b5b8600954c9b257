//! Opens TCP connections to the API server, with TLS unless it is plain HTTP on this machine.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::auth::Credentials;
use super::connect::{BoxIo, Connect, Opened, Opening};
use super::tls::{Tls, into_io};

/// For name lookup, TCP and TLS together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;
/// Sent data that stays unacknowledged so long breaks the connection.
#[cfg(target_os = "linux")]
const USER_TIMEOUT: Duration = Duration::from_secs(45);

/// Connects to one host and port.
#[derive(Debug)]
pub(crate) struct Dialer {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `None` for plain HTTP.
    pub(crate) tls: Option<Arc<Tls>>,
    /// May hand out the client certificate.
    pub(crate) credentials: Arc<Credentials>,
}

impl Dialer {
    async fn dial(&self) -> io::Result<Opened> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let tcp = TcpStream::connect((host, self.port)).await?;
        tune(&tcp)?;
        let Some(tls) = &self.tls else {
            return Ok(Opened { io: Box::new(tcp), http2: false });
        };
        let identity = self.credentials.identity().await.map_err(into_io)?;
        let config = tls.config(identity).map_err(into_io)?;
        let name = tls.server_name(&self.host).map_err(into_io)?;
        let stream = match TlsConnector::from(config).connect(name, tcp).await {
            Ok(stream) => stream,
            Err(error) => {
                // Perhaps a certificate was rotated.
                tls.forget();
                return Err(io::Error::new(error.kind(), TlsFailed(error)));
            }
        };
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Opened { io: Box::new(stream), http2 })
    }
}

impl Connect for Dialer {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(self.open().await?.io) })
    }

    fn open(&self) -> Opening<'_> {
        Box::pin(async {
            tokio::time::timeout(CONNECT_TIMEOUT, self.dial()).await.unwrap_or_else(|_| {
                let seconds = CONNECT_TIMEOUT.as_secs();
                let text = format!("not connected within {seconds} s");
                Err(io::Error::new(io::ErrorKind::TimedOut, text))
            })
        })
    }
}

fn tune(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    let socket = SockRef::from(tcp);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
    Ok(())
}

/// Says that it was TLS that failed, in front of rustls' own words.
#[derive(Debug)]
struct TlsFailed(io::Error);

impl std::fmt::Display for TlsFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TLS handshake failed: {}", self.0)
    }
}

impl std::error::Error for TlsFailed {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A5 over HTTP/1.1: the system asks a silent peer after 30 s, and gives it up 15 s later.
    #[tokio::test]
    async fn a5_the_system_notices_a_half_open_connection_within_45_seconds() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        tune(&tcp).unwrap();
        let socket = SockRef::from(&tcp);
        assert!(socket.keepalive().unwrap());
        let probes = socket.tcp_keepalive_retries().unwrap();
        let idle = socket.tcp_keepalive_time().unwrap();
        let noticed = idle + socket.tcp_keepalive_interval().unwrap() * probes;
        assert_eq!(noticed, Duration::from_secs(45));
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_secs(45)));
    }
}
