//! The streams of a session as tokio's traits.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::PollSender;

use super::driver::INPUT_CHANNEL;
use super::verdict::SessionEnd;

/// Most bytes in a single message to the server.
const CHUNK: usize = 32 << 10;

/// Receives the end of the session.
pub(super) type EndReceiver = watch::Receiver<Option<SessionEnd>>;

/// Output of a command, from `stdout` or `stderr`.
///
/// The stream ends when the command has ended. When the session ends otherwise, the last read is an
/// error, so that a truncated output does not look complete. After a drop, the rest is discarded.
pub struct OutputReader {
    messages: mpsc::Receiver<Bytes>,
    /// Unread part of the last message.
    left: Bytes,
    ended: EndReceiver,
}

impl OutputReader {
    /// Creates a reader, and the sender of its messages. At most one message waits for the reader.
    pub(super) fn new(ended: &EndReceiver) -> (Self, mpsc::Sender<Bytes>) {
        // A single message: a slow reader makes the server wait.
        let (sender, messages) = mpsc::channel(1);
        (Self { messages, left: Bytes::new(), ended: ended.clone() }, sender)
    }
}

impl AsyncRead for OutputReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Empty messages are skipped: a read of no bytes would mean the end.
        while self.left.is_empty() {
            match ready!(self.messages.poll_recv(cx)) {
                Some(message) => self.left = message,
                None => {
                    // The driver publishes the end before dropping the senders.
                    return Poll::Ready(match &*self.ended.borrow() {
                        Some(end) => end.at_end_of_stream(),
                        None => Err(dropped()),
                    });
                }
            }
        }
        let length = self.left.len().min(into.remaining());
        into.put_slice(&self.left[..length]);
        self.left.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for OutputReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutputReader").field("ended", &*self.ended.borrow()).finish_non_exhaustive()
    }
}

/// The error for a reader whose session was dropped.
fn dropped() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the session was dropped")
}

/// Input of a command, its `stdin`.
///
/// A write waits while the command does not read; a flush does not wait until the command has read.
/// A shutdown or a drop ends the command's input. Servers before Kubernetes 1.29 have no message
/// for that: a shutdown is [`Unsupported`](io::ErrorKind::Unsupported) then, and a drop has no
/// effect.
pub struct Stdin {
    messages: PollSender<Bytes>,
    half_close: bool,
    ended: EndReceiver,
}

impl Stdin {
    /// Creates a writer, and the receiver of the writer's messages. A single message waits to be
    /// sent.
    pub(super) fn new(ended: &EndReceiver, half_close: bool) -> (Self, mpsc::Receiver<Bytes>) {
        // A single message: a slow server makes the writer wait.
        let (sender, messages) = mpsc::channel(1);
        let messages_in = PollSender::new(sender);
        (Self { messages: messages_in, half_close, ended: ended.clone() }, messages)
    }

    /// The error for a write after the end.
    fn closed(&self) -> io::Error {
        match &*self.ended.borrow() {
            Some(end) => end.broken_pipe(io::ErrorKind::BrokenPipe),
            None => io::Error::new(io::ErrorKind::BrokenPipe, "the input was closed"),
        }
    }
}

impl AsyncWrite for Stdin {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        if from.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if ready!(self.messages.poll_reserve(cx)).is_err() {
            return Poll::Ready(Err(self.closed()));
        }
        let length = from.len().min(CHUNK);
        let mut message = Vec::with_capacity(length + 1);
        message.push(INPUT_CHANNEL);
        message.extend_from_slice(&from[..length]);
        Poll::Ready(match self.messages.send_item(message.into()) {
            Ok(()) => Ok(length),
            Err(_) => Err(self.closed()),
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The driver sends accepted bytes without a flush.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.half_close {
            let text = "the server speaks v4.channel.k8s.io, which cannot signal the end of input; drop \
                        the session instead";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::Unsupported, text)));
        }
        // The driver finds the end of the channel behind the last message, and reports that end.
        self.messages.close();
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdin").field("half_close", &self.half_close).finish_non_exhaustive()
    }
}
