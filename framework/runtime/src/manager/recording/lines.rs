//! The format: a header, the answers and objects from before the beginning, then an entry a line.
//!
//! | line | members |
//! |---|---|
//! | header | `recording` (the version of the format), `operator`, `framework`, `namespace`, `namespaces`, `began`, `ended`, `seed`, `isWhole`, `flaw` |
//! | answer of discovery | `document` (its path), `code`, `body` |
//! | a cache | `cache` (its number), `path`, `selectors`, `isMetadata`, and `resourceVersion` and `objects`, or `code` and `body` |
//! | list of a cache | `at`, `list`, and `resourceVersion` and `objects`, or `code` and `body` |
//! | event of a watch | `at`, `event` (the cache), `type`, `object` |
//! | request | `at`, `request` (its number), `reconcile`, `method`, `path`, `query`, `contentType`, `body` |
//! | its answer | `at`, `answer`, `code`, `retryAfter`, `body` |
//! | its loss | `at`, `lost`, `how`, `error` |
//! | begin of a reconcile | `at`, `start` (its number), `controller`, `key`, `reasons` |
//! | its end | `at`, `end`, `outcome` |

use std::fmt::Write;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::mask::Mask;
use super::streams::{CacheState, CallResponse};
use super::window::{EntryContent, Window};
use super::{FORMAT, Recorder};
use windlass_client::client::{BrokenExchange, ExchangeEnd, SentRequest};
use windlass_core::wire::EventType;

/// A line in the making.
pub(super) struct LineBuilder(String);

impl LineBuilder {
    /// Begins an entry.
    pub(super) fn at(at: Timestamp) -> Self {
        let mut line = Self(String::new());
        line.text("at", &time(at));
        line
    }

    fn new() -> Self {
        Self(String::new())
    }

    fn name(&mut self, name: &str) {
        let _ = write!(self.0, "{}\"{name}\":", if self.0.is_empty() { '{' } else { ',' });
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.raw(name, &Value::from(value).to_string());
    }

    pub(super) fn number(&mut self, name: &str, value: u64) {
        self.raw(name, &value.to_string());
    }

    fn flag(&mut self, name: &str, value: bool) {
        self.raw(name, if value { "true" } else { "false" });
    }

    /// Adds a member whose value is JSON of one line.
    fn raw(&mut self, name: &str, json: &str) {
        self.name(name);
        self.0.push_str(json);
    }

    pub(super) fn finished(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Returns a time with a fixed number of digits.
fn time(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// Returns a body as JSON of one line: as it is, masked, or as a text if it is no JSON.
pub(super) fn json(body: &[u8], mask: Option<&Mask>) -> String {
    if let Some(mask) = mask {
        let Ok(mut value) = serde_json::from_slice::<Value>(body) else {
            // A secret may be anywhere in it.
            return Value::from(format!("{} bytes that are no JSON", body.len())).to_string();
        };
        mask.value(&mut value);
        return value.to_string();
    }
    match serde_json::from_slice::<&RawValue>(body) {
        Ok(raw) if !raw.get().contains('\n') => raw.get().to_owned(),
        Ok(_) => serde_json::from_slice::<Value>(body).unwrap_or_default().to_string(),
        Err(_) => Value::from(String::from_utf8_lossy(body)).to_string(),
    }
}

/// Writes a request.
pub(super) fn request(
    line: &mut LineBuilder,
    number: u64,
    reconcile: Option<u64>,
    request: &SentRequest,
    mask: &Mask,
) {
    line.number("request", number);
    if let Some(reconcile) = reconcile {
        line.number("reconcile", reconcile);
    }
    line.text("method", &request.method);
    line.text("path", &request.path);
    if !request.query.is_empty() {
        line.text("query", &request.query);
    }
    if let Some(content_type) = &request.content_type {
        line.text("contentType", content_type);
    }
    if !request.body.is_empty() {
        let mask = Mask::concerns(&request.path).then_some(mask);
        line.raw("body", &json(&request.body, mask));
    }
}

/// Writes an answer, or the loss of one.
pub(super) fn answer(
    line: &mut LineBuilder,
    number: u64,
    answer: &CallResponse,
    end: &ExchangeEnd,
    mask: &Mask,
) {
    // The reader of a stream may leave it at any time.
    let is_left = answer.is_stream && answer.code != 0;
    if *end != ExchangeEnd::Whole && !is_left {
        line.number("lost", number);
        let (how, error) = match end {
            ExchangeEnd::Broken(BrokenExchange::NotSent, error) => ("notSent", error.as_str()),
            ExchangeEnd::Broken(BrokenExchange::TimedOut, error) => ("timedOut", error.as_str()),
            ExchangeEnd::Broken(BrokenExchange::Lost, error) => ("lost", error.as_str()),
            ExchangeEnd::Whole | ExchangeEnd::Dropped => ("dropped", ""),
        };
        line.text("how", how);
        line.text("error", error);
        return;
    }
    line.number("answer", number);
    line.number("code", answer.code.into());
    if let Some(retry_after) = &answer.retry_after {
        line.text("retryAfter", retry_after);
    }
    if !answer.body.is_empty() {
        line.raw("body", &json(&answer.body, answer.is_secret.then_some(mask)));
    }
}

/// Returns the whole recording.
pub(super) fn written(recorder: &Recorder, window: &Window) -> Vec<u8> {
    let mut out = String::with_capacity(window.bytes + 4096);
    let mut push = |line: LineBuilder| {
        out.push_str(&line.finished());
        out.push('\n');
    };
    push(header(recorder, window));
    for (path, (code, body)) in &window.documents {
        let mut line = LineBuilder::new();
        line.text("document", path);
        line.number("code", u64::from(*code));
        line.raw("body", &json(body, None));
        push(line);
    }
    for (number, cache) in window.caches.iter().enumerate() {
        let mut line = LineBuilder::new();
        line.number("cache", number as u64);
        line.text("path", &cache.path);
        line.text("selectors", &cache.selectors);
        line.flag("isMetadata", cache.is_metadata);
        state(&mut line, &cache.state);
        push(line);
    }
    for (at, content) in window.entries() {
        let line = match content {
            EntryContent::Line(line) => {
                out.push_str(line);
                out.push('\n');
                continue;
            }
            EntryContent::List { cache, state: listed } => {
                let mut line = LineBuilder::at(recorder.wall(at));
                line.number("list", *cache as u64);
                state(&mut line, listed);
                line
            }
            EntryContent::Event { cache, event, object, .. } => {
                let mut line = LineBuilder::at(recorder.wall(at));
                line.number("event", *cache as u64);
                line.text("type", event_type(*event));
                line.raw("object", &json(object, None));
                line
            }
        };
        out.push_str(&line.finished());
        out.push('\n');
    }
    out.into_bytes()
}

/// Returns the first line.
fn header(recorder: &Recorder, window: &Window) -> LineBuilder {
    let mut line = LineBuilder::new();
    line.number("recording", FORMAT.into());
    line.text("operator", &recorder.operator);
    line.text("framework", concat!("windlass ", env!("CARGO_PKG_VERSION")));
    line.text("namespace", &recorder.namespace);
    line.raw("namespaces", &Value::from(recorder.namespaces.clone()).to_string());
    line.text("began", &time(recorder.wall(window.began)));
    line.text("ended", &time(recorder.wall(recorder.now())));
    // A text: readers of JSON may take numbers for floating-point ones.
    line.text("seed", &recorder.seed.to_string());
    line.flag("isWhole", window.is_whole);
    if let Some(flaw) = &window.flaw {
        line.text("flaw", flaw);
    }
    line
}

/// Writes the state of a cache.
fn state(line: &mut LineBuilder, state: &CacheState) {
    match state {
        CacheState::Unknown => {}
        CacheState::Refused { code, body } => {
            line.number("code", (*code).into());
            line.raw("body", &json(body, None));
        }
        CacheState::Listed { version, objects } => {
            line.text("resourceVersion", version);
            line.name("objects");
            line.0.push('[');
            for (at, object) in objects.values().enumerate() {
                line.0.push_str(if at == 0 { "" } else { "," });
                line.0.push_str(&json(object, None));
            }
            line.0.push(']');
        }
    }
}

/// Returns the type of an event as API servers write it.
fn event_type(event: EventType) -> &'static str {
    match event {
        EventType::Added => "ADDED",
        EventType::Modified => "MODIFIED",
        EventType::Deleted => "DELETED",
        EventType::Bookmark => "BOOKMARK",
        EventType::Error => "ERROR",
        EventType::Unknown => "UNKNOWN",
    }
}
