//! Requests over HTTP/1.1 and HTTP/2, on any stream of bytes.
//!
//! A connection has an identity and is served until it ends, the server stops, or a fault cuts the
//! connection. Over HTTP/1.1 a connection may become a WebSocket, which ends with its session. The
//! meaning of requests is decided elsewhere.

mod authenticate;
mod body;
mod codec;
mod connection;
mod dispatch;
mod exchange;
mod handler;
mod impersonate;
mod json;
mod paths;
mod route;
mod shape;
#[cfg(feature = "websocket")]
mod socket;
#[cfg(not(feature = "websocket"))]
#[path = "socket/without.rs"]
mod socket;
#[cfg(test)]
pub(crate) mod test_support;
#[cfg(test)]
pub(crate) mod tests;
mod verb;
mod warnings;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::auth::ConnectionIdentity;
use crate::core::ServerCore;
use connection::RunningBody;
use socket::Upgrading;

pub(crate) use authenticate::Authentication;
pub(crate) use connection::{Connections, OpenConnection};

/// Longest time from the beginning of a connection, or of the last answer over HTTP/1.1, to the end
/// of the next request's headers; as upstream closes idle connections.
const HEADERS: Duration = Duration::from_secs(90);
/// Most bytes of the headers of a request over HTTP/1.1.
const MOST_HEADERS: usize = 128 * 1024;
/// Time after which a silent connection over HTTP/2 is asked for a sign of life, and the time for
/// the answer.
const ALIVE: Duration = Duration::from_secs(30);

/// Executor of a connection's tasks: ends them when the connection is cut.
#[derive(Clone, Debug)]
struct Tasks(CancellationToken);

impl<F> Executor<F> for Tasks
where
    F: Future + Send + 'static,
{
    fn execute(&self, task: F) {
        let cut = self.0.clone();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                // First: a task that is always ready must not outlive a cut connection.
                () = cut.cancelled() => {}
                _ = task => {}
            }
        });
    }
}

/// Serves an in-memory connection until it ends or is cut.
pub(crate) async fn serve_connection<I>(core: Arc<ServerCore>, io: I, identity: ConnectionIdentity)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // A child: a fault can cut this connection alone, and a restart cuts all of them.
    let cut = core.connections().child_token();
    serve(core, io, identity, cut, None).await;
}

/// Serves a connection of a socket until the connection ends or is cut. Strangers may have opened
/// the connection: headers have deadlines, and the listener may cut the connection while no request
/// runs.
pub(crate) async fn serve_socket<I>(
    core: Arc<ServerCore>,
    io: I,
    identity: ConnectionIdentity,
    cut: CancellationToken,
    connection: &OpenConnection,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    serve(core, io, identity, cut, Some(connection)).await;
}

/// Serves a connection until it ends or is cut.
async fn serve<I>(
    core: Arc<ServerCore>,
    io: I,
    identity: ConnectionIdentity,
    cut: CancellationToken,
    connection: Option<&OpenConnection>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let identity = Arc::new(identity);
    let upgrading: Arc<Mutex<Option<Upgrading>>> = Arc::default();
    let service = service_fn(|mut request| {
        let (core, identity, cut) = (core.clone(), identity.clone(), cut.clone());
        let (running, slot) = (connection.map(OpenConnection::begin), upgrading.clone());
        async move {
            let upgrade = hyper::upgrade::on(&mut request);
            let (answer, session) =
                handler::handle(core, &identity, &cut, running.as_ref(), request).await;
            if let Some(session) = session {
                *slot.lock() = Some(Upgrading { session, upgrade, running });
                return Ok(answer.map(|body| RunningBody::new(body, None)));
            }
            // A watch runs as long as its events are read. Any other answer is made already: a
            // client that does not read the answer must not keep the place of others.
            let running = running.filter(|_| answer.body().is_stream());
            Ok::<_, Infallible>(answer.map(|body| RunningBody::new(body, running)))
        }
    });
    let mut builder = auto::Builder::new(Tasks(cut.clone()));
    if connection.is_some() {
        builder.http1().timer(TokioTimer::new());
        builder.http1().header_read_timeout(HEADERS).max_buf_size(MOST_HEADERS);
        builder.http2().timer(TokioTimer::new());
        builder.http2().keep_alive_interval(ALIVE).keep_alive_timeout(ALIVE);
    }
    // hyper's Date header shows the real time, which differs between two runs of the same seed.
    builder.http1().auto_date_header(false);
    builder.http2().auto_date_header(false);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(io), service);
    let served = async {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
        // Here, and not in a separate task: the session takes the place of the connection.
        let session = upgrading.lock().take();
        if let Some(session) = session {
            session.run().await;
        }
    };
    tokio::select! {
        biased;
        // First: a connection that is cut answers nothing more, even if an answer is ready.
        () = cut.cancelled() => {}
        () = served => {}
    }
    // Tasks of the connection may still run: HTTP/2 streams have tasks of their own.
    cut.cancel();
}
