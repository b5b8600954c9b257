//! Accept loop: a bounded number of connections, each with a deadline for the handshake.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::UnixTime;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::clients::Clients;
use super::{Authority, kubeconfig};
use crate::core::ServerCore;
use crate::http::{Connections, serve_socket};
use crate::verbs::bootstrap;

/// Most connections at once; a further connection takes the place of the connection that has been
/// idle the longest.
const CONNECTIONS: usize = 1024;

/// Time after which a full server looks for an idle connection again.
const AGAIN: Duration = Duration::from_millis(100);

/// Longest duration of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Longest pause after a failed accept.
const PAUSE: Duration = Duration::from_secs(1);

/// A server that listens on a socket. The `Debug` output shows the address only.
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

/// Listens on `addr` until the server stops; `token` is the administrator's, `more` are names and
/// tokens of further users.
pub(crate) async fn listen(
    core: Arc<ServerCore>,
    addr: SocketAddr,
    authority: &Authority,
    token: &str,
    more: &[(String, String)],
) -> std::io::Result<Listening> {
    let listener = TcpListener::bind(addr).await.map_err(|error| {
        std::io::Error::new(error.kind(), format!("cannot listen on {addr}: {error}"))
    })?;
    let local = listener.local_addr()?;
    let clients = authority.clients()?;
    let acceptor = TlsAcceptor::from(Arc::new(authority.server_config(clients.clone())?));
    let reached = reached(local);
    let kubeconfig = kubeconfig::write(&format!("https://{reached}"), authority, token, more);
    // Before the first client, because it may look for the address at once.
    bootstrap::advertise(&core, reached);
    tokio::spawn(accept(core, listener, acceptor, clients));
    Ok(Listening { addr: local, kubeconfig })
}

/// Returns the address for clients; for an unspecified address the loopback address of the family.
fn reached(mut addr: SocketAddr) -> SocketAddr {
    if addr.ip().is_unspecified() {
        let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        addr.set_ip(loopback[usize::from(addr.is_ipv6())]);
    }
    addr
}

/// State that all connections of a socket share.
#[derive(Clone)]
struct Socket {
    core: Arc<ServerCore>,
    acceptor: TlsAcceptor,
    clients: Arc<Clients>,
    connections: Arc<Connections>,
    slots: Arc<Semaphore>,
}

impl Socket {
    /// Waits for a slot. When all are taken, the connection that has been idle the longest is cut.
    async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            if let Ok(slot) = self.slots.clone().try_acquire_owned() {
                return Some(slot);
            }
            // If a request runs on each of them, the wait below is for the end of a request.
            self.connections.cut_idle();
            let slot = tokio::time::timeout(AGAIN, self.slots.clone().acquire_owned());
            if let Ok(slot) = slot.await {
                return slot.ok();
            }
        }
    }
}

/// Accepts connections until the server stops.
async fn accept(
    core: Arc<ServerCore>,
    listener: TcpListener,
    acceptor: TlsAcceptor,
    clients: Arc<Clients>,
) {
    let stop = core.stop.clone();
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let socket = Socket { core, acceptor, clients, connections: Arc::default(), slots };
    let mut pause = Duration::from_millis(5);
    loop {
        // The connection first: an idle connection is cut only for one that is present.
        let next = async {
            let accepted = listener.accept().await;
            let slot = if accepted.is_ok() { socket.slot().await } else { None };
            (slot, accepted)
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
                // A separate task: a slow handshake must not hold up other clients.
                tokio::spawn(serve(socket.clone(), stream, slot));
            }
            // The semaphore is never closed: this is not reached.
            (None, Ok(_)) => return,
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
async fn serve(socket: Socket, stream: TcpStream, _slot: OwnedSemaphorePermit) {
    let Socket { core, acceptor, clients, connections, .. } = socket;
    // A child: a fault can cut this connection alone, and a restart cuts all of them.
    let cut: CancellationToken = core.connections().child_token();
    // Counted before the handshake, during which the connection is idle.
    let connection = connections.open(cut.clone());
    // Events are small and must not wait for an acknowledgement of the previous event.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not turn off Nagle's algorithm");
    }
    // A client that connects and sends nothing must not keep the slot.
    let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
    let stream = tokio::select! {
        biased;
        // Handshakes are not served to the end: the connection would be cut at once.
        () = cut.cancelled() => return,
        done = handshake => match done {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => return tracing::debug!("a TLS handshake took too long"),
        },
    };
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    // By the clock of the server, which also dates the certificates that a signer issues.
    let now = Duration::from_secs(u64::try_from(core.clock.seconds()).unwrap_or(0));
    let identity = clients.identity(certificates, UnixTime::since_unix_epoch(now));
    serve_socket(core, stream, identity, cut, &connection).await;
}
