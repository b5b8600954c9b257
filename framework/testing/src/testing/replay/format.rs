//! Reading of recordings; `windlass_runtime`'s `recording/lines.rs` writes them and has the table
//! of lines.

use jiff::Timestamp;
use serde_json::Value;
use windlass_core::error::{Error, ErrorKind};

/// Version of the format that is read.
const FORMAT: u64 = 1;

/// First line of a recording.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) operator: String,
    pub(super) framework: String,
    /// Default namespace of the operator's client.
    pub(super) namespace: String,
    /// Namespaces to which the operator is limited; empty for all.
    pub(super) namespaces: Vec<String>,
    pub(super) began: Timestamp,
    pub(super) ended: Timestamp,
    pub(super) seed: u64,
    /// Whether the recording goes back to the start of the operator.
    pub(super) is_whole: bool,
}

/// Objects that a cache asked for.
#[derive(Clone, Debug)]
pub(super) struct RecordedCache {
    pub(super) path: String,
    pub(super) selectors: String,
    pub(super) is_metadata: bool,
    pub(super) state: ListState,
}

/// Answer to the list of a cache.
#[derive(Clone, Debug)]
pub(super) enum ListState {
    Unknown,
    Refused { code: u16, body: Value },
    Listed { version: String, objects: Vec<Value> },
}

/// A request of the recorded operator.
#[derive(Clone, Debug)]
pub(super) struct RecordedRequest {
    pub(super) number: u64,
    pub(super) reconcile: Option<u64>,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) content_type: Option<String>,
    pub(super) body: Value,
}

/// Answer to a request.
#[derive(Clone, Debug)]
pub(super) enum RecordedAnswer {
    Answered { code: u16, retry_after: Option<String>, body: Value },
    Lost { how: String, error: String },
}

/// An entry of the exchange.
#[derive(Clone, Debug)]
pub(super) enum RecordedEntry {
    List { cache: usize, state: ListState },
    Event { cache: usize, event: String, object: Value },
    Request(RecordedRequest),
    Answer { number: u64, answer: RecordedAnswer },
    Start { number: u64, controller: String, key: String, reasons: String },
    End { number: u64, outcome: String },
}

/// A recording's lines.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    pub(super) header: Header,
    pub(super) documents: Vec<(String, u16, Value)>,
    pub(super) caches: Vec<RecordedCache>,
    pub(super) entries: Vec<(Timestamp, RecordedEntry)>,
}

impl Lines {
    /// Reads the lines of a recording.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, first) = lines.next().ok_or_else(|| refused(1, "it is empty"))?;
        let mut read = Self {
            header: header(&LineMembers::of(1, first)?)?,
            documents: Vec::new(),
            caches: Vec::new(),
            entries: Vec::new(),
        };
        for (at, line) in lines {
            read.add(&LineMembers::of(at + 1, line)?)?;
        }
        Ok(read)
    }

    fn add(&mut self, fields: &LineMembers) -> Result<(), Error> {
        if let Some(path) = fields.optional("document") {
            self.documents.push((path, fields.code()?, fields.value("body")));
        } else if fields.has("cache") {
            self.caches.push(RecordedCache {
                path: fields.text("path")?,
                selectors: fields.text("selectors")?,
                is_metadata: fields.value("isMetadata") == true,
                state: fields.state()?,
            });
        } else {
            let entry = fields.entry(self.caches.len())?;
            self.entries.push((fields.time("at")?, entry));
        }
        Ok(())
    }
}

/// Returns the error of a recording that cannot be used.
fn refused(line: usize, why: &str) -> Error {
    let text = format!(
        "cannot read the recording: line {line}: {why}; save the answer of /debug/recording as it is"
    );
    Error::new(ErrorKind::Decode, text)
}

/// Reads the first line.
fn header(fields: &LineMembers) -> Result<Header, Error> {
    let version = fields.number("recording")?;
    if version != FORMAT {
        let why = format!("the format is {version}, and this version of windlass reads {FORMAT}");
        return Err(refused(1, &why));
    }
    if let Some(flaw) = fields.optional("flaw") {
        let why = format!("the recording ended before it was exported: {flaw}");
        return Err(refused(1, &why));
    }
    let seed = fields.text("seed")?.parse().map_err(|_| refused(1, "`seed` is no number"))?;
    Ok(Header {
        operator: fields.text("operator")?,
        framework: fields.text("framework")?,
        namespace: fields.text("namespace")?,
        namespaces: fields.texts("namespaces"),
        began: fields.time("began")?,
        ended: fields.time("ended")?,
        seed,
        is_whole: fields.value("isWhole") == true,
    })
}

/// Members of a line.
struct LineMembers {
    line: usize,
    value: Value,
}

impl LineMembers {
    fn of(line: usize, text: &str) -> Result<Self, Error> {
        let value = serde_json::from_str::<Value>(text);
        let value = value.map_err(|error| refused(line, &error.to_string()))?;
        Ok(Self { line, value })
    }

    fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some()
    }

    fn value(&self, name: &str) -> Value {
        self.value.get(name).cloned().unwrap_or_default()
    }

    fn optional(&self, name: &str) -> Option<String> {
        self.value.get(name)?.as_str().map(str::to_owned)
    }

    fn text(&self, name: &str) -> Result<String, Error> {
        self.optional(name).ok_or_else(|| refused(self.line, &format!("there is no text `{name}`")))
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let items = self.value.get(name).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }

    fn number(&self, name: &str) -> Result<u64, Error> {
        let number = self.value.get(name).and_then(Value::as_u64);
        number.ok_or_else(|| refused(self.line, &format!("there is no number `{name}`")))
    }

    fn code(&self) -> Result<u16, Error> {
        u16::try_from(self.number("code")?).map_err(|_| refused(self.line, "`code` is too large"))
    }

    fn time(&self, name: &str) -> Result<Timestamp, Error> {
        let time = self.text(name)?.parse();
        time.map_err(|_| refused(self.line, &format!("`{name}` is no time")))
    }

    /// Reads the number of a cache.
    fn cache(&self, name: &str, caches: usize) -> Result<usize, Error> {
        let number = usize::try_from(self.number(name)?).unwrap_or(usize::MAX);
        if number < caches {
            return Ok(number);
        }
        Err(refused(self.line, &format!("`{name}` is the number of no cache")))
    }

    fn state(&self) -> Result<ListState, Error> {
        if self.has("code") {
            return Ok(ListState::Refused { code: self.code()?, body: self.value("body") });
        }
        let Some(objects) = self.value.get("objects").and_then(Value::as_array) else {
            return Ok(ListState::Unknown);
        };
        Ok(ListState::Listed { version: self.text("resourceVersion")?, objects: objects.clone() })
    }

    fn entry(&self, caches: usize) -> Result<RecordedEntry, Error> {
        if self.has("list") {
            return Ok(RecordedEntry::List {
                cache: self.cache("list", caches)?,
                state: self.state()?,
            });
        }
        if self.has("event") {
            let (event, object) = (self.text("type")?, self.value("object"));
            return Ok(RecordedEntry::Event { cache: self.cache("event", caches)?, event, object });
        }
        if self.has("request") {
            return Ok(RecordedEntry::Request(RecordedRequest {
                number: self.number("request")?,
                reconcile: self.value.get("reconcile").and_then(Value::as_u64),
                method: self.text("method")?,
                path: self.text("path")?,
                query: self.optional("query").unwrap_or_default(),
                content_type: self.optional("contentType"),
                body: self.value("body"),
            }));
        }
        if self.has("answer") {
            let (code, body) = (self.code()?, self.value("body"));
            let answer =
                RecordedAnswer::Answered { code, retry_after: self.optional("retryAfter"), body };
            return Ok(RecordedEntry::Answer { number: self.number("answer")?, answer });
        }
        if self.has("lost") {
            let answer =
                RecordedAnswer::Lost { how: self.text("how")?, error: self.text("error")? };
            return Ok(RecordedEntry::Answer { number: self.number("lost")?, answer });
        }
        if self.has("start") {
            return Ok(RecordedEntry::Start {
                number: self.number("start")?,
                controller: self.text("controller")?,
                key: self.text("key")?,
                reasons: self.text("reasons")?,
            });
        }
        if self.has("end") {
            return Ok(RecordedEntry::End {
                number: self.number("end")?,
                outcome: self.text("outcome")?,
            });
        }
        Err(refused(self.line, "it is no line of a recording"))
    }
}
