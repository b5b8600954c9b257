//! The driver of an HTTP/1.1 connection: a separate task, or the reader of a watch.
//!
//! A connection and the reader of its answer hand over a single chunk at a time. If both are tasks,
//! each chunk costs two task switches, and a watch receives a chunk per event: the switches would
//! cost more than the rest of the event. So a watch takes the connection over, drives it while
//! waiting for the next chunk, and returns it at the end.
//!
//! Not included: HTTP/2, whose connections carry many requests and buffer for each.

// DESIGN.md, 95: Self-wake-ups of a watch task are suppressed

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::client::conn::http1::Connection;
use hyper_util::rt::TokioIo;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::connect::BoxIo;
use super::payload::RequestBody;

/// Handle by which a connection can be taken over from its task.
#[derive(Clone, Debug)]
pub(in crate::client) struct Driver {
    /// Channel to the driving task, by which the connection is requested.
    takeover_tx: mpsc::Sender<oneshot::Sender<Driven>>,
}

/// A connection without a task; the owner has to poll the connection. Dropping this value closes
/// the connection.
pub(in crate::client) struct Driven {
    connection: Pin<Box<Connection<TokioIo<BoxIo>, RequestBody>>>,
    /// Requests for the connection; each holds the channel for the reply.
    takeover_rx: mpsc::Receiver<oneshot::Sender<Driven>>,
    /// Runtime of the driving task.
    runtime: Handle,
}

impl Driver {
    /// Drives a connection in a separate task, until the last user is gone or the peer closes the
    /// connection.
    pub(in crate::client) fn spawn(connection: Connection<TokioIo<BoxIo>, RequestBody>) -> Self {
        let (takeover_tx, takeover_rx) = mpsc::channel(1);
        let runtime = Handle::current();
        Driven { connection: Box::pin(connection), takeover_rx, runtime }.give_back();
        Self { takeover_tx }
    }

    /// Takes the connection over from the task; `None` when it has ended.
    pub(in crate::client) async fn take(&self) -> Option<Driven> {
        let (reply_tx, reply_rx) = oneshot::channel();
        self.takeover_tx.send(reply_tx).await.ok()?;
        reply_rx.await.ok()
    }
}

impl Driven {
    /// Drives the connection as far as possible; returns true when the connection has ended.
    pub(in crate::client) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        match self.connection.as_mut().poll(cx) {
            Poll::Ready(ended) => {
                log_end(ended);
                true
            }
            Poll::Pending => false,
        }
    }

    /// Moves the connection into a separate task again.
    pub(in crate::client) fn give_back(self) {
        // Spawned by handle: a body may be polled outside of the runtime's context.
        let runtime = self.runtime.clone();
        runtime.spawn(self.run());
    }

    /// Drives the connection until it ends or is taken over.
    async fn run(mut self) {
        loop {
            let reply = tokio::select! {
                biased;
                // Biased: a connection that has ended is not handed over any more.
                ended = self.connection.as_mut() => return log_end(ended),
                Some(reply) = self.takeover_rx.recv() => reply,
            };
            match reply.send(self) {
                Ok(()) => return,
                // The taker was cancelled: the request is dropped.
                Err(back) => self = back,
            }
        }
    }
}

/// Logs the error with which a connection ended.
fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "connection to the API server ended");
    }
}
