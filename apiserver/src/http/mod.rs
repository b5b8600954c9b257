//! Requests over HTTP/1.1 and HTTP/2, on any stream of bytes.
//!
//! A connection has an identity and is served until it ends, the server stops, or a fault cuts it.
//! The meaning of requests is decided elsewhere.

mod authenticate;
mod body;
mod codec;
mod dispatch;
mod exchange;
mod handler;
mod impersonate;
mod json;
mod paths;
mod route;
mod shape;
#[cfg(test)]
pub(crate) mod test_support;
#[cfg(test)]
mod tests;
mod verb;

use std::convert::Infallible;
use std::sync::Arc;

use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::auth::ConnectionIdentity;
use crate::core::Core;

pub(crate) use authenticate::Authentication;

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

/// Serves one connection until it ends or is cut.
pub(crate) async fn serve_connection<I>(core: Arc<Core>, io: I, identity: ConnectionIdentity)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // A child: a fault can cut this connection alone, and a restart cuts all of them.
    let cut = core.connections().child_token();
    let identity = Arc::new(identity);
    let service = service_fn(|request| {
        let (core, identity, cut) = (core.clone(), identity.clone(), cut.clone());
        async move { Ok::<_, Infallible>(handler::handle(core, &identity, &cut, request).await) }
    });
    let mut builder = auto::Builder::new(Tasks(cut.clone()));
    // hyper's Date header shows the real time, which differs between two runs of one seed.
    builder.http1().auto_date_header(false);
    builder.http2().auto_date_header(false);
    let connection = builder.serve_connection(TokioIo::new(io), service);
    tokio::select! {
        biased;
        // First: a connection that is cut answers nothing more, even if an answer is ready.
        () = cut.cancelled() => {}
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        },
    }
    // Tasks of the connection may still run: HTTP/2 streams have tasks of their own.
    cut.cancel();
}
