//! Who runs a connection of HTTP/1.1: a task of its own, or whoever reads a long answer from it.
//!
//! A connection and the reader of its answer hand over one piece at a time. When both are tasks, each
//! piece costs two changes of tasks, and a watch brings a piece per event: that is more than its
//! event costs otherwise. So a watch takes the connection over, runs it whenever it waits for the
//! next piece, and gives it back at the end.
//!
//! Not here: HTTP/2, whose connections carry many requests and buffer for each.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::client::conn::http1::Connection;
use hyper_util::rt::TokioIo;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use super::connect::BoxIo;
use super::payload::RequestBody;

/// A connection that can be asked for.
#[derive(Clone, Debug)]
pub(super) struct Driver {
    asks: mpsc::Sender<oneshot::Sender<Driven>>,
}

/// A connection, to be run by whoever has it. Dropped, it is closed.
pub(super) struct Driven {
    connection: Pin<Box<Connection<TokioIo<BoxIo>, RequestBody>>>,
    asked: mpsc::Receiver<oneshot::Sender<Driven>>,
    runtime: Handle,
}

impl Driver {
    /// Runs a connection in a task of its own, until its last user is gone or its peer ends it.
    pub(super) fn spawn(connection: Connection<TokioIo<BoxIo>, RequestBody>) -> Self {
        let (asks, asked) = mpsc::channel(1);
        let runtime = Handle::current();
        Driven { connection: Box::pin(connection), asked, runtime }.give_back();
        Self { asks }
    }

    /// Takes the connection over from its task; `None` when it has ended.
    pub(super) async fn take(&self) -> Option<Driven> {
        let (reply, answer) = oneshot::channel();
        self.asks.send(reply).await.ok()?;
        answer.await.ok()
    }
}

impl Driven {
    /// Runs the connection as far as it goes; true when it has ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        match self.connection.as_mut().poll(cx) {
            Poll::Ready(ended) => {
                tell(ended);
                true
            }
            Poll::Pending => false,
        }
    }

    /// Runs it in a task of its own again.
    pub(super) fn give_back(self) {
        let runtime = self.runtime.clone();
        runtime.spawn(self.run());
    }

    async fn run(mut self) {
        loop {
            let reply = tokio::select! {
                biased;
                ended = self.connection.as_mut() => return tell(ended),
                Some(reply) = self.asked.recv() => reply,
            };
            match reply.send(self) {
                Ok(()) => return,
                // Whoever asked is gone.
                Err(back) => self = back,
            }
        }
    }
}

fn tell(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "connection to the API server ended");
    }
}
