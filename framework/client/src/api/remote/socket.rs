//! A WebSocket over a polled stream.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite;
use tungstenite::protocol::{Message, Role, WebSocketConfig, WebSocketContext};

use crate::client::BoxIo;

/// Largest accepted message, in a single frame or several. Servers send 32 KiB at once.
pub(super) const MESSAGE_LIMIT: usize = 4 << 20;
/// Size of the read buffer in bytes: the size of a server's message.
const READ_BUFFER: usize = 32 << 10;
/// Most buffered bytes; a message of the client and a few control frames fit.
const WRITE_LIMIT: usize = 256 << 10;

/// A WebSocket: frames, fragments, masks, pongs and the closing handshake.
pub(super) struct Socket {
    io: BoxIo,
    context: WebSocketContext,
}

impl Socket {
    pub(super) fn new(io: BoxIo, role: Role) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(WRITE_LIMIT / 2)
            // Beyond this a write fails instead of growing the buffer.
            .max_write_buffer_size(WRITE_LIMIT)
            .max_message_size(Some(MESSAGE_LIMIT))
            .max_frame_size(Some(MESSAGE_LIMIT));
        Self { io, context: WebSocketContext::new(role, Some(config)) }
    }

    /// Reads the next message. Pings are answered, and returned as well.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<tungstenite::Result<Message>> {
        pending(self.context.read(&mut PollIo { io: &mut self.io, cx }))
    }

    /// Ready when all sent bytes are written to the stream.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<tungstenite::Result<()>> {
        pending(self.context.flush(&mut PollIo { io: &mut self.io, cx }))
    }

    /// Puts a message into the buffer, which must have been flushed.
    pub(super) fn start_send(
        &mut self,
        cx: &mut Context<'_>,
        message: Message,
    ) -> tungstenite::Result<()> {
        match pending(self.context.write(&mut PollIo { io: &mut self.io, cx }, message)) {
            Poll::Ready(result) => result,
            // The message is in the buffer, which `poll_flush` writes.
            Poll::Pending => Ok(()),
        }
    }

    /// Sends a close frame, if that is possible without waiting.
    pub(super) fn close(&mut self, cx: &mut Context<'_>) {
        if let Err(error) = self.context.close(&mut PollIo { io: &mut self.io, cx }, None) {
            tracing::trace!(%error, "a WebSocket was closed without good-bye");
        }
    }
}

/// Turns `WouldBlock` into `Pending`.
fn pending<T>(result: tungstenite::Result<T>) -> Poll<tungstenite::Result<T>> {
    match result {
        Err(tungstenite::Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
            Poll::Pending
        }
        result => Poll::Ready(result),
    }
}

/// A polled stream as a blocking one that returns `WouldBlock`; the task is woken when progress is
/// possible.
struct PollIo<'a, 'b> {
    io: &'a mut BoxIo,
    cx: &'a mut Context<'b>,
}

impl Read for PollIo<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(into);
        match Pin::new(&mut *self.io).poll_read(self.cx, &mut buffer) {
            Poll::Ready(result) => result.map(|()| buffer.filled().len()),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for PollIo<'_, '_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match Pin::new(&mut *self.io).poll_write(self.cx, from) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match Pin::new(&mut *self.io).poll_flush(self.cx) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}
