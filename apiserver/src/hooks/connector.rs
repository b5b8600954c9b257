//! The seam between the server and the network: a connector opens the connections to webhooks.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection to a webhook that a connector has opened.
pub struct WebhookStream {
    pub(super) io: Box<dyn Io>,
    /// Whether the server makes a TLS connection on top.
    pub(super) is_tls: bool,
}

/// Bytes in both directions.
pub(super) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

impl fmt::Debug for WebhookStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookStream").field("is_tls", &self.is_tls).finish_non_exhaustive()
    }
}

impl WebhookStream {
    /// Returns a connection on which the server makes a TLS handshake and checks the certificate,
    /// as with any webhook on the network.
    pub fn tls(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self { io: Box::new(io), is_tls: true }
    }

    /// Returns a connection on which the server sends HTTP/1.1 without TLS: for a handler in the
    /// same process, which needs no certificate.
    pub fn plain(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self { io: Box::new(io), is_tls: false }
    }
}

/// The webhook that a connection is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Host of the URL: a name or an address; for a Service `<name>.<namespace>.svc`.
    pub host: String,
    /// Port of the URL or of the Service.
    pub port: u16,
    /// Path of the URL, as named by the request.
    pub path: String,
    /// Host and port to connect to: those of the URL, or of a ready endpoint of the Service. The
    /// text is the reason why the Service has none.
    pub address: Result<(String, u16), String>,
}

/// The future of a connection.
pub type Connecting = Pin<Box<dyn Future<Output = std::io::Result<WebhookStream>> + Send>>;

/// Opens connections to webhooks. Installed with [`Builder::connector`](crate::Builder::connector).
///
/// ```rust
/// use windlass_apiserver::{ApiServer, Connecting, Connector, Destination, WebhookStream};
///
/// struct InProcess;
///
/// impl Connector for InProcess {
///     fn connect(&self, destination: &Destination) -> Connecting {
///         let path = destination.path.clone();
///         Box::pin(async move {
///             let (near, far) = tokio::io::duplex(64 * 1024);
///             tokio::spawn(async move { drop((path, far)) /* an HTTP/1.1 server on `far` */ });
///             Ok(WebhookStream::plain(near)) // without TLS; `WebhookStream::tls` verifies the certificate
///         })
///     }
/// }
///
/// let builder = ApiServer::builder().connector(InProcess);
/// # drop(builder);
/// ```
pub trait Connector: Send + Sync + 'static {
    /// Opens a connection.
    ///
    /// The error's text is part of the message that the client gets. The server gives up when the
    /// webhook's timeout is over.
    fn connect(&self, destination: &Destination) -> Connecting;
}

/// Connects by TCP, for TLS: the default of a server without a connector. For connectors that
/// delegate some destinations to this connector.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpConnector;

impl Connector for TcpConnector {
    fn connect(&self, destination: &Destination) -> Connecting {
        let destination = destination.clone();
        Box::pin(async move { connect(&destination).await })
    }
}

/// Connects by TCP, for TLS.
pub(super) async fn connect(destination: &Destination) -> std::io::Result<WebhookStream> {
    let (host, port) = destination.address.clone().map_err(std::io::Error::other)?;
    let shown = join(&host, port);
    let failed = |error: std::io::Error| refused(&error, &host, &shown);
    let mut found: Vec<SocketAddr> =
        tokio::net::lookup_host((host.as_str(), port)).await.map_err(failed)?.collect();
    // A URL is written by administrators. The addresses of a Service are written by every user who
    // may write its endpoints: such users must not reach services of this machine, or of its
    // provider.
    if host != destination.host {
        found.retain(|address| is_allowed(address.ip()));
        if found.is_empty() {
            return Err(std::io::Error::other(format!("dial tcp {shown}: address not allowed")));
        }
    }
    let stream = TcpStream::connect(found.as_slice()).await.map_err(failed)?;
    // Reviews are small and must not wait for an acknowledgement.
    drop(stream.set_nodelay(true));
    Ok(WebhookStream::tls(stream))
}

/// Whether connections for others may be made to an address: to an address of a single host other
/// than this machine, as upstream decides for proxies.
pub(crate) fn is_allowed(ip: IpAddr) -> bool {
    // `::ffff:127.0.0.1` reaches the same host as `127.0.0.1`.
    let ip = ip.to_canonical();
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !(ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || link_local)
}

/// Returns host and port as addresses have them; IPv6 addresses in brackets.
pub(super) fn join(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Returns the failure of a connection in Go's words.
fn refused(error: &std::io::Error, host: &str, shown: &str) -> std::io::Error {
    use std::io::ErrorKind;
    let why = match error.kind() {
        ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        ErrorKind::ConnectionReset => "connect: connection reset by peer".to_owned(),
        ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        ErrorKind::TimedOut => "connect: connection timed out".to_owned(),
        _ if host.parse::<std::net::IpAddr>().is_err() => {
            return std::io::Error::other(format!("dial tcp: lookup {host}: no such host"));
        }
        _ => error.to_string(),
    };
    std::io::Error::other(format!("dial tcp {shown}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(host: &str, address: &str, port: u16) -> Destination {
        let address = Ok((address.to_owned(), port));
        Destination { host: host.to_owned(), port, path: "/".to_owned(), address }
    }

    #[tokio::test]
    async fn a_service_does_not_lead_to_this_machine_and_a_url_does() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        for address in ["127.0.0.1", "localhost", "::ffff:127.0.0.1", "169.254.169.254", "0.0.0.0"]
        {
            let error = connect(&destination("s.default.svc", address, port)).await.unwrap_err();
            let shown = join(address, port);
            assert_eq!(error.to_string(), format!("dial tcp {shown}: address not allowed"));
        }
        let direct = connect(&destination("127.0.0.1", "127.0.0.1", port)).await;
        assert!(direct.is_ok());
    }
}
