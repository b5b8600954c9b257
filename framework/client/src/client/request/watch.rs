//! A watch of any kind: frames of a single connection, not decoded.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;

use super::stream::ByteStream;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::wire::{EventType, Frame, FrameDecoder, StreamPiece};

/// Event of a watch.
///
/// `Debug` shows the type and the length only: the object may be a Secret.
#[derive(Clone, PartialEq, Eq)]
pub struct RawEvent {
    /// Type of the event; never [`EventType::Error`], which becomes an error.
    pub kind: EventType,
    /// The object, as JSON.
    pub object: Bytes,
}

/// Running watch. A drop ends the request.
///
/// For programs that decode late or not at all; [`Watch`](crate::api::Watch) has types.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let pods = client.get().group_version("", "v1").resource("pods");
/// let mut events = pods.watch().await?;
/// while let Some(event) = events.next().await {
///     println!("{:?}", event?);
/// }
/// # Ok(())
/// # }
/// ```
pub struct RawWatch {
    /// Stream of the answer; `None` after the end, and for an empty watch.
    bytes: Option<ByteStream>,
    decoder: FrameDecoder,
    /// Decoded events of the last chunk, not yet returned.
    ready: VecDeque<Result<RawEvent, Error>>,
    /// Description for error texts.
    what: String,
}

impl RawWatch {
    /// Creates a watch of a stream of frames; `None` is an empty watch.
    pub(crate) fn new(bytes: Option<ByteStream>, what: String) -> Self {
        Self { bytes, decoder: FrameDecoder::new(), ready: VecDeque::new(), what }
    }

    /// Sets the size in bytes beyond which an event is reported as an error.
    pub(crate) fn limited(self, bytes: usize) -> Self {
        Self { decoder: FrameDecoder::with_limit(bytes), ..self }
    }

    /// Returns whether no further event can come. True from the beginning for the empty watch that
    /// stands for a server that could not be watched.
    pub fn is_ended(&self) -> bool {
        self.bytes.is_none() && self.ready.is_empty()
    }

    /// Returns the next event; `None` when the server ended the watch, and after every error but
    /// [`Decode`](ErrorKind::Decode).
    ///
    /// # Errors
    /// The server's Status for an error event, such as [`Expired`](ErrorKind::Expired);
    /// [`Decode`](ErrorKind::Decode) for a frame that is no event, or is larger than 16 MiB: the
    /// next event follows; [`Transport`](ErrorKind::Transport) when the connection broke;
    /// [`Timeout`](ErrorKind::Timeout) after a silence of `timeoutSeconds` (3600 s without) and
    /// 30 s.
    /// # Cancel safety
    /// Safe: no event is lost.
    pub async fn next(&mut self) -> Option<Result<RawEvent, Error>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                // An error event ends the watch; a frame that does not decode concerns a single
                // object only.
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
                // Bytes left in the decoder are an incomplete event and are dropped.
                None => {
                    self.end();
                    return None;
                }
            }
        }
    }

    /// Closes the connection and drops the events that were not returned.
    fn end(&mut self) {
        self.bytes = None;
        self.ready.clear();
    }

    /// Decodes a chunk into `ready`.
    fn split(&mut self, piece: &[u8]) {
        let (ready, what, limit) = (&mut self.ready, &self.what, self.decoder.limit());
        self.decoder.push(piece, &mut |part| {
            ready.push_back(match part {
                StreamPiece::Whole(line) => event(what, line),
                StreamPiece::TooLarge(_) => {
                    Err(undecodable(what, format_args!("it is larger than {limit} bytes")))
                }
            });
        });
        // The stream limits the time of an event that has begun (A6: an answer that trickles).
        if let Some(bytes) = &mut self.bytes {
            bytes.partial(self.decoder.is_inside(), piece.contains(&b'\n'));
        }
    }
}

/// Decodes a frame.
fn event(what: &str, line: &[u8]) -> Result<RawEvent, Error> {
    let frame = Frame::of(line).map_err(|error| undecodable(what, error))?;
    if frame.event == EventType::Error {
        return Err(Error::from_status(what, frame.status()));
    }
    // Copied, because the frame is only borrowed from the decoder.
    Ok(RawEvent { kind: frame.event, object: Bytes::copy_from_slice(frame.object) })
}

/// Returns the error of a frame that is no event.
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
