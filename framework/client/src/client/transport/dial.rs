//! TCP connections to the API server, through a proxy if any, with TLS unless the server speaks
//! plain HTTP.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rustls::{CertificateError, ClientConfig, InvalidMessage};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::connect::{BoxIo, Connect, ConnectFuture, ConnectedStream, Io};
use super::proxy::{self, Proxy};
use super::tls::{Identity, Tls, into_io, server_name};
use windlass_core::error::Error;
use windlass_core::metrics::Metrics;
use windlass_core::metrics::names::REST_DNS_SECONDS;

/// Time for name lookup, TCP, the proxy and TLS together. Less than the 10 s in which the answer to
/// a read must begin, so that the error names the step that took too long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);
/// Minimum time for each address of a host that has several.
const LEAST_SHARE: Duration = Duration::from_secs(1);
// Keep-alive of TCP: 30 s + 3 * 5 s = 45 s (A5: a half-open connection is noticed within 45 s).
const KEEPALIVE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;
/// Time after which unacknowledged data breaks the connection (A5: a half-open connection).
#[cfg(target_os = "linux")]
const USER_TIMEOUT: Duration = Duration::from_secs(45);

/// Future of a client certificate.
pub(crate) type IdentityFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Identity>, Error>> + Send + 'a>>;

/// Source of client certificates other than those of the TLS settings. A trait, because the
/// credentials, which implement the trait, stand above the transport.
pub(crate) trait IdentitySource: fmt::Debug + Send + Sync {
    /// Returns the client certificate for a handshake now, if the source has a certificate.
    fn identity(&self) -> IdentityFuture<'_>;

    /// Stops the use of all open connections for new requests: they presented an earlier
    /// certificate.
    fn retire(&self);
}

/// Connector for a single host and port.
#[derive(Debug)]
pub(crate) struct Dialer {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `None` for plain HTTP.
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) proxy: Option<Arc<Proxy>>,
    /// TLS settings for an `https://` proxy.
    pub(crate) proxy_tls: Option<Arc<ClientConfig>>,
    pub(crate) identities: Arc<dyn IdentitySource>,
    /// Place at which the address and the CA are configured, for error texts.
    pub(crate) origin: String,
    pub(crate) metrics: Metrics,
}

impl Dialer {
    /// Opens a connection. After a failed handshake the certificates are read again, and a second
    /// handshake follows if they changed (A9: rotated CA or client certificate).
    async fn dial(&self, purpose: Purpose) -> io::Result<ConnectedStream> {
        let error = match self.dial_once(purpose).await {
            Err(error) if is_tls(&error) => error,
            result => return result,
        };
        match &self.tls {
            Some(tls) if tls.renew_now(|| self.identities.retire()).await => {
                self.dial_once(purpose).await
            }
            _ => Err(error),
        }
    }

    /// Opens a connection with the certificates at hand.
    async fn dial_once(&self, purpose: Purpose) -> io::Result<ConnectedStream> {
        match &self.proxy {
            Some(proxy) => {
                let io = self.through(proxy, purpose).await?;
                self.secure(io, purpose).await
            }
            None => self.secure(self.tcp(&self.host, self.port, purpose).await?, purpose).await,
        }
    }

    /// Opens a stream to the API server through `proxy`.
    async fn through(&self, proxy: &Proxy, purpose: Purpose) -> io::Result<BoxIo> {
        let tcp = self.tcp(&proxy.host, proxy.port, purpose).await;
        let tcp = tcp.map_err(|error| proxy::ProxyError::unreachable(proxy, error))?;
        let io: BoxIo = match &self.proxy_tls {
            Some(config) => {
                let name = server_name(&proxy.host).map_err(into_io)?;
                let stream = TlsConnector::from(Arc::clone(config)).connect(name, tcp).await;
                let failed =
                    |error| proxy::ProxyError::unreachable(proxy, TlsFailed::new(error, None));
                Box::new(stream.map_err(failed)?)
            }
            None => Box::new(tcp),
        };
        proxy::open(proxy, io, &self.host, self.port).await
    }

    /// Adds TLS to `io`, unless the server speaks plain HTTP.
    async fn secure(&self, io: impl Io + 'static, purpose: Purpose) -> io::Result<ConnectedStream> {
        let Some(tls) = &self.tls else {
            return Ok(ConnectedStream { io: Box::new(io), http2: false });
        };
        let identity = self.identities.identity().await.map_err(into_io)?;
        let mut config = tls.config(identity).map_err(into_io)?;
        // An upgrade needs HTTP/1.1, so HTTP/2 is not offered.
        if purpose == Purpose::Upgrade {
            Arc::make_mut(&mut config).alpn_protocols = vec![b"http/1.1".to_vec()];
        }
        let name = tls.server_name(&self.host).map_err(into_io)?;
        let stream = TlsConnector::from(config).connect(name, io).await.map_err(|error| {
            io::Error::new(error.kind(), TlsFailed::new(error, Some(&self.origin)))
        })?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(ConnectedStream { io: Box::new(stream), http2 })
    }
}

impl Dialer {
    /// Opens a connection within `CONNECT_TIMEOUT`.
    async fn dial_in_time(&self, purpose: Purpose) -> io::Result<ConnectedStream> {
        tokio::time::timeout(CONNECT_TIMEOUT, self.dial(purpose)).await.unwrap_or_else(|_| {
            let seconds = CONNECT_TIMEOUT.as_secs();
            let text = format!("not connected within {seconds} s");
            Err(match &self.proxy {
                Some(proxy) => {
                    let advice = "check that it runs and can reach the API server";
                    proxy::ProxyError::error(proxy, format_args!("did not help: {text}"), advice)
                }
                None => io::Error::new(io::ErrorKind::TimedOut, text),
            })
        })
    }
}

impl Connect for Dialer {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(self.open().await?.io) })
    }

    fn open(&self) -> ConnectFuture<'_> {
        Box::pin(self.dial_in_time(Purpose::Requests))
    }

    fn open_http1(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(self.dial_in_time(Purpose::Upgrade).await?.io) })
    }
}

/// Purpose of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Requests and answers, over HTTP/2 if the server speaks that protocol.
    Requests,
    /// A single request over HTTP/1.1, whose connection then belongs to the caller.
    Upgrade,
}

impl Dialer {
    /// Looks the host up and opens a TCP connection.
    async fn tcp(&self, host: &str, port: u16, purpose: Purpose) -> io::Result<TcpStream> {
        // An IPv6 address stands in brackets in a URI, but not in a lookup.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let started = tokio::time::Instant::now();
        let found = tokio::net::lookup_host((host, port)).await;
        // Observed for failed lookups, too.
        self.metrics.observe(&REST_DNS_SECONDS, &[host], started.elapsed());
        tcp(host, found?.collect(), purpose).await
    }
}

/// Tries the host's addresses in the resolver's order; an address that does not answer leaves time
/// for the next.
async fn tcp(host: &str, addresses: Vec<SocketAddr>, purpose: Purpose) -> io::Result<TcpStream> {
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    // A single silent address must not use up the time of all others.
    let share = (CONNECT_TIMEOUT / count).max(LEAST_SHARE);
    let mut failure = io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address"));
    for address in addresses {
        let silent = || io::Error::new(io::ErrorKind::TimedOut, format!("{address} is silent"));
        let connected = tokio::time::timeout(share, TcpStream::connect(address)).await;
        match connected.unwrap_or_else(|_| Err(silent())) {
            Ok(tcp) => {
                tune(&tcp, purpose)?;
                return Ok(tcp);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Returns whether the TLS handshake failed.
fn is_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<TlsFailed>())
}

/// Returns the message when `error` stems from a server certificate that does not verify: another
/// attempt would meet the same certificate.
pub(in crate::client) fn untrusted(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // `io::Error::source` skips the error inside and returns the source of the inner error.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let tls = held.and_then(|held| held.downcast_ref()).or_else(|| error.downcast_ref());
        if let Some(tls @ TlsFailed { untrusted: true, .. }) = tls {
            return Some(tls.to_string());
        }
        cause = error.source();
    }
    None
}

/// Sets the socket options.
fn tune(tcp: &TcpStream, purpose: Purpose) -> io::Result<()> {
    // Requests are small and wait for their answers, so delaying them for larger packets costs
    // time.
    tcp.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    let socket = SockRef::from(tcp);
    socket.set_tcp_keepalive(&keepalive)?;
    // A program in a container may leave the input unread for long, and the kernel would count that
    // as unacknowledged data.
    #[cfg(target_os = "linux")]
    if purpose == Purpose::Requests {
        socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
    }
    Ok(())
}

/// Error of the TLS handshake, put in front of rustls' message.
#[derive(Debug)]
struct TlsFailed {
    /// Error of rustls.
    error: io::Error,
    /// Whether the server's certificate does not verify.
    untrusted: bool,
    /// Advice on the configuration, if the cause is known.
    advice: Option<String>,
}

impl TlsFailed {
    /// Adds advice that names `origin`, the place of the server's configuration.
    fn new(error: io::Error, origin: Option<&str>) -> Self {
        let cause = error.get_ref().and_then(|inner| inner.downcast_ref());
        let untrusted = matches!(cause, Some(rustls::Error::InvalidCertificate(_)));
        let advice = cause.zip(origin).and_then(|(cause, origin)| advice(cause, origin));
        Self { error, untrusted, advice }
    }
}

/// Returns advice on a failed handshake.
fn advice(error: &rustls::Error, origin: &str) -> Option<String> {
    use CertificateError as Bad;
    Some(match error {
        // A cluster that was set up again has an authority of the same name, so the signature
        // differs and not the name.
        rustls::Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => format!(
            "no known authority has signed the server's certificate: name the one that did as \
             certificate-authority of {origin}"
        ),
        rustls::Error::InvalidCertificate(
            Bad::NotValidForName | Bad::NotValidForNameContext { .. },
        ) => format!(
            "the server's certificate carries another name: correct the address of {origin}, or \
             give the name that it carries as tls-server-name"
        ),
        rustls::Error::InvalidCertificate(
            Bad::Expired
            | Bad::ExpiredContext { .. }
            | Bad::NotValidYet
            | Bad::NotValidYetContext { .. },
        ) => "renew the server's certificate, or set the clock of this machine".to_owned(),
        rustls::Error::InvalidCertificate(_) => {
            format!("replace the server's certificate, or correct the address of {origin}")
        }
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => format!(
            "does the server speak TLS at this port? Correct the address of {origin}, or write \
             http:// if it speaks none"
        ),
        _ => return None,
    })
}

impl std::fmt::Display for TlsFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TLS handshake failed: {}", self.error)?;
        match &self.advice {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for TlsFailed {}

#[cfg(test)]
mod tests {
    use super::*;

    /// A5 (a half-open connection) over HTTP/1.1: the system probes a silent peer after 30 s, and
    /// closes the connection 15 s later.
    #[tokio::test]
    async fn a5_the_system_notices_a_half_open_connection_within_45_seconds() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        tune(&tcp, Purpose::Requests).unwrap();
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
