//! The streams of a session as tokio knows them.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::PollSender;

use super::driver::INPUT_CHANNEL;
use super::verdict::End;

/// Bytes that one message carries to the server.
const CHUNK: usize = 32 << 10;

/// Told how the session ended.
pub(super) type Ended = watch::Receiver<Option<End>>;

/// What a command prints to `stdout` or `stderr`.
///
/// It ends when the command has ended. When the session ends otherwise, the last read is an error,
/// so that half of an output does not look like all of it. Dropped, the rest is thrown away.
pub struct OutputReader {
    messages: mpsc::Receiver<Bytes>,
    /// Of the last message, what was not read yet.
    left: Bytes,
    ended: Ended,
}

impl OutputReader {
    /// A reader, and where its messages come from. One message waits for it.
    pub(super) fn new(ended: &Ended) -> (Self, mpsc::Sender<Bytes>) {
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
        while self.left.is_empty() {
            match ready!(self.messages.poll_recv(cx)) {
                Some(message) => self.left = message,
                None => {
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

fn dropped() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the session was dropped")
}

/// What a command reads from `stdin`.
///
/// A write waits while the command does not read; a flush does not wait for it to have read.
/// Shutting it down, or dropping it, tells the command that this is all. Servers before Kubernetes
/// 1.29 cannot be told: there a shutdown is [`Unsupported`](io::ErrorKind::Unsupported), and
/// dropping it says nothing.
pub struct Stdin {
    messages: PollSender<Bytes>,
    half_close: bool,
    ended: Ended,
}

impl Stdin {
    /// A writer, and where its messages go. One message waits to be sent.
    pub(super) fn new(ended: &Ended, half_close: bool) -> (Self, mpsc::Receiver<Bytes>) {
        let (sender, messages) = mpsc::channel(1);
        let messages_in = PollSender::new(sender);
        (Self { messages: messages_in, half_close, ended: ended.clone() }, messages)
    }

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
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.half_close {
            let text = "this server cannot be told that the input has ended: it speaks \
                        v4.channel.k8s.io; drop the session instead";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::Unsupported, text)));
        }
        self.messages.close();
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdin").field("half_close", &self.half_close).finish_non_exhaustive()
    }
}
