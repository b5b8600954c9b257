//! The servers of probes, metrics and the debug page: small, bounded, HTTP/1.1 only.
//!
//! The servers have no login, so the detail of an answer depends on the origin of the connection.
//! Errors, identities and the keys of objects are for clients that came over the loopback
//! interface, at both ends: a process of this machine or Pod, `kubectl port-forward`,
//! `kubectl exec`. The origin is read from the connection's own two addresses and not from the
//! listener's, because probes listen on every interface; both must be loopback, because a sidecar
//! may hand the network's connections on from a loopback address (but to the Pod's own address),
//! and a node may be set up to route the network to a loopback address.
//!
//! A browser of this machine comes over loopback, too, on behalf of any page: a page's name may be
//! pointed at 127.0.0.1 ("DNS rebinding"), and then the page may read the answer. The page cannot
//! change the `Host` header, which has that name. So over loopback the debug page, the metrics and
//! the details of probes are for clients that name an IP address or `localhost`.

// DESIGN.md, 80: Probe details are visible only over loopback
// DESIGN.md, 102: Over loopback the debug page requires an IP address or `localhost` as `Host`
// DESIGN.md, 103: At most eight connections are answered with metrics or the debug page

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HOST, RETRY_AFTER};
use http::uri::Authority;
use http::{HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use socket2::{Domain, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tracing::warn;

use super::debug;
use super::health::{OperatorStatus, SharedStatus, print, selected};
use super::process;
use crate::manager::probe::Check;
use windlass_client::client::Io;
use windlass_core::clock::Clock;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::Metrics;

/// Connections served at once. A further connection ends the connection that has waited for a
/// request for longest; when all of them are being answered, the new connection waits.
const CONNECTIONS: usize = 64;
/// Connections that may be answered with metrics or the debug page at once; a further connection is
/// refused. Those answers are long, and a client that does not read the answer keeps the
/// connection, and the server the answer, for [`LIFETIME`]. Answers to probes fit into the kernel's
/// buffers, so the other connections remain for probes.
const READERS: usize = 8;
/// Time in which a client must send the request line and headers; a slower client is cut off.
const HEADERS: Duration = Duration::from_secs(5);
/// Longest time for which a connection is open, so that idle connections cannot starve a probe.
const LIFETIME: Duration = Duration::from_secs(30);

/// Connections that the kernel keeps until they are accepted; tokio's own number.
const BACKLOG: i32 = 1024;

/// Endpoints of a server.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    pub(crate) status: SharedStatus,
    pub(crate) clock: Clock,
    /// Serves `/healthz` and `/readyz`.
    pub(crate) probes: bool,
    /// Serves `/metrics`.
    pub(crate) metrics: Option<Metrics>,
    /// Serves `/debug`.
    pub(crate) debug: bool,
}

type FullResponse = Response<Full<Bytes>>;

/// Listens on `addr`, for the server called `what`.
pub async fn bind(addr: SocketAddr, what: &str) -> Result<TcpListener, Error> {
    let bound = match addr {
        SocketAddr::V6(every) if every.ip().is_unspecified() => bind_all_interfaces(every.port()),
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
fn bind_all_interfaces(port: u16) -> io::Result<TcpListener> {
    let listen = |domain, addr: SocketAddr| {
        let socket = Socket::new(domain, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        if addr.is_ipv6() {
            // The machine's default may be the opposite.
            socket.set_only_v6(false)?;
        }
        // As tokio does: on other systems this would let two programs share a port.
        if cfg!(unix) {
            socket.set_reuse_address(true)?;
        }
        socket.bind(&addr.into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into())
    };
    match listen(Domain::IPV6, (Ipv6Addr::UNSPECIFIED, port).into()) {
        // A port in use is reported: IPv4 alone would hide the conflict.
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
        Err(_) => listen(Domain::IPV4, (Ipv4Addr::UNSPECIFIED, port).into()),
        bound => bound,
    }
}

/// Whether both name the same port of the same interfaces.
pub(crate) fn is_one(one: SocketAddr, other: SocketAddr) -> bool {
    let is_everywhere = one.ip().is_unspecified() && other.ip().is_unspecified();
    one.port() == other.port() && (one.ip() == other.ip() || is_everywhere)
}

/// State of a connection while the server handles its request.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionState {
    /// Whether the connection came over the loopback interface.
    pub(crate) is_local: bool,
    /// Whether the request has been read.
    is_asked: Arc<AtomicBool>,
    /// Permits for readers of long answers.
    readers: Arc<Semaphore>,
    /// The permit that the connection holds until closed.
    permit: Arc<OnceLock<OwnedSemaphorePermit>>,
}

impl ConnectionState {
    /// Creates the state of a connection that has not sent a request yet.
    pub(crate) fn new(is_local: bool, readers: &Arc<Semaphore>) -> Self {
        let readers = Arc::clone(readers);
        Self { is_local, is_asked: Arc::default(), readers, permit: Arc::default() }
    }

    /// Takes a permit for a long answer; returns whether a permit was free.
    fn takes_permit(&self) -> bool {
        let free = Arc::clone(&self.readers).try_acquire_owned();
        free.is_ok_and(|permit| self.permit.set(permit).is_ok())
    }
}

/// Returns the permits for readers of long answers, all free.
pub(crate) fn reader_permits() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(READERS))
}

/// Whether the connection came over the loopback interface, at both ends.
fn is_local(stream: &TcpStream) -> bool {
    let is_loopback = |end: io::Result<SocketAddr>| {
        // A socket for both families reports IPv4 addresses in their IPv6 form.
        end.is_ok_and(|end| end.ip().to_canonical().is_loopback())
    };
    is_loopback(stream.peer_addr()) && is_loopback(stream.local_addr())
}

/// Serves connections for ever.
///
/// # Cancel safety
/// Dropping the future closes the listener and every connection.
pub(crate) async fn serve(listener: TcpListener, endpoints: Endpoints) {
    let mut connections = EndpointConnections::default();
    let permits = reader_permits();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Before the task starts, so that the number of connections never exceeds the
                // bound.
                connections.make_room().await;
                let state = ConnectionState::new(is_local(&stream), &permits);
                connections.add(stream, &endpoints, state);
                // Lets the new task read the request before a further connection could displace it.
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

/// The open connections, oldest first.
#[derive(Default)]
struct EndpointConnections {
    tasks: JoinSet<()>,
    open: VecDeque<ServedConnection>,
}

/// A connection and the task that serves the connection.
struct ServedConnection {
    task: AbortHandle,
    /// Whether the request has been read.
    is_asked: Arc<AtomicBool>,
}

impl EndpointConnections {
    /// Waits until fewer than [`CONNECTIONS`] are open. Cancel safe.
    async fn make_room(&mut self) {
        loop {
            while self.tasks.try_join_next().is_some() {}
            self.open.retain(|connection| !connection.task.is_finished());
            if self.open.len() < CONNECTIONS {
                return;
            }
            // `Relaxed`: a stale value can only end a connection whose request has just been read.
            let is_idle =
                |connection: &ServedConnection| !connection.is_asked.load(Ordering::Relaxed);
            match self.open.iter().position(is_idle).and_then(|at| self.open.remove(at)) {
                Some(idle) => idle.task.abort(),
                // Each connection being answered has a deadline.
                None => drop(self.tasks.join_next().await),
            }
        }
    }

    /// Starts to serve a connection.
    fn add(&mut self, stream: TcpStream, endpoints: &Endpoints, state: ConnectionState) {
        let is_asked = Arc::clone(&state.is_asked);
        let task = self.tasks.spawn(serve_connection(stream, endpoints.clone(), state));
        self.open.push_back(ServedConnection { task, is_asked });
    }
}

/// Serves a connection.
pub(crate) async fn serve_connection(
    stream: impl Io,
    endpoints: Endpoints,
    state: ConnectionState,
) {
    let clock = endpoints.clock.clone();
    // This reference keeps the state alive, so the permit is given up when the connection is
    // closed, not when the answer is ready.
    let asking = state.clone();
    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
        // `Relaxed`: the flag orders no other memory and only marks the connection as not idle.
        asking.is_asked.store(true, Ordering::Relaxed);
        let answer = endpoints.answer(&request, &asking);
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // A single request per connection, so that no idle connection keeps a permit.
        .keep_alive(false)
        .header_read_timeout(HEADERS)
        // Bounds of the memory that any client can make the server use.
        .max_headers(64)
        .max_buf_size(16 * 1024)
        .serve_connection(TokioIo::new(stream), service);
    if let Some(Err(error)) = clock.timeout(LIFETIME, connection).await {
        tracing::debug!(%error, "a probe connection ended early");
    }
    drop(state);
}

impl Endpoints {
    /// Answers a request.
    fn answer<B>(&self, request: &http::Request<B>, state: &ConnectionState) -> FullResponse {
        let (method, uri) = (request.method(), request.uri());
        if method != Method::GET && method != Method::HEAD {
            let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        // Names of checks hold spaces: `cache websites.example.dev`.
        let path = percent_decode_str(uri.path()).decode_utf8_lossy();
        let (endpoint, only) = match path.trim_start_matches('/').split_once('/') {
            Some((endpoint, check)) => (endpoint.to_owned(), Some(check.to_owned())),
            None => (path.trim_start_matches('/').to_owned(), None),
        };
        let in_detail = state.is_local && is_by_address(request);
        let probe = |endpoint, checks| probe(endpoint, checks, only.as_deref(), uri, in_detail);
        match (endpoint.as_str(), &self.metrics) {
            ("healthz" | "livez", _) if self.probes => probe("healthz", self.status.alive()),
            ("readyz", _) if self.probes => probe("readyz", self.status.ready().checks),
            ("metrics", Some(metrics)) if only.is_none() => {
                limited(state, in_detail, || exposition(metrics))
            }
            ("debug", _) if self.debug && only.is_none() => {
                limited(state, in_detail, || debug_page(&self.status, uri))
            }
            ("debug", _) if self.debug && only.as_deref() == Some("recording") => {
                limited(state, in_detail, || recording(&self.status))
            }
            _ => text(StatusCode::NOT_FOUND, format!("nothing is served at {path}\n")),
        }
    }
}

/// Returns an answer that may be long, if the connection may have a long answer.
fn limited(
    state: &ConnectionState,
    in_detail: bool,
    answer: impl FnOnce() -> FullResponse,
) -> FullResponse {
    if state.is_local && !in_detail {
        let why = "over the loopback interface, ask by an IP address or by `localhost`: a web page can \
                   have its own name point here\n";
        return text(StatusCode::FORBIDDEN, why.to_owned());
    }
    // Refused instead of queued: waiting clients would keep their connections.
    if state.takes_permit() {
        return answer();
    }
    let why = format!("{READERS} clients are being answered, which is the most; try again\n");
    let mut busy = text(StatusCode::SERVICE_UNAVAILABLE, why);
    busy.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    busy
}

/// Whether every name that the request gives the server is an IP address or `localhost`.
fn is_by_address<B>(request: &http::Request<B>) -> bool {
    let is_address = |authority: &Authority| {
        let host = authority.host();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok()
    };
    let mut hosts = request.headers().get_all(HOST).iter().peekable();
    hosts.peek().is_some()
        && hosts
            // Every `Host` header counts, and the target as well: an address among them proves
            // nothing.
            .all(|host| Authority::try_from(host.as_bytes()).is_ok_and(|host| is_address(&host)))
        && request.uri().authority().is_none_or(is_address)
}

/// Answers a probe: all checks of an endpoint, or the check named in the path.
fn probe(
    endpoint: &str,
    checks: Vec<Check>,
    only: Option<&str>,
    uri: &Uri,
    in_detail: bool,
) -> FullResponse {
    let only = only.filter(|only| !only.is_empty());
    let parameters = parameters(uri);
    let verbose = parameters.iter().any(|(key, value)| key == "verbose" && value != "false");
    let excluded: Vec<String> = parameters
        .into_iter()
        .filter(|(key, _)| key == "exclude")
        .map(|(_, value)| value)
        .collect();
    let checks = selected(checks, only, &excluded);
    if let (Some(only), true) = (only, checks.is_empty()) {
        return text(StatusCode::NOT_FOUND, format!("{endpoint} has no check {only:?}\n"));
    }
    let (ok, body) = print(endpoint, &checks, verbose, in_detail);
    text(if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, body)
}

/// Returns the query's pairs, decoded.
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

/// Returns the debug page.
fn debug_page(status: &OperatorStatus, uri: &Uri) -> FullResponse {
    let asked = parameters(uri).into_iter().find(|(key, _)| key == "limit");
    let limit = match asked.map(|(_, value)| value.parse::<usize>()) {
        None => debug::LIMIT,
        Some(Ok(limit)) => limit,
        Some(Err(_)) => {
            return text(StatusCode::BAD_REQUEST, "limit must be a number\n".to_owned());
        }
    };
    let body = format!("{:#}\n", debug::dump(status, limit));
    typed(StatusCode::OK, body, "application/json")
}

/// Returns the recording.
fn recording(status: &OperatorStatus) -> FullResponse {
    let Some(recorder) = &status.recorder else {
        let why = "nothing is recorded: start the operator with --record=5m, or set `Manager::recording`\n";
        return text(StatusCode::NOT_FOUND, why.to_owned());
    };
    let mut answer = Response::new(Full::new(recorder.export()));
    let lines = HeaderValue::from_static("application/x-ndjson");
    answer.headers_mut().insert(CONTENT_TYPE, lines);
    answer
}

/// Answers with the metrics of the operator and of the process.
fn exposition(metrics: &Metrics) -> FullResponse {
    let body = metrics.encode();
    // The process metrics go before the end marker.
    let body = match body.strip_suffix("# EOF\n") {
        Some(series) => format!("{series}{}# EOF\n", process::encode()),
        None => body,
    };
    typed(StatusCode::OK, body, "application/openmetrics-text; version=1.0.0; charset=utf-8")
}

fn text(status: StatusCode, body: String) -> FullResponse {
    typed(status, body, "text/plain; charset=utf-8")
}

fn typed(status: StatusCode, body: String, content_type: &'static str) -> FullResponse {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}
