//! Connections that become a WebSocket and carry a session in place of further requests.
//!
//! A request that wants a WebSocket is authorized and executed like any other, so failures are
//! plain answers. After a success, the handshake is answered 101, and the session runs as part of
//! the connection: with the connection's place among those of the socket, and until a fault cuts
//! the session.

// DESIGN.md, 148: Sessions of the embedded server run in the task of their connection

mod bearer;
mod channels;
mod handshake;
mod pods;
mod spdy;
mod watch;
// The stand-in of a build without the feature is tested beside the real one, without such a build.
#[cfg(test)]
#[allow(dead_code, reason = "the tests call a part of the stand-in")]
mod without;

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Message, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Utf8Bytes};

use super::body::{Payload, Stream};
use super::connection::ActiveRequest;
use super::exchange::{DecodedRequest, Reply};
use crate::status::ApiError;
use crate::verbs::subresources::connect::PodSession;
use channels::{COMMAND, Channels, NEWEST, PORTS};
use pods::PodExchange;
use spdy::TUNNEL;

pub(super) use bearer::token;
pub(super) use handshake::is_wanted;

/// Longest message of a client, in bytes.
const LONGEST: usize = 1024 * 1024;
/// Bytes that are read at once.
const READ: usize = 16 * 1024;
/// Longest time until a client has taken a message.
const WRITE: Duration = Duration::from_secs(60);
/// Longest time between the server's close frame and the client's.
const CLOSE: Duration = Duration::from_secs(1);

/// A connection after the handshake.
type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The content of a WebSocket.
pub(crate) enum SocketSession {
    /// The events of a watch, each in a message; in text messages if `is_text`.
    Watch { stream: Stream, is_text: bool },
    /// A session with a Pod.
    Pod(PodExchange),
}

/// A session and the connection that will carry it.
pub(super) struct Upgrading {
    pub(super) session: SocketSession,
    pub(super) upgrade: OnUpgrade,
    /// The request, which runs as long as the session.
    pub(super) running: Option<ActiveRequest>,
}

/// Reason why the server ends a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionEnd {
    /// Nothing more is to be said.
    Done,
    /// The client has closed, and is answered.
    Closed,
    /// The client broke the protocol, or sent too long a message.
    Broken(CloseCode),
    /// The connection is gone, or the client does not read.
    Lost,
}

impl From<Error> for SessionEnd {
    fn from(error: Error) -> Self {
        match error {
            Error::ConnectionClosed | Error::AlreadyClosed => Self::Closed,
            Error::Capacity(_) => Self::Broken(CloseCode::Size),
            Error::Protocol(_) | Error::Utf8(_) => Self::Broken(CloseCode::Protocol),
            _ => Self::Lost,
        }
    }
}

/// Makes the handshake for a watch over a WebSocket; any other reply stays unchanged.
pub(super) fn upgrade(asked: &DecodedRequest, mut reply: Reply) -> Reply {
    if !is_wanted(&asked.parts) {
        return reply;
    }
    match std::mem::replace(&mut reply.payload, Payload::Whole(None)) {
        Payload::Stream(stream) => {
            let is_text = !reply.media.contains("protobuf");
            handshake::answer_watch(&asked.parts, SocketSession::Watch { stream, is_text })
        }
        payload => Reply { payload, ..reply },
    }
}

/// Makes the handshake for a session with a Pod.
pub(super) fn connect(asked: &DecodedRequest, session: PodSession) -> Result<Reply, ApiError> {
    let request = &asked.parts;
    if !handshake::is_upgrade(request) {
        return Err(ApiError::bad_request("Upgrade request required"));
    }
    let offered = handshake::offered(request);
    let is_newest = is_wanted(request) && offered.contains(&NEWEST);
    let is_spdy = !is_wanted(request);
    let (known, talk): (&[&str], SessionFn) = match session {
        PodSession::Unreachable { inside: Some((command, error)), .. } if is_newest => {
            let mut status = error.body();
            if let Some(fields) = status.as_object_mut() {
                fields.retain(|name, _| name != "kind" && name != "apiVersion");
            }
            (&[NEWEST], Box::new(move |channels| PodExchange::Failed(command, channels, status)))
        }
        PodSession::Unreachable { error, .. } => return Err(error),
        _ if is_spdy => return Err(ApiError::bad_request(SPDY)),
        PodSession::Command(command) if is_newest => {
            (&[NEWEST], Box::new(move |channels| PodExchange::Command(command, channels)))
        }
        PodSession::Command(command) => {
            (COMMAND, Box::new(move |channels| PodExchange::Command(command, channels)))
        }
        PodSession::Ports(_) if offered.contains(&TUNNEL) => {
            (&[TUNNEL], Box::new(|_| PodExchange::Tunnel))
        }
        PodSession::Ports(ports) => {
            (PORTS, Box::new(move |channels| PodExchange::Ports(ports, channels)))
        }
    };
    Ok(handshake::answer_channels(request, known, |protocol| {
        SocketSession::Pod(talk(Channels::of(protocol)))
    }))
}

/// Refusal of the protocol that was before WebSocket.
const SPDY: &str = "the stand-in for a kubelet speaks SPDY within a WebSocket only: use a client that \
                    does, such as kubectl 1.31 or later";

/// A session that waits for the subprotocol.
type SessionFn = Box<dyn FnOnce(Channels) -> PodExchange>;

impl Upgrading {
    /// Runs the session to the end, and closes the connection.
    pub(super) async fn run(self) {
        let Self { session, upgrade, running } = self;
        let upgraded = match upgrade.await {
            Ok(upgraded) => upgraded,
            Err(error) => return tracing::debug!(%error, "a WebSocket ended before it began"),
        };
        let config = WebSocketConfig::default()
            .read_buffer_size(READ)
            // Each message is flushed: the buffer never holds more than a message and a pong.
            .write_buffer_size(0)
            .max_message_size(Some(LONGEST))
            .max_frame_size(Some(LONGEST));
        let io = TokioIo::new(upgraded);
        let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        let end = match session {
            SocketSession::Watch { stream, is_text } => {
                watch::run(&mut socket, stream, is_text).await
            }
            SocketSession::Pod(talk) => pods::run(&mut socket, talk).await,
        };
        close(&mut socket, end).await;
        drop(running);
    }
}

/// Sends a message and waits until the connection has taken it.
async fn send(socket: &mut Socket, message: Message) -> Result<(), SessionEnd> {
    match timeout(WRITE, socket.send(message)).await {
        Ok(sent) => sent.map_err(SessionEnd::from),
        // A client that does not read must not keep a connection for ever.
        Err(_) => Err(SessionEnd::Lost),
    }
}

/// Ends a connection: a close frame, that of the client, and the end of the stream.
async fn close(socket: &mut Socket, end: SessionEnd) {
    let code = match end {
        SessionEnd::Done => Some(CloseCode::Normal),
        SessionEnd::Broken(code) => Some(code),
        SessionEnd::Closed => None,
        SessionEnd::Lost => return,
    };
    let goodbye = async {
        if let Some(code) = code {
            let frame = CloseFrame { code, reason: Utf8Bytes::default() };
            socket.send(Message::Close(Some(frame))).await?;
        }
        // Read to the end: bytes that are left unread would reset the connection, and the client
        // might lose the last message.
        while socket.next().await.is_some_and(|read| read.is_ok()) {}
        socket.get_mut().shutdown().await.map_err(Error::Io)
    };
    if let Ok(Err(error)) = timeout(CLOSE, goodbye).await {
        tracing::debug!(%error, "a WebSocket was not closed in the orderly way");
    }
}

/// Returns a message of bytes that are text, without a check: faults choose their bytes.
fn text(bytes: Bytes) -> Message {
    use tokio_tungstenite::tungstenite::protocol::frame::Frame;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

    Message::Frame(Frame::message(bytes, OpCode::Data(Data::Text), true))
}
