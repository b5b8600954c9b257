//! Splitting of a WATCH body into frames, one JSON document per line, on arrival.
//!
//! A frame that lies in a single read is passed on in place; a frame that spans reads is assembled
//! in a reused buffer. A frame without a newline is never passed on: the connection broke inside
//! the frame, and the next watch delivers the object again. The reader decides for how long a frame
//! may take: see [`FrameDecoder::is_inside`].

// DESIGN.md, 24: A watch frame ends at the end of its line

use memchr::memchr;

use super::carry::{CarriedBytes, MAX_PIECE, StreamPiece};
use crate::error::ApiStatus;
use crate::wire::metadata_scan::MetadataScan;
use crate::wire::scanner::members::{members, text, value_at_plain_path};
use crate::wire::scanner::scan::{Malformed, is_space, skip_space};
use crate::wire::scanner::simd::{BLOCK, Spread, braces};
use crate::wire::status::excerpt;

/// The type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The object is new, or was there when the watch began.
    Added,
    /// The object changed.
    Modified,
    /// The object is gone; the frame has the last state.
    Deleted,
    /// Nothing changed up to the object's version, which is the only content.
    Bookmark,
    /// The watch failed; the object is a Status.
    Error,
    /// A type of a later API version.
    Unknown,
}

/// The types as API servers write them.
const TYPES: [(&[u8], EventType); 5] = [
    (b"\"MODIFIED\"", EventType::Modified),
    (b"\"ADDED\"", EventType::Added),
    (b"\"DELETED\"", EventType::Deleted),
    (b"\"BOOKMARK\"", EventType::Bookmark),
    (b"\"ERROR\"", EventType::Error),
];

impl EventType {
    /// Reads the type with quotes; an escaped spelling is [`Unknown`](Self::Unknown).
    fn of(value: &[u8]) -> Self {
        let known = |value: &[u8]| TYPES.iter().find(|(name, _)| *name == value);
        known(value).map_or(Self::Unknown, |(_, event)| *event)
    }
}

/// A frame of a watch: the type of the event, and the object's bytes.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::wire::{EventType, Frame};
///
/// let line = br#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#;
/// let frame = Frame::of(line).expect("a frame");
/// assert_eq!(frame.event, EventType::Added);
/// assert_eq!(frame.object, br#"{"metadata":{"name":"a"}}"#.as_slice());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The type of the event.
    pub event: EventType,
    /// The object as it stands in the frame. Only the end was searched for: the bytes may be
    /// undecodable JSON, or not UTF-8.
    pub object: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a complete frame, as [`FrameDecoder::push`] delivers it.
    ///
    /// # Errors
    /// The line is not a single object with the members `type` and `object`.
    pub fn of(line: &'a [u8]) -> Result<Self, Malformed> {
        // Nearly all frames are written in this form, which needs no scan of their members.
        if let Some(frame) = Self::usual(line) {
            return Ok(frame);
        }
        let (mut event, mut object) = (None, None);
        let close = members(line, &mut |member| {
            match member.name {
                b"type" => event = Some(EventType::of(member.value)),
                b"object" => object = Some(member.value),
                _ => {}
            }
            true
        })?;
        // A line that goes on behind the object is no frame (A4: a partial frame is never
        // delivered).
        if close.is_none_or(|close| skip_space(line, close + 1) < line.len()) {
            return Err(Malformed::new("a watch frame does not end with its closing brace"));
        }
        match (event, object) {
            (Some(event), Some(object)) => Ok(Self { event, object }),
            _ => Err(Malformed::new("a watch frame has `type` and `object`")),
        }
    }

    /// Reads a complete frame and, for a usual frame about an object, that object's metadata. The
    /// end of the object is then checked only in the bytes behind the metadata.
    ///
    /// # Errors
    /// As [`of`](Self::of); an object whose metadata cannot be read is returned without them.
    #[doc(hidden)]
    pub fn scanned(line: &'a [u8]) -> Result<(Self, Option<MetadataScan<'a>>), Malformed> {
        if let Some(frame) = Self::hasty(line)
            && matches!(frame.event, EventType::Added | EventType::Modified | EventType::Deleted)
            && let Ok(scan) = MetadataScan::of(frame.object)
            && scan.behind_metadata().is_some_and(closes_at_its_end)
        {
            return Ok((frame, Some(scan)));
        }
        Ok((Self::of(line)?, None))
    }

    /// Reads the beginning of a frame that was too large: the type, and the part of the object that
    /// was kept. API servers write the type first.
    ///
    /// # Errors
    /// Type or object are not in the part that was kept.
    pub fn of_beginning(line: &'a [u8]) -> Result<Self, Malformed> {
        let (mut event, mut object, mut seen) = (None, None, None);
        // Fails at the end of the kept part; the members before the end were seen.
        let _ = members(line, &mut |member| {
            match member.name {
                b"type" => event = Some(EventType::of(member.value)),
                b"object" => object = Some(member.value),
                _ => {}
            }
            seen = Some(member.end);
            true
        });
        let rest = || {
            let at = skip_space(line, seen.unwrap_or(0));
            line[at..].strip_prefix(if seen.is_some() { b"," } else { b"{" })
        };
        match (event, object.or_else(|| unfinished(rest()?))) {
            (Some(event), Some(object)) => Ok(Self { event, object }),
            _ => Err(Malformed::new("type and object are not in the part that was kept")),
        }
    }

    /// Returns the Status in an [`Error`](EventType::Error) frame, as far as readable. For any
    /// other object `code` is 0, `reason` is empty, and `message` is the object's text, cut to 2
    /// KiB.
    pub fn status(&self) -> ApiStatus {
        let status = serde_json::from_slice(self.object).unwrap_or_else(|_| self.parts_of_status());
        if status.code != 0 || !status.reason.is_empty() {
            return status;
        }
        ApiStatus { message: excerpt(self.object), ..ApiStatus::default() }
    }

    /// Reads the decisive members of a Status in which another member has a wrong type.
    fn parts_of_status(&self) -> ApiStatus {
        let field = |name| value_at_plain_path(self.object, &[name]);
        let word = |name| field(name).and_then(text).unwrap_or_default();
        ApiStatus {
            status: "Failure".into(),
            message: excerpt(word("message").as_bytes()),
            reason: excerpt(word("reason").as_bytes()),
            code: field("code").and_then(|at| serde_json::from_slice(at).ok()).unwrap_or(0),
            ..ApiStatus::default()
        }
    }

    /// Reads a frame in Go's form, `{"type":"…","object":{…}}`. Nine tenths of the bytes are the
    /// object's, and finding the object's end at the line's end costs a tenth of a scan.
    fn usual(line: &'a [u8]) -> Option<Self> {
        let frame = Self::hasty(line)?;
        let inner = frame.object.strip_prefix(b"{")?;
        closes_at_its_end(inner).then_some(frame)
    }

    /// As [`usual`](Self::usual), without checking that the object goes on to the end of the frame.
    fn hasty(line: &'a [u8]) -> Option<Self> {
        let rest = line.strip_prefix(b"{\"type\":")?;
        let known = |(name, event): &(&[u8], _)| Some((*event, rest.strip_prefix(*name)?));
        let (event, rest) = TYPES.iter().find_map(known)?;
        let rest = rest.strip_prefix(b",\"object\":")?;
        let end = rest.iter().rposition(|byte| !is_space(*byte))?;
        // The last brace is the frame's, and the object ends before that brace.
        let object = rest[..=end].strip_suffix(b"}")?;
        object.starts_with(b"{").then_some(Self { event, object })
    }
}

/// Returns the value of the member `object` that begins here and may be cut off.
fn unfinished(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes[skip_space(bytes, 0)..].strip_prefix(b"\"object\"")?;
    let rest = rest[skip_space(rest, 0)..].strip_prefix(b":")?;
    Some(&rest[skip_space(rest, 0)..])
}

/// Whether a brace that was opened before `rest` is closed by the last byte. Braces in texts count,
/// too. The result can be wrong only for a frame with more members behind the object and with
/// unbalanced braces in texts; the object then fails to decode.
fn closes_at_its_end(rest: &[u8]) -> bool {
    let [inner @ .., b'}'] = rest else { return false };
    let mut depth = 1;
    let (blocks, rest) = inner.as_chunks::<BLOCK>();
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    blocks.iter().chain([&last]).all(|block| stays_open(block, &mut depth)) && depth == 1
}

/// Follows the depth through a block; false when the depth reaches zero on the way.
#[inline]
fn stays_open(block: &[u8; BLOCK], depth: &mut u32) -> bool {
    let (opens, closes) = braces(block);
    let quarter_stays_open = |part: usize, depth: &mut u32| {
        let (opens, closes) = (opens.words(2 * part, 2), closes.words(2 * part, 2));
        opens.balance(closes, depth) || one_by_one(opens, closes, depth)
    };
    // A block rarely has enough closing braces to close all levels: comparing counts is enough.
    opens.balance(closes, depth) || (0..4).all(|part| quarter_stays_open(part, depth))
}

/// Follows the depth mark by mark; false when the depth reaches zero on the way.
fn one_by_one(opens: Spread, closes: Spread, depth: &mut u32) -> bool {
    let (opens, closes) = (opens.in_order(), closes.in_order());
    let mut both = opens | closes;
    while both != 0 {
        if opens & both & both.wrapping_neg() != 0 {
            *depth += 1;
        } else {
            *depth -= 1;
        }
        if *depth == 0 {
            return false;
        }
        both &= both - 1;
    }
    true
}

/// Splits the body of a watch into frames on arrival; feed the body's pieces in order.
///
/// A newline ends a frame, also after a carriage return. Blank lines, which proxies and servers
/// send to keep connections open, are skipped. For a frame beyond the limit only the beginning is
/// delivered, so a decoder never holds more than the limit.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::wire::{EventType, Frame, FrameDecoder, StreamPiece};
///
/// let mut decoder = FrameDecoder::new();
/// let mut seen = Vec::new();
/// for piece in ["{\"type\":\"ADDED\",\"obj", "ect\":{\"a\":1}}\r\n\n{\"type\":\"DELE"] {
///     decoder.push(piece.as_bytes(), &mut |part| {
///         let StreamPiece::Whole(line) = part else { return };
///         let frame = Frame::of(line).expect("a frame");
///         seen.push((frame.event, String::from_utf8_lossy(frame.object).into_owned()));
///     });
/// }
/// assert_eq!(seen, [(EventType::Added, "{\"a\":1}".to_owned())]);
/// assert!(decoder.is_inside());
/// ```
#[derive(Debug)]
pub struct FrameDecoder {
    /// Beginning of the frame that has not ended.
    carry: CarriedBytes,
}

impl Default for FrameDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameDecoder {
    /// Creates a decoder for frames of at most 16 MiB, as in client-go.
    pub fn new() -> Self {
        Self::with_limit(MAX_PIECE)
    }

    /// Creates a decoder for frames of at most `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self { carry: CarriedBytes::new(limit) }
    }

    /// Returns the largest size of a frame that is delivered whole, in bytes.
    pub fn limit(&self) -> usize {
        self.carry.limit()
    }

    /// Takes the next piece and calls `each` for every frame that ends in the piece, in order.
    pub fn push(&mut self, mut piece: &[u8], each: &mut dyn FnMut(StreamPiece<'_>)) {
        while let Some(end) = memchr(b'\n', piece) {
            let part = self.carry.complete(&piece[..end]);
            // Blank lines keep connections open; they are no frames.
            if !matches!(part, StreamPiece::Whole(line) if line.iter().all(|byte| is_space(*byte)))
            {
                each(part);
            }
            self.carry.clear();
            piece = &piece[end + 1..];
        }
        if !piece.is_empty() {
            self.carry.extend(piece);
        }
    }

    /// Whether a frame has begun and not ended. A long time in this state means that the frame
    /// drips in over a hanging connection: informers and `WatchStream`
    /// give up after 30 s.
    pub fn is_inside(&self) -> bool {
        !self.carry.is_empty()
    }
}

#[cfg(test)]
mod tests;
