//! Requests over HTTP/1.1 and HTTP/2, on anything that reads and writes bytes.
//!
//! A connection brings an identity and is served until it ends, the server stops, or a fault cuts
//! it. What requests mean is decided elsewhere.

pub(crate) mod body;
pub(crate) mod codec;
pub(crate) mod dispatch;
pub(crate) mod handler;
pub(crate) mod paths;
pub(crate) mod route;
#[cfg(test)]
pub(crate) mod testkit;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_apply;
#[cfg(test)]
mod tests_crd;
#[cfg(test)]
mod tests_errors;
#[cfg(test)]
mod tests_faults;
#[cfg(test)]
mod tests_hostile;
#[cfg(test)]
mod tests_watch;

use std::convert::Infallible;
use std::sync::Arc;

use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::auth::Identity;
use crate::core::Core;

/// Runs the tasks of a connection until the connection is cut.
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
                () = cut.cancelled() => {}
                _ = task => {}
            }
        });
    }
}

/// Serves one connection to its end.
pub(crate) async fn serve_connection<I>(core: Arc<Core>, io: I, identity: Identity)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let cut = core.connections().child_token();
    let identity = Arc::new(identity);
    let service = service_fn(|request| {
        let (core, identity, cut) = (core.clone(), identity.clone(), cut.clone());
        async move { Ok::<_, Infallible>(handler::handle(core, &identity, &cut, request).await) }
    });
    let mut builder = auto::Builder::new(Tasks(cut.clone()));
    // hyper's Date header reads the real time, which no seed repeats.
    builder.http1().auto_date_header(false);
    builder.http2().auto_date_header(false);
    let connection = builder.serve_connection(TokioIo::new(io), service);
    tokio::select! {
        biased;
        () = cut.cancelled() => {}
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        },
    }
    cut.cancel();
}
