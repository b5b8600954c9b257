//! The servers of probes, metrics and the debug page: small, bounded, HTTP/1.1 only.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tracing::warn;

use super::debug;
use super::health::{SharedVitals, Vitals, chosen, print};
use super::process;
use crate::client::Io;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind};
use crate::metrics::Metrics;

/// Connections served at once. One more ends the one that has kept its request to itself for longest; when
/// all of them are being answered, it waits.
const CONNECTIONS: usize = 64;
/// A client that takes longer to send its request line and headers is cut off.
const HEADERS: Duration = Duration::from_secs(5);
/// A connection lives so long at most, so that idle ones cannot starve a probe.
const LIFETIME: Duration = Duration::from_secs(30);

/// Connections that the kernel keeps until they are accepted; tokio's own number.
const BACKLOG: i32 = 1024;

/// What one server answers.
#[derive(Clone, Debug)]
pub(super) struct Endpoints {
    pub(super) vitals: SharedVitals,
    pub(super) clock: Clock,
    /// Serves `/healthz` and `/readyz`.
    pub(super) probes: bool,
    /// Serves `/metrics`.
    pub(super) metrics: Option<Metrics>,
    /// Serves `/debug`.
    pub(super) debug: bool,
}

type Answer = Response<Full<Bytes>>;

/// Listens on `addr`, for the server called `what`.
pub(super) async fn bind(addr: SocketAddr, what: &str) -> Result<TcpListener, Error> {
    let bound = match addr {
        SocketAddr::V6(every) if every.ip().is_unspecified() => everywhere(every.port()),
        _ => TcpListener::bind(addr).await,
    };
    bound.map_err(|error| {
        let text = format!(
            "cannot serve {what} on {addr}: {error}; choose another address, or turn it off (the value 0 on the command line)"
        );
        Error::new(ErrorKind::Config, text).because(error)
    })
}

/// Listens on every interface, by IPv6 and IPv4; on a machine without IPv6 by IPv4 alone.
fn everywhere(port: u16) -> io::Result<TcpListener> {
    let listen = |domain, addr: SocketAddr| {
        let socket = Socket::new(domain, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        if addr.is_ipv6() {
            // Whatever the machine's default is.
            socket.set_only_v6(false)?;
        }
        // As tokio has it: elsewhere that would let two programs have one port.
        if cfg!(unix) {
            socket.set_reuse_address(true)?;
        }
        socket.bind(&addr.into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into())
    };
    match listen(Domain::IPV6, (Ipv6Addr::UNSPECIFIED, port).into()) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
        Err(_) => listen(Domain::IPV4, (Ipv4Addr::UNSPECIFIED, port).into()),
        bound => bound,
    }
}

/// Do both name the same port of the same interfaces?
pub(super) fn is_one(one: SocketAddr, other: SocketAddr) -> bool {
    let is_everywhere = one.ip().is_unspecified() && other.ip().is_unspecified();
    one.port() == other.port() && (one.ip() == other.ip() || is_everywhere)
}

/// Serves connections for ever.
///
/// # Cancel safety
/// Dropping it closes the listener and every connection.
pub(super) async fn serve(listener: TcpListener, endpoints: Endpoints) {
    let mut connections = Connections::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.make_room().await;
                connections.add(stream, &endpoints);
                // It is looked at before it could have to go for another.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                // Out of file descriptors, most likely: waiting is all that helps.
                warn!(%error, "cannot accept a connection");
                endpoints.clock.sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// What is being served, oldest first.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    open: VecDeque<Connection>,
}

struct Connection {
    task: AbortHandle,
    /// Has its request been read?
    is_asked: Arc<AtomicBool>,
}

impl Connections {
    /// Comes back when fewer than [`CONNECTIONS`] are open. Cancel safe.
    async fn make_room(&mut self) {
        loop {
            while self.tasks.try_join_next().is_some() {}
            self.open.retain(|connection| !connection.task.is_finished());
            if self.open.len() < CONNECTIONS {
                return;
            }
            let is_idle = |connection: &Connection| !connection.is_asked.load(Ordering::Relaxed);
            match self.open.iter().position(is_idle).and_then(|at| self.open.remove(at)) {
                Some(idle) => idle.task.abort(),
                // Each has a deadline.
                None => drop(self.tasks.join_next().await),
            }
        }
    }

    fn add(&mut self, stream: TcpStream, endpoints: &Endpoints) {
        let is_asked = Arc::new(AtomicBool::new(false));
        let task = self.tasks.spawn(converse(stream, endpoints.clone(), is_asked.clone()));
        self.open.push_back(Connection { task, is_asked });
    }
}

/// Serves one connection; `is_asked` becomes true when its request has been read.
pub(super) async fn converse(stream: impl Io, endpoints: Endpoints, is_asked: Arc<AtomicBool>) {
    let clock = endpoints.clock.clone();
    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
        is_asked.store(true, Ordering::Relaxed);
        let answer = endpoints.answer(request.method(), request.uri());
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .header_read_timeout(HEADERS)
        .max_headers(64)
        .max_buf_size(16 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    if let Some(Err(error)) = clock.within(LIFETIME, connection).await {
        tracing::debug!(%error, "a probe connection ended early");
    }
}

impl Endpoints {
    fn answer(&self, method: &Method, uri: &Uri) -> Answer {
        if method != Method::GET && method != Method::HEAD {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let path = percent_decode_str(uri.path()).decode_utf8_lossy();
        let (endpoint, only) = match path.trim_start_matches('/').split_once('/') {
            Some((endpoint, check)) => (endpoint.to_owned(), Some(check.to_owned())),
            None => (path.trim_start_matches('/').to_owned(), None),
        };
        match (endpoint.as_str(), &self.metrics) {
            ("healthz" | "livez", _) if self.probes => {
                probe("healthz", self.vitals.alive(), only.as_deref(), uri)
            }
            ("readyz", _) if self.probes => {
                probe("readyz", self.vitals.ready().checks, only.as_deref(), uri)
            }
            ("metrics", Some(metrics)) if only.is_none() => exposition(metrics),
            ("debug", _) if self.debug && only.is_none() => inside(&self.vitals, uri),
            _ => text(StatusCode::NOT_FOUND, format!("nothing is served at {path}\n")),
        }
    }
}

fn probe(endpoint: &str, checks: Vec<super::Check>, only: Option<&str>, uri: &Uri) -> Answer {
    let only = only.filter(|only| !only.is_empty());
    let parameters = parameters(uri);
    let verbose = parameters.iter().any(|(key, value)| key == "verbose" && value != "false");
    let excluded: Vec<String> = parameters
        .into_iter()
        .filter(|(key, _)| key == "exclude")
        .map(|(_, value)| value)
        .collect();
    let checks = chosen(checks, only, &excluded);
    if let (Some(only), true) = (only, checks.is_empty()) {
        return text(StatusCode::NOT_FOUND, format!("{endpoint} has no check {only:?}\n"));
    }
    let (ok, body) = print(endpoint, &checks, verbose);
    text(if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, body)
}

/// The query's pairs, decoded.
fn parameters(uri: &Uri) -> Vec<(String, String)> {
    let decode =
        |part: &str| percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned();
    let pairs = uri.query().unwrap_or_default().split('&');
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(key), decode(value))
    };
    pairs.map(pair).collect()
}

/// The debug page.
fn inside(vitals: &Vitals, uri: &Uri) -> Answer {
    let asked = parameters(uri).into_iter().find(|(key, _)| key == "limit");
    let limit = match asked.map(|(_, value)| value.parse::<usize>()) {
        None => debug::LIMIT,
        Some(Ok(limit)) => limit,
        Some(Err(_)) => {
            return text(StatusCode::BAD_REQUEST, "limit must be a number\n".to_owned());
        }
    };
    let body = format!("{:#}\n", debug::dump(vitals, limit));
    typed(StatusCode::OK, body, "application/json")
}

fn exposition(metrics: &Metrics) -> Answer {
    let body = metrics.encode();
    let body = match body.strip_suffix("# EOF\n") {
        Some(series) => format!("{series}{}# EOF\n", process::encode()),
        None => body,
    };
    typed(StatusCode::OK, body, "application/openmetrics-text; version=1.0.0; charset=utf-8")
}

fn text(status: StatusCode, body: String) -> Answer {
    typed(status, body, "text/plain; charset=utf-8")
}

fn typed(status: StatusCode, body: String, content_type: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}
