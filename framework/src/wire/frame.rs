//! Splits the body of a WATCH into frames: one JSON document a line.

use memchr::memchr;

use super::list::{Carry, MAX_PIECE};
use super::scan::{Malformed, Part, members, skip_space};

/// What a frame tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
    /// A type of a later API version.
    Unknown,
}

/// One frame: the type, and the object's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) event: EventType,
    pub(crate) object: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a complete frame.
    pub(crate) fn of(line: &'a [u8]) -> Result<Self, Malformed> {
        let (mut event, mut object) = (None, None);
        members(line, &mut |member| {
            match member.name {
                b"type" => event = Some(event_type(member.value)),
                b"object" => object = Some(member.value),
                _ => {}
            }
            true
        })?;
        match (event, object) {
            (Some(event), Some(object)) => Ok(Self { event, object }),
            _ => Err(Malformed::new("a watch frame has `type` and `object`")),
        }
    }

    /// Reads the beginning of a frame that was too large: its type, and the object as far as it was
    /// kept. The API server writes the type first.
    pub(crate) fn of_beginning(line: &'a [u8]) -> Result<Self, Malformed> {
        let mut event = None;
        let _ = members(line, &mut |member| {
            if member.name == b"type" {
                event = Some(event_type(member.value));
            }
            true
        });
        let object = memchr::memmem::find(line, b"\"object\"")
            .map(|at| skip_space(line, at + b"\"object\"".len()))
            .filter(|at| line.get(*at) == Some(&b':'))
            .map(|at| &line[skip_space(line, at + 1)..]);
        match (event, object) {
            (Some(event), Some(object)) => Ok(Self { event, object }),
            _ => Err(Malformed::new("type and object are not in the part that was kept")),
        }
    }
}

fn event_type(value: &[u8]) -> EventType {
    match value {
        b"\"ADDED\"" => EventType::Added,
        b"\"MODIFIED\"" => EventType::Modified,
        b"\"DELETED\"" => EventType::Deleted,
        b"\"BOOKMARK\"" => EventType::Bookmark,
        b"\"ERROR\"" => EventType::Error,
        _ => EventType::Unknown,
    }
}

/// The splitter of one watch. A frame without its final newline is never told: the connection broke
/// inside it, and the next watch brings it again.
#[derive(Debug)]
pub(crate) struct FrameSplitter {
    carry: Carry,
}

impl FrameSplitter {
    pub(crate) fn new() -> Self {
        Self { carry: Carry::new(MAX_PIECE) }
    }

    /// Takes the next piece and calls `each` for every frame that ends in it.
    pub(crate) fn push(&mut self, mut piece: &[u8], each: &mut dyn FnMut(Part<'_>)) {
        while let Some(end) = memchr(b'\n', piece) {
            let part = self.carry.complete(&piece[..end]);
            if !matches!(part, Part::Whole(line) if line.trim_ascii().is_empty()) {
                each(part);
            }
            self.carry.clear();
            piece = &piece[end + 1..];
        }
        self.carry.extend(piece);
    }

    /// Is a frame begun and not ended?
    pub(crate) fn is_inside(&self) -> bool {
        !self.carry.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(body: &[u8], cuts: &[usize]) -> Vec<String> {
        let mut splitter = FrameSplitter::new();
        let mut lines = Vec::new();
        let mut from = 0;
        for cut in cuts.iter().copied().chain([body.len()]) {
            let cut = cut.max(from);
            splitter.push(&body[from..cut], &mut |part| {
                let Part::Whole(line) = part else { panic!("nothing here is large") };
                lines.push(String::from_utf8_lossy(line).trim().to_owned());
            });
            from = cut;
        }
        lines
    }

    /// A4: a truncated frame is not delivered.
    #[test]
    fn frames_end_at_newlines_and_a_partial_one_is_never_told() {
        let body = b"{\"a\":1}\r\n\n{\"b\":2}\n{\"c\":";
        for cut in 0..body.len() {
            assert_eq!(lines(body, &[cut]), [r#"{"a":1}"#, r#"{"b":2}"#]);
        }
        let mut splitter = FrameSplitter::new();
        splitter.push(body, &mut |_| {});
        assert!(splitter.is_inside());
    }

    #[test]
    fn a_frame_is_its_type_and_its_objects_bytes() {
        let frame = Frame::of(br#" {"object": {"x":"}"} , "type" : "ADDED"}"#).unwrap();
        assert_eq!(frame, Frame { event: EventType::Added, object: br#"{"x":"}"}"# });
        assert_eq!(Frame::of(br#"{"type":"NEWS","object":{}}"#).unwrap().event, EventType::Unknown);
        for bad in [&br#"{"type":"ADDED"}"#[..], b"{}", b"oops", br#"{"type":"ADDED","object":{}"#]
        {
            assert!(Frame::of(bad).is_err());
        }
    }

    /// A13: the stream goes on after a frame beyond the limit.
    #[test]
    fn a_frame_beyond_the_limit_is_told_by_its_beginning() {
        let mut splitter = FrameSplitter { carry: Carry::new(64) };
        let big = format!(
            "{{\"type\":\"DELETED\",\"object\":{{\"metadata\":{{\"name\":\"a\"}},\"x\":\"{}\"}}}}\n{{}}\n",
            "y".repeat(500)
        );
        let mut seen = Vec::new();
        for piece in big.as_bytes().chunks(50) {
            splitter.push(piece, &mut |part| match part {
                Part::TooLarge(line) => {
                    let frame = Frame::of_beginning(line).unwrap();
                    assert_eq!(frame.event, EventType::Deleted);
                    assert!(frame.object.starts_with(br#"{"metadata":{"name":"a"}"#));
                    seen.push("large");
                }
                Part::Whole(_) => seen.push("whole"),
            });
        }
        assert_eq!(seen, ["large", "whole"]);
    }

    proptest! {
        #[test]
        fn chunking_does_not_matter(
            body in "([a-z{}\"]{0,9}\r?\n?){0,9}",
            mut cuts in proptest::collection::vec(0_usize..120, 0..8),
        ) {
            cuts.iter_mut().for_each(|cut| *cut = (*cut).min(body.len()));
            cuts.sort_unstable();
            prop_assert_eq!(lines(body.as_bytes(), &cuts), lines(body.as_bytes(), &[]));
        }
    }
}
