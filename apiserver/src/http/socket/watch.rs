//! A watch over a WebSocket: each event is a message.

use futures_util::StreamExt;
use tokio_tungstenite::tungstenite::protocol::Message;

use super::super::body::Stream;
use super::{SessionEnd, Socket, send, text};

/// Sends events until the watch ends or the client leaves. Messages of the client mean nothing.
pub(super) async fn run(socket: &mut Socket, mut stream: Stream, is_text: bool) -> SessionEnd {
    loop {
        tokio::select! {
            biased;
            // Events first: a client that sends without a pause must not put off the end of the
            // watch.
            frame = stream.next() => {
                let Some(frame) = frame else { return SessionEnd::Done };
                let message = if is_text { text(frame) } else { Message::Binary(frame) };
                if let Err(end) = send(socket, message).await {
                    return end;
                }
            }
            // Also answers pings.
            received = socket.next() => match received {
                None | Some(Ok(Message::Close(_))) => return SessionEnd::Closed,
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.into(),
            },
        }
    }
}
