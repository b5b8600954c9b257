//! Accept loop: a bounded number of connections, each with a deadline for its handshake.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use super::{Authority, identity, kubeconfig};
use crate::auth::ConnectionIdentity;
use crate::core::Core;
use crate::http::serve_connection;

/// Most connections at once; further ones wait to be accepted.
const CONNECTIONS: usize = 1024;

/// Longest duration of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Longest pause after a failed accept.
const PAUSE: Duration = Duration::from_secs(1);

/// A server that listens on a socket. Its `Debug` shows the address only.
pub struct Listening {
    /// Address of the socket.
    pub addr: SocketAddr,
    /// A kubeconfig for the administrator (client certificate and token, CA inline), as YAML.
    pub kubeconfig: String,
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("addr", &self.addr).finish_non_exhaustive()
    }
}

/// Listens on `addr` until the server stops; `token` is the administrator's.
pub(crate) async fn listen(
    core: Arc<Core>,
    addr: SocketAddr,
    authority: &Authority,
    token: &str,
) -> std::io::Result<Listening> {
    let listener = TcpListener::bind(addr).await.map_err(|error| {
        std::io::Error::new(error.kind(), format!("cannot listen on {addr}: {error}"))
    })?;
    let local = listener.local_addr()?;
    let acceptor = TlsAcceptor::from(Arc::new(authority.server_config()?));
    let kubeconfig = kubeconfig::write(&url(local), authority, token);
    tokio::spawn(accept(core, listener, acceptor));
    Ok(Listening { addr: local, kubeconfig })
}

/// Returns the address for clients; for an unspecified one the loopback address of its family.
fn url(addr: SocketAddr) -> String {
    match addr {
        SocketAddr::V4(a) if a.ip().is_unspecified() => format!("https://127.0.0.1:{}", a.port()),
        SocketAddr::V6(a) if a.ip().is_unspecified() => format!("https://[::1]:{}", a.port()),
        addr => format!("https://{addr}"),
    }
}

/// Accepts connections until the server stops.
async fn accept(core: Arc<Core>, listener: TcpListener, acceptor: TlsAcceptor) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let stop = core.stop.clone();
    let mut pause = Duration::from_millis(5);
    loop {
        // The slot first: a connection is accepted only when it can be served.
        let next = async {
            let slot = slots.clone().acquire_owned().await.ok();
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            // First: a server that stops accepts no further connection.
            () = stop.cancelled() => return,
            next = next => next,
        };
        match (slot, accepted) {
            (Some(slot), Ok((stream, _))) => {
                pause = Duration::from_millis(5);
                // A task of its own: a slow handshake must not hold up other clients.
                tokio::spawn(serve(core.clone(), stream, acceptor.clone(), slot));
            }
            // The semaphore is never closed: this is not reached.
            (None, _) => return,
            (_, Err(error)) => {
                // Typically out of file descriptors: accepting at once would fail again in a busy
                // loop.
                tracing::warn!(%error, "could not accept a connection");
                tokio::select! {
                    biased;
                    // The pause must not delay the stop.
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                pause = (pause * 2).min(PAUSE);
            }
        }
    }
}

/// Makes the handshake and serves the connection; the slot is free again afterwards.
async fn serve(
    core: Arc<Core>,
    stream: TcpStream,
    acceptor: TlsAcceptor,
    _slot: OwnedSemaphorePermit,
) {
    // Events are small and must not wait for an acknowledgement of the previous one.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not turn off Nagle's algorithm");
    }
    // A client that connects and sends nothing must not keep its slot.
    let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
    let stream = tokio::select! {
        biased;
        // Handshakes are not served to the end: the connection would be cut at once.
        () = core.stop.cancelled() => return,
        done = handshake => match done {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => return tracing::debug!("a TLS handshake took too long"),
        },
    };
    // Verified during the handshake, if the client sent any.
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let user = certificates.first().and_then(identity::user_of);
    serve_connection(core, stream, ConnectionIdentity { user }).await;
}
