//! A watch of any kind: frames of one connection, not decoded.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;

use crate::client::ByteStream;
use crate::error::{Error, ErrorKind};
use crate::wire::{EventType, Frame, FrameDecoder, Part};

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// The object is new, or was there when the watch began.
    Added,
    /// The object changed.
    Modified,
    /// The object is gone; this is its last state.
    Deleted,
    /// Nothing changed up to the object's resourceVersion.
    Bookmark,
    /// A type of a later API version.
    Unknown,
}

/// One event of a watch.
#[derive(Clone, PartialEq, Eq)]
pub struct RawEvent {
    /// What it tells.
    pub kind: EventKind,
    /// The object, JSON.
    pub object: Bytes,
}

/// A running watch. Dropping it ends it.
pub struct RawWatch {
    /// `None` after the end, and for an empty watch.
    bytes: Option<ByteStream>,
    decoder: FrameDecoder,
    /// Events of the last piece.
    ready: VecDeque<Result<RawEvent, Error>>,
    what: String,
}

impl RawWatch {
    pub(crate) fn new(bytes: Option<ByteStream>, what: String) -> Self {
        Self { bytes, decoder: FrameDecoder::new(), ready: VecDeque::new(), what }
    }

    /// Gives up events that are larger than so many bytes.
    pub(crate) fn limited(self, bytes: usize) -> Self {
        Self { decoder: FrameDecoder::with_limit(bytes), ..self }
    }

    /// Is there nothing to come? True from the beginning for the empty watch that stands for a
    /// server that could not be watched.
    pub fn is_ended(&self) -> bool {
        self.bytes.is_none() && self.ready.is_empty()
    }

    /// The next event; `None` when the server ended the watch, and after every error but
    /// [`Decode`](ErrorKind::Decode).
    ///
    /// # Errors
    /// The server's Status for an error event, such as [`Expired`](ErrorKind::Expired);
    /// [`Decode`](ErrorKind::Decode) for a frame that is no event, or is larger than 16 MiB: the
    /// next one follows; [`Transport`](ErrorKind::Transport) when the connection broke;
    /// [`Timeout`](ErrorKind::Timeout) after a silence of `timeoutSeconds` (3600 s without) and 30 s.
    /// # Cancel safety
    /// Safe: no event is lost.
    pub async fn next(&mut self) -> Option<Result<RawEvent, Error>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                if matches!(&event, Err(error) if error.kind() != ErrorKind::Decode) {
                    self.end();
                }
                return Some(event);
            }
            match self.bytes.as_mut()?.next().await {
                Some(Ok(piece)) => self.split(&piece),
                Some(Err(error)) => {
                    self.end();
                    return Some(Err(error));
                }
                // What the decoder still holds is half an event: never delivered.
                None => {
                    self.end();
                    return None;
                }
            }
        }
    }

    fn end(&mut self) {
        self.bytes = None;
        self.ready.clear();
    }

    fn split(&mut self, piece: &[u8]) {
        let (ready, what, limit) = (&mut self.ready, &self.what, self.decoder.limit());
        self.decoder.push(piece, &mut |part| {
            ready.push_back(match part {
                Part::Whole(line) => event(what, line),
                Part::TooLarge(_) => {
                    Err(undecodable(what, format_args!("it is larger than {limit} bytes")))
                }
            });
        });
        if let Some(bytes) = &mut self.bytes {
            bytes.partial(self.decoder.is_inside(), piece.contains(&b'\n'));
        }
    }
}

fn event(what: &str, line: &[u8]) -> Result<RawEvent, Error> {
    let frame = Frame::of(line).map_err(|error| undecodable(what, error))?;
    let kind = match frame.event {
        EventType::Added => EventKind::Added,
        EventType::Modified => EventKind::Modified,
        EventType::Deleted => EventKind::Deleted,
        EventType::Bookmark => EventKind::Bookmark,
        EventType::Unknown => EventKind::Unknown,
        EventType::Error => {
            return Err(Error::from_status(what, frame.status()));
        }
    };
    Ok(RawEvent { kind, object: Bytes::copy_from_slice(frame.object) })
}

fn undecodable(what: &str, why: impl fmt::Display) -> Error {
    Error::new(ErrorKind::Decode, format!("cannot {what}: an event does not decode: {why}"))
}

impl fmt::Debug for RawWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawWatch")
            .field("what", &self.what)
            .field("open", &self.bytes.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RawEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({} bytes)", self.kind, self.object.len())
    }
}
