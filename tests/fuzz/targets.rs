//! Bodies of the fuzz targets, which `tests/tests/frames.rs` calls with cases of proptest: parsers
//! of foreign bytes beside naive readings of the same bytes.
//!
//! Every target takes any bytes. For those that read streams, the first byte says how many lengths
//! of pieces follow, and the rest is the stream.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use windlass::__private::probe;
use windlass::client::ClientConfig;
use windlass::error::ApiStatus;
use windlass::wire::{EventType, Frame, FrameDecoder, StreamPiece};

/// A limit that small inputs reach.
const SMALL: usize = 64;
const LARGE: usize = 16 << 20;
/// Largest kept part of a piece that is too large.
const KEPT_BEGINNING: usize = 256 << 10;

/// Frames of a watch: the decoder beside lines, `Frame` beside `serde_json`.
pub(crate) fn frames(data: &[u8]) {
    let (lengths, body) = lengths(data);
    for limit in [SMALL, LARGE] {
        let mut decoder = FrameDecoder::with_limit(limit);
        let mut parts = Vec::new();
        for piece in pieces(body, lengths) {
            decoder.push(piece, &mut |part| {
                parts.push(match part {
                    StreamPiece::Whole(line) => (true, line.to_vec()),
                    StreamPiece::TooLarge(beginning) => (false, beginning.to_vec()),
                });
            });
        }
        assert_eq!(parts, lines(body, limit), "with a limit of {limit}");
        let open = body.rsplit(|byte| *byte == b'\n').next().is_some_and(|rest| !rest.is_empty());
        assert_eq!(decoder.is_inside(), open);
        for (whole, line) in &parts {
            if *whole { frame(line) } else { beginning(line) }
        }
    }
}

/// A body in gzip: in pieces as in a whole, for any content.
pub(crate) fn gzip(data: &[u8]) {
    let (lengths, body) = lengths(data);
    assert_eq!(probe::inflate(pieces(body, lengths)), probe::inflate([body]));
}

/// Complete lines that are not blank; of those beyond the limit the beginning.
fn lines(body: &[u8], limit: usize) -> Vec<(bool, Vec<u8>)> {
    let mut lines: Vec<_> = body.split(|byte| *byte == b'\n').collect();
    lines.pop();
    let blank = |line: &[u8]| line.iter().all(|byte| b" \t\r".contains(byte));
    lines.retain(|line| line.len() > limit || !blank(line));
    let kept = |line: &[u8]| match line.len() <= limit {
        true => (true, line.to_vec()),
        false => (false, line[..KEPT_BEGINNING.min(limit)].to_vec()),
    };
    lines.into_iter().map(kept).collect()
}

fn frame(line: &[u8]) {
    let read = Frame::of(line);
    if let Ok(frame) = &read {
        look_into(*frame);
    }
    let Some(members) = members(line) else { return };
    let one = |name: &str| {
        let mut found = members.iter().filter(|(known, _)| known == name);
        (found.next().map(|(_, value)| *value), found.next().is_some())
    };
    let ((event, events), (object, objects)) = (one("type"), one("object"));
    if events || objects || is_escaped(line) {
        return;
    }
    let (Some(event), Some(object)) = (event, object) else {
        assert!(read.is_err(), "a member is missing");
        return;
    };
    let read = read.expect("it has both members");
    assert_eq!(read.event, event_type(event));
    // With lone braces in texts, members behind the object may count as members of the object.
    assert!(read.object.starts_with(object.as_bytes()));
    let is_last = members.last().is_some_and(|(name, _)| name == "object");
    assert!(!is_last || read.object == object.as_bytes(), "and the object's end is found");
}

fn event_type(value: &str) -> EventType {
    match value {
        r#""ADDED""# => EventType::Added,
        r#""MODIFIED""# => EventType::Modified,
        r#""DELETED""# => EventType::Deleted,
        r#""BOOKMARK""# => EventType::Bookmark,
        r#""ERROR""# => EventType::Error,
        _ => EventType::Unknown,
    }
}

fn beginning(line: &[u8]) {
    if let Ok(frame) = Frame::of_beginning(line) {
        let _ = probe::scan_beginning(frame.object);
        let _ = frame.status();
    }
}

fn look_into(frame: Frame<'_>) {
    let _ = probe::scan(frame.object);
    let status = frame.status();
    if let Ok(plain) = serde_json::from_slice::<ApiStatus>(frame.object)
        && (plain.code != 0 || !plain.reason.is_empty())
    {
        assert_eq!(status, plain);
    }
}

/// A list: cut anywhere, beside a whole list, beside `serde_json`.
pub(crate) fn list(data: &[u8]) {
    let (lengths, body) = lengths(data);
    for limit in [SMALL, LARGE] {
        let whole = probe::list([body], limit);
        assert_eq!(probe::list(pieces(body, lengths), limit), whole);
        if limit == LARGE
            && let Some(members) = members(body)
            && !is_escaped(body)
        {
            assert_eq!(whole.ok(), plain_list(&members), "{}", String::from_utf8_lossy(body));
        }
    }
}

fn plain_list(top: &[(String, &str)]) -> Option<probe::ScannedList> {
    let mut items = Vec::new();
    let mut meta = None;
    let mut has_items = false;
    for (name, value) in top {
        match name.as_str() {
            "items" => {
                has_items = true;
                // Elements that are no objects are items, too: the cache sets each aside.
                let elements: Option<Vec<&RawValue>> = serde_json::from_str(value).ok()?;
                let elements = elements.unwrap_or_default().into_iter();
                items.extend(elements.map(|element| element.get().as_bytes().to_vec()));
            }
            "metadata" => meta = Some(members(value.as_bytes()).unwrap_or_default()),
            _ => {}
        }
    }
    let meta = meta.unwrap_or_default();
    let text = |name: &str| {
        let (_, value) = meta.iter().find(|(known, _)| known == name)?;
        serde_json::from_str::<String>(value).ok().filter(|text| !text.is_empty())
    };
    has_items.then_some(probe::ScannedList {
        items: items.into_iter().map(Ok).collect(),
        resource_version: text("resourceVersion")?,
        continue_token: text("continue"),
    })
}

/// An object's metadata and the kept part, beside `serde_json`.
pub(crate) fn scan(data: &[u8]) {
    let (&at, object) = data.split_first().unwrap_or((&0, data));
    let scanned = probe::scan(object);
    let beginning = probe::scan_beginning(&object[..usize::from(at).min(object.len())]);
    let _ = probe::values(object, &["spec", "a"]);
    assert!(beginning.is_none_or(|scanned| &*scanned.kept == b"{}"));
    let Some(members) = members(object).filter(|_| !is_escaped(object)) else { return };
    let Ok(mut plain) = serde_json::from_slice::<Value>(object) else { return };
    if let Some(scanned) = &scanned {
        let kept: Result<Value, _> = serde_json::from_slice(&scanned.kept);
        assert!(kept.is_ok(), "{}", String::from_utf8_lossy(&scanned.kept));
    }
    let inner = members.iter().find(|(name, _)| name == "metadata");
    let inner = inner.and_then(|(_, value)| self::members(value.as_bytes()));
    if repeats(&members) || inner.as_ref().is_some_and(|inner| repeats(inner)) {
        return;
    }
    let name = plain["metadata"]["name"].as_str().unwrap_or_default();
    assert_eq!(scanned.as_ref().map_or("", |scanned| &scanned.name), name);
    let Some(scanned) = scanned else { return };
    same_head(&scanned, &plain["metadata"], inner.as_deref().unwrap_or_default());
    let top = plain.as_object_mut().expect("it has members");
    top.retain(|name, _| name != "apiVersion" && name != "kind");
    if let Some(metadata) = top.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    assert_eq!(serde_json::from_slice::<Value>(&scanned.kept).ok(), Some(plain));
}

fn same_head(scanned: &probe::ScannedMetadata, metadata: &Value, inner: &[(String, &str)]) {
    let text = |name: &str| metadata[name].as_str().unwrap_or_default();
    assert_eq!(scanned.namespace.as_deref().unwrap_or_default(), text("namespace"));
    assert_eq!(scanned.metadata().uid(), text("uid"));
    assert_eq!(scanned.metadata().resource_version(), text("resourceVersion"));
    assert_eq!(
        scanned.metadata().generation(),
        metadata["generation"].as_i64().unwrap_or_default()
    );
    assert_eq!(scanned.metadata().is_terminating(), !metadata["deletionTimestamp"].is_null());
    let labels = inner.iter().find(|(name, _)| name == "labels");
    let labels = labels.and_then(|(_, value)| members(value.as_bytes())).unwrap_or_default();
    if repeats(&labels) {
        return;
    }
    for (name, value) in &labels {
        let value = serde_json::from_str::<String>(value).ok();
        assert_eq!(scanned.metadata().label(name), value.as_deref());
    }
}

/// The body of an error answer from any sender.
pub(crate) fn status(data: &[u8]) {
    let [high, low, wait, rest @ ..] = data else { return };
    let (wait, body) = rest.split_at(usize::from(*wait).min(rest.len()));
    let code = u16::from_be_bytes([*high, *low]);
    let status = probe::status(code, Some(wait), body);
    let text = serde_json::from_slice::<Value>(body).unwrap_or_default();
    if text["kind"] != "Status" {
        assert!(status.message.len() <= 2048 + '…'.len_utf8(), "{}", status.message.len());
    }
    let _ = probe::status(code, None, body);
    look_into(Frame { event: EventType::Error, object: body });
}

/// A kubeconfig.
pub(crate) fn kubeconfig(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(config) = ClientConfig::from_yaml(text, None) {
        let _ = format!("{config:?}");
    }
}

/// `Retry-After`.
pub(crate) fn headers(data: &[u8]) {
    let plain = std::str::from_utf8(data).ok().filter(|text| {
        // Bytes that a header can hold.
        text.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
    });
    let plain = plain.and_then(|text| text.trim().parse::<u64>().ok());
    assert_eq!(probe::retry_after(data).map(|wait| wait.as_secs()), plain);
}

// ------------------------------------------------------------------------------- naive readings

/// The lengths of the pieces, and the stream.
fn lengths(data: &[u8]) -> (&[u8], &[u8]) {
    let (&count, rest) = data.split_first().unwrap_or((&0, data));
    rest.split_at(usize::from(count % 16).min(rest.len()))
}

/// The stream in pieces of these lengths, again and again.
fn pieces<'a>(mut body: &'a [u8], lengths: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let moves = lengths.iter().any(|length| *length > 0);
    let mut lengths = lengths.iter().cycle().map(|length| usize::from(*length));
    std::iter::from_fn(move || {
        let length = lengths.next().filter(|_| moves).unwrap_or(usize::MAX);
        let (piece, rest) = body.split_at_checked(length).unwrap_or((body, b""));
        (!body.is_empty()).then(|| {
            body = rest;
            piece
        })
    })
}

/// Names with escapes are not ours, even when they spell a name that is.
fn is_escaped(json: &[u8]) -> bool {
    json.windows(2).any(|pair| pair == b"\\u")
}

fn repeats(members: &[(String, &str)]) -> bool {
    let mut names: Vec<_> = members.iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

/// The members of a JSON object in order, repeated members too, as `serde_json` finds them.
fn members(json: &[u8]) -> Option<Vec<(String, &str)>> {
    struct Members<'a>(Vec<(String, &'a str)>);

    struct Each;

    impl<'de> Visitor<'de> for Each {
        type Value = Members<'de>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                members.push((name, value.get()));
            }
            Ok(Members(members))
        }
    }

    impl<'de> Deserialize<'de> for Members<'de> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Each)
        }
    }

    serde_json::from_slice::<Members<'_>>(json).ok().map(|members| members.0)
}
