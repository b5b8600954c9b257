//! Opens TCP connections to the API server, through a proxy if there is one, with TLS unless it is
//! plain HTTP.

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

use super::auth::Credentials;
use super::connect::{BoxIo, Connect, Io, Opened, Opening};
use super::proxy::{self, Proxy};
use super::tls::{Tls, into_io, server_name};
use crate::metrics::Metrics;
use crate::metrics::names::REST_DNS_SECONDS;

/// For name lookup, TCP, the way through a proxy and TLS together. Less than the 10 s in which the
/// answer to a read must begin, so that the error tells what it was that took so long.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);
/// An address of a host that has several is given at least this time.
const LEAST_SHARE: Duration = Duration::from_secs(1);
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
    pub(crate) proxy: Option<Arc<Proxy>>,
    /// For TLS to an `https://` proxy.
    pub(crate) proxy_tls: Option<Arc<ClientConfig>>,
    /// May hand out the client certificate; retires connections of before.
    pub(crate) credentials: Arc<Credentials>,
    /// Where the address and the CA are configured, for error texts.
    pub(crate) origin: String,
    pub(crate) metrics: Metrics,
}

impl Dialer {
    /// A handshake that fails has the certificates looked at, and is tried again if they changed.
    async fn dial(&self, purpose: Purpose) -> io::Result<Opened> {
        let error = match self.dial_once(purpose).await {
            Err(error) if is_tls(&error) => error,
            result => return result,
        };
        match &self.tls {
            Some(tls) if tls.renew_now(|| self.credentials.retire()).await => {
                self.dial_once(purpose).await
            }
            _ => Err(error),
        }
    }

    async fn dial_once(&self, purpose: Purpose) -> io::Result<Opened> {
        match &self.proxy {
            Some(proxy) => {
                let io = self.through(proxy, purpose).await?;
                self.secure(io, purpose).await
            }
            None => self.secure(self.tcp(&self.host, self.port, purpose).await?, purpose).await,
        }
    }

    /// A stream to the API server through `proxy`.
    async fn through(&self, proxy: &Proxy, purpose: Purpose) -> io::Result<BoxIo> {
        let tcp = self.tcp(&proxy.host, proxy.port, purpose).await;
        let tcp = tcp.map_err(|error| proxy::Failed::unreachable(proxy, error))?;
        let io: BoxIo = match &self.proxy_tls {
            Some(config) => {
                let name = server_name(&proxy.host).map_err(into_io)?;
                let stream = TlsConnector::from(Arc::clone(config)).connect(name, tcp).await;
                let failed = |error| proxy::Failed::unreachable(proxy, TlsFailed::new(error, None));
                Box::new(stream.map_err(failed)?)
            }
            None => Box::new(tcp),
        };
        proxy::open(proxy, io, &self.host, self.port).await
    }

    /// TLS over `io`, unless the server speaks plain HTTP.
    async fn secure(&self, io: impl Io + 'static, purpose: Purpose) -> io::Result<Opened> {
        let Some(tls) = &self.tls else {
            return Ok(Opened { io: Box::new(io), http2: false });
        };
        let identity = self.credentials.identity().await.map_err(into_io)?;
        let mut config = tls.config(identity).map_err(into_io)?;
        if purpose == Purpose::Upgrade {
            Arc::make_mut(&mut config).alpn_protocols = vec![b"http/1.1".to_vec()];
        }
        let name = tls.server_name(&self.host).map_err(into_io)?;
        let stream = TlsConnector::from(config).connect(name, io).await.map_err(|error| {
            io::Error::new(error.kind(), TlsFailed::new(error, Some(&self.origin)))
        })?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Opened { io: Box::new(stream), http2 })
    }
}

impl Dialer {
    async fn dial_in_time(&self, purpose: Purpose) -> io::Result<Opened> {
        tokio::time::timeout(CONNECT_TIMEOUT, self.dial(purpose)).await.unwrap_or_else(|_| {
            let seconds = CONNECT_TIMEOUT.as_secs();
            let text = format!("not connected within {seconds} s");
            Err(match &self.proxy {
                Some(proxy) => {
                    let advice = "check that it runs and can reach the API server";
                    proxy::Failed::error(proxy, format_args!("did not help: {text}"), advice)
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

    fn open(&self) -> Opening<'_> {
        Box::pin(self.dial_in_time(Purpose::Requests))
    }

    fn open_http1(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        Box::pin(async { Ok(self.dial_in_time(Purpose::Upgrade).await?.io) })
    }
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Requests and answers, over HTTP/2 if the server speaks it.
    Requests,
    /// One request over HTTP/1.1, whose connection then belongs to its caller.
    Upgrade,
}

impl Dialer {
    async fn tcp(&self, host: &str, port: u16, purpose: Purpose) -> io::Result<TcpStream> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let started = tokio::time::Instant::now();
        let found = tokio::net::lookup_host((host, port)).await;
        self.metrics.observe(&REST_DNS_SECONDS, &[host], started.elapsed());
        tcp(host, found?.collect(), purpose).await
    }
}

/// Tries the host's addresses in the resolver's order; one that does not answer leaves time for the
/// next.
async fn tcp(host: &str, addresses: Vec<SocketAddr>, purpose: Purpose) -> io::Result<TcpStream> {
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
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

/// The innermost cause's text.
pub(super) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn is_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<TlsFailed>())
}

/// What to say when `error` stems from a server whose certificate does not verify: trying again would
/// bring the same certificate.
pub(super) fn untrusted(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // The source of an `io::Error` is that of what it holds.
        let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let tls = held.and_then(|held| held.downcast_ref()).or_else(|| error.downcast_ref());
        if let Some(tls @ TlsFailed { untrusted: true, .. }) = tls {
            return Some(tls.to_string());
        }
        cause = error.source();
    }
    None
}

fn tune(tcp: &TcpStream, purpose: Purpose) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    let socket = SockRef::from(tcp);
    socket.set_tcp_keepalive(&keepalive)?;
    // A program in a container may leave its input unread for long; the kernel would count that as
    // unacknowledged.
    #[cfg(target_os = "linux")]
    if purpose == Purpose::Requests {
        socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
    }
    Ok(())
}

/// Says that it was TLS that failed, in front of rustls' own words.
#[derive(Debug)]
struct TlsFailed {
    error: io::Error,
    /// Does the server's certificate not verify?
    untrusted: bool,
    advice: Option<String>,
}

impl TlsFailed {
    /// With advice for a server that is configured in `origin`.
    fn new(error: io::Error, origin: Option<&str>) -> Self {
        let cause = error.get_ref().and_then(|inner| inner.downcast_ref());
        let untrusted = matches!(cause, Some(rustls::Error::InvalidCertificate(_)));
        let advice = cause.zip(origin).and_then(|(cause, origin)| advice(cause, origin));
        Self { error, untrusted, advice }
    }
}

/// What to do about a handshake that failed.
fn advice(error: &rustls::Error, origin: &str) -> Option<String> {
    use CertificateError as Bad;
    Some(match error {
        // Authorities of the same name, of a cluster that was made anew, differ in their signatures.
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

    /// A5 over HTTP/1.1: the system asks a silent peer after 30 s, and gives it up 15 s later.
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
