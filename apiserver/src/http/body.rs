//! Bodies of answers: whole bodies, and watches whose events are written as they are read.
//!
//! A watch makes the next frame only when polled by the connection, so a client that does not read
//! holds a single frame and nothing more.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use serde_json::Value;

use super::codec::{self, Accepted, Framing};
use super::shape::{Rows, shaped};
use super::socket::SocketSession;
use crate::core::ServerCore;
use crate::faults::garble;
use crate::kinds::Kind;
use crate::metrics::RunningWatch;
use crate::verbs::watch::{WatchEvent, Watcher};

/// The body of an answer.
pub(crate) enum Payload {
    /// The whole body at once; `None` after the take.
    Whole(Option<Bytes>),
    /// A watch, frame by frame.
    Stream(Stream),
    /// No body: the connection becomes a WebSocket, for this session.
    Session(SocketSession),
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            // The length only, because a body may be a Secret, or a token.
            Self::Whole(bytes) => {
                f.debug_tuple("Whole").field(&bytes.as_ref().map_or(0, Bytes::len)).finish()
            }
            Self::Stream(_) => f.write_str("Stream"),
            Self::Session(_) => f.write_str("Session"),
        }
    }
}

impl Payload {
    /// Whether events may follow.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// Takes the session, if the connection becomes one; an empty body is left.
    pub(super) fn take_session(&mut self) -> Option<SocketSession> {
        match std::mem::replace(self, Self::Whole(None)) {
            Self::Session(session) => Some(session),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// A watch together with the form of the written events.
#[derive(Debug)]
pub(crate) struct Feed {
    /// Source of the events.
    pub(crate) watcher: Watcher,
    /// Kind of the objects.
    pub(crate) kind: Arc<Kind>,
    /// The server, for the clock: tables show ages.
    pub(crate) core: Arc<ServerCore>,
    /// Shape of the objects.
    pub(crate) accepted: Accepted,
    /// Content of table rows.
    pub(crate) rows: Rows,
    /// Names of objects whose `spec` a fault replaces.
    pub(crate) garbled: Vec<String>,
    /// Bounds of the frames.
    pub(crate) framing: Framing,
    /// Whether an event has been written; only the first table carries the column headings.
    pub(crate) begun: bool,
    /// Counts the watch while it runs.
    pub(crate) _watching: RunningWatch,
}

/// The future of the next frame, which owns the feed and returns it.
type FrameFuture = Pin<Box<dyn Future<Output = (Feed, Option<Bytes>)> + Send>>;

/// A watch as an HTTP body.
pub(crate) struct Stream {
    /// `None` once the watch has ended.
    step: Option<FrameFuture>,
}

impl Stream {
    /// Returns the body of a watch.
    pub(crate) fn new(feed: Feed) -> Self {
        Self { step: Some(Box::pin(step(feed))) }
    }

    /// Waits for the next frame; `None` ends the watch. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        std::future::poll_fn(|context| self.poll_next(context)).await
    }

    /// Polls the future of the next frame.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some(running) = &mut self.step else { return Poll::Ready(None) };
        let (feed, frame) = ready!(running.as_mut().poll(context));
        // A future must not be polled after readiness: the next future takes its place.
        self.step = frame.is_some().then(|| Box::pin(step(feed)) as FrameFuture);
        Poll::Ready(frame)
    }
}

/// Waits for the next event and returns its frame; `None` ends the watch.
async fn step(mut feed: Feed) -> (Feed, Option<Bytes>) {
    let event = feed.watcher.next().await;
    feed.watcher.durable().await;
    let frame = event.map(|event| feed.frame(event));
    (feed, frame)
}

impl Feed {
    /// Returns an event as a single frame.
    fn frame(&mut self, event: WatchEvent) -> Bytes {
        let (name, object) = match event {
            // Neither shaped nor framed: faults choose every byte.
            WatchEvent::Raw(bytes) => return bytes,
            // The watch has converted all events.
            WatchEvent::Unconverted(_) => return Bytes::new(),
            WatchEvent::Error(status) => ("ERROR", status),
            WatchEvent::Bookmark(object) => ("BOOKMARK", self.shape(object)),
            WatchEvent::Object(name, mut object) => {
                // The same objects that lists garble: a client must find no way around the fault.
                for garbled in &self.garbled {
                    garble(&mut object, garbled);
                }
                (name, self.shape(object))
            }
        };
        codec::encode_event(self.accepted.format, self.framing, name, &object)
    }

    /// Brings an object into the requested shape.
    fn shape(&mut self, object: Value) -> Value {
        // Like upstream, only the first event of a watch of tables carries the column headings.
        let first = !std::mem::replace(&mut self.begun, true);
        let now = self.core.clock.seconds();
        let rows = Rows { headers: first, ..self.rows };
        shaped(&self.kind, self.accepted, rows, object, now)
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(stream) => {
                stream.poll_next(context).map(|frame| frame.map(|frame| Ok(Frame::data(frame))))
            }
            Self::Session(_) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Stream(stream) => stream.step.is_none(),
            Self::Session(_) => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            // Without a length: the end of a watch is not known in advance.
            Self::Stream(_) => SizeHint::default(),
            Self::Session(_) => SizeHint::with_exact(0),
        }
    }
}
