//! Bodies of answers: whole ones, and watches that are written as they are read.
//!
//! A watch makes its next frame only when the connection asks for it, so a client that does not read
//! holds one frame and nothing more.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use serde_json::Value;

use super::codec::{self, Accepted, Format};
use super::dispatch::{Rows, shaped};
use crate::core::Core;
use crate::faults::garble;
use crate::kinds::Kind;
use crate::verbs::watch::{Event, Watcher};

/// The body of an answer.
pub(crate) enum Payload {
    /// All at once.
    Whole(Option<Bytes>),
    /// Frame by frame.
    Stream(Stream),
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(bytes) => f.debug_tuple("Whole").field(bytes).finish(),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

/// How the events of a watch are written.
#[derive(Debug)]
pub(crate) struct Feed {
    /// Where events come from.
    pub(crate) watcher: Watcher,
    /// Their kind.
    pub(crate) kind: Arc<Kind>,
    /// For the age in tables.
    pub(crate) core: Arc<Core>,
    /// Shape of objects.
    pub(crate) accepted: Accepted,
    /// What rows of tables carry.
    pub(crate) rows: Rows,
    /// Names of objects that must not be decodable.
    pub(crate) garbled: Vec<String>,
    /// Has an event been written?
    pub(crate) begun: bool,
}

type Step = Pin<Box<dyn Future<Output = (Feed, Option<Bytes>)> + Send>>;

/// A watch as a body.
pub(crate) struct Stream {
    step: Option<Step>,
}

impl Stream {
    /// Streams a feed.
    pub(crate) fn new(feed: Feed) -> Self {
        Self { step: Some(Box::pin(step(feed))) }
    }
}

async fn step(mut feed: Feed) -> (Feed, Option<Bytes>) {
    let event = feed.watcher.next().await;
    let frame = event.map(|event| feed.frame(event));
    (feed, frame)
}

impl Feed {
    fn frame(&mut self, event: Event) -> Bytes {
        let (name, object) = match event {
            Event::Raw(bytes) => return bytes,
            Event::Error(status) => ("ERROR", status),
            Event::Bookmark(object) => ("BOOKMARK", self.shape(object)),
            Event::Object(name, mut object) => {
                for garbled in &self.garbled {
                    garble(&mut object, garbled);
                }
                (name, self.shape(object))
            }
        };
        line(name, &object)
    }

    fn shape(&mut self, object: Value) -> Value {
        let first = !std::mem::replace(&mut self.begun, true);
        let now = self.core.clock.seconds();
        let rows = Rows { headers: first, ..self.rows };
        shaped(&self.kind, self.accepted.shape, rows, object, now)
    }
}

/// One line of a watch.
fn line(name: &str, object: &Value) -> Bytes {
    let (object, _) = codec::encode(Format::Json, object);
    let mut out = BytesMut::with_capacity(object.len() + 40);
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(&object);
    out.extend_from_slice(b"}\n");
    out.freeze()
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
                let Some(running) = &mut stream.step else { return Poll::Ready(None) };
                let (feed, frame) = ready!(running.as_mut().poll(context));
                stream.step = frame.is_some().then(|| Box::pin(step(feed)) as Step);
                Poll::Ready(frame.map(|frame| Ok(Frame::data(frame))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Stream(stream) => stream.step.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
