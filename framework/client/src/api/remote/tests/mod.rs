//! A server that speaks the protocol, over pipes on a paused clock and over loopback TCP.

mod flow;
mod handshake;
mod ports;
mod sessions;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use k8s_openapi::api::core::v1::Pod;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::{Message, Role};

use super::session::{V4, V5};
use super::socket::Socket;
use super::*;
use crate::api::Api;
use crate::client::{BoxIo, Client, Connect};
use windlass_core::environment::Environment;
use windlass_core::error::ErrorKind;
use windlass_core::rng::Rng;

const SUCCESS: &str = r#"{"metadata":{},"status":"Success"}"#;
const CODE_3: &str = r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: exit status 3","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}"#;

type ServerFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Opens pipes to a server that is a function.
struct Door {
    serve: Box<dyn Fn(BoxIo) -> ServerFuture + Send + Sync>,
    connections: AtomicU32,
    /// Number of connections that are refused first.
    refusals: AtomicU32,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

impl Door {
    fn to<F: Future<Output = ()> + Send + 'static>(
        serve: impl Fn(BoxIo) -> F + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            serve: Box::new(move |io| Box::pin(serve(io))),
            connections: AtomicU32::new(0),
            refusals: AtomicU32::new(0),
        })
    }

    fn connections(&self) -> u32 {
        self.connections.load(Ordering::Relaxed)
    }

    fn client(self: &Arc<Self>) -> Client {
        Client::over(Arc::clone(self) as Arc<dyn Connect>, environment())
    }

    fn pods(self: &Arc<Self>) -> Api<Pod> {
        self.client().namespace::<Pod>("shop")
    }
}

impl Connect for Door {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        let (order, one_less) = (Ordering::Relaxed, |left: u32| left.checked_sub(1));
        if self.refusals.fetch_update(order, order, one_less).is_ok() {
            return Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) });
        }
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn((self.serve)(Box::new(theirs)));
        Box::pin(async { Ok(Box::new(ours) as BoxIo) })
    }
}

fn environment() -> Environment {
    Environment { rng: Rng::seeded(7), ..Environment::system() }
}

/// Reads the head of a request.
async fn head(io: &mut BoxIo) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(io.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
}

/// Accepts the upgrade that `head` requests.
async fn agree(io: &mut BoxIo, head: &str, protocol: &str) {
    let accept = derive_accept_key(header(head, "sec-websocket-key").unwrap().as_bytes());
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n"
    );
    io.write_all(answer.as_bytes()).await.unwrap();
}

/// The server's end of a WebSocket.
struct Peer {
    socket: Socket,
    head: String,
}

impl Peer {
    async fn accept(mut io: BoxIo, protocol: &str) -> Self {
        let head = head(&mut io).await;
        agree(&mut io, &head, protocol).await;
        Self { socket: Socket::new(io, Role::Server), head }
    }

    /// The next message; `None` when the connection is gone.
    async fn next(&mut self) -> Option<Message> {
        poll_fn(|cx| self.socket.poll_read(cx)).await.ok()
    }

    /// The next bytes on a channel, without pings.
    async fn data(&mut self) -> Option<(u8, Bytes)> {
        loop {
            match self.next().await? {
                Message::Binary(data) => return Some((data[0], data.slice(1..))),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    async fn put(&mut self, message: Message) -> tungstenite::Result<()> {
        let mut message = Some(message);
        poll_fn(|cx| {
            if let Some(message) = message.take() {
                self.socket.start_send(cx, message)?;
            }
            self.socket.poll_flush(cx)
        })
        .await
    }

    async fn send(&mut self, channel: u8, data: impl AsRef<[u8]>) {
        let message = [&[channel], data.as_ref()].concat();
        let _ = self.put(Message::Binary(message.into())).await;
    }

    async fn close(&mut self) {
        let _ = self.put(Message::Close(None)).await;
    }
}

/// A frame of a server, which is not masked.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match u8::try_from(payload.len()) {
        Ok(length @ ..126) => frame.push(length),
        _ => {
            frame.push(126);
            frame.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        }
    }
    frame.extend(payload);
    frame
}

fn with_stdin() -> ExecOptions {
    ExecOptions { stdin: true, ..ExecOptions::default() }
}
