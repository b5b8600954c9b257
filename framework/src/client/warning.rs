//! What API servers warn of: deprecated versions, unknown fields, admission policies.
//!
//! Only code 299 is told, as Kubernetes uses no other. A handler is told each warning of each
//! answer, success or not; those that print keep each text to once.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use http::HeaderMap;
use http::header::WARNING;
use parking_lot::Mutex;

use crate::wire::status::excerpt;

/// The only code that is told: "miscellaneous persistent warning".
const PERSISTENT: u16 = 299;
/// Warnings of one answer that are told.
const MOST: usize = 64;
/// Texts that are remembered as told; the oldest is forgotten first.
const REMEMBERED: usize = 256;

/// One warning of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// 299.
    pub code: u16,
    /// Who warns; `-` when it does not say.
    pub agent: String,
    /// What of; one line of at most 2 KiB.
    pub text: String,
}

/// Is told what API servers warn of.
pub trait WarningHandler: fmt::Debug + Send + Sync + 'static {
    /// The answer to a request to `template`, such as `/api/v1/namespaces/{namespace}/pods`, came
    /// with `warning`. A panic in here is caught and does not fail the call.
    fn warn(&self, warning: &Warning, template: &str);
}

/// Ignores warnings.
#[derive(Clone, Copy, Debug)]
pub struct NoWarnings;

impl WarningHandler for NoWarnings {
    fn warn(&self, _: &Warning, _: &str) {}
}

/// Logs each text once.
#[derive(Debug, Default)]
pub struct LogWarnings {
    told: Mutex<Told>,
}

impl WarningHandler for LogWarnings {
    fn warn(&self, warning: &Warning, template: &str) {
        let new = self.told.lock().is_new(&warning.text);
        if new {
            tracing::warn!(url = template, "the API server warns: {}", warning.text);
        }
    }
}

/// Writes warnings, a line each.
pub struct WriteWarnings {
    out: Mutex<Box<dyn io::Write + Send>>,
    told: Option<Mutex<Told>>,
    colour: bool,
}

impl WriteWarnings {
    /// Writes every warning to `out`. Errors of `out` are ignored.
    pub fn new(out: impl io::Write + Send + 'static) -> Self {
        Self { out: Mutex::new(Box::new(out)), told: None, colour: false }
    }

    /// Writes each text once.
    #[must_use]
    pub fn once_each(mut self) -> Self {
        self.told = Some(Mutex::default());
        self
    }

    /// Writes the word `Warning` in yellow, for terminals.
    #[must_use]
    pub fn coloured(mut self) -> Self {
        self.colour = true;
        self
    }
}

impl WarningHandler for WriteWarnings {
    fn warn(&self, warning: &Warning, _: &str) {
        if self.told.as_ref().is_some_and(|told| !told.lock().is_new(&warning.text)) {
            return;
        }
        let word = if self.colour { "\u{1b}[33;1mWarning:\u{1b}[0m" } else { "Warning:" };
        // Nobody is there to be told that a warning could not be written.
        let _ = writeln!(self.out.lock(), "{word} {}", warning.text);
    }
}

impl fmt::Debug for WriteWarnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteWarnings")
            .field("once_each", &self.told.is_some())
            .field("coloured", &self.colour)
            .finish_non_exhaustive()
    }
}

/// Texts that were told, in the order in which they came.
#[derive(Debug, Default)]
struct Told {
    texts: BTreeSet<String>,
    order: VecDeque<String>,
}

impl Told {
    fn is_new(&mut self, text: &str) -> bool {
        if self.texts.contains(text) {
            return false;
        }
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.texts.remove(&oldest);
        }
        self.texts.insert(text.to_owned());
        self.order.push_back(text.to_owned());
        true
    }
}

/// Tells `handler` the warnings of an answer.
pub(super) fn tell(handler: &dyn WarningHandler, headers: &HeaderMap, path: &str) {
    if !headers.contains_key(WARNING) {
        return;
    }
    let template = super::place::template(path);
    for warning in warnings(headers) {
        let told = catch_unwind(AssertUnwindSafe(|| handler.warn(&warning, &template)));
        if told.is_err() {
            tracing::error!(text = warning.text, "the warning handler panicked");
        }
    }
}

/// The warnings of an answer; what does not parse is left out.
pub(super) fn warnings(headers: &HeaderMap) -> Vec<Warning> {
    let mut found = Vec::new();
    for value in headers.get_all(WARNING) {
        let line = String::from_utf8_lossy(value.as_bytes());
        let mut rest = line.trim();
        while !rest.is_empty() && found.len() < MOST {
            let Some((warning, after)) = parse_one(rest) else {
                tracing::debug!(header = %excerpt(rest.as_bytes()), "no warning can be read");
                break;
            };
            if warning.code == PERSISTENT && !warning.text.is_empty() {
                found.push(warning);
            }
            rest = after.trim_start().trim_start_matches(',').trim_start();
        }
    }
    found
}

/// `code agent "text" ["date"]`, followed by the end or a comma.
fn parse_one(text: &str) -> Option<(Warning, &str)> {
    let (code, rest) = text.split_once(' ')?;
    if code.len() != 3 {
        return None;
    }
    let code = code.parse().ok()?;
    let (agent, rest) = rest.trim_start().split_once(' ')?;
    let (words, rest) = quoted(rest.trim_start())?;
    let mut rest = rest.trim_start();
    if rest.starts_with('"') {
        rest = quoted(rest)?.1.trim_start();
    }
    if !rest.is_empty() && !rest.starts_with(',') {
        return None;
    }
    let warning = Warning { code, agent: agent.to_owned(), text: excerpt(words.as_bytes()) };
    Some((warning, rest))
}

/// A quoted string without its quotes and escapes, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let inside = text.strip_prefix('"')?;
    let mut words = String::new();
    let mut chars = inside.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((words, &inside[at + 1..])),
            '\\' => words.push(chars.next()?.1),
            c => words.push(c),
        }
    }
    None
}
