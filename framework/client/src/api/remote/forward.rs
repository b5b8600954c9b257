//! Port-forward: connections to ports of a pod.
//!
//! Each port has a separate WebSocket. The protocol could carry several, but then the end of a port
//! would not be visible before all have ended, and a slow port would hold up the others.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use k8s_openapi::api::core::v1::Pod;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::driver::{self, Conversation, SessionIo};
use super::exec::refuse;
use super::session::V4;
use super::streams::{EndReceiver, OutputReader, Stdin};
use super::verdict::SessionEnd;
use crate::api::Api;
use crate::client::Upgraded;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::wire::status::excerpt;

/// Most ports of a call; each takes a connection.
const MOST_PORTS: usize = 32;
/// Longest part of an error text that is kept, in bytes.
const TEXT_LIMIT: usize = 2 << 10;
/// Channel of the data.
const DATA_CHANNEL: u8 = 0;
/// Channel of an error text.
const ERROR_CHANNEL: u8 = 1;

impl Api<Pod> {
    /// Opens a connection to each of `ports` of the pod, in sequence.
    ///
    /// Each stream is a single connection, as in TCP: call this method again for the next
    /// connection. No connection is reopened silently.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use tokio::net::TcpListener;
    ///
    /// # async fn example(
    /// #     client: windlass::client::Client,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let pods = client.namespace::<Pod>("shop");
    /// let listener = TcpListener::bind("127.0.0.1:5432").await?;
    /// loop {
    ///     let (mut near, _) = listener.accept().await?;
    ///     let mut forward = pods.port_forward("db-0", &[5432]).await?;
    ///     let mut far = forward.take(5432).ok_or("no stream")?;
    ///     tokio::io::copy_bidirectional(&mut near, &mut far).await?;
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Client::send`](crate::client::Client::send); [`ErrorKind::Usage`] without ports,
    /// or with a port that is 0 or named twice, or with more than 32. The [`PortStream`] of a port
    /// without a listener reports the missing listener.
    /// # Cancel safety
    /// Dropping the future closes the connections.
    pub async fn port_forward(&self, name: &str, ports: &[u16]) -> Result<PortForward, Error> {
        let request = self.remote_request(name, "portforward", "forward ports of")?;
        if ports.is_empty() || ports.contains(&0) || ports.len() > MOST_PORTS {
            let text = format!("1 to {MOST_PORTS} ports can be forwarded, none of them 0");
            return Err(refuse(&request, &text));
        }
        let mut streams = BTreeMap::new();
        for port in ports {
            if streams.contains_key(port) {
                return Err(refuse(&request, &format!("port {port} is named twice")));
            }
            let mut request = request.clone();
            request.what = format!("{} (port {port})", request.what);
            request.query.push(("ports".into(), port.to_string()));
            let upgraded = self.target.client.upgrade(&request, &[V4]).await?;
            streams.insert(*port, PortStream::start(upgraded, request.what, *port));
        }
        Ok(PortForward { streams })
    }
}

/// Open connections to ports of a pod. Dropping this value closes the connections that were not
/// taken.
#[derive(Debug)]
pub struct PortForward {
    streams: BTreeMap<u16, PortStream>,
}

impl PortForward {
    /// Takes the connection to `port`; `None` when the port was not requested, or was taken before.
    pub fn take(&mut self, port: u16) -> Option<PortStream> {
        self.streams.remove(&port)
    }

    /// Ports whose connections were not taken yet.
    pub fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.streams.keys().copied()
    }
}

/// A connection to a port of a pod; dropping it closes the connection.
///
/// Reading ends when the program in the pod has closed the connection; reading fails when the port
/// could not be reached or the connection broke. The protocol cannot signal the end of *our* side
/// alone: after a shutdown nothing can be written, but the program notices the end when the stream
/// is dropped.
pub struct PortStream {
    port: u16,
    what: String,
    reader: OutputReader,
    writer: Option<Stdin>,
    ended: EndReceiver,
    /// Ends the task, and thereby the connection, when the stream is dropped.
    _driving: AbortOnDropHandle<()>,
}

impl PortStream {
    fn start(upgraded: Upgraded, what: String, port: u16) -> Self {
        let (ended_sender, ended) = watch::channel(None);
        let (reader, messages) = OutputReader::new(&ended);
        let (writer, input) = Stdin::new(&ended, false);
        let session_io = SessionIo {
            readers: vec![Some(messages)],
            input: Some(input),
            control: None,
            half_close: false,
            ended: ended_sender,
        };
        let driving = driver::start(upgraded, Port::new(port), session_io);
        Self { port, what, reader, writer: Some(writer), ended, _driving: driving }
    }

    /// The port in the pod.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The reason for the end of the connection, unless the program in the pod ended the
    /// connection.
    pub fn error(&self) -> Option<Error> {
        let ended = self.ended.borrow();
        let Some(SessionEnd::Broken { why, source }) = &*ended else { return None };
        let error = Error::new(ErrorKind::Transport, format!("cannot {}: {why}", self.what));
        Some(match source {
            Some(source) => error.because(Arc::clone(source)),
            None => error,
        })
    }
}

impl AsyncRead for PortStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(cx, into)
    }
}

impl AsyncWrite for PortStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.writer {
            Some(writer) => Pin::new(writer).poll_write(cx, from),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer = None;
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for PortStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortStream")
            .field("port", &self.port)
            .field("ended", &*self.ended.borrow())
            .finish_non_exhaustive()
    }
}

/// The channels of a forwarded port: data and an error text, each starting with the port.
#[derive(Debug)]
struct Port {
    port: [u8; 2],
    /// Bytes of the port that each channel has sent.
    received: [usize; 2],
    error: Vec<u8>,
}

impl Port {
    fn new(port: u16) -> Self {
        Self { port: port.to_le_bytes(), received: [0; 2], error: Vec::new() }
    }

    /// Removes the port from the beginning of a channel.
    fn strip(&mut self, channel: u8, data: &mut Bytes) -> Result<(), SessionEnd> {
        let received = &mut self.received[usize::from(channel)];
        while *received < self.port.len() && !data.is_empty() {
            // The port may come in several pieces.
            if data.get_u8() != self.port[*received] {
                return Err(SessionEnd::broken("the server forwards another port"));
            }
            *received += 1;
        }
        Ok(())
    }
}

impl Conversation for Port {
    fn sort(&mut self, channel: u8, mut data: Bytes) -> Result<Option<(usize, Bytes)>, SessionEnd> {
        // A port has two channels.
        if channel > ERROR_CHANNEL {
            tracing::debug!(channel, "the server sent something on an unknown channel");
            return Ok(None);
        }
        self.strip(channel, &mut data)?;
        if channel == DATA_CHANNEL {
            return Ok((!data.is_empty()).then_some((0, data)));
        }
        // The rest of a long text is dropped: the text must not fill the memory.
        let room = TEXT_LIMIT - self.error.len();
        self.error.extend_from_slice(&data[..data.len().min(room)]);
        Ok(None)
    }

    // An error text comes before the close, and explains the end better.
    fn closed(&mut self, how: Result<(), String>) -> SessionEnd {
        match how {
            _ if !self.error.is_empty() => SessionEnd::broken(excerpt(&self.error)),
            Ok(()) => SessionEnd::Closed,
            Err(why) => SessionEnd::broken(why),
        }
    }
}
