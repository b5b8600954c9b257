//! Tunnels through a proxy, over a stream to the proxy.
//!
//! Both handshakes are bounded in size by their libraries and in time by the dialer.

// DESIGN.md, 20: Every proxy is used as a tunnel

use std::fmt;
use std::io;
use std::pin::pin;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::client::legacy::connect::proxy::SocksV5;
use hyper_util::rt::TokioIo;
use tower::{Service, service_fn};
use zeroize::Zeroizing;

use super::{Proxy, Scheme};
use crate::client::transport::connect::BoxIo;

/// Largest head of an answer to `CONNECT`.
const HEAD_LIMIT: usize = 16 << 10;
/// Largest sum of the lengths of user, password and host name that the SOCKS5 library accepts.
const SOCKS_ROOM: usize = 240;

/// Error in which a proxy is involved. The text is complete, because callers print the innermost
/// cause; the text never contains user or password.
#[derive(Debug)]
pub(crate) struct ProxyError(String);

impl ProxyError {
    /// Returns an error with text; `what` describes the proxy's failure, `advice` the remedy.
    pub(crate) fn error(proxy: &Proxy, what: impl fmt::Display, advice: &str) -> io::Error {
        io::Error::other(Self(format!("the proxy {} {what}; {advice}", proxy.described())))
    }

    /// Returns the error of a failed connection to the proxy.
    pub(crate) fn unreachable(proxy: &Proxy, why: impl fmt::Display) -> io::Error {
        let advice = "correct or remove it, or reach the API server without it (NO_PROXY for a \
                      proxy of the environment)";
        Self::error(proxy, format_args!("cannot be reached: {why}"), advice)
    }
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProxyError {}

/// Lets `proxy`, at the other end of `io`, connect to `host` (with brackets for an IPv6 address).
///
/// # Errors
/// [`ProxyError`], within an `io::Error`.
pub(crate) async fn open(proxy: &Proxy, io: BoxIo, host: &str, port: u16) -> io::Result<BoxIo> {
    let target = format!("{host}:{port}");
    match proxy.scheme {
        Scheme::Http | Scheme::Https => connect(proxy, io, &target).await,
        Scheme::Socks5 => socks5(proxy, io, &target).await,
    }
}

/// Opens a tunnel by `CONNECT`.
async fn connect(proxy: &Proxy, io: BoxIo, target: &str) -> io::Result<BoxIo> {
    let garbled = |why: hyper::Error| {
        let why = innermost(&why);
        let advice = "is it an HTTP proxy, and is its scheme (http, https, socks5) the right one?";
        ProxyError::error(proxy, format_args!("gave no answer to CONNECT {target}: {why}"), advice)
    };
    let request = request(proxy, target)?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_LIMIT)
        .handshake::<_, Empty<Bytes>>(TokioIo::new(io))
        .await
        .map_err(garbled)?;
    let exchange = async move {
        let response = sender.send_request(request).await.map_err(garbled)?;
        match response.status() {
            status if status.is_success() => hyper::upgrade::on(response).await.map_err(garbled),
            status => Err(refused(proxy, target, status)),
        }
    };
    // The connection makes progress only while polled, and ends once the connection has become a
    // tunnel.
    let (mut exchange, connection) = (pin!(exchange), pin!(connection.with_upgrades()));
    let upgraded = tokio::select! {
        biased;
        // Biased: an answer counts even if the proxy closed the connection right after the answer.
        upgraded = &mut exchange => upgraded?,
        _ = connection => exchange.await?,
    };
    let parts = upgraded.downcast::<TokioIo<BoxIo>>().map_err(|_| {
        io::Error::other("the tunnel through a proxy is of a type that was not expected")
    })?;
    if !parts.read_buf.is_empty() {
        // In TLS and in HTTP the client speaks first, so these bytes cannot come from the API
        // server.
        let advice = "it may not be an HTTP proxy";
        return Err(ProxyError::error(
            proxy,
            "sent something behind its answer to CONNECT",
            advice,
        ));
    }
    Ok(parts.io.into_inner())
}

/// Builds the `CONNECT` request.
fn request(proxy: &Proxy, target: &str) -> io::Result<Request<Empty<Bytes>>> {
    let mut request = Request::new(Empty::new());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = target.parse::<Uri>().map_err(io::Error::other)?;
    let host = HeaderValue::from_str(target).map_err(io::Error::other)?;
    request.headers_mut().insert(HOST, host);
    if let Some((user, password)) = &proxy.login {
        let plain = Zeroizing::new(format!("{user}:{}", password.expose()));
        let text = Zeroizing::new(format!("Basic {}", STANDARD.encode(plain.as_bytes())));
        let mut header = HeaderValue::from_str(&text).map_err(io::Error::other)?;
        // Keeps the password out of logs and `Debug` output.
        header.set_sensitive(true);
        request.headers_mut().insert(PROXY_AUTHORIZATION, header);
    }
    Ok(request)
}

/// Returns the error of a refused `CONNECT`.
fn refused(proxy: &Proxy, target: &str, status: StatusCode) -> io::Error {
    let advice = match (status, &proxy.login) {
        (StatusCode::PROXY_AUTHENTICATION_REQUIRED, None) => {
            "it wants a user and a password: write them into its URL (http://user:password@host)"
        }
        (StatusCode::PROXY_AUTHENTICATION_REQUIRED, Some(_)) => {
            "it refuses the user and password of its URL: correct them"
        }
        (status, _) if status.is_server_error() => {
            "it could not reach the API server: check that the address is right and that the proxy \
             can resolve and reach it"
        }
        _ => "ask its administrator to allow this destination, or reach it without the proxy",
    };
    ProxyError::error(proxy, format_args!("answered {status} to CONNECT {target}"), advice)
}

/// Opens a tunnel by SOCKS5.
async fn socks5(proxy: &Proxy, io: BoxIo, target: &str) -> io::Result<BoxIo> {
    let room =
        proxy.login.as_ref().map_or(0, |(user, password)| user.len() + password.expose().len());
    // Checked here, because the library's buffer has a fixed size.
    if room + target.len() > SOCKS_ROOM {
        let advice = "use shorter ones, or an HTTP proxy";
        return Err(ProxyError::error(
            proxy,
            "takes no user, password and host name so long",
            advice,
        ));
    }
    let mut stream = Some(TokioIo::new(io));
    let inner = service_fn(move |_: Uri| {
        let taken = stream.take().ok_or_else(|| io::Error::other("there is one stream only"));
        std::future::ready(taken)
    });
    let destination = Uri::builder().scheme("https").authority(target).path_and_query("/");
    let destination = destination.build().map_err(io::Error::other)?;
    let mut socks = SocksV5::new(destination.clone(), inner);
    if let Some((user, password)) = &proxy.login {
        socks = socks.with_auth(user.clone(), password.expose().to_owned());
    }
    match socks.call(destination).await {
        Ok(stream) => Ok(stream.into_inner()),
        Err(error) => {
            let advice = "check its scheme, the user and password of its URL, and that it may and \
                          can reach the API server";
            let what = format_args!("made no connection to {target}: {error}");
            Err(ProxyError::error(proxy, what, advice))
        }
    }
}

/// Returns the text of the innermost cause.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
