//! The accept loop: a bounded number of connections, each with a deadline for its handshake.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use super::{Authority, identity, kubeconfig};
use crate::Listening;
use crate::auth::Identity;
use crate::core::Core;
use crate::http::serve_connection;

/// Connections at once; further ones wait to be accepted.
const CONNECTIONS: usize = 1024;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Longest pause after accepting has failed.
const PAUSE: Duration = Duration::from_secs(1);

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

/// The address for clients; one that means "everywhere" is reached on this machine.
fn url(addr: SocketAddr) -> String {
    match addr {
        SocketAddr::V4(a) if a.ip().is_unspecified() => format!("https://127.0.0.1:{}", a.port()),
        SocketAddr::V6(a) if a.ip().is_unspecified() => format!("https://[::1]:{}", a.port()),
        addr => format!("https://{addr}"),
    }
}

async fn accept(core: Arc<Core>, listener: TcpListener, acceptor: TlsAcceptor) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let stop = core.stop.clone();
    let mut pause = Duration::from_millis(5);
    loop {
        let next = async {
            let slot = slots.clone().acquire_owned().await.ok();
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            next = next => next,
        };
        match (slot, accepted) {
            (Some(slot), Ok((stream, _))) => {
                pause = Duration::from_millis(5);
                tokio::spawn(serve(core.clone(), stream, acceptor.clone(), slot));
            }
            (None, _) => return,
            (_, Err(error)) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(pause) => {}
                }
                pause = (pause * 2).min(PAUSE);
            }
        }
    }
}

async fn serve(
    core: Arc<Core>,
    stream: TcpStream,
    acceptor: TlsAcceptor,
    _slot: OwnedSemaphorePermit,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not turn off Nagle's algorithm");
    }
    let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
    let stream = tokio::select! {
        biased;
        () = core.stop.cancelled() => return,
        done = handshake => match done {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => return tracing::debug!("a TLS handshake took too long"),
        },
    };
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let user = certificates.first().and_then(identity::user_of);
    serve_connection(core, stream, Identity { user }).await;
}
